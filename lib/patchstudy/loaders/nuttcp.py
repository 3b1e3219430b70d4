"""Read what nuttcp 5 to 8 prints: brief text, ``-v``/``-b0`` blocks and ``-fparse``.

What the values are (nuttcp's source; checked against drop counters): payload, MB and KB
are 2^20 and 2^10 byte, Mbps 10^6 bit/s. nuttcp omits nothing.

``throughput``
    What the receiver got: the summary line (nuttcp takes the receiver's figures), in
    blocks the one of ``nuttcp-r``. Intervals (``-i``) are the receiver's too. In
    classic mode (no server side) there is the transmitter alone: absent.
``send_rate``
    The block of ``nuttcp-t`` where there are blocks.
``loss``
    UDP: drop / pkt of the summary, in blocks of ``nuttcp-r``.
``retransmits``
    ``retrans`` of the summary; absent with ``-N`` and from systems that do not count.
``rtt_mean``
    Absent: ``msRTT`` is that of the handshake; it stands in ``facts``.

CPU figures are those of the nuttcp processes: facts, never ``cpu_busy``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.documents import together
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, last_digit
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "Mbps of the summary, in blocks of nuttcp-r; an interval: Mbps of its line"
    ),
    "send_rate": "Mbps of the block nuttcp-t",
    "loss": "drop / pkt of the summary, in blocks of nuttcp-r",
    "retransmits": "retrans of the summary, in blocks of nuttcp-t",
}
_BRIEF: Final = re.compile(
    r"^(?:\S+: )?\s*(?P<size>\d{1,15}\.\d+) (?P<prefix>[KMG])B\s+/\s+"
    r"(?P<seconds>\d{1,9}\.\d+) sec\s+=\s+(?P<rate>\d{1,15}\.\d+)"
    r" (?P<unit>[KMG])bps(?P<rest>.*)$"
)
_PARSE: Final = re.compile(
    r"^megabytes=(?P<size>\d{1,15}\.\d+) (?P<span>real_sec|real_seconds)="
    r"(?P<seconds>\d{1,9}\.\d+) rate_Mbps=(?P<rate>\d{1,15}\.\d+)(?P<rest>.*)$"
)
_BLOCK: Final = re.compile(
    r"^nuttcp-(?P<side>[tr])(?:\d*): (?P<size>\d{1,15}\.\d+) (?P<prefix>[KMG])B in"
    r" (?P<seconds>\d{1,9}\.\d+) (?:real )?seconds = \d{1,9}\.?\d* KB/sec ="
    r" (?P<rate>\d{1,15}\.\d+) (?P<unit>[KMG])bps"
)
_BLOCK_PARSE: Final = re.compile(
    r"^nuttcp-(?P<side>[tr])(?:\d*): megabytes=(?P<size>\d{1,15}\.\d+)"
    r" real_seconds=(?P<seconds>\d{1,9}\.\d+) rate_KBps=\d{1,15}\.?\d*"
    r" rate_Mbps=(?P<rate>\d{1,15}\.\d+)"
)
_LINE: Final = re.compile(r"^nuttcp-[tr]\d*: ")
_FAILED: Final = re.compile(
    r"^nuttcp(?:-[tr]\d*)?: (?:v\d[\w.]*: )?(?:[Ee]rror|Fatal)\S* ?.*"
    r"|^invalid (?:format|verbose) option \".*|^nuttcp: \S.*"
)
_SUMMARY: Final = re.compile(r"%TX|tx_cpu=")
_DROPS: Final = re.compile(r"(-?\d{1,18}) / +(-?\d{1,18}) ~?drop/pkt")
_BLOCK_DROPS: Final = re.compile(
    r"^nuttcp-r\d*: (?:-?\d{1,18} / +-?\d{1,18} drop/pkt\b|drop=-?\d)"
)
_DROPS_PARSE: Final = re.compile(r"\bdrop=(-?\d{1,18}) pkt=(-?\d{1,18})")
_PREFIX: Final = {"K": 1e3, "M": 1e6, "G": 1e9}


def sniff(raw: RawFile) -> bool:
    """Say whether a line is one that only nuttcp prints."""
    patterns = (_BRIEF, _PARSE, _LINE, _FAILED)
    lines = plain_head(raw)
    return any(pattern.match(line) for line in lines for pattern in patterns)


def load(raw: RawFile) -> Capture:
    """Read the output of one test or of several in a row.

    Raises
    ------
    CaptureError
        If there is neither a result nor an error of nuttcp's.
    """
    tests = _tests(raw)
    if not tests:
        raise CaptureError(raw.path, "nuttcp's result is missing; was it cut short?")
    return together([_capture(raw, test) for test in tests])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A rate over some seconds, with the rest of its line."""

    side: str
    seconds: float
    rate: float
    resolution: float
    rest: str
    summary: bool

    def field(self, pattern: str) -> float | None:
        """Return the number that the pattern finds in the rest of the line."""
        found = re.search(pattern, self.rest)
        return float(found[1]) if found else None


