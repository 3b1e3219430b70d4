"""Read /proc/net/dev: the counters of every network interface.

The columns are those of ``dev_seq_printf_stats`` in net/core/net-procfs.c, taken from
``struct rtnl_link_stats64``: bytes, packets and counts, 64 bits wide (some drivers
count in 32). Three columns are sums of the kernel's counters: ``rx drop`` is rx_dropped
+ rx_missed_errors, ``rx frame`` is the length, over, crc and frame errors, ``tx
carrier`` is the carrier, aborted, window and heartbeat errors; the last two are named
as printed (``event:rx_frame``, ``event:tx_carrier``). Old kernels print no blank after
the colon.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import interfaces
from patchstudy.loaders.text import line_end, lines
from patchstudy.records import Capture, Measurement, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": "the column of the interface's line",
    "errors": "columns errs of Receive and of Transmit",
    "drops": "columns drop of Receive and of Transmit",
}
#: How a file begins that is of /proc/net/dev and of nothing else.
OPENS = re.compile(r"Inter-\| {3}Receive +\| {2}Transmit\n")
_HEADER = re.compile(r"\s*Inter-\|\s+Receive\s+\|\s+Transmit")
_COUNT = re.compile(r"\d{1,20}")
_RX = (
    "bytes",
    "packets",
    "errors",
    "dropped",
    "fifo_errors",
    "frame",
    "compressed",
    "multicast",
)
_TX = (
    "bytes",
    "packets",
    "errors",
    "dropped",
    "fifo_errors",
    "collisions",
    "carrier",
    "compressed",
)


def sniff(raw: RawFile) -> bool:
    """Say whether it begins with the first header line of the kernel."""
    return _HEADER.match(raw.head) is not None


def load(raw: RawFile) -> Capture:
    """Read the counters of every interface, and its errors and drops of packets."""
    rows = lines(raw)[2:]
    if not rows:
        raise CaptureError(raw.path, "holds no interface; was it cut short?")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="proc_net_dev",
        measurements=tuple(chain.from_iterable(_row(raw, *row) for row in rows)),
        cumulative=True,
        caveats=line_end(raw),
    )


def _row(raw: RawFile, number: int, line: str) -> Iterator[Measurement]:
    """Yield the readings of the interface of one line."""
    name, colon, rest = line.strip().rpartition(":")
    values = rest.split()
    if not colon or len(values) != 16 or not all(map(_COUNT.fullmatch, values)):
        problem = f"{line.strip()!r} is not an interface with 16 counters"
        raise CaptureError(raw.path, problem, where=str(number))
    counts = [int(value) for value in values]
    yield from interfaces.readings(name, "rx", dict(zip(_RX, counts[:8], strict=True)))
    yield from interfaces.readings(name, "tx", dict(zip(_TX, counts[8:], strict=True)))
