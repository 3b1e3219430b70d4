"""Baseline against patched within blocks, one metric at a time.

Only tables of experimental units are accepted: intervals of one run can never be taken
for replicates.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import companions, noise, outcomes, stats
from patchstudy.cards import Carded, Rows
from patchstudy.checks import Doubt
from patchstudy.companions import Companion, Counted, Spread, Trimmed
from patchstudy.errors import GrainError
from patchstudy.metrics import Kind, Scale
from patchstudy.noise import Bank, Borrowed, Noise
from patchstudy.records import Caveat, Severity
from patchstudy.study import Design, Margin, Planned, Role, is_published
from patchstudy.tables import UNIT_COLUMNS, UNIT_GRAIN, Question
from patchstudy.units import count_of, for_people, with_interval

#: Sensitivity note: the mean-based and the rank-based p disagree (STATISTICS 3.3).
SENSITIVE_LOW: Final = 0.05
SENSITIVE_HIGH: Final = 0.2
#: Blocks from which a slope over them is looked for: two are left to judge it.
DRIFT_BLOCKS: Final = 4
#: Level of the test that harm is below its margin, and of both equivalence tests, as
#: the two-sided level with the same critical value (STATISTICS 3.5 and 3.13).
ONE_SIDED_ALPHA: Final = 0.10
#: Ratio of the numbers of units from which it is mentioned (STATISTICS 3.6).
UNEQUAL_N: Final = 3


class Goal(StrEnum):
    """What is to be shown about a margin; decides the test, and so the power."""

    CHANGE = "change"  # two-sided t test finds a change of this size
    NO_HARM = "no harm"  # the one-sided 95 % bound of harm stays below it
    SAME = "same"  # two one-sided tests find the change within it


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The units of one variant, in the base unit of the metric.

    ``geometric_mean`` is None where a value is not positive.
    """

    n: int
    mean: float
    geometric_mean: float | None
    median: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Carded):
    """The change of one metric on one device and workload, with its interval.

    Attributes
    ----------
    n_baseline, n_patched
        Runs in each variant.
    blocks
        Blocks that hold both variants; 0 where the analysis is not paired.
    unit_of_analysis
        What is counted as independent, in words.
    baseline, patched
        The values.
    scale
        ``ratio``: the change is patched / baseline - 1. ``difference``: patched -
        baseline in the base unit (of a count: per packet where packets are known).
    change
        With the confidence interval of the design (95 %); None where the units are too
        few.
    effect
        The estimate on the scale of the analysis (logs for a ratio).
    companion, ratio_of_means, spread, without_outliers, counted
        Second opinions; they never decide. None where there is nothing to say.
    rounded
        Of too few units: patched / baseline with the bounds that rounding leaves for
        it; None where the last digit of a value is not known.
    borrowed
        The change with what another study of the device says about the spread, where
        this one cannot: of single units, or of one boot of each variant. It never
        decides. None where nothing is lent.
    p_value, p_adjusted
        Two-sided; adjusted within its family by Holm (diagnostics: Benjamini-Hochberg).
        A guard without a p of the t test has that of the companion in its family.
    method
        How the interval was made, in words.
    """

    question: Question
    variant: str
    n_baseline: int
    n_patched: int
    blocks: int
    unit_of_analysis: str
    baseline: Summary | None
    patched: Summary | None
    scale: Scale
    change: stats.Estimate | None
    effect: stats.Effect | None
    companion: Companion | None
    ratio_of_means: stats.Estimate | None
    spread: Spread | None
    without_outliers: Trimmed | None
    counted: Counted | None
    rounded: stats.Bounds | None
    borrowed: Borrowed | None
    p_value: float | None
    p_adjusted: float | None
    method: str
    caveats: tuple[Caveat, ...]

    def card(self) -> tuple[str, Rows]:
        """Tell both values, the change with its interval, and how it was made."""
        quantity = self.question.planned.metric
        values = tuple(
            (name, "-" if one is None else for_people(one.mean, quantity.unit))
            for name, one in (("baseline", self.baseline), (self.variant, self.patched))
        )
        place = f"{self.question.workload} on {self.question.device}"
        return f"{quantity.name}, {place}", (
            *values,
            ("change", self._change()),
            ("runs", f"{self.n_baseline} and {self.n_patched}"),
            ("counted", f"{self.unit_of_analysis}, {self.method}"),
            *((str(one.severity), one.text) for one in self.caveats),
        )

    def _change(self) -> str:
        if self.change is None:
            return "not computed"
        ends = (self.change.value, self.change.low, self.change.high)
        level = f"{100 * self.change.confidence:g} %"
        if self.scale is Scale.RATIO:
            value, low, high = with_interval(*(100 * one for one in ends), floor=-100.0)
            return f"{value} % [{low}, {high}], {level} interval"
        value, low, high = (f"{one:+.4g}" for one in ends)
        unit = self.question.planned.metric.unit
        return f"{value} [{low}, {high}] in {unit}, {level} interval"


