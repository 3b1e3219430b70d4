"""``report.json``: promised keys and words, strict JSON, the numbers of the text."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchstudy.decisions import Decision
from patchstudy.findings import assess
from patchstudy.report.results import digest, inputs_digest, results, written
from patchstudy.report.text import text
from patchstudy.study import open_study
from patchstudy.verdicts import Guarded, Verdict

DATA = Path(__file__).parents[1] / "data"
SHIPPED = sorted(
    path.parent.relative_to(DATA).as_posix() for path in DATA.glob("*/*/study.toml")
)
TOP = {
    "schema", "study", "decision", "sentence", "comparisons", "claims", "checks",
    "provenance",
    "reported",
}  # fmt: skip
COMPARISON = {
    "metric", "role", "device", "workload", "variant", "n_baseline", "n_patched",
    "unit_of_analysis", "baseline", "patched", "change", "p_value", "p_adjusted",
    "verdict", "qualifiers", "method", "caveats",
}  # fmt: skip
OURS = {
    "question", "setting", "devices", "mechanism", "design", "failed_runs",
    "devices_together", "variance_components", "patch", "title", "explained",
    "profile", "flames", "calls", "callers", "call_costs", "clocks", "tracers",
    "counters",
    "decision_in_words", "headline", "runs", "measured", "facts", "limits",
    "noise",
}  # fmt: skip
OURS_COMPARISON = {
    "unit", "labels", "tool", "place", "blocks", "companion", "margin", "guard",
    "sentence", "problem", "expect", "ratio_of_means", "spread", "without_outliers",
    "counted", "rounded", "borrowed", "layout_noise",
}  # fmt: skip
VERDICTS = {
    "better", "worse", "equivalent", "inconclusive", "saturated", "not assessable",
}  # fmt: skip
DECISIONS = {
    "accept", "accept (below margin)", "veto", "not yet", "reject claim", "mixed",
}  # fmt: skip
NUMBER = r"[-+]?\d[\d.]*(?:e[-+]?\d+)?"
SCALES = {"%": 0.01, "M": 1e6, "k": 1e3, "G": 1e9, "u": 1e-6, "n": 1e-9, "m": 1e-3}


@pytest.fixture(params=SHIPPED)
def shipped(request, assessed):
    """Return each shipped study, assessed."""
    return assessed(request.param)


def strict(data):
    """Read JSON that holds none of the words that only some programs read."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(data, parse_constant=refuse)


def test_the_words_are_the_promised_ones():
    assert {str(one) for one in Verdict} == VERDICTS
    assert {str(one) for one in Decision} == DECISIONS


def test_the_keys_are_the_promised_ones(shipped):
    content = results(shipped)
    assert content.keys() == TOP | OURS
    assert content["comparisons"]
    for one in content["comparisons"]:
        assert one.keys() == COMPARISON | OURS_COMPARISON
        if one["change"] is not None:
            assert one["change"].keys() == {
                "value", "low", "high", "confidence", "scale",
            }  # fmt: skip
    assert content["schema"] == 1


def test_only_the_promised_words_occur(shipped):
    content = results(shipped)
    assert content["decision"] in DECISIONS
    assert {one["decision"] for one in content["devices"]} <= DECISIONS
    for one in content["comparisons"]:
        assert one["verdict"] in VERDICTS
        assert one["guard"] in {None, *map(str, Guarded)}
        assert (one["guard"] is not None) == (one["role"] == "guard")


def test_the_json_is_strict_and_comes_back_as_it_was(shipped):
    assert strict(written(shipped)) == results(shipped)


def test_equal_inputs_give_equal_bytes(data):
    folder = data / "qmi_wwan" / "same-module-sequential"
    first, second = (written(assess(open_study(folder))) for _ in range(2))
    assert first == second


def test_every_raw_file_is_named_with_its_digest(shipped):
    made = results(shipped)["provenance"]
    assert made["inputs_sha256"] == inputs_digest(shipped.study.files)
    assert made["files"] == shipped.study.files
    for mark in made["files"].values():
        assert re.fullmatch(r"[0-9a-f]{64}", mark)


