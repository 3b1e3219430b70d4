"""Self shares of perf report, where no stacks were kept."""

import numpy as np
import pytest

from patchstudy import reported
from patchstudy.findings import assess
from patchstudy.mechanism import Holds, explanations
from patchstudy.report import why
from patchstudy.report.table import Note, Table
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
[[metrics]]
name = "profile_share:copy"
role = "mechanism"
expect = "lower"
"""
RATE = "metric,unit,value\nthroughput,Mbit/s,100\n"
HEAD = """\
# To display the perf.data header info, please use --header/--header-only options.
#
# Samples: 2K of event 'cpu-clock'
# Event count (approx.): 2384000000
#
# Overhead{column}  Symbol
# ........{dots}  ......
#
"""


def report(*rows, command=False):
    """Return a report of these symbols and percentages."""
    column, dots = ("  Command", "  .......") if command else ("", "")
    cell = "  iperf3 " if command else ""
    body = "".join(f"   {share:6.2f}%{cell}  [k] {name}\n" for name, share in rows)
    return HEAD.format(column=column, dots=dots) + body


@pytest.fixture
def study(write_study):
    """Return a function that makes a study of these reports of the variants."""

    def of(**reports):
        files = {
            f"d/{variant}/boot-9/perf-{number}/t.perf_report.txt": text
            for variant, found in reports.items()
            for number, text in enumerate(found)
        }
        for variant in reports:
            files[f"d/{variant}/boot-1/run-1/t.x.csv"] = RATE
        return open_study(write_study(DESIGN, (), files))

    return of


def test_self_shares_are_compared_where_there_are_no_stacks(study):
    table = reported.difference(
        study(
            baseline=[report(("copy", 4.0), ("send", 96.0))],
            patched=[report(("send", 99.0), ("copy", 1.0))],
        )
    ).set_index("symbol")
    assert table.loc["copy", "change"] == pytest.approx(-0.03)
    assert np.isnan(table.loc["copy", "change_low"])
    assert set(table["event"]) == {"cpu-clock"}


def test_two_reports_of_each_give_the_change_an_interval(study):
    table = reported.difference(
        study(
            baseline=[report(("copy", x), ("send", 100 - x)) for x in (4.0, 4.4)],
            patched=[report(("send", 100 - x), ("copy", x)) for x in (1.0, 1.2)],
        )
    ).set_index("symbol")
    one = table.loc["copy"]
    assert one["change_low"] < one["change"] < one["change_high"] < 0
    assert (one["reports_baseline"], one["reports_patched"]) == (2, 2)


@pytest.mark.parametrize(
    ("command", "bound"),
    [
        pytest.param(False, 0.02, id="a row a symbol: no more than the smallest row"),
        pytest.param(True, 0.30, id="several rows a symbol: all that is not there"),
    ],
)
def test_a_symbol_below_the_limit_has_a_bound_and_no_value(study, command, bound):
    table = reported.difference(
        study(
            baseline=[report(("copy", 40.0), ("send", 60.0))],
            patched=[report(("send", 68.0), ("wait", 2.0), command=command)],
        )
    ).set_index("symbol")
    one = table.loc["copy"]
    assert np.isnan(one["patched"])
    assert one["bound_patched"] == pytest.approx(bound)
    assert np.isnan(one["change"])
    ends = one[["change_low", "change_high"]].tolist()
    assert ends == pytest.approx([-0.40, bound - 0.40])


def test_stacks_come_before_reports(study, write_study):
    folded = {
        f"d/{variant}/boot-9/perf-0/t.{name}.txt": text
        for variant in ("baseline", "patched")
        for name, text in (
            ("folded", "main;copy 4\nmain;send 96\n"),
            ("perf_report", report(("copy", 4.0), ("send", 96.0))),
        )
    }
    files = {**folded, "d/baseline/boot-1/run-1/t.x.csv": RATE}
    assert reported.difference(open_study(write_study(DESIGN, (), files))).empty


@pytest.mark.parametrize(
    ("patched", "words", "holds"),
    [
        pytest.param(
            [("send", 99.0), ("copy", 1.0)], "1.00 % of the patched", Holds.UNKNOWN,
            id="less, one each",
        ),
        pytest.param(
            [("send", 97.0), ("wait", 2.0)], "less than 1.00 % of the patched",
            Holds.UNKNOWN, id="below the limit",
        ),
        pytest.param(
            [("send", 99.99), ("wait", 0.01)], "less than 0.01 % of the patched",
            Holds.YES, id="gone",
        ),
    ],
)  # fmt: skip
def test_a_named_symbol_is_told_as_a_self_share(study, patched, words, holds):
    (one,) = explanations(
        study(
            baseline=[report(("copy", 4.0), ("send", 96.0))],
            patched=[report(*patched)],
        )
    )
    assert one.holds is holds
    assert one.sentence.startswith(
        "copy alone (self, without what it calls) has 4.00 % of the baseline report and"
    )
    assert words in one.sentence
    assert "(one report each, no interval)" in one.sentence


def test_the_report_says_that_they_are_no_inclusive_shares(study):
    table, note = why.profile(
        assess(
            study(
                baseline=[report(("copy", 40.0), ("send", 60.0))],
                patched=[report(("send", 68.0), ("wait", 2.0))],
            )
        )
    )
    assert isinstance(table, Table)
    assert isinstance(note, Note)
    assert "Not to be held against inclusive shares" in table.caption
    assert table.rows[0][2:5] == ("40.00", "<2.00", "-40.00 to -38.00")
    assert "--percent-limit" in note.text


def test_the_pair_of_the_corpus_has_no_more_than_its_rows_leave(shared):
    """10 of 2384 samples end in pskb_expand_head before; after no row has it."""
    from patchstudy.loaders import load

    folder = shared / "corpus" / "sys" / "perf-report"
    found = {}
    for name in ("before", "after"):
        capture = load(folder / f"cap-ha-{name}-nochildren-n.txt")
        found[name] = {one.metric: one.value for one in capture.measurements}
    assert found["before"]["profile_share:pskb_expand_head"] == pytest.approx(0.0042)
    assert "profile_share:pskb_expand_head" not in found["after"]
