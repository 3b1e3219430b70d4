"""Read sadf of sysstat: JSON (``-j``), XML (``-x``), lists (``-d``) and pairs (``-p``).

The values are those of ``sar``, with the same metrics and labels. Each record tells
its own length (``interval``, whole seconds); means over the run are weighted with it.
The start is known where the times are UTC (``"utc": 1``, ``"tz": "UTC"``, the word
``UTC``); with ``-t`` and ``-T`` they are local.

Of JSON and XML the tables of CPUs, of interfaces and their errors, of context switches,
interrupts and the softnet queue are read; the others are named in a caveat. The JSON
keeps the decimal point in every locale, ``-d`` and ``-p`` write a decimal comma.

SVG, PCP archives, raw counters (``-r``) and ``-h``, which puts several rows in one
line, are refused.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import sadf_xml, sysstat
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.sysstat import Report, Rows, Sample, Sheet
from patchstudy.loaders.text import json_value, line_end
from patchstudy.records import Capture, RawFile

_COLUMNS: Final = re.compile(r"^# hostname;interval;timestamp(?:;|$)")
_PAIR: Final = re.compile(
    r"^\S+\t(-?\d+)\t(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]{2,5})?|\d{9,11})"
    r"\t(\S+)\t(\S+)(?:\t(\S.*))?$"
)
_RAW: Final = re.compile(r"^\d\d:\d\d:\d\d(?: [A-Z]{2,5})?; \S+|^# uptime_cs; ")
_ZONE: Final = re.compile(r"^(\S+ \S+?)(?: ([A-Z]{2,5}))?$")
_DRAWING: Final = ("<svg", "<!DOCTYPE svg", "<!-- Created with sadf")
_GRAPH: Final = re.compile(r"<text [^>]*>Linux \S+ \(.*\(\d+ CPU\)")
_XML: Final = ("<!DOCTYPE sysstat", "<sysstat")
_KNOWN: Final = (
    "rxpck/s", "txpck/s", "rxerr/s", "txerr/s", "rxdrop/s", "txdrop/s", "cswch/s",
    "intr/s",
)  # fmt: skip
#: Table of the JSON -> what names its rows, that column in sar's text.
_TABLES: Final = {
    ("cpu-load",): ("cpu", "CPU", "%"),
    ("network", "net-dev"): ("iface", "IFACE", ""),
    ("network", "net-edev"): ("iface", "IFACE", ""),
    ("network", "softnet"): ("cpu", "CPU", ""),
    ("process-and-context-switch",): ("", "", ""),
}
_PERCENTS: Final = {"ifutil-percent": "%ifutil"}
_NOT_RATES: Final = {"blg_len"}
_ASIDE: Final = re.compile(r"^\S+[;\t]-1[;\t][^;\t]*[;\t](LINUX-RESTART|COM\b)")
#: Column of ``-d -- -I`` that stands for every CPU that was asked for; which, is not
#: told.
_ANY_CPU: Final = "CPU*"
#: Fields of ``-p`` that are of an interface.
_OF_INTERFACE: Final = re.compile(
    r"[rt]x(?:pck|kB|cmp|mcst|err|drop|carr|fram|fifo)/s|coll/s|%ifutil"
)


def sniff(raw: RawFile) -> bool:
    """Say whether it is any form of sadf's output."""
    head = raw.head
    if head.lstrip().startswith("{"):
        return '"sysstat"' in head[:200] and '"file-date"' in head
    if head.lstrip().startswith("<"):
        return any(mark in head for mark in (*_XML, "sadf")) or bool(
            _GRAPH.search(head)
        )
    lines = [line for line in plain_head(raw) if not _ASIDE.match(line)]
    return bool(lines) and any(
        pattern.match(lines[0]) for pattern in (_COLUMNS, _PAIR, _RAW)
    )