@dataclass(slots=True)
class _Test:
    """The rows of one test."""

    rows: list[_Row]
    lines: list[str]
    error: Fault | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def _tests(raw: RawFile) -> list[_Test]:
    """Return the tests; a summary, a receiver's block or an error ends one."""
    tests: list[_Test] = []
    test = _Test(rows=[], lines=[])
    ended = False
    for number, line in plain(raw.text):
        row = _row(line)
        if ended and (row or _begins(line)):
            tests.append(test)
            test, ended = _Test(rows=[], lines=[]), False
        test.lines.append(line)
        if row:
            test.rows.append(row)
            ended = row.summary and _complete(test)
        elif _FAILED.match(line) and test.error is None:
            test.error = Fault(text=_reason(line), where=str(number))
    tests.append(test)
    return [one for one in tests if one.rows or one.error]


def _begins(line: str) -> bool:
    return bool(re.match(r"^nuttcp-[tr]\d*: v[\d.]+: socket", line))


def _complete(test: _Test) -> bool:
    """Say whether the summary is there; blocks come one of each side."""
    sides = [row.side for row in test.rows if row.side]
    return not sides or len(set(sides)) == 2


def _row(line: str) -> _Row | None:
    block = _BLOCK.match(line)
    if block:
        return _made(
            block, side=block["side"], summary=True, scale=_PREFIX[block["unit"]]
        )
    if parsed := _BLOCK_PARSE.match(line):
        return _made(parsed, side=parsed["side"], summary=True, scale=1e6)
    brief = _BRIEF.match(line)
    if brief:
        summary = bool(_SUMMARY.search(brief["rest"]))
        return _made(brief, side="", summary=summary, scale=_PREFIX[brief["unit"]])
    parse = _PARSE.match(line)
    if parse:
        return _made(parse, side="", summary=parse["span"] == "real_seconds", scale=1e6)
    return None


def _made(match: re.Match[str], *, side: str, summary: bool, scale: float) -> _Row:
    return _Row(
        side=side,
        seconds=float(match["seconds"]),
        rate=float(match["rate"]) * scale,
        resolution=last_digit(match["rate"]) * scale,
        rest=match.groupdict().get("rest") or "",
        summary=summary,
    )


def _reason(line: str) -> str:
    """Return the error without the name and the version of the tool."""
    return re.sub(r"^nuttcp\S*: (?:v\d[\w.]*: )?(?:[Ee]rror\S*:? )?", "", line).strip()


def _capture(raw: RawFile, test: _Test) -> Capture:
    reading = Reading()
    intervals = [row for row in test.rows if not row.summary]
    if test.rows and test.rows[-1].summary is False:
        reading.caveats.extend(line_end(raw))
    at = 0.0
    for row in intervals:
        span = (at, at := at + row.seconds)
        reading.interval("throughput", row.rate, span, resolution=row.resolution)
    if test.error is None:
        _whole_run(test, intervals, reading)
    version = re.search(r"^nuttcp-[tr]\d*: v(\d[\w.]*): ", test.text, re.MULTILINE)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="nuttcp",
        tool_version=version[1] if version else None,
        workload=_workload(test),
        measurements=tuple(reading.measurements),
        facts=_facts(test),
        caveats=tuple(reading.caveats),
        error=test.error,
    )


