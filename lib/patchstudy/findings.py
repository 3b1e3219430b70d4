"""Comparison + margin + role become a verdict; verdicts become a decision.

The rules are those of ``docs/statistics.md``. Every sentence here is printed in
reports as it stands.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from patchstudy import checks, failures, profiles, stats
from patchstudy.checks import NEAR_CEILING, Doubt, Material
from patchstudy.compare import (
    Comparison,
    Goal,
    bare_count,
    compare,
    described,
    error_rates,
    goal_of,
    margin_on_scale,
    sensitive,
)
from patchstudy.failures import Failures
from patchstudy.metrics import Better, Kind, Metric, Scale
from patchstudy.records import Severity
from patchstudy.study import Design, Margin, Planned, Role, Study
from patchstudy.tables import Question
from patchstudy.units import prefix, significant

#: Power at which the report says how many units a margin needs.
POWER: Final = 0.8
#: Level of the one-sided bound of harm, and of the equivalence test (STATISTICS 3.13).
ONE_SIDED: Final = 0.95
#: Adjusted p below which shown harm breaks a guard (STATISTICS 3.13).
BROKEN_P: Final = 0.05
#: Qualifier of a change that a ceiling cuts off: what is seen is a lower bound.
AT_LEAST: Final = "at least"
#: Who reaches the ceiling where a rise, or a fall, is a lower bound.
RISES: Final = "the patched variant reaches the ceiling"
FALLS: Final = "the baseline reaches the ceiling"
#: Opening of a veto that the kernel's own messages give.
KERNEL_VETO: Final = "Veto: a new kernel warning"
#: Qualifier of a metric of which neither more nor less is better.
NO_DIRECTION: Final = "no better direction"
#: Qualifier of a change that a build of the same source may show as well.
LAYOUT_NOISE: Final = "within layout noise"
#: Qualifier of the cost that answers for a rate at its ceiling, and which cost does.
SUBSTITUTE: Final = "substitute"
_SUBSTITUTES: Final = {
    "throughput": "cpu_per_byte",
    "packet_rate": "cpu_per_packet",
}
#: Qualifier of a saturated metric for which nothing answers.
NOT_TESTABLE: Final = "not testable on this link"
#: Qualifier of a primary metric of which some runs failed.
RUNS_FAILED: Final = "runs failed"


_DECIDING: Final = frozenset({Role.PRIMARY, Role.GUARD, Role.CONTROL})


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


class Decision(StrEnum):
    """The answer to the patch, on one device or on all."""

    ACCEPT = "accept"
    SMALL = "accept (below margin)"
    VETO = "veto"
    NOT_YET = "not yet"
    REJECT = "reject claim"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
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
    """

    comparison: Comparison
    role: Role
    verdict: Verdict
    guarded: Guarded | None
    qualifiers: tuple[str, ...]
    margin: float | None
    named: str
    sentence: str

    @property
    def planned(self) -> Planned:
        """The metric as it was declared."""
        return self.comparison.question.planned


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDecision:
    """The decision on one device and variant, and what led to it."""

    device: str
    variant: str
    decision: Decision
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What the profiles say about a symbol that the study names as the mechanism."""

    evidence: profiles.Evidence
    expect: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """All that a report says about a study."""

    study: Study
    material: Material
    doubts: tuple[Doubt, ...]
    findings: tuple[Finding, ...]
    failures: tuple[Failures, ...]
    explanations: tuple[Explanation, ...]
    devices: tuple[DeviceDecision, ...]
    decision: Decision
    sentence: str


def assess(study: Study) -> Assessment:
    """Go from the runs of a study to its decision."""
    material = checks.material(study)
    doubts = checks.check(material)
    compared = compare(material.units, material.asked, study.design, doubts)
    failed = failures.count(material)
    findings = _together([judge(one, study) for one in compared], study, failed)
    devices = tuple(_device_decisions(findings, study.design))
    # further variants (a placebo, a copy of the baseline) do not decide
    first = study.design.patched[0]
    judged = [one for one in devices if one.variant == first]
    decision = _overall(judged)
    shown = [one for one in findings if one.comparison.variant == first]
    return Assessment(
        study=study,
        material=material,
        doubts=_all_doubts(doubts, compared),
        findings=findings,
        failures=failed,
        explanations=tuple(_explanations(study)),
        devices=devices,
        decision=decision,
        sentence=_headline(decision, judged, shown, study.design.metrics),
    )


def _all_doubts(
    doubts: Sequence[Doubt], compared: Sequence[Comparison]
) -> tuple[Doubt, ...]:
    """Add to what the checks found what the comparisons did, the gravest first."""
    known = {one.caveat for one in doubts}
    added = dict.fromkeys(
        Doubt(
            caveat=caveat,
            device=one.question.device,
            workload=one.question.workload,
            question=one.question.key,
        )
        for one in compared
        if one.question.role in {Role.PRIMARY, Role.GUARD, Role.CONTROL}
        for caveat in one.caveats
        if caveat not in known
    )
    ranks = [Severity.UNUSABLE, Severity.CAP, Severity.DOUBT, Severity.NOTE]
    return tuple(
        sorted([*doubts, *added], key=lambda one: ranks.index(one.caveat.severity))
    )


# ---- verdict ------------------------------------------------------------------------


def judge(comparison: Comparison, study: Study) -> Finding:
    """Judge one comparison against the margin that was declared for it."""
    margin = margin_on_scale(comparison)
    limit = checks.ceiling(study, comparison.question)
    verdict, size = _verdict(comparison, margin, limit[0] if limit else None)
    design = study.design
    finding = Finding(
        comparison=comparison,
        role=comparison.question.role,
        verdict=verdict,
        guarded=None,
        qualifiers=(*size, *_qualifiers(comparison, verdict, design)),
        margin=margin,
        named=comparison.variant if len(design.patched) > 1 else "",
        sentence="",
    )
    return _spoken(finding)


def _spoken(finding: Finding) -> Finding:
    """Write the sentence, and of a guard what is known of harm."""
    if finding.role is Role.GUARD:
        finding = replace(finding, guarded=_guarded(finding))
    return replace(finding, sentence=_sentence(finding))


def _verdict(
    comparison: Comparison, margin: float | None, limit: float | None
) -> tuple[Verdict, tuple[str, ...]]:
    """Apply STATISTICS 3.5: the first rule that fits."""
    effect, change = comparison.effect, comparison.change
    sign = comparison.question.planned.metric.sign
    if effect is None or change is None:
        return Verdict.NOT_ASSESSABLE, ("too few units",)
    if cap := _cap(comparison):
        return Verdict.NOT_ASSESSABLE, (cap,)
    if sign == 0:
        return Verdict.NOT_ASSESSABLE, (NO_DIRECTION,)
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


def _size(near: float, far: float, margin: float | None) -> tuple[str, ...]:
    if margin is None:
        return ("size not judged",)
    if near > margin:
        return ("material",)
    return ("at most small",) if far < margin else ("size uncertain",)


def _cap(comparison: Comparison) -> str:
    """Return why no verdict can be drawn from these data, or nothing."""
    codes = {
        one.code
        for one in comparison.caveats
        if one.severity in {Severity.CAP, Severity.UNUSABLE}
    }
    for code, words in (
        ("impossible", "impossible value"),
        ("sequential", "confounded with time order"),
        ("treatment-same", "treatment not verified"),
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


def _qualifiers(
    comparison: Comparison, verdict: Verdict, design: Design
) -> Iterator[str]:
    codes = {one.code for one in comparison.caveats}
    if verdict is Verdict.NOT_ASSESSABLE and comparison.change is None:
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
    thin = min(units, default=0) == 2 or "no-spread" in codes
    if thin or sensitive(comparison):
        yield "fragile"
    for code, words in (
        ("one-boot", "within one boot"),
        ("one-build", "one build each"),
        ("order-rechecked", "order re-checked"),
    ):
        if code in codes:
            yield words
    copies = {design.base2: "A/A noise", design.placebo: "layout noise"}
    if comparison.variant in copies:
        yield copies[comparison.variant]


def _guarded(finding: Finding) -> Guarded:
    """Apply STATISTICS 3.13 to the harm: the effect in the worse direction."""
    comparison, margin = finding.comparison, finding.margin
    effect = comparison.effect
    if comparison.question.problem or not (comparison.baseline and comparison.patched):
        return Guarded.NOT_MEASURED
    sign = comparison.question.planned.metric.sign
    if effect is None or margin is None or sign == 0 or _cap(comparison):
        return Guarded.UNRESOLVED
    harm = -sign * effect.value
    worst = -effect.lower(ONE_SIDED) if sign > 0 else effect.upper(ONE_SIDED)
    shown = finding.verdict is Verdict.WORSE
    if worst < margin:
        return Guarded.HARM if shown else Guarded.SAFE
    adjusted = comparison.p_adjusted
    proven = adjusted is not None and adjusted < BROKEN_P
    return Guarded.BROKEN if shown and proven and harm >= margin else Guarded.UNRESOLVED


# ---- several findings together ------------------------------------------------------


def _together(
    findings: Sequence[Finding], study: Study, failed: Sequence[Failures]
) -> tuple[Finding, ...]:
    """Judge what one comparison alone cannot tell."""
    answered = [*_saturated(findings), *_substitutes(findings, study)]
    beyond = _beyond_layout(answered, study.design)
    marked = [_with_failures(one, failed) for one in beyond]
    return (*marked, *(_failed_guard(one, study.design) for one in failed))


def _beyond_layout(findings: Sequence[Finding], design: Design) -> Iterator[Finding]:
    """Hold changes against what a build that differs in layout only shows."""
    placebo = {
        one.comparison.question.key: one.comparison
        for one in findings
        if one.comparison.variant == design.placebo
    }
    for one in findings:
        other = placebo.get(one.comparison.question.key)
        copy = one.comparison.variant in {design.placebo, design.base2}
        yield one if other is None or copy else _against(one, other)


def _against(one: Finding, placebo: Comparison) -> Finding:
    """Apply STATISTICS 3.7: an effect exceeds what the placebo may have changed.

    A control, or a claim of no change, that moved within its margin stays as it is.
    """
    effect, change = one.comparison.effect, one.comparison.change
    same = one.role is Role.CONTROL or _claims_same(one)
    known = placebo.effect is not None and placebo.scale is one.comparison.scale
    if one.verdict not in {Verdict.BETTER, Verdict.WORSE} or not known:
        return one
    if effect is None or change is None or (same and "at most small" in one.qualifiers):
        return one
    own = effect.interval(change.confidence)
    if _reach(placebo, change.confidence) < max(own.low, -own.high):
        kept = tuple(word for word in one.qualifiers if word != "one build each")
        return _spoken(replace(one, qualifiers=kept))
    kept = tuple(word for word in one.qualifiers if word not in _SIZES)
    noisy = replace(one, verdict=Verdict.INCONCLUSIVE, qualifiers=(LAYOUT_NOISE, *kept))
    return _spoken(noisy)


_SIZES: Final = frozenset(
    {"material", "at most small", "size uncertain", "size not judged", AT_LEAST}
)


def _reach(comparison: Comparison, confidence: float) -> float:
    """Largest change, either way, that the interval allows."""
    if comparison.effect is None:
        return math.inf
    interval = comparison.effect.interval(confidence)
    return max(abs(interval.low), abs(interval.high))


def _saturated(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Say of each saturated primary metric whether another one answers for it."""
    for one in findings:
        full = one.role is Role.PRIMARY and one.verdict is Verdict.SATURATED
        if full and _cost(one, findings) is None:
            one = replace(one, qualifiers=(*one.qualifiers, NOT_TESTABLE))  # noqa: PLW2901
        yield _spoken(one) if full else one


