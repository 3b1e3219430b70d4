"""What the removed cost says about the change that was found, as a word and in words.

What is explained is the share of the CPU time that was removed over the share that had
to be removed. The word follows from the whole interval, never from the value alone, and
there is none where anything speaks against holding the two against each other.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from patchstudy.stats import Estimate
from patchstudy.units import with_interval

#: Part explained below which a cause is no cause, and from which it is the main one.
LITTLE: Final = 0.1
MOST: Final = 0.5
#: Costs per unit moved, in the order in which one is taken where the link is full.
COSTS: Final = ("cpu_per_byte", "cpu_per_packet")
_NONE: Final = "no interval"


class Word(StrEnum):
    """What the removed cost does for the change that was found."""

    EXPLAINS = "explains"
    PART = "explains a part"
    NOT = "does not explain"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Predicted beside found, for one primary rate on one device and workload.

    Attributes
    ----------
    response
        Metric whose change is explained: the rate, or the CPU cost of a full link.
    limit
        ``"cpu"``, ``"link"``, or empty where neither is known to be full.
    basis
        ``"profile"``: shares of the named symbols; ``"calls"``: time of the calls that
        a driver counts.
    symbols
        The named symbols, or calls; stacks that hold several symbols count once.
    removed
        Share s of the busy CPU time per packet that is gone, between 0 and 1; negative
        where the patch adds cost.
    predicted, found
        patched / baseline - 1 of ``response``.
    part
        Removed share over the share that had to be removed (1 is all of it); its ends
        are those of both intervals, taken the unfavourable way.
    reasons
        Why nothing can be told, or what weakens it.
    assumption
        Under which the removed cost predicts what it does.
    slowed
        Variant -> rate of the profile runs / median of the measured runs - 1.
    sentence
        All of it in words.

    An estimate without an interval has infinite ends.
    """

    device: str
    workload: str
    variant: str
    response: str
    limit: str
    basis: str
    symbols: tuple[str, ...]
    removed: Estimate | None
    predicted: Estimate | None
    found: Estimate | None
    part: Estimate | None
    word: Word
    reasons: tuple[str, ...]
    assumption: str
    slowed: Mapping[str, float]
    sentence: str


def weighed(one: Explained) -> Explained:
    """Add the part explained and the word for it."""
    if one.removed is None or one.found is None:
        return one
    found = one.found
    if bounded(found) and found.low <= 0 <= found.high:
        shown = "no change was found that could be explained"
        return replace(one, reasons=(*one.reasons, shown))
    part = _part(one, found)
    if one.reasons or not (bounded(part) and bounded(found)):
        return replace(one, part=part)
    word = _word(part)
    wide = ("the intervals are too wide",) if word is Word.UNKNOWN else ()
    return replace(one, part=part, word=word, reasons=wide)


def needed_share(one: Explained, change: float) -> float:
    """Share of the CPU time that must go for this change of the response."""
    if one.response in COSTS:
        return -change
    return change / (1 + change) if change > -1 else -math.inf


def _part(one: Explained, found: Estimate) -> Estimate:
    """Removed share over the one needed; without an interval if either has none."""
    assert one.removed is not None  # weighed has looked
    value = one.removed.value / needed_share(one, found.value)
    if not (bounded(one.removed) and bounded(found)):
        method = one.removed.method
        return without_interval(value, one.removed.confidence, method)
    ends = [
        share / needed_share(one, change)
        for share in (one.removed.low, one.removed.high)
        for change in (found.low, found.high)
    ]
    return replace(one.removed, value=value, low=min(ends), high=max(ends))


def _word(part: Estimate) -> Word:
    """Choose the word by the whole interval, never by the value alone."""
    if part.high < LITTLE:
        return Word.NOT
    if part.low >= MOST and part.high >= 1:
        return Word.EXPLAINS
    return Word.PART if part.low > 0 and part.high < 1 else Word.UNKNOWN


def spoken(one: Explained) -> Explained:
    """Write the sentence."""
    return replace(one, sentence=" ".join(_words(one)))


def _words(one: Explained) -> Iterator[str]:
    what = _and(one.symbols) or "the cost that the patch removes"
    quantity = "CPU per unit moved" if one.response in COSTS else "the rate"
    found = "no comparison" if one.found is None else change_in_words(one.found)
    if one.removed is not None and one.predicted is not None:
        where = {"cpu": "on a full CPU", "link": "on a full link"}.get(
            one.limit, "if a CPU were full"
        )
        way = "less" if one.removed.value >= 0 else "more"
        yield (
            f"{what}: {100 * abs(one.removed.value):.1f} % of the busy CPU time per "
            f"packet {way}; {where} that predicts {change_in_words(one.predicted)} for "
            f"{quantity}, found: {found}."
        )
    else:
        yield f"Found: {found} for {quantity}."
    yield _verdict(one, what)
    if one.word is Word.UNKNOWN and one.part is not None:
        yield f"At face value it is {part_in_words(one.part)} of what was needed."
    if one.removed is not None and one.assumption:
        yield f"Assumed: {one.assumption}."


def _verdict(one: Explained, what: str) -> str:
    if one.word is Word.UNKNOWN or one.part is None:
        return f"Cannot tell: {'; '.join(one.reasons)}."
    said, part = f"{what} {one.word}", part_in_words(one.part)
    if one.word is Word.PART:
        return f"So {said}: {part}."
    if one.part.value < 0:
        return f"So {said} the change: it points the other way."
    return f"So {said} the change ({part} of it)."


def brief(one: Explained) -> str:
    """Say it in two lines of a mail, without what is assumed."""
    predicted = "nothing" if one.predicted is None else change_in_words(one.predicted)
    found = "nothing" if one.found is None else change_in_words(one.found)
    part = ""
    if one.part is not None and one.part.value > 0:
        part = f", {part_in_words(one.part)} of what was needed"
    answer = str(one.word) + (f" ({'; '.join(one.reasons)})" if one.reasons else "")
    return (
        f"{_and(one.symbols)} predicts {predicted} for {one.response}, found "
        f"{found}{part}: {answer}"
    )


def change_in_words(one: Estimate) -> str:
    """Write a change in percent with its interval, or say that there is none."""
    if not bounded(one):
        return f"{100 * one.value:+.1f} % ({_NONE})"
    numbers = (100 * x for x in (one.value, one.low, one.high))
    value, low, high = with_interval(*numbers, floor=-100.0)
    return f"{value} % [{low}, {high}]"


def part_in_words(one: Estimate) -> str:
    """Write the part explained in percent."""
    if not bounded(one):
        return f"{100 * one.value:.0f} % ({_NONE})"
    return f"{100 * one.value:.0f} % [{100 * one.low:.0f}, {100 * one.high:.0f}]"


def _and(names: Sequence[str]) -> str:
    *first, last = names or ("",)
    return f"{', '.join(first)} and {last}" if first else last


def without_interval(value: float, confidence: float, method: str) -> Estimate:
    """Return a value whose uncertainty is not known."""
    return Estimate(
        value=value,
        low=-math.inf,
        high=math.inf,
        confidence=confidence,
        method=method,
    )


def bounded(estimate: Estimate) -> bool:
    """Say whether an estimate has an interval."""
    return math.isfinite(estimate.low) and math.isfinite(estimate.high)
