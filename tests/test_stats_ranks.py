"""Ranks and permutations: brute force, R and the traps of the library calls."""

import json
import math
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from patchstudy.stats import (
    hodges_lehmann,
    mean_difference_permutation_p,
    permutation_p,
    sign_flip_p,
    smallest_permutation_p,
    smallest_sign_flip_p,
    superiority,
    walsh,
)
from patchstudy.stats.ranks import DRAWS

ORACLES = Path(__file__).parent / "oracles"


def oracle(number):
    (path,) = ORACLES.glob(f"{number}_*.json")
    return json.loads(path.read_text(encoding="utf-8"))


LAWS = settings(deadline=None, derandomize=True, max_examples=60)
WHOLE = st.lists(st.integers(0, 6), min_size=2, max_size=5)
DATA = oracle("13")


@pytest.mark.parametrize("case", oracle("22")["cases"], ids=lambda case: str(case["x"]))
def test_exact_p_with_ties_agrees_with_brute_force(case):
    got = permutation_p(case["x"], case["y"])
    assert got.exact
    assert got.p_value == pytest.approx(case["exact_two_sided_p"])


@pytest.mark.parametrize(
    "case", oracle("03")["mann_whitney"], ids=lambda case: str(case["y"])
)
def test_exact_p_agrees_with_go_moremath(case):
    want = case.get("two_correct_bruteforce", case.get("two"))
    assert permutation_p(case["x"], case["y"]).p_value == pytest.approx(want)


@pytest.mark.parametrize("name", ["gob", "json"])
def test_exact_p_agrees_with_benchstat(name):
    data = oracle("01")
    got = permutation_p(data["inputs"][f"{name}_old"], data["inputs"][f"{name}_new"])
    assert got.arrangements == math.comb(20, 10)
    assert got.p_value == pytest.approx(data["mwu_exact_p"][name])


def test_no_normal_approximation_creeps_in_with_ties():
    assert permutation_p([5, 5, 5], [6, 6, 6]).p_value == pytest.approx(0.10)


@pytest.mark.parametrize(
    ("n", "least"), list(oracle("22")["min_p"]["mwu_two_sided"].items())
)
def test_smallest_attainable_p_of_two_arms(n, least):
    low, high = np.arange(int(n)), np.arange(int(n)) + 100
    assert permutation_p(low, high).p_value == pytest.approx(least)
    assert mean_difference_permutation_p(low, high).p_value == pytest.approx(least)


@pytest.mark.parametrize(
    ("n", "least"), list(oracle("22")["min_p"]["paired_signflip_two_sided"].items())
)
def test_smallest_attainable_p_of_pairs(n, least):
    assert sign_flip_p(np.arange(int(n)) + 1).p_value == pytest.approx(least)


def test_counts_with_zeros_are_compared_as_they_are():
    got = mean_difference_permutation_p([0, 0, 0], [10, 11, 12])
    assert got.p_value == pytest.approx(0.1)


def test_equal_arms_have_p_one():
    assert permutation_p([2, 2, 2], [2, 2, 2]).p_value == 1
    assert mean_difference_permutation_p([0.1, 0.1], [0.1, 0.1, 0.1]).p_value == 1
    assert sign_flip_p([0.0, 0.0, 0.0]).p_value == 1


def test_large_samples_are_drawn_and_near_the_normal_approximation():
    x, y = np.arange(40), np.arange(40) + 8.3
    got, want = permutation_p(x, y), mannwhitneyu(x, y, method="asymptotic").pvalue
    assert (got.exact, got.arrangements) == (False, DRAWS)
    assert got.p_value == pytest.approx(
        want, abs=1e-3 + 4 * math.sqrt(want * (1 - want) / DRAWS)
    )


def test_drawn_p_depends_on_the_data_alone():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=15), rng.normal(0.5, size=18)
    first = permutation_p(x, y)
    assert first == permutation_p(x[::-1], y)
    assert first == permutation_p(y, x)
    assert first == permutation_p(1e3 * x, 1e3 * y)