def _substitutes(findings: Sequence[Finding], study: Study) -> Iterator[Finding]:
    """Judge the cost in place of each rate that a ceiling hides (STATISTICS 3.8)."""
    for one in findings:
        full = one.role is Role.PRIMARY and one.verdict is Verdict.SATURATED
        cost = _cost(one, findings) if full else None
        if cost is None or cost.role is Role.PRIMARY:
            continue
        question = cost.comparison.question
        planned = replace(
            question.planned, role=Role.PRIMARY, expect=one.planned.expect
        )
        asked = replace(question, planned=planned, role=Role.PRIMARY)
        again = judge(replace(cost.comparison, question=asked, p_adjusted=None), study)
        yield _spoken(replace(again, qualifiers=(*again.qualifiers, SUBSTITUTE)))


def _cost(full: Finding, findings: Sequence[Finding]) -> Finding | None:
    """Return the cost that was measured where a rate is saturated."""
    name = _SUBSTITUTES.get(full.planned.metric.name)
    for one in findings:
        same = _cell(one) == _cell(full) and one.planned.metric.name == name
        if same and one.comparison.change is not None:
            return one
    return None


def _cell(one: Finding) -> tuple[str, str, str]:
    question = one.comparison.question
    return question.device, question.workload, one.comparison.variant


