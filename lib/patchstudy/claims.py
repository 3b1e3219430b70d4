"""Claims of a mail, held against the mail's own numbers and against the data.

A claim follows where what it states, give or take half its last digit, and what is
computed again share a value (STATISTICS 3.17). From the mail's numbers the bounds are
those of rounding; from data they are the confidence interval of the change. What the
data leave open is said to be open, never that it follows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from patchstudy import stats
from patchstudy.compare import Comparison, bare_count
from patchstudy.findings import Assessment
from patchstudy.metrics import Kind, Scale, metric
from patchstudy.reference import beside
from patchstudy.sentences import change_in_words, shared_unit, values_in_words
from patchstudy.stats import Bounds
from patchstudy.study import Claim, ClaimKind
from patchstudy.units import prefix, significant
from patchstudy.verdicts import Finding, Verdict

#: Verdicts whose interval can contradict a claim or bear it out.
_CLEAR: Final = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.EQUIVALENT})


class Outcome(StrEnum):
    """What becomes of a claim."""

    FOLLOWS = "follows"
    FAILS = "does not follow"
    OPEN = "cannot be checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One claim held against one set of numbers.

    Attributes
    ----------
    device, workload
        Of the comparison; empty for the mail's own numbers.
    found
        What the claim states, computed again: a fraction of the base for a percentage
        or two values, patched / baseline for a factor, else in the base unit. None
        where it could not be.
    why
        One clause: what was computed, of which base, or why it could not be.
    """

    device: str
    workload: str
    outcome: Outcome
    found: Bounds | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A claim with what the mail's own numbers and the data say of it."""

    claim: Claim
    mail: Check
    data: tuple[Check, ...]


def check(assessment: Assessment) -> tuple[Checked, ...]:
    """Check every claim of a study."""
    return tuple(
        Checked(
            claim=claim,
            mail=by_the_mail(claim),
            data=tuple(_by_data(claim, assessment)),
        )
        for claim in assessment.study.design.claims
    )


# ---- the mail's own numbers ---------------------------------------------------------


def by_the_mail(claim: Claim) -> Check:
    """Compute a claim again from the values that the mail prints."""
    kind = claim.stated.kind
    if kind is ClaimKind.NONE:
        return _open("the claim states no change")
    sides = _inputs(claim)
    if sides is None:
        return _open(_BESIDE if claim.reference else _NO_VALUES)
    base, new = sides
    try:
        change = _change(base, new, claim.of)
    except ValueError as error:
        return _open(f"{error}")
    shown = f"{_from_to(claim)} is {_percent(change)} of {_base(claim, base, new)}"
    if kind is ClaimKind.VALUES:
        return _ends(claim, change, shown)
    if kind is ClaimKind.EQUAL:
        return _judged(change.meets(0.0, 0.0), change, shown)
    found = _recomputed(claim, base, new)
    stated = claim.stated.bounds
    fits = stated is not None and stated.meets(found.low, found.high)
    words = shown if kind is ClaimKind.PERCENT else f"{shown}, {_worded(claim, found)}"
    return _judged(fits, found, words + ("" if fits else _other_base(claim, base, new)))


_NO_VALUES: Final = "the mail's own values are not in study.toml"
_BESIDE: Final = "equality of two devices is tested on data"


def _inputs(claim: Claim) -> tuple[Bounds, Bounds] | None:
    """Baseline and patched as the mail prints them; of two values, the values."""
    if claim.baseline is not None and claim.patched is not None:
        return claim.baseline.bounds, claim.patched.bounds
    if claim.stated.ends is None:
        return None
    return claim.stated.ends[0].bounds, claim.stated.ends[1].bounds


def _from_to(claim: Claim) -> str:
    if claim.baseline is not None and claim.patched is not None:
        return f"{claim.baseline.text} -> {claim.patched.text}"
    return claim.change


