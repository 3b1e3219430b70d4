"""Read the text of NTTTCP for Linux 1.x.

What the values are (``print_total_result`` of its source; rates have prefixes of 10^3):

``throughput``
    ``total bytes`` over ``test duration``: payload that this side wrote or read,
    without warm-up and cool-down. A sender (it tells of ``connections created``) counts
    what it put into its sockets: of UDP that is ``send_rate``, else it says so in a
    caveat. The protocol is told with ``-V`` alone.
``retransmits``
    ``retrans segs``, of the whole system during the test.
``cpu_busy``, ``cpu_softirq``
    Of the whole machine, all but idle and iowait; mean over the CPUs.

``cpu busy (all)`` is the sum over the CPUs and stands in ``facts``. The clock has no
date and no zone.
"""

import re
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.documents import together
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, bit, last_digit
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": 'the lines "total bytes" and "test duration"',
    "retransmits": 'line "retrans segs"',
    "cpu_busy": 'the lines "idle" and "iowait": 100 % less both',
    "cpu_softirq": 'line "softirq"',
}
_HEAD: Final = re.compile(r"^NTTTCP for Linux (\d[\w.]*)\s*$")
_FIELD: Final = re.compile(
    r"^\d\d:\d\d:\d\d INFO: +(\w[\w ()/]*\w\)?) *:"
    r" *(\d{1,18}+(?:\.\d++)?+)(\S*)(?: seconds)?$"
)
_FAILED: Final = re.compile(r"^\d\d:\d\d:\d\d ERR ?: +(.*)$")
_RATE: Final = re.compile(r"([KMGT]?)bps")
_CREATED: Final = re.compile(r"INFO: \d+ connections created in ")
_PROTOCOL: Final = re.compile(r"^protocol:\s+(TCP|UDP)\b")


def sniff(raw: RawFile) -> bool:
    """Say whether a line has the tool's name and version."""
    return any(_HEAD.match(line) for line in plain_head(raw))


def load(raw: RawFile) -> Capture:
    """Read one run or several in a row.

    Raises
    ------
    CaptureError
        If the totals are missing and no error is told.
    """
    runs: list[list[tuple[int, str]]] = []
    for number, line in plain(raw.text):
        if _HEAD.match(line):
            runs.append([])
        if runs:
            runs[-1].append((number, line))
    if not runs:
        problem = "the line with the version of NTTTCP is missing; is it damaged?"
        raise CaptureError(raw.path, problem)
    return together([_capture(raw, run) for run in runs])


def _capture(raw: RawFile, run: list[tuple[int, str]]) -> Capture:
    lines = [line for _number, line in run]
    fields = {m[1]: (m[2], m[3]) for line in lines if (m := _FIELD.match(line))}
    fault = next(
        (
            Fault(text=m[1], where=str(n))
            for n, line in run
            if (m := _FAILED.match(line))
        ),
        None,
    )
    reading = Reading()
    if {"test duration", "total bytes", "throughput"} <= fields.keys():
        fault = None
        _values(raw, fields, lines, reading)
    elif fault is None:
        problem = "the totals of ntttcp are missing; was it cut short?"
        raise CaptureError(raw.path, problem, where=str(run[-1][0]))
    seconds = fields.get("test duration")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ntttcp",
        tool_version=next(m[1] for line in lines if (m := _HEAD.match(line))),
        workload={
            "protocol": _protocol(lines),
            "direction": None,
            "streams": None,
            "duration_s": float(seconds[0]) if seconds else None,
        },
        measurements=tuple(reading.measurements),
        facts={
            name: float(fields[name][0])
            for name in ("cpu cores", "cpu busy (all)", "cycles/byte")
            if name in fields
        },
        caveats=tuple(reading.caveats),
        error=fault,
    )


def _protocol(lines: list[str]) -> str | None:
    return next((m[1] for line in lines if (m := _PROTOCOL.match(line))), None)


def _values(
    raw: RawFile,
    fields: dict[str, tuple[str, str]],
    lines: list[str],
    reading: Reading,
) -> None:
    printed, unit = fields["throughput"]
    seconds, size = float(fields["test duration"][0]), float(fields["total bytes"][0])
    prefix = _RATE.fullmatch(unit)
    if not prefix or seconds <= 0:
        raise CaptureError(raw.path, f"throughput {printed}{unit} has no known unit")
    rate, last = size * 8 / seconds, bit(last_digit(printed), prefix[1])
    if abs(rate - bit(float(printed), prefix[1])) > last + 0.01 * rate:
        raise CaptureError(raw.path, f"{size:.0f} bytes are not {printed}{unit}")
    sends = any(_CREATED.search(line) for line in lines)
    protocol = _protocol(lines)
    metric = "send_rate" if sends and protocol == "UDP" else "throughput"
    reading.rate(metric, rate, resolution=last)
    if sends and protocol == "TCP":
        text = "a TCP sender counts what it put into its sockets"
        reading.note("counted-by-sender", text)
    elif sends and protocol is None:
        reading.doubt(
            "counted-by-sender",
            "the sender counts what it put into its sockets; of UDP (-u), which the"
            " file does not tell, less may have arrived",
            "call ntttcp with -V, or keep the receiver's output",
        )
    if "retrans segs" in fields:
        reading.whole("retransmits", float(fields["retrans segs"][0]))
    if {"idle", "iowait", "softirq"} <= fields.keys():
        idle, wait, soft = (float(fields[n][0]) for n in ("idle", "iowait", "softirq"))
        reading.whole("cpu_busy", max(100 - idle - wait, 0.0) / 100, resolution=1e-4)
        reading.whole("cpu_softirq", soft / 100, resolution=1e-4)
