"""Read events of ftrace block by block; count them by name, context and thread.

The format is that of ``patchstudy.loaders.ftrace``.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from patchstudy.blocks.large import decoded

EVENT: Final = re.compile(
    rb"(?:(?P<file>\S{1,200}): )?\s*(?P<comm>\S.{0,31}?)-\d{1,7}\s+"
    rb"(?:\(\s*[-\d]+\)\s+)?\[\d{3,5}\]\s+(?:(?P<flags>[.0-9A-Za-z#*]{4,8})\s+)?"
    rb"(?P<time>\d{1,20}(?:\.\d{1,9})?):\s+(?:\(\+[\d.]+\)\s+)?(?P<what>\S.*)"
)
_LATENCY: Final = re.compile(
    rb"\s*(?P<comm>\S.{0,31}?)-\d{1,7}\s+\d{1,5}(?P<flags>[.0-9A-Za-z#*]{4,8})\s+"
    rb"(?P<us>\d{1,20})us.?: (?P<what>\S.*)"
)
_VERBOSE: Final = re.compile(
    rb"\s*(?P<comm>\S.{0,31}?)\s+\d{1,7}\s+\d{1,5}\s+\d+\s+[0-9a-f]{8} [0-9a-f]{8}"
    rb" \[[0-9a-f]+\] (?P<ms>\d{1,20}(?:\.\d{1,9})?)ms \([-+][\d.]+ms\): (?P<what>\S.*)"
)
_RAW: Final = re.compile(
    rb"(?:\d+ \d+ \d+|[0-9a-f]{8} [0-9a-f]{8} [0-9a-f]{16}) (?P<what>type: \d+)$"
)
_BARE: Final = re.compile(rb"(?P<what>[A-Za-z_]\w*: .*)")
_NAME: Final = re.compile(rb"(?P<name>[A-Za-z_]\w*):(?:\s+(?P<text>.*))?$")
_FUNCTION: Final = re.compile(rb"(?P<name>\S+)(?: \[\S+\])? +<-+ *\S.*$")
_LOST: Final = re.compile(rb"CPU:\d+ \[(?:LOST )?(?:(\d{1,18}) )?EVENTS(?: DROPPED)?\]")
HEADERS: Final = re.compile(
    rb"(?:\S{1,200}: )?(?:cpus=\d+$|version = \d|CPU \d+ is empty|##### CPU \d+ buffer)"
)
_ALLOCATES: Final = frozenset(
    {b"kmalloc", b"kmalloc_node", b"kmem_cache_alloc", b"kmem_cache_alloc_node"}
)
_ALLOCATION: Final = (
    rb": call_site=([^+ \n]+)\S* ptr=\S+(?: name=\S+)? bytes_req=\d+ bytes_alloc=(\d+) "
)

#: So many bytes behind the time hold the name of an event, if it is not longer.
_NAME_WIDTH: Final = 32

#: Event, flags (or empty), comm in its column.
Key = tuple[bytes, bytes, bytes]


@dataclass(slots=True)
class Sums:
    """What one part of a trace holds.

    Attributes
    ----------
    events, functions
        Name, flags and comm -> how often; flags are empty where they are not printed.
    sites
        Event, kind of the site (``call_site``, ``reason``, ``probe``) and site -> how
        often, and the bytes that were given.
    stacks
        Event, comm and frames, the leaf first -> how often.
    """

    events: dict[Key, int] = field(default_factory=dict)
    functions: dict[Key, int] = field(default_factory=dict)
    sites: dict[tuple[bytes, str, bytes], list[int]] = field(default_factory=dict)
    stacks: dict[tuple[bytes, bytes, tuple[bytes, ...]], int] = field(
        default_factory=dict
    )
    times: list[float] = field(default_factory=list)
    ticks: bool = False
    lost: int = 0
    gaps: int = 0
    odd: int = 0
    first_odd: str = ""


class _Reader:
    """Counts events; a quick way for plain lines of the kernel, a careful one else."""

    def __init__(self, *, bare: bool) -> None:
        patterns = [EVENT, _LATENCY, _VERBOSE, _RAW, *([_BARE] if bare else [])]
        self._patterns = [one.fullmatch for one in patterns]
        self.sums = Sums()
        #: Beginning of a line up to its time, and what stands between its time and the
        #: next colon -> how often; what they mean -> ``_meant``.
        self._plain: dict[tuple[bytes, bytes], int] = {}
        self._meant: dict[tuple[bytes, bytes], Key] = {}
        self._width = self._start = 0
        self._looked_into = dict(_SITES)
        self._last = (b"", b"")  # event and comm, of which a stack may follow
        self._stack: list[bytes] | None = None

    def begins(self, data: bytes, at: int) -> bool:
        """Say whether an event begins here that is no stack."""
        end = data.find(b"\n", at)
        if end < 0:
            return False
        line = data[at:end]
        return any(match(line) for match in self._patterns) and b"<stack" not in line

    def feed(self, block: bytes) -> None:
        """Count the events of a block of whole lines."""
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        lines = block.split(b"\n")
        if self._width and self._stack is None and b"\n => " not in block:
            lines = self._columns(lines, block)
        width = self._width
        for line in lines:
            at = line.find(b": ", width) + 2
            end = line.find(b": ", at)
            key = line[:width], line[at:end] if end > 0 else line[at:]
            if key not in self._plain:
                if not self._learn(line, key[1]):
                    self._line(line)
                width = self._width
                continue
            self._close()
            self._plain[key] += 1
            kind_and_name, _flags, comm = self._meant[key]
            self._last = (kind_and_name.partition(b" ")[2], comm)
            if key[1] in self._looked_into:
                self._looked_into[key[1]](self.sums, key[1], line[end + 2 :])
        self._times(block)

    def _columns(self, lines: list[bytes], block: bytes) -> list[bytes]:
        """Count the lines with the columns of the first line; return the others.

        All work on single lines is done by C: what stands before and behind the time
        is cut out at its columns and counted.
        """
        width, start, plain = self._width, self._start, self._plain
        before, behind = slice(0, width), slice(start - 2, start + _NAME_WIDTH)
        pairs = map(itemgetter(before, behind), lines)
        others: set[tuple[bytes, bytes]] = set()
        present: Counter[bytes] = Counter()
        for pair, count in Counter(pairs).items():
            name, colon, _text = pair[1][2:].partition(b": ")
            key = pair[0], name
            if colon and pair[1].startswith(b": ") and key in plain:
                plain[key] += count
                present[name] += count
            elif pair != (b"", b""):
                others.add(pair)
        for name in present.keys() & self._looked_into.keys():
            if not self._at_once(name, block, present[name]):
                self._look(name, lines, others)
        if not others:
            return []
        return [line for line in lines if (line[before], line[behind]) in others]

    def _at_once(self, name: bytes, block: bytes, count: int) -> bool:
        """Look into the text of so many events of a block; say whether it has these."""
        if _allocated_in(self.sums, name, block, count):
            return True
        texts = re.findall(b": " + name + rb": ([^\n]*)", block)
        if len(texts) != count:
            return False
        for text in texts:
            self._looked_into[name](self.sums, name, text)
        return True

    def _look(
        self, name: bytes, lines: list[bytes], others: set[tuple[bytes, bytes]]
    ) -> None:
        """Look into the text of an event in the lines that were counted by columns."""
        look, sums, event = self._looked_into[name], self.sums, name + b": "
        width, start = self._width, self._start
        text_at = start + len(event)
        for line in lines:
            if line.startswith(event, start):
                if others and (
                    (line[:width], line[start - 2 : start + _NAME_WIDTH]) in others
                ):
                    continue
                look(sums, name, line[text_at:])

    def _learn(self, line: bytes, name: bytes) -> bool:
        """Take a line of a new thread or event for a plain one, if it is one.

        Plain is a line whose columns are those of the first one of the file; what it
        means is worked out once, by the careful way.
        """
        found = EVENT.fullmatch(line)
        if found is None or found["file"] or found["what"].startswith(b"<stack trace>"):
            return False
        width = found.end("flags") if found["flags"] else found.start("time")
        if not self._width:
            self._width, self._start = width, found.start("what")
        what = _NAME.match(found["what"])
        meant = what or _FUNCTION.fullmatch(found["what"])
        known = meant is not None and name == (what["name"] if what else found["what"])
        if width != self._width or not known or not meant or name == b"function":
            return False
        key = line[:width], name
        self._close()
        self._plain[key] = self._plain.get(key, 0) + 1
        kind = b"event" if what else b"function"
        self._meant[key] = (
            kind + b" " + meant["name"],
            found["flags"] or b"",
            found["comm"],
        )
        self._last = (meant["name"], found["comm"])
        text = (what["text"] or b"") if what else b""
        if text[:1] == b"(":
            self._looked_into.setdefault(name, _probe)
        if name in self._looked_into:
            self._looked_into[name](self.sums, name, text)
        return True

    def _times(self, block: bytes) -> None:
        """Keep the times of the first and the last event of a block."""
        first, last = block[:8192].split(b"\n"), block[-8192:].split(b"\n")
        for some in (first, reversed(last)):
            events = (one for one in map(EVENT.fullmatch, some) if one)
            for found in events:
                if not found["what"].startswith(b"<stack trace>"):
                    self._seen(_moment(found.groupdict()))
                    break

    def gathered(self) -> Sums:
        """Return the sums of all blocks."""
        self._close()
        for key, count in self._plain.items():
            what, flags, comm = self._meant[key]
            kind, _, name = what.partition(b" ")
            table = self.sums.events if kind == b"event" else self.sums.functions
            table[name, flags, comm] = table.get((name, flags, comm), 0) + count
        self._plain.clear()
        return self.sums

    def _line(self, line: bytes) -> None:
        """Count a line of any form."""
        if self._stack is not None and line.startswith(b" => "):
            self._stack.append(line[4:].strip())
            return
        found = next((one for match in self._patterns if (one := match(line))), None)
        if found is None:
            self._other(line)
            return
        parts = found.groupdict()
        what, comm = parts["what"], parts.get("comm") or b""
        if what.startswith(b"<stack trace>"):
            self._close()
            self._stack = []
            return
        if (moment := _moment(parts)) is not None:
            self._seen(moment)
        self._close()
        self._count(what, parts.get("flags") or b"", comm)

    def _count(self, what: bytes, flags: bytes, comm: bytes) -> None:
        """Count an event, or a call of the function tracer."""
        named, function = _NAME.match(what), _FUNCTION.match(what)
        if named and named["name"] == b"function" and named["text"]:
            named, function = None, _FUNCTION.match(named["text"])
        table = self.sums.events
        if named:
            name, text = named["name"], (named["text"] or b"").strip()
            look = self._looked_into.get(name, _probe if text[:1] == b"(" else None)
            if look:
                look(self.sums, name, text)
        elif function:
            name, table = function["name"], self.sums.functions
        else:
            self._other(what)
            return
        table[name, flags, comm] = table.get((name, flags, comm), 0) + 1
        self._last = (name, comm)

    def _close(self) -> None:
        """Add the stack that was read."""
        if self._stack:
            event, comm = self._last
            key = event, comm, tuple(self._stack)
            self.sums.stacks[key] = self.sums.stacks.get(key, 0) + 1
        self._stack = None

    def _other(self, line: bytes) -> None:
        """Look at a line that is no event: what was lost, a header, or neither."""
        if lost := _LOST.search(line):
            self.sums.gaps += 1
            self.sums.lost += int(lost[1] or 0)
        elif line.strip() and not line.startswith(b"#") and not HEADERS.match(line):
            self.sums.odd += 1
            self.sums.first_odd = self.sums.first_odd or decoded(line.strip()[:60])

    def _seen(self, moment: float | None) -> None:
        """Keep the earliest and the latest time; one that is none counts ticks."""
        if moment is None:
            self.sums.ticks = True
            return
        first, last = self.sums.times or (moment, moment)
        self.sums.times = [min(first, moment), max(last, moment)]


def _moment(parts: Mapping[str, bytes | None]) -> float | None:
    """Return the time of an event in s; None where it is not told in a unit of time."""
    if time := parts.get("time"):
        return float(time) if b"." in time else None
    if time := parts.get("ms"):
        return round(float(time) / 1e3, 9)
    return float(time) / 1e6 if (time := parts.get("us")) else None


def _allocated(sums: Sums, event: bytes, text: bytes) -> None:
    """Count an allocation by its call site and the bytes that were given."""
    start = text.find(b"call_site=") + 10
    end = text.find(b" ", start)
    given = text.find(b"bytes_alloc=") + 12
    last = text.find(b" ", given)
    size = text[given:last] if given >= 12 and last > 0 else b""
    if start >= 10 and end > 0:
        _add(sums, event, "call_site", text[start:end].partition(b"+")[0], size)


def _allocated_in(sums: Sums, event: bytes, block: bytes, count: int) -> bool:
    """Count so many allocations of a block at once; say whether that was possible."""
    if event not in _ALLOCATES:
        return False
    found = re.findall(b": " + event + _ALLOCATION, block)
    if len(found) != count:
        return False
    for (site, size), number in Counter(found).items():
        entry = sums.sites.setdefault((event, "call_site", site), [0, 0])
        entry[0] += number
        entry[1] += number * int(size)
    return True


def _freed(sums: Sums, event: bytes, text: bytes) -> None:
    """Count a packet that was thrown away by the reason, where it is told."""
    before, _, reason = text.rpartition(b"reason: ")
    if before:
        _add(sums, event, "reason", reason.strip(), b"")


def _probe(sums: Sums, event: bytes, text: bytes) -> None:
    """Count an event of a kprobe by its place: ``(symbol+0x0/0x300) arguments``."""
    _add(sums, event, "probe", text[: text.find(b")") + 1], b"")


def _add(sums: Sums, event: bytes, kind: str, site: bytes, size: bytes) -> None:
    entry = sums.sites.get((event, kind, site))
    if entry is None:
        entry = sums.sites[event, kind, site] = [0, 0]
    entry[0] += 1
    entry[1] += int(size) if size.isdigit() else 0


_SITES: Final[dict[bytes, Callable[[Sums, bytes, bytes], None]]] = {
    **dict.fromkeys(_ALLOCATES, _allocated),
    b"kfree_skb": _freed,
}


def reader(head: bytes) -> _Reader:
    """Return a reader for a trace that begins like this."""
    body = [one for one in head[:8192].split(b"\n") if one and one[:1] != b"#"]
    return _Reader(bare=bool(body) and _BARE.fullmatch(body[0]) is not None)
