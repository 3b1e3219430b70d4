"""A comparison and its margin become a verdict: rules, and no words.

The rules are those of ``docs/statistics.md``.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from patchstudy import outcomes, stats
from patchstudy.cards import Carded, Rows
from patchstudy.checks import NEAR_CEILING
from patchstudy.compare import Comparison, sensitive
from patchstudy.metrics import Kind
from patchstudy.records import Severity
from patchstudy.study import Design, Planned, Role

#: Level of the one-sided bound of harm, and of the equivalence test (STATISTICS 3.13).
ONE_SIDED: Final = 0.95
#: Adjusted p below which shown harm breaks a guard (STATISTICS 3.13).
BROKEN_P: Final = 0.05
#: Qualifier of a change that a ceiling cuts off: what is seen is a lower bound.
AT_LEAST: Final = "at least"
#: Who reaches the ceiling where a rise, or a fall, is a lower bound.
RISES: Final = "the patched variant reaches the ceiling"
FALLS: Final = "the baseline reaches the ceiling"
#: Qualifier of a metric of which neither more nor less is better.
NO_DIRECTION: Final = "no better direction"
#: Qualifier of a change that a build of the same source may show as well.
LAYOUT_NOISE: Final = "within layout noise"
#: Qualifier of the cost that answers for a rate at its ceiling.
SUBSTITUTE: Final = "substitute"
#: Qualifier of a saturated metric for which nothing answers.
NOT_TESTABLE: Final = "not testable on this link"
#: Qualifier of a primary metric of which some runs failed.
RUNS_FAILED: Final = "runs failed"
#: Qualifier of a CPU share that was measured while the rate differed, and of the cost
#: that answers in its place.
UNEQUAL_RATE: Final = "at unequal rate"
SHARE_SUBSTITUTE: Final = "in place of a CPU share"
#: Qualifier of variants that were booted once each: no verdict holds for a kernel.
ONE_BOOT_EACH: Final = "within one boot of each"
#: Qualifier of what only the spread of another study shows.
SUGGESTIVE: Final = "suggestive"
#: Qualifiers that say how large a change is against its margin.
SIZES: Final = frozenset(
    {"material", "at most small", "size uncertain", "size not judged", AT_LEAST}
)


class Verdict(StrEnum):
    """The six honest answers about one metric."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    SATURATED = "saturated"
    NOT_ASSESSABLE = "not assessable"


class Guarded(StrEnum):
    """What is known of the harm to a guard."""

    SAFE = "safe"
    HARM = "harm, within margin"
    BROKEN = "broken"
    UNRESOLVED = "unresolved"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Finding(Carded):
    """A comparison with its verdict.

    Attributes
    ----------
    guarded
        For a guard; None otherwise.
    qualifiers
        What belongs to the verdict: ``material``, ``fragile``, ``one build each``.
    margin
        The margin on the scale of the analysis; None where it cannot be expressed.
    named
        The variant as the sentence names it; empty where only one is compared.
    sentence
        The finding in one sentence.
    layout_noise
        How much builds that differ in code placement only may change it, either way,
        on the scale of the analysis (STATISTICS 3.7); None where that is not known.
    """

    comparison: Comparison
    role: Role
    verdict: Verdict
    guarded: Guarded | None
    qualifiers: tuple[str, ...]
    margin: float | None
    named: str
    sentence: str
    layout_noise: float | None = None

    @property
    def planned(self) -> Planned:
        """The metric as it was declared."""
        return self.comparison.question.planned

    def card(self) -> tuple[str, Rows]:
        """Tell the verdict, what belongs to it, and the comparison behind it."""
        title, rows = self.comparison.card()
        said = ", ".join([str(self.verdict), *self.qualifiers])
        guard = (("guard", str(self.guarded)),) if self.guarded else ()
        margin = ("margin", self.planned.margin.text)
        return f"{self.role}: {title}", (("verdict", said), *guard, margin, *rows)


