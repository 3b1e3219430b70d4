"""Verdicts become a decision, on one device and over all (STATISTICS 3.13)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from patchstudy.study import Design, Role
from patchstudy.verdicts import (
    ONE_BOOT_EACH,
    Finding,
    Guarded,
    Verdict,
    claims_same,
)


class Decision(StrEnum):
    """The answer to the patch, on one device or on all."""

    ACCEPT = "accept"
    SMALL = "accept (below margin)"
    VETO = "veto"
    NOT_YET = "not yet"
    REJECT = "reject claim"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDecision:
    """The decision on one device and variant, and what led to it."""

    device: str
    variant: str
    decision: Decision
    reasons: tuple[str, ...]


#: Roles of the findings that a decision rests on.
DECIDING: Final = frozenset({Role.PRIMARY, Role.GUARD, Role.CONTROL})
#: Which cost answers for a rate at its ceiling, or for a CPU share at unequal rates.
_COSTS: Final = {
    "throughput": "cpu_per_byte",
    "packet_rate": "cpu_per_packet",
}


def per_device(findings: Sequence[Finding], design: Design) -> Iterator[DeviceDecision]:
    """Decide on each device and variant; copies of a build do not decide."""
    copies = {design.placebo, design.base2}
    cells: dict[tuple[str, str], list[Finding]] = {}
    told = contrary(findings)
    for one in findings:
        if one.role in DECIDING and one.comparison.variant not in copies:
            key = (one.comparison.question.device, one.comparison.variant)
            cells.setdefault(key, []).append(one)
    for (device, variant), members in cells.items():
        if _only_control(members):
            continue
        decision, reasons = _decide(members)
        reasons += [
            f"yet {one.sentence.rstrip('.')}: {CONTRARY}"
            for one in told
            if (one.comparison.question.device, one.comparison.variant)
            == (device, variant)
        ]
        yield DeviceDecision(
            device=device, variant=variant, decision=decision, reasons=tuple(reasons)
        )


#: What is said of a mechanism metric that improves where the primary one does not.
CONTRARY: Final = "the mechanism metric alone would have claimed a gain"


def contrary(findings: Sequence[Finding]) -> list[Finding]:
    """Return the mechanism metrics that improve where a primary metric does not."""
    refuted = {_cell(one) for one in findings if one.role is Role.PRIMARY} - {
        _cell(one)
        for one in findings
        if one.role is Role.PRIMARY and one.verdict is not Verdict.WORSE
    }
    return [
        one
        for one in findings
        if one.role is Role.MECHANISM
        and one.verdict is Verdict.BETTER
        and _cell(one) in refuted
    ]


def _only_control(findings: Sequence[Finding]) -> bool:
    """Say whether a device was only a control, and speaks for the patch as one."""
    roles = {one.role for one in findings}
    sound = not any(is_open(one) or one.guarded is Guarded.BROKEN for one in findings)
    sound = sound and not kernel_warnings(findings)
    return sound and Role.CONTROL in roles and Role.PRIMARY not in roles


def _decide(findings: Sequence[Finding]) -> tuple[Decision, list[str]]:
    """Apply STATISTICS 3.13; a broken guard outweighs everything."""
    answers = [one for one in findings if not _answered(one, findings)]
    primary = [one for one in answers if one.role is Role.PRIMARY]
    broken = [one for one in findings if one.guarded is Guarded.BROKEN]
    warned = kernel_warnings(findings)
    if broken or warned:
        return Decision.VETO, [*warned, *(one.sentence for one in broken)]
    refuted = [one for one in primary if _refutes(one)]
    if refuted:
        return Decision.REJECT, [one.sentence for one in refuted]
    open_ = [one for one in answers if is_open(one)]
    if open_ or not primary:
        return Decision.NOT_YET, [one.sentence for one in open_] or [
            "the primary metric was not measured on this device"
        ]
    small = [
        one
        for one in primary
        if "at most small" in one.qualifiers and not claims_same(one)
    ]
    decision = Decision.SMALL if small else Decision.ACCEPT
    return decision, [one.sentence for one in primary]


def cost_of(full: Finding, findings: Sequence[Finding]) -> Finding | None:
    """Return the cost that was measured where a rate is saturated."""
    name = _COSTS.get(full.planned.metric.name)
    for one in findings:
        same = _cell(one) == _cell(full) and one.planned.metric.name == name
        if same and one.comparison.change is not None:
            return one
    return None


def uneven_rate(share: Finding, findings: Sequence[Finding]) -> bool:
    """Say whether an unequal rate leaves open what a CPU share says (STATISTICS 3.9).

    The rate is that of the same cell, the first of ``_COSTS``. Equal is what lies
    within its margin, and what fills the link in both variants. Harm that is excluded
    though more was moved is excluded, and harm shown though less was moved is shown.
    """
    rates = {
        one.planned.metric.name: one for one in findings if _cell(one) == _cell(share)
    }
    rate = next((rates[name] for name in _COSTS if name in rates), None)
    if rate is None or "at most small" in rate.qualifiers:
        return False
    if rate.verdict is Verdict.BETTER:
        return share.guarded not in {Guarded.SAFE, Guarded.HARM}
    if rate.verdict is Verdict.WORSE:
        return share.guarded is not Guarded.BROKEN
    return rate.verdict is Verdict.INCONCLUSIVE


def cost_at(share: Finding, findings: Sequence[Finding]) -> Finding | None:
    """Return the CPU cost that was measured where a CPU share was."""
    for name in dict.fromkeys(_COSTS.values()):
        for one in findings:
            same = _cell(one) == _cell(share) and one.planned.metric.name == name
            if same and one.comparison.change is not None:
                return one
    return None


def _cell(one: Finding) -> tuple[str, str, str]:
    question = one.comparison.question
    return question.device, question.workload, one.comparison.variant


def _answered(one: Finding, findings: Sequence[Finding]) -> bool:
    """Say whether a cost answers for this rate, which a ceiling hides."""
    full = one.role is Role.PRIMARY and one.verdict is Verdict.SATURATED
    if not full:
        return False
    cost = cost_of(one, [each for each in findings if each.role is Role.PRIMARY])
    return cost is not None


def kernel_warnings(findings: Sequence[Finding]) -> list[str]:
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
    if _capped(one):
        return False
    if one.verdict is Verdict.WORSE:
        return not (claims_same(one) and "at most small" in one.qualifiers)
    return one.verdict is Verdict.EQUIVALENT and not claims_same(one)


def is_open(one: Finding) -> bool:
    """Say whether a finding leaves the decision open."""
    if one.role is Role.GUARD:
        unknown = {Guarded.UNRESOLVED, Guarded.NOT_MEASURED}
        return one.planned.required and (one.guarded in unknown or _capped(one))
    if one.role is Role.CONTROL:
        return _moved(one)
    good = one.verdict is Verdict.BETTER
    if claims_same(one):
        small = "at most small" in one.qualifiers
        good = one.verdict is Verdict.EQUIVALENT or small
    return not good or _capped(one)


def _capped(one: Finding) -> bool:
    """Say whether a verdict is too thin to decide.

    One boot of each kernel is: boots of one and the same kernel may differ as much.
    """
    return not {"fragile", ONE_BOOT_EACH}.isdisjoint(one.qualifiers)


def _moved(one: Finding) -> bool:
    """Say whether a control changed by more than may be, or may have done so."""
    if one.verdict in {Verdict.BETTER, Verdict.WORSE}:
        return "at most small" not in one.qualifiers
    return one.verdict is not Verdict.EQUIVALENT


def overall(devices: Sequence[DeviceDecision]) -> Decision:
    """Decide over all devices; one veto is enough."""
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