# ---- failed runs --------------------------------------------------------------------

_FAILED_RUNS: Final = Metric(
    name="failed_runs",
    unit="1",
    better=Better.LOWER,
    kind=Kind.PROPORTION,
    label="Failed runs",
)


def _with_failures(one: Finding, failed: Sequence[Failures]) -> Finding:
    """Mark a primary metric on a device where runs failed, but not beyond chance."""
    place = (one.comparison.question.device, one.comparison.variant)
    here = any((each.device, each.variant) == place for each in failed)
    if not here or one.role is not Role.PRIMARY or one.comparison.change is None:
        return one
    return _spoken(replace(one, qualifiers=(*one.qualifiers, RUNS_FAILED)))


def _failed_guard(one: Failures, design: Design) -> Finding:
    """Make the guard that no study declares: patched runs fail no more often."""
    planned = Planned(
        metric=_FAILED_RUNS,
        role=Role.GUARD,
        workloads=(),
        devices=(),
        where={},
        margin=Margin(
            value=failures.MOST_FAILED,
            scale=Scale.DIFFERENCE,
            text=f"{100 * failures.MOST_FAILED:g} pp",
            declared=False,
        ),
        ceiling=None,
        expect="",
        required=one.too_many,
    )
    bare = described(_failed_question(one, planned), one.variant, _values(one))
    return Finding(
        comparison=replace(
            bare,
            p_value=one.p_value,
            p_adjusted=one.p_value,
            method="Fisher's exact test",
        ),
        role=Role.GUARD,
        verdict=Verdict.WORSE if one.broken else Verdict.NOT_ASSESSABLE,
        guarded=Guarded.BROKEN if one.broken else Guarded.UNRESOLVED,
        qualifiers=(),
        margin=failures.MOST_FAILED,
        named=one.variant if len(design.patched) > 1 else "",
        sentence=_failed_sentence(one),
    )