def test_a_drawn_p_is_never_zero():
    got = mean_difference_permutation_p(np.arange(30), np.arange(30) + 1e6)
    assert got.p_value == 1 / (DRAWS + 1)


def test_many_pairs_are_drawn():
    got = sign_flip_p(np.arange(1, 25))
    assert not got.exact
    assert got == sign_flip_p(np.arange(24, 0, -1))
    assert got.p_value == 1 / (DRAWS + 1)


def test_sign_flip_agrees_with_r():
    data = DATA["depression"]
    got = sign_flip_p(np.subtract(data["y"], data["x"]))
    assert got.p_value == pytest.approx(data["p_two"])
    runs = DATA["paired_log"]
    ratios = np.log(runs["B"]) - np.log(runs["A"])
    assert sign_flip_p(ratios).p_value == runs["wilcoxon_exact_p"]


def test_equal_ratios_are_ties_in_spite_of_rounding():
    base = np.array([100, 200, 50, 70, 30])
    factors = np.array([1.1, 1.1, 1.1, 1.1, 1 / 1.1])
    logs = np.log(base * factors) - np.log(base)
    assert sign_flip_p(logs).p_value == sign_flip_p([1, 1, 1, 1, -1]).p_value


def test_placenta_shift_agrees_with_r():
    data = DATA["placenta"]
    got = hodges_lehmann(data["y"], data["x"], 0.95)
    assert got.value == pytest.approx(data["hl"])
    assert [got.low, got.high] == pytest.approx(data["ci95"])
    assert permutation_p(data["y"], data["x"]).p_value == pytest.approx(data["p_two"])


def test_depression_pseudomedian_agrees_with_r():
    data = DATA["depression"]
    got = walsh(np.subtract(data["x"], data["y"]), 0.95)
    assert got.value == pytest.approx(data["pseudomedian"])
    assert [got.low, got.high] == pytest.approx(data["ci95"])


def test_golden_shift_of_logarithms():
    golden = oracle("29")
    case, want = golden["cases"][0], golden["hodges_lehmann"]["material_log"]
    got = hodges_lehmann(np.log(case["base"]), np.log(case["patched"]), 0.95)
    assert got.value == pytest.approx(want["estimate"])
    assert [got.low, got.high] == pytest.approx(want["ci_exact"])
    p = permutation_p(case["base"], case["patched"]).p_value
    assert p == pytest.approx(want["p_exact"])


@pytest.mark.parametrize("case", oracle("07")["cases"], ids=lambda case: case["name"])
def test_shift_is_near_that_of_kayenta(case):
    got = hodges_lehmann(case["y"], case["x"], case["conf"])
    # those bounds are roots of a normal approximation: near an order statistic
    assert got.value == pytest.approx(case["estimate"], abs=2e-3)
    assert [got.low, got.high] == pytest.approx(case["ci"], abs=2e-3)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_shift_of_few_values_is_unbounded(n):
    got = hodges_lehmann(np.arange(n), np.arange(n) + 9, 0.95)
    assert (got.value, got.low, got.high) == (9, -math.inf, math.inf)
    assert got.method.endswith("unbounded, too few values")


def test_shift_of_four_values_is_bounded_by_the_outermost_differences():
    got = hodges_lehmann([1, 2, 3, 4], [10, 20, 30, 40], 0.95)
    assert (got.low, got.value, got.high) == (6, 22.5, 39)


@pytest.mark.parametrize(("n", "bounded"), [(5, False), (6, True)])
def test_pseudomedian_is_bounded_from_six_pairs(n, bounded):
    assert math.isfinite(walsh(np.arange(n), 0.95).low) == bounded


def test_normal_ranks_continue_the_exact_ones():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=100), rng.normal(1, size=101)
    exact, normal = hodges_lehmann(x[:99], y, 0.95), hodges_lehmann(x, y, 0.95)
    assert exact.method == "Hodges-Lehmann, exact U interval"
    assert normal.method == "Hodges-Lehmann, normal U interval"
    assert [normal.low, normal.high] == pytest.approx([exact.low, exact.high], abs=0.03)


