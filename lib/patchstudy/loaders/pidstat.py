"""Read pidstat of sysstat: what single processes and threads cost.

What the values are (pidstat.c of sysstat). Every column becomes ``event:<column>`` as
printed: ``event:%CPU`` in percent of one CPU, ``event:cswch/s`` per second, a kB has
1024 bytes. Labels: ``pid`` (``tgid``, ``tid`` with ``-t``) and ``command``. There is no
``cpu_busy``: that is of the whole machine.

Values of the whole run are pidstat's own averages; with ``-h`` it prints none, and as
processes without activity are left out, none are worked out: then there are intervals
only. A report without its start and without another one is taken as a whole run. ``-1``
means that pidstat had no right to read the value: it is absent. So is what no machine
can do, of a counter that went back: more percent than there are CPUs, or 16 digits.
With ``-I`` ``%CPU`` is of all CPUs together, which the file does not tell. Columns that
are states and no counts (``CPU``, the user, ``prio``, ``policy``) are not read.

The time is local in both forms, epoch seconds with ``-H``. A decimal comma is read as
such. With ``-l`` a command holds blanks; it is the last column.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import cpu_shares, sysstat
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.records import Capture, RawFile

_HASH: Final = re.compile(r"^#[ ]+Time[ ]")
_EPOCH: Final = re.compile(r"^ ?(\d{9,11})[ \t]+")
_NAMES: Final = ("PID", "TGID", "TID")
_STATES: Final = {"UID", "USER", "CPU", "prio", "policy", *_NAMES}

#: What a counter that went back is printed as: 2^64 less a little, by the time.
_WRAPPED: Final = re.compile(r"\d{16,20}(?:[.,]\d\d)?%?")
#: CPU time is told in ticks, by which a process may seem busier than it can be.
_SLACK: Final = 1.1
_NO_ROW: Final = "holds no row of a process; did none run, or was it cut short?"

Row = dict[str, str]


def sniff(raw: RawFile) -> bool:
    """Say whether it has sysstat's first line and a table of processes."""
    lines = plain_head(raw)
    if len(lines) < 2 or not sysstat.BANNER.match(lines[0]):
        return False
    words = lines[1].split()
    return ("PID" in words or "TGID" in words) and words[-1] == "Command"


def load(raw: RawFile) -> Capture:
    """Read every row.

    Raises
    ------
    CaptureError
        If a row does not fit its head, or there is none.
    """
    page = _page(raw)
    _once(raw, page)
    reading = Reading()
    ends = _ends(page)
    most = 100 * _SLACK * int(page.header["cpus"])
    for one in page.reports:
        span = ends.get(one.time) if one.time is not None else None
        for row in one.rows:
            _row(raw, row, span, most, reading)
    if not reading.measurements:
        raise CaptureError(raw.path, _NO_ROW)
    if not any(one.start_s is None for one in reading.measurements):
        reading.note(
            "averages-absent",
            "pidstat printed no averages (-h, or cut short): intervals only",
        )
    if not raw.text.endswith("\n"):
        reading.note("cut-short", "the last line has no line end and was left out")
    if not ends and any(one.time is not None for one in page.reports):
        reading.doubt(
            "length-unknown",
            "one report whose start is not told: since boot if there was no interval",
            "Call pidstat with an interval, as in pidstat 1.",
        )
    if page.started_at is None:
        reading.note("clock-unknown", "pidstat writes local time without its zone")
    present = page.header["cpus"]
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="pidstat",
        started_at=page.started_at,
        measurements=tuple(reading.measurements),
        facts=dict(sysstat.host_facts(page.header)) | {"number_of_cpus": int(present)},
        caveats=tuple(reading.caveats),
    )


def _once(raw: RawFile, page: "_Page") -> None:
    """Refuse a process that stands twice in one report."""
    for one in page.reports:
        names = [tuple(row.get(name) for name in _NAMES) for row in one.rows]
        if len(set(names)) < len(names):
            problem = "a process stands twice in one report; are there two calls?"
            raise CaptureError(raw.path, problem, where=one.where)


