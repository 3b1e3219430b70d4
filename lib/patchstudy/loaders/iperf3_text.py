"""Read the text that iperf3 3.0 to 3.22 prints, of a client or a server.

What the values are (iperf3's source; checked against the JSON and the drop counters of
captured runs). Rates are payload as printed, bits with prefixes of 10^3, Bytes (also of
``-f K``) with 2^10; the unit stands in every line and may change from line to line.

``throughput``
    Whole run: the summary line ``receiver``, of ``[SUM]`` where there are several
    streams, over the receiver's own time; with label ``stream`` of one stream.
    Intervals: where the writer of the file receives. Versions 3.0 and 3.1 print one
    UDP line for both sides (the sender's rate, the receiver's loss): there it is send
    rate x (1 - lost / packets), with a caveat.
``send_rate``
    Whole run: the summary line ``sender``. Intervals: where the writer sends.
``loss``, ``jitter``
    UDP, of the receiver's summary line. A receiver that got nothing prints no loss: it
    is 1. Where seconds were omitted and the count exceeds what is missing by the
    bytes, the bytes are used.
``retransmits``
    Of the sender's summary line; a wrapped counter (4294967294) is absent.
``fairness``
    Jain's index over the received rates of the streams.
``flow_share_min``, ``starved_flows``
    Smallest stream over the mean of them; part of them below a tenth of that mean.

Omitted intervals are in no value. Of an interval only the sum of the streams is kept. A
file without a summary gives intervals only. The direction is the client's: ``[TX-C]``
and ``[RX-S]`` are ``forward``. ``streams`` counts the connections in the file, those
of both directions of ``--bidir``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from patchstudy.loaders.documents import together
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, bit, byte, last_digit
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        'the line "receiver" (of [SUM] with several streams), column Bitrate or '
        "Bandwidth; an interval: the line of its sum, where the writer receives"
    ),
    "send_rate": (
        'the line "sender", the same column; an interval: the line of its sum, '
        "where the writer sends"
    ),
    "retransmits": 'the line "sender", column Retr',
    "loss": 'the line "receiver", column Lost/Total Datagrams',
    "jitter": 'the line "receiver", column Jitter',
    "fairness": 'Jain\'s index of the lines "receiver" of the streams',
    "flow_share_min": "the smallest of the same over their mean",
    "starved_flows": "part of the same below a tenth of their mean",
}
_ROW: Final = re.compile(
    r"\[\s*+(?P<id>\d{1,9}|SUM)\](?:\s*+\[(?P<role>[TR]X-[CS])\])?\s++"
    r"(?P<start>\d{1,9}\.\d+)\s*-\s*(?P<end>\d{1,9}\.\d+)\s+sec\s+"
    r"(?P<size>\d{1,9}(?:\.\d+)?)\s+(?P<size_unit>[KMGTP]?)Bytes\s+"
    r"(?P<rate>\d{1,9}(?:\.\d+)?)\s+(?P<rate_unit>[KMGTP]?)(?P<kind>bit?s|Bytes)/sec"
    r"(?P<rest>.{0,400})$"
)
_HEAD: Final = re.compile(
    r"\[ ID\](?P<role>\[Role\])?\s+Interval\s+Transfer\s+B(?:itrate|andwidth)(.*)$"
)
_OWN: Final = (
    re.compile(r"^(?:.{0,40} )?Connecting to host \S+, port \d+"),
    re.compile(r"^(?:.{0,40} )?Accepted connection from \S+, port \d+"),
    re.compile(r"^(?:.{0,40} )?Server listening on \d+(?: \(test|\s*$)"),
    re.compile(r"\biperf3(?:\.exe)?: (?:parameter )?(?:error|interrupt)\b"),
    re.compile(r"^\[ ID\](?:\[Role\])? Interval           Transfer     B"),
    re.compile(
        r"^\[\s*(?:\d+|SUM)\](?:\[[RT]X-[CS]\])?\s+\d{1,9}\.?\d*-\d{1,9}\.?\d*\s{2,}sec\s"
    ),
    re.compile(r"^\[ *\d+\].* sec .*bits/sec +\d+ +\d{1,9}\.?\d* [KMG]?Bytes\s*$"),
    re.compile(r"^\[ *(?:\d+|SUM)\].* sec .*bits/sec.* (?:sender|receiver)\s*$"),
)
_ETHR: Final = re.compile(r"^\[ *ID *\] +Protocol ")
_START: Final = re.compile(r"Connecting to host \S+, port|Accepted connection from ")
_ERROR: Final = re.compile(
    r"\biperf3(?:\.exe)?: ((?:parameter )?error|interrupt) - (.*\S)"
)
_DATAGRAMS: Final = re.compile(
    r"^\s*(-?\d{1,9}\.?\d*)\s+ms\s+(-?\d{1,18})/(-?\d{1,18})\s+\((-?[\w.+-]+)%\)"
)
_VERBOSE: Final = re.compile(
    r"Starting Test: protocol: (\w+), (\d{1,9}) streams, (\d{1,12}) byte blocks,"
    r" omitting (\d{1,9}) seconds, (?:(\d{1,9}) second test|)"
)
_TIME: Final = re.compile(
    r"\bTime: \w{3}, (\d\d? \w{3} \d{4} \d\d:\d\d:\d\d) (?:GMT|UTC)\s*$"
)
_WRAPPED: Final = 2**31
#: Above the JSON that ``-d`` prints between the lines.
_DEBUG: Final = re.compile(r"(?:send|get)_(?:parameters|results):?")


def sniff(raw: RawFile) -> bool:
    """Say whether a line of the text is one that only iperf3 prints."""
    lines = plain_head(raw)
    if any(_ETHR.match(line) for line in lines):
        return False  # its old versions connect with the same words
    for before, line in pairwise(["", *lines[:50]]):
        if line.lstrip().startswith("{") and not _DEBUG.fullmatch(before.strip()):
            return False
    return any(pattern.search(line) for line in lines for pattern in _OWN)


def load(raw: RawFile) -> Capture:
    """Read the text of one test or of several in a row."""
    tests = [_test(lines) for lines in _split(raw)]
    return together([_capture(raw, test) for test in tests])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One line of numbers: an interval or a line of the summary, in base units."""

    stream: str
    role: str
    span: tuple[float, float]
    size: float
    rate: float
    resolution: float
    rest: str
    summary: bool
    where: int

    @property
    def word(self) -> str:
        """``sender``, ``receiver`` or nothing."""
        told = self.rest.endswith(("sender", "receiver"))
        return self.rest.split()[-1] if told else ""

    @property
    def retransmits(self) -> int | None:
        found = re.match(r"^\s+(\d{1,18})(?=\s|$)", self.rest)
        return int(found[1]) if found else None

    @property
    def datagrams(self) -> tuple[float, int, int] | None:
        """Jitter in ms, lost and all datagrams, as printed."""
        found = _DATAGRAMS.match(self.rest)
        return (float(found[1]), int(found[2]), int(found[3])) if found else None


