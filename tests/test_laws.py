"""What must hold for any numbers: laws of the comparison and of its verdict."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchstudy.compare import compare
from patchstudy.findings import judge
from patchstudy.metrics import metric
from patchstudy.study import Role, Study
from patchstudy.study.design import design_of_files
from patchstudy.tables import UNIT_COLUMNS, UNIT_GRAIN, Question
from patchstudy.verdicts import Verdict

MIRRORED = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
#: A comparison takes some 20 ms: fewer examples than elsewhere, the same each time.
few = settings(max_examples=25)
positive = st.floats(0.5, 2.0).map(lambda x: round(x, 4))
sides = st.tuples(
    st.lists(positive, min_size=2, max_size=6),
    st.lists(positive, min_size=2, max_size=6),
)
any_number = st.one_of(
    st.just(0.0), st.floats(-1e150, 1e150), st.floats(0, 1e-300), st.just(1.0)
)


def asked_of(name="throughput", device="router", role=Role.PRIMARY):
    design = design_of_files(("baseline", "patched"), metric=name, margin="2 %")
    planned = replace(design.metrics[0], role=role)
    question = Question(
        device=device, workload="tcp", planned=planned, role=role, labels=(),
        tool="test", place="", problem="", unit="run",
    )  # fmt: skip
    return replace(design, metrics=(planned,)), question


def units_of(question, base, new, *, blocks=False, step=math.nan):
    rows = [
        (
            question.key, question.device, "tcp", question.planned.metric.name,
            variant, f"{variant} {at}", str(at) if blocks else "",
            2 * at + (place if at % 2 else 1 - place), True, value, math.nan, step, 1,
            "",
        )
        for place, (variant, side) in enumerate(
            (("baseline", base), ("patched", new))
        )
        for at, value in enumerate(side, start=1)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(UNIT_COLUMNS))


def judged(tables, asked, design):
    units = pd.concat(tables, ignore_index=True)
    units.attrs["grain"] = UNIT_GRAIN
    study = Study(
        folder=Path(), name="made/up", design=design, runs=(), facts=(), leftovers=(),
        files={},
    )  # fmt: skip
    return [judge(one, study) for one in compare(units, asked, design)]


def one(base, new, *, name="throughput", blocks=False, step=math.nan):
    design, question = asked_of(name)
    table = units_of(question, base, new, blocks=blocks, step=step)
    (found,) = judged([table], [question], design)
    return found


def numbers(found):
    comparison = found.comparison
    change, rank = comparison.change, comparison.companion
    return [change.value, change.low, change.high, comparison.p_value or 0.0,
            rank.p_value, rank.wins]  # fmt: skip


def alike(found, other):
    assert other.verdict is found.verdict
    assert other.qualifiers == found.qualifiers
    assert numbers(other) == pytest.approx(numbers(found), rel=1e-6, abs=1e-9)


@few
@given(sides, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_the_units_changes_nothing(values, blocks, random):
    design, question = asked_of()
    table = units_of(question, *values, blocks=blocks)
    rows = list(range(len(table)))
    random.shuffle(rows)
    (found,) = judged([table], [question], design)
    (other,) = judged([table.iloc[rows]], [question], design)
    alike(found, other)


@few
@given(sides, st.booleans(), st.integers(-60, 60))
def test_a_constant_factor_changes_nothing(values, blocks, power):
    found = one(*values, blocks=blocks)
    scaled = [[value * 2.0**power for value in side] for side in values]
    other = one(*scaled, blocks=blocks)
    alike(found, other)


@few
@given(sides, st.booleans())
def test_swapping_the_variants_mirrors_the_verdict(values, blocks):
    base, new = values
    found, other = one(base, new, blocks=blocks), one(new, base, blocks=blocks)
    assert other.verdict is MIRRORED.get(found.verdict, found.verdict)
    assert {*other.qualifiers} == {*found.qualifiers}
    first, second = found.comparison, other.comparison
    assert 1 + second.change.value == pytest.approx(1 / (1 + first.change.value))
    assert second.p_value == pytest.approx(first.p_value)
    assert second.companion.p_value == pytest.approx(first.companion.p_value)


@few
@given(sides, st.booleans())
def test_better_follows_the_direction_of_the_metric(values, blocks):
    rate = one(*values, blocks=blocks)
    time = one(*values, name="rtt_mean", blocks=blocks)
    assert time.verdict is MIRRORED.get(rate.verdict, rate.verdict)
    assert {*time.qualifiers} == {*rate.qualifiers}
    assert numbers(time) == pytest.approx(numbers(rate))


@few
@given(sides, sides)
def test_another_device_never_changes_a_verdict(values, others):
    design, first = asked_of()
    _, second = asked_of(device="switch")
    tables = [units_of(first, *values), units_of(second, *others)]
    (alone,) = judged(tables[:1], [first], design)
    found, _ = judged(tables, [first, second], design)
    alike(alone, found)


@few
@given(sides)
def test_a_verdict_never_contradicts_its_own_interval(values):
    found = one(*values)
    change = found.comparison.change
    assert change.low <= change.value <= change.high
    if found.verdict is Verdict.BETTER:
        assert change.low > 0
    if found.verdict is Verdict.WORSE:
        assert change.high < 0
    if found.verdict is Verdict.EQUIVALENT:
        assert change.low < 0.02
        assert change.high > -0.02
        assert change.low <= 0 <= change.high


@few
@given(
    st.lists(any_number, min_size=1, max_size=5),
    st.lists(any_number, min_size=1, max_size=5),
    st.sampled_from(["throughput", "rtt_mean", "loss", "retransmits", "cpu_busy"]),
    st.booleans(),
)
def test_no_number_breaks_it_and_nothing_gives_no_verdict(base, new, name, blocks):
    found = one(base, new, name=name, blocks=blocks)
    change = found.comparison.change
    if change is None:
        assert found.verdict is Verdict.NOT_ASSESSABLE
    else:
        assert not math.isnan(change.low)
        assert not math.isnan(change.high)
    if set(base) == set(new) and len(set(base)) == 1:
        assert found.verdict not in MIRRORED
    if min(len(base), len(new)) < 2:
        assert found.verdict is Verdict.NOT_ASSESSABLE


@few
@given(st.lists(positive, min_size=2, max_size=6), st.sampled_from([math.nan, 0.001]))
def test_the_same_values_are_never_better_or_worse(values, step):
    found = one(values, values, step=step)
    assert found.verdict not in MIRRORED


@few
@given(sides, st.sampled_from([math.nan, math.inf, -math.inf]), st.data())
def test_what_is_no_number_is_refused(values, wrong, data):
    base, new = map(list, values)
    side = data.draw(st.sampled_from([base, new]))
    side[data.draw(st.integers(0, len(side) - 1))] = wrong
    with pytest.raises(ValueError, match="not finite"):
        one(base, new)


# ---- drift and order (STATISTICS 3.12) ----------------------------------------------

BLOCKS = range(1, 7)


def in_blocks(values, first="baseline"):
    """Return units of six blocks of two, always with the same variant first."""
    design, question = asked_of()
    design = replace(design, block="block")
    second = "patched" if first == "baseline" else "baseline"
    rows = [
        (
            question.key, "router", "tcp", "throughput", variant, f"{variant} {block}",
            str(block), 2 * block + place, True, values[2 * (block - 1) + place],
            math.nan, math.nan, 1, "",
        )
        for block in BLOCKS
        for place, variant in enumerate((first, second))
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=list(UNIT_COLUMNS))
    (found,) = judged([table], [question], design)
    return found


@pytest.mark.parametrize("first", ["baseline", "patched"])
def test_a_steady_drift_is_hardly_ever_an_effect_of_the_second_place(first):
    """No effect, a drift of 20 standard deviations a place: 5 % is what 95 % allow."""
    rng = np.random.default_rng(7)
    moved = 0
    for step in np.linspace(0.005, 0.05, 100):
        values = 100 * np.exp(step * np.arange(12) + rng.normal(0, step / 20, 12))
        found = in_blocks(values, first)
        moved += found.verdict in MIRRORED
        if found.verdict is Verdict.NOT_ASSESSABLE:
            assert "confounded with time order" in found.qualifiers
    assert moved <= 10


def test_a_gain_beyond_a_steady_drift_stands():
    drift = 0.001 * np.arange(12) + np.tile([0.0, 0.05], 6)
    noise = np.random.default_rng(5).normal(0, 0.0005, 12)
    found = in_blocks(100 * np.exp(drift + noise))
    assert found.verdict is Verdict.BETTER
    assert found.comparison.change.value > 0.05


@few
@given(st.integers(0, 500))
def test_a_gain_without_drift_stands(seed):
    noise = np.random.default_rng(seed).normal(0, 0.001, 12)
    found = in_blocks(100 * np.exp(np.tile([0.0, 0.05], 6) + noise))
    assert found.verdict is Verdict.BETTER


def test_metrics_used_here_have_their_directions():
    assert metric("throughput").sign == -metric("rtt_mean").sign == 1
