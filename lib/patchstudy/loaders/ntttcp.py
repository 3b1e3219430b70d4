"""Read the XML and the text of Microsoft's NTttcp 5.x for Windows.

What the values are (NTttcp's documentation; checked by recomputing bytes / time): MB
and MEG are 2^20 byte, KB 2^10, mbps 10^6 bit/s, payload, of all threads, warm-up and
cool-down left out. The same element name stands for several units and for single
threads: the ``metric`` attribute and the place in the tree tell them apart.

``throughput``
    Total bytes over the time: of a receiver, and of a TCP sender (a note says so).
    With label ``stream``: one thread.
``send_rate``
    Of a UDP sender.
``retransmits``
    TCP segments that the machine sent again, of all it sent; of a sender only.
``errors``
    As NTttcp counts them.
``cpu_busy``
    Label ``side`` = ``local``: the whole machine that wrote the file.

Only the XML tells which side wrote it; the text is taken for the sender's or the
receiver's by the packets that the machine sent and received, and says so.
"""

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, byte, number
from patchstudy.records import Capture, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "total_bytes (MB of 2^20) over realtime, of a receiver or a TCP sender; by "
        "stream: of its thread"
    ),
    "send_rate": "the same of a UDP sender",
    "retransmits": "packets_retransmitted",
    "errors": "errors",
    "cpu_busy": "cpu, percent",
    "fairness": "Jain's index of the threads' throughput",
    "flow_share_min": "the smallest of the same over their mean",
    "starved_flows": "part of the same below a tenth of their mean",
}
_XML: Final = re.compile(r"<(ntttcp[rs])\s+computername=")
_TEXT: Final = re.compile(
    r"Bytes\(MEG\)\s+realtime\(s\)\s+Avg Frame Size"
    r"|^Thread\s+Time\(s\)\s+Throughput\(KB/s"
)
_ENTITY: Final = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_NUMBERS: Final = re.compile(r"^\s*\d+(?:\.\d+)?(?:\s+\d+(?:\.\d+)?)*\s*$")
_CLEAR: Final = 1.2
_HEADS: Final = (
    "Bytes(MEG)",
    "realtime(s)",
    "Avg Frame Size",
    "Throughput(MB/s)",
    "Throughput(Buffers/s)",
    "Cycles/Byte",
    "Buffers",
    "DPCs(count/s)",
    "Pkts(num/DPC)",
    "Intr(count/s)",
    "Pkts(num/intr)",
    "Packets Sent",
    "Packets Received",
    "Retransmits",
    "Errors",
    "Avg. CPU %",
)


def sniff(raw: RawFile) -> bool:
    """Say whether the text holds NTttcp's XML or the heads of its tables."""
    if _XML.search(raw.head):
        return True
    return any(_TEXT.search(line) for line in plain_head(raw))


def load(raw: RawFile) -> Capture:
    """Read the result of one side.

    Raises
    ------
    CaptureError
        If the XML is cut, or the totals are missing.
    """
    end = _from_xml(raw) if _XML.search(raw.text) else _from_text(raw)
    reading = Reading()
    _values(end, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ntttcp",
        tool_version=end.version,
        workload={
            "protocol": {True: "UDP", False: "TCP", None: None}[end.udp],
            "direction": None,
            "streams": len(end.threads) or None,
            "duration_s": end.seconds,
            "blksize": int(end.facts.pop("bufferLen", 0) or 0) or None,
        },
        measurements=tuple(reading.measurements),
        facts=end.facts,
        caveats=tuple(reading.caveats),
    )


@dataclass(slots=True, kw_only=True)
class _End:
    """What one side says of the whole run; None where it does not tell."""

    version: str | None
    receives: bool | None
    udp: bool | None
    size: float
    seconds: float
    printed: float | None
    threads: list[float]
    sent: float | None
    received: float | None
    retransmits: float | None
    errors: float | None
    cpu: float | None
    facts: dict[str, float | None]


def _from_xml(raw: RawFile) -> _End:
    """Read the elements of ``ntttcps`` or ``ntttcpr``."""
    opening = _XML.search(raw.text)
    if opening is None or _ENTITY.search(raw.text):
        raise CaptureError(raw.path, "not the XML of NTttcp")
    name = opening[1]
    closing = raw.text.find(f"</{name}>")
    try:
        root = ET.fromstring(raw.text[opening.start() : closing + len(name) + 3])
    except ET.ParseError as error:
        raise CaptureError(
            raw.path, f"not NTttcp's XML ({error}); was it cut short?"
        ) from error
    threads = [_of(one, "throughput", "mbps") for one in root.findall("thread")]
    return _End(
        version=root.get("version"),
        receives=name == "ntttcpr",
        udp=_flag(root.findtext("parameters/udp")),
        size=_needed(raw, root, "total_bytes", "MB") * 2**20,
        seconds=_needed(raw, root, "realtime", "s"),
        printed=_of(root, "throughput", "mbps"),
        threads=[one * 1e6 for one in threads if one is not None],
        sent=_of(root, "packets_sent"),
        received=_of(root, "packets_received"),
        retransmits=_of(root, "packets_retransmitted"),
        errors=_of(root, "errors"),
        cpu=_of(root, "cpu", "%"),
        facts={
            name: _of(root, name)
            for name in ("bufferLen", "interrupts", "dpcs", "cycles", "avg_frame_size")
            if _of(root, name) is not None
        },
    )


