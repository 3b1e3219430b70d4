"""Changes become verdicts, and verdicts a decision, by docs/statistics.md."""

import csv
import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchstudy import stats
from patchstudy.decisions import Decision
from patchstudy.findings import assess
from patchstudy.plan.needs import Wish, of_comparison
from patchstudy.plan.order import Order
from patchstudy.sentences import power_in_words
from patchstudy.study import open_study

TOP = 'question = "Is it faster?"\nunit = "run"\n'
PRIMARY = '[[metrics]]\nname = "throughput"\nrole = "primary"\nmargin = "2 %"\n'
GUARD = '[[metrics]]\nname = "rtt_p50"\nrole = "guard"\nmargin = "5 %"\n'
DESIGN = TOP + PRIMARY
GUARDED = DESIGN + GUARD

BASE = [100.2, 99.8, 100.5, 99.9, 100.1, 100.0]
SAME = [100.1, 100.3, 99.7, 100.2, 99.9, 100.4]
NOISY = [100.0, 130, 80, 112, 91, 70]
FASTER = [110.2, 109.8, 110.5, 109.9, 110.1, 110.0]
SLOWER = [90.2, 89.8, 90.5, 89.9, 90.1, 90.0]
SLIGHTLY = [101.2, 100.8, 101.5, 100.9, 101.1, 101.0]
AROUND_MARGIN = [102.0, 101, 104, 101.5, 103.5, 102.5]


@pytest.fixture
def assessed_rows(write_study):
    """Return a function that assesses rows and raw files."""

    def of(rows, design=DESIGN, files=None, name="driver/patch"):
        return assess(open_study(write_study(design, rows, files, name)))

    return of


@pytest.fixture
def judged(assessed_rows, turns):
    """Return a function that judges the values of two variants."""

    def of(base, patched, design=DESIGN):
        return finding(assessed_rows(turns(base, patched), design))

    return of


def finding(assessment, metric="throughput", **where):
    """Return the one finding of a metric."""
    (one,) = [
        one
        for one in assessment.findings
        if one.planned.metric.name == metric
        and all(getattr(one.comparison.question, k) == v for k, v in where.items())
    ]
    return one


def in_sequence(rows):
    """Return the rows with all of the baseline first."""
    ordered = sorted(rows, key=lambda row: row["variant"])
    return [row | {"position": place} for place, row in enumerate(ordered, start=1)]


# ---- CPU shares ---------------------------------------------------------------------

CPU_GUARD = '[[metrics]]\nname = "cpu_busy"\nrole = "guard"\nmargin = "2 pp"\n'
IDLE = [50.0, 50.2, 49.9, 50.1, 50.0, 49.8]
BUSY = [56.1, 56.3, 55.9, 56.0, 56.2, 55.8]


@pytest.mark.parametrize(
    ("rate", "busy", "guarded"),
    [
        (SAME, IDLE, "safe"),
        (SAME, BUSY, "broken"),
        (SLIGHTLY, BUSY, "broken"),
        (FASTER, IDLE, "safe"),
        (FASTER, BUSY, "unresolved"),
        (SLOWER, IDLE, "unresolved"),
        (SLOWER, BUSY, "broken"),
        (NOISY, IDLE, "unresolved"),
    ],
)
def test_a_cpu_share_is_guarded_at_an_equal_rate(
    assessed_rows, turns, rate, busy, guarded
):
    rows = [*turns(BASE, rate), *turns(IDLE, busy, metric="cpu_busy", unit="%")]
    one = finding(assessed_rows(rows, DESIGN + CPU_GUARD), "cpu_busy")
    assert one.guarded == guarded
    assert ("no CPU per byte or packet" in one.sentence) is (guarded == "unresolved")


@pytest.mark.parametrize(("cost", "guarded"), [(0.95, "safe"), (1.2, "broken")])
def test_the_cost_answers_for_a_cpu_share_at_another_rate(
    assessed_rows, turns, cost, guarded
):
    rows = [*turns(BASE, FASTER), *turns(IDLE, BUSY, metric="cpu_busy", unit="%")]
    costs = [cost * value for value in SAME]
    rows += turns(BASE, costs, metric="cpu_per_byte", unit="ns/byte")
    found = assessed_rows(rows, DESIGN + CPU_GUARD)
    share, answer = finding(found, "cpu_busy"), finding(found, "cpu_per_byte")
    assert (share.role, share.guarded) == ("diagnostic", None)
    assert "not judged, since the rate is not shown equal" in share.sentence
    assert (answer.role, answer.guarded) == ("guard", guarded)
    assert "in place of the CPU share" in answer.sentence
    assert found.decision == {"safe": "accept", "broken": "veto"}[guarded]