def _failed_question(one: Failures, planned: Planned) -> Question:
    return Question(
        device=one.device,
        workload="any workload",
        planned=planned,
        role=Role.GUARD,
        labels=(),
        tool="",
        place="",
        problem="",
        unit="run",
    )


def _values(one: Failures) -> tuple[list[float], list[float]]:
    """Return one entry a run, 1 where it failed: of the baseline, then of patched."""
    base, new = (
        [1.0] * side.failed + [0.0] * (side.runs - side.failed)
        for side in (one.baseline, one.patched)
    )
    return base, new


def _failed_sentence(one: Failures) -> str:
    new, base = (
        f"{side.failed} of {side.runs} ({100 * side.share.value:.0f} % "
        f"[{100 * side.share.low:.0f}, {100 * side.share.high:.0f}])"
        for side in (one.patched, one.baseline)
    )
    if one.broken:
        words = "broken: more than chance allows"
    elif one.too_many:
        words = f"too many for the others to speak for all (over {_MOST_FAILED})"
    else:
        words = "not more than chance allows"
    return (
        f"failed runs: {new} of {one.variant} and {base} of the baseline, "
        f"p {one.p_value:.2g}; {words}."
    )


_MOST_FAILED: Final = f"{100 * failures.MOST_FAILED:g} %"


# ---- decision -----------------------------------------------------------------------


def _device_decisions(
    findings: Sequence[Finding], design: Design
) -> Iterator[DeviceDecision]:
    copies = {design.placebo, design.base2}
    cells: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        deciding = one.role in {Role.PRIMARY, Role.GUARD, Role.CONTROL}
        if deciding and one.comparison.variant not in copies:
            key = (one.comparison.question.device, one.comparison.variant)
            cells.setdefault(key, []).append(one)
    for (device, variant), members in cells.items():
        if _only_control(members):
            continue
        decision, reasons = _decide(members)
        yield DeviceDecision(
            device=device, variant=variant, decision=decision, reasons=tuple(reasons)
        )


def _only_control(findings: Sequence[Finding]) -> bool:
    """Say whether a device was only a control, and speaks for the patch as one."""
    roles = {one.role for one in findings}
    sound = not any(_is_open(one) or one.guarded is Guarded.BROKEN for one in findings)
    sound = sound and not _kernel_warnings(findings)
    return sound and Role.CONTROL in roles and Role.PRIMARY not in roles