def compare(
    units: pd.DataFrame,
    asked: Iterable[Question],
    design: Design,
    doubts: Sequence[Doubt] = (),
    bank: Bank = noise.EMPTY,
) -> tuple[Comparison, ...]:
    """Compare every patched variant with the baseline, one question at a time.

    Parameters
    ----------
    units
        As ``tables.per_unit`` returns them.
    asked
        The questions, as ``tables.questions`` returns them; those without units give
        a comparison without a change.
    doubts
        What the checks found; each comparison carries those that concern it.
    bank
        What another study says of the noise of these devices.

    Raises
    ------
    GrainError
        If the table is not one of experimental units.
    ValueError
        If one of its values is not finite.
    """
    _require_units(units)
    found = []
    for question in asked:
        rows = units[units["question"] == question.key]
        caveats = tuple(one.caveat for one in doubts if one.concerns(question))
        for variant in _present(rows, design):
            one = _compare(rows, question, variant, design)
            one = replace(one, caveats=one.caveats + caveats)
            one = _drifting(_rechecked(one, rows, design), rows, design)
            found.append(_with_lent(one, rows, bank, design))
    return tuple(_beside_noise(list(_adjusted(found)), design, bank))


def _present(rows: pd.DataFrame, design: Design) -> list[str]:
    """Variants to compare; a placebo or a copy of the baseline only where it is."""
    copies = {design.placebo, design.base2}
    here = set(rows["variant"])
    return [one for one in design.patched if one not in copies or one in here]


def _require_units(units: pd.DataFrame) -> None:
    if units.attrs.get("grain") != UNIT_GRAIN or list(units) != list(UNIT_COLUMNS):
        raise GrainError(
            "compare needs the table of experimental units that tables.per_unit makes; "
            "rows of intervals or runs of another table are not replicates"
        )
    if not np.isfinite(units["value"].to_numpy(dtype=float)).all():
        raise ValueError("the table of units has a value that is not finite")
    names = ["question", "variant", "unit"]
    if units.duplicated(names).any():
        twice = units.loc[units.duplicated(names), "unit"].iloc[0]
        raise GrainError(f"unit {twice!r} stands twice in the table for one question")


def margin_on_scale(
    comparison: Comparison, margin: Margin | None = None
) -> float | None:
    """Return the margin on the scale of the analysis, always positive.

    On logs a margin of m percent is ln(1 + m), the same size in both directions. A
    margin of the other scale is converted with the mean of the baseline; None where
    that is zero.

    Parameters
    ----------
    margin
        The one that the metric was declared with, if None.
    """
    margin = margin or comparison.question.planned.margin
    base = comparison.baseline.mean if comparison.baseline else 0.0
    if comparison.scale is Scale.RATIO and margin.scale is Scale.RATIO:
        return math.log1p(margin.value)
    if comparison.scale is Scale.RATIO:
        return math.log1p(margin.value / base) if base > 0 else None
    if margin.scale is Scale.DIFFERENCE:
        per_packet = comparison.question.planned.metric.kind is Kind.COUNT
        return None if per_packet and bare_count(comparison) else margin.value
    return abs(margin.value * base) or None


def bare_count(comparison: Comparison) -> bool:
    """Say whether a count has no exposure, so that a margin per packet is no use."""
    values = (comparison.baseline, comparison.patched)
    return any(one is not None and one.high > 1 for one in values)