# ---- verdicts -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "verdict", "size", "words"),
    [
        ((BASE, FASTER), "better", "material", "better by +9.99 % [+9.66, +10.33]"),
        ((BASE, SLIGHTLY), "better", "at most small", "real, but below the margin"),
        ((BASE, AROUND_MARGIN), "better", "size uncertain", "not certain to exceed"),
        ((BASE, SLOWER), "worse", "material", "worse by -9.99 %"),
        ((SLIGHTLY, BASE), "worse", "at most small", "real, but below the margin"),
        ((BASE, SAME), "equivalent", "", "no difference beyond the margin of 2 %"),
        (
            (NOISY, NOISY[::-1]),
            "inconclusive",
            "",
            "for the margin of 2 % it takes about",
        ),
        ((BASE[:1], FASTER[:1]), "not assessable", "too few units", "the ratio of the"),
        ((BASE, []), "not assessable", "too few units", "6 and 0 units"),
    ],
)
def test_verdict(judged, values, verdict, size, words):
    one = judged(*values)
    assert one.verdict == verdict
    assert "".join(one.qualifiers[:1]) == size
    assert words in one.sentence


def test_less_is_better_where_the_metric_says_so(assessed_rows, turns):
    design = DESIGN.replace("throughput", "rtt_p50")
    rows = turns(BASE, FASTER, metric="rtt_p50", unit="us")
    assert finding(assessed_rows(rows, design), "rtt_p50").verdict == "worse"


def test_a_metric_without_a_better_direction_is_only_described(assessed_rows, turns):
    rows = [*turns(BASE, SAME), *turns(BASE, FASTER, metric="send_rate")]
    one = finding(assessed_rows(rows), "send_rate")
    assert one.verdict == "not assessable"
    assert "described only: neither direction is better" in one.sentence


def test_inconclusive_says_what_could_be_shown_and_how_many_runs_it_takes(
    assessed_rows, turns
):
    sentence = finding(assessed_rows(turns(NOISY, NOISY[::-1]))).sentence
    assert "; 6 runs each are enough to show a change of" in sentence
    assert "(8 times in 10); for the margin of" in sentence
    assert "runs of each variant" in sentence
    assert "no difference" not in sentence


def test_two_runs_each_are_fragile_and_decide_nothing(assessed_rows, turns):
    found = assessed_rows(turns([100, 101], [110, 111]))
    one = finding(found)
    assert (one.verdict, one.qualifiers) == ("better", ("material", "fragile"))
    assert found.decision == "not yet"
    assert "fragile: it rests on few units" in one.sentence


def test_no_spread_without_a_known_resolution_is_fragile(assessed_rows, turns):
    one = finding(assessed_rows(turns([5, 5, 5], [6, 6, 6])))
    assert (one.verdict, one.qualifiers) == ("better", ("material", "fragile"))
    codes = {caveat.code for caveat in one.comparison.caveats}
    assert "no-spread" in codes


def test_a_margin_that_has_no_scale_here_says_so(assessed_rows, turns):
    design = TOP + PRIMARY.replace("throughput", "drops").replace("2 %", "0.1 pp")
    rows = turns([5, 9, 7, 8], [6, 8, 9, 5], metric="drops", unit="1")
    one = finding(assessed_rows(rows, design), "drops")
    assert (one.verdict, one.margin) == ("inconclusive", None)
    assert "the margin cannot be expressed on this scale" in one.sentence


def test_an_absolute_margin_on_a_metric_that_was_not_measured(assessed_rows, turns):
    guard = GUARD.replace("5 %", "20 us")
    one = finding(assessed_rows(turns(BASE, FASTER), DESIGN + guard), "rtt_p50")
    assert (one.guarded, one.margin) == ("not measured", None)


def test_an_absolute_margin_is_taken_of_the_baseline(assessed_rows, turns):
    design = DESIGN.replace("2 %", "10 Mbit/s")
    one = finding(assessed_rows(turns([100.0, 100.1] * 3, SAME), design))
    assert one.margin == pytest.approx(math.log1p(0.1), rel=1e-3)


# ---- ceilings -----------------------------------------------------------------------

CEILING = DESIGN + 'ceiling = "100 Mbit/s"\n'
FULL = [99.9, 99.8, 100.0, 99.9, 99.95, 99.85]
BELOW = [90.0, 91, 92, 90.5, 91.5, 90.8]
NEAR = [98.4, 98.3, 98.2, 98.4, 98.3, 98.35]


@pytest.mark.parametrize(
    ("values", "verdict", "qualifiers", "words"),
    [
        pytest.param(
            (BELOW, FULL), "better", ("material", "at least"), "better by at least +8",
            id="only the patched one is full: the gain is a lower bound",
        ),
        pytest.param(
            (NEAR, FULL), "better", ("size uncertain", "at least"), "by at least +1.5",
            id="a gain that is cut off is never called small",
        ),
        pytest.param(
            ([60.0, 100, 97, 90, 98, 95], FULL), "saturated",
            ("the patched variant reaches the ceiling",), "so no change could show",
            id="only the patched one is full and no gain is shown",
        ),
        pytest.param(
            (FULL, BELOW), "worse", ("material", "at least"), "worse by at least -8",
            id="only the baseline is full: the harm is a lower bound",
        ),
        pytest.param(
            (FULL, [*BELOW[:5], 100.0]), "worse", ("material", "at least"), "at least",
            id="one full run does not hide a harm",
        ),
        pytest.param(
            (FULL, [60.0, 99.0, 98, 99, 97, 97]), "saturated",
            ("the baseline reaches the ceiling",), "so no change could show",
            id="only the baseline is full and no harm is shown",
        ),
        pytest.param(
            (FULL, FULL[::-1]), "saturated", ("both variants reach the ceiling",),
            "both variants reach the ceiling, so no change could show",
            id="both are full: no equivalence",
        ),
        pytest.param(
            (BELOW, BELOW[::-1]), "equivalent", (), "no difference beyond the margin",
            id="neither is full",
        ),
    ],
)  # fmt: skip
def test_ceiling(judged, values, verdict, qualifiers, words):
    one = judged(*values, CEILING)
    assert one.verdict == verdict
    apart = {"fragile", "not testable on this link"}
    assert tuple(q for q in one.qualifiers if q not in apart) == qualifiers
    assert words in one.sentence


