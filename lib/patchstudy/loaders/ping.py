"""Read ping of iputils (old and new), BusyBox, FreeBSD and macOS.

What the values are (ping's sources and captured runs):

``loss``
    Requests without an answer of those sent, from the two counts: old iputils cuts the
    percentage to a whole number. Duplicates are no answers. More answers than requests
    are refused.
``rtt_mean``
    The ``avg`` of the last line, over all answers (iputils counts duplicates in, with
    a caveat); where that line is missing but every answer is printed with its time, the
    mean of those. Milliseconds, resolution 1 us.
``rtt_p50``, ``rtt_p99``
    Over the printed answers without duplicates, where all of them are printed: 20 at
    least, 1000 for 99 %.
``errors``
    The ``+N errors`` of the summary: ICMP errors and packets the sender refused.

``mdev`` and ``stddev`` are standard deviations of the round trip, no jitter: a fact.
All values are of the whole run. No number depends on the locale: a decimal comma is
refused. ping writes no date; the start is known where ``-D`` stamps the first answer
(seconds since 1970): that time less its round trip.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.ping_words import english, is_foreign
from patchstudy.loaders.reading import Reading
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "loss": (
        'the line "packets transmitted": 1 - received / transmitted, duplicates '
        "taken off"
    ),
    "rtt_mean": 'the line "min/avg/max": avg; else the mean of time= of all answers',
    "errors": '"+N errors" in the line "packets transmitted"',
}
_HEAD: Final = re.compile(
    r"^PING6?[ (].*(?:\bbytes of data|\bdata bytes|\bbytes\) \S+ --> \S+)"
)
_STATISTICS: Final = re.compile(r"^--- .*\bping6? statistics ---$")
_FAILED: Final = re.compile(
    r"^(?:ping[46]?: (?!local error|WARNING|Warning)\S[^ ]* .*?[a-z]{3}.*"
    r"|connect: \w[\w ]* is unreachable)$"
)
_COUNTS: Final = re.compile(
    r"^(?P<sent>\d{1,15}) packets transmitted, (?P<received>\d{1,15})"
    r"(?: packets)? received(?P<extra>.*?)"
    r"(?:, (?P<loss>[\d.,]+)% packet loss)?(?P<rest>,? .*)?$"
)
_DUPLICATES: Final = re.compile(r"\+?(\d{1,15}) duplicates")
_ERRORS: Final = re.compile(r"\+(\d{1,15}) errors")
_TIME: Final = re.compile(r"\btime (\d{1,15})ms")
_RTT: Final = re.compile(
    r"^(?:rtt|round-trip) +min/avg/max(?:/(?:mdev|std-?dev))? *= *(?P<times>\S+) ms"
)
_FROM: Final = " bytes from "
_REPLY: Final = re.compile(rf"{_FROM}.*\btime[=<](\S{{1,40}}) ?ms(.*)")
_SEQUENCE: Final = re.compile(r"\b(?:icmp_|icmp6_)?(?:seq|req)=\d")
_STAMPED: Final = re.compile(
    r"^\[(\d{9,10}\.\d{6})\] \d+ bytes from .*\bicmp_seq=1\b.*"
    r"\btime=(\d{1,6}(?:\.\d+)?) ms"
)
_PAYLOAD: Final = re.compile(r"[):] ?(\d{1,6})(?:\(\d+\))? (?:data )?bytes")
_SIZE6: Final = re.compile(r"^PING6\(\d+=40\+8\+(\d{1,6}) bytes\)")
_NUMBER: Final = re.compile(r"\d{1,12}(?:\.\d+)?")
_ENOUGH_FOR_P50: Final = 20
_ENOUGH_FOR_P99: Final = 1000
_MS: Final = 1e-3


def sniff(raw: RawFile) -> bool:
    """Say whether it has ping's first line, its summary, or is its error."""
    lines = plain_head(raw)
    if any(_HEAD.match(line) or _STATISTICS.match(line) for line in lines):
        return True
    if any(line.startswith("PING ") and is_foreign(line) for line in lines):
        return True
    return bool(lines) and len(raw.data) < 4096 and bool(_FAILED.match(lines[0]))


