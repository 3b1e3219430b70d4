"""Read the text of h2load (nghttp2).

What the values are (``src/h2load.cc`` of nghttp2 and captured runs); all are of the
whole run:

``transaction_rate``
    Finished requests per second as printed.
``errors``
    Failed requests (errored and timed out among them), of all requests.
``throughput``
    Bytes of ``data``, the bodies, over the run's time; the ``total`` of the traffic can
    lie below it with HTTP/1.1. Printed sizes are 2^10, the numbers in brackets bytes.
``rtt_mean``, ``rtt_p50``, ``rtt_p99``
    Label ``of`` is ``request``: ``time for request``, from sending it to the end of the
    answer. Absent where no request succeeded. Quantiles are printed by newer versions
    only (seen in 1.70: a table with median, p95, p99).
"""

import re
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, last_digit
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "transaction_rate": 'line "finished in": req/s',
    "errors": 'line "requests": failed',
    "throughput": 'line "traffic": bytes of data over the time of "finished in"',
    "rtt_mean": 'line "time for request" (newer: "request"): mean',
    "rtt_p50": 'line "request": median',
    "rtt_p99": 'line "request": p99',
}
_HEAD: Final = re.compile(r"^starting benchmark\.\.\.$|^spawning thread #\d+: ")
_SPAWN: Final = re.compile(r"^spawning thread #\d+: (\d{1,9}) total client")
_PROTOCOL: Final = re.compile(r"^Application protocol: (\S+)$")
_FINISHED: Final = re.compile(r"^finished in (\S+), (\S+) req/s, (\S+)/s$")
_REQUESTS: Final = re.compile(
    r"^requests: (\d{1,15}) total, (\d{1,15}) started, (\d{1,15}) done,"
    r" (\d{1,15}) succeeded, (\d{1,15}) failed, (\d{1,15}) errored, (\d{1,15}) timeout$"
)
_TRAFFIC: Final = re.compile(r"^traffic: .*\((\d{1,18})\) data$")
_TIME: Final = re.compile(r"^time for request: +(\S+) +(\S+) +(\S+) +(\S+) +\S+%$")
#: Of newer versions: min, max, median, p95, p99, mean, sd, within one sd.
_COLUMNS: Final = re.compile(
    r"^request +: +\S+ +\S+ +(?P<rtt_p50>\S+) +\S+ +(?P<rtt_p99>\S+)"
    r" +(?P<rtt_mean>\S+) +\S+ +\S+%$"
)
_SECONDS: Final = re.compile(r"(\d{1,15}(?:\.\d+)?)(us|ms|s)")
_FACTOR: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATE: Final = re.compile(r"\d{1,15}(?:\.\d+)?")
_FAILED: Final = re.compile(
    r"^(?:getaddrinfo\(\) failed|Unable to |connection failed|-\w: )"
)


def sniff(raw: RawFile) -> bool:
    """Say whether it has h2load's first lines or its summary."""
    return any(_HEAD.match(line) or _FINISHED.match(line) for line in plain_head(raw))


def load(raw: RawFile) -> Capture:
    """Read one run of h2load.

    Raises
    ------
    CaptureError
        If the summary is missing, or there are several.
    """
    lines = list(plain(raw.text))
    finished, requests = _all(_FINISHED, lines), _all(_REQUESTS, lines)
    fault = None if finished else _fault(lines)
    if fault is None and len(finished) * len(requests) != 1:
        cut = "h2load's summary is missing; was it cut short?"
        several = "several runs in one file; save each in a file of its own"
        raise CaptureError(raw.path, several if len(finished) > 1 else cut)
    reading = Reading()
    facts: dict[str, object] = {}
    workload: dict[str, str | int | float | None] = {"protocol": "TCP"}
    workload["direction"] = "reverse"
    if fault is None:
        seconds = _seconds(raw, finished[0][1])[0]
        workload["duration_s"] = seconds
        facts = _results(raw, lines, seconds, reading)
    if spawned := _all(_SPAWN, lines):
        workload["streams"] = sum(int(one[1]) for one in spawned)
    if protocol := _all(_PROTOCOL, lines):
        facts["application_protocol"] = protocol[0][1]
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="h2load",
        workload=workload,
        measurements=tuple(reading.measurements),
        facts=facts,
        caveats=tuple(reading.caveats),
        error=fault,
    )


def _all(pattern: re.Pattern[str], lines: list[tuple[int, str]]) -> list[re.Match[str]]:
    return [match for _number, line in lines if (match := pattern.match(line))]


def _fault(lines: list[tuple[int, str]]) -> Fault | None:
    for number, line in lines:
        if _FAILED.match(line):
            return Fault(text=line, where=str(number))
    return None


def _results(
    raw: RawFile, lines: list[tuple[int, str]], seconds: float, reading: Reading
) -> dict[str, object]:
    """Add the values of the summary; return the facts."""
    text = _all(_FINISHED, lines)[0][2]
    if not _RATE.fullmatch(text):
        raise CaptureError(raw.path, f"{text!r} is not a rate with a decimal point")
    names = ("total", "started", "done", "succeeded", "failed", "errored", "timeout")
    counts = {
        name: int(one)
        for name, one in zip(names, _all(_REQUESTS, lines)[0].groups(), strict=True)
    }
    reading.whole("transaction_rate", float(text), resolution=last_digit(text))
    reading.whole("errors", counts["failed"], exposure=counts["total"] or None)
    if counts["failed"]:
        reading.doubt(
            "requests-failed",
            f"{counts['failed']} of {counts['total']} requests failed",
            "look at the server; run it again",
        )
    traffic = _all(_TRAFFIC, lines)
    moved = int(traffic[0][1]) if traffic else None
    if moved is not None and seconds > 0:
        reading.rate("throughput", moved * 8 / seconds)
    if counts["succeeded"]:
        _times(raw, lines, reading)
    else:
        reading.note("rtt-absent", "no request succeeded; its time is absent")
    return {"requests": counts, "data_byte": moved}


def _times(raw: RawFile, lines: list[tuple[int, str]], reading: Reading) -> None:
    """Add the time of a request: its mean, of newer versions quantiles too."""
    found: dict[str, str] = {}
    if told := _all(_TIME, lines):
        found["rtt_mean"] = told[0][3]
    elif told := _all(_COLUMNS, lines):
        found = {name: one for name, one in told[0].groupdict().items() if one}
    else:
        reading.note("rtt-absent", "the file has no time of a request")
    for metric, text in found.items():
        value, last = _seconds(raw, text)
        reading.whole(metric, value, {"of": "request"}, resolution=last)


def _seconds(raw: RawFile, text: str) -> tuple[float, float]:
    """Return the seconds of a duration and what its last digit means."""
    match = _SECONDS.fullmatch(text)
    if not match:
        raise CaptureError(raw.path, f"{text!r} is not a time in us, ms or s")
    return float(match[1]) * _FACTOR[match[2]], last_digit(match[1]) * _FACTOR[match[2]]