def _change(base: Bounds, new: Bounds, of: str) -> Bounds:
    """Change as a fraction of the baseline, or of the patched value."""
    if of == "baseline":
        return stats.quotient(new, base).less(1.0)
    turned = stats.quotient(base, new)
    return Bounds(value=1 - turned.value, low=1 - turned.high, high=1 - turned.low)


def _recomputed(claim: Claim, base: Bounds, new: Bounds) -> Bounds:
    kind = claim.stated.kind
    if kind is ClaimKind.FACTOR:
        return stats.quotient(new, base)
    if kind is ClaimKind.DIFFERENCE:
        return stats.difference(new, base)
    return new if kind is ClaimKind.VALUE else _change(base, new, claim.of)


def _ends(claim: Claim, change: Bounds, shown: str) -> Check:
    """Hold two stated values against what they were computed from."""
    ends = claim.stated.ends
    if ends is None or claim.baseline is None or claim.patched is None:
        return _open(f"the claim is the two values themselves: {shown}", found=change)
    inputs = (claim.baseline, claim.patched)
    pairs = list(zip(ends, inputs, strict=True))
    again = " -> ".join(_amount(one.bounds, one.unit) for one in inputs)
    fits = all(end.bounds.meets(x.bounds.low, x.bounds.high) for end, x in pairs)
    return _judged(fits, change, f"{shown}; computed again: {again}")


def _other_base(claim: Claim, base: Bounds, new: Bounds) -> str:
    """Name the other base where a percentage was taken of that one."""
    stated, other = claim.stated.bounds, _OTHER[claim.of]
    if claim.stated.kind is not ClaimKind.PERCENT or stated is None:
        return ""
    if not new.value > 0 or not base.value > 0:
        return ""
    turned = _change(base, new, other)
    same = stated.meets(turned.low, turned.high)
    back = _change(new, base, claim.of)
    if same:
        return f"; it is {_percent(turned)} of the {other} value"
    if stated.meets(back.low, back.high):
        return f"; it is {_percent(back)} when the two are exchanged"
    return ""


_OTHER: Final = {"baseline": "patched", "patched": "baseline"}


# ---- the data -----------------------------------------------------------------------


def _by_data(claim: Claim, assessment: Assessment) -> Iterator[Check]:
    if claim.stated.kind is ClaimKind.NONE:
        yield _open("the claim states no change")
        return
    variant = claim.variant or assessment.study.design.patched[0]
    found = [
        one
        for one in _declared_first(assessment)
        if one.comparison.variant == variant and _speaks_of(claim, one)
    ]
    if not found:
        where = ", ".join(one for one in (claim.device, claim.workload) if one)
        yield _open(f"{claim.metric} was not measured{f' on {where}' if where else ''}")
    for one in found:
        if not claim.reference:
            yield _placed(_one(claim, one), one)
        elif one.comparison.question.device != claim.reference:
            yield _placed(_beside(claim.reference, one, assessment), one)


def _beside(reference: str, finding: Finding, assessment: Assessment) -> Check:
    """Hold equality with a reference device against the units of both."""
    question = finding.comparison.question
    if question.problem:
        return _open(question.problem)
    found = beside(finding, reference, assessment)
    if found is None:
        return _open(f"{_asked(finding)} was not measured on {reference}")
    judged, variant = found
    sides = (judged.comparison.baseline, judged.comparison.patched)
    counts = [0 if one is None else one.n for one in sides]
    if judged.comparison.change is None:
        few = f"{counts[1]} and {counts[0]} units: no test of equality"
        return replace(_open(few), found=judged.comparison.rounded)
    check = _equal(judged)
    told = f"{counts[1]} {question.unit}s against {counts[0]} of {reference}, {variant}"
    return replace(check, why=f"{check.why} ({told}; turns in time not checked)")


def _asked(finding: Finding) -> str:
    question = finding.comparison.question
    return f"{question.planned.metric.name} of {question.workload}"


def _declared_first(assessment: Assessment) -> list[Finding]:
    """Findings of the judged variants; of a metric those declared, if any are."""
    design = assessment.study.design
    names = {one.metric.name for one in design.metrics}
    return [
        one
        for one in assessment.findings
        if one.planned in design.metrics or one.planned.metric.name not in names
    ]


