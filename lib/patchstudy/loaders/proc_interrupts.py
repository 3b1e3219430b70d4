"""Read /proc/interrupts: how often every CPU took every interrupt since boot.

``show_interrupts`` in kernel/irq/proc.c and ``arch_show_interrupts`` of each
architecture. A row has a name, one count a CPU that is online, and words that differ by
architecture (chip, number and trigger, devices); the words are facts, so that only the
counts need to be understood. Rows with one number and no words (``ERR``, ``MIS``,
``Err``) count errors of the machine and are ``event:irq_<name>``; rows without a number
(``FIQ`` on Arm) are facts only. Counts are 32 bits wide (``unsigned int`` in ``struct
irqstat``) and wrap.

``interrupts`` with ``irq`` and ``cpu`` is one count, without labels the sum of all. On
s390x rows of classes (``EXT``, ``I/O``, ``AIO``) contain other rows: there the sum is
absent.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import per_cpu
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Caveat, Measurement, RawFile, Severity

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "interrupts": (
        "the column of the CPU in the row of the interrupt; without labels: the "
        "sum of all"
    ),
    "event:*": "the number of the row <name> (ERR, MIS)",
}
_SOFTIRQ = "HI"  # the first row of /proc/softirqs
_CLASSES = {"EXT", "I/O"}
_ERRORS = {"ERR", "MIS", "Err"}
_CONTAINED = Caveat(
    code="total-unknown",
    severity=Severity.NOTE,
    text="rows of classes contain other rows; the sum of all interrupts is not known",
)


def sniff(raw: RawFile) -> bool:
    """Say whether it has a header of CPUs over rows that are not those of softirqs."""
    return per_cpu.first_row(raw) not in {None, _SOFTIRQ}


def load(raw: RawFile) -> Capture:
    """Read every row."""
    cpus, rows = per_cpu.table(raw)
    cut = "" if raw.text.endswith("\n") or not rows else rows[-1].name
    for row in rows:
        if len(row.counts) < len(cpus) and not _single(row, cut):
            problem = f"{row.name!r} has {len(row.counts)} counts for {len(cpus)} CPUs"
            where = str(row.line)
            raise CaptureError(raw.path, f"{problem}; was it cut short?", where=where)
    contained = {row.name for row in rows} >= _CLASSES
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="proc_interrupts",
        measurements=tuple(_readings(cpus, rows, total=not contained)),
        cumulative=True,
        counter_bits=32,
        facts={"interrupts": {row.name: row.words for row in rows}},
        caveats=(*line_end(raw), *((_CONTAINED,) if contained else ())),
    )


def _single(row: per_cpu.Row, cut: str) -> bool:
    """Say whether the row counts for the whole machine, or tells only words.

    A row that is cut may look alike; only the names of errors are beyond doubt there.
    """
    if row.name == cut and row.name not in _ERRORS:
        return False
    return not row.counts if row.words else len(row.counts) == 1


def _readings(
    cpus: Sequence[str], rows: Sequence[per_cpu.Row], *, total: bool
) -> Iterator[Measurement]:
    """Yield the counts of each row, then their sum."""
    counted = [row for row in rows if len(row.counts) == len(cpus) and _per_cpu(row)]
    for row in counted:
        for cpu, count in zip(cpus, row.counts, strict=True):
            labels = {"irq": row.name, "cpu": cpu}
            yield Measurement(metric="interrupts", value=count, labels=labels)
    if total:
        value = sum(sum(row.counts) for row in counted)
        yield Measurement(metric="interrupts", value=value)
    for row in rows:
        if row.counts and row not in counted:
            yield Measurement(metric=f"event:irq_{row.name}", value=row.counts[0])


def _per_cpu(row: per_cpu.Row) -> bool:
    """Say whether the counts are of CPUs, also where there is one CPU only."""
    return bool(row.words) or len(row.counts) > 1
