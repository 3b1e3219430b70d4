"""Read what ethr prints on its client, and its log of JSON lines (``-o``).

What the values are (ethr's source; checked by eye against a shaped link). Figures such
as ``427.1M`` have prefixes of 10^3, also as strings in the JSON. ethr prints no
result of the whole run: each is the mean over its intervals, each of one second.

``throughput``
    TCP: payload as the client counted it, the ``SUM`` row where there are several
    connections. The client sends, unless ``-r``, which leaves no mark; a sender counts
    what it put into its socket, so the first seconds are too high.
``send_rate``
    UDP: what the client sent. What arrived is printed by the server only.
``transaction_rate``
    ``-t c``: connections per second (1K stands for 950 to 1049).
``rtt_mean``, ``rtt_p50``, ``rtt_p99``
    ``-t l``: of each interval; of the whole run only the mean.

``facts`` hold the version; the log's own time (UTC) is the start.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, bit, last_digit
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "the mean of the intervals; an interval: the row SUM (of one connection its"
        " row), column Bits/s; log: the line TestResult, BitsPerSecond"
    ),
    "send_rate": "UDP: the same column or field, of the client, which sends",
    "transaction_rate": (
        "the mean of the intervals; an interval: column Conn/s; log:"
        " ConnectionsPerSecond"
    ),
    "rtt_mean": ("the mean of the intervals; an interval: column Avg of the latencies"),
    "rtt_p50": "an interval: column 50% of the latencies",
    "rtt_p99": "an interval: column 99% of the latencies",
}
_BANNER: Final = re.compile(
    r"^Ethr: Comprehensive Network Performance|^\[ *ID *\] +Pro"
)
_LOG: Final = re.compile(
    r'^\{"Time":"[^"]*","Title":"[^"]*","Type":"(?:INFO|ERROR|TestResult|\w+)"'
)
_FIGURE: Final = r"(\d{1,12}(?:\.\d+)?)([KMGT]?)"
_RATE: Final = re.compile(
    rf"^\[ *(\d{{1,9}}|SUM) *\] +(TCP|UDP|ICMP) +(\d{{3,9}})-(\d{{3,9}}) sec +{_FIGURE}"
    r"(?=\s|$)"
)
_PLAIN: Final = re.compile(
    rf"^ *(TCP|UDP|ICMP) +(\d{{3,9}})-(\d{{3,9}}) sec +{_FIGURE}(?: +\S+)? *$"
)
_LATENCY: Final = re.compile(r"^ *((?:\d{1,9}(?:\.\d+)?(?:ns|us|µs|ms|s) *){9})$")
_TIME: Final = re.compile(r"(\d{1,9}(?:\.\d+)?)(ns|us|µs|ms|s)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_ERROR: Final = re.compile(
    r"^(?:Error|Failed|Unable to|Ethr done, connection terminated"
    r"|Ethr done, received interrupt)"
)


def sniff(raw: RawFile) -> bool:
    """Say whether a line is ethr's banner, table head or log."""
    lines = plain_head(raw)
    return any(_BANNER.match(line) or _LOG.match(line) for line in lines)


def load(raw: RawFile) -> Capture:
    """Read one run of the client, as text or as log."""
    run = _run(raw)
    reading = Reading()
    fault = _fault(run)
    if run.log:
        reading.caveats.extend(line_end(raw))
    _rates(run, reading, whole=fault is None)
    _connections(run, reading, whole=fault is None)
    _latencies(run, reading, whole=fault is None)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ethr",
        tool_version=_version(run),
        started_at=run.started_at,
        workload=_workload(run),
        measurements=tuple(reading.measurements),
        facts={},
        caveats=tuple(reading.caveats),
        error=fault,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A rate of one connection, or of all, over some seconds."""

    stream: str
    protocol: str
    span: tuple[float, float]
    rate: float
    resolution: float


@dataclass(slots=True)
class _Run:
    """What the lines tell."""

    lines: list[tuple[int, str]]
    log: bool
    started_at: str | None
    rows: list[_Row]
    connections: list[_Row]
    latencies: list[list[float]]
    column: str = ""

    @property
    def done(self) -> bool:
        return any("Ethr done, duration" in line for _number, line in self.lines)


def _run(raw: RawFile) -> _Run:
    started_at = None
    lines: list[tuple[int, str]] = []
    log = False
    for number, line in plain(raw.text):
        if _LOG.match(line):
            log = True
            record = _record(line)
            started_at = started_at or _utc(record.get("Time"))
            line = str(record.get("Message", ""))  # noqa: PLW2901
        lines.append((number, line))
    run = _Run(
        lines=lines,
        log=log,
        started_at=started_at,
        rows=[],
        connections=[],
        latencies=[],
    )
    for _number, line in lines:
        _take(run, line)
    return run


def _record(line: str) -> dict[str, object]:
    """Return a line of the log; a cut one is empty."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _utc(time: object) -> str | None:
    told = isinstance(time, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}Z", time)
    return str(time) if told else None


