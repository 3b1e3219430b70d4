"""Read vmstat of procps: how busy the CPUs were, switches and interrupts a second.

What the values are (vmstat.c of procps). The first row holds means since boot: its
values carry the label ``span`` and are never mixed with the others. ``vmstat -y``
leaves it out and nothing tells so: one interval is given away then. Of the other rows:

``cpu_busy``
    All but ``id`` and ``wa``; ``st`` counts as busy, as this machine could not use it.
    Whole percent, so a mean over n rows has a resolution of 1 % / n at best. vmstat
    adds softirq to ``sy``: there is no ``cpu_softirq``.
``event:in``, ``event:cs``
    Interrupts and context switches per second, as printed. With ``-t`` the times tell
    how long a row took: then there are the counts ``interrupts``,
    ``context_switches`` too.

With ``-t`` rows have a time and become intervals of ``cpu_busy``; the start is known
where the column says UTC. Without it only the means are given. Columns are taken by
their place behind the head, as other languages translate their names (``frei``).
``-d``, ``-D``, ``-m``, ``-p`` and ``-s`` are other tables and refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import cpu_shares
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, RawFile

#: The first line of the head names five groups at least, in any language, between
#: dashes; the second has as many names of columns as there are in every version.
_GROUP: Final = re.compile(r"[^\s-]+")
_WORDS: Final = re.compile(r"^ *[^\W\d]+(?: +[^\W\d]+){15,18}$")
_DISK: Final = re.compile(r"^disk-? +-+\w+-+ ")
_NAMES: Final = re.compile(
    r"^ *r +b +\S+ +\S+ +\S+ +\S+ +si +so +bi +bo +in +cs +us +sy +id\b"
)
_STAMP: Final = re.compile(r" (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)$")
_SHARES: Final = ("us", "sy", "id", "wa", "st", "gu")
_FIRST_SHARE: Final = 12
_RATES: Final = {"in": 10, "cs": 11}
_COUNTS: Final = {"interrupts": "in", "context_switches": "cs"}
_RESOLUTION: Final = 0.01


def sniff(raw: RawFile) -> bool:
    """Say whether it starts with the two lines of vmstat's head."""
    lines = plain_head(raw)
    if not lines:
        return False
    if _DISK.match(lines[0]) or any(map(_NAMES.match, lines[:2])):
        return True
    return _is_groups(lines[0]) and (len(lines) == 1 or bool(_WORDS.match(lines[1])))


def _is_groups(line: str) -> bool:
    """Say whether a line has names between dashes, as the first of a head."""
    if line.count("---") < 4 or any(map(str.isdecimal, line)):
        return False
    return 5 <= len(_GROUP.findall(line)) <= 12


def load(raw: RawFile) -> Capture:
    """Read all rows.

    Raises
    ------
    CaptureError
        If it is another table of vmstat, or a row does not fit.
    """
    rows, zone = _rows(raw)
    first, others = rows[0], rows[1:]
    reading = Reading()
    _means(rows[:1], {"span": "since boot"}, reading)
    if others:
        _intervals(first, others, reading)
        _means(others, {}, reading)
    else:
        reading.doubt(
            "since-boot",
            "one row only: means since boot, not of a run",
            "Call vmstat with an interval, as in vmstat -t 1.",
        )
    started = first.time if zone == "UTC" else None
    if started is None:
        reading.note("clock-unknown", "vmstat tells no time in UTC; call it with -t")
    reading.note("softirq-absent", "vmstat adds softirq time to the system's")
    reading.caveats.extend(line_end(raw))
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="vmstat",
        started_at=f"{started:%Y-%m-%dT%H:%M:%SZ}" if started else None,
        workload={"rows": len(rows)},
        measurements=tuple(reading.measurements),
        caveats=tuple(reading.caveats),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One row: its share of busy time, its rates, and its end where told."""

    busy: float
    rates: dict[str, float]
    time: datetime | None


def _rows(raw: RawFile) -> tuple[list[_Row], str]:
    """Return the rows and the zone that the head names."""
    rows: list[_Row] = []
    names: list[str] = []
    for number, line in plain(raw.text):
        if _DISK.match(line):
            problem = "the disk table of vmstat -d; call vmstat without -d"
            raise CaptureError(raw.path, problem, where=str(number))
        if not line or "---" in line:
            continue
        if _NAMES.match(line) or _WORDS.match(line):
            names = line.split()
        else:
            rows.append(_row(raw, names, line, str(number)))
    if not rows:
        raise CaptureError(raw.path, "holds no row of vmstat; was it cut short?")
    zone = names[-1] if names and names[-1].isupper() else ""
    return rows, zone


def _row(raw: RawFile, names: list[str], line: str, where: str) -> _Row:
    stamp = _STAMP.search(line)
    words = (line[: stamp.start()] if stamp else line).split()
    columns = [name for name in names if not name.isupper()]
    if not columns or len(words) != len(columns):
        problem = f"{len(words)} values under {len(columns)} columns; was it cut short?"
        raise CaptureError(raw.path, problem, where=where)
    if not all(word.isdecimal() for word in words):
        problem = f"{line.strip()!r} holds something else than whole numbers"
        raise CaptureError(raw.path, problem, where=where)
    values = [int(word) for word in words]
    told = dict(zip(_SHARES, values[_FIRST_SHARE:], strict=False))
    if not 90 <= sum(told.values()) <= 110:  # every column is rounded
        problem = f"the shares of the CPUs add up to {sum(told.values())} %, not to 100"
        raise CaptureError(raw.path, problem, where=where)
    return _Row(
        busy=round(max(0.0, 1 - (told["id"] + told.get("wa", 0)) / 100), 6),
        rates={name: float(values[at]) for name, at in _RATES.items()},
        time=_time(raw, stamp, where),
    )


def _time(raw: RawFile, stamp: re.Match[str] | None, where: str) -> datetime | None:
    if stamp is None:
        return None
    try:
        told = datetime.fromisoformat(f"{stamp[1]}T{stamp[2]}")
    except ValueError as error:
        problem = f"{stamp[0].strip()!r} is not a time"
        raise CaptureError(raw.path, problem, where=where) from error
    return told.replace(tzinfo=UTC)


def _means(rows: Sequence[_Row], labels: dict[str, str], reading: Reading) -> None:
    """Add the means of the rows; vmstat keeps its interval, so all weigh the same."""
    busy = round(fmean(row.busy for row in rows), 6)
    last = _RESOLUTION / len(rows)
    reading.whole("cpu_busy", busy, labels, resolution=last)
    for name in _RATES:
        mean = fmean(row.rates[name] for row in rows)
        reading.whole(f"event:{name}", mean, labels, resolution=1 / len(rows))


def _intervals(first: _Row, rows: Sequence[_Row], reading: Reading) -> None:
    """Add ``cpu_busy`` of every row that has a time."""
    times = [row.time for row in (first, *rows)]
    known = [int(time.timestamp()) for time in times if time is not None]
    if len(known) < len(times):
        reading.note("times-absent", "rows have no time; call vmstat with -t")
        return
    ends = cpu_shares.ends(known[1:], known[0])
    lengths = [end - start for start, end in zip([0.0, *ends], ends, strict=False)]
    for metric, name in _COUNTS.items():
        pairs = zip(rows, lengths, strict=True)
        reading.whole(metric, sum(row.rates[name] * length for row, length in pairs))
    for row, start, end in zip(rows, [0.0, *ends], ends, strict=False):
        reading.interval("cpu_busy", row.busy, (start, end), resolution=_RESOLUTION)
