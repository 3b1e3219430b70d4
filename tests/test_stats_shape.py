"""Outliers, modes and spread: the handbook's example, then hand-made shapes."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import levene

from patchstudy.stats import (
    gap,
    gesd_outliers,
    modified_z_outliers,
    spread_ratio_p,
)
from patchstudy.stats.shape import _gesd_critical

ORACLES = Path(__file__).parent / "oracles"


def oracle(number):
    (path,) = ORACLES.glob(f"{number}_*.json")
    return json.loads(path.read_text(encoding="utf-8"))


LAWS = settings(deadline=None, derandomize=True, max_examples=60)
ROSNER = oracle("20")


def test_gesd_finds_outliers_that_hide_each_other():
    got = gesd_outliers(ROSNER["x"], ROSNER["max_outliers"], ROSNER["alpha"])
    assert len(got) == ROSNER["n_outliers"]
    assert [ROSNER["x"][place] for place in got] == [5.34, 5.42, 6.01]


@pytest.mark.parametrize(("removed", "want"), list(enumerate(ROSNER["lam"])))
def test_gesd_critical_values_are_those_of_the_handbook(removed, want):
    got = _gesd_critical(len(ROSNER["x"]) - removed, ROSNER["alpha"])
    assert got == pytest.approx(want, abs=ROSNER["tol"])


def test_gesd_of_constant_values_finds_nothing():
    assert gesd_outliers([5.0] * 15, 3, 0.05) == ()
    assert gesd_outliers([5.0] * 14 + [9.0], 3, 0.05) == (14,)


def test_gesd_asks_for_fifteen_values():
    with pytest.raises(ValueError, match=r"14 value\(s\) given; give at least 15"):
        gesd_outliers(range(14), 1, 0.05)


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param([10, 11, 9, 10.5, 9.5, 40], (5,), id="one far"),
        pytest.param([10, 11, 9, 10.5, 9.5, 10.2], (), id="none"),
        pytest.param([941, 941, 941, 941, 941, 700], (5,), id="half are equal"),
        pytest.param([5, 5, 5], (), id="constant"),
        pytest.param([0.1 + 0.2, 0.3, 0.3], (), id="rounding"),
        pytest.param([7], (), id="one value"),
    ],
)
def test_modified_z_outliers(values, want):
    assert modified_z_outliers(values) == want


def test_a_step_of_the_last_digit_is_no_outlier():
    values = [941, 941, 941, 941, 940]
    assert modified_z_outliers(values) == (4,)
    assert modified_z_outliers(values, resolution=1) == ()


def test_golden_gap():
    case = next(one for one in oracle("29")["edge"] if one["name"] == "bimodal_gap")
    got = gap(case["patched"])
    assert got.ratio == case["expected"]["gap_ratio"]
    assert got.flagged == case["expected"]["flag_n5_threshold3"]
    assert got.split == 145.5
    assert not gap(case["base"]).flagged


@pytest.mark.parametrize(
    ("values", "ratio", "flagged"),
    [
        pytest.param([1, 2, 50], 0, False, id="too few to split"),
        pytest.param([1, 2, 3, 4, 90], 1 / 87, False, id="a lone value is no mode"),
        pytest.param([0, 1, 3, 4], 2, False, id="below the limit of few"),
        pytest.param([0, 0.5, 0.7, 1, 3, 3.5, 3.7, 4], 2, True, id="eight values"),
        pytest.param([1, 1, 2, 2], math.inf, True, id="two constants"),
        pytest.param([1, 1, 1, 1], 0, False, id="constant"),
    ],
)
def test_gap(values, ratio, flagged):
    got = gap(values)
    assert (got.ratio, got.flagged) == (pytest.approx(ratio, rel=0.05), flagged)


def test_a_step_of_the_last_digit_is_no_second_mode():
    assert not gap([941, 941, 940, 940], resolution=1).flagged


@pytest.mark.parametrize(("n", "most"), [(5, 0.064), (10, 0.04)])
def test_gap_rarely_flags_one_mode(n, most):
    rounds = 2_000
    runs = np.random.default_rng(n).normal(size=(rounds, n))
    flags = sum(gap(one).flagged for one in runs)
    assert flags / rounds <= most + 3 * math.sqrt(most * (1 - most) / rounds)


def test_spread_is_compared_around_the_medians():
    quiet, loud = [1, 2, 3, 4, 5, 6], [1, 9, -20, 40, 3, 70]
    want = levene(quiet, loud, center="median").pvalue
    assert spread_ratio_p(quiet, loud) == pytest.approx(want)


def test_one_constant_arm_is_compared_and_two_are_not():
    assert spread_ratio_p([5.0] * 6, [1, 4, 7, 5, 6, 9]) < 0.05
    assert spread_ratio_p([5.0] * 6, [6.0] * 6) is None
    assert spread_ratio_p([0, 0, 0, 1, 1, 1], [0, 0, 0, 9, 9, 9]) is None


def test_spread_asks_for_five_values():
    with pytest.raises(ValueError, match=r"patched: 4 value\(s\) given"):
        spread_ratio_p(range(5), range(4))


@LAWS
@given(
    st.lists(st.integers(1, 1000), min_size=4, max_size=20),
    st.randoms(use_true_random=False),
)
def test_shape_knows_neither_unit_nor_order(values, random):
    mixed = np.array(random.sample(values, len(values))) * 8.0
    plain, moved = gap(values), gap(mixed)
    assert (plain.flagged, plain.ratio) == (moved.flagged, pytest.approx(moved.ratio))
    outliers = sorted(values[place] * 8.0 for place in modified_z_outliers(values))
    assert sorted(mixed[list(modified_z_outliers(mixed))]) == outliers
