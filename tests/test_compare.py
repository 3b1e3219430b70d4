"""Units of two variants become a change with its interval, and nothing else does."""

import json
import math
from pathlib import Path

import pytest

from patchstudy import checks
from patchstudy.compare import compare, sensitive
from patchstudy.errors import GrainError
from patchstudy.findings import assess
from patchstudy.metrics import Scale
from patchstudy.stats import fieller, mean_difference_permutation_p
from patchstudy.study import open_study
from patchstudy.tables import per_interval, per_run, per_unit, questions

ORACLE = json.loads(
    (Path(__file__).parent / "oracles" / "29_golden_cases.json").read_text()
)
DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "{metric}"
role = "primary"
margin = "2 %"
"""
RATE = DESIGN.format(metric="throughput")
BASE = [200.1, 203.4, 198.7, 201.9, 200.6]
PATCHED = [297.5, 301.2, 295.8, 303.9, 299.4]


@pytest.fixture
def found(write_study):
    """Return a function that assesses rows and returns the findings by their key."""

    def assess_rows(rows, design=RATE, name="driver/patch"):
        assessment = assess(open_study(write_study(design, rows, name=name)))
        return {
            (one.comparison.question.key, one.comparison.variant): one
            for one in assessment.findings
        }

    return assess_rows


@pytest.fixture
def one(found):
    """Return a function that assesses rows with one question."""

    def assess_rows(rows, design=RATE, name="driver/patch"):
        (finding,) = found(rows, design, name).values()
        return finding

    return assess_rows


# ---- grain --------------------------------------------------------------------------


@pytest.mark.parametrize("table", [per_run, per_interval])
def test_rows_that_are_no_units_are_refused(write_study, turns, table):
    study = open_study(write_study(RATE, turns(BASE, PATCHED)))
    asked = questions(per_run(study), study.design)
    with pytest.raises(
        GrainError, match="compare needs the table of experimental unit"
    ):
        compare(table(study), asked, study.design)


def test_a_unit_that_stands_twice_is_refused(write_study, turns):
    study = open_study(write_study(RATE, turns(BASE, PATCHED)))
    runs = per_run(study)
    asked = questions(runs, study.design)
    units = per_unit(runs, asked)
    units.loc[1, ["variant", "unit"]] = units.loc[0, ["variant", "unit"]]
    with pytest.raises(GrainError, match="stands twice in the table"):
        compare(units, asked, study.design)


def test_dropping_the_mark_of_the_grain_is_refused(write_study, turns):
    study = open_study(write_study(RATE, turns(BASE, PATCHED)))
    runs = per_run(study)
    units = per_unit(runs, questions(runs, study.design))
    units.attrs.clear()
    with pytest.raises(GrainError):
        compare(units, questions(runs, study.design), study.design)


# ---- golden cases -------------------------------------------------------------------


@pytest.mark.parametrize("case", ORACLE["cases"], ids=lambda case: case["name"])
def test_golden_case(one, turns, case):
    cost = case["better"] == "lower"
    metric, unit = ("cpu_per_byte", "ns/byte") if cost else ("throughput", "Mbit/s")
    design = DESIGN.format(metric=metric)
    if case["paired"]:
        design = 'block = "block"\n' + design
    rows = turns(
        case["base"], case["patched"], metric=metric, unit=unit, blocks=case["paired"]
    )
    finding = one(rows, design)
    effect, sign = finding.comparison.effect, -1 if cost else 1
    assert sign * effect.value == pytest.approx(case["beta"], rel=1e-9)
    for confidence, name in ((0.95, "ci95"), (0.90, "ci90")):
        interval = effect.interval(confidence)
        bounds = sorted((sign * interval.low, sign * interval.high))
        assert bounds == pytest.approx(case[name], rel=1e-9, abs=1e-12)
    assert effect.df == pytest.approx(case["df"], rel=1e-9)
    assert finding.comparison.p_value == pytest.approx(case["p"], rel=1e-6)
    assert finding.verdict == case["verdict"]
    assert case["size"] is None or finding.qualifiers[0] == case["size"]
    assert finding.margin == pytest.approx(ORACLE["M"])
    assert ("fragile" in finding.qualifiers) == case["name"].startswith("n2_")


def test_nested_runs_are_compared_by_boot(one):
    nested = ORACLE["nested"]
    shared = {"metric": "throughput", "unit": "Mbit/s", "device": "d", "workload": "t"}
    rows = [
        {**shared, "variant": variant, "boot": f"{name}{boot}", "run": run, "value": n}
        for variant, name in (("baseline", "base"), ("patched", "patched"))
        for boot, values in enumerate(nested[f"{name}_boots"])
        for run, n in enumerate(values)
    ]
    comparison = one(rows).comparison
    expected = nested["boot_level"]
    interval = comparison.effect.interval(0.95)
    assert comparison.unit_of_analysis == "boot"
    assert (comparison.n_baseline, comparison.baseline.n) == (9, 3)
    assert comparison.effect.value == pytest.approx(expected["beta"], rel=1e-4)
    assert (interval.low, interval.high) == pytest.approx(expected["ci95"], rel=1e-3)
    naive = nested["naive_runs_as_replicates"]["ci95"]
    assert interval.high - interval.low > 2.5 * (naive[1] - naive[0])


def edge(name):
    return next(case for case in ORACLE["edge"] if case["name"] == name)


def test_one_run_each_has_a_ratio_and_no_verdict(one, turns):
    case = edge("n1_sis900")
    finding = one(turns(case["base"], case["patched"]))
    assert finding.verdict == "not assessable"
    assert finding.comparison.change is None
    assert "; 0.05 to 12.54 Mbit/s, the ratio of the means is 251." in (
        finding.sentence
    )


def test_no_spread_and_no_difference_is_equivalent_by_the_resolution(one, turns):
    case = edge("zero_var_equal")
    finding = one(turns(case["base"], case["patched"], resolution="0.01"))
    effect = finding.comparison.effect
    assert effect.standard_error == pytest.approx(
        case["expected"]["se_floor"], rel=1e-6
    )
    assert effect.df == case["expected"]["df"]
    assert finding.verdict == "equivalent"
    assert finding.comparison.p_value is None
    assert "identical in every run" in finding.sentence


def test_no_spread_and_a_difference_is_better_by_the_resolution(one, turns):
    case = edge("zero_var_different")
    finding = one(turns(case["base"], case["patched"], resolution="1"))
    effect = finding.comparison.effect
    assert effect.standard_error == pytest.approx(
        case["expected"]["se_floor"], rel=1e-6
    )
    assert (finding.verdict, finding.qualifiers[0]) == ("better", "material")
    assert finding.comparison.companion.p_value == pytest.approx(0.1)


def test_zeros_have_a_difference_and_no_ratio(one, turns):
    case = edge("zeros_in_rate")
    comparison = one(turns(case["base"], case["patched"])).comparison
    assert comparison.scale is Scale.DIFFERENCE
    assert comparison.change.value == pytest.approx(11e6)
    assert comparison.companion.p_value == pytest.approx(0.1)
    assert [caveat.code for caveat in comparison.caveats][:1] == ["no-ratio"]


def test_negative_values_have_a_difference(write_study, turns):
    study = open_study(write_study(RATE, turns(BASE, PATCHED)))
    runs = per_run(study)
    asked = questions(runs, study.design)
    units = per_unit(runs, asked)
    units["value"] -= 2.5e8  # no file may say so, a table of changes may
    (comparison,) = compare(units, asked, study.design)
    assert comparison.scale is Scale.DIFFERENCE
    assert comparison.baseline.geometric_mean is None


def test_hodges_lehmann_stands_beside_the_estimate(one, turns):
    companion = one(turns(BASE, PATCHED)).comparison.companion
    case = ORACLE["hodges_lehmann"]["material_log"]
    assert math.log1p(companion.estimate.value) == pytest.approx(case["estimate"])
    assert companion.p_value == pytest.approx(case["p_exact"])
    assert (companion.wins, companion.pairs) == (25, 25)


# ---- laws ---------------------------------------------------------------------------


def test_another_unit_of_the_table_changes_nothing(one, turns):
    mbit = one(turns(BASE, PATCHED), name="a/mbit")
    kbit = [[1000 * value for value in values] for values in (BASE, PATCHED)]
    other = one(turns(*kbit, unit="kbit/s"), name="a/kbit")
    assert other.verdict == mbit.verdict
    assert other.comparison.effect.value == pytest.approx(mbit.comparison.effect.value)


def test_a_constant_factor_leaves_the_ratio(one, turns):
    plain = one(turns(BASE, PATCHED), name="a/plain").comparison.effect
    scaled = [[3.7 * value for value in values] for values in (BASE, PATCHED)]
    factor = one(turns(*scaled), name="a/scaled").comparison.effect
    assert factor.value == pytest.approx(plain.value)
    assert factor.standard_error == pytest.approx(plain.standard_error)


@pytest.mark.parametrize("blocks", [False, True])
def test_swapping_the_variants_mirrors_the_change(one, turns, blocks):
    design = ('block = "block"\n' if blocks else "") + RATE
    there = one(turns(BASE, PATCHED, blocks=blocks), design, "a/there")
    back = one(turns(PATCHED, BASE, blocks=blocks), design, "a/back")
    forward, backward = there.comparison.effect, back.comparison.effect
    assert backward.value == pytest.approx(-forward.value)
    assert backward.standard_error == pytest.approx(forward.standard_error)
    assert (there.verdict, back.verdict) == ("better", "worse")
    assert there.qualifiers == back.qualifiers


def test_the_order_of_the_rows_changes_nothing(one, turns):
    rows = turns(BASE, PATCHED)
    there = one(rows, name="a/there")
    back = one(reversed(rows), name="a/back")
    assert there.sentence == back.sentence
    assert there.comparison.effect == back.comparison.effect


def test_another_device_never_changes_a_verdict(found, turns):
    rows = turns(BASE, PATCHED)
    alone = found(rows, name="a/alone")
    both = found([*rows, *turns([1, 5, 2], [3, 1, 9], device="b")], name="a/both")
    key = ("router/tcp/throughput", "patched")
    assert both[key].verdict == alone[key].verdict
    assert both[key].comparison.effect == alone[key].comparison.effect
    assert both[key].qualifiers == alone[key].qualifiers
    assert both[key].comparison.p_adjusted > alone[key].comparison.p_adjusted


# ---- blocks -------------------------------------------------------------------------


def test_a_block_without_both_variants_is_told_and_not_counted(one, turns):
    rows = turns([100.0, 108, 95, 112], [103.0, 111.5, 97.5], blocks=True)
    finding = one(rows, 'block = "block"\n' + RATE)
    caveats = {caveat.code: caveat for caveat in finding.comparison.caveats}
    assert finding.comparison.blocks == 3
    assert "both variants: 1 unit" in caveats["unmatched-block"].text
    assert "(block 04)" in caveats["unmatched-block"].text


def test_several_runs_of_a_block_are_averaged_before_they_are_paired(one, turns):
    rows = [
        row | {"block": (int(row["run"]) + 1) // 2}
        for row in turns([100.0, 102, 90, 92, 95, 97], [110.0, 112, 99, 101, 104, 107])
    ]
    comparison = one(rows, 'block = "block"\n' + RATE).comparison
    assert (comparison.blocks, comparison.n_baseline) == (3, 6)
    assert comparison.effect.df == 2
    assert comparison.unit_of_analysis == "block (mean of its runs per variant)"


def test_one_shared_block_is_no_pairing(one, turns):
    rows = turns(BASE, PATCHED, blocks=True)
    for row in rows[2:]:
        row["block"] = row["block"] + row["variant"]
    comparison = one(rows, 'block = "block"\n' + RATE).comparison
    assert comparison.blocks == 0
    assert comparison.method.startswith("Welch")


# ---- families -----------------------------------------------------------------------


def test_p_is_adjusted_by_holm_within_the_primary_family(found, turns):
    rows = [
        *turns([100, 101, 99, 100], [102, 101, 103, 102]),
        *turns([100, 101, 99, 100], [101, 100, 102, 102], device="b"),
    ]
    one, two = sorted(
        (finding.comparison for finding in found(rows).values()),
        key=lambda comparison: comparison.p_value,
    )
    assert one.p_adjusted == pytest.approx(2 * one.p_value)
    assert two.p_adjusted == pytest.approx(max(two.p_value, one.p_adjusted))


def test_every_patched_variant_is_compared_with_the_baseline(found, turns):
    rows = turns(BASE, PATCHED)
    third = [row | {"variant": "placebo"} for row in turns(BASE, BASE)[1::2]]
    design = 'patched = ["patched", "placebo"]\n' + RATE
    result = found([*rows, *third], design)
    assert {key[1]: one.verdict.value for key, one in result.items()} == {
        "patched": "better",
        "placebo": "equivalent",
    }


def test_further_variants_are_a_family_of_their_own(found, turns):
    rows = turns([100, 101, 99, 100], [102, 101, 103, 102])
    third = [
        row | {"variant": "placebo"} for row in turns(BASE, [101, 99, 100, 100])[1::2]
    ]
    design = 'patched = ["patched", "placebo"]\n' + RATE
    (one, two) = found([*rows, *third], design).values()
    assert one.comparison.p_adjusted == one.comparison.p_value
    assert two.comparison.p_adjusted == two.comparison.p_value


# ---- second opinions ----------------------------------------------------------------


def test_the_ratio_of_means_has_the_interval_of_fieller(one, turns):
    ratio = one(turns(BASE, PATCHED)).comparison.ratio_of_means
    expected = fieller(BASE, PATCHED, 0.95)
    found = (1 + ratio.value, 1 + ratio.low, 1 + ratio.high)
    assert found == pytest.approx((expected.value, expected.low, expected.high))


def loss_of(write_study, turns, base, new):
    """Assess losses per 10^6 packets, one number a run."""
    rows = [
        row | {"exposure": "1000000"}
        for row in turns(
            [k / 1e6 for k in base], [k / 1e6 for k in new], metric="loss", unit="1"
        )
    ]
    design = DESIGN.format(metric="loss").replace("2 %", "0.1 pp")
    (found,) = assess(open_study(write_study(design, rows))).findings
    return found.comparison.counted


def test_steady_counts_have_a_poisson_ratio(write_study, turns):
    found = loss_of(write_study, turns, [9, 11, 10, 8, 12], [19, 22, 20, 18, 21])
    assert found.change.value == pytest.approx(1.0)
    assert found.change.low > 0.3
    assert found.p_value < 1e-4


@pytest.mark.parametrize(
    ("new", "why"), [([0, 0, 90, 0, 0], "bursts"), ([0] * 5, "no event in a variant")]
)
def test_bursts_and_nothing_at_all_have_none(write_study, turns, new, why):
    found = loss_of(write_study, turns, [9, 11, 10, 8, 12], new)
    assert (found.change, found.p_value, found.why_not) == (None, None, why)


def test_pairs_and_differences_have_no_ratio_of_means(one, turns):
    paired = one(turns(BASE, PATCHED, blocks=True), 'block = "block"\n' + RATE, "a/b")
    zero = one(turns([0, *BASE], [0, *PATCHED]), name="a/zero")
    assert paired.comparison.ratio_of_means is None
    assert zero.comparison.ratio_of_means is None


@pytest.mark.parametrize(
    ("sizes", "paired", "least"),
    [((3, 3), False, 0.1), ((4, 4), False, 2 / 70), ((5, 5), True, 0.0625)],
)
def test_the_smallest_p_of_so_few_units_is_told(one, turns, sizes, paired, least):
    rows = turns(BASE[: sizes[0]], PATCHED[: sizes[1]], blocks=paired)
    design = ('block = "block"\n' if paired else "") + RATE
    companion = one(rows, design).comparison.companion
    assert companion.least_p == pytest.approx(least)
    assert companion.p_value == pytest.approx(least)


def test_losses_with_zeros_are_permuted_as_they_are(one, turns):
    base, new = [0.0, 0, 0, 0.1, 0], [0.0, 0.2, 0.3, 0, 4.0]
    rows = turns(base, new, metric="loss", unit="%")
    companion = one(
        rows, DESIGN.format(metric="loss").replace("2 %", "1 pp")
    ).comparison
    assert companion.companion.test == "permutation of the values"
    assert companion.companion.p_value == pytest.approx(
        mean_difference_permutation_p(base, new).p_value
    )


def test_outliers_are_left_out_beside_the_result_and_never_from_it(one, turns):
    base = [100.0, 100.1, 100.2, 100.3, 100.4, 100.5]
    comparison = one(turns(base, [101.0, 101.1, 101.2, 101.3, 101.4, 190.0])).comparison
    beside = comparison.without_outliers
    assert len(beside.left_out) == 1
    assert comparison.patched.n == 6
    assert beside.change.high < 0.02 < comparison.change.value


def test_an_outlier_takes_its_block_with_it(one, turns):
    base = [100.0, 100.1, 100.2, 100.3, 100.4, 100.5]
    rows = turns(base, [101.0, 101.1, 101.2, 101.3, 101.4, 190.0], blocks=True)
    comparison = one(rows, 'block = "block"\n' + RATE).comparison
    assert comparison.blocks == 6
    assert comparison.without_outliers.change.high < 0.02


def test_without_outliers_nothing_stands_beside(one, turns):
    assert one(turns(BASE, PATCHED)).comparison.without_outliers is None


@pytest.mark.parametrize(("base", "known"), [(BASE, True), (BASE[:4], False)])
def test_a_patch_that_adds_jitter_is_told_from_five_units(one, turns, base, known):
    loud = [150.0, 250, 180, 220, 200][: len(base)]
    spread = one(turns(base, loud)).comparison.spread
    assert (spread is not None) == known
    if spread is not None:
        assert spread.ratio > 10
        assert spread.p_value < 0.05


@pytest.mark.parametrize(("many", "said"), [(9, False), (10, True)])
def test_very_unequal_numbers_of_units_are_told(one, turns, many, said):
    comparison = one(turns(BASE[:3], [100.0 + n for n in range(many)])).comparison
    codes = {caveat.code for caveat in comparison.caveats}
    assert ("unequal-n" in codes) == said


# ---- sensitivity --------------------------------------------------------------------


def test_one_wild_run_makes_the_result_depend_on_few_runs(one, turns):
    base = [100.0, 100.1, 100.2, 100.3, 100.4, 100.5]
    finding = one(turns(base, [101.0, 101.1, 101.2, 101.3, 101.4, 190.0]))
    assert finding.comparison.p_value > 0.2
    assert finding.comparison.companion.p_value < 0.05
    assert sensitive(finding.comparison)
    assert "fragile" in finding.qualifiers


def test_a_clean_result_does_not_depend_on_few_runs(one, turns):
    assert not sensitive(one(turns(BASE, PATCHED)).comparison)


def test_doubts_reach_the_comparison_that_they_concern(write_study, turns):
    study = open_study(write_study(RATE, turns([1.0, 2.0], [3.0, 4.0])))
    material = checks.material(study)
    doubts = checks.check(material)
    (comparison,) = compare(material.units, material.asked, study.design, doubts)
    assert "few-units" in {caveat.code for caveat in comparison.caveats}
