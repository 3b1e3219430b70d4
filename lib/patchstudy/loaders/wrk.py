"""Read the text of wrk and wrk2.

What the values are (wrk's ``src/wrk.c`` and captured runs); all are of the whole run:

``transaction_rate``
    Answers per second as printed. wrk counts every answer, a 404 too; ``errors`` tells
    how many were none of 2xx or 3xx, and a caveat follows.
``errors``
    ``Non-2xx or 3xx responses`` and all socket errors, of the requests.
``throughput``
    Bytes that wrk read over the measured time, header lines of HTTP included. KB, MB
    and so on are 2^10, 2^20.
``rtt_mean``, ``rtt_p50``, ``rtt_p99``
    Label ``of`` is ``request``: from sending a request to the last byte of its answer.
    The mean is that of ``Thread Stats``; the quantiles are printed with ``--latency``
    and read from 20 and 1000 requests on.
"""

import re
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, last_digit
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "transaction_rate": 'the line "Requests/sec"',
    "throughput": 'the line "Transfer/sec", KB and so on of 1024, times 8',
    "errors": 'the lines "Non-2xx or 3xx responses" and "Socket errors"',
    "rtt_mean": 'the line "Latency" of "Thread Stats", column Avg',
    "rtt_p50": 'the line "50%" of "Latency Distribution"',
}
_HEAD: Final = re.compile(r"^Running (\S+) test @ (\S+)$")
_FAILED: Final = re.compile(
    r"^(?:unable to (?:connect to|resolve) |invalid URL: |unable to create )"
)
_SIZES: Final = re.compile(r"^ +(\d{1,9}) threads? and (\d{1,9}) connections?$")
_LATENCY: Final = re.compile(r"^ +Latency +(\S+) +(\S+) +(\S+) +(\S+)%$")
_QUANTILE: Final = re.compile(r"^ +(\d+(?:\.\d+)?)% +(\S+)$")
_REQUESTS: Final = re.compile(r"^ +(\d{1,15}) requests in (\S+), (\S+) read$")
_BAD: Final = re.compile(r"^ +Non-2xx or 3xx responses: (\d{1,15})$")
_SOCKET: Final = re.compile(
    r"^ +Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$"
)
_RATE: Final = re.compile(r"^Requests/sec: +(\S+)$")
_TRANSFER: Final = re.compile(r"^Transfer/sec: +(\S+)$")
_VALUE: Final = re.compile(r"(\d{1,15}(?:\.\d+)?)([A-Za-z]*)")
_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES: Final = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_OF: Final = {"of": "request"}
_ENOUGH: Final = {50.0: ("rtt_p50", 20), 99.0: ("rtt_p99", 1000)}


def sniff(raw: RawFile) -> bool:
    """Say whether it has wrk's first line, or is its error."""
    lines = plain_head(raw)
    if any(_HEAD.match(line) for line in lines):
        return True
    return bool(lines) and len(lines) < 4 and bool(_FAILED.match(lines[0]))


def load(raw: RawFile) -> Capture:
    """Read one run of wrk.

    Raises
    ------
    CaptureError
        If the summary is missing, or there are several.
    """
    page = _Page(raw)
    reading = Reading()
    fault = page.fault()
    facts: dict[str, object] = {}
    if fault is None:
        facts = _results(page, reading)
    head, sizes = page.one(_HEAD), page.one(_SIZES)
    workload: dict[str, str | int | float | None] = {"protocol": "TCP"}
    workload["direction"] = "reverse"
    if requests := page.one(_REQUESTS):
        workload["duration_s"] = page.scaled(requests[2], _SECONDS)[0]
    if sizes:
        workload |= {"threads": int(sizes[1]), "streams": int(sizes[2])}
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="wrk",
        workload=workload,
        measurements=tuple(reading.measurements),
        facts=facts | ({"url": head[2]} if head else {}),
        caveats=tuple(reading.caveats),
        error=fault,
    )


class _Page:
    """The lines of one run."""

    def __init__(self, raw: RawFile) -> None:
        self.raw = raw
        self.lines = list(plain(raw.text))

    def all(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        """Return the lines of this pattern."""
        return [match for _n, line in self.lines if (match := pattern.match(line))]

    def one(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the line of this pattern; several are several runs."""
        found = self.all(pattern)
        if len(found) > 1:
            problem = "several runs in one file; save each in a file of its own"
            raise CaptureError(self.raw.path, problem)
        return found[0] if found else None

    def fault(self) -> Fault | None:
        """Say what stopped wrk, where it does."""
        for number, line in self.lines:
            if _FAILED.match(line):
                return Fault(text=line, where=str(number))
        return None

    def scaled(
        self, text: str, units: dict[str, float] | dict[str, int]
    ) -> tuple[float, float]:
        """Return a number in its base unit and what its last digit means."""
        match = _VALUE.fullmatch(text)
        if not match or match[2] not in units:
            problem = f"{text!r} is not a number with one of {', '.join(units)}"
            raise CaptureError(self.raw.path, problem)
        factor = units[match[2]]
        return float(match[1]) * factor, last_digit(match[1]) * factor


def _results(page: _Page, reading: Reading) -> dict[str, object]:
    """Add the values of the summary; return the facts."""
    rate, transfer = page.one(_RATE), page.one(_TRANSFER)
    requests = page.one(_REQUESTS)
    if not rate or not requests:
        problem = "wrk's summary is missing; was it cut short?"
        raise CaptureError(page.raw.path, problem)
    count = int(requests[1])
    value, last = page.scaled(rate[1], {"": 1})
    reading.whole("transaction_rate", value, resolution=last)
    if value == 0:
        reading.doubt("zero-transaction-rate", "no request was answered")
    if transfer:
        moved, last = page.scaled(transfer[1], _BYTES)
        reading.rate("throughput", moved * 8, resolution=last * 8)
    bad = page.one(_BAD)
    sockets = page.one(_SOCKET)
    _errors(int(bad[1]) if bad else 0, sockets, count, reading)
    _latency(page, count, reading)
    facts: dict[str, object] = {"requests": count}
    facts["non_2xx_3xx"] = int(bad[1]) if bad else 0
    if sockets:
        names = ("connect", "read", "write", "timeout")
        facts["socket_errors"] = dict(
            zip(names, map(int, sockets.groups()), strict=True)
        )
    return facts


def _errors(
    bad: int, sockets: re.Match[str] | None, count: int, reading: Reading
) -> None:
    """Add the errors; those that wrk does not print are none."""
    broken = sum(map(int, sockets.groups())) if sockets else 0
    reading.whole("errors", bad + broken, exposure=count or None)
    if bad:
        reading.doubt(
            "non-2xx",
            f"{bad} of {count} answers were errors of HTTP; the rate counts them",
            "look at what the server answers; run it again",
        )
    if broken:
        reading.doubt(
            "socket-errors",
            f"{broken} socket errors",
            "look at the server; run it again",
        )


def _latency(page: _Page, count: int, reading: Reading) -> None:
    """Add the mean and the printed quantiles of a request's time."""
    told = page.one(_LATENCY)
    if told and count:
        mean, last = page.scaled(told[1], _SECONDS)
        reading.whole("rtt_mean", mean, _OF, resolution=last)
    first = {float(one[1]): one for one in reversed(page.all(_QUANTILE))}
    for match in reversed(first.values()):  # wrk2 -U prints uncorrected ones below
        metric, enough = _ENOUGH.get(float(match[1]), ("", 0))
        if metric and count >= enough:
            value, last = page.scaled(match[2], _SECONDS)
            reading.whole(metric, value, _OF, resolution=last)