def goal_of(planned: Planned, role: Role) -> Goal:
    """Return what is to be shown about the margin of a metric in this role."""
    if role is Role.GUARD:
        return Goal.NO_HARM
    same = role is Role.CONTROL or planned.expect == "same"
    return Goal.SAME if same else Goal.CHANGE


def error_rates(goal: Goal, alpha: float, power: float) -> tuple[float, float]:
    """Alpha, as of a two-sided test, and power of the test for a goal.

    That harm is below its margin is a one-sided test whose shift is the margin where
    there is no harm. Equivalence needs two of them, each of which may fail in half of
    the failures (Julious 2004, equation 20: power (1 + power) / 2).
    """
    if goal is Goal.CHANGE:
        return alpha, power
    return ONE_SIDED_ALPHA, (1 + power) / 2 if goal is Goal.SAME else power


@dataclass(frozen=True, kw_only=True)
class _Arms:
    """The units of both variants, and their means in the blocks that hold both."""

    base: pd.DataFrame
    new: pd.DataFrame
    pairs: pd.DataFrame
    scale: Scale

    @property
    def paired(self) -> bool:
        return len(self.pairs) >= 2

    @property
    def few(self) -> bool:
        return not self.paired and min(len(self.base), len(self.new)) < 2

    @property
    def differences(self) -> companions.Values:
        found = self.pairs["patched"] - self.pairs["baseline"]
        return found.to_numpy(dtype=float)

    @property
    def sides(self) -> tuple[companions.Values, companions.Values]:
        return (
            companions.analysis(self.base["value"], self.scale),
            companions.analysis(self.new["value"], self.scale),
        )


def _arms(base: pd.DataFrame, new: pd.DataFrame, scale: Scale) -> _Arms:
    return _Arms(base=base, new=new, pairs=_pairs(base, new, scale), scale=scale)


def _compare(
    rows: pd.DataFrame, question: Question, variant: str, design: Design
) -> Comparison:
    base = rows[rows["variant"] == design.baseline]
    new = rows[rows["variant"] == variant]
    blank = _blank(base, new, question, variant)
    if question.role is Role.MECHANISM and question.problem:
        return blank
    if question.planned.metric.kind in outcomes.KINDS:
        return _outcome(blank, base, new, 1 - design.alpha)
    arms = _arms(base, new, blank.scale)
    if arms.few:
        return replace(blank, rounded=_rounded(blank, arms))
    return _with_companions(_estimated(blank, arms, design), arms, design)


def _outcome(
    blank: Comparison, base: pd.DataFrame, new: pd.DataFrame, confidence: float
) -> Comparison:
    """Compare what passes or fails, or exact numbers: without blocks, without a t."""
    old, patched = (rows["value"].to_numpy(dtype=float) for rows in (base, new))
    if not (old.size and patched.size):
        return blank
    if blank.question.planned.metric.kind is Kind.EXACT:
        change = outcomes.exact(old, patched, confidence)
        caveats = blank.caveats + (() if change else (_NOT_EXACT,))
        return replace(blank, change=change, method="equality", caveats=caveats)
    found = outcomes.passed(old, patched, confidence)
    if found is None:
        return replace(blank, caveats=(*blank.caveats, _NOT_PASSFAIL))
    return replace(
        blank,
        change=found[0],
        p_value=found[1],
        method="Fisher's exact test, Newcombe interval of the difference",
    )


_NOT_EXACT: Final = Caveat(
    code="not-exact",
    severity=Severity.UNUSABLE,
    text="declared exact, but the runs of a variant do not give the same number",
    todo="look for what differs between the runs, or declare another kind",
)
_NOT_PASSFAIL: Final = Caveat(
    code="not-passfail",
    severity=Severity.UNUSABLE,
    text="declared as pass or fail, but a value is neither 0 nor 1",
    todo="give 1 where the run had the outcome, 0 where it had not",
)


