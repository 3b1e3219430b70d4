"""Read the rows that iperf 2.0.x and 2.1.x print with ``-y C``.

Columns: time, source address and port, destination address and port, id, interval,
bytes, bit/s; of UDP also jitter (ms), lost, all datagrams, loss (%), out of order.

What the values are (iperf's source; checked against a drop counter): bit/s of payload.

``throughput``
    Whole run: sum of the final rows (from 0 to the end) of all connections; there is no
    row for their sum. Rows of nine columns are TCP, as its sender or its receiver
    counted it (the file does not tell), rows of fourteen are a UDP receiver. With
    label ``stream``: one connection. Intervals: the same of each interval.
``send_rate``
    A UDP client's own rows: the last says 0 of -1 datagrams lost, those before it say
    that of its connection too; or they have nine columns, and a server's row of the
    same id stands beside them.
``loss``, ``jitter``
    UDP, of the receiver's final rows.

Version 2.1.9 and later, with ``-e``: more columns behind these, of 2.2 also a line of
names before the rows and start and end of the interval as two columns. A UDP client's
row may end in the packets a second there; its jitter may be -1 or nan. The other
columns are not read.

Where connections come from several addresses (``-d``, ``--full-duplex``), or of one
address from the port to which the others go, nothing is added up: each value has the
label ``source``. The time has no zone, so the start is unknown.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "bit/s of the last rows, from 0 to the end, of all connections; UDP: of the "
        "receiver's rows; an interval: its rows"
    ),
    "send_rate": "bit/s of a UDP client's own rows",
    "loss": "columns lost and datagrams of the receiver's last rows",
    "jitter": "column jitter of the same, mean of the connections",
    "fairness": "Jain's index of the connections' throughput",
    "flow_share_min": "the smallest of the same over their mean",
    "starved_flows": "part of the same below a tenth of their mean",
}
_ROW: Final = re.compile(
    r"^(?P<time>\d{14}|\d{8}\d{6}\.\d+|[+-]\d{4}:\d{14}(?:\.\d+)?),"
    r"(?P<source>[0-9A-Fa-f.:%\w]*),(?P<port>\d{1,5}),"
    r"(?P<target>[0-9A-Fa-f.:%\w]*),(?P<to>\d{1,5}),(?P<id>-?\d{1,9}),"
    r"(?P<start>\d{1,9}\.\d+)[-,](?P<end>\d{1,9}\.\d+),"
    r"(?P<bytes>\d{1,18}),(?P<rate>\d{1,18})"
    r"(?:,(?P<jitter>-?\d{1,9}\.\d+|-?nan|-?\d{1,9}(?=(?:,[^,]+){4}$)),"
    r"(?P<lost>-?\d{1,18}),(?P<total>-?\d{1,18}),"
    r"(?P<percent>-?[\w.+-]+),(?P<late>-?\d{1,18})(?:,-?[\d.]{1,20}){0,8}"
    r"|,-?\d{1,18},-?\d{1,18},(?P<pps>\d{1,18}\.\d+)"
    r"|(?:,-?[\d.]{1,20}){4,24})?$"
)


def sniff(raw: RawFile) -> bool:
    """Say whether a line has the columns of ``-y C``."""
    return any(_ROW.match(line) for line in plain_head(raw))


def load(raw: RawFile) -> Capture:
    """Read the rows of one test.

    Raises
    ------
    CaptureError
        If a line is neither such a row nor a message of iperf's.
    """
    rows = _rows(raw)
    reading = Reading()
    reading.caveats.extend(line_end(raw))
    sources = dict.fromkeys(row.source for row in rows)
    for source in sources:
        labels = {"source": source} if len(sources) > 1 else {}
        _source([row for row in rows if row.source == source], labels, reading)
    if "Server Report:" in raw.text:
        reading.note(
            "report-unread",
            "the server's report below the rows is text (iperf 2.0) and is not read",
        )
    if any(row.time.startswith("1970") for row in rows):
        reading.note("clock-unknown", "the time in the rows is 1970: iperf set none")
    else:
        reading.note("clock-unknown", "the time in the rows has no zone")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="iperf2",
        workload=_workload(rows),
        measurements=tuple(reading.measurements),
        caveats=tuple(reading.caveats),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One row; ``lost`` and ``total`` are None for nine columns, jitter in s."""

    time: str
    source: str
    port: str
    target: tuple[str, str]
    stream: tuple[str, str, str]
    span: tuple[float, float]
    rate: float
    jitter: float
    lost: int | None
    total: int | None

    @property
    def sent(self) -> bool:
        """Say whether it is a UDP client's last row."""
        return self.total is not None and self.total < 0


def _rows(raw: RawFile) -> list[_Row]:
    """Return the rows of single connections; the sums (id -1) where only they are."""
    singles: list[_Row] = []
    sums: list[_Row] = []
    for number, line in plain(raw.text):
        match = _ROW.match(line)
        if match is None:
            _refuse_unless_known(raw, number, line)
        elif match["id"].startswith("-"):
            sums.append(_row(match))
        else:
            singles.append(_row(match))
    return _by_direction(singles or sums)