def verdict_of(
    comparison: Comparison, margin: float | None, limit: float | None
) -> tuple[Verdict, tuple[str, ...]]:
    """Apply STATISTICS 3.5: the first rule that fits."""
    effect, change = comparison.effect, comparison.change
    sign = comparison.question.planned.metric.sign
    kind = comparison.question.planned.metric.kind
    if cap := cap_of(comparison):
        few = comparison.change is None and kind not in outcomes.KINDS
        return Verdict.NOT_ASSESSABLE, ("too few units" if few else cap,)
    if change is None or (effect is None and kind not in outcomes.KINDS):
        return Verdict.NOT_ASSESSABLE, ("too few units",)
    if sign == 0:
        return Verdict.NOT_ASSESSABLE, (NO_DIRECTION,)
    if effect is None:
        return _of_outcome(comparison, change, margin)
    wide = effect.interval(change.confidence)
    hidden = _hidden(comparison, limit)
    rise, fall = wide.low > 0, wide.high < 0
    if hidden and not {RISES: rise, FALLS: fall}.get(hidden, False):
        return Verdict.SATURATED, (hidden,)
    low, high = sorted((sign * wide.low, sign * wide.high))
    verdict, size = _by_interval(effect, (low, high), margin)
    return verdict, _at_least(size) if hidden else size


def _by_interval(
    effect: stats.Effect, wide: tuple[float, float], margin: float | None
) -> tuple[Verdict, tuple[str, ...]]:
    low, high = wide
    if low > 0:
        return Verdict.BETTER, _size(low, high, margin)
    if high < 0:
        return Verdict.WORSE, _size(-high, -low, margin)
    narrow = effect.interval(2 * ONE_SIDED - 1)
    if margin is not None and -margin < narrow.low and narrow.high < margin:
        return Verdict.EQUIVALENT, ()
    return Verdict.INCONCLUSIVE, ()


def _of_outcome(
    comparison: Comparison, change: stats.Estimate, margin: float | None
) -> tuple[Verdict, tuple[str, ...]]:
    """Judge what passes or fails, by Fisher's p, and exact numbers, by equality."""
    sign = comparison.question.planned.metric.sign
    low, high = sorted((sign * change.low, sign * change.high))
    if comparison.question.planned.metric.kind is Kind.EXACT:
        if change.value == 0:
            return Verdict.EQUIVALENT, ()
        better = sign * change.value > 0
        size = _size(abs(change.value), abs(change.value), margin)
        return (Verdict.BETTER if better else Verdict.WORSE), size
    p_value = comparison.p_value
    if p_value is not None and p_value < 1 - change.confidence:
        if sign * change.value > 0:
            return Verdict.BETTER, _size(low, high, margin)
        return Verdict.WORSE, _size(-high, -low, margin)
    narrow = share_change(comparison, 2 * ONE_SIDED - 1)
    if margin is None or narrow is None:
        return Verdict.INCONCLUSIVE, ()
    same = -margin < narrow.low and narrow.high < margin
    return (Verdict.EQUIVALENT if same else Verdict.INCONCLUSIVE), ()


def share_change(comparison: Comparison, confidence: float) -> stats.Estimate | None:
    """Return the change of a share of passed units with another confidence."""
    sides = [
        (round(one.mean * one.n), one.n)
        for one in (comparison.baseline, comparison.patched)
        if one is not None
    ]
    return stats.newcombe(sides[0], sides[1], confidence) if len(sides) == 2 else None


def _size(near: float, far: float, margin: float | None) -> tuple[str, ...]:
    if margin is None:
        return ("size not judged",)
    if near > margin:
        return ("material",)
    return ("at most small",) if far < margin else ("size uncertain",)


def cap_of(comparison: Comparison) -> str:
    """Return why no verdict can be drawn from these data, or nothing."""
    codes = {
        one.code
        for one in comparison.caveats
        if one.severity in {Severity.CAP, Severity.UNUSABLE}
    }
    for code, words in (
        ("impossible", "impossible value"),
        ("not-exact", "not exact"),
        ("not-passfail", "neither 0 nor 1"),
        ("sequential", "confounded with time order"),
        ("drift-in-order", "confounded with time order"),
        ("treatment-same", "treatment not verified"),
        ("same-build", "treatment not verified"),
        ("copied-run", "copied measurement"),
        ("misplaced-run", "runs out of place"),
        ("wrong-unit", "units mixed up"),
    ):
        if code in codes:
            return words
    return ""


