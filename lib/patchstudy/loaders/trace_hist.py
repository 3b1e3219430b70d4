"""Read a hist trigger of ftrace: tracefs ``events/<group>/<event>/hist``.

``hist_trigger_show`` in kernel/trace/trace_events_hist.c, Documentation/trace/
histogram.rst: the trigger, one line ``{ key: value, ... } hitcount: n  value: n`` an
entry, then Hits, Entries and Dropped. Keys with ``.sym`` have an address before the
symbol, task ids with ``.execname`` a number behind the task: the symbol and the task
are the label, and entries that then have the same are added up. Values that the trigger
asks for as ``.hex`` have no ``0x`` before them.

A key ``stacktrace`` stands over several lines, the leaf first and at most 16 frames:
the entries are then a profile, by their hits, and only the sums are measurements.

``event:hist_hits`` is Hits where the file tells it, else the sum of the rows; with the
key as label every row; ``event:hist_<value>`` likewise. Rows may be fewer than the hits
(``Dropped``, or an excerpt): a caveat.

Durations are the hits by a key that is named by a unit of time, in the buckets of
``.log2`` (``~ 2^n``: above 2^(n-1), up to 2^n) or ``.buckets`` (``~ low-high``).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end, lines
from patchstudy.records import Capture, Durations, Profile, RawFile, Stack

_TRIGGER: Final = re.compile(r"# trigger info: (?P<what>hist:\S+)")
_ROW: Final = re.compile(
    r"\{ (?P<keys>.*) \}(?P<values>(?:\s+\S+:\s+-?(?:0x)?[0-9a-f]{1,20}%?)+)\s*"
)
_STACK: Final = re.compile(r"\{ (?:.*, )?[\w.]*stacktrace(?:\.stacktrace)?:\s*")
_STACK_END: Final = re.compile(
    r"(?P<keys>.*)\}(?P<values>(?:\s+\S+:\s+-?\d{1,20}%?)+)\s*"
)
_DEPTH: Final = 16
_VALUE: Final = re.compile(r"(?<!\S)(\S+):\s+(\S+)")
_HEX: Final = re.compile(r"\b(\w+)\.hex\b")
_TOTAL: Final = re.compile(r"\s+(Hits|Entries|Dropped): (\d{1,20})\s*")
_SYMBOL: Final = re.compile(r"\[[0-9a-f]{8,16}\] (\S+)(?: \[\S+\])?")
#: Key of a duration (its name, its unit) and its bucket.
_TIMED: Final = re.compile(
    r"(?:(?P<name>\w+)_)?(?P<unit>ns|nsecs?|us|usecs?|ms|msecs?|secs?)"
)
_SECONDS: Final = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "s": 1.0}
_BUCKET: Final = re.compile(r"~ (?:2\^(?P<power>\d{1,2})|\d+-(?P<high>\d{1,19}))")
_TASK: Final = re.compile(r"(.*?)(?<!\s)\s*+\[\s*+\d++\]")


def sniff(raw: RawFile) -> bool:
    """Say whether a trigger is told, or the first entry looks like that of one."""
    top = [one for one in raw.head.split("\n") if one.strip()]
    body = [one for one in top if not one.startswith("#")]
    if any(map(_TRIGGER.match, top)):
        return True
    return bool(body) and "hitcount:" in body[0] and bool(_ROW.fullmatch(body[0]))


def load(raw: RawFile) -> Capture:
    """Read every entry, and the totals."""
    trigger = _TRIGGER.search(raw.head)
    table = _Table(frozenset(_HEX.findall(trigger["what"] if trigger else "")))
    for number, line in lines(raw):
        if not line.startswith("#") and not table.line(line):
            problem = f"{line.strip()[:60]!r} is no entry of a hist trigger"
            raise CaptureError(raw.path, problem, where=str(number))
    out = Reading()
    _add(out, table.sums, table.totals)
    if any(_durations(table.sums)):
        text = "a duration is known to the bucket of its histogram only"
        out.note("histogram-buckets", text)
    if any(len(one.frames) >= _DEPTH for one in table.stacks):
        text = f"stacks are cut at {_DEPTH} frames; what is further out is not told"
        out.note("stacks-cut", text)
    if table.frames:
        out.doubt("cut-short", "the last stack has no end; was the file cut short?")
    profile = Profile(event=None, unit="event", stacks=tuple(table.stacks))
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="trace_hist",
        measurements=tuple(out.measurements),
        profiles=(profile,) if table.stacks else (),
        durations=tuple(_durations(table.sums)),
        facts={
            "rows": table.rows,
            "trigger": trigger["what"] if trigger else None,
            **{name.lower(): count for name, count in table.totals.items()},
        },
        caveats=(*out.caveats, *line_end(raw)),
    )


class _Table:
    """The entries that were read, their sums by labels and name, and the totals."""

    def __init__(self, hexed: frozenset[str]) -> None:
        self._hexed = hexed
        self.sums: dict[tuple[tuple[tuple[str, str], ...], str], int] = {}
        self.totals: dict[str, int] = {}
        self.stacks: list[Stack] = []
        self.frames: list[str] | None = None
        self.rows = 0

    def line(self, line: str) -> bool:
        """Read a line; say whether it was one of a table."""
        if self.frames is not None:
            self._in_stack(self.frames, line)
        elif _STACK.fullmatch(line):
            self.frames = []
        elif total := _TOTAL.fullmatch(line):
            self.totals[total[1]] = int(total[2])
        elif row := _ROW.fullmatch(line):
            return self._values(tuple(_labels(row["keys"])), row["values"])
        else:
            return line.strip() == "Totals:"
        return True

    def _in_stack(self, frames: list[str], line: str) -> None:
        """Read a frame, or the end of the stack with its hits."""
        end = _STACK_END.fullmatch(line)
        if end is None:
            frames.append(re.sub(r"\+0x[0-9a-f]+/.*$", "", line.strip()))
            return
        hits = dict(_VALUE.findall(end["values"])).get("hitcount", "0")
        names = tuple(reversed(frames)) or ("[unknown]",)
        one = Stack(frames=names, weight=int(hits), samples=int(hits))
        self.stacks.append(one)
        self._values((), end["values"])
        self.frames = None

    def _values(self, labels: tuple[tuple[str, str], ...], values: str) -> bool:
        """Add up the values of an entry; say whether all are numbers."""
        self.rows += 1
        for name, value in _VALUE.findall(values):
            if value.endswith("%"):
                continue
            hexed = name in self._hexed or value.lstrip("-").startswith("0x")
            if not hexed and not value.lstrip("-").isdecimal():
                return False
            number = int(value, 16 if hexed else 10)
            self.sums[labels, name] = self.sums.get((labels, name), 0) + number
        return True


def _labels(keys: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of an entry: ``name: value`` with commas between."""
    for part in re.split(r", +(?=[\w.]+: )", keys):
        name, _, value = part.partition(":")
        told = value.strip()
        if symbol := _SYMBOL.fullmatch(told):
            told = symbol[1]
        elif name.startswith("common_pid") and (task := _TASK.fullmatch(told)):
            told = task[1]
        yield name.strip(), told


