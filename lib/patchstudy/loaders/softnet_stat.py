"""Read /proc/net/softnet_stat: what every CPU's receive softirq did.

One row a CPU, hexadecimal, 32 bits wide (``softnet_seq_show`` in
net/core/net-procfs.c). Column 1 counts packets processed, 2 packets dropped because the
backlog was full, 3 how often the softirq ran out of budget or time with work left.
Kernels print 9 columns (before 2.6.36), 10 (with RPS), 11 (flow limit), 13 (5.10, with
the CPU's number in column 13) or 15. Before column 13 offline CPUs have no row, so the
row's number is only the CPU's number while all are online. All values are counts
(unit 1).
"""

import re
from collections.abc import Iterator
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import lines
from patchstudy.records import Capture, Measurement, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": (
        "processed, dropped, time_squeeze: columns 1, 2, 3, hexadecimal; without "
        "the label cpu: their sum"
    ),
}
#: How a file begins that is of the kernel's softnet_stat and of nothing else.
OPENS = re.compile(r"[0-9a-f]{8}(?: [0-9a-f]{8}){8,14} ?\n")
_HEX_ROW = re.compile(r"[0-9a-fA-F]{8}(?: [0-9a-fA-F]{8}){2,}")
_WIDTHS = (9, 10, 11, 13, 15)
_NAMES = ("processed", "dropped", "time_squeeze")


def sniff(raw: RawFile) -> bool:
    """Say whether the first line is nothing but numbers of eight hexadecimal digits."""
    first = raw.head.lstrip("\r\n").partition("\n")[0]
    return _HEX_ROW.fullmatch(first.strip()) is not None


def load(raw: RawFile) -> Capture:
    """Read three counters of every CPU, and their sums without a label."""
    rows = [_row(raw, *line) for line in lines(raw)]
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="softnet_stat",
        measurements=tuple(_readings(rows)),
        cumulative=True,
        counter_bits=32,
        facts={"columns": max(len(row) for row in rows)},
    )


def _row(raw: RawFile, number: int, line: str) -> list[int]:
    """Return the columns of one row."""
    columns = line.split()
    if _HEX_ROW.fullmatch(line.strip()) is None or len(columns) not in _WIDTHS:
        problem = (
            f"{len(columns)} columns, or not 8 hexadecimal digits each; was it cut?"
        )
        raise CaptureError(raw.path, problem, where=str(number))
    return [int(column, 16) for column in columns]


def _readings(rows: list[list[int]]) -> Iterator[Measurement]:
    """Yield the counters of each CPU, then their sums."""
    for number, row in enumerate(rows):
        cpu = row[12] if len(row) > 12 else number
        for name, value in zip(_NAMES, row, strict=False):
            yield Measurement(
                metric=f"event:softnet_{name}", value=value, labels={"cpu": str(cpu)}
            )
    for column, name in enumerate(_NAMES):
        total = sum(row[column] for row in rows)
        yield Measurement(metric=f"event:softnet_{name}", value=total)