def _blank(
    base: pd.DataFrame, new: pd.DataFrame, question: Question, variant: str
) -> Comparison:
    """Describe both variants, without a change."""
    scale = _scale(question, pd.concat([base["value"], new["value"]]))
    return Comparison(
        question=question,
        variant=variant,
        n_baseline=int(base["runs"].sum()),
        n_patched=int(new["runs"].sum()),
        blocks=0,
        unit_of_analysis=question.unit,
        baseline=_summary(base["value"]),
        patched=_summary(new["value"]),
        scale=scale,
        change=None,
        effect=None,
        companion=None,
        ratio_of_means=None,
        spread=None,
        without_outliers=None,
        counted=None,
        rounded=None,
        borrowed=None,
        p_value=None,
        p_adjusted=None,
        method="",
        caveats=_scale_caveats(question, scale),
    )


def _estimated(blank: Comparison, arms: _Arms, design: Design) -> Comparison:
    if arms.paired:
        return _by_block(blank, arms, design)
    return _unpaired(blank, arms, design)


def _rounded(one: Comparison, arms: _Arms) -> stats.Bounds | None:
    """Return the ratio of the means with the bounds that the printed digits leave."""
    steps = [rows["resolution"].max() for rows in (arms.base, arms.new)]
    if one.baseline is None or one.patched is None or not min(steps) > 0:
        return None
    base, new = (
        stats.within(side.mean, step)
        for side, step in zip((one.baseline, one.patched), steps, strict=True)
    )
    return stats.quotient(new, base) if base.value > 0 and new.value >= 0 else None


def _with_companions(one: Comparison, arms: _Arms, design: Design) -> Comparison:
    """Add the second opinions."""
    confidence, ratio = 1 - design.alpha, one.scale is Scale.RATIO
    return replace(
        one,
        companion=(
            companions.of_blocks(arms.differences, one.scale, confidence)
            if arms.paired
            else companions.of_arms(*arms.sides, one.scale, confidence)
        ),
        ratio_of_means=(
            companions.ratio_of_means(arms.base, arms.new, confidence)
            if ratio and not arms.paired
            else None
        ),
        spread=companions.spread(arms.base, arms.new, one.scale),
        without_outliers=_trimmed(one, arms, design),
        counted=(
            companions.counted(arms.base, arms.new, confidence)
            if one.question.planned.metric.kind in {Kind.COUNT, Kind.PROPORTION}
            else None
        ),
        caveats=one.caveats + _unequal(one),
    )


def _trimmed(one: Comparison, arms: _Arms, design: Design) -> Trimmed | None:
    """Estimate once more without the outliers; None where there are none."""
    base, new = (companions.outlying(rows) for rows in (arms.base, arms.new))
    if not (base or new):
        return None
    rest = _arms(
        arms.base[~arms.base["unit"].isin(base)],
        arms.new[~arms.new["unit"].isin(new)],
        one.scale,
    )
    if rest.few or rest.paired is not arms.paired:
        return None
    change = _estimated(one, rest, design).change
    return change and Trimmed(change=change, left_out=(*base, *new))


def _unequal(one: Comparison) -> tuple[Caveat, ...]:
    if one.blocks or one.baseline is None or one.patched is None:
        return ()
    few, many = sorted((one.baseline.n, one.patched.n))
    if many <= UNEQUAL_N * few:
        return ()
    return (
        Caveat(
            code="unequal-n",
            severity=Severity.NOTE,
            text=f"{one.baseline.n} units of the baseline and {one.patched.n} of "
            f"{one.variant}: the smaller number decides what can be shown",
            todo="measure the variants equally often",
        ),
    )


def described(
    question: Question, variant: str, values: tuple[Sequence[float], Sequence[float]]
) -> Comparison:
    """Describe the values of both variants, one a run, without a change."""
    base, new = (
        pd.DataFrame({"value": side, "runs": 1}, dtype=float) for side in values
    )
    return _blank(base, new, question, variant)


def _scale(question: Question, values: pd.Series) -> Scale:
    """Ratio for positive kinds; a zero has no ratio, so then the difference."""
    wanted = question.planned.metric.scale
    return wanted if bool((values > 0).all()) else Scale.DIFFERENCE


