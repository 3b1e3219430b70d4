"""Read netperf 2.4 to 2.7: its classic text and its omni output.

What the values are (netperf's manual and source, checked against byte and packet
counters of captured runs). All carry the label ``test``; all are of the whole run, of
the one stream of the test, payload only; netperf omits nothing.

``throughput``
    TCP_STREAM, TCP_MAERTS: payload over the time until the receiver had it all.
    UDP_STREAM: the second line, what the receiver got. 10^3 prefixes for bits, 2^10
    for Bytes (``-f K``), as in the head. Resolution: the last printed digit.
``send_rate``
    UDP_STREAM: the first line, what the sender handed to its kernel.
``loss``
    UDP_STREAM: messages sent and not received, of those sent.
``transaction_rate``, ``rtt_mean``
    RR, CRR, CC: transactions per second. The mean round trip of an RR test is 1 / rate
    where one transaction was open at a time (no burst), else absent.
``cpu_busy``
    Label ``side`` is local (netperf) or remote (netserver): the whole machine, from
    /proc/stat. The sentinel -1 is absent.
``cpu_per_byte``
    Service demand (us/KB, a KB is 1024 byte) with label ``side``: CPU seconds of the
    whole machine over the payload that side moved.

Interim results (``-D``) are intervals as the local side counts them: ``send_rate`` of
a sending test, ``throughput`` of MAERTS, ``transaction_rate`` of RR.

Omni output (``-k``, ``-o``, ``-O``; module ``omni``) gives the same, and of RR tests
the printed latencies. A request/response test in bits (``-f``) adds up both directions:
its transactions are the bits over both message sizes. ``-P 0`` prints neither test nor
unit: netperf's default, 10^6 bit/s, is taken and doubted; a single bare number
(``-P 0 -v 0``) is refused. Several results in a file carry the label ``document``.
"""

import re
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import netperf_text, omni
from patchstudy.loaders.documents import together
from patchstudy.loaders.netperf_lines import BANNER, FAILED, OMNI, interim, numbered
from patchstudy.records import Capture, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "column Throughput of the result (UDP_STREAM: of its second line); omni: "
        "THROUGHPUT in THROUGHPUT_UNITS"
    ),
    "send_rate": (
        'UDP_STREAM: column Throughput of the first line; an interval: "Interim '
        'result" of a sending test'
    ),
    "loss": "UDP_STREAM: messages of the second line of those of the first",
    "transaction_rate": 'column Trans. Rate per sec; an interval: "Interim result"',
    "rtt_mean": (
        "1 / transaction_rate where one transaction is open at a time; omni: "
        "MEAN_LATENCY"
    ),
    "rtt_p50": "omni: P50_LATENCY",
    "rtt_p99": "omni: P99_LATENCY",
    "cpu_busy": "columns Utilization (omni: LOCAL_CPU_UTIL, REMOTE_CPU_UTIL)",
    "cpu_per_byte": (
        "columns Service Demand, us/KB of 1024 byte (omni: LOCAL_SD, REMOTE_SD)"
    ),
    "retransmits": "omni: LOCAL_TRANSPORT_RETRANS",
}
_KEYVAL: Final = re.compile(
    r"^(?:NETPERF_INTERIM_RESULT\[0\]|THROUGHPUT(?:_UNITS)?|ELAPSED_TIME|LOCAL_CPU_UTIL)="
)
_DEBUG: Final = "resolve_host called with host "
_LONE: Final = re.compile(r"^\s*\d{1,15}\.\d\d\s*$")


def sniff(raw: RawFile) -> bool:
    """Say whether the text has netperf's banner, an error of it, or its bare rows."""
    lines = [line for _number, line in numbered(raw.head) if line.strip()]
    marks = (BANNER, OMNI, _KEYVAL)
    if any(mark.match(line) for line in lines for mark in marks):
        return True
    if lines and FAILED.match(lines[0]):
        names = ("netserver", "netperf", "establish_control could not")
        return any(name in raw.head for name in names)
    if len(lines) == 1 and _LONE.match(lines[0]):
        return True
    rows = [line for line in lines if not interim(line)]
    if len(rows) == 1 and omni.is_bare(rows[0]):
        return True
    return 0 < len(rows) <= 64 and netperf_text.family(rows) is not None


def load(raw: RawFile) -> Capture:
    """Read the output of one test or of several.

    Raises
    ------
    CaptureError
        If the output is a bare number, or is cut.
    """
    captures = [one for piece in _pieces(raw) for one in _captures(raw, piece)]
    if not captures:
        raise CaptureError(raw.path, "netperf's result is missing; was it cut short?")
    return together(captures)


def _pieces(raw: RawFile) -> list[list[tuple[int, str]]]:
    """Return the lines of each banner; those before the first belong to it."""
    lines = list(numbered(raw.text))
    banners = (BANNER, OMNI)
    starts = [
        at
        for at, (_number, line) in enumerate(lines)
        if any(banner.match(line) for banner in banners)
    ]
    ends = [*starts[1:], len(lines)]
    return [
        lines[0 if start in starts[:1] else start : end]
        for start, end in zip(starts or [0], ends, strict=True)
    ]


def _captures(raw: RawFile, lines: list[tuple[int, str]]) -> list[Capture]:
    """Return what one banner's lines, or lines without a banner, say."""
    told = [(number, line) for number, line in lines if line.strip()]
    if debug := [number for number, line in told if line.startswith(_DEBUG)]:
        problem = "netperf's debug output (-d) is not read; run it without -d"
        raise CaptureError(raw.path, problem, where=str(debug[0]))
    rest = [one for one in told if not BANNER.match(one[1])]
    if len(rest) == 1 and _LONE.match(rest[0][1]):
        raise CaptureError(
            raw.path,
            f"a bare number ({rest[0][1].strip()}): unit and time are not in the file;"
            f" {netperf_text.ADVICE}",
            where=str(rest[0][0]),
        )
    if omni.is_omni(lines) or _columns(lines):
        return [omni.read(raw, lines)]
    if any(BANNER.match(line) or FAILED.match(line) for _n, line in lines):
        return netperf_text.read(raw, lines)
    return netperf_text.read_bare(raw, told)


def _columns(lines: list[tuple[int, str]]) -> bool:
    """Say whether below a banner stand the columns of ``-O``, not a classic head."""
    texts = [line for _number, line in lines]
    if not any(map(BANNER.match, texts)) or any(map(netperf_text.HEAD.match, texts)):
        return False
    return any(re.search(r"\bThroughput\b", line) for line in texts)