@dataclass(slots=True)
class _Test:
    """The lines of one test."""

    lines: list[tuple[int, str]]
    rows: list[_Row] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def server(self) -> bool:
        return "Accepted connection from" in self.text

    @property
    def bidir(self) -> bool:
        return any(row.role for row in self.rows)

    @property
    def omits(self) -> bool:
        return any("(omitted)" in row.rest for row in self.rows)

    @property
    def udp(self) -> bool:
        told = any("Datagrams" in head for head in self.heads)
        return told or any(row.datagrams for row in self.rows)

    def sends(self, role: str) -> bool:
        """Say whether the writer of the file sends in the flow of this role."""
        if role:
            return role.startswith("TX")
        columns = self.heads[0].strip() if self.heads else ""
        if columns.startswith(("Retr", "Total Datagrams")):
            return True
        if columns.startswith("Jitter") or self.server:
            return False
        return "Reverse mode, remote host" not in self.text


def _split(raw: RawFile) -> list[list[tuple[int, str]]]:
    """Return the lines of each test; a test that stands twice is returned once."""
    pieces = list(_pieces(raw))
    told = [lines for lines in pieces if _tells(lines)]
    distinct: dict[object, list[tuple[int, str]]] = {}
    for at, lines in enumerate(told):
        text = "\n".join(line for _number, line in lines if line.strip())
        # Without the ports two runs may print the same by chance.
        distinct.setdefault(text if " port " in text else at, lines)
    return list(distinct.values()) or pieces[:1]


def _tells(lines: list[tuple[int, str]]) -> bool:
    """Say whether the lines hold a test, or an error."""
    marks = (_START, _ERROR, _ROW)
    return any(mark.search(line) for _number, line in lines for mark in marks)