def _scale_caveats(question: Question, scale: Scale) -> tuple[Caveat, ...]:
    if scale is question.planned.metric.scale:
        return ()
    text = "a value is zero or negative: the change is a difference, not a ratio"
    return (Caveat(code="no-ratio", severity=Severity.NOTE, text=text),)


def _pairs(base: pd.DataFrame, new: pd.DataFrame, scale: Scale) -> pd.DataFrame:
    """Mean of each variant in every block that holds both, on the analysis scale."""
    if not (base["block"].any() and new["block"].any()):
        return pd.DataFrame({"baseline": [], "patched": []}, dtype=float)
    means = [
        rows.assign(value=companions.log(rows["value"], scale))
        .loc[rows["block"] != ""]
        .groupby("block")["value"]
        .mean()
        for rows in (base, new)
    ]
    return pd.concat(means, axis=1, join="inner", keys=["baseline", "patched"])


def _by_block(blank: Comparison, arms: _Arms, design: Design) -> Comparison:
    base, new, pairs = arms.base, arms.new, arms.pairs
    floor = math.hypot(*(_floor(rows, blank.scale) for rows in (base, new)))
    effect = stats.paired(arms.differences, floor=floor)
    confidence = 1 - design.alpha
    alone = sorted({*base["block"], *new["block"]} - set(pairs.index) - {""})
    inside = pd.concat([base, new])
    unmatched = inside[~inside["block"].isin(pairs.index)]
    name = design.block or "block"
    filled = _filled(blank, effect, confidence)
    compared = inside[inside["block"].isin(pairs.index)]
    old, patched = (
        compared[compared["variant"] == rows["variant"].iloc[0]] for rows in (base, new)
    )
    return replace(
        filled,
        n_baseline=int(old["runs"].sum()),
        n_patched=int(patched["runs"].sum()),
        baseline=_summary(old["value"]),
        patched=_summary(patched["value"]),
        blocks=len(pairs),
        unit_of_analysis=f"{name} (mean of its {blank.question.unit}s per variant)",
        method=f"paired t interval of {name} differences"
        + (" of logs" if blank.scale is Scale.RATIO else ""),
        caveats=filled.caveats + _unmatched(alone, len(unmatched)),
    )


def _unmatched(blocks: Sequence[str], count: int) -> tuple[Caveat, ...]:
    if not count:
        return ()
    named = f" (block {', '.join(map(str, blocks[:5]))})" if blocks else ""
    return (
        Caveat(
            code="unmatched-block",
            severity=Severity.DOUBT,
            text=f"outside every block with both variants: {count_of(count, 'unit')}"
            f"{named}; not in the paired interval",
            todo="measure both variants in every block",
        ),
    )


def _unpaired(blank: Comparison, arms: _Arms, design: Design) -> Comparison:
    floors = (_floor(arms.base, blank.scale), _floor(arms.new, blank.scale))
    effect = stats.welch(*arms.sides, floors=floors)
    return replace(
        _filled(blank, effect, 1 - design.alpha),
        method="Welch t interval" + (" of logs" if blank.scale is Scale.RATIO else ""),
    )


def _filled(blank: Comparison, effect: stats.Effect, confidence: float) -> Comparison:
    return replace(
        blank,
        effect=effect,
        change=companions.shown(effect.interval(confidence), blank.scale),
        p_value=effect.p_value,
        caveats=blank.caveats + ((_NO_SPREAD,) if effect.standard_error == 0 else ()),
    )


_NO_SPREAD: Final = Caveat(
    code="no-spread",
    severity=Severity.DOUBT,
    text="no spread is visible and the last digit of the tool is not known: the "
    "interval is a single point and says nothing about noise",
    todo="use output with more digits",
)


def _floor(rows: pd.DataFrame, scale: Scale) -> float:
    """Spread that rounding alone leaves: last digit over the square root of twelve."""
    step = rows["resolution"].max()
    # one event in what it was counted in; a mean over calls has no such step
    counted = scale is Scale.DIFFERENCE and rows["exposure"].gt(0).any()
    if not step > 0 and counted:
        step = 1 / rows["exposure"].median()
    if not step > 0:
        return 0.0
    mean = float(rows["value"].mean()) if scale is Scale.RATIO else 1.0
    return stats.resolution_floor(float(step), mean)