def _decide(findings: Sequence[Finding]) -> tuple[Decision, list[str]]:
    """Apply STATISTICS 3.13; a broken guard outweighs everything."""
    answers = [one for one in findings if not _answered(one, findings)]
    primary = [one for one in answers if one.role is Role.PRIMARY]
    broken = [one for one in findings if one.guarded is Guarded.BROKEN]
    warned = _kernel_warnings(findings)
    if broken or warned:
        return Decision.VETO, [*warned, *(one.sentence for one in broken)]
    refuted = [one for one in primary if _refutes(one)]
    if refuted:
        return Decision.REJECT, [one.sentence for one in refuted]
    open_ = [one for one in answers if _is_open(one)]
    if open_ or not primary:
        return Decision.NOT_YET, [one.sentence for one in open_] or [
            "the primary metric was not measured on this device"
        ]
    small = [
        one
        for one in primary
        if "at most small" in one.qualifiers and not _claims_same(one)
    ]
    decision = Decision.SMALL if small else Decision.ACCEPT
    return decision, [one.sentence for one in primary]


def _answered(one: Finding, findings: Sequence[Finding]) -> bool:
    """Say whether a cost answers for this rate, which a ceiling hides."""
    full = one.role is Role.PRIMARY and one.verdict is Verdict.SATURATED
    if not full:
        return False
    cost = _cost(one, [each for each in findings if each.role is Role.PRIMARY])
    return cost is not None


def _kernel_warnings(findings: Sequence[Finding]) -> list[str]:
    """Return the new warnings of the kernel under these variants: a veto by rule."""
    return list(
        dict.fromkeys(
            caveat.text
            for one in findings
            for caveat in one.comparison.caveats
            if caveat.code == "kernel-warning"
            and caveat.text.startswith(f"{one.comparison.variant}: ")
        )
    )


def _refutes(one: Finding) -> bool:
    """Say whether a primary metric contradicts the claim of the patch."""
    if "fragile" in one.qualifiers:
        return False
    if one.verdict is Verdict.WORSE:
        return not (_claims_same(one) and "at most small" in one.qualifiers)
    return one.verdict is Verdict.EQUIVALENT and not _claims_same(one)


def _claims_same(one: Finding) -> bool:
    return one.planned.expect == "same"


def _is_open(one: Finding) -> bool:
    """Say whether a finding leaves the decision open."""
    if one.role is Role.GUARD:
        unknown = {Guarded.UNRESOLVED, Guarded.NOT_MEASURED}
        doubtful = one.guarded in unknown or "fragile" in one.qualifiers
        return one.planned.required and doubtful
    if one.role is Role.CONTROL:
        return _moved(one)
    good = one.verdict is Verdict.BETTER
    if _claims_same(one):
        small = "at most small" in one.qualifiers
        good = one.verdict is Verdict.EQUIVALENT or small
    return not good or "fragile" in one.qualifiers


def _moved(one: Finding) -> bool:
    """Say whether a control changed by more than may be, or may have done so."""
    if one.verdict in {Verdict.BETTER, Verdict.WORSE}:
        return "at most small" not in one.qualifiers
    return one.verdict is not Verdict.EQUIVALENT


def _overall(devices: Sequence[DeviceDecision]) -> Decision:
    found = {one.decision for one in devices}
    if not found:
        return Decision.NOT_YET
    if Decision.VETO in found:
        return Decision.VETO
    if len(found) == 1:
        return found.pop()
    if found == {Decision.ACCEPT, Decision.SMALL}:
        return Decision.SMALL
    return Decision.MIXED


# ---- words --------------------------------------------------------------------------


def change_in_words(comparison: Comparison) -> str:
    """Write the change with its interval: ``+5.9 % [+5.6, +6.1]``."""
    change = comparison.change
    if change is None:
        return "no change computed"
    if change.value == 0 and comparison.effect and comparison.effect.floored:
        nothing = comparison.baseline is not None and comparison.baseline.high == 0
        return "none in any run" if nothing else "identical in every run"
    if comparison.scale is Scale.RATIO:
        scale, unit = 0.01, "%"
    else:
        scale, unit = _difference_unit(comparison)
    numbers = [value / scale for value in (change.value, change.low, change.high)]
    digits = _decimals(numbers[2] - numbers[1], numbers[0])
    value, low, high = (f"{number:+.{digits}f}" for number in numbers)
    return f"{value} {unit} [{low}, {high}]".replace("  ", " ")


def _least_in_words(change: str) -> str:
    """Write a change that a ceiling cuts off: the bound that it exceeds, then all."""
    value, _, interval = change.rpartition(" [")
    low, _, high = interval.rstrip("]").partition(", ")
    unit = value.partition(" ")[2]
    risen = value.startswith("+")
    return f"at least {low if risen else high} {unit}".rstrip() + f": {change}"


