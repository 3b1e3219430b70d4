"""Plans: R's power.t.test, the table in the documentation, statsmodels."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.power import TTestIndPower, TTestPower

from patchstudy.stats import detectable_change, needed_n
from patchstudy.stats.power import LARGEST_N, _power

ORACLES = Path(__file__).parent / "oracles"


def oracle(number):
    (path,) = ORACLES.glob(f"{number}_*.json")
    return json.loads(path.read_text(encoding="utf-8"))


SDS = [0.5, 1, 2, 3, 5, 10]
TABLE = {
    3: [1.5, 3.1, 6.1, 9.2, 15.4, 30.7],
    4: [1.2, 2.4, 4.8, 7.1, 11.9, 23.8],
    5: [1.0, 2.0, 4.0, 6.1, 10.1, 20.2],
    8: [0.75, 1.5, 3.0, 4.5, 7.5, 15.1],
    10: [0.66, 1.3, 2.6, 4.0, 6.6, 13.2],
    20: [0.45, 0.9, 1.8, 2.7, 4.6, 9.1],
}


@pytest.mark.parametrize("n", TABLE)
def test_detectable_changes_are_those_of_the_table(n):
    got = [detectable_change(sd, n) for sd in SDS]
    assert got == pytest.approx(TABLE[n], abs=0.055)  # it rounds rounded values


@pytest.mark.parametrize("case", oracle("16")["cases"])
def test_power_and_n_agree_with_r(case):
    size = case["delta"] / case.get("sd", 1)
    if float(case["n"]).is_integer():
        got = _power(size, case["n"], paired=False, alpha=0.05)
        assert got == pytest.approx(case["power"])
        return
    assert needed_n(1, size, power=case["power"]) == math.ceil(case["n"])


@pytest.mark.parametrize("n", [3, 5, 20])
@pytest.mark.parametrize(
    ("paired", "solver"), [(False, TTestIndPower), (True, TTestPower)]
)
def test_power_agrees_with_statsmodels(n, paired, solver):
    for size in (0.1, 0.5, 1.0, 1.4):
        want = solver().power(size, n, 0.05)
        assert _power(size, n, paired=paired, alpha=0.05) == pytest.approx(want)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("n", [2, 3, 8, 300])
def test_the_detectable_change_needs_just_that_n(n, paired):
    change = detectable_change(0.02, n, paired=paired)
    assert needed_n(0.02, change * 1.0001, paired=paired) == n
    assert needed_n(0.02, -change * 1.0001, paired=paired) == n


def test_gaps_of_the_library_far_out_are_filled():
    sizes = np.geomspace(1e-3, 1e3, 500)
    powers = [_power(size, 20, paired=False, alpha=0.05) for size in sizes]
    assert np.all(np.diff(powers) > -1e-12)


def test_two_blocks_show_only_a_huge_change():
    size = detectable_change(1, 2, paired=True)
    assert _power(size, 2, paired=True, alpha=0.05) == pytest.approx(0.8)
    assert size > 10


def test_a_hopeless_plan_has_no_n():
    assert needed_n(1, 0.01) is None
    assert needed_n(1, detectable_change(1, LARGEST_N) * 1.00001) == LARGEST_N


def test_no_spread_needs_two_and_shows_everything():
    assert needed_n(0, 0.01) == 2
    assert detectable_change(0, 5) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: detectable_change(1, 1), "n: 1 given; a spread needs at least 2"),
        (lambda: detectable_change(-1, 5), "sd: -1 given"),
        (lambda: needed_n(1, 0), "change: 0 given"),
        (lambda: needed_n(1, 1, power=80), "power: 80 given"),
        (lambda: needed_n(1, 1, power=0.04), "power: 0.04 given; give more than"),
    ],
)
def test_an_impossible_plan_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
