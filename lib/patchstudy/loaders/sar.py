"""Read the text of sar (sysstat), live or from a data file, in any locale.

What the values are (``pr_stats.c`` and ``rndr_stats.c`` of sysstat). Those of the whole
run are sar's own averages, or means weighted by time where these are missing; the time
is local, its zone not known.

``cpu_busy``, ``cpu_busy_max``, ``cpu_softirq``
    As in ``cpu_shares``. Without ``-u ALL``, ``%system`` contains irq and softirq.
``packet_rate``
    ``-n DEV``, labels ``interface`` and ``direction`` (``rx``, ``tx``).
``errors``, ``drops``
    ``-n EDEV``, the same labels: rates times the time; exposure: packets, where
    ``-n DEV`` stands in the file too.
``context_switches``, ``interrupts``
    ``-w``, ``-I SUM``: rates times the time.
``event:<column>``
    Every other column, a mean as printed (a rate where it ends in ``/s``; a kB has 1024
    bytes), with a label for what names the row.
"""

import re
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import sysstat
from patchstudy.loaders.paste import plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.records import Capture, RawFile

_COLUMN: Final = re.compile(r"[%/]|^kb|^\w+-\w+$|^IFACE$|^INTR$|^DEV$|MHz$|^rpm$")
_ASIDE: Final = re.compile(r"^\S+(?: [AaPp]\.?[Mm]\.?)?\s+(?:LINUX RESTART|COM)\b")
_KNOWN: Final = (
    "rxpck/s", "txpck/s", "rxerr/s", "txerr/s", "rxdrop/s", "txdrop/s", "cswch/s",
    "intr/s",
)  # fmt: skip


def sniff(raw: RawFile) -> bool:
    """Say whether it has sysstat's first line and a table of sar."""
    lines = [line for line in plain_head(raw) if not _ASIDE.match(line)]
    if len(lines) < 2 or not sysstat.BANNER.match(lines[0]):
        return False
    row = sysstat.split(lines[1])
    if row is None or row[0] is None or not sysstat.is_head(row[1]):
        return False
    words = row[1]
    if "PID" in words or "TGID" in words:
        return False
    mpstat = sysstat.MPSTAT.match(" ".join(words))
    return mpstat is None and any(map(_COLUMN.search, words))


def load(raw: RawFile) -> Capture:
    """Read all tables.

    Raises
    ------
    CaptureError
        If a number cannot be read, or the file holds no row.
    """
    told = sysstat.report(raw)
    reading = Reading()
    facts = dict(sysstat.host_facts(told.header)) | sysstat.add_cpus(told, reading)
    sysstat.add_interfaces(told, reading)
    sysstat.add_counts(told, reading)
    sysstat.add_events(told, reading, _KNOWN)
    if not any(sheet.samples or sheet.average for sheet in told.sheets):
        raise CaptureError(raw.path, "holds no row of a table; was it cut short?")
    if not reading.measurements:
        reading.doubt("metric-absent", "no table that a metric comes from")
    reading.note(
        "clock-unknown",
        "sar writes local time without its zone; when it started is not known",
    )
    sysstat.doubts(told, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="sar",
        workload={"duration_s": max(sheet.seconds for sheet in told.sheets)},
        measurements=tuple(reading.measurements),
        facts=facts,
        caveats=tuple(reading.caveats),
    )