def _difference_unit(comparison: Comparison) -> tuple[float, str]:
    """Unit in which a difference is written: points for shares, a prefix else."""
    scale, unit = shared_unit(comparison)
    return scale, {"%": "pp", "% of pkts": "pp"}.get(unit, unit)


def _decimals(width: float, value: float) -> int:
    """Digits after the point: two of the interval's width, at most four of the value.

    Never more than three, which is a thousandth of a percent.
    """
    if not (math.isfinite(width) and width > 0):
        return 2
    by_width = 1 - math.floor(math.log10(width))
    by_value = 3 - math.floor(math.log10(abs(value))) if value else 3
    return min(3, max(0, min(by_width, by_value)))


def shared_unit(comparison: Comparison) -> tuple[float, str]:
    """Scale and unit in which people read the values of both variants.

    Divide base-unit values by the scale. Shares are read in percent, counts with known
    exposure in percent of the packets.
    """
    quantity = comparison.question.planned.metric
    if quantity.kind in {Kind.SHARE, Kind.PROPORTION}:
        return 0.01, "%"
    if quantity.kind is Kind.COUNT:
        return (1.0, "") if bare_count(comparison) else (0.01, "% of pkts")
    values = (comparison.baseline, comparison.patched)
    size = max((abs(one.mean) for one in values if one is not None), default=0.0)
    return prefix(size, quantity.unit)


def values_in_words(comparison: Comparison) -> tuple[str, str]:
    """Write the means of baseline and patched in their shared unit, without it.

    Geometric means where the change is a ratio, arithmetic ones else.
    """
    scale, _ = shared_unit(comparison)
    texts = []
    for summary in (comparison.baseline, comparison.patched):
        if summary is None:
            texts.append("-")
            continue
        ratio = comparison.scale is Scale.RATIO
        mean = summary.geometric_mean if ratio else summary.mean
        texts.append(significant((summary.mean if mean is None else mean) / scale))
    return texts[0], texts[1]


def replication_in_words(comparison: Comparison) -> str:
    """Say how many runs there were, and what was counted."""
    base, new = comparison.n_baseline, comparison.n_patched
    runs = f"{base} runs each" if base == new else f"{base} and {new} runs"
    if comparison.blocks:
        name = comparison.unit_of_analysis.split(" ")[0]
        return f"{runs} in {comparison.blocks} {name}s"
    return runs


def _sentence(finding: Finding) -> str:
    comparison = finding.comparison
    question = comparison.question
    name = f"{question.planned.metric.name} on {question.workload}"
    if finding.named:
        name += f", {finding.named}"
    if question.problem:
        why = question.problem.removeprefix("not measured")
        return f"{name}: not measured{f' ({why})' if why else ''}."
    if comparison.change is None:
        return f"{name}: not assessable, {_too_few(comparison)}."
    change = change_in_words(comparison) + _none_bound(finding)
    tail = f", {replication_in_words(comparison)}"
    words = _WORDS.get(finding.role, _verdict_words)
    text = f"{name}: {words(finding, change)}{tail}"
    if "fragile" in finding.qualifiers:
        text += "; fragile: it rests on few units or depends on a few runs"
    if RUNS_FAILED in finding.qualifiers:
        text += "; runs failed on this device"
    if SUBSTITUTE in finding.qualifiers:
        text += "; in place of the rate, which a ceiling hides"
    return text + "."


def _none_bound(finding: Finding) -> str:
    """Say of a guard without any event how many runs may still have one."""
    comparison = finding.comparison
    quantity, new = comparison.question.planned.metric, comparison.patched
    counted = quantity.kind in {Kind.COUNT, Kind.PROPORTION}
    if finding.role is not Role.GUARD or not counted or new is None or new.high != 0:
        return ""
    bound = 100 * stats.none_in(new.n)
    unit = comparison.question.unit
    return (
        f" (with none in {new.n} {unit}s, up to {bound:.2g} % of {unit}s may have one)"
    )


def _too_few(comparison: Comparison) -> str:
    base, new = comparison.baseline, comparison.patched
    counts = f"{base.n if base else 0} and {new.n if new else 0} units"
    if base and new and base.mean > 0:
        return f"{counts}; the ratio of the means is {new.mean / base.mean:.4g}"
    return counts


