"""Shares and counts: R's intervals, then what none and bursts look like."""

import json
from pathlib import Path

import numpy as np
import pytest

from patchstudy.stats import (
    dispersion,
    fisher_p,
    none_in,
    poisson_fits,
    poisson_ratio,
    poisson_ratio_p,
    wilson,
)

ORACLES = Path(__file__).parent / "oracles"


def oracle(number):
    (path,) = ORACLES.glob(f"{number}_*.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "case", oracle("15")["wilson"], ids=lambda case: str(case["k"])
)
def test_wilson_agrees_with_r(case):
    got = wilson(case["k"], case["n"], 0.95)
    assert [got.low, got.high] == pytest.approx(case["ci95"], rel=1e-5)
    assert got.value == case["k"] / case["n"]


@pytest.mark.parametrize("case", oracle("15")["poisson_two_rates"], ids=["11", "0"])
def test_the_ratio_of_poisson_rates_agrees_with_r(case):
    new, base = zip(case["count"], case["exposure"], strict=True)
    got = poisson_ratio(base, new, 0.95)
    assert got.value == pytest.approx(case["rate_ratio"])
    assert [got.low, got.high] == pytest.approx(case["ci95"], rel=1e-6)
    assert poisson_ratio_p(base, new) == pytest.approx(case["p"])


def test_swapped_poisson_rates_have_the_inverse_ratio():
    one, other = (3, 1e6), (9, 2e6)
    there, back = poisson_ratio(one, other, 0.95), poisson_ratio(other, one, 0.95)
    assert (1 / back.high, 1 / back.low) == pytest.approx((there.low, there.high))
    assert poisson_ratio((0, 1.0), (4, 1.0), 0.95).high == np.inf
    with pytest.raises(ValueError, match="no event was counted"):
        poisson_ratio((0, 1.0), (0, 1.0), 0.95)


def test_fisher_agrees_with_r():
    case = oracle("15")["fisher"]
    assert fisher_p(case["table"]) == pytest.approx(case["p"])


def test_none_in_some_runs_leaves_room():
    assert none_in(1) == pytest.approx(0.95)
    assert (1 - none_in(10)) ** 10 == pytest.approx(0.05)
    with pytest.raises(ValueError, match="n_runs: 0 given"):
        none_in(0)


def test_dispersion_by_hand():
    # 12 events over exposures 1, 2, 3: expected 2, 4, 6
    assert dispersion([3, 4, 5], [1, 2, 3]) == pytest.approx((1 / 2 + 1 / 6) / 2)


def test_poisson_counts_fit_and_bursts_do_not():
    counts = np.random.default_rng(2).poisson(20, size=30)
    assert dispersion(counts, np.ones(30)) == pytest.approx(1, abs=0.5)
    assert poisson_fits(counts, np.ones(30))
    assert not poisson_fits([0, 0, 0, 900, 0], np.ones(5))


def test_no_events_support_no_poisson():
    assert dispersion([0, 0, 0], [1, 1, 1]) is None
    assert not poisson_fits([0, 0, 0], [1, 1, 1])


@pytest.mark.parametrize(
    ("counts", "exposures", "message"),
    [
        ([1, 2], [1, 2, 3], "2 counts but 3 exposures"),
        ([1, -2], [1, 2], "a count is negative"),
        ([1, 2], [1, 0], "an exposure is not above 0"),
        ([1], [1], r"counts: 1 value\(s\) given"),
    ],
)
def test_wrong_counts_are_named(counts, exposures, message):
    with pytest.raises(ValueError, match=message):
        dispersion(counts, exposures)
