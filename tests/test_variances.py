"""Where the spread of a metric arises, from runs that sit in boots."""

import math

import numpy as np
import pytest

from patchstudy import stats, variances
from patchstudy.checks import material
from patchstudy.findings import assess
from patchstudy.report import sections
from patchstudy.report.results import results
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
unit = "boot"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""


@pytest.fixture
def nested(write_study):
    """Return a function: a study of boots with runs, values by boot and run."""

    def of(baseline, patched=None):
        rows = []
        for turn, values in enumerate((baseline, patched or baseline)):
            for boot, runs in enumerate(values):
                for run, value in enumerate(runs):
                    row = {"device": "d", "workload": "t", "metric": "throughput"}
                    row |= {"variant": ("baseline", "patched")[turn], "boot": boot}
                    row |= {"run": run, "unit": "Mbit/s", "value": value}
                    row["position"] = 10 * (2 * boot + (turn ^ boot % 2)) + run
                    rows.append(row)
        return open_study(write_study(DESIGN, rows))

    return of


def drawn(between, within, boots=6, runs=4):
    random = np.random.default_rng(2)
    level = random.normal(0, between, (boots, 1)) if between else np.zeros((boots, 1))
    logs = level + random.normal(0, within, (boots, runs))
    return (100 * np.exp(logs)).tolist()


def test_the_components_are_those_of_the_logs(nested):
    values = drawn(0.02, 0.01)
    one, other = variances.components(material(nested(values)))
    expected = stats.variance_components(np.log(values)).components
    assert (one.level, one.groups, one.runs) == ("boot", 6, 4)
    assert (one.within**2, one.between**2) == pytest.approx(expected)
    assert (one.variant, other.variant) == ("baseline", "patched")
    assert not one.clamped


def test_boots_that_add_nothing_are_said_to_add_nothing(nested):
    same = [[100, 101, 99.5], [99.5, 101, 100], [101, 99.5, 100]]
    one, _ = variances.components(material(nested(same)))
    assert (one.between, one.clamped, one.best, one.gain) == (0.0, True, None, 1.0)


def test_more_runs_do_not_help_where_boots_differ(nested):
    one, _ = variances.components(material(nested(drawn(0.05, 0.005))))
    assert one.best == 1
    assert one.gain < 0.02
    mean = one.between**2 + one.within**2 / one.runs
    assert one.gain == pytest.approx(1 - one.between / math.sqrt(mean))


def test_fuller_boots_are_cut_to_the_emptiest(nested):
    values = drawn(0.02, 0.01)
    values[2] = values[2][:2]
    one, _ = variances.components(material(nested(values)))
    assert (one.groups, one.runs) == (6, 2)


def test_one_run_a_boot_tells_nothing(nested):
    study = nested([[100], [101], [99], [100.5]])
    assert list(variances.components(material(study))) == []
    (note,) = sections.spread(assess(study))
    assert note.text.startswith("No boot or block holds several runs")
    assert results(assess(study))["variance_components"] == []


def test_the_report_says_that_a_negative_variance_was_set_to_zero(nested):
    found = assess(nested([[100, 101, 99.5], [99.5, 101, 100], [101, 99.5, 100]]))
    table, *notes = sections.spread(found)
    assert table.rows[0][4] == "0 % (set to 0)"
    assert any("negative" in note.text for note in notes)
    (first, _) = results(found)["variance_components"]
    assert (first["sd_between"], first["clamped"]) == (0.0, True)