def _by_direction(rows: list[_Row]) -> list[_Row]:
    """Return the rows, those of a loopback told apart by their ports.

    Where both directions have one address (full duplex) the rows of one come from the
    port to which those of the other go.
    """
    if len({row.source for row in rows}) > 1:
        return rows
    targets = {row.target for row in rows}
    back = [(row.source, row.port) in targets for row in rows]
    return [
        replace(row, source=f"{row.source} port {row.port}") if one else row
        for row, one in zip(rows, back, strict=True)
    ]


def _refuse_unless_known(raw: RawFile, number: int, line: str) -> None:
    if re.match(r"^[\d.:+-]+,", line):
        raise CaptureError(
            raw.path,
            f"not the columns of iperf -y C: {line!r}; was it cut short?",
            where=str(number),
        )


def _row(match: re.Match[str]) -> _Row:
    total = "-1" if match["pps"] else match["total"]
    return _Row(
        time=match["time"],
        source=match["source"],
        port=match["port"],
        target=(match["target"], match["to"]),
        stream=(match["id"], match["source"], match["target"]),
        span=(float(match["start"]), float(match["end"])),
        rate=float(match["rate"]),
        jitter=float(match["jitter"] or 0) * 1e-3,
        lost=None if total is None else int(match["lost"] or 0),
        total=None if total is None else int(total),
    )


def _source(rows: list[_Row], labels: dict[str, str], reading: Reading) -> None:
    """Add the values of the connections from one address."""
    mine = _own(rows)
    sent = [row for row, own in zip(rows, mine, strict=True) if own]
    received = [row for row, own in zip(rows, mine, strict=True) if not own]
    datagrams = [row for row in received if row.total is not None]
    if datagrams:
        sent += [row for row in received if row.total is None]
        received = datagrams
    _intervals("throughput", received, labels, reading)
    _intervals("send_rate", sent, labels, reading)
    _whole("send_rate", sent, labels, reading)
    _whole("throughput", received, labels, reading)
    if datagrams:
        _loss(_finals(datagrams), labels, reading)
    elif sent:
        reading.doubt(
            "receiver-unknown",
            "only the client's row: it does not tell what arrived and says 0 lost",
            "keep the output of the server",
        )


def _own(rows: list[_Row]) -> list[bool]:
    """Say of each row whether it is a UDP client's own.

    Those up to the client's last row are; where that is missing, those of a connection
    that has no last row at all and a jitter of exactly 0 in all others.
    """
    ends = {row.stream: at for at, row in enumerate(rows) if row.sent}
    whole = {row.stream for row in _finals(rows)} | ends.keys()
    calm = {row.stream for row in rows if row.total is not None} - whole
    calm -= {row.stream for row in rows if row.jitter or row.lost}
    return [
        row.stream in calm or at <= ends.get(row.stream, -1)
        for at, row in enumerate(rows)
    ]


def _finals(rows: list[_Row]) -> list[_Row]:
    """Return the last row of each connection that spans all of its rows."""
    own: dict[tuple[str, str, str], list[_Row]] = {}
    for row in rows:
        own.setdefault(row.stream, []).append(row)
    return [
        last
        for these in own.values()
        if (last := these[-1]).span[0] == 0
        and last.span[1] >= max(one.span[1] for one in these)
    ]


def _whole(
    metric: str, rows: list[_Row], labels: dict[str, str], reading: Reading
) -> None:
    """Add the sum of the final rows."""
    finals = _finals(rows)
    if not rows:
        return
    if len(finals) < len({row.stream for row in rows}):
        reading.doubt(
            "cut-short",
            "the final row of a connection is missing: only the intervals are known",
            "Keep the whole output of the tool.",
        )
        return
    rates = [row.rate for row in finals]
    reading.rate(metric, sum(rates), labels, resolution=1.0)
    if metric == "throughput":
        reading.streams(rates, labels)
    if len({row.span[1] for row in finals}) > 1:
        reading.note(
            "streams-end-apart",
            "the connections ended at different times; their rates are added",
        )


def _intervals(
    metric: str, rows: list[_Row], labels: dict[str, str], reading: Reading
) -> None:
    """Add each interval over all connections."""
    finals = _finals(rows)
    rest = [row for row in rows if not any(row is one for one in finals)]
    streams = {row.stream for row in rest}
    for span in dict.fromkeys(row.span for row in rest):
        group = [row.rate for row in rest if row.span == span]
        if len(group) == len(streams):
            reading.interval(metric, sum(group), span, labels, resolution=1.0)


def _loss(rows: list[_Row], labels: dict[str, str], reading: Reading) -> None:
    if not rows:
        return
    lost, total = (
        sum(one or 0 for one in counts)
        for counts in ([row.lost for row in rows], [row.total for row in rows])
    )
    reading.loss(lost, total, labels)
    jitter = sum(row.jitter for row in rows) / len(rows)
    if 0 <= jitter < max(row.span[1] for row in rows):
        reading.whole("jitter", jitter, labels, resolution=1e-6)


def _workload(rows: list[_Row]) -> dict[str, str | int | float | None]:
    udp = any(row.total is not None for row in rows)
    both = len({row.source for row in rows}) > 1
    return {
        "protocol": "UDP" if udp else "TCP",
        "direction": "bidir" if both else None,
        "streams": len({row.stream for row in rows}),
        "duration_s": max((row.span[1] for row in _finals(rows)), default=None),
    }
