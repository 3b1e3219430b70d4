"""Read the text that iperf 2.0.x and 2.1.x prints, also enhanced (``-e``).

What the values are (iperf's source; checked against drop counters of captured runs).
Rates are payload, bits with prefixes of 10^3, Bytes with 2^10 (``-f k`` prints KBytes
of 1024 beside Kbits of 1000). ``-b 20M`` on the command line is 20 x 2^20 bit/s.

``throughput``
    Whole run. TCP: bytes over the time until the last stream ended, of the streams'
    own final rows; the ``[SUM]`` row divides by a shorter time and is not used. A TCP
    client counts what it wrote, up to the end of the connection, which says so in a
    note. UDP: what the receiver counted: the server's rows, or the client's
    ``Server Report``; several streams are added. With label ``stream``: one stream.
    Intervals: where the writer of the file receives.
``send_rate``
    UDP client's own rows. Intervals: where the writer of the file sends.
``loss``, ``jitter``
    UDP, the receiver's final rows; the jitter is the mean over the streams.
``retransmits``
    Column ``Rtry`` of the final rows of ``-e``.
``rtt_mean``
    ``--bounceback`` alone: the mean of its round trips, whole run and intervals.
``fairness``
    Jain's index over the streams' throughput.
``flow_share_min``, ``starved_flows``
    Smallest stream over the mean of them; part of them below a tenth of that mean.

Label ``direction`` (seen from the client) where a file has both: the row of a
connection to the server's port is ``forward``, one from it and one with ``*`` is
``reverse``. Nothing is omitted. A UDP client prints a result also where no server was:
its throughput is absent.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from patchstudy.loaders.documents import together
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, bit, byte, last_digit
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "bytes and times of the last row of every stream; UDP: of the server's "
        'rows or of "Server Report"; an interval: its row'
    ),
    "send_rate": "the UDP client's own last rows; an interval: its row",
    "loss": "the receiver's last rows, column Lost/Total Datagrams",
    "jitter": "the receiver's last rows, column Jitter, mean of the streams",
    "retransmits": "column Rtry of the last rows (-e)",
    "rtt_mean": "the rows of --bounceback",
    "fairness": "Jain's index of the streams' throughput",
    "flow_share_min": "the smallest of the same over their mean",
    "starved_flows": "part of the same below a tenth of their mean",
}
_ROW: Final = re.compile(
    r"\[\s*(?P<id>\*?\d{1,9}|SUM)(?:-\d{1,9})?\]\s+"
    r"(?P<start>\d{1,9}\.\d+)\s*-\s*(?P<end>\d{1,9}\.\d+) sec\s+"
    r"(?P<size>\d{1,12}(?:\.\d+)?)\s+(?P<size_unit>[KMGT]?)Bytes\s+"
    r"(?P<rate>\d{1,12}(?:\.\d+)?)\s+(?P<rate_unit>[KMGT]?)(?P<kind>bits|Bytes)/sec"
    r"(?P<rest>.*)$"
)
_CLIENT: Final = re.compile(r"\bClient connecting to \S+, (TCP|UDP) port (\d{1,5})\b")
_SERVER: Final = re.compile(r"\bServer listening on (TCP|UDP) port (\d{1,5})\b")
_CONNECTED: Final = re.compile(
    r"\[\s*(\*?\d{1,9})\] local (\S+) port (\d{1,5}) connected with (\S+) port"
    r" (\d{1,5})\b(.*)$"
)
_REPORT: Final = re.compile(r"\[\s*(\d{1,9})\] Server Report:")
_FAILED: Final = re.compile(
    r"^(?:\[\s*\*?\d+\]\s*)?(?:(?:tcp|udp) )?"
    r"(?:connect|bind|listen|accept|writen?|shutdown)\w*(?: \w+)? failed: .*"
    r"|^(?:iperf: )?error: .*|^connect failed\b.*"
)
_REFUSED: Final = re.compile(r"^(?:(?:tcp|udp) )?connect failed: ")
_LOSS: Final = re.compile(
    r"^\s+(-?\d{1,9}\.?\d*)\s+ms\s+(-?\d{1,18})/\s*(-?\d{1,18})\s+\((-?[\w.+-]+)%\)"
)
_RETRIES: Final = re.compile(r"^\s+\d+/\d+\s+(\d{1,12})(?=\s|$)")
#: What a row of ``-e`` says behind its rate: writes and errors, or reads by size; of
#: UDP the reader's jitter.
_WRITTEN: Final = re.compile(r"^\s+\d+/\d+(?:\s|$)")
_READ: Final = re.compile(r"^\s+(?:\d+=\d+:|-?\d{1,9}\.?\d*\s+ms\s)")
_BOUNCE: Final = re.compile(
    r"^\s+(\d+)=(\d{1,9}\.?\d*)/(\d{1,9}\.?\d*)/(\d{1,9}\.?\d*)/(\d{1,9}\.?\d*)"
    r" (ms|us)(?=\s|$)"
)
_TARGET: Final = re.compile(
    r"^Sending (\d{1,6}) byte datagrams, IPG target: (\d{1,9}\.?\d*) us"
)
_DATE: Final = re.compile(r" on (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.\d+)? \((\w+)\)")
_CSV: Final = re.compile(r"^[\d.:+-]{14,30},[\w.:%]*,\d{1,5},")
_SUM_OFF: Final = 0.02
#: The one "stream" of a file that has sums only.
_ALL: Final = "all"


def sniff(raw: RawFile) -> bool:
    """Say whether a line of the text is one that only iperf 2 prints."""
    lines = plain_head(raw)
    if any(_CSV.match(line) for line in lines):
        return False  # the rows of -y C, with heads between them
    if lines and all(_REFUSED.match(line) for line in lines):
        return True
    heads = (_CLIENT, _SERVER, _CONNECTED)
    if any(head.search(line) for line in lines for head in heads):
        return True
    return any(_bare(line) for line in lines)


def _bare(line: str) -> bool:
    """Say whether a row has iperf 2's one or four decimals of a second."""
    row = _ROW.search(line)
    return row is not None and len(row["end"].partition(".")[2]) in {1, 4}


