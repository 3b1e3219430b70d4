"""Read events of ftrace: tracefs ``trace`` and ``trace_pipe``, ``trace-cmd report``.

A line an event (``trace_print_context`` in kernel/trace/trace_output.c): task-pid, with
the task in 16 columns, perhaps the thread group, CPU, perhaps the flags of its context,
the time, then ``event: its own text``, or ``function <-caller`` of the function tracer.
The latency format, its verbose form, and a trace without context or in raw numbers are
read as well; trace-cmd pads the event's name.

Counts over the whole file: ``event:<name>``, by context (``task``, ``softirq``,
``hardirq``, ``nmi``; the third flag) and by thread where they are told; of the function
tracer and of kprobes on a function's first instruction ``calls:<function>``; of kmalloc
and kmem_cache_alloc ``alloc_count``, by ``call_site``, and the bytes that were given.
Stack traces become a profile of their event, one sample each. ``entries-written`` above
``entries-in-buffer``, and ``LOST EVENTS``, mean that counts are of a part only; that
the buffer was full with overwrite=0 is not in the text. Times of the clocks counter,
x86-tsc and uptime are no seconds and are left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from patchstudy.blocks import events, large
from patchstudy.blocks.events import EVENT, HEADERS, Key, Sums
from patchstudy.blocks.large import LargeFile, decoded
from patchstudy.loaders.reading import Reading
from patchstudy.records import Capture, Profile, RawFile, Stack

_ENTRIES: Final = re.compile(rb"# entries-in-buffer/entries-written: (\d+)/(\d+)")
_PROBED: Final = re.compile(rb"\((\S+?)\+0x0(?:/0x[0-9a-f]+)?\)?$")
_GRAPHS: Final = (b"# tracer: function_graph", b"# tracer: funcgraph")
_BY_TRACE_CMD: Final = re.compile(rb"\d: \w+: {2,}|^(?:\S+: )?cpus=", re.MULTILINE)


def sniff(raw: RawFile) -> bool:
    """Say whether it is a header of ftrace, or half of the lines are events."""
    if raw.data.startswith(b"# tracer: "):
        return not raw.data.startswith(_GRAPHS)
    lines = [one for one in raw.data[:8192].split(b"\n")[:60] if one.strip()]
    lines = [one for one in lines if one[:1] != b"#" and not HEADERS.match(one)]
    fitting = sum(bool(EVENT.fullmatch(one.rstrip(b"\r"))) for one in lines)
    graphs = sum(b"us |" in one and b" funcgraph_e" not in one for one in lines)
    calls = sum(b" funcgraph_e" in one for one in lines)
    return 0 < len(lines) <= 2 * fitting and graphs == 0 and 2 * calls <= len(lines)


def load(raw: RawFile) -> Capture:
    """Count the events of a trace in memory."""
    sums = large.of_memory(events.reader(raw.data[: 2**20]), raw.data)
    assert isinstance(sums, Sums)
    return _capture(raw, [sums], cut=not raw.data.endswith(b"\n"))


def load_large(file: LargeFile) -> Capture:
    """Count the events of a large trace, with every CPU."""
    found = large.parts(file, events)
    sums = [one for one in found if isinstance(one, Sums)]
    return _capture(file.head, sums, cut=file.cut)


def _capture(raw: RawFile, parts: list[Sums], *, cut: bool) -> Capture:
    out = Reading()
    facts: dict[str, object] = {}
    entries = _ENTRIES.search(raw.data[:4096])
    times = [time for one in parts for time in one.times]
    if entries:
        facts["entries_in_buffer"] = int(entries[1])
        facts["entries_written"] = int(entries[2])
    if times:
        facts |= {"first_s": min(times), "last_s": max(times)}
    counted = _summed(one.events for one in parts)
    facts["events"] = sum(counted.values())
    _counts(out, "event", counted)
    _counts(out, "calls", _summed(one.functions for one in parts))
    _of_sites(out, parts)
    _doubts(out, parts, entries and (int(entries[1]), int(entries[2])), cut=cut)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ftrace" if raw.data.startswith(b"#") or not _padded(raw) else "trace-cmd",
        measurements=tuple(out.measurements),
        profiles=tuple(_profiles(parts, sum(one.lost for one in parts) or None)),
        facts=facts,
        caveats=tuple(out.caveats),
    )


def _padded(raw: RawFile) -> bool:
    """Say whether trace-cmd padded the names of events, or told the CPUs."""
    return _BY_TRACE_CMD.search(raw.data[:4096]) is not None


def _summed(tables: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    total: dict[Key, int] = {}
    for table in tables:
        for (name, flags, comm), count in table.items():
            key = name, flags if _context(flags) else b"", comm.strip()
            total[key] = total.get(key, 0) + count
    return total


def _counts(out: Reading, family: str, table: Mapping[Key, int]) -> None:
    """Add how often everything happened, by context and thread if told."""
    kinds: dict[str, dict[tuple[str, ...], int]] = {"": {}, "context": {}, "thread": {}}
    for (name, flags, comm), count in table.items():
        metric = f"{family}:{decoded(name)}"
        for kind, label in (("", ""), ("context", _context(flags)), ("thread", comm)):
            told = decoded(label) if isinstance(label, bytes) else label
            if not kind or told:
                key = (metric, told)
                kinds[kind][key] = kinds[kind].get(key, 0) + count
    for kind, counts in kinds.items():
        for (metric, label), count in counts.items():
            out.whole(metric, count, {kind: label} if kind else None)


def _context(flags: bytes) -> str:
    """Return the context of the flags: the third of them, as the kernel prints it."""
    if len(flags) < 4 or flags[:1] == b"[":
        return ""
    marks = {b"h": "hardirq", b"H": "hardirq", b"s": "softirq", b".": "task"}
    marks |= {b"z": "nmi", b"Z": "nmi"}
    return marks.get(flags[2:3], "")


def _of_sites(out: Reading, parts: list[Sums]) -> None:
    """Add allocations by call site, drops by reason, and calls of probed functions."""
    sites: dict[tuple[bytes, str, bytes], list[int]] = {}
    for part in parts:
        for key, (count, size) in part.sites.items():
            entry = sites.setdefault(key, [0, 0])
            entry[0] += count
            entry[1] += size
    allocations = [
        one for (_event, kind, _), one in sites.items() if kind == "call_site"
    ]
    if allocations:
        out.whole("alloc_count", sum(count for count, _size in allocations))
    for (event, kind, site), (count, size) in sites.items():
        labels = {kind: decoded(site)}
        if kind == "call_site":
            out.whole("alloc_count", count, {"event": decoded(event), **labels})
            out.whole(f"event:{decoded(event)}_bytes", size, labels)
        elif kind == "reason":
            out.whole(f"event:{decoded(event)}", count, labels)
        elif probed := _PROBED.match(site):
            out.whole(f"calls:{decoded(probed[1])}", count, {"probe": decoded(event)})


def _profiles(parts: list[Sums], lost: int | None) -> Iterator[Profile]:
    """Yield the stack traces, a profile an event."""
    by_event: dict[bytes, list[Stack]] = {}
    for part in parts:
        for (event, comm, frames), count in part.stacks.items():
            stack = Stack(
                frames=tuple(decoded(one) for one in reversed(frames)),
                weight=count,
                samples=count,
                comm=decoded(comm.strip()) or None,
            )
            by_event.setdefault(event, []).append(stack)
    for event, stacks in by_event.items():
        yield Profile(
            event=decoded(event), unit="event", stacks=tuple(stacks), lost=lost
        )


def _doubts(
    out: Reading, parts: list[Sums], entries: tuple[int, int] | None, *, cut: bool
) -> None:
    """Add what makes the counts smaller than what happened."""
    lost, gaps = sum(one.lost for one in parts), sum(one.gaps for one in parts)
    odd = sum(one.odd for one in parts)
    larger = "Trace for a shorter time, or enlarge buffer_size_kb."
    if cut:
        out.doubt("no-line-end", "the last line has no line end; it may be cut short")
    if entries and entries[1] > entries[0]:
        text = f"{entries[1] - entries[0]} of {entries[1]} entries were overwritten;"
        text = f"{text} counts are of the last {entries[0]} only"
        out.doubt("events-lost", text, larger)
    if gaps:
        text = f"{lost or 'an unknown number of'} events were lost while they were read"
        out.doubt("events-lost", f"{text}; counts are of those that are left", larger)
    if any(one.ticks for one in parts):
        text = "times are ticks of the trace clock, not seconds, and are left out"
        out.note("clock-ticks", text)
    if odd:
        first = next(one.first_odd for one in parts if one.odd)
        text = f"{odd} lines are no events and were passed over: {first!r}"
        out.note("lines-unread", text)
    if entries and not parts[0].events and not parts[0].functions:
        out.note("no-events", "the trace holds no event")