def _speaks_of(claim: Claim, finding: Finding) -> bool:
    one = finding.comparison
    return (
        finding.planned.metric.name == claim.metric
        and claim.device in {"", one.question.device}
        and claim.workload in {"", one.question.workload}
    )


def _placed(one: Check, finding: Finding) -> Check:
    question = finding.comparison.question
    return Check(
        device=question.device,
        workload=question.workload,
        outcome=one.outcome,
        found=one.found,
        why=one.why,
    )


def _one(claim: Claim, finding: Finding) -> Check:
    comparison = finding.comparison
    if comparison.question.problem:
        return _open(comparison.question.problem)
    if comparison.change is None and comparison.rounded is None:
        return _open("too few units, and the last printed digit is not known")
    if claim.stated.kind is ClaimKind.EQUAL:
        return _equal(finding)
    if comparison.change is None:
        return _once(claim, comparison)
    return _interval(claim, finding)


def _once(claim: Claim, comparison: Comparison) -> Check:
    """One unit each: there is no interval, only what rounding leaves."""
    rounded = comparison.rounded
    if rounded is None or claim.stated.kind in _IN_UNITS:
        return _open("one unit each: no interval")
    change = rounded.less(1.0)
    words = f"{_percent(change)} of the baseline by rounding, one unit each"
    wanted = _as_ratio(claim)
    if wanted is None:
        return _open(words, found=change)
    fits = wanted.meets(rounded.low, rounded.high)
    found = rounded if claim.stated.kind is ClaimKind.FACTOR else change
    return _judged(fits, found, f"{words}: no interval")


_IN_UNITS: Final = frozenset({ClaimKind.DIFFERENCE, ClaimKind.VALUE})


def _as_ratio(claim: Claim) -> Bounds | None:
    """What the claim states, as patched over baseline; None where it is no ratio."""
    stated, ends = claim.stated.bounds, claim.stated.ends
    if ends is not None:
        base, new = (one.bounds for one in ends)
        return stats.quotient(new, base) if base.value > 0 else None
    if stated is None or claim.stated.kind in _IN_UNITS:
        return None
    if claim.stated.kind is ClaimKind.FACTOR:
        return stated
    if claim.of == "baseline":
        return stated.less(-1.0)
    rest = Bounds(value=1 - stated.value, low=1 - stated.high, high=1 - stated.low)
    whole = Bounds(value=1.0, low=1.0, high=1.0)
    return stats.quotient(whole, rest) if rest.value > 0 else None


def _interval(claim: Claim, finding: Finding) -> Check:
    """Hold the claim against the confidence interval of the change."""
    comparison = finding.comparison
    wanted = _on_scale(claim, comparison)
    change = comparison.change
    if wanted is None or change is None:
        return _open(f"stated in another form than what was found: {_shown(finding)}")
    found = Bounds(value=change.value, low=change.low, high=change.high)
    fits = wanted.meets(found.low, found.high)
    words = _shown(finding)
    if finding.verdict not in _CLEAR:
        doubt = ", ".join([str(finding.verdict), *finding.qualifiers[:1]])
        open_ = finding.verdict is not Verdict.INCONCLUSIVE or fits
        return (
            _open(f"{doubt}: {words}", found=found)
            if open_
            else _judged(fits, found, words)
        )
    return _judged(fits, found, words)


def _on_scale(claim: Claim, comparison: Comparison) -> Bounds | None:
    """What the claim states on the scale of the change; None where it has no place."""
    base = comparison.baseline.mean if comparison.baseline else 0.0
    if comparison.scale is Scale.RATIO:
        return _as_change(claim, base)
    per_packet = comparison.question.planned.metric.kind is Kind.COUNT
    if per_packet and not bare_count(comparison):
        return None
    return _as_difference(claim, base)