def _hidden(comparison: Comparison, limit: float | None) -> str:
    """Say who reaches the ceiling, or nothing (STATISTICS 3.8).

    A ceiling hides a change. A rise where only the patched variant reaches it stands,
    and so does a fall where only the baseline does: both are lower bounds.
    """
    if limit is None or comparison.baseline is None or comparison.patched is None:
        return ""
    base = comparison.baseline.median >= NEAR_CEILING * limit
    new = comparison.patched.median >= NEAR_CEILING * limit
    if base and new:
        return "both variants reach the ceiling"
    return RISES if new else FALLS if base else ""


def _at_least(size: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words for a change of which only the lower bound is known."""
    known = ("size uncertain" if one == "at most small" else one for one in size)
    return (*known, AT_LEAST)


def qualifiers_of(
    comparison: Comparison, verdict: Verdict, design: Design
) -> Iterator[str]:
    """Yield what belongs to a verdict beside its size."""
    codes = {one.code for one in comparison.caveats}
    if verdict is Verdict.NOT_ASSESSABLE and comparison.change is None:
        lent = comparison.borrowed
        if lent is not None and lent.shows and not cap_of(comparison):
            yield SUGGESTIVE
        return
    units = (
        [comparison.blocks]
        if comparison.blocks
        else [
            summary.n
            for summary in (comparison.baseline, comparison.patched)
            if summary
        ]
    )
    tested = comparison.question.planned.metric.kind not in outcomes.KINDS
    thin = tested and (min(units, default=0) == 2 or "no-spread" in codes)
    if thin or sensitive(comparison):
        yield "fragile"
    for code, words in (
        ("one-boot", ONE_BOOT_EACH),
        ("shared-boot", "within one boot"),
        ("one-build", "one build each"),
        ("order-rechecked", "order re-checked"),
    ):
        if code in codes:
            yield words
    copies = {design.base2: "A/A noise", design.placebo: "layout noise"}
    if comparison.variant in copies:
        yield copies[comparison.variant]


def guarded_of(finding: Finding) -> Guarded:
    """Apply STATISTICS 3.13 to the harm: the effect in the worse direction."""
    comparison, effect = finding.comparison, finding.comparison.effect
    if comparison.question.problem or not (comparison.baseline and comparison.patched):
        return Guarded.NOT_MEASURED
    if UNEQUAL_RATE in finding.qualifiers or cap_of(comparison):
        return Guarded.UNRESOLVED
    sign = comparison.question.planned.metric.sign
    if comparison.change is None or sign == 0:
        return Guarded.UNRESOLVED
    if effect is None:
        return _guarded_outcome(finding)
    worst = -effect.lower(ONE_SIDED) if sign > 0 else effect.upper(ONE_SIDED)
    return _by_harm(finding, -sign * effect.value, worst)


def _by_harm(finding: Finding, harm: float, worst: float) -> Guarded:
    """Judge harm by its estimate and its bound; one boot of each breaks nothing.

    Where the margin cannot be expressed, only what excludes any harm is safe.
    """
    shown = finding.verdict is Verdict.WORSE
    if finding.margin is None:
        return Guarded.SAFE if worst < 0 else Guarded.UNRESOLVED
    if worst < finding.margin:
        return Guarded.HARM if shown else Guarded.SAFE
    adjusted = finding.comparison.p_adjusted
    proven = adjusted is not None and adjusted < BROKEN_P
    apart = ONE_BOOT_EACH in finding.qualifiers
    broken = shown and proven and harm >= finding.margin and not apart
    return Guarded.BROKEN if broken else Guarded.UNRESOLVED


def _guarded_outcome(finding: Finding) -> Guarded:
    """Judge the harm to a share of passed units, or to an exact number."""
    comparison, change = finding.comparison, finding.comparison.change
    sign = comparison.question.planned.metric.sign
    assert change is not None  # guarded_of has looked
    harm = -sign * change.value
    if comparison.question.planned.metric.kind is Kind.EXACT:
        if harm <= 0:
            return Guarded.SAFE
        if finding.margin is None:
            return Guarded.UNRESOLVED
        return Guarded.HARM if harm < finding.margin else Guarded.BROKEN
    narrow = share_change(comparison, 2 * ONE_SIDED - 1)
    worst = math.inf if narrow is None else max(-sign * narrow.low, -sign * narrow.high)
    return _by_harm(finding, harm, worst)


def claims_same(one: Finding) -> bool:
    """Say whether the patch claims that this metric does not change."""
    return one.planned.expect == "same"