def load(raw: RawFile) -> Capture:
    """Read the text of one test or of several in a row."""
    return together([_capture(raw, test) for test in _tests(raw)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One line of numbers in base units; ``report`` is True for a Server Report."""

    stream: str
    span: tuple[float, float]
    size: float
    rate: float
    resolution: float
    rest: str
    report: bool

    @property
    def datagrams(self) -> tuple[float, int, int] | None:
        """Jitter in ms, lost and all datagrams, as printed."""
        found = _LOSS.match(self.rest)
        return (float(found[1]), int(found[2]), int(found[3])) if found else None


@dataclass(slots=True)
class _Test:
    """One test: its heads, its connections and its rows."""

    clients: list[tuple[str, str]] = field(default_factory=list)
    servers: list[tuple[str, str]] = field(default_factory=list)
    #: id -> local port, remote port, rest of the line
    connected: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    rows: list[_Row] = field(default_factory=list)
    error: Fault | None = None
    lines: list[str] = field(default_factory=list)
    reported: str | None = None
    connected_back: bool = False
    added_up: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def protocol(self) -> str | None:
        heads = self.clients or self.servers
        if heads:
            return heads[0][0]
        return "UDP" if any(row.datagrams for row in self.rows) else None

    @property
    def server(self) -> bool:
        """Say whether the server wrote it; it also connects back for -d and -r."""
        return bool(self.servers) and (not self.clients or self.connected_back)

    def reverse(self, stream: str) -> bool:
        """Say whether data of this connection go from the server to the client."""
        if stream.startswith("*"):
            return True
        local, remote, rest = self.connected.get(stream, ("", "", ""))
        if "(reverse)" in rest:
            return True
        if not (self.clients and self.servers):
            return False
        port = self.clients[0][1]
        accepted = local == port and remote != port
        return accepted != self.connected_back

    def sends(self, stream: str) -> bool:
        """Say whether the writer of the file sends on this connection."""
        return self.reverse(stream) == self.server


def _tests(raw: RawFile) -> list[_Test]:
    """Return the tests of the file in their order."""
    tests = [_Test()]
    for number, line in plain(raw.text):
        if _begins(tests[-1], line):
            same_server = tests[-1].servers if _CONNECTED.search(line) else []
            tests.append(_Test(servers=list(same_server)))
        _take(tests[-1], number, line)
    for one in tests:
        _part(one)
        if all(row.stream == "SUM" for row in one.rows):
            one.rows = [replace(row, stream=_ALL) for row in one.rows]
    return [one for one in tests if one.rows or one.error] or tests[:1]


def _part(test: _Test) -> None:
    """Tell the directions of a full-duplex connection apart, where one id has both.

    2.0.14 prints both under one id: with ``-e`` what was written and what was read,
    else their sum, which is of no direction.
    """
    both = {one for one, told in test.connected.items() if "(full-duplex)" in told[2]}
    if any(row.stream.startswith("*") for row in test.rows):
        return
    rows = []
    for row in test.rows:
        written, read = _WRITTEN.match(row.rest), _READ.match(row.rest)
        if row.stream not in both:
            rows.append(row)
        elif written or read:
            back = bool(read) != test.server
            rows.append(replace(row, stream=f"*{row.stream}") if back else row)
        else:
            test.added_up = True
    test.rows = rows


def _begins(test: _Test, line: str) -> bool:
    """Say whether this line belongs to a test after the present one."""
    if test.error or test.rows:
        head = _SERVER.search(line) or (not test.server and _CLIENT.search(line))
        if head:
            return True
    connection = _CONNECTED.search(line)
    if connection is None or not test.server or not test.rows or test.clients:
        return False
    finals = {row.stream.lstrip("*") for row in _finals(test)}
    return finals >= {one.lstrip("*") for one in test.connected}


def _take(test: _Test, number: int, line: str) -> None:
    """Add what the line tells to its test."""
    test.lines.append(line)
    if _CLIENT.search(line) and test.connected:
        test.connected_back = True
    for pattern, heads in ((_CLIENT, test.clients), (_SERVER, test.servers)):
        if head := pattern.search(line):
            heads.append((head[1], head[2]))
    if connection := _CONNECTED.search(line):
        stream, _here, local, _there, remote, rest = connection.groups()
        test.connected[stream] = (local, remote, rest)
    elif report := _REPORT.search(line):
        test.reported = report[1]
    elif row := _ROW.search(line):
        test.rows.append(_row(row, report=test.reported == row["id"]))
        test.reported = None
    elif test.error is None and _FAILED.match(line):
        test.error = Fault(text=line.strip(), where=str(number))


def _row(match: re.Match[str], *, report: bool) -> _Row:
    unit = match["rate_unit"]
    scale = byte(8.0, unit) if match["kind"] == "Bytes" else bit(1.0, unit)
    return _Row(
        stream=match["id"],
        span=(float(match["start"]), float(match["end"])),
        size=byte(float(match["size"]), match["size_unit"]),
        rate=float(match["rate"]) * scale,
        resolution=last_digit(match["rate"]) * scale,
        rest=match["rest"],
        report=report,
    )


def _finals(test: _Test) -> list[_Row]:
    """Return the final row of each connection: from 0 to its end, printed last."""
    rows: dict[str, list[_Row]] = {}
    for row in test.rows:
        if row.stream != "SUM" and not row.report:
            rows.setdefault(row.stream, []).append(row)
    return [
        own[-1]
        for own in rows.values()
        if own[-1].span[0] == 0 and own[-1].span[1] >= max(one.span[1] for one in own)
    ]


def _capture(raw: RawFile, test: _Test) -> Capture:
    reading = Reading()
    reading.caveats.extend(line_end(raw) if test.rows else ())
    fault = test.error or (None if test.rows else _nothing(test))
    for flow in _flows(test):
        _intervals(test, flow, reading)
        if fault is None:
            _whole_run(test, flow, reading)
    if fault is None and test.rows[0].stream == _ALL:
        reading.doubt(
            "sum-only",
            "the file has [SUM] rows only, which divide by less time than the streams"
            " took: the rate may be some per cent too high",
            "keep the rows of the streams",
        )
    if "^C" in test.text or "Interrupt again to force quit" in test.text:
        reading.doubt("interrupted", "the run was interrupted; its end looks complete")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="iperf2",
        started_at=_started_at(test, reading),
        workload=_workload(test),
        measurements=tuple(reading.measurements),
        facts=_facts(test),
        caveats=tuple(reading.caveats),
        error=fault,
    )


def _nothing(test: _Test) -> Fault:
    if test.added_up:
        text = "both directions are added up under one id; run --full-duplex with -e"
        return Fault(text=text)
    return Fault(text="no row of numbers; did the run fail, or was it cut short?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flow:
    """The rows of one direction."""

    reverse: bool
    sending: bool
    labels: dict[str, str]
    rows: list[_Row]
    finals: list[_Row]
    reports: list[_Row]


def _flows(test: _Test) -> Iterator[_Flow]:
    """Yield each direction that the file has rows of."""
    streams = {row.stream for row in test.rows if row.stream != "SUM"}
    directions = sorted({test.reverse(stream) for stream in streams})
    for reverse in directions:
        own = {stream for stream in streams if test.reverse(stream) == reverse}
        both = len(directions) > 1
        labels = {"direction": "reverse" if reverse else "forward"} if both else {}
        rows = [row for row in test.rows if row.stream in own]
        if not both:
            rows = test.rows
        yield _Flow(
            reverse=reverse,
            sending=reverse == test.server,
            labels=labels,
            rows=[row for row in rows if not row.report],
            finals=[row for row in _finals(test) if row.stream in own],
            reports=[row for row in rows if row.report],
        )


def _intervals(test: _Test, flow: _Flow, reading: Reading) -> None:
    """Add one value per interval over all streams."""
    metric = "send_rate" if flow.sending else "throughput"
    for rows in _groups(flow):
        span = rows[0].span
        bounce = _BOUNCE.match(rows[0].rest)
        if bounce:
            if int(bounce[1]):  # of none there is no mean, and iperf prints 0
                mean = _milliseconds(bounce, 2)
                reading.interval("rtt_mean", mean, span, flow.labels)
            continue
        resolution = max(row.resolution for row in rows)
        rate = sum(row.rate for row in rows)
        reading.interval(metric, rate, span, flow.labels, resolution=resolution)


def _groups(flow: _Flow) -> list[list[_Row]]:
    """Return the rows of each interval: the printed sum, or one row a stream."""
    rows = [row for row in flow.rows if not _final(row, flow)]
    streams = {row.stream for row in rows if row.stream != "SUM"}
    if len(streams) > 1 and any(row.stream == "SUM" for row in rows):
        return [[row] for row in rows if row.stream == "SUM"]
    rows = [row for row in rows if row.stream != "SUM"]
    spans = dict.fromkeys(row.span for row in rows)
    groups = [[row for row in rows if row.span == span] for span in spans]
    return [group for group in groups if len(group) == len(streams)]


def _final(row: _Row, flow: _Flow) -> bool:
    """Say whether a row is final, or the sum that stands after the final rows."""
    if any(row is one for one in flow.finals):
        return True
    last = [one for one in flow.rows if one.stream == "SUM"][-1:]
    return bool(flow.finals) and any(row is one and one.span[0] == 0 for one in last)


def _whole_run(test: _Test, flow: _Flow, reading: Reading) -> None:
    """Add the values of the final rows of one direction."""
    if not flow.finals or len(flow.finals) < len(
        {r.stream for r in flow.rows} - {"SUM"}
    ):
        reading.doubt(
            "cut-short",
            "the final row of a stream is missing, so only the intervals are known",
            "Keep the whole output of the tool.",
        )
        return
    bounce = _BOUNCE.match(flow.finals[0].rest)
    if bounce and not int(bounce[1]):
        reading.doubt("rtt-absent", "no message came back; its round trip is absent")
        return
    if bounce:
        reading.whole("rtt_mean", _milliseconds(bounce, 2), flow.labels)
        return
    if test.protocol == "UDP":
        _udp(test, flow, reading)
    else:
        _tcp(flow, reading)


def _tcp(flow: _Flow, reading: Reading) -> None:
    rate = _over_the_longest(flow.finals)
    last = max(row.resolution for row in flow.finals)
    reading.rate("throughput", rate, flow.labels, resolution=last)
    if flow.sending:
        reading.note(
            "counted-by-sender",
            "a TCP client counts what it wrote until the connection ended",
        )
    reading.streams([row.rate for row in flow.finals], flow.labels)
    _compare_with_sum(flow, rate, reading)
    retries = [_RETRIES.match(row.rest) for row in flow.finals]
    counts = [float(one[1]) for one in retries if one]
    if counts and len(counts) == len(retries):
        reading.whole("retransmits", sum(counts), flow.labels)
    elif flow.sending:
        reading.note("retransmits-absent", "the file does not count retransmits")


def _over_the_longest(rows: list[_Row]) -> float:
    """Return the rate over all streams in the time of the longest; one's as printed."""
    if len(rows) == 1:
        return rows[0].rate
    return sum(row.size for row in rows) * 8 / max(row.span[1] for row in rows)


def _compare_with_sum(flow: _Flow, rate: float, reading: Reading) -> None:
    """Tell where the printed sum contradicts the streams."""
    sums = [row for row in flow.rows if row.stream == "SUM" and row.span[0] == 0]
    if sums and abs(sums[-1].rate - rate) > _SUM_OFF * rate:
        reading.note(
            "sum-corrected",
            f"the [SUM] row says {sums[-1].rate:.4g} bit/s over"
            f" {sums[-1].span[1]:.4g} s; the streams' own rows give {rate:.4g} bit/s",
        )


def _udp(test: _Test, flow: _Flow, reading: Reading) -> None:
    """Add UDP values: sent by the sender's rows, received by the receiver's."""
    received = flow.finals
    if flow.sending:
        last = max(row.resolution for row in flow.finals)
        rate = _over_the_longest(flow.finals)
        reading.rate("send_rate", rate, flow.labels, resolution=last)
        received = flow.reports
    if len(received) < len(flow.finals) or "did not receive ack" in test.text:
        reading.doubt(
            "receiver-unknown",
            "no report of the server: the client prints its result also where nothing"
            " arrived; throughput and loss are absent",
            "keep the output of the server",
        )
        return
    _received(received, flow, reading)


def _received(rows: list[_Row], flow: _Flow, reading: Reading) -> None:
    """Add what the receiver counted, over all streams."""
    last = max(row.resolution for row in rows)
    rates = [row.rate for row in rows]
    reading.rate("throughput", sum(rates), flow.labels, resolution=last)
    reading.streams(rates, flow.labels)
    if not flow.sending:
        _compare_with_sum(flow, sum(rates), reading)
    counts = [row.datagrams for row in rows]
    known = [one for one in counts if one]
    if not known or len(known) < len(counts):
        reading.note("loss-absent", "the receiver's rows have no lost datagrams")
        return
    lost, packets = (sum(one[at] for one in known) for at in (1, 2))
    reading.loss(lost, packets, flow.labels)
    jitter = sum(one[0] for one in known) / len(known) * 1e-3
    if 0 <= jitter < max(row.span[1] for row in rows):
        reading.whole("jitter", jitter, flow.labels, resolution=1e-6)
    else:
        reading.note("jitter-absent", f"jitter {jitter:.4g} s is none; it is absent")


def _milliseconds(match: re.Match[str], at: int) -> float:
    return float(match[at]) * (1e-3 if match[6] == "ms" else 1e-6)


def _workload(test: _Test) -> dict[str, str | int | float | None]:
    streams = {row.stream for row in test.rows} - {"SUM", _ALL}
    target = next((m for line in test.lines if (m := _TARGET.match(line))), None)
    per_stream = None
    if target and float(target[2]):
        per_stream = int(target[1]) * 8 / float(target[2]) * 1e6
    finals = _finals(test)
    return {
        "protocol": test.protocol,
        "direction": _direction(test),
        "streams": len(streams) or None,
        "duration_s": max((row.span[1] for row in finals), default=None),
        "target_bitrate": per_stream,
        "blksize": int(target[1]) if target else None,
    }


def _direction(test: _Test) -> str | None:
    if not (test.clients or test.servers):
        return None
    streams = {row.stream for row in test.rows if row.stream != "SUM"}
    directions = {test.reverse(stream) for stream in streams}
    if len(directions) == 2:
        return "bidir"
    return "reverse" if True in directions else "forward"


def _facts(test: _Test) -> dict[str, object]:
    facts: dict[str, object] = {}
    if test.clients or test.servers:
        facts["seen_from"] = "server" if test.server else "client"
    window = re.search(
        r"^(?:TCP window|UDP buffer) size:\s*(.*\S)", test.text, re.MULTILINE
    )
    if window:
        facts["window"] = window[1]
    peer = re.search(r"\(peer (\d[\w.-]*)\)", test.text)
    if peer:
        facts["peer_version"] = peer[1]
    finals = _finals(test)
    bounce = _BOUNCE.match(finals[-1].rest) if finals else None
    if bounce:
        facts["bounces"] = int(bounce[1])
    if bounce and facts["bounces"]:
        facts["rtt_min_s"], facts["rtt_max_s"], facts["rtt_stdev_s"] = (
            _milliseconds(bounce, at) for at in (3, 4, 5)
        )
    return facts


def _started_at(test: _Test, reading: Reading) -> str | None:
    date = _DATE.search(test.text)
    if date is None:
        return None
    if date[3] not in {"UTC", "GMT"}:
        reading.note("clock-unknown", f"the start is in the local zone {date[3]}")
        return None
    return f"{date[1]}T{date[2]}Z"
