"""Read /proc/softirqs: how often every CPU ran every softirq since boot.

``show_softirqs`` in fs/proc/softirqs.c: a row a kind of softirq, a column a CPU, 32
bits wide. ``event:softirq_<name>`` is the count of one kind, with ``cpu`` or without it
for all CPUs; ``softirqs`` is the sum of all kinds, with its parts.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import per_cpu
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Caveat, Measurement, RawFile, Severity

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": (
        "the column of the CPU in the row <name>; without the label cpu: their sum"
    ),
    "softirqs": "the same, of all rows",
}
_LAST = "RCU"
_CUT = Caveat(
    code="cut-short",
    severity=Severity.DOUBT,
    text="the kind RCU, always the last, is missing; the sum of all is not known",
    todo="Compare the file with the original.",
)


def sniff(raw: RawFile) -> bool:
    """Say whether it has a header of CPUs over the first kind of softirq, ``HI``."""
    return per_cpu.first_row(raw) == "HI"


def load(raw: RawFile) -> Capture:
    """Read every kind on every CPU, and their sums."""
    cpus, rows = per_cpu.table(raw)
    for row in rows:
        if len(row.counts) < len(cpus) or row.words:
            problem = f"{row.name!r} has not one count for each of {len(cpus)} CPUs"
            raise CaptureError(raw.path, problem, where=str(row.line))
    cut = not rows or rows[-1].name != _LAST
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="proc_softirqs",
        measurements=tuple(_readings(cpus, rows, total=not cut)),
        cumulative=True,
        counter_bits=32,
        caveats=(*line_end(raw), *((_CUT,) if cut else ())),
    )


def _readings(
    cpus: Sequence[str], rows: Sequence[per_cpu.Row], *, total: bool
) -> Iterator[Measurement]:
    """Yield each kind with its sum, then the sum of all with its parts."""
    for row in rows:
        name = f"event:softirq_{row.name}"
        for cpu, count in zip(cpus, row.counts, strict=True):
            labels = {"softirq": row.name, "cpu": cpu}
            yield Measurement(metric=name, value=count, labels={"cpu": cpu})
            yield Measurement(metric="softirqs", value=count, labels=labels)
        yield Measurement(metric=name, value=sum(row.counts))
    if total:
        value = sum(sum(row.counts) for row in rows)
        yield Measurement(metric="softirqs", value=value)
