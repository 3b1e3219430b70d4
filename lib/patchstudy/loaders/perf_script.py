r"""Read ``perf script``: one call stack a sample, summed up by event, thread and stack.

The text form of a recording (``process_event`` in tools/perf/builtin-script.c, the
frames by ``sample__fprintf_callchain``). A sample is a line ``comm pid/tid [cpu] time:
period event:``, of which ``-F`` leaves out any field, then a line ``ip symbol+offset
(object)`` a frame, the leaf first, then a blank line. Without call chains the one frame
stands on the first line. Between samples may stand ``PERF_RECORD_`` lines, which are
passed over, but for those that say what was lost; so are branch stacks. simpleperf
writes the same with tabs.

Each event is a profile of its own. Weights are the periods, in ns for cpu-clock and
task-clock and else in events, or samples where no period is printed. A frame is the
symbol without its offset, with its object beside it; a frame without symbol is
``[unknown]``, and so is the stack of a sample without frames.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from patchstudy.blocks import large, perf
from patchstudy.blocks.large import LargeFile, decoded
from patchstudy.blocks.perf import HEADER, INDENTED, ONE_LINE, Sums, first_lines
from patchstudy.records import Capture, Caveat, Profile, RawFile, Severity, Stack

_CLOCKS: Final = frozenset({"cpu-clock", "task-clock"})


def sniff(raw: RawFile) -> bool:
    """Say whether a line is a sample of perf, or nearly all are frames of stacks."""
    top = [line for line in first_lines(raw.data) if not line.startswith(b"#")]
    if any(_sample(line, top[at + 1 : at + 2]) for at, line in enumerate(top)):
        return True
    tabs = [line for line in top[:200] if line.startswith(b"\t")]
    frames = sum(
        INDENTED.match(line) is not None and b" bytes from " not in line  # of ping
        for line in tabs
    )
    return frames > 2 and frames > 0.7 * len([line for line in top[:200] if line])


def _sample(line: bytes, following: list[bytes]) -> bool:
    """Say whether a line has the fields of a sample and what must stand behind."""
    found = HEADER.match(line)
    if found is None:
        return False
    framed = any(INDENTED.match(one) or ONE_LINE.match(one) for one in following)
    told = found["time"] is not None and (
        b"  " in line or b"\t" in line or b"[" in line
    )
    return framed or ONE_LINE.match(found["rest"] or b"") is not None or told


def load(raw: RawFile) -> Capture:
    """Sum up the samples of a file in memory."""
    sums = large.of_memory(perf.reader(raw.data[: 2**20]), raw.data)
    assert isinstance(sums, Sums)
    return _capture(raw, sums, cut=not raw.data.endswith(b"\n"))


def load_large(file: LargeFile) -> Capture:
    """Sum up the samples of a large file, with every CPU."""
    total = Sums()
    with large.uncollected():
        for part in large.parts(file, perf):
            assert isinstance(part, Sums)
            total.add(part)
        return _capture(file.head, total, cut=file.cut)


def _capture(raw: RawFile, sums: Sums, *, cut: bool) -> Capture:
    profiles = tuple(_profiles(sums))
    version = re.search(rb"^# perf version : (\S+)", raw.data[:65536], re.MULTILINE)
    facts: dict[str, object] = {"samples": sum(one.samples or 0 for one in profiles)}
    if sums.times:
        facts |= {"first_s": sums.times[0], "last_s": sums.times[1]}
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="perf_script",
        tool_version=decoded(version[1]) if version else None,
        profiles=profiles,
        facts=facts,
        caveats=tuple(_caveats(sums, profiles, cut=cut)),
    )


def _profiles(sums: Sums) -> Iterator[Profile]:
    """Yield a profile an event."""
    stacks: dict[str | None, list[Stack]] = {}
    unweighed = {sums.heads[number][0] for number in sums.without_period}
    told = _Told(sums)
    for (number, leaf, callers), (samples, period) in sums.table.items():
        event, comm = sums.heads[number]
        frames, objects = told.stack(leaf, callers)
        stack = Stack(
            frames=frames,
            weight=samples if event in unweighed else period,
            objects=objects,
            samples=samples,
            comm=comm,
        )
        stacks.setdefault(event, []).append(stack)
    lost = sums.lost if len(stacks) == 1 else None
    for event, of_event in stacks.items():
        yield Profile(
            event=event,
            unit=_unit(event, weighed=event not in unweighed),
            stacks=tuple(of_event),
            lost=lost,
        )


class _Told:
    """Symbols and objects of stacks; equal objects are held once."""

    def __init__(self, sums: Sums) -> None:
        self._callers = sums.callers
        self._symbols = [symbol for symbol, _where in sums.frames]
        self._places = [where for _symbol, where in sums.frames]
        self._objects: dict[tuple[str, ...], tuple[str, ...]] = {}

    def stack(self, leaf: int, callers: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the symbols, the root first, and their objects if any is told."""
        numbers = (*reversed(self._callers[callers]), leaf)
        objects = tuple(map(self._places.__getitem__, numbers))
        if not any(objects):
            objects = ()
        return (
            tuple(map(self._symbols.__getitem__, numbers)),
            self._objects.setdefault(objects, objects),
        )


def _unit(event: str | None, *, weighed: bool) -> str:
    if not weighed:
        return "sample"
    return "ns" if (event or "").partition(":")[0] in _CLOCKS else "event"


def _caveats(sums: Sums, profiles: Iterable[Profile], *, cut: bool) -> Iterator[Caveat]:
    names = [one.event or "no name" for one in profiles]
    if cut:
        text = "the last line has no line end; its frame may be cut short"
        yield Caveat(code="no-line-end", severity=Severity.DOUBT, text=text)
    if sums.lost:
        text = f"perf lost {sums.lost} samples; shares are of those that are left"
        todo = "Record with a lower frequency or a larger buffer (-m)."
        yield Caveat(code="samples-lost", severity=Severity.DOUBT, text=text, todo=todo)
    if len(names) > 1:
        text = f"{len(names)} events, a profile each: {', '.join(names)}"
        yield Caveat(code="several-events", severity=Severity.NOTE, text=text)
    if sums.odd:
        text = f"{sums.odd} lines are no part of a sample and were passed over:"
        text = f"{text} {sums.first_odd!r}"
        yield Caveat(code="lines-unread", severity=Severity.NOTE, text=text)