def _as_change(claim: Claim, base: float) -> Bounds | None:
    """What the claim states as a fraction of the baseline that was found."""
    stated = claim.stated.bounds
    if claim.stated.kind not in _IN_UNITS:
        wanted = _as_ratio(claim)
        return wanted and wanted.less(1.0)
    if stated is None or not base > 0:
        return None
    part = stated.scaled(1 / base)
    return part.less(1.0) if claim.stated.kind is ClaimKind.VALUE else part


def _as_difference(claim: Claim, base: float) -> Bounds | None:
    """What the claim states as a difference in the base unit."""
    kind, stated, ends = claim.stated.kind, claim.stated.bounds, claim.stated.ends
    if ends is not None:
        return stats.difference(ends[1].bounds, ends[0].bounds)
    if stated is None or kind not in _IN_UNITS:
        return None
    return stated.less(base) if kind is ClaimKind.VALUE else stated


def _equal(finding: Finding) -> Check:
    """Equality is shown by the test of it, never by a difference that is missing."""
    words, comparison = _shown(finding), finding.comparison
    change = comparison.change
    if change is None:
        return _open("one unit each: no test of equality", found=comparison.rounded)
    found = Bounds(value=change.value, low=change.low, high=change.high)
    margin = finding.planned.margin.text
    small = "at most small" in finding.qualifiers
    if finding.verdict is Verdict.EQUIVALENT or small:
        return _judged(True, found, f"{words}, within the margin of {margin}")
    if finding.verdict in _CLEAR and "material" in finding.qualifiers:
        return _judged(False, found, f"{words}, beyond the margin of {margin}")
    doubt = ", ".join([str(finding.verdict), *finding.qualifiers[:1]])
    return _open(f"{doubt}: {words}", found=found)


# ---- words --------------------------------------------------------------------------


def _judged(fits: bool, found: Bounds, why: str) -> Check:
    outcome = Outcome.FOLLOWS if fits else Outcome.FAILS
    return Check(device="", workload="", outcome=outcome, found=found, why=why)


def _open(why: str, *, found: Bounds | None = None) -> Check:
    return Check(device="", workload="", outcome=Outcome.OPEN, found=found, why=why)


def _shown(finding: Finding) -> str:
    """Write the change with its interval, and the baseline that it is a change of."""
    comparison = finding.comparison
    change = change_in_words(comparison)
    if comparison.scale is not Scale.RATIO:
        return change
    _, unit = shared_unit(comparison)
    base, _ = values_in_words(comparison)
    return f"{change} of {base} {unit}".rstrip()


def _base(claim: Claim, base: Bounds, new: Bounds) -> str:
    """Name what a percentage is a percentage of."""
    first = claim.of == "baseline"
    side, given = (base, claim.baseline) if first else (new, claim.patched)
    if given is not None and " / " not in given.text:
        return f"the {claim.of} {given.text}"
    return f"the {claim.of} {_amount(side, metric(claim.metric).unit)}"


def _amount(one: Bounds, unit: str) -> str:
    scale, shown = prefix(one.value, unit)
    return f"{significant(one.value / scale)} {shown if shown != '1' else ''}".rstrip()


def _worded(claim: Claim, found: Bounds) -> str:
    """Write what was computed again, with its bounds, in the form of the claim."""
    if claim.stated.kind is ClaimKind.FACTOR:
        value, low, high = (
            significant(x) for x in (found.value, found.low, found.high)
        )
        return f"{value} times the baseline [{low}, {high}]"
    scale, unit = prefix(found.value, metric(claim.metric).unit)
    value, low, high = (
        significant(x / scale) for x in (found.value, found.low, found.high)
    )
    return f"{value} {unit if unit != '1' else ''}".rstrip() + f" [{low}, {high}]"


def _percent(change: Bounds) -> str:
    """Write a fraction in percent with its bounds: ``-61.3 % [-61.5, -61.1]``."""
    numbers = [100 * x for x in (change.value, change.low, change.high)]
    digits = 1 if max(abs(x) for x in numbers) < 1000 else 0
    value, low, high = (f"{x:+.{digits}f}" for x in numbers)
    return f"{value} % [{low}, {high}]"