def _deviation(numbers: companions.Values) -> float:
    """Return the standard deviation; squares of huge values do not overflow."""
    if len(numbers) < 2:
        return 0.0
    power = companions.power_of_two(numbers)
    return math.ldexp(float(np.ldexp(numbers, -power).std(ddof=1)), power)


def _summary(values: pd.Series) -> Summary | None:
    """Describe the values of one variant; None where there are none."""
    if values.empty:
        return None
    numbers = values.to_numpy(dtype=float)
    positive = bool((numbers > 0).all())
    return Summary(
        n=len(numbers),
        mean=float(numbers.mean()),
        geometric_mean=float(np.exp(np.log(numbers).mean())) if positive else None,
        median=float(np.median(numbers)),
        sd=_deviation(numbers),
        low=float(numbers.min()),
        high=float(numbers.max()),
    )


# ---- over several comparisons -------------------------------------------------------


def _adjusted(found: Sequence[Comparison]) -> Iterator[Comparison]:
    """Adjust p within the families of STATISTICS 3.14: Holm, diagnostics by BH."""
    families: dict[tuple[Role, str, str, bool], list[int]] = {}
    for number, one in enumerate(found):
        families.setdefault(_family(one), []).append(number)
    adjusted: dict[int, float | None] = {}
    for (role, *_), numbers in families.items():
        exploring = role is Role.DIAGNOSTIC
        adjust = stats.benjamini_hochberg if exploring else stats.holm
        values = adjust([_p_in_family(found[number]) for number in numbers])
        adjusted |= dict(zip(numbers, values, strict=True))
    for number, one in enumerate(found):
        yield replace(one, p_adjusted=adjusted[number])


def _family(one: Comparison) -> tuple[Role, str, str, bool]:
    """Guards are a family within their device, all others over the devices.

    Published values are never in one family with measured ones.
    """
    role = one.question.role
    device = one.question.device if role is Role.GUARD else ""
    return role, one.variant, device, is_published(one.question.device)


def _p_in_family(one: Comparison) -> float | None:
    """P of the t test; of a guard without one the exact p of the companion."""
    guard = one.question.role is Role.GUARD
    if one.p_value is None and guard and one.companion is not None:
        return one.companion.p_value
    return one.p_value


def _rechecked(one: Comparison, rows: pd.DataFrame, design: Design) -> Comparison:
    """Lift the cap of the order where the baseline came back (STATISTICS 3.12).

    Only where the variants were measured as A..A B..B A..A, and the interval of the
    last baseline against the first lies within the margin.
    """
    if one.effect is None:
        return one
    capped = [caveat for caveat in one.caveats if caveat.code == "sequential"]
    again = recheck(rows, one, design) if capped else None
    margin = margin_on_scale(one)
    if again is None or margin is None or not _inside(again, margin):
        return one
    change = companions.shown(again, one.scale)
    lifted = Caveat(
        code="order-rechecked",
        severity=Severity.NOTE,
        text="the baseline measured again at the end is within the margin of "
        f"{one.question.planned.margin.text} of the first "
        f"({in_numbers(change, one.scale)}): {one.variant} is judged though it did not "
        "take turns",
        todo="let the variants take turns (ABBA) within short blocks",
    )
    kept = tuple(caveat for caveat in one.caveats if caveat not in capped)
    return replace(one, caveats=(lifted, *kept))