@pytest.mark.parametrize("n", [4, 6])
def test_shift_interval_keeps_its_confidence(n):
    rng, rounds = np.random.default_rng(n), 1_500
    covered = 0
    for x, y in rng.exponential(size=(rounds, 2, n)):
        got = hodges_lehmann(x, y, 0.95)
        covered += got.low <= 0 <= got.high
    assert covered / rounds >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / rounds)


@pytest.mark.parametrize("case", oracle("08")["cles"], ids=lambda c: str(c["expected"]))
def test_superiority_agrees_with_kayenta(case):
    got = superiority(case["control"], case["experiment"])
    effect = (got.cliffs_delta + 1) / 2
    assert effect == pytest.approx(case["expected"], abs=case.get("tol", 1e-9))
    assert got.pairs == len(case["control"]) * len(case["experiment"])


def test_ties_are_no_wins():
    got = superiority([1, 2], [2, 3])
    assert (got.wins, got.pairs, got.cliffs_delta) == (3, 4, 0.75)


@LAWS
@given(WHOLE, WHOLE)
def test_permutation_p_is_the_count_over_all_splits(one, other):
    pooled = one + other
    middle = sum(pooled) * len(one) / len(pooled)
    away = [abs(sum(part) - middle) for part in combinations(pooled, len(one))]
    seen = abs(sum(one) - middle)
    want = np.mean([value >= seen - 1e-9 for value in away])
    got = mean_difference_permutation_p(one, other)
    assert got.p_value == pytest.approx(want)


@LAWS
@given(st.lists(st.sampled_from([-3, -2, -1, 1, 2, 3]), min_size=1, max_size=8))
def test_sign_flip_p_is_the_count_over_all_signs(values):
    sizes = np.abs(values)
    ranks = np.array([np.mean(np.flatnonzero(np.sort(sizes) == s)) + 1 for s in sizes])
    flips = np.array(list(product([-1, 1], repeat=len(values)))) @ ranks
    want = np.mean(np.abs(flips) >= abs(np.sign(values) @ ranks) - 1e-9)
    assert sign_flip_p(values).p_value == pytest.approx(want)


@LAWS
@given(WHOLE, WHOLE)
def test_swapping_arms_mirrors(one, other):
    forth, back = (
        hodges_lehmann(one, other, 0.9),
        hodges_lehmann(other, one, 0.9),
    )
    assert (forth.value, forth.low, forth.high) == (-back.value, -back.high, -back.low)
    assert permutation_p(one, other) == permutation_p(other, one)
    deltas = superiority(one, other).cliffs_delta, superiority(other, one).cliffs_delta
    assert deltas[0] == -deltas[1]


@LAWS
@given(st.lists(st.floats(0.5, 2), min_size=4, max_size=6, unique=True))
def test_another_unit_leaves_log_shifts_alone(values):
    one, other = np.array(values), np.array(values[::-1]) * 1.2
    plain = hodges_lehmann(np.log(one), np.log(other), 0.95)
    scaled = hodges_lehmann(np.log(one * 8e6), np.log(other * 8e6), 0.95)
    assert scaled.value == pytest.approx(plain.value, abs=1e-9)
    assert scaled.low == pytest.approx(plain.low, abs=1e-9)
    assert permutation_p(one, other) == permutation_p(one * 8, other * 8)


def test_a_failed_run_is_not_ranked():
    with pytest.raises(ValueError, match="patched: nan is not a finite number"):
        permutation_p([1.0, 2.0], [math.nan, 2.0])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_the_smallest_p_is_that_of_arms_that_do_not_overlap(n):
    low, high = range(n), range(10, 13)
    apart = permutation_p(list(low), list(high)).p_value
    assert smallest_permutation_p(n, 3) == pytest.approx(apart)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_the_smallest_p_of_pairs_is_that_of_equal_signs(n):
    same = sign_flip_p(list(range(1, n + 1))).p_value
    assert smallest_sign_flip_p(n) == pytest.approx(same)
