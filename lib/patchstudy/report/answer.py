"""The answer in a few words: what stands first in every form of a report."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from patchstudy.checks import Doubt
from patchstudy.decisions import Decision, DeviceDecision, is_open
from patchstudy.findings import Assessment
from patchstudy.metrics import Scale
from patchstudy.records import Severity
from patchstudy.report.figure_tables import bounds, noise_note
from patchstudy.report.lead import Interval, Intervals, Mark, Marks, Mood, Span, places
from patchstudy.sentences import (
    GUARD_WORDS,
    change_in_words,
    moved_in_words,
    on_scale,
    replication_in_words,
    shared_unit,
)
from patchstudy.study import Role
from patchstudy.units import count_of
from patchstudy.verdicts import (
    LAYOUT_NOISE,
    SHARE_SUBSTITUTE,
    SUBSTITUTE,
    UNEQUAL_RATE,
    Finding,
    Guarded,
    Verdict,
    claims_same,
)

#: Most changes that the first screen draws; the tables have them all.
_MOST: Final = 8
#: Most devices that the verdict names; of more it gives the number.
_MOST_NAMED: Final = 3
_SAID: Final = {
    Decision.ACCEPT: "Supported where it was measured",
    Decision.SMALL: "Supported, but smaller than what was declared to matter",
    Decision.VETO: "It costs more than was accepted",
    Decision.NOT_YET: "Not yet decided",
    Decision.REJECT: "The claim is not supported",
    Decision.MIXED: "The devices differ",
}
_MOODS: Final[dict[Verdict, Mood]] = {
    Verdict.BETTER: "good",
    Verdict.WORSE: "bad",
    Verdict.EQUIVALENT: "plain",
    Verdict.INCONCLUSIVE: "open",
    Verdict.SATURATED: "open",
    Verdict.NOT_ASSESSABLE: "open",
}
_GUARD_MOODS: Final[dict[Guarded, Mood]] = {
    Guarded.SAFE: "good",
    Guarded.HARM: "plain",
    Guarded.BROKEN: "bad",
    Guarded.UNRESOLVED: "open",
    Guarded.NOT_MEASURED: "plain",
}
#: The gravest first.
_GRAVITY: Final = (
    Guarded.BROKEN,
    Guarded.UNRESOLVED,
    Guarded.NOT_MEASURED,
    Guarded.HARM,
    Guarded.SAFE,
)
#: Letters of reasons that stand in the verdict; others are counted.
_MOST_LETTERS: Final = 240
_MOST_STEPS: Final = 3
_TOLD: Final = frozenset({"one-build", "order-rechecked"})


def decision_in_words(assessment: Assessment) -> str:
    """The decision; of an accepted claim of no change, what was accepted."""
    word = str(assessment.decision)
    if assessment.decision is Decision.ACCEPT and _claims_same(assessment):
        return f"{word}: no change claimed, none found"
    return word


def headline(assessment: Assessment) -> str:
    """The verdict in one sentence: what decided it, and the number of units."""
    opening = _SAID[assessment.decision]
    if assessment.decision is Decision.ACCEPT and _claims_same(assessment):
        opening = "No change was claimed, and none was found"
    if assessment.decision is Decision.VETO and not _broken(assessment):
        opening = "The kernel warned"
    if assessment.decision is Decision.MIXED:
        each = [f"{one.device} {one.decision}" for one in _judged(assessment)]
        return f"{opening}: {', '.join(each)}."
    reasons = [
        (one.device, reason.rstrip("."))
        for one in _judged(assessment)
        if one.decision is assessment.decision
        for reason in one.reasons
    ]
    together = _better_together(assessment)
    if together and assessment.decision in {Decision.ACCEPT, Decision.SMALL}:
        return f"{opening}: {together}{_margins(primaries(assessment))}."
    if not reasons:
        return f"{opening}: no primary metric was measured."
    device, first = reasons[0]
    tail = _further(device, first, reasons[1:])
    if assessment.decision is Decision.NOT_YET and (known := _settled(assessment)):
        where = f"on {device}, " * (len(_judged(assessment)) > 1)
        return f"{opening}: {together or known}; but {where}{first}{tail}."
    return f"{opening}, on {device}: {first}{tail}."


def _further(device: str, first: str, others: Sequence[tuple[str, str]]) -> str:
    """Add the next reasons as far as they fit, and say how many more there are."""
    told = ""
    for at, (where, reason) in enumerate(others):
        more = f"; {f'on {where}, ' * (where != device)}{reason}"
        if len(first) + len(told) + len(more) > _MOST_LETTERS:
            return f"{told}; {count_of(len(others) - at, 'more such reason')} below"
        told += more
    return told


def _settled(assessment: Assessment) -> str:
    """Say what is known where only guards are open; empty where a primary is too."""
    found = primaries(assessment)
    if not found or any(is_open(one) for one in found):
        return ""
    first = found[0]
    where = first.comparison.question.device
    more = f"; {len(found) - 1} more below" if len(found) > 1 else ""
    return f"on {where}, {first.sentence.rstrip('.')}{more}"


def _broken(assessment: Assessment) -> bool:
    return any(one.guarded is Guarded.BROKEN for one in assessment.findings)


def _judged(assessment: Assessment) -> list[DeviceDecision]:
    """Decisions on the patched variant: copies of the baseline do not decide."""
    first = assessment.study.design.patched[0]
    return [one for one in assessment.devices if one.variant == first]


def _claims_same(assessment: Assessment) -> bool:
    primary = primaries(assessment)
    return bool(primary) and all(claims_same(one) for one in primary)


def primaries(assessment: Assessment) -> list[Finding]:
    """Primary findings of the patched variant, with costs that answer for a rate."""
    first = assessment.study.design.patched[0]
    return [
        one
        for one in assessment.findings
        if one.role is Role.PRIMARY and one.comparison.variant == first
    ]


def _better_together(assessment: Assessment) -> str:
    """Say in one clause that several primary metrics are all better, or nothing."""
    found = primaries(assessment)
    ratios = all(one.comparison.scale is Scale.RATIO for one in found)
    better = all(one.verdict is Verdict.BETTER for one in found)
    if len(found) < 2 or not (ratios and better):
        return ""
    ordered = sorted(
        found, key=lambda one: abs(one.comparison.change.value)
        if one.comparison.change else 0.0,
    )  # fmt: skip
    least, most = (
        change_in_words(one.comparison).partition(" [")[0]
        for one in (ordered[0], ordered[-1])
    )
    *others, last = dict.fromkeys(one.comparison.question.device for one in found)
    where = f"{', '.join(others)} and {last}" if others else last
    if len(others) >= _MOST_NAMED:
        where = f"{len(others) + 1} devices"
    which = "both" if len(found) == 2 else f"all {len(found)}"
    between = "and" if len(found) == 2 else "to"
    return (
        f"better in {which} primary comparisons, on {where}, "
        f"by {least} {between} {most}"
    )


def _margins(found: Sequence[Finding]) -> str:
    margins = {one.planned.margin.text for one in found}
    material = all("material" in one.qualifiers for one in found)
    if not material:
        return ""
    if len(margins) > 1:
        return ", each more than its margin"
    return f", each more than the margin of {margins.pop()}"


# ---- changes as pictures ------------------------------------------------------------


def intervals(assessment: Assessment) -> Intervals | None:
    """The primary changes, then the controls; None where nothing was compared."""
    first = assessment.study.design.patched[0]
    controls = [
        one
        for one in assessment.findings
        if one.role is Role.CONTROL and one.comparison.variant == first
    ]
    chosen = [
        one
        for one in (*primaries(assessment), *controls)
        if one.comparison.change is not None or moved_in_words(one.comparison)
    ][:_MOST]
    if not chosen:
        return None
    drawn = [one for one in chosen if one.comparison.change is not None]
    placed = dict(zip(map(id, drawn), places(list(map(_span, drawn))), strict=True))
    return Intervals(
        items=tuple(
            Interval(
                mood=_mood(one),
                what=one.planned.metric.label
                + " (control)" * (one.role is Role.CONTROL),
                where=_where(one),
                values=moved_in_words(one.comparison),
                change=change_in_words(one.comparison),
                verdict=_verdict(one),
                runs=replication_in_words(one.comparison),
                places=placed.get(id(one)),
            )
            for one in chosen
        ),
        caption=_drawn_in_words(assessment, drawn) + "Values: baseline to patched.",
    )


def _drawn_in_words(assessment: Assessment, drawn: Sequence[Finding]) -> str:
    if not drawn:
        return ""
    return (
        f"Dot and line: the change with its {_level(assessment)} interval. "
        "Grey: changes within the margin. Upright line: no change."
        f"{noise_note(drawn)} "
    )


def _level(assessment: Assessment) -> str:
    return f"{100 * (1 - assessment.study.design.alpha):g} %"


def _mood(one: Finding) -> Mood:
    small = "at most small" in one.qualifiers
    return "plain" if one.role is Role.CONTROL and small else _MOODS[one.verdict]


def _what(one: Finding) -> str:
    control = " (control)" if one.role is Role.CONTROL else ""
    return one.planned.metric.label + control


def _where(one: Finding) -> str:
    question = one.comparison.question
    cost = "; judged in place of the rate, which is at its limit"
    full = SUBSTITUTE in one.qualifiers
    return f"{question.workload} on {question.device}{cost * full}"


def _verdict(one: Finding) -> str:
    margin = one.planned.margin.text
    for qualifier, words in (
        ("material", f"more than the margin of {margin}"),
        ("at most small", f"less than the margin of {margin}"),
        ("size uncertain", f"not certain to exceed the margin of {margin}"),
    ):
        if qualifier in one.qualifiers:
            return f"{one.verdict}, {words}"
    if one.verdict is Verdict.EQUIVALENT:
        return f"no difference beyond the margin of {margin}"
    if one.verdict is Verdict.INCONCLUSIVE:
        return f"{one.verdict}, margin {margin}{_why_open(one)}"
    said = "no change could show" if one.verdict is Verdict.SATURATED else one.verdict
    told = one.verdict in {Verdict.SATURATED, Verdict.NOT_ASSESSABLE}
    if told and one.qualifiers:
        return f"{said}: {one.qualifiers[0]}"
    return str(said)


def _why_open(one: Finding) -> str:
    if LAYOUT_NOISE not in one.qualifiers or one.layout_noise is None:
        return ""
    reach = on_scale(one.comparison, one.layout_noise, digits=2)
    return f"; code placement alone may make {reach}"


def _span(one: Finding) -> Span:
    comparison, change = one.comparison, one.comparison.change
    ratio = comparison.scale is Scale.RATIO
    margin, noise = bounds(one)
    ends = (change.value, change.low, change.high) if change else (math.nan,) * 3
    return Span(
        axis="ratio" if ratio else shared_unit(comparison)[1],
        value=ends[0],
        low=ends[1],
        high=ends[2],
        margin=margin,
        noise=noise,
    )


# ---- guards as marks ----------------------------------------------------------------


def marks(assessment: Assessment) -> Marks | None:
    """One mark a guard metric, the worst of its places; None where none is declared."""
    groups: dict[str, list[Finding]] = {}
    first = assessment.study.design.patched[0]
    for one in assessment.findings:
        if one.guarded is not None and one.comparison.variant == first:
            groups.setdefault(one.planned.metric.name, []).append(one)
    if not groups:
        return None
    questions = [one.comparison.question for one in assessment.findings]
    several = len({(one.device, one.workload) for one in questions}) > 1
    sent = _sent(assessment)
    made = sorted(
        ((_worst(members), name, members) for name, members in groups.items()),
        key=lambda found: _GRAVITY.index(found[0]),
    )
    items = tuple(_mark(*found, sent=sent, several=several) for found in made)
    return Marks(title="Guards:", items=items)


def _worst(members: Sequence[Finding]) -> Guarded:
    found = {one.guarded for one in members}
    return next(one for one in _GRAVITY if one in found)


def _sent(assessment: Assessment) -> dict[tuple[str, str], str]:
    """What was sent, in words, by device and workload: a loss is a part of it."""
    first = assessment.study.design.patched[0]
    return {
        (one.comparison.question.device, one.comparison.question.workload): moved
        for one in assessment.findings
        if one.planned.metric.name == "send_rate"
        and one.comparison.variant == first
        and (moved := moved_in_words(one.comparison))
    }


def _mark(
    worst: Guarded,
    name: str,
    members: Sequence[Finding],
    *,
    sent: Mapping[tuple[str, str], str],
    several: bool,
) -> Mark:
    at = [one for one in members if one.guarded is worst]
    what, _, size = GUARD_WORDS[worst].partition(", ")
    count = f" in {len(at)} of {len(members)} places" * (len(at) < len(members))
    return Mark(
        mood=_GUARD_MOODS[worst],
        name=name,
        word=", ".join(filter(None, (what + count, size))),
        detail=_detail(worst, at, members, sent=sent, several=several),
        target="#guards",
    )


def _detail(
    worst: Guarded,
    at: Sequence[Finding],
    members: Sequence[Finding],
    *,
    sent: Mapping[tuple[str, str], str],
    several: bool,
) -> str:
    """Give the values of the place that tells most, and what was accepted.

    The place is named where the study has ``several`` and they are not all alike.

    Of places that are all safe it is the one that moved most, else the worst one.
    """
    margin = at[0].planned.margin.text
    if worst is Guarded.NOT_MEASURED:
        return ""
    safe = worst is Guarded.SAFE
    one = max(at, key=_size if safe else _harm)
    if one.comparison.change is None:
        return ""
    change = change_in_words(one.comparison)
    moved = moved_in_words(one.comparison) if not change.startswith("none") else ""
    words = f"{moved or change}; harm of {margin} excluded"
    if not safe:
        words = f"{f'{moved}, ' * bool(moved)}{change}; margin {margin}"
        question = one.comparison.question
        rate = sent.get((question.device, question.workload), "")
        if rate and one.planned.metric.name == "loss":
            words += f"; sent were {rate}"
    alike = len({moved_in_words(each.comparison) for each in members}) == 1
    named = several and not (alike and len(members) > 1)
    return f"{_short_place(one, members)}: {words}" if named else words


def _short_place(one: Finding, members: Sequence[Finding]) -> str:
    """Name a place by its workload, with the device where others have it too."""
    question = one.comparison.question
    same = [x for x in members if x.comparison.question.workload == question.workload]
    device = f" on {question.device}" if len(same) > 1 else ""
    return f"{question.workload}{device}"


def _size(one: Finding) -> float:
    change = one.comparison.change
    return 0.0 if change is None else abs(change.value)


def _harm(one: Finding) -> float:
    change = one.comparison.change
    return 0.0 if change is None else -one.planned.metric.sign * change.value


# ---- doubts and gaps ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A doubt, told once for all places of which it is true."""

    weight: str
    places: tuple[str, ...]
    metric: str
    text: str
    todo: str

    @property
    def sentence(self) -> str:
        """The doubt in a line, without the places."""
        return f"{self.metric}: {self.text}" if self.metric else self.text