def _drifting(one: Comparison, rows: pd.DataFrame, design: Design) -> Comparison:
    """Cap a change within blocks that another place in them may have made.

    Where one variant came later in most of its blocks (by more than half of the places
    between them, on average), a steady drift over the session is part of the
    difference: its slope over the blocks, times the lead. Where that slope is shown,
    and without it the interval would lie on another side of no change, time and patch
    cannot be told apart.
    """
    untimed = any(caveat.code == "order-unknown" for caveat in one.caveats)
    if one.effect is None or one.blocks < DRIFT_BLOCKS or untimed:
        return one
    pairs, places = (_by_variant(one, rows, design, x) for x in ("value", "order"))
    leads = places["patched"] - places["baseline"]
    lead, middles = float(leads.mean()), places.mean(axis=1)
    turned = abs(lead) <= leads.abs().mean() / 2
    if turned or len(set(middles)) == 1:
        return one
    drift = stats.slope(pairs.mean(axis=1), middles)
    confidence = 1 - design.alpha
    rest = replace(
        one.effect,
        value=one.effect.value - lead * drift.value,
        standard_error=math.hypot(
            one.effect.standard_error, lead * drift.standard_error
        ),
        df=min(one.effect.df, drift.df),
        method="paired t interval without a steady drift",
    )
    seen, left = (x.interval(confidence) for x in (one.effect, rest))
    if drift.p_value >= SENSITIVE_LOW or _side(seen) == _side(left):
        return one
    told = in_numbers(companions.shown(left, one.scale), one.scale)
    caveat = Caveat(
        code="drift-in-order",
        severity=Severity.CAP,
        text=f"{one.variant} came {abs(lead):.2g} places "
        f"{'later' if lead > 0 else 'earlier'} in its blocks on average, and the "
        f"values drift over the session: without a steady drift the change is {told}",
        todo="turn the order round in every other block (ABBA)",
    )
    return replace(one, caveats=(*one.caveats, caveat))


def _by_variant(
    one: Comparison, rows: pd.DataFrame, design: Design, column: str
) -> pd.DataFrame:
    """Mean value, on the analysis scale, or place of each variant in every block."""
    base, new = (rows[rows["variant"] == x] for x in (design.baseline, one.variant))
    if column == "value":
        return _pairs(base, new, one.scale)
    old, patched = (x.assign(value=x[column].astype(float)) for x in (base, new))
    return _pairs(old, patched, Scale.DIFFERENCE)


def _side(estimate: stats.Estimate) -> int:
    return int(estimate.low > 0) - int(estimate.high < 0)


def _inside(estimate: stats.Estimate, margin: float) -> bool:
    return -margin < estimate.low and estimate.high < margin


def recheck(
    rows: pd.DataFrame, one: Comparison, design: Design
) -> stats.Estimate | None:
    """Compare the last units of the baseline with the first, on the analysis scale.

    None unless the units stand as A..A B..B A..A in time, with two or more of the
    baseline at each end.
    """
    both = rows[rows["variant"].isin([design.baseline, one.variant])]
    both = both.sort_values("order", kind="stable")
    groups = [(variant, len(list(same))) for variant, same in groupby(both["variant"])]
    names = [variant for variant, _ in groups]
    if names != [design.baseline, one.variant, design.baseline]:
        return None
    first, last = both.iloc[: groups[0][1]], both.iloc[-groups[2][1] :]
    if min(len(first), len(last)) < 2:
        return None
    before, after = (
        companions.analysis(rows["value"], one.scale) for rows in (first, last)
    )
    floors = (_floor(first, one.scale), _floor(last, one.scale))
    return stats.welch(before, after, floors=floors).interval(1 - design.alpha)


def _beside_noise(
    found: Sequence[Comparison], design: Design, bank: Bank
) -> Iterator[Comparison]:
    """Say where a margin is too small for what a build differs by from itself."""
    for one, known in with_noise(found, design, bank, study=""):
        yield replace(one, caveats=one.caveats + _untestable(one, known, design))


def with_noise(
    found: Sequence[Comparison], design: Design, bank: Bank, *, study: str
) -> Iterator[tuple[Comparison, Noise | None]]:
    """Yield each comparison with the noise known of it, on its own scale.

    That of a copy of the baseline in the study itself, which is named ``study`` then,
    before that of another study.
    """
    copies = {one.question.key: one for one in found if one.variant == design.base2}
    for one in found:
        copy = copies.get(one.question.key)
        own = noise_shown(copy, design, study=study) if copy else None
        known = own or noise_beside(one, bank)
        yield one, known if known and known.scale is one.scale else None