def test_a_ceiling_of_what_should_be_low_keeps_a_harm(assessed_rows, turns):
    design = TOP + PRIMARY.replace("throughput", "cpu_busy").replace("2 %", "2 pp")
    design += 'ceiling = "100 %"\n'
    rows = turns(BELOW, FULL, metric="cpu_busy", unit="%")
    one = finding(assessed_rows(rows, design), "cpu_busy")
    assert (one.verdict, one.qualifiers) == ("worse", ("material", "at least"))


def test_a_saturated_primary_metric_decides_nothing(assessed_rows, turns):
    assert assessed_rows(turns(FULL, FULL[::-1]), CEILING).decision == "not yet"


def test_a_value_above_the_ceiling_is_impossible(assessed_rows, turns):
    found = assessed_rows(turns(BELOW, [101.0] * 3 + FULL[:3]), CEILING)
    assert finding(found).verdict == "not assessable"
    assert "impossible value" in finding(found).sentence


# ---- caps ---------------------------------------------------------------------------


@pytest.mark.parametrize("patched", [FASTER, SLOWER, SAME])
def test_variants_one_after_the_other_are_never_judged(assessed_rows, turns, patched):
    found = assessed_rows(in_sequence(turns(BASE, patched)))
    one = finding(found)
    assert one.verdict == "not assessable"
    assert one.qualifiers[0] == "confounded with time order"
    assert found.decision == "not yet"


def test_three_variants_one_after_the_other_are_never_judged(assessed_rows, turns):
    rows = [*turns(BASE, FASTER)]
    rows += [row | {"variant": "placebo"} for row in turns(BASE, SAME)[1::2]]
    found = assessed_rows(
        in_sequence(rows), 'patched = ["patched", "placebo"]\n' + DESIGN
    )
    assert {one.verdict.value for one in found.findings} == {"not assessable"}


def noted(variant, number, value, **facts):
    """Return the raw files of one run, with its run.json."""
    path = f"d/{variant}/boot-1/run-{number}/t."
    told = {"workload": "t", "run": number, **facts}
    numbers = f"metric,unit,value\nthroughput,Mbit/s,{value}\n"
    return {path + "run.json": json.dumps(told), path + "x.csv": numbers}


def loaded(baseline, patched, per_run=False):
    """Return raw files of six runs each; build ids as given."""
    files = {}
    for number, (old, new) in enumerate(zip(BASE, FASTER, strict=True), start=1):
        turn = number % 2
        for variant, value, build, place in (
            ("baseline", old, baseline, 1 - turn),
            ("patched", new, patched, turn),
        ):
            name = f"{build}{number}" if per_run else build
            facts = {"build_id": name, "position": 2 * number + place}
            files |= noted(variant, number, value, **facts)
    return files


def test_the_same_module_in_both_variants_is_never_judged(assessed_rows):
    design = 'treatment = ["build_id"]\n' + DESIGN
    found = assessed_rows((), design, loaded("x", "x"))
    assert finding(found).qualifiers[0] == "treatment not verified"
    assert found.decision == "not yet"


def test_a_baseline_module_in_some_patched_runs_is_never_judged(assessed_rows):
    files = loaded("x", "y") | noted("patched", 3, 110.0, build_id="x", position=7)
    found = assessed_rows((), 'treatment = ["build_id"]\n' + DESIGN, files)
    assert finding(found).qualifiers[0] == "treatment not verified"


@pytest.mark.parametrize("per_run", [False, True])
def test_modules_that_differ_are_judged(assessed_rows, per_run):
    design = 'treatment = ["build_id"]\n' + DESIGN
    found = assessed_rows((), design, loaded("x", "y", per_run))
    assert finding(found).verdict == "better"


# ---- guards -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patched", "guarded", "words"),
    [
        (SAME, ("safe", "accept"), "harm of 5 % is excluded"),
        (SLOWER, ("safe", "accept"), "harm of 5 % is excluded"),
        (SLIGHTLY, ("harm, within margin", "accept"), "less than the margin of 5 %"),
        (FASTER, ("broken", "veto"), "the accepted harm was 5 %"),
        (NOISY, ("unresolved", "not yet"), "harm of 5 % is not excluded"),
        ([104, 106, 102, 105, 107, 103], ("unresolved", "not yet"), "is not excluded"),
        ([], ("not measured", "not yet"), "not assessable"),
    ],
)
def test_guard(assessed_rows, turns, patched, guarded, words):
    rows = turns(BASE, FASTER)
    rows += turns(BASE, patched, metric="rtt_p50", unit="us")
    found = assessed_rows(rows, GUARDED)
    one = finding(found, "rtt_p50")
    assert (one.guarded, found.decision) == guarded
    assert words in one.sentence