def _whole_run(test: _Test, intervals: Sequence[_Row], reading: Reading) -> None:
    """Add what the receiver's summary and the sender's block say."""
    ends = {row.side: row for row in test.rows if row.summary}
    sender, receiver = ends.get("t"), ends.get("r") or ends.get("")
    if sender:
        reading.rate("send_rate", sender.rate, resolution=sender.resolution)
    if receiver is None:
        reading.doubt(
            "cut-short",
            "the receiver's summary is missing, so what arrived in all is not known",
            "Keep the whole output of the tool.",
        )
        return
    reading.rate("throughput", receiver.rate, resolution=receiver.resolution)
    if "deprecated" in test.text and "transmitter side statistics" in test.text:
        reading.doubt("counted-by-sender", "classic mode: the transmitter's figures")
    spans = [(row.rate, row.seconds) for row in intervals]
    reading.bear_out("throughput", receiver.rate, spans)
    _counts(test, receiver, reading)


def _counts(test: _Test, end: _Row, reading: Reading) -> None:
    """Add loss and retransmits."""
    blocks = [line for line in test.lines if _BLOCK_DROPS.match(line)]
    drops = [one for one in map(_drops, [end.rest, *blocks]) if one]
    if drops:
        reading.loss(*drops[0])
    elif _udp(test):
        reading.note("loss-absent", "the file does not count the lost datagrams")
    block = re.search(
        r"^nuttcp-t\d*: retrans ?= ?(\d{1,15})(?: cwnd = .*)?$", test.text, re.MULTILINE
    )
    count = end.field(r"\bretrans=(\d{1,15})\b")
    if count is None:
        count = end.field(r"(\d{1,15}) retrans\b")
    if count is None and block:
        count = float(block[1])
    if count is not None:
        reading.whole("retransmits", count)
    elif not _udp(test):
        reading.note("retransmits-absent", "the file does not count retransmits")


def _drops(text: str) -> tuple[int, int] | None:
    """Return the lost and all datagrams."""
    found = _DROPS.search(text) or _DROPS_PARSE.search(text)
    return (int(found[1]), int(found[2])) if found else None


def _udp(test: _Test) -> bool:
    dropping = any(_drops(row.rest) or "%loss" in row.rest for row in test.rows)
    return dropping or bool(
        re.search(r"^nuttcp-[tr].*[ =]udp\b", test.text, re.MULTILINE)
    )


def _protocol(test: _Test) -> str | None:
    """Return UDP or TCP; None where the rows have neither drops nor anything of TCP."""
    if not test.rows:
        return None
    if _udp(test):
        return "UDP"
    told = any("retrans" in row.rest or "msRTT" in row.rest for row in test.rows)
    told = told or bool(re.search(r"^nuttcp-[tr].* tcp\b", test.text, re.MULTILINE))
    return "TCP" if told else None


def _workload(test: _Test) -> dict[str, str | int | float | None]:
    ends = [row for row in test.rows if row.summary]
    streams = re.search(r"\bnstream=(\d{1,6})\b", test.text)
    length = re.search(r"\bbuflen=(\d{1,9})\b", test.text)
    mss = re.search(r" mss=(\d{1,6})\b", test.text)
    return {
        "protocol": _protocol(test),
        "direction": None,  # -r leaves no mark
        "streams": int(streams[1]) if streams else None,
        "duration_s": ends[-1].seconds if ends else None,
        "blksize": int(length[1]) if length else None,
        "mss": int(mss[1]) if mss else None,
    }


def _facts(test: _Test) -> dict[str, object]:
    facts: dict[str, object] = {}
    end = next((row for row in reversed(test.rows) if row.summary), None)
    if end is None:
        return facts
    for name, patterns in {
        "handshake_rtt_ms": (
            r"(\d{1,9}\.?\d{0,9}) msRTT",
            r"\brtt_ms=(\d{1,9}\.?\d{0,9})",
        ),
        "nuttcp_sender_cpu_percent": (
            r"(\d{1,9}\.?\d{0,9}) %TX",
            r"\btx_cpu=(\d{1,9}\.?\d{0,9})",
        ),
        "nuttcp_receiver_cpu_percent": (
            r"(\d{1,9}\.?\d{0,9}) %RX",
            r"\brx_cpu=(\d{1,9}\.?\d{0,9})",
        ),
    }.items():
        values = [end.field(pattern) for pattern in patterns]
        known = [value for value in values if value is not None]
        facts |= {name: known[0]} if known else {}
    return facts
