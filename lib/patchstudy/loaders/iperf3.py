"""Read the JSON of iperf3 3.0 to 3.22 (``-J``, ``--json-stream``), client or server.

What the values are (iperf3's manual page and source, checked against byte and drop
counters of captured runs):

``throughput``
    Whole run: payload that reached the receiver over the receiver's time, sum of all
    streams (TCP ``end.sum_received``, UDP the same), omitted seconds left out. Versions
    3.0 to 3.9 have no ``sum_received`` for UDP: with ``-R`` it is the received payload
    of the intervals, else it is estimated as send rate x (1 - lost / packets), with a
    caveat. With label ``stream``: one stream, in the order of the file.
    Intervals: where the writer of the file receives (client with ``-R``).
``send_rate``
    Whole run: payload the sender handed to its kernel (``end.sum_sent``; old UDP
    ``end.sum``). Intervals: where the writer of the file sends.
``loss``
    UDP datagrams lost of those the receiver knows of, sum of all streams. Two faults of
    iperf3 are put right, each with a caveat: everything lost is printed as no loss, and
    3.12 counts losses of the omitted seconds (seen by comparing with the bytes; a
    client's file of 3.0 to 3.9 has no bytes to compare with: loss and throughput of
    such a run are absent). What a
    sender with ``-R`` sent and the receiver has not yet seen is no loss.
``retransmits``
    The sender's TCP segments sent again, ``end.sum_sent``; absent where the sender's
    system does not count them. Exposure: segments of one MSS.
``jitter``
    RFC 1889 jitter of the receiver as it stood at the end, mean over the streams.
``rtt_mean``
    Mean over the streams of the mean of the kernel's smoothed RTT (TCP_INFO, us), read
    once an interval; only where the writer of the file sends (a receiver's own figure
    is that of the handshake).
``fairness``
    Jain's index over the streams' received payload.
``flow_share_min``, ``starved_flows``
    Smallest stream over the mean of them; part of them below a tenth of that mean.

Omitted intervals are in no value; the first after them begins at 0, also where the file
has it by the clock before. Rates are bit/s of payload, all prefixes 10^3.
``cpu_utilization_percent`` is the CPU time of the iperf3 process alone (getrusage): it
stands in ``facts``, never in ``cpu_busy``. Direction is seen from the client:
``forward`` is client to server.

A file of events (``--json-stream``) is read as the document that its events make; one
without an end event is a run that failed. Of several documents in a file (``--logfile``
appends, a server writes one per test) each is a run of its own with the label
``document``; the same run twice (same cookie, as ``--json-stream-full-output`` writes
it) is read once. What stands in ``server_output_json`` is not read.
"""

import json
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter, lt
from pathlib import Path
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.documents import together
from patchstudy.loaders.reading import shares
from patchstudy.loaders.text import mapping, sequence, strict_json
from patchstudy.records import (
    Capture,
    Caveat,
    Fault,
    Measurement,
    RawFile,
    Severity,
    intervals,
)

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "end.sum_received: bytes * 8 / seconds; an interval (where the writer "
        "receives): intervals[].sum, the same"
    ),
    "send_rate": (
        "end.sum_sent: bytes * 8 / seconds (UDP before 3.10: "
        "end.sum.bits_per_second); an interval (where the writer sends): "
        "intervals[].sum"
    ),
    "retransmits": "end.sum_sent.retransmits",
    "loss": "end.sum_received: lost_packets / packets (before 3.10: end.sum)",
    "jitter": "end.sum_received.jitter_ms / 1000 (before 3.10: end.sum)",
    "rtt_mean": "mean of end.streams[].sender.mean_rtt, microseconds",
    "fairness": (
        "Jain's index of end.streams[].receiver.bytes (UDP: udp.bytes without "
        "the lost share)"
    ),
    "flow_share_min": "the smallest of the same over their mean",
    "starved_flows": "part of the same below a tenth of their mean",
}
#: How a file begins that is iperf3's and nobody else's.
OPENS: Final = re.compile(r'\s*\{\s*"start"\s*:\s*\{\s*"(?:connected|version)"')
_OPENING: Final = re.compile(r'\{\s*"start"\s*:\s*\{\s*"(?:connected|version)"')
_EVENT: Final = re.compile(
    r'^[^\n{]{0,80}(\{\s*"event"\s*:\s*"\w+"\s*,.*)$', re.MULTILINE
)
_FIRST: Final = re.compile(
    r'^[^\n{]{0,80}\{\s*"event"\s*:\s*"(?:start|error|interval|end)"\s*,\s*"data"',
    re.MULTILINE,
)
_NOT_A_NUMBER: Final = re.compile(
    r"(:\s*)[-+]?(?:nan|inf(?:inity)?)(?=\s*[,}\]])", re.IGNORECASE
)
_FRAGMENT: Final = re.compile(
    r'^\s*\{\s*"streams"\s*:\s*\[\s*\{\s*"socket"\s*:\s*\d+\s*,\s*"start"\s*:'
)
#: Versions that write no key twice: 3.10 and later.
_NEWER: Final = re.compile(r"iperf 3\.\d\d.*")
_REVERSE: Final = "_bidir_reverse"
_WRAPPED: Final = 2**31
_MISMATCH: Final = 0.05
_ABSURD: Final = 1e18
_SHORT: Final = 1e-9
_CLOCK: Final = ("start", "end", "seconds")
_FIELDS: Final = itemgetter("start", "end", "bytes", "seconds")