def doubts(assessment: Assessment) -> tuple[Told, ...]:
    """Doubts that touch what was declared, the gravest first: the same in every form.

    A note is told where it limits what the decision rests on.
    """
    declared = [one.comparison.question for one in told(assessment)]
    found = [
        one
        for one in assessment.doubts
        if (one.caveat.severity is not Severity.NOTE or one.caveat.code in _TOLD)
        and any(one.concerns(question) for question in declared)
    ]
    return (*once(found), *_of_findings(assessment))


def next_steps(assessment: Assessment) -> tuple[str, ...]:
    """What would remove the gravest doubts."""
    found = [
        f"{one.metric}: {one.todo}" if one.metric else one.todo
        for one in doubts(assessment)
        if one.todo
    ]
    return tuple(dict.fromkeys(found))[:_MOST_STEPS]


def once(doubts: Iterable[Doubt]) -> tuple[Told, ...]:
    """Tell equal doubts once, with all their places."""
    places: dict[tuple[str, str, str, str], list[str]] = {}
    for one in doubts:
        caveat = one.caveat
        weight = caveat.severity
        weight = Severity.DOUBT if caveat.code in _TOLD else weight
        metric = one.question.removeprefix(f"{one.device}/{one.workload}/")
        metric = metric.replace("[", " [", 1)
        key = (str(weight), metric, caveat.text, caveat.todo)
        where = " ".join(part for part in (one.device, one.workload) if part)
        places.setdefault(key, []).append(where or "all")
    return tuple(
        Told(weight=key[0], places=tuple(dict.fromkeys(where)), metric=key[1],
             text=key[2], todo=key[3])
        for key, where in places.items()
    )  # fmt: skip