def noise_shown(one: Comparison, design: Design, *, study: str) -> Noise | None:
    """Return what a comparison of a build with itself tells; None without a change."""
    if one.effect is None or one.baseline is None:
        return None
    interval = one.effect.interval(1 - design.alpha)
    mean = one.baseline.mean
    return Noise(
        study=study,
        series=noise.series_of(one.question),
        scale=one.scale,
        half_width=(interval.high - interval.low) / 2,
        sd=one.baseline.sd / mean if mean > 0 else None,
        units=float(one.blocks) or units_each(one),
        paired=one.blocks > 0,
        alpha=design.alpha,
    )


def noise_beside(one: Comparison, bank: Bank) -> Noise | None:
    """Return the noise of another study with as many units as this comparison has.

    As many as there, where blocks pair the variants in one of the two only.
    """
    known = bank.noise_of(one.question, one.scale)
    if known is None or one.effect is None:
        return None
    if known.paired is not (one.blocks > 0):
        return known
    return known.with_units(float(one.blocks) or units_each(one))


def units_each(one: Comparison) -> float:
    """Harmonic mean of the numbers of units of both variants."""
    counts = [side.n for side in (one.baseline, one.patched) if side]
    return len(counts) / sum(1 / count for count in counts)


def _untestable(
    one: Comparison, known: Noise | None, design: Design
) -> tuple[Caveat, ...]:
    margin = margin_on_scale(one)
    own = one.variant in {design.base2, design.placebo}
    if own or margin is None or known is None:
        return ()
    if margin >= known.least_margin:
        return ()
    least = math.expm1(known.least_margin) if one.scale is Scale.RATIO else None
    size = f" ({100 * least:.2g} %)" if least is not None else ""
    whose = f"one build differs by from itself in {known.study}"
    return (
        Caveat(
            code="aa-noise",
            severity=Severity.DOUBT,
            text=f"the margin of {one.question.planned.margin.text} is not testable "
            "with this n: it is below twice what "
            f"{whose if known.study else 'two copies of the baseline may differ by'}"
            f"{size}",
            todo="measure more, or declare a larger margin",
        ),
    )


def _with_lent(
    one: Comparison, rows: pd.DataFrame, bank: Bank, design: Design
) -> Comparison:
    """Add the change with a spread that another study lends, where this one has none.

    Where the variants took turns within one boot that both share, what boots differ by
    cancels: nothing is added.
    """
    lent = bank.lent_to(one.question, one.scale)
    if lent is None or one.baseline is None or one.patched is None:
        return one
    base = rows[rows["variant"] == design.baseline]
    new = rows[rows["variant"] == one.variant]
    confidence = 1 - design.alpha
    codes = {caveat.code for caveat in one.caveats}
    if one.effect is not None:
        apart = "one-boot" in codes
        boots = noise.with_boots(one.effect, lent, confidence=confidence)
        return replace(one, borrowed=boots) if apart else one
    old, patched = _arms(base, new, one.scale).sides
    borrowed = noise.without_spread(
        float(patched.mean() - old.mean()),
        lent,
        runs=float(min(base["runs"].min(), new["runs"].min())),
        floor=max(_floor(base, one.scale), _floor(new, one.scale)),
        confidence=confidence,
    )
    return replace(one, borrowed=borrowed)


def in_numbers(change: stats.Estimate, scale: Scale) -> str:
    """Write a change plainly: ``+0.1 % [-0.3, +0.5]``."""
    size, unit = (100.0, " %") if scale is Scale.RATIO else (1.0, "")
    numbers = (change.value, change.low, change.high)
    value, low, high = with_interval(*(size * number for number in numbers))
    return f"{value}{unit} [{low}, {high}]"


def sensitive(one: Comparison) -> bool:
    """Say whether the answer depends on a few units (STATISTICS 3.3)."""
    if one.companion is None or one.p_value is None or one.change is None:
        return False
    found, ranked = one.p_value, one.companion.p_value
    small = min(one.n_baseline, one.n_patched) < 4 or 0 < one.blocks < 6
    disagree = (found < SENSITIVE_LOW and ranked > SENSITIVE_HIGH) or (
        ranked < SENSITIVE_LOW and found > SENSITIVE_HIGH
    )
    shift = one.companion.estimate.value
    outside = not one.change.low <= shift <= one.change.high
    turned = found < SENSITIVE_LOW and shift * one.change.value < 0
    return (disagree and not small) or outside or turned