def _verdict_words(finding: Finding, change: str) -> str:
    margin = finding.planned.margin.text
    if finding.verdict in {Verdict.BETTER, Verdict.WORSE}:
        if AT_LEAST in finding.qualifiers:
            change = _least_in_words(change)
        return f"{finding.verdict} by {change}, {_size_words(finding)}"
    if finding.verdict is Verdict.EQUIVALENT:
        return f"no difference beyond the margin of {margin}: {change}"
    if finding.verdict is Verdict.SATURATED:
        reason = next(iter(finding.qualifiers))
        link = f"; {NOT_TESTABLE}" if NOT_TESTABLE in finding.qualifiers else ""
        return f"{reason}, so no change could show: {change}" + link
    if finding.verdict is Verdict.INCONCLUSIVE:
        return _inconclusive_words(finding, change)
    reason = next(iter(finding.qualifiers), "")
    if finding.planned.metric.sign == 0 and reason == NO_DIRECTION:
        return f"{change} (described only: neither direction is better)"
    return f"not assessable ({reason}): {change}"


def _inconclusive_words(finding: Finding, change: str) -> str:
    if LAYOUT_NOISE in finding.qualifiers:
        return (
            f"inconclusive, within layout noise: {change}, and the placebo build may "
            "change as much"
        )
    return f"inconclusive: {change}; {power_in_words(finding)}"


def _size_words(finding: Finding) -> str:
    margin = finding.planned.margin.text
    for qualifier, words in (
        ("material", f"more than the margin of {margin}"),
        ("at most small", f"real, but below the margin of {margin}"),
        ("size uncertain", f"not certain to exceed the margin of {margin}"),
    ):
        if qualifier in finding.qualifiers:
            return words
    return "its size was not judged"


def _control_words(finding: Finding, change: str) -> str:
    margin = finding.planned.margin.text
    small = "at most small" in finding.qualifiers
    if finding.verdict is Verdict.WORSE and small:
        return (
            f"control, no gain: {change} is a real loss and far below the margin "
            f"of {margin}"
            if _far_below(finding)
            else f"control, no gain: {change} is a real loss below the margin of "
            f"{margin}"
        )
    if finding.verdict is Verdict.BETTER and small:
        return f"control, a real gain below the margin of {margin}: {change}"
    if finding.verdict is Verdict.EQUIVALENT:
        return f"control, unchanged within the margin of {margin}: {change}"
    if finding.verdict in {Verdict.BETTER, Verdict.WORSE}:
        return f"control, but {_verdict_words(finding, change)}"
    return f"control, {_verdict_words(finding, change)}"


def _far_below(finding: Finding) -> bool:
    """Say whether the estimate is below half the margin."""
    effect = finding.comparison.effect
    if effect is None or finding.margin is None:
        return False
    return abs(effect.value) < finding.margin / 2


def _guard_words(finding: Finding, change: str) -> str:
    margin = finding.planned.margin.text
    if finding.guarded is Guarded.UNRESOLVED:
        if cap := _cap(finding.comparison):
            return f"unresolved ({cap}): {change}"
        if LAYOUT_NOISE in finding.qualifiers:
            return f"unresolved ({LAYOUT_NOISE}): {change}"
        more = power_in_words(finding)
        return f"unresolved: {change}, harm of {margin} is not excluded; {more}"
    return {
        Guarded.SAFE: f"safe: {change}, harm of {margin} is excluded",
        Guarded.HARM: f"harm within the margin of {margin}: {change}",
        Guarded.BROKEN: f"broken: {change}, the accepted harm was {margin}",
    }.get(finding.guarded or Guarded.NOT_MEASURED, "not measured")


_WORDS: Final = {Role.GUARD: _guard_words, Role.CONTROL: _control_words}


def power_in_words(finding: Finding) -> str:
    """Say what these units could have shown, and how many the margin needs."""
    comparison = finding.comparison
    effect = comparison.effect
    if effect is None or finding.margin is None:
        return "the margin cannot be expressed on this scale"
    paired = comparison.blocks > 0
    count = comparison.blocks or _harmonic(comparison)
    sd = effect.standard_error * math.sqrt(count if paired else count / 2)
    goal = goal_of(finding.planned, finding.role)
    alpha, power = error_rates(goal, _alpha(comparison), POWER)
    smallest = stats.detectable_change(
        sd, max(2, int(count)), paired=paired, power=power, alpha=alpha
    )
    needed = stats.needed_n(sd, finding.margin, paired=paired, power=power, alpha=alpha)
    shown = _on_scale(comparison, smallest)
    return (
        f"these runs could {_SHOWN[goal]} {shown} or more; the margin of "
        f"{finding.planned.margin.text} needs {_needed_in_words(comparison, needed)}"
    )


