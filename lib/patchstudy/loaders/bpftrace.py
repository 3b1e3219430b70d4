"""Read ``bpftrace``: maps as text or, with ``-f json``, as one document a line.

Text (src/output.cpp): ``@map[key, key]: value``, tables of ``hist`` and ``lhist`` under
``@map[key]:``, stacks as keys over several lines, and what the program prints itself,
which is passed over with a note. Counts and sums become ``event:<map>``; with several
keys they are one label, ``key``, as printed. Of a map that is printed more than once
(each interval) the last printing counts, with a caveat: whether it was cleared between
is not in the file. Of histograms ``event:<map>_count``, and their buckets as facts with
inclusive bounds (text has ``[a, b)``; K, M, G are 2^10, 2^20, 2^30); of ``stats`` the
mean as well. Maps with stacks as keys are profiles.

A histogram whose map is named by a unit of time (``@usecs``, ``@alloc_ns``) holds
durations; bpftrace itself tells no unit, so one of another name is none, with a note.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Durations, Fault, Profile, RawFile, Stack

_ATTACHING: Final = re.compile(r"Attach(?:ing|ed) \d+ probes?(?:\.\.\.)?")
_MAP: Final = re.compile(
    r"(?P<map>@\w*)(?:\[(?P<key>.*)\])?: ?(?P<value>-?\d{1,20})?\s*"
)
_STATS: Final = re.compile(
    r"(?P<map>@\w*)(?:\[(?P<key>.*)\])?: count (?P<count>\d+), average (?P<mean>-?\d+),"
    r" total (?P<total>-?\d+)\s*"
)
_BUCKET: Final = re.compile(
    r"(?:\[(?P<low>-?\d+[KMGTPE]?), (?P<high>-?\d+[KMGTPE]?)\)|"
    r"\[(?P<one>-?\d+[KMGTPE]?)\]|"
    r"\(\.\.\., (?P<below>-?\d+[KMGTPE]?)\)|\[(?P<above>-?\d+[KMGTPE]?), \.\.\.\))"
    r"\s+(?P<count>\d+)\s+\|[@ ]*\|\s*"
)
_OPENS_STACK: Final = re.compile(r"(?P<map>@\w*)\[\s*")
_CLOSES_STACK: Final = re.compile(
    r"\s*+(?:, )?(?P<key>[^\]]*+)\]: (?P<count>\d{1,20})\s*"
)
#: Name of a map of durations: what was timed, and the unit.
_TIMED: Final = re.compile(
    r"@(?:(?P<name>\w+)_)?(?P<unit>ns|nsecs?|us|usecs?|ms|msecs?|secs?)"
)
_SECONDS: Final = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "s": 1.0}
_LOST: Final = re.compile(r"Lost (\d{1,18}) events\s*")
_ERROR: Final = re.compile(r"(?:\S+: )?ERROR: |\S+:\d+:\d+-\d+: ERROR: ")


@dataclass(slots=True)
class _Maps:
    """Values by map and key, buckets by map and key, stacks by map."""

    values: dict[tuple[str, str], int] = field(default_factory=dict)
    means: dict[tuple[str, str], int] = field(default_factory=dict)
    hists: dict[tuple[str, str], list[dict[str, int]]] = field(default_factory=dict)
    stacks: dict[str, list[Stack]] = field(default_factory=dict)
    repeated: bool = False
    printed: int = 0
    lost: int = 0

    def value(self, name: str, key: str, number: int) -> None:
        """Keep a value; the last one of several counts."""
        self.repeated = self.repeated or (name, key) in self.values
        self.values[name, key] = number


def sniff(raw: RawFile) -> bool:
    """Say whether bpftrace says what it attached, or the first lines are its maps."""
    head = raw.head.lstrip()
    if head.startswith('{"type": "') and '"data": ' in head[:200]:
        return True
    top = [one for one in head.split("\n") if one.strip()]
    if any(_ATTACHING.fullmatch(one) for one in top[:3]):
        return True
    if any(_ERROR.match(one) and "bpftrace" in head for one in top[:2]):
        return True
    return (
        bool(top)
        and top[0].startswith("@")
        and bool(_MAP.fullmatch(top[0]) or _OPENS_STACK.fullmatch(top[0]))
    )


def load(raw: RawFile) -> Capture:
    """Read every map."""
    maps = _Maps()
    problem = next((one for one in raw.head.split("\n") if "ERROR: " in one), None)
    is_json = raw.head.lstrip().startswith("{")
    for number, line in enumerate(raw.text.replace("\r\n", "\n").split("\n"), start=1):
        if is_json and line.strip():
            _document(raw, maps, line, number)
    if not is_json:
        _text(maps, raw.text.replace("\r\n", "\n").split("\n"))
    out = Reading()
    _add(out, maps)
    found = maps.values or maps.hists or maps.stacks
    error = Fault(text=problem.strip()[:120]) if problem and not found else None
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="bpftrace",
        measurements=tuple(out.measurements),
        profiles=tuple(
            Profile(event=name, unit="event", stacks=tuple(stacks))
            for name, stacks in maps.stacks.items()
        ),
        durations=tuple(_durations(maps.hists)),
        facts={"histograms": [_as_fact(*one) for one in maps.hists.items()]},
        caveats=(*out.caveats, *line_end(raw)),
        error=error,
    )


def _as_fact(
    place: tuple[str, str], buckets: list[dict[str, int]]
) -> dict[str, object]:
    return {"map": place[0], "key": place[1], "buckets": buckets}


def _durations(
    hists: Mapping[tuple[str, str], Sequence[Mapping[str, int]]],
) -> Iterator[Durations]:
    """Yield the histograms of times; times were cut to whole units before."""
    for (name, key), buckets in hists.items():
        timed = _TIMED.fullmatch(name)
        ends = [
            (one["max"] + 1 if "max" in one else math.inf, one["count"])
            for one in buckets
        ]
        known = sorted(one for one in ends if one[0] > 0)  # below are faults of a clock
        if timed and known:
            unit_s = _SECONDS[timed["unit"][0]]
            yield Durations(
                function=" ".join(filter(None, (timed["name"], key))),
                upper_s=tuple(end * unit_s for end, _ in known),
                calls=tuple(calls for _, calls in known),
            )


def _add(out: Reading, maps: _Maps) -> None:
    totals: dict[str, int] = {}
    for (name, key), value in maps.values.items():
        metric = f"event:{name}"
        if key:
            totals[metric] = totals.get(metric, 0) + value
        out.whole(metric, value, {"key": key} if key else None)
    for (name, key), mean in maps.means.items():
        out.whole(f"event:{name}_average", mean, {"key": key} if key else None)
    for (name, key), buckets in maps.hists.items():
        count = sum(one["count"] for one in buckets)
        out.whole(f"event:{name}_count", count, {"key": key} if key else None)
    _buckets(out, dict.fromkeys(name for name, _ in maps.hists))
    if maps.repeated:
        text = "a map is printed more than once; its last printing counts"
        out.doubt("printed-again", text, "Print the maps at the end only.")
    if maps.lost:
        text = f"bpftrace lost {maps.lost} events; what it prints of them is missing"
        out.doubt("events-lost", text, "Enlarge BPFTRACE_PERF_RB_PAGES, or print less.")
    if maps.printed:
        text = f"not read: {maps.printed} lines of the program itself, or no numbers"
        out.note("lines-unread", text)


def _buckets(out: Reading, names: Iterable[str]) -> None:
    """Say which histograms are of times, and that their buckets are coarse."""
    timed = [one for one in names if _TIMED.fullmatch(one)]
    unnamed = [one for one in names if one not in timed]
    if unnamed:
        text = (
            f"whether the histograms {', '.join(unnamed)} are of times is not told; a"
            " map of times ends in its unit, like @alloc_ns"
        )
        out.note("unit-unknown", text)
    if timed:
        text = "a duration is known to the bucket of its histogram only"
        out.note("histogram-buckets", text)


# ---- JSON ---------------------------------------------------------------------------


def _document(raw: RawFile, maps: _Maps, line: str, number: int) -> None:
    """Read one document."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        problem = f"not JSON ({error}); was it cut short?"
        raise CaptureError(raw.path, problem, where=str(number)) from error
    data = found.get("data") if isinstance(found, dict) else None
    kind = str(found.get("type")) if isinstance(found, dict) else None
    if kind in {"printf", "time", "cat", "join", "syscall"}:
        maps.printed += 1
    if kind == "lost_events" and isinstance(data, dict):
        maps.lost += _count(data.get("events"))
    if kind not in {"map", "stats", "hist"} or not isinstance(data, dict):
        return
    for name, value in data.items():
        for key, one in _entries(kind, value):
            _entry(maps, (name, key), one)


