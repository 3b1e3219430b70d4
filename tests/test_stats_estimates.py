"""Means and their change: R, statsmodels and golden numbers, then laws."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchstudy.stats import fieller, paired, resolution_floor, welch

ORACLES = Path(__file__).parent / "oracles"


def oracle(number):
    (path,) = ORACLES.glob(f"{number}_*.json")
    return json.loads(path.read_text(encoding="utf-8"))


GOLDEN = oracle("29")
VALUES = st.lists(st.floats(1, 1e4), min_size=2, max_size=12)
LAWS = settings(deadline=None, derandomize=True, max_examples=60)


def golden_effect(case):
    sign = 1 if case["better"] == "higher" else -1
    base, patched = sign * np.log(case["base"]), sign * np.log(case["patched"])
    return paired(patched - base) if case["paired"] else welch(base, patched)


def edge(name):
    return next(case for case in GOLDEN["edge"] if case["name"] == name)


def floored_welch(case):
    arms = case["base"], case["patched"]
    floors = tuple(resolution_floor(case["resolution"], np.mean(arm)) for arm in arms)
    return welch(*map(np.log, arms), floors=floors)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_golden_case_has_its_effect_and_intervals(case):
    effect = golden_effect(case)
    wide, narrow = effect.interval(0.95), effect.interval(0.90)
    assert effect.value == pytest.approx(case["beta"], rel=1e-8)
    assert [wide.low, wide.high] == pytest.approx(case["ci95"], rel=1e-8)
    assert [narrow.low, narrow.high] == pytest.approx(case["ci90"], rel=1e-8)
    assert effect.df == pytest.approx(case["df"])
    assert effect.p_value == pytest.approx(case["p"], rel=1e-5)
    assert not effect.floored


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_one_sided_bounds_are_those_of_the_interval(case):
    effect = golden_effect(case)
    bounds = [effect.lower(0.95), effect.upper(0.95)]
    assert bounds == pytest.approx(case["ci90"], rel=1e-8)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_equivalence_p_agrees_with_the_interval(case):
    narrow = golden_effect(case).interval(0.90)
    inside = -GOLDEN["M"] < narrow.low and narrow.high < GOLDEN["M"]
    assert (golden_effect(case).equivalence_p(GOLDEN["M"]) < 0.05) == inside


def test_boots_not_runs_are_the_units_of_the_nested_case():
    nested = GOLDEN["nested"]
    arms = nested["base_boots"], nested["patched_boots"]
    boots = welch(*([np.log(boot).mean() for boot in arm] for arm in arms))
    runs = welch(*(np.log(arm).ravel() for arm in arms)).interval(0.95)
    wide, want = boots.interval(0.95), nested["boot_level"]
    assert [wide.low, wide.high] == pytest.approx(want["ci95"])
    assert (boots.df, boots.p_value) == pytest.approx((want["df"], want["p"]))
    naive = nested["naive_runs_as_replicates"]["ci95"]
    assert [runs.low, runs.high] == pytest.approx(naive)


LOCATION = oracle("13")
T_TESTS = oracle("03")["t_tests"]


@pytest.mark.parametrize(
    ("data", "base", "patched"),
    [
        pytest.param(LOCATION["sleep"], "g2", "g1", id="sleep"),
        pytest.param(LOCATION["n3_example"], "a", "b", id="three values"),
        pytest.param(LOCATION["near_constant"], "b", "a", id="one arm constant"),
        pytest.param(T_TESTS, "s2", "s1", id="go-moremath"),
    ],
)
def test_welch_agrees_with_r(data, base, patched):
    effect, want = welch(data[base], data[patched]), data["welch"]
    assert effect.value / effect.standard_error == pytest.approx(want["t"])
    assert effect.df == pytest.approx(want["df"])
    assert effect.p_value == pytest.approx(want.get("p", want.get("two")), rel=1e-6)
    if "ci" in want:
        bounds = [effect.interval(0.95).low, effect.interval(0.95).high]
        assert bounds == pytest.approx(want["ci"])


@pytest.mark.parametrize("name", ["chameleon", "leopard"])
def test_welch_agrees_with_tinystat(name):
    animals = oracle("05")
    want = animals["expected"][f"welch_{name}_vs_iguana"]
    effect = welch(animals["inputs"]["iguana"], animals["inputs"][name])
    assert effect.df == pytest.approx(want["df"])
    assert effect.p_value == pytest.approx(want["p_two"])
    assert effect.p_value == pytest.approx(want["tinystat_printed_p"], abs=5e-4)


@pytest.mark.parametrize("name", ["json", "gob"])
def test_log_welch_agrees_with_r(name):
    want, runs = LOCATION[f"benchstat_{name}_log_welch"], oracle("01")["inputs"]
    effect = welch(np.log(runs[f"{name}_old"]), np.log(runs[f"{name}_new"]))
    interval = effect.interval(0.95)
    assert [interval.low, interval.high] == pytest.approx(want["ci_log"])
    assert effect.df == pytest.approx(want["df"])


@pytest.mark.parametrize("threshold", [0, 0.5, 1])
def test_shifted_welch_agrees_with_perfolizer(threshold):
    data = oracle("25")["welch"]
    (want,) = (one for one in data["cases"] if one["threshold"] == threshold)
    effect = welch(data["x"], np.subtract(data["y"], threshold))
    assert effect.value / effect.standard_error == pytest.approx(want["t"], rel=1e-6)
    assert effect.lower(1 - want["p"]) == pytest.approx(0, abs=1e-6)


def test_paired_agrees_with_r():
    sleep, runs = LOCATION["sleep"], LOCATION["paired_log"]
    effect = paired(np.subtract(sleep["g1"], sleep["g2"]))
    interval = effect.interval(0.95)
    assert effect.p_value == pytest.approx(sleep["paired"]["p"])
    assert [interval.low, interval.high] == pytest.approx(sleep["paired"]["ci"])
    ratio = paired(np.log(runs["B"]) - np.log(runs["A"])).interval(0.95)
    assert np.exp([ratio.low, ratio.high]) == pytest.approx(runs["ci_ratio"])


@pytest.mark.parametrize("name", ["var1", "var2"])
def test_equivalence_agrees_with_r(name):
    data = oracle("17")
    first, last = np.array(data[f"{name}_first15"]), np.array(data[f"{name}_last15"])
    for effect, want in (
        (paired(first - last), data[f"paired_{name}"]),
        (welch(last, first), data[f"indep_{name}"]),
    ):
        assert effect.df == pytest.approx(want["df"])
        assert effect.equivalence_p(0.6) == pytest.approx(want["p_value"])


@pytest.mark.parametrize(
    ("name", "margin", "key"),
    [
        ("gob", 0.02, "benchstat_gob_log_R"),
        ("gob", 0.01, "benchstat_gob_log_R_1pct"),
        ("json", 0.02, "benchstat_json_log_R"),
    ],
)
def test_equivalence_of_ratios_agrees_with_r(name, margin, key):
    runs = oracle("01")["inputs"]
    effect = welch(np.log(runs[f"{name}_old"]), np.log(runs[f"{name}_new"]))
    p = effect.equivalence_p(-math.log1p(-margin))  # R was given [1 - m, 1/(1 - m)]
    assert p == pytest.approx(oracle("17")[key]["p"], rel=1e-5)


def test_identical_runs_are_as_uncertain_as_their_last_digit():
    case = edge("zero_var_equal")
    effect, want = floored_welch(case), case["expected"]
    assert effect.standard_error == pytest.approx(want["se_floor"])
    assert (effect.value, effect.df) == (want["beta"], want["df"])
    assert effect.floored
    assert effect.p_value is None
    assert effect.equivalence_p(math.log1p(case["margin_pct"] / 100)) < 0.05


def test_constant_but_different_arms_have_an_interval_and_no_p():
    case = edge("zero_var_different")
    effect, want = floored_welch(case), case["expected"]
    assert effect.value == pytest.approx(want["beta"])
    assert effect.standard_error == pytest.approx(want["se_floor"])
    assert effect.interval(0.95).low > math.log1p(case["margin_pct"] / 100)
    assert effect.p_value is None
    assert effect.method == "Welch t, spread from the recorded resolution"


def test_a_floor_leaves_a_larger_spread_alone():
    arms = [99.0, 101.0, 100.0], [104.0, 103.0, 105.0]
    assert welch(*arms, floors=(0.1, 0.1)) == welch(*arms)


def test_one_floored_arm_does_not_take_the_p_away():
    effect = welch([5.0, 5.0, 5.0], [6.0, 6.5, 7.0], floors=(0.3, 0.3))
    assert not effect.floored
    assert effect.p_value is not None


def test_no_spread_and_no_resolution_is_said():
    effect = paired(np.log([110, 220, 55]) - np.log([100, 200, 50]))
    assert (effect.standard_error, effect.p_value) == (0, None)
    assert effect.method == "paired t, no spread seen and no resolution known"
    assert effect.equivalence_p(0.2) == 0
    assert effect.equivalence_p(0.05) == 1


def test_resolution_floor_is_that_of_a_uniform_error():
    steps = np.linspace(-0.5, 0.5, 10_001)
    assert resolution_floor(1, -100) == pytest.approx(steps.std() / 100, rel=1e-3)


def test_fieller_agrees_with_the_closed_form():
    runs, want = oracle("01")["inputs"], oracle("21")["json_new_over_old"]
    got = fieller(runs["json_old"], runs["json_new"], 0.95)
    assert got.value == pytest.approx(want["ratio"])
    assert [got.low, got.high] == pytest.approx(want["pooled_quadratic_ci95"])


def test_fieller_is_wide_where_the_baseline_is_uncertain():
    animals = oracle("05")["inputs"]
    want = oracle("21")["chameleon_over_iguana"]
    got = fieller(animals["iguana"], animals["chameleon"], 0.95)
    assert got.value == pytest.approx(want["ratio"])
    assert [got.low, got.high] == pytest.approx(want["pooled_quadratic_ci95"])


def test_fieller_says_when_it_has_no_end():
    got = fieller([-5.0, 8.0, 1.0], [3.0, 4.0, 5.0], 0.95)
    assert (got.low, got.high) == (-math.inf, math.inf)
    assert got.method == "Fieller, pooled variance: unbounded, baseline near 0"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: welch([1.0], [1.0, 2.0]), r"baseline: 1 value\(s\) given"),
        (lambda: welch([1, 2], [1, math.nan]), "patched: nan is not a finite number"),
        (lambda: welch([[1, 2]], [1, 2]), r"baseline: shape \(1, 2\) given"),
        (lambda: welch([1, 2], [1, 2], floors=(-1, 0)), "resolution: -1 given"),
        (lambda: paired([1.0]), r"differences: 1 value\(s\) given; give at least 2"),
        (lambda: paired([1.0, math.inf]), "differences: inf is not a finite"),
        (lambda: paired([1.0, 2.0]).interval(95), "confidence: 95 given"),
        (lambda: paired([1.0, 2.0]).equivalence_p(0), "margin: 0 given"),
        (lambda: resolution_floor(1, 0), "mean: 0 given"),
        (lambda: fieller([-1, 1], [1, 2], 0.95), "baseline: the mean is 0"),
    ],
)
def test_what_cannot_be_used_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@LAWS
@given(VALUES, VALUES, st.floats(1e-3, 1e3))
def test_another_unit_leaves_log_effects_alone(one, other, unit):
    plain = welch(np.log(one), np.log(other))
    scaled = welch(np.log(np.multiply(one, unit)), np.log(np.multiply(other, unit)))
    assert scaled.value == pytest.approx(plain.value, abs=1e-9)
    assert scaled.standard_error == pytest.approx(plain.standard_error, abs=1e-9)


@LAWS
@given(VALUES, VALUES)
def test_swapping_arms_mirrors_the_effect(one, other):
    forth, back = welch(one, other), welch(other, one)
    assert forth.value == -back.value
    assert forth.interval(0.9).low == pytest.approx(-back.interval(0.9).high)
    assert forth.p_value == pytest.approx(back.p_value)


@LAWS
@given(VALUES, VALUES, st.randoms(use_true_random=False))
def test_order_of_values_is_irrelevant(one, other, random):
    mixed = random.sample(one, len(one))
    plain, moved = welch(one, other), welch(mixed, other)
    assert moved.value == pytest.approx(plain.value, abs=1e-8)
    assert moved.standard_error == pytest.approx(plain.standard_error, abs=1e-8)


@LAWS
@given(VALUES)
def test_paired_is_the_one_sample_case(values):
    effect = paired(values)
    assert effect.value == pytest.approx(np.mean(values))
    assert effect.df == len(values) - 1
    assert effect.interval(0.5).high <= effect.interval(0.99).high


@pytest.mark.parametrize("n", [3, 5, 10])
def test_error_rates_hold_on_normal_runs(n):
    rng, rounds = np.random.default_rng(20_240 + n), 2_000
    wrong = covered = 0
    for base, patched in rng.normal(0, 0.01, size=(rounds, 2, n)):
        wrong += welch(base, patched).p_value < 0.05
        bounds = paired(patched + 0.02 - base).interval(0.95)
        covered += bounds.low <= 0.02 <= bounds.high
    error = math.sqrt(0.05 * 0.95 / rounds)
    assert wrong / rounds <= 0.05 + 3 * error
    assert abs(covered / rounds - 0.95) <= 3 * error


def test_coverage_holds_for_skewed_runs_with_unequal_spread():
    rng, rounds = np.random.default_rng(11), 2_000
    low, high = (rng.gamma(8, size=(rounds, 6)) / 8 for _ in range(2))
    truth, covered = math.log(1.1), 0
    for base, patched in zip(np.log(low), np.log(1.1 * high), strict=True):
        bounds = welch(base, patched).interval(0.95)
        covered += bounds.low <= truth <= bounds.high
    assert covered / rounds >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / rounds)