def test_a_guard_without_any_number_is_not_measured(assessed_rows, turns):
    found = assessed_rows(turns(BASE, FASTER), GUARDED)
    one = finding(found, "rtt_p50")
    assert (one.guarded, found.decision) == ("not measured", "not yet")
    assert one.sentence == "rtt_p50 on any workload: not measured."


def test_a_guard_that_is_not_required_does_not_hold_back(assessed_rows, turns):
    design = GUARDED + "required = false\n"
    assert assessed_rows(turns(BASE, FASTER), design).decision == "accept"


def test_a_broken_guard_vetoes_though_it_is_not_required(assessed_rows, turns):
    rows = [*turns(BASE, FASTER), *turns(BASE, FASTER, metric="rtt_p50", unit="us")]
    assert assessed_rows(rows, GUARDED + "required = false\n").decision == "veto"


def test_a_guard_with_two_runs_each_is_fragile_and_leaves_it_open(assessed_rows, turns):
    guard = turns([100.0, 100.1], [100.1, 100.0], metric="rtt_p50", unit="us")
    found = assessed_rows([*turns(BASE, FASTER), *guard], GUARDED)
    assert finding(found, "rtt_p50").guarded == "safe"
    assert found.decision == "not yet"


def test_harm_among_many_guards_is_judged_after_holm(assessed_rows, turns):
    harmed = turns(
        [100, 103, 98, 101, 99, 102], [108, 104, 111, 105, 112, 101],
        metric="rtt_p50", unit="us",
    )  # fmt: skip
    alone = assessed_rows([*turns(BASE, FASTER), *harmed], GUARDED, name="a/alone")
    rows = [*turns(BASE, FASTER), *harmed]
    for number in range(5):
        workload = f"w{number}"
        rows += turns(BASE, SAME, metric="rtt_p50", unit="us", workload=workload)
    many = assessed_rows(rows, GUARDED, name="a/many")
    assert finding(alone, "rtt_p50").guarded == "broken"
    assert finding(many, "rtt_p50", workload="tcp").guarded == "unresolved"
    assert (alone.decision, many.decision) == ("veto", "not yet")


def test_a_capped_guard_is_unresolved_however_bad(assessed_rows, turns):
    rows = [*turns(BASE, FASTER), *turns(BASE, FASTER, metric="rtt_p50", unit="us")]
    found = assessed_rows(in_sequence(rows), GUARDED)
    assert finding(found, "rtt_p50").guarded == "unresolved"
    assert "confounded with time order" in finding(found, "rtt_p50").sentence


def test_harm_without_spread_is_judged_by_its_exact_p_after_holm(assessed_rows, turns):
    rows = turns(BASE, FASTER)
    for number in range(4):
        values = [110.0] * 4 if number == 0 else [100.0] * 4
        rows += turns(
            [100.0] * 4, values, metric="rtt_p50", unit="us", resolution="1",
            workload=f"w{number}",
        )  # fmt: skip
    found = assessed_rows(rows, GUARDED)
    one = finding(found, "rtt_p50", workload="w0")
    assert one.comparison.p_value is None
    assert one.comparison.companion.p_value == pytest.approx(2 / 70)
    assert one.comparison.p_adjusted == pytest.approx(8 / 70)
    assert one.guarded == "unresolved"


def test_guards_of_another_device_are_another_family(assessed_rows, turns):
    rows = [*turns(BASE, FASTER), *turns(BASE, FASTER, device="b")]
    noise = ([100, 103, 98, 101, 99, 102], [108, 104, 111, 105, 112, 101])
    for device in ("router", "b"):
        rows += turns(*noise, metric="rtt_p50", unit="us", device=device)
    found = assessed_rows(rows, GUARDED)
    one = finding(found, "rtt_p50", device="b").comparison
    assert one.p_adjusted == one.p_value


def test_a_guard_that_counted_nothing_says_what_it_cannot_exclude(assessed_rows, turns):
    guard = GUARD.replace("rtt_p50", "drops").replace("5 %", "0.1 pp")
    rows = turns([0] * 6, [0] * 6, metric="drops", unit="1", exposure="1000000")
    one = finding(assessed_rows([*turns(BASE, FASTER), *rows], DESIGN + guard), "drops")
    assert "none in any run (with none in 6 runs, up to 39 % of runs may have one)" in (
        one.sentence
    )


def test_loss_from_zero_breaks_a_guard(assessed_rows, turns):
    guard = GUARD.replace("rtt_p50", "loss").replace("5 %", "0.5 pp")
    loss = turns([0.0] * 6, [4.0, 5, 6, 5, 4, 6], metric="loss", unit="%")
    found = assessed_rows([*turns(BASE, FASTER), *loss], DESIGN + guard)
    assert finding(found, "loss").guarded == "broken"
    assert found.sentence.startswith("Veto: it costs more than was accepted on router")


# ---- what could have been shown -----------------------------------------------------

SPREAD = [100.0, 103, 97, 101, 99, 102]