_SHOWN: Final = {
    Goal.CHANGE: "show only a change of",
    Goal.NO_HARM: "exclude only harm of",
    Goal.SAME: "exclude only a change of",
}


def _alpha(comparison: Comparison) -> float:
    """Level of the interval of the change."""
    change = comparison.change
    return 0.05 if change is None else round(1 - change.confidence, 12)


def _needed_in_words(comparison: Comparison, needed: int | None) -> str:
    name = comparison.unit_of_analysis.split(" ")[0]
    if needed is None:
        return f"more than 10000 {name}s"
    if not comparison.blocks:
        return f"about {needed} {name}s of each variant"
    runs = (comparison.n_baseline + comparison.n_patched) / comparison.blocks
    return f"about {needed} {name}s ({math.ceil(needed * runs)} runs)"


def _harmonic(comparison: Comparison) -> float:
    counts = [one.n for one in (comparison.baseline, comparison.patched) if one]
    return len(counts) / sum(1 / count for count in counts)


def _on_scale(comparison: Comparison, value: float) -> str:
    if comparison.scale is Scale.RATIO:
        return f"{100 * math.expm1(min(value, 700.0)):.3g} %"
    scale, unit = _difference_unit(comparison)
    return f"{value / scale:.3g} {unit}".rstrip()


_OPENING: Final = {
    Decision.ACCEPT: "Supported",
    Decision.SMALL: "Supported, but smaller than what was declared to matter",
    Decision.VETO: "Veto: a guard is broken",
    Decision.NOT_YET: "Not yet decided",
    Decision.REJECT: "The claim is not supported",
    Decision.MIXED: "Mixed over devices",
}


def _headline(
    decision: Decision,
    devices: Sequence[DeviceDecision],
    findings: Sequence[Finding],
    declared: Sequence[Planned],
) -> str:
    """One sentence: the decision, what decided it, and the primary changes."""
    primary = [one for one in findings if one.role is Role.PRIMARY]
    opening = _OPENING[decision]
    if decision is Decision.ACCEPT and all(_claims_same(one) for one in primary):
        opening = "No change, as claimed"
    if decision is Decision.MIXED:
        each = ", ".join(f"{one.device} {one.decision}" for one in devices)
        opening = f"{opening} ({each})"
    shown = primary
    if decision is Decision.NOT_YET:
        open_ = [one for one in findings if one.role in _DECIDING and _is_open(one)]
        shown = [*open_, *(one for one in primary if one not in open_)]
    if decision is Decision.VETO:
        broken = [one for one in findings if one.guarded is Guarded.BROKEN]
        others = [
            one
            for one in findings
            if one.role is Role.DIAGNOSTIC and one.planned in declared
        ]
        shown = [*broken, *primary, *others]
        if warned := _kernel_warnings(findings):
            opening = f"{KERNEL_VETO}, {'; '.join(warned)}"
    names = {one.comparison.question.device for one in shown}
    parts = [
        (f"{one.comparison.question.device} " if len(names) > 1 else "")
        + one.sentence.rstrip(".")
        for one in shown
    ]
    where = f" on {names.pop()}" if len(names) == 1 else ""
    return f"{opening}{where}: {'; '.join(parts) or 'no primary metric measured'}."


def _explanations(study: Study) -> Iterator[Explanation]:
    for planned in study.design.metrics:
        family, _, symbol = planned.metric.name.partition(":")
        if planned.role is Role.MECHANISM and family == "profile_share":
            for evidence in profiles.evidence(study, symbol):
                yield Explanation(
                    evidence=evidence,
                    expect=planned.expect,
                    sentence=_profile_sentence(study, evidence),
                )


def _profile_sentence(study: Study, evidence: profiles.Evidence) -> str:
    parts = []
    for variant in study.design.variants:
        shares = evidence.shares.get(variant, ())
        mean = f"{100 * sum(shares) / len(shares):.2f} %" if shares else "not profiled"
        parts.append(f"{mean} of the {variant} profile")
    one = all(len(shares) == 1 for shares in evidence.shares.values())
    note = "one profile each, no interval" if one else "means of several profiles"
    return f"{evidence.symbol} is in {' and '.join(parts)} ({note})."


__all__ = [
    "Assessment",
    "Decision",
    "DeviceDecision",
    "Explanation",
    "Finding",
    "Guarded",
    "Verdict",
    "assess",
    "change_in_words",
    "judge",
    "power_in_words",
    "replication_in_words",
    "shared_unit",
    "values_in_words",
]
