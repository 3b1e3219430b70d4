r"""Read ``perf script``: one call stack a sample, summed up by event, thread and stack.

The text form of a recording (``process_event`` in tools/perf/builtin-script.c, the
frames by ``sample__fprintf_callchain``). A sample is a line ``comm pid/tid [cpu] time:
period event:``, of which ``-F`` leaves out any field, then a line ``ip symbol+offset
(object)`` a frame, the leaf first, then a blank line. Without call chains the one frame
stands on the first line. Between samples may stand ``PERF_RECORD_`` lines, which are
passed over, but for those that say what was lost. simpleperf writes the same with tabs.

Each event is a profile of its own. Weights are the periods, in ns for cpu-clock and
task-clock and else in events, or samples where no period is printed. A frame is the
symbol without its offset, with its object beside it; a frame without symbol is
``[unknown]``, and so is the stack of a sample without frames.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from patchstudy.loaders import large
from patchstudy.loaders.large import LargeFile
from patchstudy.records import Capture, Caveat, Profile, RawFile, Severity, Stack

_HEADER: Final = re.compile(
    rb"\s*(?P<comm>\S.{0,63}?)\s+-?\d+(?:/-?\d+)?\s+"  # comm, pid/tid
    rb"(?:\[\d+\]\s+)?"
    rb"(?:(?P<time>\d+\.\d+):\s+)?"
    rb"(?:(?P<period>\d+)\s+)?"
    rb"(?P<event>[^\s\d\[]\S*):(?:\s+(?P<rest>.*))?$"
)
#: With other fields: any of them may be absent, and nothing stands behind the event.
_FEWER: Final = re.compile(
    rb"(?P<comm>\S.{0,63}?|)(?:\s*\b-?\d+(?:/-?\d+)?)?(?:\s*\[\d+\])?"
    rb"(?:\s*\b(?P<time>\d+\.\d+):)?(?:\s*\b(?P<period>\d+))?"
    rb"(?:\s*\b(?P<event>[^\s\d\[]\S*):)?(?P<rest>)\s*$"
)
_RECORD: Final = re.compile(rb"PERF_RECORD_[A-Z]")
_LOST: Final = re.compile(rb"PERF_RECORD_LOST\w*:?.*?\blost(?: samples)?:? (\d{1,18})")
_FRAME: Final = re.compile(rb"\s*[0-9a-f]{1,16}(?:[ \t]+(\S.*)?)?$")
_INDENTED: Final = re.compile(rb"(?:\t| {4,})\s*[0-9a-f]{1,16} \S")
_ONE_LINE: Final = re.compile(rb"\s*[0-9a-f]{1,16}[ \t]+\S.*\)\s*$")
_ADDRESS: Final = re.compile(rb"[0-9a-f]{1,16}")
#: Symbol, offset and object without anything that could be taken for another.
_EASY: Final = re.compile(rb"[^\s+()]+(?:\+0x[0-9a-f]+)? \([^\s()]+\)")
_OFFSET: Final = re.compile(rb"\+0x[0-9a-f]+$")
_CLOCKS: Final = frozenset({"cpu-clock", "task-clock"})
_UNKNOWN: Final = "[unknown]"
#: So many different lines of frames are remembered; then they are forgotten.
_REMEMBERED: Final = 100_000

#: So many bytes of different callers, lines of frames, are remembered.
_CALLERS: Final = 24 * 2**20


@dataclass(slots=True)
class Sums:
    """What one part of a file holds.

    Attributes
    ----------
    heads
        Event (None where not printed) and comm, by number.
    frames
        Symbol and object, by number; the first is no frame.
    callers
        Numbers of the frames above a leaf, the innermost first, by number.
    table
        Numbers of head, leaf and callers -> samples, sum of periods.
    without_period
        Numbers of heads with a sample that has no period.
    odd
        Lines that are neither a sample nor a frame: how many, and the first.
    """

    heads: list[tuple[str | None, str | None]] = field(default_factory=list)
    frames: list[tuple[str, str]] = field(default_factory=lambda: [("", "")])
    callers: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    table: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)
    without_period: set[int] = field(default_factory=set)
    times: list[float] = field(default_factory=list)
    lost: int | None = None
    odd: int = 0
    first_odd: str = ""
    in_lines: int = 0


class _Frames(dict[bytes, int]):
    """Line of a frame -> its number; 0 where the line is none."""

    def __init__(self, frames: list[tuple[str, str]]) -> None:
        self._list = frames
        self._numbers: dict[tuple[str, str], int] = {}
        self._without_address: dict[bytes, int] = {}

    def __missing__(self, line: bytes) -> int:
        if len(self) > _REMEMBERED:
            self.clear()
        number = self[line] = self._number(line)
        return number

    def _number(self, line: bytes) -> int:
        """Return the number of a new line, without looking at its address if it can."""
        address, _, rest = line.strip().partition(b" ")
        symbol, offset, tail = rest.rpartition(b"+0x")
        plain = symbol + tail[tail.find(b" ") :] if offset else rest
        number = self._without_address.get(plain)
        if number and _ADDRESS.fullmatch(address):
            return number
        found = _frame(line)
        if found is None:
            return 0
        number = self._numbers.setdefault(found, len(self._list))
        if number == len(self._list):
            self._list.append(found)
        if _EASY.fullmatch(rest):
            if len(self._without_address) > _REMEMBERED:
                self._without_address.clear()
            self._without_address[plain] = number
        return number


class _Callers(dict[bytes, int]):
    """Lines of the frames above a leaf -> their number; -1 where one is no frame.

    Most samples differ in the leaf's address only, so this saves most of the work.
    """

    def __init__(self, callers: list[tuple[int, ...]], frames: _Frames) -> None:
        self._list = callers
        self._frames = frames
        self._numbers: dict[tuple[int, ...], int] = {(): 0}
        self._bytes = 0

    def __missing__(self, lines: bytes) -> int:
        numbers = tuple(map(self._frames.__getitem__, lines.split(b"\n")))
        self._bytes += len(lines)
        if self._bytes > _CALLERS:
            self.clear()
            self._bytes = len(lines)
        number = self[lines] = -1 if 0 in numbers else self.number(numbers)
        return number

    def number(self, numbers: tuple[int, ...]) -> int:
        """Return the number of these frames."""
        number = self._numbers.setdefault(numbers, len(self._list))
        if number == len(self._list):
            self._list.append(numbers)
        return number


class _Heads(dict[tuple[bytes, bytes], int]):
    """Comm with pid and CPU, and event -> number of event and comm; -1 if neither."""

    def __init__(self, number: Callable[[bytes, bytes], int]) -> None:
        self._number = number

    def __missing__(self, key: tuple[bytes, bytes]) -> int:
        if len(self) > _REMEMBERED:
            self.clear()
        who, event = key
        found = _HEADER.match(b"%b 0.1: 1 %b: " % (who, event))
        same = found is not None and found["event"] == event and found["time"] == b"0.1"
        plain = same and not event.startswith(b"PERF_RECORD_")
        self[key] = self._number(event, found["comm"]) if found and plain else -1
        return self[key]


class _Reader:
    """Sums up samples; a quick way for whole records, a careful one for all others."""

    def __init__(self, *, headless: bool) -> None:
        self._headless = headless
        self.sums = Sums()
        self._frames = _Frames(self.sums.frames)
        self._heads: dict[tuple[bytes | None, bytes | None], int] = {}
        self._quick = _Heads(self._number)
        self._callers = _Callers(self.sums.callers, self._frames)
        self._callers[b""] = 0
        self._head = -1  # of the sample that is being read, by lines
        self._period = 0
        self._stack: list[int] = []
        self._beside = 0  # the frame on the line of the sample itself

    # ---- borders --------------------------------------------------------------------

    def border(self, data: bytes, start: int) -> int:
        """Return where the first sample begins behind the first line end."""
        at = start - 1
        while (at := data.find(b"\n", at + 1)) >= 0:
            if self._begins(data, at + 1):
                return at + 1
        return -1

    def last_border(self, data: bytes) -> int:
        """Return where the last sample begins."""
        at = len(data)
        while (at := data.rfind(b"\n", 0, at)) >= 0:
            if self._begins(data, at + 1):
                return at + 1
        return 0

    def _begins(self, data: bytes, at: int) -> bool:
        """Say whether a sample begins here: at a whole line with its fields."""
        if self._headless:
            return data[at - 2 : at] == b"\n\n" and at < len(data)
        if data[at : at + 1] in b"\t\n":
            return False
        end = data.find(b"\n", at)
        return end >= 0 and _HEADER.match(data[at:end]) is not None

    # ---- reading --------------------------------------------------------------------

    def feed(self, block: bytes) -> None:
        """Add the samples of a block of whole records."""
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        callers_of, leaf_of = self._callers, self._frames
        table, careful = self.sums.table, self._lines
        last = first = b""
        for record in block.split(b"\n\n"):
            head, _, rest = record.partition(b"\n")
            leaf, _, callers = rest.partition(b"\n")
            number, weight, time = self._first_line(head)
            if number < 0 or rest[:1] != b"\t" or self._head >= 0:
                careful(record)
                continue
            key = number, leaf_of[leaf], callers_of[callers]
            if key[1] == 0 or key[2] < 0:
                careful(record)
                continue
            first, last = first or time, time
            entry = table.get(key)
            if entry is None:
                table[key] = [1, weight]
            else:
                entry[0] += 1
                entry[1] += weight
        self._seen([one for one in (first, last) if first])

    def _first_line(self, line: bytes) -> tuple[int, int, bytes]:
        """Return number, period and time of ``comm pid [cpu] time: period event: ``.

        The number is -1 where the line has another form.
        """
        try:
            left, right, _end = line.split(b": ")
            who, _, time = left.rpartition(b" ")
            period, _, event = right.rpartition(b" ")
            return self._quick[who, event], int(period), time
        except ValueError:
            return -1, 0, b""

    def gathered(self) -> Sums:
        """Return the sums of all blocks."""
        if self._head >= 0:
            self._close()
        return self.sums

    def _lines(self, record: bytes) -> None:
        """Add what stands between two blank lines, line by line."""
        for line in record.split(b"\n"):
            if line.strip() and not line.startswith(b"#"):
                self._line(line)
        if self._stack:
            self._close()

    def _line(self, line: bytes) -> None:
        if _RECORD.search(line):
            if lost := _LOST.search(line):
                self.sums.lost = (self.sums.lost or 0) + int(lost[1])
            return
        inside = self._head >= 0 or self._headless
        found = None if line.startswith(b"\t") else _HEADER.match(line)
        if found is None and not line[:1].isspace():
            found = self._fewer(line)
        frame = 0 if found else self._frames[line]
        if found:
            self._open(found)
        elif frame and inside:
            self._stack.append(frame)
            self._head = max(self._head, 0) if self._heads else self._number(None, None)
        elif inside and self._stack and line.startswith(b"  ") and b":" in line:
            self._source(line)
        else:
            self.sums.odd += 1
            self.sums.first_odd = self.sums.first_odd or _text(line.strip()[:60])

    def _fewer(self, line: bytes) -> re.Match[bytes] | None:
        """Return a first line that has some fields only; a frame is none."""
        found = _FEWER.match(line)
        framed = _FRAME.match(line)
        if found and framed and framed[1] and not (found["event"] or found["time"]):
            return None
        return found

    def _source(self, line: bytes) -> None:
        """Take the line of source code behind a frame, which says if it was inlined."""
        symbol, where = self.sums.frames[self._stack[-1]]
        if line.rstrip().endswith(b"(inlined)") and not where:
            self._stack[-1] = self._frames[b" 0 %b (inlined)" % symbol.encode()]

    def _open(self, found: re.Match[bytes]) -> None:
        """Begin a sample with its first line."""
        if self._head >= 0:
            self._close()
        rest = found["rest"] or b""
        self._head = self._number(found["event"], found["comm"] or None)
        self._period = int(found["period"] or 0)
        self._beside = self._frames[rest] if _ONE_LINE.match(rest) else 0
        if found["period"] is None:
            self.sums.without_period.add(self._head)
        self._seen([found["time"]] if found["time"] else [])

    def _close(self) -> None:
        """Add the sample that was read by lines."""
        leaf, *callers = self._stack or [self._beside or self._frames[b" 0 [unknown]"]]
        key = self._head, leaf, self._callers.number(tuple(callers))
        entry = self.sums.table.setdefault(key, [0, 0])
        entry[0] += 1
        entry[1] += self._period
        self.sums.in_lines += 1
        self._head, self._period, self._stack, self._beside = -1, 0, [], 0

    def _number(self, event: bytes | None, comm: bytes | None) -> int:
        """Return the number of an event and a comm."""
        number = self._heads.setdefault((event, comm), len(self._heads))
        if number == len(self.sums.heads):
            self.sums.heads.append(
                (_text(event) if event else None, _text(comm) if comm else None)
            )
        return number

    def _seen(self, times: list[bytes]) -> None:
        """Keep the time of the first sample and of the last."""
        for time in map(float, times):
            first, last = self.sums.times or (time, time)
            self.sums.times = [min(first, time), max(last, time)]


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _frame(line: bytes) -> tuple[str, str] | None:
    """Return symbol and object of a line of a frame; None if it is none."""
    found = _FRAME.match(line)
    if found is None:
        return None
    rest = (found[1] or b"").rstrip()
    at = _object(rest)
    symbol = _OFFSET.sub(b"", rest[:at].rstrip())
    return _text(symbol) or _UNKNOWN, _text(rest[at:].strip()[1:-1])


def _object(rest: bytes) -> int:
    """Return where the object begins: the last parenthesis that ends with the line."""
    if not rest.endswith(b")"):
        return len(rest)
    last = rest.rfind(b" (")
    if (
        last >= 0
        and rest.find(b")", last) == len(rest) - 1
        and rest.find(b"(", last + 2) < 0
    ):
        return last + 1
    depth = 0
    for at in range(len(rest) - 1, -1, -1):
        depth += (rest[at : at + 1] == b")") - (rest[at : at + 1] == b"(")
        if depth == 0:
            return at if at == 0 or rest[at - 1 : at] in (b" ", b"\t") else len(rest)
    return len(rest)


# ---- the loader ---------------------------------------------------------------------


def sniff(raw: RawFile) -> bool:
    """Say whether a line is a sample of perf, or nearly all are frames of stacks."""
    top = [line for line in _top(raw.data) if not line.startswith(b"#")]
    if any(_sample(line, top[at + 1 : at + 2]) for at, line in enumerate(top)):
        return True
    tabs = [line for line in top[:200] if line.startswith(b"\t")]
    frames = sum(_INDENTED.match(line) is not None for line in tabs)
    return frames > 2 and frames > 0.7 * len([line for line in top[:200] if line])


def _sample(line: bytes, following: list[bytes]) -> bool:
    """Say whether a line has the fields of a sample and what must stand behind."""
    found = _HEADER.match(line)
    if found is None:
        return False
    framed = any(_INDENTED.match(one) or _ONE_LINE.match(one) for one in following)
    told = found["time"] is not None and (
        b"  " in line or b"\t" in line or b"[" in line
    )
    return framed or _ONE_LINE.match(found["rest"] or b"") is not None or told


def _top(data: bytes) -> list[bytes]:
    """Return the lines of the beginning, behind a header of any length."""
    start = 0
    while data[start : start + 1] == b"#":
        end = data.find(b"\n", start)
        if end < 0:
            return []
        start = end + 1
    block = data[start : start + 16384]
    found = block.replace(b"\r\n", b"\n").split(b"\n")
    return found[:-1] if start + len(block) < len(data) else found


def reader(head: bytes) -> _Reader:
    """Return a reader for a file that begins like this."""
    lines = [line for line in _top(head) if line and not line.startswith(b"#")]
    headless = bool(lines) and all(_INDENTED.match(line) for line in lines)
    return _Reader(headless=headless)


def load(raw: RawFile) -> Capture:
    """Sum up the samples of a file in memory."""
    sums = large.of_memory(reader(raw.data[: 2**20]), raw.data)
    assert isinstance(sums, Sums)
    return _capture(raw, [sums], cut=not raw.data.endswith(b"\n"))


def load_large(file: LargeFile) -> Capture:
    """Sum up the samples of a large file, with every CPU."""
    head = file.head.data
    found = large.parts(file, "perf_script", lambda: reader(head))
    sums = [one for one in found if isinstance(one, Sums)]
    return _capture(file.head, sums, cut=file.cut)


def _capture(raw: RawFile, parts: list[Sums], *, cut: bool) -> Capture:
    profiles = tuple(_profiles(parts))
    times = [time for one in parts for time in one.times]
    version = re.search(rb"^# perf version : (\S+)", raw.data[:65536], re.MULTILINE)
    facts: dict[str, object] = {"samples": sum(one.samples or 0 for one in profiles)}
    if times:
        facts |= {"first_s": min(times), "last_s": max(times)}
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="perf_script",
        tool_version=_text(version[1]) if version else None,
        profiles=profiles,
        facts=facts,
        caveats=tuple(_caveats(parts, profiles, cut=cut)),
    )


def _profiles(parts: list[Sums]) -> Iterator[Profile]:
    """Yield a profile an event, from the sums of all parts."""
    tables: dict[str | None, dict[tuple[str | None, _Stack], list[int]]] = {}
    periods: dict[str | None, bool] = {}
    for part in parts:
        for (number, leaf, callers), counts in part.table.items():
            event, comm = part.heads[number]
            stack = (*reversed(part.callers[callers]), leaf)
            pairs = tuple(part.frames[one] for one in stack)
            table = tables.setdefault(event, {})
            entry = table.setdefault((comm, pairs), [0, 0])
            entry[0] += counts[0]
            entry[1] += counts[1]
        for number in part.without_period:
            periods[part.heads[number][0]] = False
    losses = [one.lost for one in parts if one.lost is not None]
    lost = sum(losses) if losses and len(tables) == 1 else None
    for event, table in tables.items():
        weighed = periods.get(event, True)
        yield Profile(
            event=event,
            unit=_unit(event, weighed=weighed),
            stacks=tuple(_stacks(table, weighed=weighed)),
            lost=lost,
        )


_Stack = tuple[tuple[str, str], ...]


def _stacks(
    table: dict[tuple[str | None, _Stack], list[int]], *, weighed: bool
) -> Iterator[Stack]:
    for (comm, pairs), (samples, period) in table.items():
        objects = tuple(where for _symbol, where in pairs)
        yield Stack(
            frames=tuple(symbol for symbol, _where in pairs),
            weight=period if weighed else samples,
            objects=objects if any(objects) else (),
            samples=samples,
            comm=comm,
        )


def _unit(event: str | None, *, weighed: bool) -> str:
    if not weighed:
        return "sample"
    return "ns" if (event or "").partition(":")[0] in _CLOCKS else "event"


def _caveats(
    parts: list[Sums], profiles: Iterable[Profile], *, cut: bool
) -> Iterator[Caveat]:
    lost = sum(one.lost or 0 for one in parts)
    odd = sum(one.odd for one in parts)
    names = [one.event or "no name" for one in profiles]
    if cut:
        text = "the last line has no line end; its frame may be cut short"
        yield Caveat(code="no-line-end", severity=Severity.DOUBT, text=text)
    if lost:
        text = f"perf lost {lost} samples; shares are of those that are left"
        todo = "Record with a lower frequency or a larger buffer (-m)."
        yield Caveat(code="samples-lost", severity=Severity.DOUBT, text=text, todo=todo)
    if len(names) > 1:
        text = f"{len(names)} events, a profile each: {', '.join(names)}"
        yield Caveat(code="several-events", severity=Severity.NOTE, text=text)
    if odd:
        first = next(one.first_odd for one in parts if one.odd)
        text = f"{odd} lines are no part of a sample and were passed over: {first!r}"
        yield Caveat(code="lines-unread", severity=Severity.NOTE, text=text)
