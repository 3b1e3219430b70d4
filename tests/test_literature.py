"""Published measurements: the figures that were counted by hand come out again."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats

from patchstudy.errors import StudyError
from patchstudy.report import literature

ROOT = Path(__file__).parents[1]
CASES = ROOT / "data/published/cases.csv"
NORTHSTAR = ROOT / "data/bgmac/code-placement/measurements.csv"


@pytest.fixture(scope="module")
def found():
    """Return the published measurements."""
    return literature.read(CASES)


@pytest.fixture(scope="module")
def northstar():
    """Return the published runs of a workload and variant, in Mbit/s."""
    with NORTHSTAR.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    def of(workload, variant):
        return np.array(
            [
                float(row["value"])
                for row in rows
                if (row["workload"], row["variant"]) == (workload, variant)
            ]
        )

    return of


def test_there_are_87_cases_of_202_measurements(found):
    assert (len(literature.by_case(found)), len(found)) == (87, 202)


def test_80_of_87_cases_state_one_run_or_none(found):
    rows = {row[0]: row[1:] for row in literature.practice(found).rows}
    assert rows["state no number of runs, or one run"] == ("80", "87", "92%")
    assert rows["state more runs"] == ("7", "87", "8%")
    assert rows["give any figure of CPU or cycles"][0] == "11"


def test_every_measurement_has_a_rule(found):
    counts = [int(row[1]) for row in literature.rules(found).rows]
    assert sum(counts) == len(literature.table(found).rows) == 202


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("not stated", None),
        ("", None),
        ("1", 1),
        ("1 (60 s average)", 1),
        ("~10", 10),
        (">=7", 7),
        ("2x10", 20),
    ],
)
def test_how_many_runs_are_stated(text, runs):
    assert literature.runs_of(text) == runs


def test_the_ratio_of_sis900_has_the_bounds_of_its_digits(found):
    one = next(one for one in found if one.case == "sis900-v1")
    assert one.ratio.value == pytest.approx(250.8)
    assert (one.ratio.low, one.ratio.high) == pytest.approx((227.9, 278.8), abs=0.05)
    assert literature.rule(one) == "not assessable: one run"


@pytest.mark.parametrize(
    ("cell", "means", "change", "p_value"),
    [
        (("nat-commit", "patched"), (740.5, 772.5), 4.32, 1.3e-13),
        (("nat-same-build", "again"), (772.5, 768.6), -0.50, 0.015),
        (("nat-align", "patched"), (768.6, 761.7), -0.91, 1.1e-8),
    ],
)
def test_the_northstar_figures_come_out_again(northstar, cell, means, change, p_value):
    base, new = northstar(cell[0], "baseline"), northstar(*cell)
    assert (base.mean(), new.mean()) == pytest.approx(means, abs=0.06)
    assert 100 * (new.mean() / base.mean() - 1) == pytest.approx(change, abs=0.01)
    found = scipy_stats.ttest_ind(new, base, equal_var=False).pvalue
    assert found == pytest.approx(p_value, rel=0.05)


def test_builds_differ_by_1_4_percent_and_sessions_by_0_2(northstar):
    sessions = np.concatenate(
        [northstar("nat-builds", name) for name in ("baseline", "placebo")]
    ).reshape(8, 2)
    builds = sessions.mean(axis=1)
    within = np.sqrt(sessions.var(axis=1, ddof=1).mean())
    assert builds.std(ddof=1) == pytest.approx(10.7, abs=0.05)
    assert within == pytest.approx(1.7, abs=0.05)
    assert (builds.min(), builds.max()) == (737.5, 768.0)


def test_a_missing_column_is_named(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("case_id,source\n")
    with pytest.raises(StudyError, match=r"cases.csv: no column 'subject'"):
        literature.read(path)