def load(raw: RawFile) -> Capture:
    """Read all records.

    Raises
    ------
    CaptureError
        If it is a form that holds no table, is cut, or holds nothing that is read.
    """
    _refuse(raw)
    rows = not raw.head.lstrip().startswith(("{", "<"))
    page = _from_rows(raw) if rows else _from_json(raw)
    told = page.report
    reading = Reading()
    facts = dict(sysstat.host_facts(told.header)) | sysstat.add_cpus(told, reading)
    sysstat.add_interfaces(told, reading)
    sysstat.add_counts(told, reading)
    sysstat.add_events(told, reading, _KNOWN)
    if not reading.measurements:
        reading.doubt(
            "metric-absent",
            "no table that a metric comes from",
            "Call sadf -j FILE -- -u ALL -n DEV.",
        )
    if page.unread:
        reading.note("tables-unread", "not read: " + ", ".join(page.unread))
    if page.started_at is None:
        reading.note("clock-unknown", "local times without their zone")
    sysstat.restarted(told, reading)
    if rows:
        reading.caveats.extend(line_end(raw))
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="sadf",
        started_at=page.started_at,
        workload={
            "duration_s": max((sheet.seconds for sheet in told.sheets), default=None)
        },
        measurements=tuple(reading.measurements),
        facts=facts,
        caveats=tuple(reading.caveats),
    )


@dataclass(slots=True, kw_only=True)
class _Page:
    """The tables of one file.

    Attributes
    ----------
    started_at
        Start of the first record, where the times are UTC.
    unread
        Names of the tables that are not read.
    """

    report: Report
    started_at: str | None
    unread: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stamp:
    """End and length of one record."""

    end: datetime
    length_s: int
    utc: bool

    @property
    def start(self) -> datetime:
        return self.end - timedelta(seconds=self.length_s)


@dataclass(slots=True)
class _Tables:
    """Records by table and time, before they are put in order."""

    sheets: dict[tuple[str, ...], dict[datetime, tuple[_Stamp, Rows]]] = field(
        default_factory=dict
    )
    unread: dict[str, None] = field(default_factory=dict)

    def add(
        self,
        columns: tuple[str, ...],
        stamp: _Stamp,
        name: str,
        values: Mapping[str, float],
    ) -> None:
        """Add one row of the table with these columns, its key first."""
        name = "all" if columns[0] == "CPU" and name == "-1" else name
        records = self.sheets.setdefault(columns, {})
        records.setdefault(stamp.end, (stamp, {}))[1].setdefault(name, {}).update(
            values
        )

    def page(self, report: Report) -> _Page:
        """Put the records on one time axis."""
        stamps = [one for told in self.sheets.values() for one, _rows in told.values()]
        first = min((one.start for one in stamps), default=None)
        for columns, told in self.sheets.items():
            names = (name for _s, rows in told.values() for name in _columns(rows))
            sheet = Sheet(key=columns[0], columns=tuple(dict.fromkeys(names)))
            for stamp, rows in told.values():
                start = (stamp.start - first).total_seconds() if first else 0.0
                end = start + stamp.length_s
                sheet.samples.append(Sample(start_s=start, end_s=end, rows=rows))
            report.sheets.append(sheet)
        utc = bool(stamps) and all(one.utc for one in stamps)
        started = f"{first:%Y-%m-%dT%H:%M:%SZ}" if first and utc else None
        return _Page(report=report, started_at=started)


def _columns(rows: Rows) -> Iterator[str]:
    for values in rows.values():
        yield from values


def _refuse(raw: RawFile) -> None:
    """Refuse the forms that are no tables."""
    head = raw.head
    if any(mark in head for mark in _DRAWING):
        raise CaptureError(raw.path, "a drawing of sadf, no data; call sadf -j")
    lines = [line for line in plain_head(raw) if not _ASIDE.match(line)]
    first = next(iter(lines), "")
    if _RAW.match(first):
        raise CaptureError(
            raw.path, "raw counters of sadf -r are not read; call sadf -j"
        )
    if _COLUMNS.match(first) and "[...]" in first:
        problem = "sadf -h puts several rows in one line; call sadf -d without -h"
        raise CaptureError(raw.path, problem, where="1")


# ---- JSON and XML --------------------------------------------------------------------