@pytest.mark.parametrize(
    ("role", "words", "goal"),
    [
        ('"primary"', "show a change of", (0.05, 0.8)),
        ('"primary"\nexpect = "same"', "exclude a change of", (0.1, 0.9)),
        ('"guard"', "exclude harm of", (0.1, 0.8)),
    ],
)
def test_the_units_needed_are_those_of_the_test_that_decides(judged, role, words, goal):
    design = TOP + PRIMARY.replace('"primary"', role)
    if "guard" in role:
        design += PRIMARY.replace("throughput", "rtt_mean")
    one = judged(SPREAD, [*SPREAD[1:], 98.5], design)
    alpha, power = goal
    sd = one.comparison.effect.standard_error * math.sqrt(3)
    needed = stats.needed_n(sd, math.log(1.02), power=power, alpha=alpha)
    shown = math.expm1(stats.detectable_change(sd, 6, power=power, alpha=alpha))
    assert power_in_words(one) == (
        f"6 runs each are enough to {words} {100 * shown:.3g} % (8 times in 10); "
        f"for the margin of 2 % it takes about {needed} runs of each variant"
    )


@pytest.mark.parametrize("name", ["veth/gro", "veth/txqueuelen"])
def test_the_report_asks_for_as_many_units_as_the_plan(name, assessed):
    wish = Wish(
        detect="", power=0.8, order=Order.ABBA, seed=None, blocks=None,
        boot_cost_s=1.0, run_cost_s=1.0,
    )  # fmt: skip
    found = assessed(name)
    open_ = [one for one in found.findings if "it takes about" in one.sentence]
    assert open_
    for one in open_:
        need = of_comparison(one.comparison, found.material, wish)
        assert f" runs each in {need.needed} blocks" in one.sentence


# ---- a rate at its ceiling ----------------------------------------------------------

COST = '[[metrics]]\nname = "cpu_per_byte"\nrole = "diagnostic"\nmargin = "3 %"\n'


def full(turns, old, new, **more):
    """Return rows of a full link and of what its bytes cost."""
    cost = turns(old, new, metric="cpu_per_byte", unit="ns/byte", **more)
    return [*turns(FULL, FULL[::-1], **more), *cost]


@pytest.mark.parametrize(
    ("design", "new", "expected"),
    [
        pytest.param(CEILING + COST, SLOWER, ("3 %", "accept"), id="declared"),
        pytest.param(CEILING, SLOWER, ("5 %", "accept"), id="not declared"),
        pytest.param(CEILING, SAME, ("5 %", "reject claim"), id="unchanged"),
        pytest.param(CEILING, FASTER, ("5 %", "reject claim"), id="dearer"),
        pytest.param(CEILING + 'expect = "same"\n', SAME, ("5 %", "accept"), id="same"),
        pytest.param(
            CEILING + COST.replace("diagnostic", "primary"), SLOWER, ("3 %", "accept"),
            id="primary itself",
        ),
    ],
)  # fmt: skip
def test_the_cost_answers_for_a_rate_at_its_ceiling(
    assessed_rows, turns, design, new, expected
):
    found = assessed_rows(full(turns, BASE, new), design)
    (one,) = [
        one
        for one in found.findings
        if one.planned.metric.name == "cpu_per_byte" and one.role == "primary"
    ]
    assert (one.planned.margin.text, found.decision) == expected
    assert finding(found).verdict == "saturated"
    assert "not testable" not in finding(found).sentence
    assert ("substitute" in one.qualifiers) == (one.planned not in
                                                found.study.design.metrics)  # fmt: skip


def test_a_full_link_without_a_cost_is_not_testable(assessed_rows, turns):
    found = assessed_rows(turns(FULL, FULL[::-1]), CEILING)
    assert "not testable on this link" in found.devices[0].reasons[0]


def test_the_cost_of_another_workload_does_not_answer(assessed_rows, turns):
    cost = turns(BASE, SLOWER, metric="cpu_per_byte", unit="ns/byte", workload="udp")
    found = assessed_rows([*turns(FULL, FULL[::-1]), *cost], CEILING)
    assert found.decision == "not yet"


@pytest.mark.parametrize(
    ("throughput", "cost", "told"),
    [
        pytest.param(SLOWER, SLOWER, True, id="cheaper calls, lower rate"),
        pytest.param(FASTER, SLOWER, False, id="cheaper calls, higher rate"),
        pytest.param(SLOWER, FASTER, False, id="dearer calls, lower rate"),
    ],
)
def test_a_mechanism_that_improves_where_the_rate_falls_is_told(
    assessed_rows, turns, throughput, cost, told
):
    mechanism = '[[metrics]]\nname = "alloc_time"\nrole = "mechanism"\n'
    rows = [
        *turns(BASE, throughput),
        *turns(BASE, cost, metric="alloc_time", unit="ns"),
    ]
    found = assessed_rows(rows, DESIGN + mechanism)
    words = "the mechanism metric alone would have claimed a gain"
    assert (words in found.sentence) == told
    assert any(words in why for why in found.devices[0].reasons) == told
    assert found.decision == ("reject claim" if throughput is SLOWER else "accept")


# ---- placebo and a copy of the baseline ---------------------------------------------