def _take(run: _Run, line: str) -> None:
    if rate := _RATE.match(line):
        run.rows.append(_row(rate[1], *rate.groups()[1:]))
    elif re.match(r"^ *Protocol +Interval +", line):
        run.column = line.split()[2]
    elif (plain_row := _PLAIN.match(line)) and run.column == "Conn/s":
        run.connections.append(_row("SUM", *plain_row.groups()))
    elif plain_row and run.column == "Bits/s":
        run.rows.append(_row("1", *plain_row.groups()))
    elif latency := _LATENCY.match(line):
        times = [float(v) * _SECONDS[unit] for v, unit in _TIME.findall(latency[1])]
        run.latencies.append(times)


def _row(stream: str, *fields: str) -> _Row:
    protocol, start, end, figure, prefix = fields
    return _Row(
        stream=stream,
        protocol=protocol,
        span=(float(start), float(end)),
        rate=bit(float(figure), prefix),
        resolution=bit(last_digit(figure), prefix),
    )


def _fault(run: _Run) -> Fault | None:
    for number, line in run.lines:
        if _ERROR.match(line):
            return Fault(text=line.strip(), where=str(number))
    if not (run.rows or run.connections or run.latencies):
        return Fault(text="no interval; did the run fail, or was it cut short?")
    return None


def _rates(run: _Run, reading: Reading, *, whole: bool) -> None:
    """Add the bits per second of the client."""
    several = len({row.stream for row in run.rows} - {"SUM"}) > 1
    rows = [row for row in run.rows if (row.stream == "SUM") == several]
    if not rows:
        return
    udp = rows[0].protocol != "TCP"
    _means("send_rate" if udp else "throughput", rows, reading, whole=whole)
    if udp:
        reading.doubt(
            "receiver-unknown",
            "the client of a UDP test tells what it sent, not what arrived",
            "keep the output of the server",
        )
    else:
        reading.doubt(
            "counted-by-client",
            "ethr's client counts what it put into its socket (with -r what it got, but"
            " the output does not say which): the first seconds may be too high",
            "keep the output of the receiver too",
        )
    _cut(run, reading, whole=whole)


def _means(metric: str, rows: list[_Row], reading: Reading, *, whole: bool) -> None:
    """Add the intervals and their mean."""
    for row in rows:
        reading.interval(metric, row.rate, row.span, resolution=row.resolution)
    seconds = sum(row.span[1] - row.span[0] for row in rows)
    if whole and seconds > 0:
        total = sum(row.rate * (row.span[1] - row.span[0]) for row in rows)
        last = max(row.resolution for row in rows)
        reading.rate(metric, total / seconds, resolution=last)


def _cut(run: _Run, reading: Reading, *, whole: bool) -> None:
    if whole and not run.done and not run.log:
        reading.doubt("cut-short", "ethr's last line is missing; was the file cut?")


def _connections(run: _Run, reading: Reading, *, whole: bool) -> None:
    if run.connections:
        _means("transaction_rate", run.connections, reading, whole=whole)
        _cut(run, reading, whole=whole)


def _latencies(run: _Run, reading: Reading, *, whole: bool) -> None:
    """Add the rows of the latency table: Avg, Min, 50%, 90%, 95%, 99%, ..., Max."""
    for number, times in enumerate(run.latencies):
        for metric, at in (("rtt_mean", 0), ("rtt_p50", 2), ("rtt_p99", 5)):
            reading.interval(metric, times[at], (float(number), number + 1.0))
    if run.latencies and whole:
        mean = sum(times[0] for times in run.latencies) / len(run.latencies)
        reading.whole("rtt_mean", mean)
        reading.note(
            "quantiles-absent",
            "quantiles are printed of each interval; those of the whole run are absent",
        )
        _cut(run, reading, whole=whole)


def _version(run: _Run) -> str | None:
    for _number, line in run.lines:
        version = re.search(r"\(Version: ([^)]+)\)", line)
        if version:
            return None if version[1] == "UNKNOWN" else version[1]
    return None


def _workload(run: _Run) -> dict[str, str | int | float | None]:
    rows = run.rows or run.connections
    streams = {row.stream for row in run.rows} - {"SUM"}
    if run.latencies:
        kind = "latency"
    else:
        kind = "connections" if run.connections else "bandwidth"
    return {
        "protocol": rows[0].protocol if rows else None,
        "direction": None,  # -r leaves no mark
        "test": kind if rows or run.latencies else None,
        "streams": len(streams) or None,
        "duration_s": rows[-1].span[1] if rows else float(len(run.latencies)) or None,
    }
