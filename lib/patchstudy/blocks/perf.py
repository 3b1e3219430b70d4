"""Read samples of ``perf script`` block by block; sum them by event, thread and stack.

The format is that of ``patchstudy.loaders.perf_script``.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Final, TypeVar

from patchstudy.blocks.large import decoded

HEADER: Final = re.compile(
    rb"\s*+(?P<comm>\S.{0,63}?)\s++-?\d+(?:/-?\d+)?\s++"  # comm, pid/tid
    rb"(?:\[\d+\]\s++)?(?:[KUHGgMESu]{1,6}\s++)?"  # cpu, misc
    rb"(?:(?P<time>\d+\.\d+):\s++)?"
    rb"(?:(?P<period>\d+)\s++)?"
    rb"(?P<event>[^\s\d\[]\S*):(?:\s++(?P<rest>.*))?$"
)
#: With other fields: any of them may be absent, and nothing stands behind the event.
_FEWER: Final = re.compile(
    rb"(?P<comm>\S.{0,63}?|)(?:\s*+\b-?\d+(?:/-?\d+)?)?(?:\s*+\[\d+\])?"
    rb"(?:\s*+\b(?P<time>\d+\.\d+):)?(?:\s*+\b(?P<period>\d+))?"
    rb"(?:\s*+\b(?P<event>[^\s\d\[]\S*):)?(?P<rest>)\s*+$"
)
_RECORD: Final = re.compile(rb"PERF_RECORD_[A-Z]")
_LOST: Final = re.compile(rb"PERF_RECORD_LOST\w*+:?.*?\blost(?: samples)?:? (\d{1,18})")
_FRAME: Final = re.compile(rb"\s*[0-9a-f]{1,16}(?:[ \t]+(\S.*)?)?$")
INDENTED: Final = re.compile(rb"(?:\t| {4})\s*+[0-9a-f]{1,16} \S")
ONE_LINE: Final = re.compile(rb"\s*[0-9a-f]{1,16}[ \t]+\S.*\)\s*$")
#: Branches: ``from/to/P/-/-/5``, any number of them.
_BRANCHES: Final = re.compile(rb"(?:\s++[^\s/()]+(?:/[^\s/()]*){5,8}(?=\s|$))+\s*+$")
_BRANCH: Final = re.compile(rb"[^\s/()]+(?:/[^\s/()]*){5,8}")
_WORD: Final = re.compile(rb"(?<!\s)\s++(\S++)")
_ADDRESS: Final = re.compile(rb"[0-9a-f]{1,16}")
#: Symbol, offset and object without anything that could be taken for another.
_EASY: Final = re.compile(rb"[^\s+()]+(?:\+0x[0-9a-f]+)? \([^\s()]+\)")
_OFFSET: Final = re.compile(rb"\+0x[0-9a-f]+$")
_UNKNOWN: Final = "[unknown]"
#: So many different lines of frames are remembered; then they are forgotten.
_REMEMBERED: Final = 100_000

#: So many bytes of different callers, lines of frames, are remembered.
_CALLERS: Final = 16 * 2**20

_One = TypeVar("_One")


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

    def add(self, other: "Sums") -> None:
        """Add the sums of the part behind this one."""
        heads = _renumbered(self.heads, other.heads)
        frames = _renumbered(self.frames, other.frames)
        above = [tuple(map(frames.__getitem__, some)) for some in other.callers]
        callers = _renumbered(self.callers, above)
        for (head, leaf, above_leaf), (samples, period) in other.table.items():
            key = heads[head], frames[leaf], callers[above_leaf]
            entry = self.table.setdefault(key, [0, 0])
            entry[0] += samples
            entry[1] += period
        self.without_period |= {heads[one] for one in other.without_period}
        times = self.times + other.times
        self.times = [min(times), max(times)] if times else []
        if other.lost is not None:
            self.lost = (self.lost or 0) + other.lost
        self.odd += other.odd
        self.first_odd = self.first_odd or other.first_odd
        self.in_lines += other.in_lines


def _renumbered(ours: list[_One], theirs: list[_One]) -> list[int]:
    """Return our number of each of theirs; what we do not have is appended."""
    numbers = {one: number for number, one in enumerate(ours)}
    for one in theirs:
        if one not in numbers:
            numbers[one] = len(ours)
            ours.append(one)
    return [numbers[one] for one in theirs]


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
        found = frame(line)
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
        self[b""] = 0

    def __missing__(self, lines: bytes) -> int:
        numbers = tuple(map(self._frames.__getitem__, lines.split(b"\n")))
        self._bytes += len(lines)
        if self._bytes > _CALLERS:
            self.clear()
            self[b""] = 0  # a leaf alone has no callers
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
        found = HEADER.match(b"%b 0.1: 1 %b: " % (who, event))
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
        self._heads: dict[tuple[str | None, str | None], int] = {}
        self._quick = _Heads(self._number)
        self._callers = _Callers(self.sums.callers, self._frames)
        self._head = -1  # of the sample that is being read, by lines
        self._period = 0
        self._stack: list[int] = []
        self._beside = 0  # the frame on the line of the sample itself

    def begins(self, data: bytes, at: int) -> bool:
        """Say whether a sample begins here: at a whole line with its fields."""
        if self._headless:
            return data[at - 2 : at] == b"\n\n" and at < len(data)
        if data[at : at + 1] in b"\t\n":
            return False
        end = data.find(b"\n", at)
        return end >= 0 and HEADER.match(data[at:end]) is not None

    # ---- reading --------------------------------------------------------------------

    def feed(self, block: bytes) -> None:
        """Add the samples of a block of whole records."""
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        callers_of, leaf_of = self._callers, self._frames
        table, careful = self.sums.table, self._lines
        first, last = inf, -inf
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
            first = min(first, time)
            last = max(last, time)
            entry = table.get(key)
            if entry is None:
                table[key] = [1, weight]
            else:
                entry[0] += 1
                entry[1] += weight
        self._seen(one for one in (first, last) if isfinite(one))

    def _first_line(self, line: bytes) -> tuple[int, int, float]:
        """Return number, period and time of ``comm pid [cpu] time: period event: ``.

        The period may be absent, the fields of a tracepoint may follow. The number is
        -1 where the line has another form.
        """
        try:
            left, right, _fields = line.split(b": ", 2)
            who, _, time = left.rpartition(b" ")
            period, _, event = right.rpartition(b" ")
            number = self._quick[who, event]
            if period.strip() or number < 0:
                return number, int(period), float(time)
            self.sums.without_period.add(number)
            return number, 0, float(time)
        except ValueError:
            return -1, 0, 0.0

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
        found = None if line.startswith(b"\t") else HEADER.match(line)
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
        elif not (inside and _BRANCHES.match(line)):
            self.sums.odd += 1
            self.sums.first_odd = self.sums.first_odd or decoded(line.strip()[:60])

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
        rest = _without_branches(b" " + (found["rest"] or b""))
        self._head = self._number(found["event"], found["comm"] or None)
        self._period = int(found["period"] or 0)
        self._beside = self._frames[rest] if ONE_LINE.match(rest) else 0
        if found["period"] is None:
            self.sums.without_period.add(self._head)
        self._seen([float(found["time"])] if found["time"] else [])

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
        head = decoded(event) if event else None, decoded(comm) if comm else None
        number = self._heads.setdefault(head, len(self._heads))
        if number == len(self.sums.heads):
            self.sums.heads.append(head)
        return number

    def _seen(self, times: Iterable[float]) -> None:
        """Keep the time of the first sample and of the last."""
        for time in times:
            first, last = self.sums.times or (time, time)
            self.sums.times = [min(first, time), max(last, time)]


def frame(line: bytes) -> tuple[str, str] | None:
    """Return symbol and object of a line of a frame; None if it is none."""
    found = _FRAME.match(line)
    if found is None:
        return None
    rest = (found[1] or b"").rstrip()
    at = _object(rest)
    symbol = _OFFSET.sub(b"", rest[:at].rstrip())
    return decoded(symbol) or _UNKNOWN, decoded(rest[at:].strip()[1:-1])


def _without_branches(rest: bytes) -> bytes:
    """Return what stands behind an event without the branches at its end."""
    if rest.count(b"/") < 5:
        return rest
    end = None  # of what stands before the last branches in a row
    for word in _WORD.finditer(rest):
        if not _BRANCH.fullmatch(word[1]):
            end = None
        elif end is None:
            end = word.start()
    return rest[:end]


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


def first_lines(data: bytes) -> list[bytes]:
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
    lines = [line for line in first_lines(head) if line and not line.startswith(b"#")]
    headless = bool(lines) and all(INDENTED.match(line) for line in lines)
    return _Reader(headless=headless)