FASTEST = [120.2, 119.8, 120.5, 119.9, 120.1, 120.0]
PLACEBO = 'placebo = "placebo"\n' + DESIGN


def third(turns, values, name="placebo", **more):
    """Return the rows of a third variant."""
    return [row | {"variant": name} for row in turns(BASE, values, **more)[1::2]]


@pytest.mark.parametrize(
    ("values", "verdict", "decision"),
    [
        pytest.param((FASTER, SAME), "better", "accept", id="beyond the layout"),
        pytest.param((FASTER, FASTER), "inconclusive", "not yet", id="the same gain"),
        pytest.param((FASTER, SLOWER), "inconclusive", "not yet", id="the other way"),
        pytest.param((SLOWER, FASTEST), "inconclusive", "not yet", id="a loss"),
        pytest.param((SLOWER, SAME), "worse", "reject claim", id="a loss beyond it"),
        pytest.param((SAME, FASTER), "equivalent", "reject claim", id="no change"),
    ],
)
def test_an_effect_exceeds_what_the_placebo_build_changes(
    assessed_rows, turns, values, verdict, decision
):
    rows = [*turns(BASE, values[0]), *third(turns, values[1])]
    found = assessed_rows(rows, PLACEBO)
    one = of_variant(found, "patched")
    assert (one.verdict, found.decision) == (verdict, decision)
    noisy = verdict == "inconclusive"
    assert ("within layout noise" in one.qualifiers) == noisy
    words = "not distinguishable from code placement"
    assert (words in one.sentence) == noisy
    assert [one.variant for one in found.devices] == ["patched"]
    assert "layout noise" in of_variant(found, "placebo").qualifiers


def builds(values, workload):
    """Return two runs of each of several builds of one source, in measurements.csv."""
    return [
        {
            "metric": "throughput",
            "unit": "Mbit/s",
            "value": value * (1 + wobble),
            "device": "d",
            "variant": "placebo" if number else "baseline",
            "build": f"layout-{number}",
            "run": run,
            "workload": workload,
        }
        for number, value in enumerate(values)
        for run, wobble in ((1, 0.001), (2, -0.001))
    ]


@pytest.mark.parametrize(
    ("layouts", "words"),
    [
        pytest.param([100, 101, 102, 99], ("better", "accept"), id="beyond the floor"),
        pytest.param([100, 95, 106, 99], ("inconclusive", "not yet"), id="below it"),
        pytest.param([100, 106], ("better", "accept"), id="two builds are no floor"),
    ],
)
@pytest.mark.parametrize("workload", ["tcp", "elsewhere"])
def test_an_effect_exceeds_the_floor_that_several_layouts_set(
    assessed_rows, turns, workload, layouts, words
):
    of_tcp = DESIGN.replace('role = "primary"', 'role = "primary"\nworkload = "tcp"')
    rows = [row | {"build": "patch"} for row in turns(BASE, FASTER)[1::2]]
    rows += [row | {"build": "layout-0"} for row in turns(BASE, FASTER)[0::2]]
    rows = [row | {"workload": "tcp", "device": "d"} for row in rows]
    extra = builds(layouts, workload)[2 if workload == "tcp" else 0 :]
    found = assessed_rows([*rows, *extra], 'placebo = "placebo"\n' + of_tcp)
    (one,) = [
        one
        for one in found.findings
        if one.role == "primary" and one.comparison.variant == "patched"
    ]
    assert (one.verdict, found.decision) == words
    noisy = words[0] == "inconclusive"
    assert ("within layout noise" in one.qualifiers) == noisy
    if noisy:
        assert "builds that differ in code placement only have a" in one.sentence


@pytest.mark.parametrize(
    ("placebo", "decision"), [(SAME, "accept"), (SLOWER, "not yet")]
)
def test_a_cost_that_answers_exceeds_the_placebo_too(
    assessed_rows, turns, placebo, decision
):
    rows = [*full(turns, BASE, SLOWER), *third(turns, FULL)]
    rows += third(turns, placebo, metric="cpu_per_byte", unit="ns/byte")
    assert assessed_rows(rows, 'placebo = "placebo"\n' + CEILING).decision == decision


def of_variant(assessment, variant):
    (one,) = [one for one in assessment.findings if one.comparison.variant == variant]
    return one


@pytest.mark.parametrize(
    ("placebo", "guarded"), [(SAME, "broken"), (FASTER, "unresolved")]
)
def test_harm_within_layout_noise_breaks_no_guard(
    assessed_rows, turns, placebo, guarded
):
    rows = [*turns(BASE, FASTER), *third(turns, SAME)]
    rows += turns(BASE, FASTER, metric="rtt_p50", unit="us")
    rows += third(turns, placebo, metric="rtt_p50", unit="us")
    found = assessed_rows(rows, 'placebo = "placebo"\n' + GUARDED)
    (one,) = [
        one
        for one in found.findings
        if one.role == "guard" and one.comparison.variant == "patched"
    ]
    assert one.guarded == guarded