def _entries(kind: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the keys of a map; one without keys has the empty one."""
    summary = isinstance(value, dict) and {"count", "total"} <= value.keys()
    if isinstance(value, dict) and not (kind == "stats" and summary):
        yield from value.items()
    else:
        yield "", value


def _entry(maps: _Maps, place: tuple[str, str], one: object) -> None:
    name, key = place
    if isinstance(one, int) and not isinstance(one, bool):
        maps.value(name, key, one)
    elif isinstance(one, list) and all(isinstance(part, dict) for part in one):
        maps.hists[place] = [
            {
                word: bucket[word]
                for word in ("min", "max", "count")
                if isinstance(bucket.get(word), int)
            }
            for bucket in one
            if isinstance(bucket, dict) and isinstance(bucket.get("count"), int)
        ]
    elif isinstance(one, dict) and isinstance(one.get("count"), int):
        maps.value(name, key, one["count"])
        if isinstance(one.get("average"), int):
            maps.means[place] = one["average"]
    else:
        maps.printed += 1  # a tuple or a word: no number


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


# ---- text ---------------------------------------------------------------------------


def _text(maps: _Maps, rows: list[str]) -> None:
    """Read maps of text; state: the histogram or the stack that is open."""
    hist: tuple[str, str] | None = None
    stack: tuple[str, list[str]] | None = None
    for line in rows:
        if stack is not None:
            stack = _in_stack(maps, stack, line)
        elif bucket := _BUCKET.fullmatch(line):
            if hist is not None:
                maps.hists.setdefault(hist, []).append(_bounds(bucket))
        elif opened := _OPENS_STACK.fullmatch(line):
            stack = opened["map"], []
        elif lost := _LOST.fullmatch(line):
            maps.lost += int(lost[1])
        elif line.strip() and not _ATTACHING.fullmatch(line):
            hist = _map(maps, line)


def _map(maps: _Maps, line: str) -> tuple[str, str] | None:
    """Read the line of a map; return the place of the histogram that it opens."""
    if stats := _STATS.fullmatch(line):
        place = stats["map"], stats["key"] or ""
        maps.value(*place, int(stats["count"]))
        maps.means[place] = int(stats["mean"])
        return None
    found = _MAP.fullmatch(line)
    if found is None:
        maps.printed += 1
        return None
    place = found["map"], found["key"] or ""
    if found["value"] is not None:
        maps.value(*place, int(found["value"]))
        return None
    maps.repeated = maps.repeated or place in maps.hists
    maps.hists[place] = []
    return place


def _in_stack(
    maps: _Maps, stack: tuple[str, list[str]], line: str
) -> tuple[str, list[str]] | None:
    """Read a frame of a key, or the end of the key with its count."""
    name, frames = stack
    if end := _CLOSES_STACK.fullmatch(line):
        leaf_last = tuple(reversed(frames)) or ("[unknown]",)
        count = int(end["count"])
        comm = end["key"].strip(" ,") or None
        one = Stack(frames=leaf_last, weight=count, samples=count, comm=comm)
        maps.stacks.setdefault(name, []).append(one)
        return None
    if line.strip(" ,"):
        frames.append(re.sub(r"\+(?:0x[0-9a-f]+|\d+)$", "", line.strip()))
    return stack


def _bounds(bucket: re.Match[str]) -> dict[str, int]:
    """Return the inclusive bounds of a bucket; those that are open are absent."""
    found = {"count": int(bucket["count"])}
    if bucket["one"] is not None:
        found |= {"min": _number(bucket["one"]), "max": _number(bucket["one"])}
    if bucket["low"] is not None:
        found |= {"min": _number(bucket["low"]), "max": _number(bucket["high"]) - 1}
    if bucket["below"] is not None:
        found["max"] = _number(bucket["below"]) - 1
    if bucket["above"] is not None:
        found["min"] = _number(bucket["above"])
    return found


def _number(text: str) -> int:
    power = "KMGTPE".find(text[-1]) + 1
    return int(text[:-1]) * 1024**power if power else int(text)