def sniff(raw: RawFile) -> bool:
    """Say whether the text holds a JSON document or event stream of iperf3."""
    if _OPENING.search(raw.head) or _FIRST.search(raw.head):
        return True
    return bool(_FRAGMENT.search(raw.head))


def load(raw: RawFile) -> Capture:
    """Read the documents or the event stream of iperf3.

    Raises
    ------
    CaptureError
        If the JSON is cut or broken, or stands inside another document.
    """
    found = _Found()
    alone = _alone(raw)
    documents, around = ([alone], "") if alone else _documents(raw, found)
    if not documents:
        raise CaptureError(raw.path, _no_document(raw))
    captures = [_capture(raw, one, around, _Found()) for one in documents]
    whole = together(captures)
    return replace(whole, caveats=(*found.caveats, *whole.caveats))


def _capture(
    raw: RawFile, document: dict[str, object], around: str, found: "_Found"
) -> Capture:
    run = _run(raw.path, document, around)
    flows = _flows(run)
    fault = _fault(run, flows)
    for flow in flows:
        _intervals(run, flow, found)
        if fault is None:
            _whole_run(run, flow, found)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="iperf3",
        tool_version=_version(run),
        started_at=_started_at(run),
        workload=_workload(run),
        measurements=tuple(found.measurements),
        facts=_facts(run),
        caveats=tuple(found.caveats),
        error=fault,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The parts of a document, each of the type it should have."""

    path: Path
    start: dict[str, object]
    test: dict[str, object]
    intervals: list[dict[str, object]]
    end: dict[str, object]
    bidir: bool
    error: str | None

    @property
    def udp(self) -> bool:
        return self.test.get("protocol") == "UDP"

    @property
    def server(self) -> bool:
        return "accepted_connection" in self.start

    @property
    def omit_s(self) -> float:
        return _number(self.test.get("omit")) or 0.0

    @property
    def mss(self) -> int | None:
        """Segment size of the control connection; 0 (a server's file) is unknown."""
        return _size(self.start.get("tcp_mss", self.start.get("tcp_mss_default")))

    @property
    def blksize(self) -> int | None:
        """Payload of a datagram, or of one write."""
        return _size(self.test.get("blksize"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flow:
    """One direction of a run.

    Attributes
    ----------
    suffix
        What its keys end in.
    sending
        Whether the writer of the file is the sender.
    labels
        Labels of its whole-run values.
    spans
        Its interval sums, without omitted and repeated ones.
    """

    suffix: str
    sending: bool
    labels: dict[str, str]
    spans: "_Spans"


@dataclass(slots=True, kw_only=True)
class _Spans:
    """The intervals of a flow as columns.

    Attributes
    ----------
    starts, ends, rates
        In s and bit/s, of every interval that has both.
    size, seconds
        All bytes, and all seconds in which they flowed.
    unread
        Numbers of the intervals without a time or a rate.
    """

    starts: list[float]
    ends: list[float]
    rates: list[float]
    size: float
    seconds: float
    unread: list[int]


@dataclass(slots=True)
class _Found:
    """What has been read so far."""

    measurements: list[Measurement] = field(default_factory=list)
    caveats: list[Caveat] = field(default_factory=list)

    def whole(
        self,
        metric: str,
        value: float | None,
        labels: dict[str, str],
        packets: float | None = None,
    ) -> None:
        """Add a whole-run value, if there is one."""
        if value is None:
            return
        self.measurements.append(
            Measurement(metric=metric, value=value, labels=labels, exposure=packets)
        )

    def note(self, code: str, text: str) -> None:
        self.caveats.append(Caveat(code=code, severity=Severity.NOTE, text=text))

    def doubt(self, code: str, text: str, todo: str = "") -> None:
        self.caveats.append(
            Caveat(code=code, severity=Severity.DOUBT, text=text, todo=todo)
        )


def _alone(raw: RawFile) -> dict[str, object] | None:
    """Return the document of a file that is one and nothing else, read fast.

    None where that would lose something: a ``sum`` that stands twice in an object (see
    ``_unique``) is for ``_documents`` to find.
    """
    if not OPENS.match(raw.head):
        return None
    document = mapping(strict_json(raw))
    if _NEWER.fullmatch(str(mapping(document.get("start")).get("version"))):
        return document
    parts = [*sequence(document.get("intervals")), document.get("end")]
    objects = [part for part in parts if isinstance(part, dict)]
    sums = [key for part in objects for key in part if key[:3] == "sum"]
    alone = document and raw.data.count(b'"sum') == len(sums)
    return document if alone else None


def _documents(raw: RawFile, found: _Found) -> tuple[list[dict[str, object]], str]:
    """Return each run of the file as one document, and the text around them."""
    events, text = _events(raw)
    documents, around = _plain_documents(raw, text, found)
    runs = _distinct([*_streamed(events, found), *documents])
    if len(runs) < len(documents):
        found.note("document-repeated", "one run stands twice in the file; read once")
    if around:
        found.note(
            "text-around", f"text around the JSON was passed over: {around[:200]}"
        )
    return runs, around


def _distinct(documents: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return each run once; the cookie tells one from another."""
    runs: dict[object, dict[str, object]] = {}
    for at, one in enumerate(documents):
        cookie = mapping(one.get("start")).get("cookie")
        # A document that failed before its test started may have no cookie.
        runs.setdefault(cookie if isinstance(cookie, str) and cookie else at, one)
    return list(runs.values())


def _plain_documents(
    raw: RawFile, text: str, found: _Found
) -> tuple[list[dict[str, object]], str]:
    """Return the documents that stand in the text, and what else stands there."""
    documents: list[dict[str, object]] = []
    pieces: list[str] = []
    position = 0
    if _NOT_A_NUMBER.search(text) and _OPENING.search(text):
        found.note("not-a-number", "the file holds nan or inf; those values are absent")
        text = _NOT_A_NUMBER.sub(r"\1null", text)
    while opening := _OPENING.search(text, position):
        before = text[position : opening.start()]
        if before.rstrip().endswith((":", ",", "[")):
            raise CaptureError(
                raw.path,
                "the iperf3 document stands inside another; save it alone in a file",
                where=str(text.count("\n", 0, opening.start()) + 1),
            )
        document, position = _decode(raw, text, opening.start())
        documents.append(document)
        pieces.append(before.strip())
    pieces.append(text[position:].strip())
    return documents, "\n".join(filter(None, pieces))


def _events(raw: RawFile) -> tuple[list[tuple[int, str]], str]:
    """Return the numbered lines of ``--json-stream``, and the text without them."""
    if not _FIRST.search(raw.text):
        return [], raw.text
    events, others = [], []
    for number, line in enumerate(raw.text.split("\n"), start=1):
        event = _EVENT.match(line)
        if event:
            events.append((number, event[1]))
        others.append("" if event else line)
    return events, "\n".join(others)


def _streamed(events: list[tuple[int, str]], found: _Found) -> list[dict[str, object]]:
    """Return the documents that the events make; a start begins the next one."""
    runs: list[dict[str, object]] = []
    for number, line in events:
        try:
            event = mapping(json.loads(_NOT_A_NUMBER.sub(r"\1null", line)))
        except (ValueError, RecursionError):
            found.doubt("event-cut", f"the event in line {number} is cut or broken")
            continue
        name, data = event.get("event"), event.get("data")
        if not runs or name == "start" or (name == "error" and "end" in runs[-1]):
            runs.append({"intervals": []})
        if name == "interval":
            sequence(runs[-1]["intervals"]).append(data)
        elif isinstance(name, str) and name in {"start", "end", "error"}:
            runs[-1][name] = data
    for one in runs:
        if "end" not in one:
            one.setdefault("error", "no end event; the run was cut short")
    return runs


def _no_document(raw: RawFile) -> str:
    """Say what is wrong with a file of iperf3's that has no document."""
    if _NOT_A_NUMBER.search(raw.text):
        return "a fragment of an iperf3 document (with nan); save the whole output"
    return "a fragment of an iperf3 document; save the whole output"


def _decode(raw: RawFile, text: str, position: int) -> tuple[dict[str, object], int]:
    """Parse the document at this position; also return where it ends."""
    decoder = json.JSONDecoder(
        object_pairs_hook=_unique, parse_constant=lambda _name: None
    )
    try:
        return decoder.raw_decode(text, position)
    except json.JSONDecodeError as error:
        said = re.search(r'"error"\s*:\s*"(?:error - )?([^"\n]+)"', text[position:])
        problem = f"not JSON ({error.msg}); was it cut short?"
        if said:
            problem = f"not JSON ({error.msg}); its error says: {said[1]}"
        raise CaptureError(raw.path, problem, where=str(error.lineno)) from error
    except (ValueError, RecursionError) as error:
        raise CaptureError(raw.path, f"not iperf3's JSON ({error})") from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object; a repeated sum gets the name that newer versions give it.

    iperf3 3.7 and 3.9 write ``sum`` twice for ``--bidir``, first one direction, then
    the other; since 3.10 the second is ``sum_bidir_reverse``.
    """
    one: dict[str, object] = {}
    for key, value in pairs:
        twice = key in one and key.startswith("sum")
        one[key + _REVERSE if twice else key] = value
    return one


def _run(path: Path, document: dict[str, object], around: str) -> _Run:
    start, end = mapping(document.get("start")), mapping(document.get("end"))
    error = document.get("error")
    if isinstance(error, str):
        text = error.removeprefix("error - ") or "error without a text"
    elif not end:
        said = re.search(r"iperf3: error - (.*)", around)
        text = said[1].strip() if said else "no results in the file; the run failed"
    else:
        text = None
    told = sequence(document.get("intervals"))
    parts = [one for one in told if isinstance(one, dict)]
    reverse = "sum" + _REVERSE
    return _Run(
        path=path,
        start=start,
        test=mapping(start.get("test_start")),
        intervals=parts,
        end=end,
        bidir=any(key.endswith(_REVERSE) for key in end)
        or any(reverse in one for one in parts),
        error=text,
    )


def _flows(run: _Run) -> list[_Flow]:
    """Return the one direction of the run, or both of a ``--bidir`` run."""
    suffixes = ["", _REVERSE] if run.bidir else [""]
    return [_flow(run, suffix) for suffix in suffixes]


def _flow(run: _Run, suffix: str) -> _Flow:
    sums: list[dict[str, object]] = []
    name, last = "sum" + suffix, None
    for interval in run.intervals:
        one = interval.get(name)
        if not isinstance(one, dict) or not one or one.get("omitted"):
            continue
        if one != last:  # after a server's death the last interval stands twice
            sums.append(one)
            last = one
    if sums and run.omit_s:
        sums[0] = _since_reset(sums[0])
    sending = _sending(run, suffix, sums)
    labels = {}
    if run.bidir:
        labels = {"direction": "forward" if sending != run.server else "reverse"}
    return _Flow(suffix=suffix, sending=sending, labels=labels, spans=_spans(sums))


def _since_reset(one: dict[str, object]) -> dict[str, object]:
    """Return the first interval after the omitted ones, from 0 on.

    Where its timer fires beside that of the omission (seen in 3.22) iperf3 writes the
    start and the length by the clock before the reset, but bytes and end after it.
    """
    start, end, seconds = (_number(one.get(name)) for name in _CLOCK)
    if not start or not end or not seconds or abs(end - start - seconds) < end / 20:
        return one
    return {**one, "start": 0.0, "seconds": end}


def _spans(sums: list[dict[str, object]]) -> _Spans:
    """Return the columns of the intervals, all at once where all are whole."""
    try:
        columns = tuple(zip(*map(_FIELDS, sums), strict=True))
        whole = _are_whole(*columns)
    except (KeyError, TypeError):
        return _spans_of_some(sums)  # one has no time or no bytes, or none is there
    if not whole:
        return _spans_of_some(sums)
    starts, ends, sizes, lengths = columns
    return _Spans(
        starts=list(map(float, starts)),
        ends=list(map(float, ends)),
        rates=[size * 8 / length for size, length in zip(sizes, lengths, strict=True)],
        size=float(sum(sizes)),
        seconds=float(sum(lengths)),
        unread=[],
    )


def _are_whole(
    starts: tuple[float, ...],
    ends: tuple[float, ...],
    sizes: tuple[float, ...],
    lengths: tuple[float, ...],
) -> bool:
    """Say whether every interval has a length, and bytes that can be."""
    lasting = min(starts) >= 0 and all(map(lt, starts, ends)) and min(lengths) > _SHORT
    bounded = all(max(one) < _ABSURD for one in (sizes, ends, lengths))
    return lasting and min(sizes) >= 0 and bounded


def _spans_of_some(sums: list[dict[str, object]]) -> _Spans:
    """Return the columns of the intervals that have a time and a rate."""
    found = _Spans(starts=[], ends=[], rates=[], size=0.0, seconds=0.0, unread=[])
    for number, one in enumerate(sums, start=1):
        start, end = _number(one.get("start")), _number(one.get("end"))
        rate = _rate(one)
        if start is None or end is None or rate is None or end <= start:
            found.unread.append(number)
            continue
        found.starts.append(start)
        found.ends.append(end)
        found.rates.append(rate)
        found.size += _number(one.get("bytes")) or 0.0
        found.seconds += _number(one.get("seconds")) or 0.0
    return found


def _sending(run: _Run, suffix: str, sums: list[dict[str, object]]) -> bool:
    """Say whether the writer of the file sends in this direction."""
    for one in sums:
        flag = one.get("sender")
        if isinstance(flag, bool):
            return flag
    if run.bidir:
        return not suffix
    return bool(run.test.get("reverse")) == run.server  # 3.0 and 3.1 have no flag


def _fault(run: _Run, flows: list[_Flow]) -> Fault | None:
    """Say why the file holds no complete run, if it does not."""
    if run.error is not None:
        return Fault(text=run.error, where="error")
    if not sequence(run.end.get("streams")):
        return Fault(text="no stream has results; the run failed", where="end.streams")
    for flow in flows:
        if flow.sending and not run.server and _unreported(run, flow):
            return Fault(
                text="the receiver reported nothing; did the server end early?",
                where="end.sum_received" + flow.suffix,
            )
    return None


def _unreported(run: _Run, flow: _Flow) -> bool:
    """Say whether the other side, which receives, never sent its results.

    Then its bytes and its CPU time are both exactly 0. A server's file never has those
    bytes; the CPU time may be that of the client before.
    """
    received = _total(run, "sum_received", flow)
    sent = _number(_total(run, "sum_sent", flow).get("bytes"))
    cpu = mapping(run.end.get("cpu_utilization_percent"))
    nothing = _number(received.get("bytes")) == 0 and bool(sent)
    idle = run.server or _number(cpu.get("remote_total")) == 0
    return flow.sending and nothing and idle


def _intervals(run: _Run, flow: _Flow, found: _Found) -> None:
    """Add one value per interval; intervals without any payload stay in."""
    metric = "send_rate" if flow.sending else "throughput"
    for number in flow.spans.unread:
        found.note("interval-unread", f"interval {number} has no rate or no time")
    spans = flow.spans
    found.measurements += intervals(
        metric, flow.labels, spans.starts, spans.ends, spans.rates
    )


def _whole_run(run: _Run, flow: _Flow, found: _Found) -> None:
    """Add the values of the whole run in one direction."""
    if not run.udp:
        _tcp(run, flow, found)
    elif _total(run, "sum_received", flow):
        _udp(run, flow, found)
    else:
        _old_udp(run, flow, found)
    _fairness(run, flow, found)
    _compare_with_intervals(flow, found)


def _tcp(run: _Run, flow: _Flow, found: _Found) -> None:
    _both_rates(run, flow, found)
    _retransmits(run, flow, found)
    if not flow.sending:
        return  # what stands there is the receiver's, from the handshake
    pieces = [mapping(stream.get("sender")) for stream in _streams(run, flow)]
    times = [_number(piece.get("mean_rtt")) for piece in pieces]
    known = [time for time in times if time]
    if known and len(known) == len(times):
        found.whole("rtt_mean", sum(known) / len(known) * 1e-6, flow.labels)


def _both_rates(run: _Run, flow: _Flow, found: _Found) -> None:
    """Add throughput and send rate from the sums of either side."""
    received = _total(run, "sum_received", flow)
    sent = _total(run, "sum_sent", flow)
    if _unreported(run, flow):
        found.note("receiver-unknown", "a server's file does not tell what arrived")
    else:
        _throughput(_rate(received), flow, found)
    if _number(sent.get("bytes")) == 0 and _number(received.get("bytes")):
        found.note("sender-unknown", "a server's file does not tell what was sent")
    else:
        found.whole("send_rate", _rate(sent), flow.labels)


def _throughput(rate: float | None, flow: _Flow, found: _Found) -> None:
    if rate is None:
        found.note("throughput-absent", "the file does not tell what was received")
    elif rate == 0:
        found.doubt(
            "zero-throughput",
            "nothing reached the receiver",
            "check that the link was up and the run long enough",
        )
    found.whole("throughput", rate, flow.labels)


def _retransmits(run: _Run, flow: _Flow, found: _Found) -> None:
    sent = _total(run, "sum_sent", flow)
    count = _number(sent.get("retransmits"))
    if count is None:
        found.note("retransmits-absent", "the file does not count retransmits")
        return
    if count >= _WRAPPED:
        found.doubt(
            "retransmits-wrapped",
            f"retransmits {count:.0f} is a wrapped counter; it is left out",
        )
        return
    bytes_sent, mss = _number(sent.get("bytes")), run.mss
    segments = bytes_sent / mss if bytes_sent and mss else None
    found.whole("retransmits", count, flow.labels, segments)


def _udp(run: _Run, flow: _Flow, found: _Found) -> None:
    """Add the values of UDP as 3.10 and later write it."""
    _both_rates(run, flow, found)
    if _unreported(run, flow):
        return
    received = _total(run, "sum_received", flow)
    sent = _total(run, "sum_sent", flow)
    packets = _number(received.get("packets"))
    lost = _number(received.get("lost_packets"))
    if _number(received.get("bytes")) == 0 and _number(sent.get("bytes")):
        _all_lost(run, _total(run, "sum_sent", flow), flow, found)
        return
    if flow.sending:
        lost = _checked_by_bytes(run, flow, lost, found)
    _loss(lost, packets, flow, found)
    _jitter(received, flow, found)


def _old_udp(run: _Run, flow: _Flow, found: _Found) -> None:
    """Add the values of UDP as 3.0 to 3.9 write it: the sender's bytes in ``sum``."""
    both = _total(run, "sum", flow)
    if run.server and not flow.sending:
        found.note("sender-unknown", "a server's file does not tell what was sent")
    else:
        found.whole("send_rate", _number(both.get("bits_per_second")), flow.labels)
    if flow.sending and both.get("lost_packets") == 0 and both.get("jitter_ms") == 0:
        found.doubt(
            "receiver-unknown",
            "no loss and a jitter of exactly 0: this version prints that also when"
            " nothing arrived; throughput and loss are absent",
            "use iperf3 3.12 or later, or count packets at the receiver",
        )
        return
    if flow.sending and run.omit_s and both.get("lost_packets"):
        found.doubt(
            "loss-absent",
            "this version counts the losses of the omitted seconds (-O) too; loss and"
            " throughput are absent",
            "use the server's file, or iperf3 3.17 or later",
        )
        _jitter(both, flow, found)
        return
    rate = _estimate(both, found) if flow.sending else _mean_rate(flow.spans)
    _throughput(rate, flow, found)
    if rate == 0 and not flow.sending and _number(both.get("bytes")):
        _all_lost(run, both, flow, found)
        return
    lost, packets = _number(both.get("lost_packets")), _number(both.get("packets"))
    _loss(lost, packets, flow, found)
    _jitter(both, flow, found)


def _estimate(both: dict[str, object], found: _Found) -> float | None:
    """Return what must have arrived, where the file has only the sender's rate."""
    rate = _number(both.get("bits_per_second"))
    lost, packets = _number(both.get("lost_packets")), _number(both.get("packets"))
    if rate is None or lost is None or not packets or lost > packets:
        return None
    found.doubt(
        "throughput-estimated",
        "this version does not print what arrived; throughput is"
        " send rate x (1 - lost / packets)",
        "use iperf3 3.12 or later",
    )
    return rate * (1 - lost / packets)


def _checked_by_bytes(
    run: _Run, flow: _Flow, lost: float | None, found: _Found
) -> float | None:
    """Return the lost datagrams, by the bytes where the printed count exceeds them."""
    gap = _missing_datagrams(run, flow)
    if gap is None or lost is None or abs(lost - gap) <= max(3, 0.05 * max(lost, gap)):
        return lost
    if lost > gap:
        found.doubt(
            "loss-by-bytes",
            f"{lost:.0f} lost datagrams are printed but only {gap:.0f} are missing by"
            " the bytes (3.12 counts omitted seconds); the bytes are used",
        )
        return max(gap, 0.0)
    found.doubt(
        "loss-unsettled",
        f"{gap:.0f} datagrams did not arrive but {lost:.0f} are counted as lost;"
        " the others were lost or queued at the end",
    )
    return lost


def _missing_datagrams(run: _Run, flow: _Flow) -> float | None:
    """Return how many datagrams of the measured time were sent and not received."""
    sent = _number(_total(run, "sum_sent", flow).get("bytes"))
    received = _number(_total(run, "sum_received", flow).get("bytes"))
    if not sent or received is None or not run.blksize:
        return None
    return round((sent - received) / run.blksize)


def _all_lost(run: _Run, sent: dict[str, object], flow: _Flow, found: _Found) -> None:
    """Add loss 1 where data were sent and none arrived, whatever the file says."""
    packets = _number(sent.get("packets"))
    bytes_sent = _number(sent.get("bytes"))
    if not packets and bytes_sent and run.blksize:
        packets = round(bytes_sent / run.blksize)
    found.doubt(
        "all-lost",
        "no datagram arrived, which iperf3 prints as 0 lost; loss is 1 and jitter"
        " is absent",
        "check that the receiver could be reached",
    )
    _loss(packets, packets, flow, found)


def _loss(
    lost: float | None, packets: float | None, flow: _Flow, found: _Found
) -> None:
    if lost is None or not packets or lost > packets:
        found.doubt(
            "loss-absent",
            "the printed lost and sent packets cannot be; loss is absent",
        )
        return
    found.measurements.append(
        Measurement(
            metric="loss",
            value=lost / packets,
            labels=flow.labels,
            exposure=packets,
            resolution=1 / packets,
        )
    )


def _jitter(total: dict[str, object], flow: _Flow, found: _Found) -> None:
    """Add the jitter; an uninitialised value is longer than the run."""
    jitter_ms, seconds = _number(total.get("jitter_ms")), _number(total.get("seconds"))
    if jitter_ms is None or seconds is None or jitter_ms >= seconds * 1e3:
        found.note("jitter-absent", f"jitter {jitter_ms} ms is none; it is absent")
        return
    found.whole("jitter", jitter_ms * 1e-3, flow.labels)


def _fairness(run: _Run, flow: _Flow, found: _Found) -> None:
    """Add each stream's throughput and their shares where there are several."""
    loads = _payloads(run, flow)
    if len(loads) < 2 or sum(loads) == 0 or _unreported(run, flow):
        return
    total = _found_value(found, "throughput", flow)
    if total is None:
        return
    for number, load in enumerate(loads, start=1):
        share = total * load / sum(loads)
        found.whole("throughput", share, {**flow.labels, "stream": str(number)})
    found.measurements += shares(loads, flow.labels)


def _payloads(run: _Run, flow: _Flow) -> list[float]:
    """Return the received payload of each stream; empty where one is not known."""
    streams = _streams(run, flow)
    if not run.udp:
        loads = [_number(mapping(one.get("receiver")).get("bytes")) for one in streams]
    elif run.omit_s:
        return []  # the counts of 3.12 hold the omitted seconds too
    else:
        loads = [_udp_payload(mapping(one.get("udp"))) for one in streams]
    known = [load for load in loads if load is not None]
    return known if len(known) == len(loads) else []


def _udp_payload(stream: dict[str, object]) -> float | None:
    """Return what arrived of a stream; its ``bytes`` are always the sender's."""
    sent, packets = _number(stream.get("bytes")), _number(stream.get("packets"))
    lost = _number(stream.get("lost_packets"))
    if sent is None or not packets or lost is None or lost > packets:
        return None
    return sent * (1 - lost / packets)


def _compare_with_intervals(flow: _Flow, found: _Found) -> None:
    """Doubt a run whose end says something else than its intervals."""
    metric = "send_rate" if flow.sending else "throughput"
    end, mean = _found_value(found, metric, flow), _mean_rate(flow.spans)
    if end is None or mean is None or abs(end - mean) <= _MISMATCH * max(mean, 1.0):
        return
    found.doubt(
        "interval-mismatch",
        f"the end says {metric} {end:.4g} bit/s, the intervals {mean:.4g} bit/s",
        "look at the intervals; run longer",
    )


def _found_value(found: _Found, metric: str, flow: _Flow) -> float | None:
    """Return the whole-run value of one direction, if it was found."""
    for one in reversed(found.measurements):  # the intervals stand first
        if one.metric == metric and one.start_s is None and one.labels == flow.labels:
            return one.value
    return None


def _streams(run: _Run, flow: _Flow) -> list[dict[str, object]]:
    """Return the end records of the streams of one direction."""
    streams = [mapping(one) for one in sequence(run.end.get("streams"))]
    if not run.bidir:
        return streams
    return [one for one in streams if _stream_sends(one) == flow.sending]


def _stream_sends(stream: dict[str, object]) -> bool:
    part = mapping(stream.get("udp")) or mapping(stream.get("sender"))
    return part.get("sender") is True


def _total(run: _Run, name: str, flow: _Flow) -> dict[str, object]:
    return mapping(run.end.get(name + flow.suffix))


def _rate(total: dict[str, object]) -> float | None:
    """Return bit/s from bytes and seconds; 3.0 prints only six digits of the rate."""
    size, seconds = _number(total.get("bytes")), _number(total.get("seconds"))
    if size is not None and seconds:
        return _number(size * 8 / seconds)
    return _number(total.get("bits_per_second"))


def _mean_rate(spans: _Spans) -> float | None:
    """Return the rate over all intervals, weighted by their time."""
    return spans.size * 8 / spans.seconds if spans.seconds > 0 else None


def _workload(run: _Run) -> dict[str, str | int | float | None]:
    test = run.test
    protocol = test.get("protocol")
    target = _number(test.get("target_bitrate", run.start.get("target_bitrate")))
    direction = "reverse" if test.get("reverse") else "forward"
    return {
        "protocol": protocol if isinstance(protocol, str) else None,
        "direction": "bidir" if run.bidir or test.get("bidir") else direction,
        "streams": _size(test.get("num_streams")),
        "duration_s": _number(test.get("duration")) or None,  # 0 with -n and -k
        "omit_s": run.omit_s,
        "target_bitrate": target or None,
        "blksize": run.blksize,
        "mss": run.mss,
    }


def _facts(run: _Run) -> dict[str, object]:
    """Return what the file says about the machine; CPU is of the process alone."""
    names = ("system_info", "sock_bufsize", "sndbuf_actual", "rcvbuf_actual", "cookie")
    facts = {name: run.start[name] for name in names if name in run.start}
    if isinstance(facts.get("system_info"), str):
        facts["system_info"] = str(facts["system_info"]).strip()
    for name in ("tos", "bytes", "blocks"):
        if run.test.get(name):
            facts[name] = run.test[name]
    for name in ("sender_tcp_congestion", "receiver_tcp_congestion"):
        if name in run.end:
            facts[name] = run.end[name]
    if "cpu_utilization_percent" in run.end:
        facts["iperf3_process_cpu_percent"] = run.end["cpu_utilization_percent"]
    return {**facts, "seen_from": "server" if run.server else "client"}


def _version(run: _Run) -> str | None:
    version = run.start.get("version")
    return version.removeprefix("iperf ") if isinstance(version, str) else None


def _started_at(run: _Run) -> str | None:
    seconds = _number(mapping(run.start.get("timestamp")).get("timesecs"))
    if seconds is None or not 0 < seconds < 2**36:
        return None
    moment = datetime.fromtimestamp(int(seconds), tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _number(value: object) -> float | None:
    """Return a number that counts or measures something, not negative; else None."""
    kind = type(value)  # a bool is no number here; called for every value: kept short
    if kind is not float and kind is not int:
        return None
    return float(value) if 0 <= value < _ABSURD else None  # type: ignore[operator]


def _size(value: object) -> int | None:
    """Return a whole number of 1 or more; 0 stands for unknown."""
    number = _number(value)
    return int(number) if number is not None and number >= 1 else None
