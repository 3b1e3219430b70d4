"""Read what a trace has lost: tracefs ``per_cpu/cpu*/stats``, or that of trace-cmd.

``tracing_stats_read`` in kernel/trace/trace.c, a value a line: entries in the buffer,
overrun (overwritten), commit overrun, dropped events (lost with overwrite=0), read
events. ``trace-cmd report --stat`` has them under ``CPU: n``. Files of several CPUs may
be joined, one line a CPU with semicolons: ``cpu0: entries: 262;overrun: 0;``.
``event:trace_<name>`` over all CPUs, and by ``cpu``.
"""

import re
from typing import Final

from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, RawFile

_NAMES: Final = (
    "entries",
    "overrun",
    "commit overrun",
    "dropped events",
    "read events",
)
_VALUE: Final = re.compile(
    rf"({'|'.join(sorted(_NAMES, key=len, reverse=True))}): (\d+)"
)
_CPU: Final = re.compile(r"(?:CPU: |cpu)(\d+)")


def sniff(raw: RawFile) -> bool:
    """Say whether the names of three values are there."""
    names = ("entries: ", "commit overrun: ", "dropped events: ")
    return all(one in raw.head for one in names)


def load(raw: RawFile) -> Capture:
    """Read the values of every CPU."""
    sums: dict[str, int] = {}
    by_cpu: dict[tuple[str, str], int] = {}
    cpu = "0"
    for part in re.split(r"[;\n]", raw.text):
        line = part.strip()
        if told := _CPU.match(line):
            cpu = told[1]
            line = line[told.end() :].lstrip(": ")
        if found := _VALUE.fullmatch(line):
            name = found[1].replace(" ", "_")
            sums[name] = sums.get(name, 0) + int(found[2])
            by_cpu[name, cpu] = by_cpu.get((name, cpu), 0) + int(found[2])
    out = Reading()
    for name, value in sums.items():
        out.whole(f"event:trace_{name}", value)
    for (name, cpu), value in by_cpu.items():
        out.whole(f"event:trace_{name}", value, {"cpu": cpu})
    lost = sums.get("overrun", 0) + sums.get("dropped_events", 0)
    if lost:
        text = f"the trace lost {lost} events; counts from it are too small"
        todo = "Trace for a shorter time, or enlarge buffer_size_kb."
        out.doubt("events-lost", text, todo)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="trace_stats",
        measurements=tuple(out.measurements),
        caveats=(*out.caveats, *line_end(raw)),
    )