@pytest.mark.parametrize(("placebo", "doubt"), [(SAME, False), (FASTER, True)])
def test_one_build_each_is_no_doubt_beyond_a_placebo(assessed_rows, placebo, doubt):
    files = {}
    for number, values in enumerate(zip(BASE, FASTER, placebo, strict=True), start=1):
        for build, variant in enumerate(("baseline", "patched", "placebo")):
            position = 3 * number + (build + number) % 3
            raw = noted(variant, number, values[build], position=position)
            for path, content in raw.items():
                files[path.replace("/boot-1", f"/build-{build}/boot-1")] = content
    design = (
        'layout = "{device}/{variant}/build-{build}/boot-{boot}/{purpose}-{run}/'
        '{workload}.{rest}"\n'
    ) + DESIGN
    alone = assessed_rows((), design, files, name="a/alone").findings[0]
    found = assessed_rows((), 'placebo = "placebo"\n' + design, files, name="a/with")
    assert "one build each" in alone.qualifiers
    assert ("one build each" in of_variant(found, "patched").qualifiers) == doubt


def test_a_copy_of_the_baseline_shows_which_margin_cannot_be_tested(
    assessed_rows, turns
):
    rows = [*turns(BASE, FASTER), *third(turns, NOISY, "copy")]
    found = assessed_rows(rows, 'base2 = "copy"\n' + DESIGN)
    codes = {one.code for one in of_variant(found, "patched").comparison.caveats}
    assert "aa-noise" in codes
    assert "A/A noise" in of_variant(found, "copy").qualifiers
    assert any("not testable with this n" in one.caveat.text for one in found.doubts)
    assert found.decision == "accept"


def test_a_quiet_copy_of_the_baseline_raises_no_doubt(assessed_rows, turns):
    rows = [*turns(BASE, FASTER), *third(turns, SAME, "copy")]
    found = assessed_rows(rows, 'base2 = "copy"\n' + DESIGN)
    codes = {one.code for one in of_variant(found, "patched").comparison.caveats}
    assert "aa-noise" not in codes


def test_sentences_name_the_variant_where_there_are_several(assessed_rows, turns):
    rows = [*turns(BASE, FASTER), *third(turns, SAME)]
    found = assessed_rows(rows, PLACEBO)
    assert of_variant(found, "patched").sentence.startswith(
        "throughput on tcp, patched: better"
    )
    assert of_variant(found, "placebo").sentence.startswith(
        "throughput on tcp, placebo: no"
    )


# ---- the baseline measured again ----------------------------------------------------


def measured_again(turns, again, patched=FASTER):
    """Return rows A..A B..B A..A: the last runs of the baseline come at the end."""
    last = [len(BASE) + number for number in range(1, len(again) + 1)]
    rows = in_sequence(turns([*BASE, *again], patched))
    first = [one for one in rows if int(one["run"]) not in last or
             one["variant"] == "patched"]  # fmt: skip
    end = [one for one in rows if one not in first]
    ordered = [*first, *end]
    return [row | {"position": place} for place, row in enumerate(ordered, start=1)]


def test_a_baseline_that_came_back_lifts_the_cap_of_the_order(assessed_rows, turns):
    found = assessed_rows(measured_again(turns, SAME))
    one = finding(found)
    assert (one.verdict, found.decision) == ("better", "accept")
    assert "order re-checked" in one.qualifiers
    assert any(doubt.caveat.code == "order-rechecked" for doubt in found.doubts)


@pytest.mark.parametrize(
    "again",
    [
        pytest.param([90.0, 91, 90, 91, 90, 91], id="it did not come back"),
        pytest.param([90.0, 110, 100, 95, 105, 100], id="it cannot be told"),
        pytest.param(SAME[:1], id="one run is no interval"),
    ],
)
def test_a_baseline_that_did_not_come_back_leaves_the_cap(assessed_rows, turns, again):
    found = assessed_rows(measured_again(turns, again))
    assert finding(found).qualifiers[0] == "confounded with time order"
    assert found.decision == "not yet"


def test_variants_once_each_have_no_second_baseline(assessed_rows, turns):
    found = assessed_rows(in_sequence(turns(BASE, FASTER)))
    assert "order re-checked" not in finding(found).qualifiers


# ---- decisions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patched", "decision", "opening"),
    [
        (FASTER, "accept", "Supported on router"),
        (SLIGHTLY, "accept (below margin)", "Supported, but smaller than"),
        (SAME, "reject claim", "The claim is not supported"),
        (SLOWER, "reject claim", "The claim is not supported"),
        (NOISY, "not yet", "Not yet decided"),
    ],
)
def test_decision(assessed_rows, turns, patched, decision, opening):
    found = assessed_rows(turns(BASE, patched))
    assert found.decision == decision
    assert found.sentence.startswith(opening)


@pytest.mark.parametrize(
    ("patched", "decision"),
    [
        (SAME, "accept"),
        (SLIGHTLY, "accept"),
        ([value * 0.99 for value in BASE], "accept"),
        (SLOWER, "reject claim"),
        (FASTER, "not yet"),
        (NOISY, "not yet"),
    ],
)
def test_a_claim_of_no_change(assessed_rows, turns, patched, decision):
    found = assessed_rows(turns(BASE, patched), DESIGN + 'expect = "same"\n')
    assert found.decision == decision
    if decision == "accept":
        assert found.sentence.startswith("No change, as claimed")