def load(raw: RawFile) -> Capture:
    """Read the output of one ping.

    Raises
    ------
    CaptureError
        If the summary is missing or cannot be, or if there are several.
    """
    lines = list(plain(raw.text))
    if any(is_foreign(line) for _number, line in lines):
        lines = [(number, english(line)) for number, line in lines]
    fault = _fault(lines)
    if fault:
        return Capture(path=raw.path, sha256=raw.digest, tool="ping", error=fault)
    page = _page(raw, lines)
    reading = Reading()
    _loss(page, reading)
    _times(page, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ping",
        started_at=_started_at(lines),
        workload=_workload(page),
        measurements=tuple(reading.measurements),
        facts=_facts(page),
        caveats=tuple(reading.caveats),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """What one ping printed; times in ms.

    Attributes
    ----------
    head
        Its first line; empty where it is missing.
    summary
        min, avg, max and the standard deviation where printed.
    replies
        Round trips of the printed answers, without duplicates.
    repeated
        Number of printed duplicates.
    rest
        The summary without the two counts and the percentage.
    """

    raw: RawFile
    head: str
    where: str
    sent: int
    received: int
    rest: str
    summary: dict[str, float]
    replies: list[float]
    repeated: int

    @property
    def duplicates(self) -> int:
        return _count(_DUPLICATES, self.rest) or self.repeated

    @property
    def errors(self) -> int:
        return _count(_ERRORS, self.rest)


def _fault(lines: list[tuple[int, str]]) -> Fault | None:
    """Say why ping sent nothing, where its first line tells."""
    told = [(number, line) for number, line in lines if line.strip()]
    if any(_STATISTICS.match(line) or _HEAD.match(line) for _number, line in told):
        return None
    for number, line in told:
        if _FAILED.match(line):
            return Fault(text=line, where=str(number))
    return None


def _page(raw: RawFile, lines: list[tuple[int, str]]) -> _Page:
    heads = [line for _number, line in lines if _HEAD.match(line)]
    found = [(n, match) for n, line in lines if (match := _COUNTS.match(line))]
    if len(found) > 1 or len(heads) > 1:
        problem = "several pings in one file; save each in a file of its own"
        raise CaptureError(raw.path, problem)
    if not found:
        raise CaptureError(raw.path, "ping's summary is missing; was it cut short?")
    number, counts = found[0]
    replies = list(_replies(raw, lines))
    page = _Page(
        raw=raw,
        head=heads[0] if heads else "",
        where=str(number),
        sent=int(counts["sent"]),
        received=int(counts["received"]),
        rest=f"{counts['extra']}{counts['rest'] or ''}",
        summary=_summary(raw, lines),
        replies=[time for time, again in replies if not again],
        repeated=sum(again for _time, again in replies),
    )
    _check(page, counts["loss"])
    return page


def _check(page: _Page, printed: str | None) -> None:
    """Refuse counts that cannot be, or that the percentage does not bear out."""
    if page.received > page.sent:
        problem = (
            f"{page.received} answers to {page.sent} requests: loss below 0; were"
            " duplicates, late or forged answers counted?"
        )
        raise CaptureError(page.raw.path, problem, where=page.where)
    if printed is None or page.sent == 0:
        return
    share = _number(page.raw, printed, page.where)
    lost = 100 * (page.sent - page.received) / page.sent
    if abs(share - lost) > 1:
        problem = (
            f"{printed} % loss does not fit {page.received} of {page.sent} packets"
        )
        raise CaptureError(page.raw.path, problem, where=page.where)


def _replies(
    raw: RawFile, lines: list[tuple[int, str]]
) -> Iterator[tuple[float, bool]]:
    """Yield the round trip of every printed answer, and whether it is a duplicate."""
    for number, line in lines:
        at = line.find(_FROM)
        match = _REPLY.match(line, at) if at > 0 and line[at - 1].isdigit() else None
        if match and _SEQUENCE.search(line, at, match.start(1)):
            yield _number(raw, match[1], str(number)), "DUP!" in match[2]


def _started_at(lines: list[tuple[int, str]]) -> str | None:
    """Return when the first request left, in UTC; None without its stamped answer."""
    for _, line in lines:
        match = _STAMPED.match(line)
        if match:
            moment = float(match[1]) - float(match[2]) * _MS
            return f"{datetime.fromtimestamp(moment, tz=UTC):%Y-%m-%dT%H:%M:%SZ}"
    return None


def _summary(raw: RawFile, lines: list[tuple[int, str]]) -> dict[str, float]:
    """Return min, avg, max and deviation in ms; a deviation of nan is left out."""
    for number, line in lines:
        match = _RTT.match(line)
        if not match:
            continue
        texts = match["times"].split("/")
        if not 3 <= len(texts) <= 4:
            problem = f"{line!r} is not min/avg/max of the round trips"
            raise CaptureError(raw.path, problem, where=str(number))
        named = zip(("min", "avg", "max", "deviation"), texts, strict=False)
        return {
            name: _number(raw, text, str(number))
            for name, text in named
            if not (name == "deviation" and text.lstrip("-") == "nan")
        }
    return {}


def _number(raw: RawFile, text: str, where: str) -> float:
    if not _NUMBER.fullmatch(text):
        problem = f"{text!r} is not a number with a decimal point"
        raise CaptureError(raw.path, problem, where=where)
    return float(text)


def _count(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0


def _loss(page: _Page, reading: Reading) -> None:
    """Add loss and errors; doubt them where packets never left."""
    if page.sent == 0:
        reading.doubt("loss-absent", "ping sent nothing; loss is absent")
        return
    reading.loss(page.sent - page.received, page.sent)
    if page.errors:
        reading.whole("errors", page.errors, exposure=page.sent)
        reading.doubt(
            "ping-errors",
            f"{page.errors} errors beside the answers; such packets count as lost",
            "read the file for the reason: unreachable, or longer than the MTU?",
        )


def _times(page: _Page, reading: Reading) -> None:
    """Add the mean and the quantiles of the round trips."""
    every = bool(page.replies) and len(page.replies) == page.received
    mean = page.summary.get("avg", fmean(page.replies) if every else None)
    if mean is None:
        reason = "no answer" if page.received == 0 else "no times (payload too small?)"
        reading.note("rtt-absent", f"ping printed {reason}; round trips are absent")
        return
    reading.whole("rtt_mean", mean * _MS, resolution=1e-6)
    if page.duplicates:
        reading.doubt(
            "duplicates",
            f"{page.duplicates} duplicate answers; they are in the mean round trip",
            "ping one machine, not a broadcast address",
        )
    times = sorted(page.replies) if every else []
    if len(times) >= _ENOUGH_FOR_P50:
        reading.whole("rtt_p50", median(times) * _MS, resolution=1e-6)
    else:
        reading.note(
            "quantiles-absent", f"{len(times)} round trips printed; 20 tell a median"
        )
    if len(times) >= _ENOUGH_FOR_P99:
        rank = math.ceil(0.99 * len(times))
        reading.whole("rtt_p99", times[rank - 1] * _MS, resolution=1e-6)


def _workload(page: _Page) -> dict[str, str | int | float | None]:
    workload: dict[str, str | int | float | None] = {"protocol": "ICMP", "streams": 1}
    workload["packets"] = page.sent
    time = _TIME.search(page.rest)
    if time:
        workload["duration_s"] = int(time[1]) / 1000
    size = _PAYLOAD.search(page.head) or _SIZE6.match(page.head)
    if size:
        workload["payload_byte"] = int(size[1])
    return workload


def _facts(page: _Page) -> dict[str, object]:
    facts: dict[str, object] = {
        "packets_transmitted": page.sent,
        "packets_received": page.received,
        "duplicates": page.duplicates,
        "icmp_errors": page.errors,
        "replies_printed": len(page.replies) + page.repeated,
    }
    for name, value in page.summary.items():
        if name != "avg":
            facts[f"rtt_{name}_s"] = round(value * _MS, 9)
    return facts
