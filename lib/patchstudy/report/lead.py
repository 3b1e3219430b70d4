"""What stands first in a report: changes as pictures, guards as a row of marks.

Both are lists of words that say everything; the picture and the sign only help the eye.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bs4 import Tag

from patchstudy.report.table import shown, visible

Mood = Literal["good", "bad", "open", "plain"]

#: The sign before a word, so that no meaning hangs on a colour.
SIGNS: Final[dict[Mood, str]] = {
    "good": "\N{CHECK MARK}",
    "bad": "\N{BALLOT X}",
    "open": "?",
    "plain": "\N{EN DASH}",
}
_MOODS: Final = frozenset(SIGNS)
_BOTH: Final = (1, -1)

Places = tuple[float, float, float, float, float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One guard: its name, the word for what is known of it, and a number.

    Attributes
    ----------
    target
        Where the mark leads: ``#name``; may be empty.
    """

    mood: Mood
    name: str
    word: str
    detail: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """A row of marks after the word for all of them."""

    title: str
    items: tuple[Mark, ...]

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, str]:
        lines = [
            f"{SIGNS[one.mood]} {one.name}: {one.word}"
            + (f", {one.detail}" if one.detail else "")
            for one in self.items
        ]
        plain = "\n".join(map(visible, [self.title, *lines]))
        return {"text/html": marks_to_html(self), "text/plain": plain}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One change: in words, and as places on a line.

    Attributes
    ----------
    what, where
        The metric; the workload, the device and what else tells it apart.
    values
        Baseline and patched with their unit; may be empty.
    change, verdict, runs
        The change with its interval, the verdict, the replication, in words.
    places
        Zero, low end, value, high end, lower and upper margin, lower and upper end of
        what code placement alone may show (both at zero where that is not known), in
        percent of the width. An end at 0 or 100 leaves the picture. None where there is
        no interval to draw.
    """

    mood: Mood
    what: str
    where: str
    values: str
    change: str
    verdict: str
    runs: str
    places: Places | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Changes, one below the other, and what the pictures mean."""

    items: tuple[Interval, ...]
    caption: str

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, str]:
        lines = [
            f"{one.what}, {one.where}: {one.values}{', ' * bool(one.values)}"
            f"{one.change}, {one.verdict}, {one.runs}"
            for one in self.items
        ]
        plain = "\n".join(map(visible, lines))
        return {"text/html": intervals_to_html(self), "text/plain": plain}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A change with its interval, margin and noise on one axis; NaN if unknown."""

    axis: str
    value: float
    low: float
    high: float
    margin: float
    noise: float


# ---- places -------------------------------------------------------------------------


def places(spans: Sequence[Span]) -> list[Places]:
    """Put changes onto lines whose zero is in one place; each axis has its own scale.

    No interval flattens the others: ends count as far as three times the largest
    change or margin of their axis, that of an interval alone on its axis twenty times.
    """
    limits = {
        axis: _limits([one for one in spans if one.axis == axis])
        for axis in dict.fromkeys(one.axis for one in spans)
    }
    zero = max((-low / (high - low) for low, high in limits.values()), default=0.5)
    return [_placed(one, limits[one.axis], zero) for one in spans]


def _limits(spans: Sequence[Span]) -> tuple[float, float]:
    known = [abs(x) for one in spans for x in (one.value, one.margin, one.noise)]
    reach = 3 if len(spans) > 1 else 20
    far = reach * max((x for x in known if math.isfinite(x)), default=0.0) or math.inf
    ends = [x for one in spans for x in (one.low, one.high)]
    ends += [
        sign * x for one in spans for x in (one.margin, one.noise) for sign in _BOTH
    ]
    points = [min(max(x, -far), far) for x in ends if math.isfinite(x)]
    low, high = min([0.0, *points]), max([0.0, *points])
    room = 0.08 * (high - low) or 1.0
    return low - room, high + room


def _placed(one: Span, limits: tuple[float, float], zero: float) -> Places:
    low, high = limits
    scale = max(-low / zero, high / (1 - zero))

    def at(x: float) -> float:
        return round(100 * min(max(zero + x / scale, 0.0), 1.0), 2)

    margin, noise = (x if math.isfinite(x) else 0.0 for x in (one.margin, one.noise))
    return (
        at(0.0), at(one.low), at(one.value), at(one.high), at(-margin), at(margin),
        at(-noise), at(noise),
    )  # fmt: skip


# ---- HTML, and back -----------------------------------------------------------------


def marks_to_html(marks: Marks) -> str:
    """Return a list whose classes are the moods; the sign is for the eye only."""
    items = "".join(f"{_mark(one)}\n" for one in marks.items)
    title = f'<li class="title">{shown(marks.title)}</li>\n'
    return f'<ul class="marks">\n{title}{items}</ul>'


def _mark(one: Mark) -> str:
    name = f'<span class="name">{shown(one.name)}</span>'
    if one.target:
        name = f'<a class="name" href="{shown(one.target)}">{shown(one.name)}</a>'
    sign = f'<span class="sign" aria-hidden="true">{SIGNS[one.mood]}</span>'
    detail = f' <span class="detail">{shown(one.detail)}</span>' if one.detail else ""
    return (
        f'<li class="{one.mood}">{sign} {name} '
        f'<span class="word">{shown(one.word)}</span>{detail}</li>'
    )


def intervals_to_html(intervals: Intervals) -> str:
    """Return a list of changes, each with a line drawn in the colour of the text."""
    items = "".join(f"{_interval(one)}\n" for one in intervals.items)
    caption = f'<li class="caption">{shown(intervals.caption)}</li>\n'
    return f'<ul class="intervals">\n{items}{caption}</ul>'


def _interval(one: Interval) -> str:
    spans = "".join(
        f' <span class="{name}">{shown(getattr(one, name))}</span>'
        for name in ("what", "where", "values")
        if getattr(one, name)
    )
    told = "".join(
        f' <span class="{name}">{shown(getattr(one, name))}</span>'
        for name in ("change", "verdict", "runs")
    )
    at = " ".join(f"{place:g}" for place in one.places or ())
    drawn = _drawn(one.places) if one.places else '<div class="none"></div>'
    return (
        f'<li class="{one.mood}" data-places="{at}"><div class="of">{spans}</div>'
        f'{drawn}<div class="told">{told}</div></li>'
    )


def _drawn(at: Places) -> str:
    zero, low, value, high, under, over, *noise = at
    dashed = "".join(
        f'<line x1="{end:g}%" x2="{end:g}%" y1="2" y2="24" stroke="currentColor" '
        'stroke-dasharray="3 2"/>'
        for end in noise
        if end != zero
    )
    return (
        '<svg width="100%" height="26" aria-hidden="true">'
        f'<rect class="margin" x="{under:g}%" y="2" width="{over - under:g}%" '
        'height="22" fill="currentColor" fill-opacity=".12"/>'
        f'<line x1="{zero:g}%" x2="{zero:g}%" y1="0" y2="26" stroke="currentColor" '
        f'stroke-opacity=".55"/>{dashed}'
        f'<line class="range" x1="{low:g}%" x2="{high:g}%" y1="13" y2="13" '
        'stroke="currentColor" stroke-width="3"/>'
        f'<circle class="dot" cx="{value:g}%" cy="13" r="5" fill="currentColor"/>'
        "</svg>"
    )


def read_marks(tag: Tag) -> Marks:
    """Read marks from the list that ``marks_to_html`` made, or one like it."""
    items = tuple(map(_read_mark, _entries(tag)))
    return Marks(title=_words(tag, "title"), items=items)


def _read_mark(tag: Tag) -> Mark:
    link = tag.find("a")
    target = str(link.get("href", "")) if link else ""
    return Mark(
        mood=_mood(tag),
        name=_words(tag, "name"),
        word=_words(tag, "word"),
        detail=_words(tag, "detail"),
        target=target if target.startswith("#") else "",
    )


def read_intervals(tag: Tag) -> Intervals:
    """Read changes from the list that ``intervals_to_html`` made, or one like it."""
    items = tuple(map(_read_interval, _entries(tag)))
    return Intervals(items=items, caption=_words(tag, "caption"))


def _read_interval(tag: Tag) -> Interval:
    return Interval(
        mood=_mood(tag),
        what=_words(tag, "what"),
        where=_words(tag, "where"),
        values=_words(tag, "values"),
        change=_words(tag, "change"),
        verdict=_words(tag, "verdict"),
        runs=_words(tag, "runs"),
        places=_read_places(str(tag.get("data-places", ""))),
    )


def _read_places(text: str) -> Places | None:
    """Eight numbers from 0 to 100; a line without length where that is not so."""
    if not text:
        return None
    try:
        found = [float(word) for word in text.split()]
    except ValueError:
        found = []
    if len(found) != 8 or not all(0 <= one <= 100 for one in found):
        found = [50.0] * 8
    zero, low, value, high, *bands = found
    under, over, least, most = (*sorted(bands[:2]), *sorted(bands[2:]))
    return zero, low, value, high, under, over, least, most


def _entries(tag: Tag) -> Iterable[Tag]:
    """The entries that have a mood; others are words about the list."""
    return [one for one in tag.find_all("li") if _MOODS & _classes(one)]


def _classes(tag: Tag) -> set[str]:
    found = tag.get("class")
    return {found} if isinstance(found, str) else set(found or ())


def _mood(tag: Tag) -> Mood:
    found = _classes(tag)
    moods: tuple[Mood, ...] = ("good", "bad", "open")
    for mood in moods:
        if not found.isdisjoint({mood}):
            return mood
    return "plain"


def _words(tag: Tag, name: str) -> str:
    found = tag.find(class_=name)
    return " ".join(found.get_text(" ").split()) if found else ""
