"""Drift and memory: certified correlations, then short series."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress

from patchstudy import stats
from patchstudy.stats import effective_size, lag1, trend

ORACLES = Path(__file__).parent / "oracles"


def oracle(number):
    (path,) = ORACLES.glob(f"{number}_*.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", oracle("18")["sets"], ids=lambda case: case["name"])
def test_lag1_agrees_with_nist(case):
    assert lag1(case["x"]) == pytest.approx(case["lag1"], rel=1e-6)


def test_a_rising_series_has_the_smallest_exact_p():
    got = trend([1, 2, 3, 4, 5, 6])
    assert got.tau == pytest.approx(1)
    assert got.p_value == pytest.approx(2 / 720)
    assert trend([6, 5, 4, 3, 2, 1]).tau == pytest.approx(-1)


def test_a_constant_series_has_no_trend_and_no_memory():
    assert (trend([3.0] * 6).tau, trend([3.0] * 6).p_value) == (0, 1)
    assert lag1([3.0] * 6) == 0
    assert effective_size([3.0] * 6) == 6


def test_trend_asks_for_six_values():
    with pytest.raises(ValueError, match=r"5 value\(s\) given; give at least 6"):
        trend(range(5))


def test_intervals_with_memory_count_for_less():
    rng = np.random.default_rng(1)
    steps, series = rng.normal(size=4000), np.zeros(4000)
    for place in range(1, 4000):
        series[place] = 0.6 * series[place - 1] + steps[place]
    assert effective_size(series) == pytest.approx(4000 * 0.4 / 1.6, rel=0.1)
    assert effective_size(steps) == pytest.approx(4000, rel=0.1)


def test_alternating_values_are_not_worth_more_than_they_are():
    assert effective_size([1, -1] * 10) == 20


def test_a_slope_is_that_of_least_squares():
    rng = np.random.default_rng(2)
    places, values = np.arange(7.0) ** 1.5, rng.normal(size=7)
    oracle = linregress(places, values)
    found = stats.slope(values, places)
    assert (found.value, found.standard_error, found.p_value, found.df) == (
        pytest.approx((oracle.slope, oracle.stderr, oracle.pvalue, 5))
    )


def test_a_slope_without_any_scatter_has_a_p_of_nothing():
    assert stats.slope([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).p_value < 1e-12
    assert stats.slope([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).p_value == 1


@pytest.mark.parametrize("places", [[1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
def test_a_slope_needs_places(places):
    with pytest.raises(ValueError, match="give one for each value, not all the same"):
        stats.slope([1.0, 2.0, 3.0], places)