def _durations(
    sums: Mapping[tuple[tuple[tuple[str, str], ...], str], int],
) -> Iterator[Durations]:
    """Yield the hits by buckets of a time, apart for each task or other key."""
    found: dict[str, dict[float, int]] = {}
    for (labels, name), hits in sums.items():
        keys = dict(labels)
        for key, value in labels if name == "hitcount" else ():
            timed, bucket = _TIMED.fullmatch(key), _BUCKET.fullmatch(value)
            if timed and bucket:
                others = [keys[one] for one in keys if one != key]
                function = " ".join(filter(None, (timed["name"], *others)))
                high = int(bucket["high"] or 0) or 2 ** int(bucket["power"] or 0)
                upper_s = high * _SECONDS[timed["unit"][0]]
                counted = found.setdefault(function, {})
                counted[upper_s] = counted.get(upper_s, 0) + hits
    for function, counted in found.items():
        rows = sorted(counted.items())
        yield Durations(
            function=function,
            upper_s=tuple(upper_s for upper_s, _ in rows),
            calls=tuple(hits for _, hits in rows),
        )


def _add(
    out: Reading,
    sums: Mapping[tuple[tuple[tuple[str, str], ...], str], int],
    totals: Mapping[str, int],
) -> None:
    """Add the sums over all rows and each row; doubt rows that are not all."""
    names = dict.fromkeys(name for _labels, name in sums)
    for name in names:
        metric = "event:hist_hits" if name == "hitcount" else f"event:hist_{name}"
        of_name = {one: value for (one, found), value in sums.items() if found == name}
        total = sum(of_name.values())
        out.whole(metric, totals.get("Hits", total) if name == "hitcount" else total)
        for labels, value in of_name.items():
            if labels:
                out.whole(metric, value, dict(labels))
    hits = sum(value for (_, name), value in sums.items() if name == "hitcount")
    if totals.get("Dropped"):
        text = f"{totals['Dropped']} hits had no place in the table"
        out.doubt("events-lost", text, "Make the trigger's size larger.")
    if "Hits" in totals and hits != totals["Hits"]:
        text = f"the rows have {hits} of {totals['Hits']} hits; sums are of the rows"
        out.doubt("rows-missing", text, "Give the whole file.")
    if not totals and sums:
        out.note("no-totals", "the totals are missing; rows may be missing too")