def _from_json(raw: RawFile) -> _Page:
    json = raw.head.lstrip().startswith("{")
    value: Any = json_value(raw) if json else sadf_xml.as_json(raw)
    try:
        hosts = value["sysstat"]["hosts"]
        host, statistics = hosts[0], hosts[0]["statistics"]
        records = [one for one in statistics if isinstance(one.get("timestamp"), dict)]
        restarts = [one["boot"] for one in host.get("restarts") or []]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        problem = f"not laid out as sadf does ({type(error).__name__}: {error})"
        raise CaptureError(raw.path, problem) from error
    if len(hosts) > 1:
        raise CaptureError(raw.path, "several machines in one file; split it")
    tables = _Tables()
    unread: dict[str, None] = {}
    for index, record in enumerate(records):
        where = f"statistics[{index}]"
        stamp = _json_stamp(raw, record["timestamp"], where)
        if stamp.length_s > 0:
            unread |= dict.fromkeys(_record(raw, record, stamp, tables))
    page = tables.page(Report(raw=raw, header=_header(host)))
    page.report.restarted = _restarted(records, restarts)
    page.unread = sorted(unread)
    return page


def _restarted(records: Sequence[Mapping[str, Any]], restarts: Sequence[Any]) -> bool:
    """Say whether a restart lies after the first record."""
    first = min((_order(one["timestamp"]) for one in records), default="")
    return any(_order(one) > first for one in restarts if isinstance(one, dict))


def _order(told: Mapping[str, Any]) -> str:
    return f"{told.get('date')} {told.get('time')}"


def _header(host: Mapping[str, Any]) -> dict[str, str]:
    names = {"nodename": "nodename", "release": "release", "machine": "machine"}
    header = {key: str(host[name]) for key, name in names.items() if name in host}
    if str(host.get("number-of-cpus")).isdecimal():
        header["cpus"] = str(host["number-of-cpus"])
    return header


def _json_stamp(raw: RawFile, told: Mapping[str, Any], where: str) -> _Stamp:
    try:
        text = f"{told['date']} {told['time']}"
        end = datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        length = int(told["interval"])
    except (KeyError, ValueError, TypeError) as error:
        problem = f"{dict(told)!r} is not date, time and interval"
        raise CaptureError(raw.path, problem, where=f"{where}.timestamp") from error
    utc = told.get("utc") == 1 or told.get("tz") == "UTC"
    return _Stamp(end=end, length_s=length, utc=utc)


def _record(
    raw: RawFile, record: Mapping[str, Any], stamp: _Stamp, tables: _Tables
) -> Iterator[str]:
    """Add the known tables of one record; yield the names of the others."""
    names = {name for name in record if name not in {"timestamp", "network"}}
    network = record.get("network")
    network = network if isinstance(network, dict) else {}
    names |= set(network)
    for path, (key, column, mark) in _TABLES.items():
        table = network.get(path[-1]) if path[0] == "network" else record.get(path[0])
        rows = table if isinstance(table, list) else [table]
        for row in rows if table else ():
            if isinstance(row, dict):
                name = str(row.get(key, "")) if key else ""
                values = _values(raw, row, key, mark)
                tables.add((column, *values), stamp, name, values)
        names.discard(path[-1])
    _interrupts(record, stamp, tables)
    yield from names - {"interrupts"}


def _values(
    raw: RawFile, row: Mapping[str, Any], key: str, mark: str
) -> dict[str, float]:
    """Return the numbers of a row under the names that sar's text uses."""
    values: dict[str, float] = {}
    for name, value in row.items():
        if name == key:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CaptureError(raw.path, f"{value!r} is not a number", where=name)
        rate = name if name in _NOT_RATES else f"{name}/s"
        values[_PERCENTS.get(name, f"{mark}{name}" if mark else rate)] = float(value)
    return values


def _interrupts(record: Mapping[str, Any], stamp: _Stamp, tables: _Tables) -> None:
    """Add the sum of all interrupts; it is ``all`` or, in old versions, ``value``."""
    rows = record.get("interrupts")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("intr") == "sum":
            rate = row.get("all", row.get("value"))
            if isinstance(rate, int | float):
                tables.add(("INTR", "intr/s"), stamp, "sum", {"intr/s": float(rate)})


# ---- rows ----------------------------------------------------------------------------