def _of(root: ET.Element, name: str, metric: str | None = None) -> float | None:
    """Return the number of the child of this name and ``metric`` attribute."""
    for child in root.findall(name):
        if metric is None or child.get("metric") == metric:
            return number((child.text or "").strip())
    return None


def _needed(raw: RawFile, root: ET.Element, name: str, metric: str) -> float:
    value = _of(root, name, metric)
    if value is None:
        raise CaptureError(
            raw.path, f"NTttcp's XML has no {name} in {metric}", where=root.tag
        )
    return value


def _flag(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get((text or "").strip().lower())


def _from_text(raw: RawFile) -> _End:
    """Read the tables: a line of heads, a line of ``=``, a line of numbers."""
    lines = [line for _number, line in plain(raw.text) if line.strip()]
    cells, threads = _cells(lines)
    size, seconds = cells.get("Bytes(MEG)"), cells.get("realtime(s)")
    if size is None or seconds is None:
        raise CaptureError(
            raw.path, "NTttcp's totals (Bytes(MEG), realtime) are missing; was it cut?"
        )
    sent, received = cells.get("Packets Sent"), cells.get("Packets Received")
    receives = udp = None
    if sent is not None and received is not None:
        if received > _CLEAR * sent:
            receives, udp = True, (True if sent == 0 else None)
        elif sent > _CLEAR * received:
            receives, udp = False, (True if received == 0 else None)
    version = re.search(r"\bVersion (\d[\d.]*)", raw.text)
    printed = cells.get("Throughput(MB/s)")
    return _End(
        version=version[1] if version else None,
        receives=receives,
        udp=udp,
        size=byte(size, "M"),
        seconds=seconds,
        printed=None if printed is None else byte(printed, "M") * 8e-6,
        threads=threads,
        sent=sent,
        received=received,
        retransmits=cells.get("Retransmits"),
        errors=cells.get("Errors"),
        cpu=cells.get("Avg. CPU %"),
        facts={},
    )


def _cells(lines: list[str]) -> tuple[dict[str, float], list[float]]:
    """Return the totals by their heads, and the rate of each thread in bit/s."""
    cells: dict[str, float] = {}
    threads: list[float] = []
    heads: list[str] = []
    for line in lines:
        if not _NUMBERS.match(line):
            heads = _heads(line) or heads
            continue
        values = [float(one) for one in line.split()]
        if heads == ["Thread"] and len(values) == 4:
            threads.append(byte(values[2], "K") * 8)
        elif len(values) == len(heads):
            cells |= dict(zip(heads, values, strict=True))
    return cells, threads


def _heads(line: str) -> list[str]:
    """Return the names of a known table in their order; single blanks may part them."""
    if line.lstrip().startswith("Thread"):
        return ["Thread"]
    rest, found = line, {}
    for name in sorted(_HEADS, key=len, reverse=True):
        at = re.search(rf"(?:^|(?<=\s)){re.escape(name)}(?=\s|$)", rest)
        if at:
            found[at.start()] = name
            rest = rest[: at.start()] + " " * len(name) + rest[at.end() :]
    return [found[at] for at in sorted(found)]


def _values(end: _End, reading: Reading) -> None:
    if end.seconds <= 0:
        reading.doubt("throughput-absent", "the run has no time")
        return
    rate = end.size * 8 / end.seconds
    metric = "send_rate" if end.udp and end.receives is False else "throughput"
    reading.rate(metric, rate)
    if metric == "throughput":
        reading.streams(end.threads)
        _whose(end, reading)
    if end.printed and abs(end.printed * 1e6 - rate) > 0.01 * rate:
        reading.doubt(
            "totals-differ",
            f"{end.printed:.4g} Mbit/s are printed, bytes / time give"
            f" {rate * 1e-6:.4g} Mbit/s; the bytes are used",
        )
    if end.retransmits is not None and not end.udp and end.receives is False:
        reading.whole("retransmits", end.retransmits, exposure=end.sent or None)
    reading.whole("errors", end.errors)
    if end.cpu is not None and end.cpu <= 100:
        reading.whole("cpu_busy", end.cpu / 100, {"side": "local"})


def _whose(end: _End, reading: Reading) -> None:
    if end.receives is None:
        reading.doubt(
            "side-unknown",
            "the text does not tell whether the sender or the receiver wrote it",
            "let NTttcp write XML (-xml)",
        )
    elif not end.receives:
        reading.note("counted-by-sender", "the sender's figures; TCP delivered them")