def test_the_digest_of_inputs_is_that_of_sha256sum():
    # printf 'x' >a; printf 'y' >b; sha256sum a b | sha256sum
    marks = {
        "b": "a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa",
        "a": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
    }
    assert inputs_digest(marks) == (
        "8d73e01349b30f78751f37931b0d2ae54f8dbd56a8fc69e01f2861cc466fadaa"
    )


def test_another_number_gives_another_digest(assessed):
    one = assessed("qmi_wwan/same-module")
    first = one.findings[0]
    change = first.comparison.change
    nearly = replace(change, value=change.value + 1e-15)
    moved = replace(first, comparison=replace(first.comparison, change=nearly))
    other = replace(one, findings=(moved, *one.findings[1:]))
    assert digest(other) != digest(one)


def test_an_assessment_is_worked_out_once(shipped):
    assert results(shipped) is results(shipped)
    assert shipped.profiled is shipped.profiled
    assert shipped.call_costs is shipped.call_costs


def printed_rows(block):
    """Yield place, metric and the numbers of every row of the tables of a block."""
    lines = block.replace("\n" + " " * 40, " ").splitlines()
    place = ""
    for at, line in enumerate(lines):
        if line.startswith("  metric"):
            start = max(n for n in range(at - 1) if not lines[n])
            place = " ".join(lines[start:at]).strip().rpartition(", ")[0]
        row = re.fullmatch(
            rf"  (\w+) (.*?) +({NUMBER}) +({NUMBER}) +({NUMBER})(%?) +"
            r"(?:identical|\[(.*),(.*)\]) +(\S+)",
            line,
        )
        if row:
            yield place, row


def close(printed, value, scale):
    """Say whether a printed number is a value, rounded to the digits it has."""
    digits = len(printed.partition(".")[2])
    if "." not in printed and len(printed.lstrip("+-")) > 3:  # from a thousand on
        digits = len(printed.rstrip("0")) - len(printed)
    return abs(float(printed) - value / scale) <= 0.5000001 * 10.0**-digits


def test_the_text_block_prints_these_numbers(shipped):
    several = len(shipped.study.design.patched) > 1
    told = [
        one
        for one in results(shipped)["comparisons"]
        if one["change"] is not None and one["role"] != "mechanism"
    ]
    names = ("device", "variant", "workload") if several else ("device", "workload")
    by_place = {(", ".join(one[x] for x in names), one["metric"]): one for one in told}
    rows = list(printed_rows(text(shipped)))
    assert bool(rows) is bool(told)  # one published value each has no interval
    for place, row in rows:
        one = by_place[place, row[1]]
        scale = SCALES.get(row[2][:1], 1.0) if row[2] != "1/s" else 1.0
        ratio = one["change"]["scale"] == "ratio"
        assert (row[6] == "%") == (ratio and row[5] != "0")
        mean = "geometric_mean" if ratio else "mean"
        assert close(row[3], one["baseline"][mean], scale)
        assert close(row[4], one["patched"][mean], scale)
        size = 0.01 if ratio else scale
        ends = [(row[5], "value"), (row[7], "low"), (row[8], "high")]
        for printed, name in ends if row[7] else ends[:1]:
            assert close(printed, one["change"][name], size)


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["throughput,Mbit/s", "loss,pp", "retransmits,1"]),
            st.one_of(st.just(0.0), st.floats(1e-9, 100)),
            st.sampled_from(["baseline", "patched"]),
        ),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_numbers_give_strict_json_and_a_block(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.toml").write_text(
        'question = "?"\nunit = "run"\n[[metrics]]\nname = "throughput"\n'
        'role = "primary"\n[[metrics]]\nname = "loss"\nrole = "guard"\n'
        '[[metrics]]\nname = "retransmits"\nrole = "guard"\n'
    )
    lines = [
        f"{metric},{value!r},{variant},{number},{number},device"
        for number, (metric, value, variant) in enumerate(rows)
    ]
    header = "metric,unit,value,variant,run,position,device"
    (folder / "measurements.csv").write_text("\n".join([header, *lines]) + "\n")
    assessment = assess(open_study(folder))
    assert strict(written(assessment))["decision"] in DECISIONS
    assert all(len(line) <= 72 for line in text(assessment).splitlines())