@dataclass(slots=True, kw_only=True)
class _Report:
    """Rows of one table at one time; an average has no time."""

    time: int | None
    where: str
    rows: list[Row] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Page:
    """What one call printed.

    Attributes
    ----------
    start
        Time of the first head, where it has one.
    epoch
        Whether times are seconds since 1970.
    """

    header: dict[str, str]
    start: int | None = None
    epoch: bool = False
    reports: list[_Report] = field(default_factory=list)

    @property
    def started_at(self) -> str | None:
        """Start in UTC, of epoch seconds where the length of a report is known."""
        times = sorted({one.time for one in self.reports if one.time is not None})
        if not self.epoch or len(times) < 2:
            return None
        moment = datetime.fromtimestamp(2 * times[0] - times[1], tz=UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _page(raw: RawFile) -> _Page:
    text = raw.text if raw.text.endswith("\n") else raw.text.rpartition("\n")[0]
    lines = [(number, line) for number, line in plain(text) if line]
    banners = [match for _n, line in lines if (match := sysstat.BANNER.match(line))]
    if len(banners) != 1:
        raise CaptureError(raw.path, "holds the output of two calls; split the file")
    page = _Page(header=banners[0].groupdict())
    columns: list[str] = []
    for number, line in lines:
        if not sysstat.BANNER.match(line):
            columns = _line(raw, page, columns, (number, line))
    return page


def _line(
    raw: RawFile, page: _Page, columns: list[str], numbered: tuple[int, str]
) -> list[str]:
    """Take in one line; return the columns that are valid after it."""
    number, line = numbered
    if _HASH.match(line):
        return line.split()[2:]
    where = str(number)
    time, words = _split(raw, page, line, len(columns), where)
    if words[-1] == "Command" and ("UID" in words or "USER" in words):
        page.start = time if page.start is None else page.start
        return words
    if len(words) != len(columns) or not columns:
        problem = f"{len(words)} values under {len(columns)} columns; was it cut short?"
        raise CaptureError(raw.path, problem, where=where)
    row = dict(zip(columns, words, strict=True))
    last = page.reports[-1] if page.reports else None
    if last is None or last.time != time or set(last.rows[0]) != set(row):
        page.reports.append(_Report(time=time, where=where))
    page.reports[-1].rows.append(row)
    return columns


def _split(
    raw: RawFile, page: _Page, line: str, width: int, where: str
) -> tuple[int | None, list[str]]:
    """Return the time of a line and its words, the command as one."""
    if epoch := _EPOCH.match(line):
        page.epoch = True
        time, rest = int(epoch[1]), line[epoch.end() :]
    else:
        row = sysstat.split(line)
        if row is None:
            problem = f"{line!r} is no row of a table of pidstat"
            raise CaptureError(raw.path, problem, where=where)
        time, rest = row[0], line[sysstat.label_end(line) :]
    words = rest.split()
    if width and words and words[-1] != "Command":
        words = rest.split(None, width - 1)
    return time, [word.strip() for word in words]


def _ends(page: _Page) -> dict[int, tuple[float, float]]:
    """Return the place of every report by its time; none where one alone has no start.

    All tables of one time are of the same interval.
    """
    times = [one.time for one in page.reports if one.time is not None]
    distinct = list(dict.fromkeys(times))
    if not distinct or (page.start is None and len(distinct) < 2):
        return {}
    if page.start == distinct[0] and len(distinct) == 1:
        return {}
    at = cpu_shares.ends(distinct, page.start)
    return dict(zip(distinct, zip([0.0, *at], at, strict=False), strict=True))


def _row(
    raw: RawFile,
    row: Row,
    span: tuple[float, float] | None,
    most: float,
    reading: Reading,
) -> None:
    """Add every number of a row; a share above ``most`` percent is absent."""
    labels = {
        name.lower(): row[name] for name in _NAMES if row.get(name, "-") != "-"
    } | {"command": row["Command"].removeprefix("|__")}
    for column, text in row.items():
        if column in _STATES or column == "Command" or text == "-":
            continue
        if _WRAPPED.fullmatch(text):
            _note_wrapped(column, reading)
            continue
        value = sysstat.number(raw, text, column)
        if column.startswith("%") and value > most:
            _note_wrapped(column, reading)
        elif value == -1:
            reading.note("no-right", f"pidstat had no right to read {column}")
        elif span is None:
            reading.whole(f"event:{column}", value, labels)
        else:
            reading.interval(f"event:{column}", value, span, labels)


def _note_wrapped(column: str, reading: Reading) -> None:
    reading.doubt(
        "impossible",
        f"a value of {column} is more than the machine can do and is absent;"
        " a counter went back",
        "Compare with another interval.",
    )