def _pieces(raw: RawFile) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines up to the end of a test, or up to the start of the next."""
    piece: list[tuple[int, str]] = []
    started = False
    for number, line in plain(raw.text):
        if line.strip() == "Server output:":
            break
        if started and _START.search(line):
            yield piece
            piece, started = [], False
        started = started or bool(_START.search(line))
        piece.append((number, line))
        if _ERROR.search(line) or line.endswith("iperf Done."):
            yield piece
            piece, started = [], False
    if any(line.strip() for _number, line in piece):
        yield piece


def _test(lines: list[tuple[int, str]]) -> _Test:
    test = _Test(lines=lines, text="\n".join(line for _number, line in lines))
    summary = False
    before = ""
    for number, line in lines:
        head = _HEAD.search(line)
        if head:
            # With -i 0 there is no interval, only the rule above the summary.
            summary = bool(test.rows) or "- - -" in before or "Summary" in before
            test.heads.append(head[2])
        before = line
        match = _ROW.search(line)
        if match:
            test.rows.append(_row(match, number, summary=summary))
    return test


def _row(match: re.Match[str], where: int, *, summary: bool) -> _Row:
    scale = _scale(match)
    rest = match["rest"].rstrip()
    return _Row(
        stream=match["id"],
        role=match["role"] or "",
        span=(float(match["start"]), float(match["end"])),
        size=byte(float(match["size"]), match["size_unit"]),
        rate=float(match["rate"]) * scale,
        resolution=last_digit(match["rate"]) * scale,
        rest=rest,
        summary=summary or rest.endswith(("sender", "receiver")),
        where=where,
    )


def _scale(match: re.Match[str]) -> float:
    """Return the bit/s of one in the printed unit of the rate."""
    if match["kind"] == "Bytes":
        return byte(8.0, match["rate_unit"])
    return bit(1.0, match["rate_unit"])


def _capture(raw: RawFile, test: _Test) -> Capture:
    reading = Reading()
    fault = _fault(test)
    for role in dict.fromkeys(row.role for row in test.rows):
        flow = _flow(test, role)
        _intervals(test, flow, reading)
        if fault is None:
            _whole_run(test, flow, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="iperf3",
        tool_version=_found(r"^(?:.{0,40} )?iperf (3\.\S+)\s*$", test.text),
        started_at=_started_at(test),
        workload=_workload(test),
        measurements=tuple(reading.measurements),
        facts=_facts(test),
        caveats=tuple(reading.caveats),
        error=fault,
    )


def _fault(test: _Test) -> Fault | None:
    """Say what iperf3 said of its failure, or that there are no numbers at all."""
    for number, line in test.lines:
        error = _ERROR.search(line)
        if error:
            text = error[2] if error[1] == "error" else f"{error[1]} - {error[2]}"
            return Fault(text=text, where=str(number))
    if not test.rows:
        text = "no interval and no summary; was it cut off after its head?"
        return Fault(text=text, where=str(test.lines[-1][0]))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flow:
    """The rows of one direction."""

    sending: bool
    labels: dict[str, str]
    intervals: list[_Row]
    ends: list[_Row]

    def end(self, word: str) -> _Row | None:
        """Return the summary line of this side, of all streams together."""
        rows = [row for row in self.ends if row.word == word]
        sums = [row for row in rows if row.stream == "SUM"] or rows
        alone = len({row.stream for row in self.ends}) == 1
        return sums[0] if sums and (sums[0].stream == "SUM" or alone) else None


def _flow(test: _Test, role: str) -> _Flow:
    rows = [row for row in test.rows if row.role == role]
    labels = {}
    if test.bidir:
        forward = role in {"TX-C", "RX-S"}
        labels = {"direction": "forward" if forward else "reverse"}
    measured = [one for one in rows if not one.summary and "(omitted)" not in one.rest]
    return _Flow(
        sending=test.sends(role),
        labels=labels,
        intervals=_once(measured),
        ends=[row for row in rows if row.summary],
    )


def _once(rows: list[_Row]) -> list[_Row]:
    """Return the rows without those that stand twice (after a server's death)."""
    return list({(row.stream, row.span): row for row in reversed(rows)}.values())[::-1]


def _intervals(test: _Test, flow: _Flow, reading: Reading) -> None:
    """Add one value per interval: the printed sum, or the sum of the streams."""
    metric = "send_rate" if flow.sending else "throughput"
    for span, rate, resolution in _sums(flow, reading):
        reading.interval(metric, rate, span, flow.labels, resolution=resolution)
    for row in flow.intervals:
        if row.datagrams and not 0 <= row.datagrams[1] <= row.datagrams[2]:
            reading.doubt(
                "loss-impossible",
                f"{row.datagrams[1]} lost of {row.datagrams[2]} datagrams in the"
                f" interval {row.span[0]}-{row.span[1]} cannot be (late or omitted ones"
                " were counted)",
            )
    counts = [row.retransmits or 0 for row in flow.intervals if not test.udp]
    if flow.sending and max(counts, default=0) >= _WRAPPED:
        reading.doubt(
            "retransmits-wrapped",
            f"retransmits {max(counts)} is a wrapped counter; it is left out",
        )


def _sums(
    flow: _Flow, reading: Reading
) -> Iterator[tuple[tuple[float, float], float, float]]:
    """Yield span, rate and last digit of each interval over all streams."""
    sums = [row for row in flow.intervals if row.stream == "SUM"]
    if sums:
        yield from ((row.span, row.rate, row.resolution) for row in sums)
        return
    spans = dict.fromkeys(row.span for row in flow.intervals)
    groups = [[row for row in flow.intervals if row.span == span] for span in spans]
    most = max((len(group) for group in groups), default=0)
    for group in groups:
        if len(group) < most:
            reading.note(
                "interval-unread",
                f"interval {group[0].span[0]}-{group[0].span[1]} lacks streams",
            )
            continue
        rate = sum(row.rate for row in group)
        yield group[0].span, rate, max(row.resolution for row in group)


def _whole_run(test: _Test, flow: _Flow, reading: Reading) -> None:
    """Add what the summary says of one direction, or that there is none."""
    receiver, sender, both = (flow.end(word) for word in ("receiver", "sender", ""))
    if receiver or sender:
        _sides(test, flow, (sender, receiver), reading)
    elif both and test.udp:
        _old_udp(test, flow, both, reading)
    else:
        reading.doubt(
            "cut-short",
            "the summary is missing, so only the intervals are known",
            "Keep the whole output of the tool.",
        )
        return
    end = sender or both if flow.sending else receiver
    spans = [(rate, span[1] - span[0]) for span, rate, _last in _sums(flow, reading)]
    metric = "send_rate" if flow.sending else "throughput"
    reading.bear_out(metric, end.rate if end else None, spans)


def _sides(
    test: _Test,
    flow: _Flow,
    sides: tuple[_Row | None, _Row | None],
    reading: Reading,
) -> None:
    """Add the values of the lines that say whose they are."""
    sender, receiver = sides
    if receiver:
        reading.rate(
            "throughput", receiver.rate, flow.labels, resolution=receiver.resolution
        )
        _streams(flow, reading)
    else:
        reading.note("receiver-unknown", "the file does not tell what arrived")
    if sender and (sender.rate or not (receiver and receiver.rate)):
        reading.rate(
            "send_rate", sender.rate, flow.labels, resolution=sender.resolution
        )
    else:
        reading.note("sender-unknown", "the file does not tell what was sent")
    if test.udp:
        _loss(test, flow, sides, reading)
    else:
        _retransmits(flow, sender, reading)


def _streams(flow: _Flow, reading: Reading) -> None:
    rows = [row for row in flow.ends if row.word == "receiver" and row.stream != "SUM"]
    reading.streams([row.rate for row in rows], flow.labels)


def _retransmits(flow: _Flow, sender: _Row | None, reading: Reading) -> None:
    count = sender.retransmits if sender else None
    if count is None:
        reading.note("retransmits-absent", "the file does not count retransmits")
    elif count >= _WRAPPED:
        reading.doubt(
            "retransmits-wrapped",
            f"retransmits {count} is a wrapped counter; it is left out",
        )
    else:
        reading.whole("retransmits", float(count), flow.labels)


def _loss(
    test: _Test,
    flow: _Flow,
    sides: tuple[_Row | None, _Row | None],
    reading: Reading,
) -> None:
    """Add loss and jitter of the receiver's line."""
    sender, receiver = sides
    if receiver is None:
        return
    if receiver.rate == receiver.size == 0 and sender and sender.size:
        packets = sender.datagrams[2] if sender.datagrams else 0
        reading.doubt(
            "all-lost",
            "no datagram arrived, which iperf3 prints as 0 lost; loss is 1 and jitter"
            " is absent",
            "check that the receiver could be reached",
        )
        reading.loss(packets, packets, flow.labels)
        return
    if receiver.datagrams is None:
        reading.note("loss-absent", "the summary has no lost datagrams")
        return
    jitter_ms, lost, packets = receiver.datagrams
    gap = _missing(sender, receiver) if test.omits else None
    if gap is not None and lost > gap[1]:
        reading.doubt(
            "loss-by-bytes",
            f"{lost} lost datagrams are printed but about {gap[0]:.0f} are missing by"
            " the bytes (3.12 counts omitted seconds); the bytes are used",
        )
        reading.loss(min(gap[0], packets), packets, flow.labels)
    else:
        reading.loss(lost, packets, flow.labels)
    _jitter(jitter_ms, receiver, flow, reading)


def _missing(sender: _Row | None, receiver: _Row) -> tuple[float, float] | None:
    """Return how many datagrams are missing by the bytes, and how many at most.

    Three digits of the bytes are printed.
    """
    if sender is None or sender.datagrams is None or not sender.size:
        return None
    packets = sender.datagrams[2]
    gap = max(packets * (1 - receiver.size / sender.size), 0.0)
    return gap, gap * 1.05 + 0.011 * packets + 3


def _jitter(jitter_ms: float, row: _Row, flow: _Flow, reading: Reading) -> None:
    """Add the jitter; an uninitialised value is longer than the run."""
    if not 0 <= jitter_ms < row.span[1] * 1e3:
        reading.note("jitter-absent", f"jitter {jitter_ms} ms is none; it is absent")
        return
    reading.whole("jitter", jitter_ms * 1e-3, flow.labels, resolution=1e-6)


def _old_udp(test: _Test, flow: _Flow, both: _Row, reading: Reading) -> None:
    """Add what 3.0 and 3.1 print in one line for both sides."""
    reading.rate("send_rate", both.rate, flow.labels, resolution=both.resolution)
    jitter_ms, lost, packets = both.datagrams or (0.0, 0, 0)
    if flow.sending and lost == 0 and jitter_ms == 0:
        reading.doubt(
            "receiver-unknown",
            "no loss and a jitter of exactly 0: this version prints that also when"
            " nothing arrived; throughput and loss are absent",
            "use iperf3 3.12 or later, or count packets at the receiver",
        )
        return
    if flow.sending and lost and test.omits:
        reading.doubt(
            "loss-absent",
            "this version counts the losses of the omitted seconds (-O) too; loss and"
            " throughput are absent",
            "use the server's file, or iperf3 3.17 or later",
        )
        _jitter(jitter_ms, both, flow, reading)
        return
    if 0 <= lost <= packets and packets:
        reading.doubt(
            "throughput-estimated",
            "this version does not print what arrived; throughput is"
            " send rate x (1 - lost / packets)",
            "use iperf3 3.12 or later",
        )
        rate = both.rate * (1 - lost / packets)
        reading.rate("throughput", rate, flow.labels, resolution=both.resolution)
    reading.loss(lost, packets, flow.labels)
    _jitter(jitter_ms, both, flow, reading)


def _workload(test: _Test) -> dict[str, str | int | float | None]:
    told = _VERBOSE.search(test.text)
    protocol = told[1] if told else ("UDP" if test.udp else "TCP")
    streams = {(row.role, row.stream) for row in test.rows if row.stream != "SUM"}
    mss = _found(r"TCP MSS: (\d{1,6})\b", test.text)
    return {
        "protocol": protocol if test.rows or told else None,
        "direction": _direction(test),
        "streams": len(streams) or (int(told[2]) if told else None),
        "duration_s": float(told[5]) if told and told[5] else _duration(test.rows),
        "omit_s": float(told[4]) if told else None,
        "blksize": int(told[3]) if told else None,
        "mss": int(mss) if mss else None,
    }


def _direction(test: _Test) -> str | None:
    if test.bidir:
        return "bidir"
    if not _START.search(test.text):
        return None
    return "forward" if test.sends("") != test.server else "reverse"


def _duration(rows: Sequence[_Row]) -> float | None:
    """Return the sender's time, or the receiver's where only that is printed."""
    ends = [row for row in rows if row.summary]
    for word in ("sender", "receiver", ""):
        times = [row.span[1] for row in ends if row.word == word]
        if times:
            return times[-1]
    return None


def _facts(test: _Test) -> dict[str, object]:
    facts: dict[str, object] = {"seen_from": "server" if test.server else "client"}
    for side in ("snd", "rcv"):
        name = _found(rf"^{side}_tcp_congestion (\w+)", test.text)
        if name:
            facts[f"{side}_tcp_congestion"] = name
    cookie = _found(r"\bCookie: (\w+)", test.text)
    return {**facts, "cookie": cookie} if cookie else facts


def _started_at(test: _Test) -> str | None:
    time = next((m[1] for _n, line in test.lines if (m := _TIME.search(line))), None)
    if time is None:
        return None
    try:
        moment = datetime.strptime(time, "%d %b %Y %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None