def _of_findings(assessment: Assessment) -> Iterator[Told]:
    """What the findings themselves say against a result."""
    for one in primaries(assessment):
        for qualifier, text, todo in _QUALIFIERS:
            if qualifier in one.qualifiers:
                yield _told(one, one.planned.metric.name, text, todo)
    for one in assessment.findings:
        if one.planned.metric.name == "failed_runs":
            words = one.sentence.rstrip(".")
            yield _told(one, "", words, "find out why the runs failed")


_QUALIFIERS: Final = (
    (
        "fragile",
        "fragile, it rests on few units or depends on a few runs",
        "measure more units",
    ),
    (
        LAYOUT_NOISE,
        "a build that differs in layout only may change as much",
        "measure several builds of each variant",
    ),
)


def _told(one: Finding, metric: str, text: str, todo: str) -> Told:
    question = one.comparison.question
    return Told(
        weight=str(Severity.DOUBT),
        places=(f"{question.device} {question.workload}",),
        metric=metric,
        text=text,
        todo=todo,
    )


#: Qualifiers of findings whose role is not the declared one.
_MOVED: Final = frozenset({SUBSTITUTE, SHARE_SUBSTITUTE, UNEQUAL_RATE})


def told(assessment: Assessment) -> list[Finding]:
    """Findings of metrics that the study declares, or that answer for one of them."""
    shown = {Role.PRIMARY, Role.CONTROL, Role.GUARD, Role.DIAGNOSTIC}
    return [
        one
        for one in assessment.findings
        if one.role in shown
        and (
            one.planned in assessment.study.design.metrics
            or not _MOVED.isdisjoint(one.qualifiers)
        )
    ]


def not_measured(assessment: Assessment) -> list[str]:
    """What was declared and has no data, then what the study says it left out."""
    missing = [
        f"{one.planned.metric.name} on {one.comparison.question.workload}"
        for one in assessment.findings
        if one.comparison.question.problem and one.role is not Role.MECHANISM
    ]
    return [*missing, *assessment.study.design.not_measured]