def test_devices_that_disagree_are_mixed_with_their_list(assessed_rows, turns):
    rows = [*turns(BASE, FASTER), *turns(BASE, SLOWER, device="b")]
    found = assessed_rows(rows)
    assert found.decision == "mixed"
    assert "(b reject claim, router accept)" in found.sentence


def test_a_veto_on_one_device_is_a_veto(assessed_rows, turns):
    rows = [*turns(BASE, FASTER), *turns(BASE, FASTER, device="b")]
    rows += turns(BASE, SAME, metric="rtt_p50", unit="us")
    rows += turns(BASE, FASTER, metric="rtt_p50", unit="us", device="b")
    assert assessed_rows(rows, GUARDED).decision == "veto"


def test_a_device_that_the_study_names_and_did_not_measure_is_no_accept(
    assessed_rows, turns
):
    found = assessed_rows(turns(BASE, FASTER), DESIGN + "[devices.spare]\n")
    assert found.decision == "mixed"
    assert "spare not yet" in found.sentence


def test_a_declared_workload_that_was_never_run_leaves_it_open(assessed_rows, turns):
    design = TOP + PRIMARY.replace("role", 'workload = ["tcp", "udp"]\nrole')
    found = assessed_rows(turns(BASE, FASTER), design)
    assert found.decision == "not yet"
    assert finding(found, workload="udp").verdict == "not assessable"


@pytest.mark.parametrize(
    ("patched", "decision", "words"),
    [
        (SAME, "accept", "control, unchanged within the margin of 2 %"),
        (SLIGHTLY, "accept", "control, a real gain below the margin of 2 %"),
        ([0.995 * one for one in BASE], "accept", "control, no gain: "),
        (FASTER, "not yet", "control, but better by"),
        (SLOWER, "not yet", "control, but worse by"),
        (NOISY, "not yet", "control, inconclusive"),
    ],
)
def test_a_control_that_moved_leaves_it_open(
    assessed_rows, turns, patched, decision, words
):
    rows = [*turns(BASE, FASTER), *turns(BASE, patched, workload="idle")]
    found = assessed_rows(rows, DESIGN + '[controls]\nworkload = "idle"\n')
    assert found.decision == decision
    assert words in finding(found, workload="idle").sentence


@pytest.mark.parametrize(
    ("control", "decision"), [(SAME, "accept"), (SLOWER, "mixed"), (NOISY, "mixed")]
)
def test_a_control_device_answers_for_itself_only(
    assessed_rows, turns, control, decision
):
    rows = [*turns(BASE, FASTER), *turns(BASE, control, device="ctl")]
    found = assessed_rows(rows, DESIGN + '[controls]\ndevice = "ctl"\n')
    assert found.decision == decision


def test_further_variants_do_not_decide(assessed_rows, turns):
    rows = turns(BASE, FASTER)
    rows += [row | {"variant": "placebo"} for row in turns(BASE, SAME)[1::2]]
    found = assessed_rows(rows, 'patched = ["patched", "placebo"]\n' + DESIGN)
    assert found.decision == "accept"
    assert len(found.devices) == 2


def test_a_study_without_the_patched_variant_decides_nothing(assessed_rows, turns):
    found = assessed_rows(turns(BASE, []))
    assert found.decision == "not yet"
    assert found.sentence.startswith("Not yet decided")


# ---- laws ---------------------------------------------------------------------------

VALUES = st.lists(st.floats(90, 110), min_size=1, max_size=6)


def drawn(base, patched, metric, unit):
    """Assess values that were drawn."""
    design = TOP + PRIMARY.replace("throughput", metric)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.toml").write_text(design)
        with (folder / "measurements.csv").open("w", newline="") as to:
            table = csv.writer(to)
            table.writerow(["metric", "unit", "value", "device", "variant", "run"])
            for variant, values in (("baseline", base), ("patched", patched)):
                for run, value in enumerate(values):
                    table.writerow([metric, unit, repr(value), "d", variant, run])
        return assess(open_study(folder))


@settings(max_examples=15, deadline=None)
@given(
    VALUES,
    VALUES,
    st.sampled_from([("throughput", "Mbit/s", 1), ("rtt_p50", "us", -1)]),
)
def test_the_verdict_follows_the_interval(base, patched, quantity):
    metric, unit, sign = quantity
    found = drawn(base, patched, metric, unit)
    (one,) = found.findings
    if min(len(base), len(patched)) < 2:
        assert (one.verdict, found.decision) == ("not assessable", Decision.NOT_YET)
        return
    change = one.comparison.change
    low, high = sorted((sign * change.low, sign * change.high))
    narrow = one.comparison.effect.interval(0.9)
    inside = max(abs(narrow.low), abs(narrow.high)) < math.log(1.02)
    expected = (
        "better" if low > 0 else "worse" if high < 0
        else "equivalent" if inside else "inconclusive"
    )  # fmt: skip
    assert one.verdict == expected
    sizes = {"material", "at most small", "size uncertain"} & set(one.qualifiers)
    assert len(sizes) == (expected in {"better", "worse"})
    assert (found.decision is Decision.ACCEPT) <= (expected == "better")
    words = {"better by", "worse by", "no difference beyond", "inconclusive:"}
    assert sum(word in one.sentence for word in words) == 1
