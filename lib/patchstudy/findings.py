"""From the runs of a study to its findings and its decision.

One comparison alone gets its verdict in ``verdicts``; here are the rules for which
several are needed: substitutes, placebo builds, failed runs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pandas as pd

from patchstudy import (
    banks,
    calls,
    checks,
    durations,
    failures,
    flames,
    profiles,
    reported,
)
from patchstudy.banks import Tested
from patchstudy.cards import Carded, Rows
from patchstudy.checks import Doubt, Material
from patchstudy.compare import Comparison, compare, described, margin_on_scale
from patchstudy.counters import Counted, counters
from patchstudy.decisions import (
    Decision,
    DeviceDecision,
    cost_at,
    cost_of,
    overall,
    per_device,
    uneven_rate,
)
from patchstudy.explained import explained
from patchstudy.failures import Failures
from patchstudy.mechanism import Explanation, explanations
from patchstudy.metrics import Better, Kind, Metric, Scale
from patchstudy.records import Severity
from patchstudy.sentences import (
    failed_sentence,
    headline,
    sentence_of,
)
from patchstudy.study import Design, Margin, Planned, Role, Study, is_published
from patchstudy.tables import Question
from patchstudy.verdicts import (
    LAYOUT_NOISE,
    NOT_TESTABLE,
    RUNS_FAILED,
    SHARE_SUBSTITUTE,
    SIZES,
    SUBSTITUTE,
    UNEQUAL_RATE,
    Finding,
    Guarded,
    Verdict,
    claims_same,
    guarded_of,
    qualifiers_of,
    verdict_of,
)
from patchstudy.weighing import Explained


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Assessment(Carded):
    """All that a report says about a study.

    What only some sections show is worked out when it is first asked for, and once.
    """

    study: Study
    material: Material
    doubts: tuple[Doubt, ...]
    findings: tuple[Finding, ...]
    failures: tuple[Failures, ...]
    explanations: tuple[Explanation, ...]
    explained: tuple[Explained, ...]
    tested: tuple[Tested, ...]
    devices: tuple[DeviceDecision, ...]
    decision: Decision
    sentence: str

    def card(self) -> tuple[str, Rows]:
        """Tell the decision, why, and how much is behind it."""
        weights = Counter(str(one.caveat.severity) for one in self.doubts)
        verdicts = Counter(str(one.verdict) for one in self.findings)
        return f"{self.study.name}: {self.decision}", (
            ("why", self.sentence),
            *((f"{one.device}, {one.variant}", str(one.decision))
              for one in self.devices),
            ("findings", _counted(verdicts)),
            ("doubts", _counted(weights) or "none"),
        )  # fmt: skip

    @cached_property
    def counted(self) -> tuple[Counted, ...]:
        """Which counters changed, of all that were read."""
        return counters(self.study, self.material.runs)

    @cached_property
    def profiled(self) -> pd.DataFrame:
        """Shares and costs of symbols, as ``profiles.difference`` has them."""
        return profiles.difference(self.study)

    @cached_property
    def reported(self) -> pd.DataFrame:
        """Self shares where no stacks are, as ``reported.difference`` has them."""
        return reported.difference(self.study)

    @cached_property
    def called(self) -> pd.DataFrame:
        """The calls of every run, source and function, as ``calls.calls`` has them."""
        return calls.calls(self.study)

    @cached_property
    def call_costs(self) -> pd.DataFrame:
        """What they cost in both variants, as ``calls.costs`` has it."""
        return calls.costs(self.called, self.study)

    @cached_property
    def durations(self) -> pd.DataFrame:
        """How the cost of a call is spread, as ``durations.durations`` has it."""
        return durations.durations(self.study)

    @cached_property
    def flamed(self) -> pd.DataFrame:
        """The frames of the flame graphs, as ``flames.flames`` has them."""
        return flames.flames(self.study)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.most_common())


# Tables are cut into hundreds of parts, at which Arrow's strings are slow.
@pd.option_context("mode.string_storage", "python")
def assess(study: Study) -> Assessment:
    """Go from the runs of a study to its decision."""
    material = checks.material(study)
    doubts = checks.check(material)
    bank = banks.bank_of(study)
    compared = compare(material.units, material.asked, study.design, doubts, bank)
    failed = failures.count(material)
    judged_alone = [judge(one, study) for one in compared]
    findings = _together(judged_alone, material, failed)
    devices = tuple(per_device(findings, study.design))
    # further variants (a placebo, a copy of the baseline) do not decide
    first = study.design.patched[0]
    judged = _measured_here([one for one in devices if one.variant == first])
    decision = overall(judged)
    names = {one.device for one in judged}
    shown = [one for one in findings if one.comparison.variant == first]
    if names and not any(map(is_published, names)):
        shown = [x for x in shown if not is_published(x.comparison.question.device)]
    return Assessment(
        study=study,
        material=material,
        doubts=_all_doubts(doubts, compared),
        findings=findings,
        failures=failed,
        explanations=tuple(explanations(study)),
        explained=explained(study, material.runs, compared),
        tested=tuple(banks.tested(study, compared, bank)),
        devices=devices,
        decision=decision,
        sentence=headline(decision, judged, shown, study.design.metrics),
    )


def _measured_here(devices: Sequence[DeviceDecision]) -> Sequence[DeviceDecision]:
    """Leave out published values where something was measured: they do not decide."""
    return [one for one in devices if not is_published(one.device)] or devices


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


def judge(comparison: Comparison, study: Study) -> Finding:
    """Judge one comparison against the margin that was declared for it."""
    margin = margin_on_scale(comparison)
    limit = checks.ceiling(study, comparison.question)
    verdict, size = verdict_of(comparison, margin, limit[0] if limit else None)
    design = study.design
    finding = Finding(
        comparison=comparison,
        role=comparison.question.role,
        verdict=verdict,
        guarded=None,
        qualifiers=(*size, *qualifiers_of(comparison, verdict, design)),
        margin=margin,
        named=comparison.variant if len(design.patched) > 1 else "",
        sentence="",
    )
    return _spoken(finding)


def _spoken(finding: Finding) -> Finding:
    """Write the sentence, and of a guard what is known of harm."""
    if finding.role is Role.GUARD:
        finding = replace(finding, guarded=guarded_of(finding))
    return replace(finding, sentence=sentence_of(finding))


def _together(
    findings: Sequence[Finding], material: Material, failed: Sequence[Failures]
) -> tuple[Finding, ...]:
    """Judge what one comparison alone cannot tell."""
    study = material.study
    comparable = list(_at_equal_rate(findings, study))
    answered = [*_saturated(comparable), *_substitutes(comparable, study)]
    beyond = _beyond_layout(answered, material)
    marked = [_with_failures(one, failed) for one in beyond]
    return (*marked, *(_failed_guard(one, study.design) for one in failed))


def _beyond_layout(
    findings: Sequence[Finding], material: Material
) -> Iterator[Finding]:
    """Hold changes against what builds that differ in layout only show.

    That is the spread between several of them, or else the interval of the placebo.
    """
    design = material.study.design
    placebo = {
        one.comparison.question.key: one.comparison
        for one in findings
        if one.comparison.variant == design.placebo
    }
    for one in findings:
        question, confidence = one.comparison.question, 1 - design.alpha
        floor = checks.layout_floor(material, question)
        reach = _reach(placebo.get(question.key), one.comparison, confidence)
        if floor is not None and one.comparison.scale is Scale.RATIO:
            reach = floor.reach(confidence)
        copy = one.comparison.variant in {design.placebo, design.base2}
        yield one if reach is None or copy else _against(one, reach, confidence)


def _against(one: Finding, reach: float, confidence: float) -> Finding:
    """Apply STATISTICS 3.7: an effect exceeds what code layout may have changed.

    A control, or a claim of no change, that moved within its margin stays as it is.
    """
    one = replace(one, layout_noise=reach)
    effect = one.comparison.effect
    same = one.role is Role.CONTROL or claims_same(one)
    if one.verdict not in {Verdict.BETTER, Verdict.WORSE}:
        return one
    if effect is None or (same and "at most small" in one.qualifiers):
        return one
    own = effect.interval(confidence)
    if reach < max(own.low, -own.high):
        kept = tuple(word for word in one.qualifiers if word != "one build each")
        return _spoken(replace(one, qualifiers=kept))
    kept = tuple(word for word in one.qualifiers if word not in SIZES)
    noisy = replace(one, verdict=Verdict.INCONCLUSIVE, qualifiers=(LAYOUT_NOISE, *kept))
    return _spoken(noisy)


def _reach(
    placebo: Comparison | None, other: Comparison, confidence: float
) -> float | None:
    """Largest change, either way, that the interval of a placebo allows."""
    if placebo is None or placebo.effect is None or placebo.scale is not other.scale:
        return None
    interval = placebo.effect.interval(confidence)
    return max(abs(interval.low), abs(interval.high))


_CPU_SHARES: Final = frozenset({"cpu_busy", "cpu_busy_max", "cpu_softirq"})


def _at_equal_rate(findings: Sequence[Finding], study: Study) -> Iterator[Finding]:
    """Judge the CPU cost where a CPU share is not comparable (STATISTICS 3.9).

    A CPU share tells how busy a machine was, whatever it moved meanwhile. It is guarded
    only where the rate stayed the same; else it is described, and the cost is guarded.
    """
    uneven = [
        one
        for one in findings
        if one.role is Role.GUARD
        and one.planned.metric.name in _CPU_SHARES
        and one.comparison.change is not None
        and uneven_rate(one, findings)
    ]
    answers = {id(cost_at(one, findings)): one for one in uneven}
    guards = sum(one.role is Role.GUARD for one in findings)
    for one in findings:
        share = answers.get(id(one))
        if one in uneven:
            answered = cost_at(one, findings) is not None
            role = Role.DIAGNOSTIC if answered else Role.GUARD
            yield _in_role(one, role, UNEQUAL_RATE)
        elif share is not None and one.role not in {Role.PRIMARY, Role.GUARD}:
            found = one.comparison.p_value
            p_value = None if found is None else min(1.0, found * guards)
            guarded = replace(
                one, comparison=replace(one.comparison, p_adjusted=p_value)
            )
            yield _in_role(guarded, Role.GUARD, SHARE_SUBSTITUTE)
        else:
            yield one


def _in_role(one: Finding, role: Role, qualifier: str) -> Finding:
    """Return a finding in another role, with the reason as its qualifier."""
    question = one.comparison.question
    required = question.planned.required or role is Role.GUARD
    planned = replace(question.planned, role=role, required=required)
    asked = replace(question, planned=planned, role=role)
    return _spoken(
        replace(
            one,
            comparison=replace(one.comparison, question=asked),
            role=role,
            guarded=None,
            qualifiers=(*one.qualifiers, qualifier),
        )
    )


def _saturated(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Say of each saturated primary metric whether another one answers for it."""
    for one in findings:
        full = one.role is Role.PRIMARY and one.verdict is Verdict.SATURATED
        if full and cost_of(one, findings) is None:
            one = replace(one, qualifiers=(*one.qualifiers, NOT_TESTABLE))  # noqa: PLW2901
        yield _spoken(one) if full else one


def _substitutes(findings: Sequence[Finding], study: Study) -> Iterator[Finding]:
    """Judge the cost in place of each rate that a ceiling hides (STATISTICS 3.8)."""
    for one in findings:
        full = one.role is Role.PRIMARY and one.verdict is Verdict.SATURATED
        cost = cost_of(one, findings) if full else None
        if cost is None or cost.role is Role.PRIMARY:
            continue
        question = cost.comparison.question
        planned = replace(
            question.planned, role=Role.PRIMARY, expect=one.planned.expect
        )
        asked = replace(question, planned=planned, role=Role.PRIMARY)
        again = judge(replace(cost.comparison, question=asked, p_adjusted=None), study)
        yield _spoken(replace(again, qualifiers=(*again.qualifiers, SUBSTITUTE)))


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
        sentence=failed_sentence(one),
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