def _from_rows(raw: RawFile) -> _Page:
    tables = _Tables()
    report = Report(raw=raw, header={})
    columns: list[str] = []
    for number, line in plain(raw.text):
        if not line:
            continue
        if _COLUMNS.match(line):
            columns = line.split(";")[3:]
        elif aside := _ASIDE.match(line):
            again = aside[1] == "LINUX-RESTART" and bool(tables.sheets)
            report.restarted |= again
        elif match := _PAIR.match(line):
            _pair(raw, match, str(number), tables)
        else:
            _fields(raw, line, columns, str(number), tables)
    page = tables.page(report)
    page.unread = sorted(tables.unread)
    return page


def _fields(
    raw: RawFile, line: str, columns: list[str], where: str, tables: _Tables
) -> None:
    """Add a row of ``-d``; of a table without a metric it need not be readable."""
    words = line.split(";")
    if len(words) < 4 or not columns:
        raise CaptureError(
            raw.path, f"{line[:60]!r} is no row; cut short?", where=where
        )
    stamp = _stamp(raw, words[1], words[2], where)
    key = next((one for one in columns if one in sysstat.KEYS), "")
    if stamp.length_s <= 0:  # a second record of one time
        return
    if key == "INTR" and _ANY_CPU in columns:
        tables.unread[key] = None
        return
    try:
        _counted(raw, len(words), len(columns) + 3, where)
        row = dict(zip(columns, words[3:], strict=True))
        values = {
            column: sysstat.number(raw, text, where)
            for column, text in row.items()
            if column not in sysstat.KEYS
        }
    except CaptureError:
        if sysstat.is_core(key, columns):
            raise
        tables.unread[key or columns[0]] = None
        return
    tables.add((key, *values), stamp, row.get(key, ""), values)


def _counted(raw: RawFile, fields: int, columns: int, where: str) -> None:
    if fields != columns:
        problem = f"{fields} fields under {columns} columns; cut short?"
        raise CaptureError(raw.path, problem, where=where)


def _pair(raw: RawFile, match: re.Match[str], where: str, tables: _Tables) -> None:
    """Add a line of ``-p``: interval, time, device, field, value."""
    interval, time, device, column, text = match.groups()
    stamp = _stamp(raw, interval, time, where)
    if stamp.length_s <= 0:  # a second record of one time
        return
    if device == "sum" and column in {"all", "intr/s"}:
        rate = sysstat.number(raw, text or "", where)
        tables.add(("INTR", "intr/s"), stamp, "sum", {"intr/s": rate})
        return
    cpu = re.fullmatch(r"cpu(\d+)|all", device)
    known = cpu or device == "-" or _OF_INTERFACE.fullmatch(column)
    if not known or column in sysstat.KEYS:
        tables.unread[column] = None
        return
    values = {column: sysstat.number(raw, text or "", where)}
    if cpu:
        # all shares of a CPU go into one table, field by field
        tables.add(("CPU", *_shares(column)), stamp, cpu[1] or "all", values)
    elif device == "-":
        tables.add(("", column), stamp, "", values)
    else:
        tables.add(("IFACE", *_interface(column)), stamp, device, values)


def _shares(column: str) -> tuple[str, ...]:
    """Return the columns of the table that a field of a CPU belongs to."""
    return ("%idle",) if column.startswith("%") else (column,)


def _interface(column: str) -> tuple[str, ...]:
    """Return the columns of the table that a field of an interface belongs to."""
    if re.match(r"[rt]x(?:err|drop|carr|fram|fifo)/s|coll/s", column):
        return ("rxerr/s",)
    return ("rxpck/s",)


def _stamp(raw: RawFile, interval: str, time: str, where: str) -> _Stamp:
    try:
        if time.isdecimal():
            end = datetime.fromtimestamp(int(time), tz=UTC)
            return _Stamp(end=end, length_s=int(interval), utc=True)
        parts = _ZONE.match(time)
        day, zone = parts.groups() if parts else ("", None)
        end = datetime.strptime(day, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        return _Stamp(end=end, length_s=int(interval), utc=zone == "UTC")
    except (ValueError, OverflowError) as error:
        problem = f"{time!r} with {interval!r} is not a time with its interval"
        raise CaptureError(raw.path, problem, where=where) from error
