"""Read /proc/stat: ticks of CPU time, interrupts and context switches since boot.

``show_stat`` in fs/proc/stat.c, told in proc(5). A row ``cpu`` holds user, nice,
system, idle, iowait, irq, softirq, steal, guest and guest_nice in ticks of USER_HZ
(1/100 s); kernels before 2.6 have 4 columns, before 2.6.11 7. The guest columns are
contained in user and nice, so they are not added up again. ``event:cpu_time`` is the
sum, ``event:cpu_not_busy`` the sum of idle and iowait: iowait alone may fall, says
proc(5), so it is a gauge here, but the kernel counts the two from one clock. A CPU that
is offline has no row, yet the row of the machine keeps its ticks.

``intr`` and ``softirq`` begin with their totals (``interrupts``, ``softirqs``),
``ctxt`` counts context switches. All are counts, 64 bits wide but for the single
softirqs, which have 32 and are not read; /proc/softirqs has them. The shares of CPU
time appear in the difference of two files (``cpu_time.with_shares``).
"""

import re
from collections.abc import Iterator
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import cpu_time
from patchstudy.loaders.text import line_end, lines
from patchstudy.records import Capture, Measurement, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": (
        'cpu_*: a column of the line "cpu"; cpu_time: their sum without guest '
        "and guest_nice; cpu_not_busy: idle + iowait"
    ),
    "interrupts": 'first number of the line "intr"',
    "context_switches": 'the line "ctxt"',
    "softirqs": 'first number of the line "softirq"',
}
_FIRST = re.compile(r"\s*cpu  ?\d+( \d+){3,}\s*(\n|$)")
_CPU = re.compile(r"cpu(\d*)((?: +\d{1,20})+) *")
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_IN_OTHERS = ("guest", "guest_nice")
_TOTALS = {
    "intr": "interrupts",
    "ctxt": "context_switches",
    "softirq": "softirqs",
    "processes": "event:processes",
}
_GAUGES = {"procs_running", "procs_blocked"}


def sniff(raw: RawFile) -> bool:
    """Say whether it begins with the row ``cpu`` of the whole machine."""
    return _FIRST.match(raw.head) is not None


def load(raw: RawFile) -> Capture:
    """Read the ticks of the machine and of every CPU, and the totals of events."""
    cpus: dict[str, list[int]] = {}
    totals: dict[str, tuple[int, str]] = {}
    for number, line in lines(raw):
        key = line.split(maxsplit=1)[0]
        if key in totals or key in cpus:
            problem = f"{key!r} stands twice; split the file, one reading each"
            raise CaptureError(raw.path, problem, where=str(number))
        if key.startswith("cpu"):
            cpus[key] = _ticks(raw, number, line)
        else:
            totals[key] = (number, line)
    readings = [one for cpu, row in cpus.items() for one in _cpu(cpu, row)]
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="proc_stat",
        measurements=(*readings, *_totals(raw, totals)),
        cumulative=True,
        facts={
            "number_of_cpus": len(cpus) - 1,
            "fields": max(len(row) for row in cpus.values()),
        },
        caveats=line_end(raw),
    )


def _ticks(raw: RawFile, number: int, line: str) -> list[int]:
    """Return the columns of a row of CPU time."""
    match = _CPU.fullmatch(line)
    columns = [int(word) for word in match[2].split()] if match else []
    if len(columns) < 4:
        problem = f"{line[:60]!r} is not a CPU with its ticks; was it cut short?"
        raise CaptureError(raw.path, problem, where=str(number))
    return columns


def _cpu(name: str, row: list[int]) -> Iterator[Measurement]:
    """Yield every column, and the sums that the shares are made of."""
    cpu = name.removeprefix("cpu")
    labels = {"cpu": cpu} if cpu else {}
    ticks = dict(zip((*_FIELDS, *_IN_OTHERS), row, strict=False))
    for field, value in ticks.items():
        gauge = {"kind": "gauge"} if field == "iowait" else {}
        yield Measurement(
            metric=f"event:cpu_{field}", value=value, labels={**labels, **gauge}
        )
    time = sum(ticks.get(field, 0) for field in _FIELDS)
    idle = ticks["idle"] + ticks.get("iowait", 0)
    yield Measurement(metric=cpu_time.TIME, value=time, labels=labels)
    yield Measurement(metric=cpu_time.IDLE, value=idle, labels=labels)


def _totals(raw: RawFile, rows: dict[str, tuple[int, str]]) -> Iterator[Measurement]:
    """Yield the first number of every row that is known."""
    for key, (number, line) in rows.items():
        if key not in _TOTALS and key not in _GAUGES:
            continue
        words = line.split()
        if len(words) < 2 or not words[1].isdecimal():
            problem = f"{line[:60]!r} has no number; was it cut short?"
            raise CaptureError(raw.path, problem, where=str(number))
        gauge = {"kind": "gauge"} if key in _GAUGES else {}
        name = _TOTALS.get(key, f"event:{key}")
        yield Measurement(metric=name, value=int(words[1]), labels=gauge)
