"""Variance by level: the worked examples of Kalibera and Jones."""

import json
from pathlib import Path

import numpy as np
import pytest

from patchstudy.stats import optimal_repetitions, variance_components

ORACLES = Path(__file__).parent / "oracles"


def oracle(number):
    (path,) = ORACLES.glob(f"{number}_*.json")
    return json.loads(path.read_text(encoding="utf-8"))


NESTED = oracle("06")


def cube(case):
    return np.reshape(list(case["data"].values()), case["reps"])


def test_three_levels_with_a_negative_component():
    case = NESTED["three_level"]
    got = variance_components(cube(case))
    t2 = list(case["T2"].values())
    assert got.observed == pytest.approx(list(case["S2"].values()))
    assert got.components == pytest.approx([t2[0], 0, t2[2]])
    assert got.clamped == (False, True, False)


def test_two_levels():
    case = NESTED["two_level"]
    got = variance_components(cube(case))
    assert got.observed == pytest.approx(list(case["S2"].values()))
    assert got.components == pytest.approx(list(case["T2"].values()))


def test_repetitions_of_the_larger_example():
    case = NESTED["bigger"]
    got = variance_components(cube(case))
    assert got.components == pytest.approx(case["T2"], abs=1e-3)
    want = case["optimal_reps_costs_100_20_3"]["rounded_up"]
    assert list(optimal_repetitions((3, 20, 100), got.components)) == want


def test_repetitions_of_bloat():
    case = oracle("28")["bloat6"]
    costs = case["c1_iteration_s"], case["c2_execution_s"]
    components = case["t1_pct"] ** 2, case["t2_pct"] ** 2
    assert optimal_repetitions(costs, components) == (case["r1"],)


def test_a_level_that_adds_nothing_is_not_planned():
    assert optimal_repetitions((1, 10, 100), (4.0, 0.0, 1.0)) == (None, 1)


@pytest.mark.parametrize("values", [[[1.0], [2.0]], [[1.0, np.nan], [1.0, 2.0]], 3.0])
def test_what_cannot_be_split_is_named(values):
    with pytest.raises(ValueError, match="cannot be split; give an equal number"):
        variance_components(values)


def test_costs_and_components_go_together():
    with pytest.raises(ValueError, match="1 costs but 2 components"):
        optimal_repetitions((1,), (1, 2))
    with pytest.raises(ValueError, match="costs: 0 given; each must be above 0"):
        optimal_repetitions((0, 1), (1, 2))
