"""Read the function_graph tracer of ftrace: which function called what, for how long.

``print_graph_function`` and its kin in kernel/trace/trace_functions_graph.c: per line
CPU, perhaps time and task, a duration with its mark (``+ ! # * @ $``), then ``f();`` of
a leaf, ``f() {`` and its ``}``, which has the duration of the whole call. A line of the
mark ``#`` is no comment. Interrupts and switches of tasks stand between. ``trace-cmd
report`` prints the same as events ``funcgraph_entry`` and ``funcgraph_exit``; other
events among them are passed over.

``calls:<function>``: how often a call ended or, without a duration, began;
``call_time:<function>``: mean duration of those that ended in the file, with all that
they call and with what the tracer itself adds to every traced call (about 0.1 to
3 us: it hides differences of short functions). The profile has the time of each call
without that of its traced callees, in ns, one stack per way to it.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Durations, Profile, RawFile, Stack

_ROW: Final = re.compile(
    r"(?:\s*+(?P<time>\d+\.\d+) \|)?\s*+(?P<cpu>\d{1,5})\)\s*+"
    r"(?:(?P<task>\S.*?-\d+)\s*+\|)?\s*+"
    r"(?:[-.a-zA-Z0-9]{4,5}\s*+\|)?\s*+[+!#*@$]?\s*+(?:(?P<us>\d+(?:\.\d+)?) us)?\s*+\|"
    r"(?P<body>.*)"
)
_EVENT: Final = re.compile(
    r"\s*+(?P<task>\S.*?-(?P<pid>\d+))\s++(?:\([-\d ]+\)\s++)?\[(?P<cpu>\d{1,5})\]\s++"
    r"(?:[-.a-zA-Z0-9]{4,5}\s++)?(?P<time>\d+\.\d+):\s++funcgraph_(?:entry|exit):\s*+"
    r"[+!#*@$]?\s*+(?:(?P<us>\d+(?:\.\d+)?) us)?\s*+\|(?P<body>.*)"
)
_HEADERS: Final = re.compile(r"cpus=\d+|version = \d+|CPU \d+ is empty|\S+\.dat:?")
_CALL: Final = re.compile(
    r"(?P<name>[A-Za-z_.$][\w.$]*)(?: \[[\w-]+\])?\(.*?\)(?P<end>;| \{)"
)
_END: Final = re.compile(r"\}(?: /\* (?P<name>[\w.$]+).*)?")
_SWITCH: Final = re.compile(
    r"\s*(?P<cpu>\d+)\)\s+(?P<old>\S.*?)(?<!\s)\s++=>\s++(?P<new>\S.*)"
)
_LOST: Final = re.compile(
    r"CPU:\d+ \[(?:LOST (?:(\d{1,18}) )?EVENTS|(?:(\d{1,18}) )?EVENTS DROPPED)\]"
)
_ENTRIES: Final = re.compile(r"# entries-in-buffer/entries-written: (\d+)/(\d+)")
_RULE: Final = re.compile(r"\s*-{10,}\s*|\s*+[+!]?\s*+\|?\s*+(?:=++>|<=+) \|?")
_IRQ: Final = re.compile(r"\s*(?:=+>|<=+)\s*\|?.*")


@dataclass(slots=True)
class _Open:
    """A call that has begun; ``inner`` is the time of its traced callees."""

    name: str
    inner: float = 0.0


@dataclass(slots=True)
class _Trace:
    """What was read: calls, durations in us by function, own time by stack."""

    calls: dict[str, int] = field(default_factory=dict)
    ended: dict[str, list[float]] = field(default_factory=dict)
    stacks: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    rows: int = 0
    switches: int = 0
    headless: int = 0
    lost: int = 0
    gaps: int = 0
    odd: list[str] = field(default_factory=list)


def sniff(raw: RawFile) -> bool:
    """Say whether it is the header of the tracer, or most lines have its columns."""
    if raw.head.startswith(("# tracer: function_graph", "# tracer: funcgraph")):
        return True
    top = [one for one in raw.head.split("\n")[:60] if one.strip()][:-1]
    body = [one for one in top if not one.startswith("# ") and one != "#"]
    if sum(" funcgraph_e" in one for one in body) * 2 > len(body):
        return any(map(_EVENT.fullmatch, body))
    rows = [found for one in body if (found := _ROW.fullmatch(one)) and _known(found)]
    return len(body) > 1 and 2 * len(rows) > len(body)


def _known(found: re.Match[str]) -> bool:
    body = found["body"].strip()
    return bool(_CALL.match(body) or _END.match(body) or body.startswith("/*"))


def load(raw: RawFile) -> Capture:
    """Read every call; ``facts`` hold the numbers of rows and of switches."""
    trace, out = _Trace(), Reading()
    opened: dict[str, list[_Open]] = {}
    for line in raw.text.replace("\r\n", "\n").split("\n"):
        _line(trace, opened, line)
    for name, count in trace.calls.items():
        out.whole(f"calls:{name}", count)
    for name, times in trace.ended.items():
        mean = math.fsum(times) / len(times) / 1e6
        out.whole(f"call_time:{name}", mean, exposure=len(times))
    entries = _ENTRIES.search(raw.head)
    _doubts(out, trace, entries and (int(entries[1]), int(entries[2])))
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ftrace_graph",
        measurements=tuple(out.measurements),
        profiles=tuple(_profile(trace)),
        durations=tuple(_durations(trace)),
        facts={"rows": trace.rows, "task_switches": trace.switches},
        caveats=(*out.caveats, *line_end(raw)),
    )


def _line(trace: _Trace, opened: dict[str, list[_Open]], line: str) -> None:
    """Read one line; ``opened`` has the calls that have begun, by CPU or by task."""
    if " funcgraph_e" in line and (found := _EVENT.fullmatch(line)):
        idle = found["cpu"] if found["pid"] == "0" else ""
        _row(trace, opened.setdefault(found["task"] + idle, []), found)
    elif found := _ROW.fullmatch(line):
        _row(trace, opened.setdefault(found["cpu"], []), found)
    elif switch := _SWITCH.fullmatch(line):
        trace.switches += 1
        opened.pop(switch["cpu"], None)  # the calls of another task
    elif lost := _LOST.search(line):
        trace.gaps += 1
        trace.lost += int(lost[1] or lost[2] or 0)
        opened.clear()
    elif line.strip() and not line.startswith("#") and not _aside(line):
        trace.odd.append(line.strip()[:60])


def _aside(line: str) -> bool:
    return bool(_RULE.fullmatch(line) or _HEADERS.fullmatch(line.strip()))


def _row(trace: _Trace, stack: list[_Open], found: re.Match[str]) -> None:
    """Read a row of a call, of the end of one, or of an interrupt or a comment."""
    body = found["body"].strip()
    duration = float(found["us"]) if found["us"] else None
    if call := _CALL.match(body):
        trace.rows += 1
        if call["end"] == ";":
            _ended(trace, stack, _Open(call["name"]), duration)
        else:
            stack.append(_Open(call["name"]))
    elif end := _END.match(body):
        trace.rows += 1
        if stack:
            _ended(trace, stack, stack.pop(), duration)
        elif end["name"]:
            trace.headless += 1
            _ended(trace, stack, _Open(end["name"]), duration)
        else:
            trace.headless += 1  # began before the trace
    elif body and not body.startswith("/*") and not _IRQ.fullmatch(body):
        trace.odd.append(body[:60])


def _ended(
    trace: _Trace, stack: list[_Open], call: _Open, duration: float | None
) -> None:
    """Add a call that is over."""
    trace.calls[call.name] = trace.calls.get(call.name, 0) + 1
    if duration is None:
        return
    trace.ended.setdefault(call.name, []).append(duration)
    if stack:
        stack[-1].inner += duration
    frames = (*(one.name for one in stack), call.name)
    own = trace.stacks.setdefault(frames, [0, 0.0])
    own[0] += 1
    own[1] += max(duration - call.inner, 0.0) * 1e3


def _profile(trace: _Trace) -> Iterator[Profile]:
    """Yield the own time of every way to a function."""
    if trace.stacks:
        yield Profile(
            event="function_graph",
            unit="ns",
            stacks=tuple(
                Stack(frames=frames, weight=own, samples=int(count))
                for frames, (count, own) in trace.stacks.items()
            ),
            lost=trace.lost or None,
        )


def _durations(trace: _Trace) -> Iterator[Durations]:
    """Yield every duration of a function, and how many calls took as long."""
    for name, times in trace.ended.items():
        counted = sorted(Counter(times).items())
        yield Durations(
            function=name,
            upper_s=tuple(us / 1e6 for us, _ in counted),
            calls=tuple(calls for _, calls in counted),
        )


def _doubts(out: Reading, trace: _Trace, entries: tuple[int, int] | None) -> None:
    """Add what the tracer adds, and what is missing."""
    if trace.ended:
        text = (
            "durations hold what the tracer adds to every call, which hides the"
            " difference of short functions"
        )
        todo = "Measure a short function with counters of its own, or from a profile."
        out.doubt("tracer-overhead", text, todo)
    larger = "Trace for a shorter time, or enlarge buffer_size_kb."
    if entries and entries[1] > entries[0]:
        text = f"{entries[1] - entries[0]} of {entries[1]} entries were overwritten"
        out.doubt("events-lost", f"{text}; calls are those of the rest", larger)
    if trace.gaps:
        text = f"{trace.lost or 'an unknown number of'} events were lost"
        out.doubt("events-lost", f"{text}; calls are those of the rest", larger)
    if trace.headless:
        text = f"{trace.headless} calls began before the trace does"
        out.note("calls-without-start", text)
    if trace.odd:
        text = f"{len(trace.odd)} lines are no calls and were passed over"
        out.note("lines-unread", f"{text}: {trace.odd[0]!r}")
