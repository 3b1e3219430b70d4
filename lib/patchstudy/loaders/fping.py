"""Read counts of fping: ``-c`` (lines, summary), ``-C`` (list), ``-Q``, ``-J`` (JSON).

What the values are (``print_per_system_stats`` of fping's source, captured runs). Every
value carries the label ``host`` and is of the whole run:

``loss``
    Of the requests sent, from the counts ``xmt`` and ``rcv``, or from the ``-`` of a
    ``-C`` list. fping writes ``%return`` where more answers came than requests were
    sent; that is refused. The percentages in the lines of ``-c`` are running ones.
``rtt_mean``
    The ``avg`` of the summary, or the mean of the list. Absent where no answer came:
    fping then prints ``NaN avg`` and no min/avg/max. Milliseconds.
``rtt_p50``, ``rtt_p99``
    Over the printed times, where all are there: 20 at least, 1000 for 99 %.

The summaries of ``-Q`` stand below ``[hh:mm:ss]`` and are intervals of ``loss`` and
``rtt_mean`` (module ``fping_intervals``); the total is the second summary of a host
below the last of these. Without a total the run was cut: it has intervals alone. That
clock has no date and no zone; with ``-D`` the stamp of the first answer, less its time,
is the start, where it is seconds since 1970 or has a zone (``--timestamp-format=iso``).

``-J`` (fping 5.4 and later, doc/fping-json.md) writes an object a line: ``resp``,
``timeout``, ``summary`` (``-c``), ``vSum`` (``-C``, null where no answer came),
``intSum`` (``-Q``), ``stats``; others are passed over. ``loss`` is from the counts
there too; with ``-D`` or ``-Q`` its stamps tell the start.
"""

import json
import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import fping_intervals
from patchstudy.loaders.fping_intervals import Summary
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, last_digit
from patchstudy.loaders.text import counter
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "loss": (
        'xmt/rcv/%loss of the summary of the host: 1 - rcv / xmt; -C: the share of "-"'
        " (-J: null); an interval (-Q): the summary below its [hh:mm:ss] (-J: intSum)"
    ),
    "rtt_mean": (
        "min/avg/max of the summary: avg; -C: the mean of the times; an interval (-Q): "
        "the same of its summary"
    ),
}
_SUMMARY: Final = re.compile(
    r"^(?P<host>\S+)(?: \(\S+\))? *: xmt/rcv/%(?P<kind>loss|return) ="
    r" (?P<sent>\d{1,12})/(?P<received>\d{1,12})/-?\d+%"
    r"(?:, outage\(ms\) = -?\d+)?(?:, min/avg/max = (?P<times>\S+))?$"
)
_LIST: Final = re.compile(
    r"^(?P<host>\S+)(?: \(\S+\))? +: "  # names are padded: a blank is always there
    r"(?P<times>(?:\d+(?:\.\d+)?|-)(?: (?:\d+(?:\.\d+)?|-))*)$"
)
_LINE: Final = re.compile(
    r"^(?:\[[\d.:+TZ -]{8,40}\] |\[\w{3} [\w :]{16,22}\] )?"
    r"(?P<host>\S+)(?: \(\S+\))? *: \[\d+\], "
    r"(?:\d+ bytes, (?P<time>\S+) ms|timed out)"
)
_SECONDS: Final = re.compile(r"^\[\d+\.\d+\] ")
_STAMPED: Final = re.compile(
    r"^\[(\d{9,10}\.\d{1,9}|\d{4}-\d\d-\d\dT[\d:]{8}[+-]\d{4})\] "
    r"\S+(?: \(\S+\))? *: \[0\], \d+ bytes,"
    r" (\d{1,9}(?:\.\d+)?) ms"
)
_CLOCK: Final = re.compile(r"^\[(\d\d):(\d\d):(\d\d)\]$")
_STATE: Final = re.compile(r"^\S+ is (?:alive|unreachable)\b")
_JSON: Final = re.compile(
    r'\s*\{\s*"(?:resp|timeout|summary|vSum|intSum)": ?'
    r'\{\s*"(?:host|time|timestamp)":'
)
_NUMBER: Final = re.compile(r"\d{1,12}(?:\.\d+)?(?:e[+-]\d\d)?")
_ENOUGH_FOR_P50: Final = 20
_ENOUGH_FOR_P99: Final = 1000
_MS: Final = 1e-3
_LAST_DIGIT: Final = 1e-3
_NO_TOTAL: Final = (
    "fping's summary is missing; was it cut short, or stderr, which it goes to, not"
    " saved with 2>&1?"
)


def sniff(raw: RawFile) -> bool:
    """Say whether a line of fping stands at the start."""
    if _JSON.match(raw.head):
        return True
    lines = plain_head(raw)
    if any(_SUMMARY.match(line) or _is_answer(raw, line) for line in lines):
        return True
    told = [line for line in lines if not line.startswith("ICMP ")]
    listed = bool(told) and all(_LIST.match(line) for line in told)
    return listed or (bool(told) and all(_STATE.match(line) for line in told))


def _is_answer(raw: RawFile, line: str) -> bool:
    """Say whether a line is an answer; where others stamped it, all lines are."""
    if not _LINE.match(line):
        return False
    if not line.startswith("[") or _SECONDS.match(line):
        return True
    return not raw.data.rstrip().rpartition(b"\n")[2].startswith(b"[")


def load(raw: RawFile) -> Capture:
    """Read loss and round trips of every host.

    Raises
    ------
    CaptureError
        If there is no summary at all, or one holds more answers than requests.
    """
    page = _of_json(raw) if _JSON.match(raw.head) else _of_text(raw)
    hosts = page.hosts
    reading = Reading()
    for name, host in hosts.items():
        _host(name, host, reading)
    fping_intervals.add(page.intervals, reading)
    counts = {
        name: {"xmt": host.sent, "rcv": host.received} for name, host in hosts.items()
    }
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="fping",
        started_at=_utc(page.start_s),
        workload={
            "protocol": "ICMP",
            "hosts": len(hosts) or len({one.host for one in page.intervals}),
        },
        measurements=tuple(reading.measurements),
        facts={"hosts": counts},
        caveats=tuple(reading.caveats),
        error=None if hosts else Fault(text=_NO_TOTAL),
    )


def _stamped(lines: list[tuple[int, str]]) -> float | None:
    """Return when the first request was sent, where ``-D`` stamps its answer."""
    for _number, line in lines:
        if match := _STAMPED.match(line):
            moment = _moment(match[1])
            return None if moment is None else moment - float(match[2]) * _MS
    return None


def _moment(text: str) -> float | None:
    """Return seconds since 1970 of a stamp; None where it has no zone."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None


def _utc(start_s: float | None) -> str | None:
    if start_s is None or not 0 < start_s < 2**36:
        return None
    return f"{datetime.fromtimestamp(start_s, tz=UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(slots=True, kw_only=True)
class _Host:
    """What fping says of one host; times in ms."""

    sent: int
    received: int
    mean: float | None = None
    last_digit: float = _LAST_DIGIT
    times: list[float] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Page:
    """The totals of the hosts, the interval summaries, and the start since 1970."""

    hosts: dict[str, _Host] = field(default_factory=dict)
    intervals: list[Summary] = field(default_factory=list)
    start_s: float | None = None


def _of_text(raw: RawFile) -> _Page:
    lines = [(number, line) for number, line in plain(raw.text) if line]
    page = _Page(start_s=_stamped(lines))
    clock_s: int | None = None
    seen: set[str] = set()
    for number, line in lines:
        if clock := _CLOCK.match(line):
            hours, minutes, seconds = map(int, clock.groups())
            clock_s, seen = 3600 * hours + 60 * minutes + seconds, set()
        elif match := _SUMMARY.match(line):
            name = match["host"]
            if clock_s is None or name in seen:
                _once(raw, page.hosts, name, number)
                page.hosts[name] = _counted(raw, match, number)
            else:
                seen.add(name)
                page.intervals.append(_interval(raw, match, clock_s, number))
        elif listed := _LIST.match(line):
            _once(raw, page.hosts, listed["host"], number)
            page.hosts[listed["host"]] = _listed(listed)
    _answers(raw, lines, page.hosts)
    if not page.hosts and not page.intervals:
        alive = any(_STATE.match(line) for _number, line in lines)
        told = "says only who is alive; call fping with -c or -C"
        raise CaptureError(raw.path, told if alive else _NO_TOTAL)
    return page


def _interval(raw: RawFile, match: re.Match[str], clock_s: int, number: int) -> Summary:
    mean, last = _mean(raw, match, number)
    return Summary(
        host=match["host"],
        clock_s=clock_s,
        sent=int(match["sent"]),
        received=int(match["received"]),
        mean_s=None if mean is None else mean * _MS,
        last_s=last * _MS,
    )


def _once(raw: RawFile, hosts: dict[str, _Host], name: str, number: int) -> None:
    if name in hosts:
        problem = f"a second summary of {name}; save each run in a file of its own"
        raise CaptureError(raw.path, problem, where=str(number))


def _counted(raw: RawFile, match: re.Match[str], number: int) -> _Host:
    """Return the counts and the mean of a summary."""
    sent, received = int(match["sent"]), int(match["received"])
    _no_more_answers(raw, sent, received, number, wrong=match["kind"] == "return")
    mean, last = _mean(raw, match, number)
    return _Host(sent=sent, received=received, mean=mean, last_digit=last)


def _mean(
    raw: RawFile, match: re.Match[str], number: int
) -> tuple[float | None, float]:
    """Return the mean of a summary, where it has one, and its last digit, in ms."""
    if not match["times"]:
        return None, _LAST_DIGIT
    texts = match["times"].split("/")
    if len(texts) != 3 or not all(map(_NUMBER.fullmatch, texts)):
        problem = f"{match['times']!r} is not min/avg/max with decimal points"
        raise CaptureError(raw.path, problem, where=str(number))
    return float(texts[1]), last_digit(texts[1])


def _no_more_answers(
    raw: RawFile, sent: int, received: int, number: int, *, wrong: bool = False
) -> None:
    if received > sent or wrong:
        problem = (
            f"{received} answers to {sent} requests: loss below 0; were duplicates or"
            " answers of an earlier interval counted?"
        )
        raise CaptureError(raw.path, problem, where=str(number))


def _listed(match: re.Match[str]) -> _Host:
    """Return the counts and times of a list of ``-C``."""
    texts = match["times"].split(" ")
    times = [float(text) for text in texts if text != "-"]
    mean = fmean(times) if times else None
    return _Host(sent=len(texts), received=len(times), mean=mean, times=times)


def _answers(
    raw: RawFile, lines: list[tuple[int, str]], hosts: dict[str, _Host]
) -> None:
    """Add the times of the single answers that ``-c`` prints."""
    for number, line in lines:
        match = _LINE.match(line)
        if not match or not match["time"] or match["host"] not in hosts:
            continue
        if not _NUMBER.fullmatch(match["time"]):
            problem = f"{match['time']!r} is not a number with a decimal point"
            raise CaptureError(raw.path, problem, where=str(number))
        hosts[match["host"]].times.append(float(match["time"]))


# ---- JSON ---------------------------------------------------------------------------


def _of_json(raw: RawFile) -> _Page:
    """Return counts and times of every host from an object a line.

    Raises
    ------
    CaptureError
        If a line is no such object, or there is no summary at all.
    """
    page = _Page()
    answers: dict[str, list[float]] = {}
    for number, line in plain(raw.text):
        if not line.startswith("{"):
            continue  # a message of fping between them
        kind, told = _object(raw, line, number)
        name = str(told.get("host", ""))
        if kind == "resp":
            answers.setdefault(name, []).append(_answer(raw, told, number, page))
        elif kind == "intSum":
            page.intervals.append(_json_interval(raw, told, number))
        elif kind in {"summary", "vSum"}:
            _once(raw, page.hosts, name, number)
            made = _json_counts if kind == "summary" else _json_times
            page.hosts[name] = made(raw, told, number)
    if not page.hosts and not page.intervals:
        raise CaptureError(raw.path, _NO_TOTAL)
    for name, host in page.hosts.items():
        host.times = host.times or answers.get(name, [])
    _start_of_intervals(page)
    return page


def _start_of_intervals(page: _Page) -> None:
    """Take the start from the first interval's end, where no answer told it."""
    length_s = fping_intervals.length(page.intervals) if page.intervals else None
    if page.start_s is None and length_s is not None:
        page.start_s = page.intervals[0].clock_s - length_s


def _answer(raw: RawFile, told: dict[str, object], number: int, page: _Page) -> float:
    """Return the time of an answer in ms; the first one's stamp tells the start."""
    time = _ms(raw, told.get("rtt"), number)
    moment = _moment(str(told.get("timestamp")))
    if told.get("seq") == 0 and page.start_s is None and moment is not None:
        page.start_s = moment - time * _MS
    return time


def _object(raw: RawFile, line: str, number: int) -> tuple[str, dict[str, object]]:
    try:
        ((kind, told),) = json.loads(line).items()
    except (ValueError, AttributeError, RecursionError) as error:
        problem = "not one object of fping -J; was it cut short?"
        raise CaptureError(raw.path, problem, where=str(number)) from error
    return kind, told if isinstance(told, dict) else {}


def _json_counts(raw: RawFile, told: dict[str, object], number: int) -> _Host:
    sent = counter(raw, told.get("xmt"), str(number))
    received = counter(raw, told.get("rcv"), str(number))
    _no_more_answers(raw, sent, received, number)
    host = _Host(sent=sent, received=received, last_digit=1e-3)
    if told.get("rttAvg") is not None:
        host.mean = _ms(raw, told["rttAvg"], number)
    return host


def _json_interval(raw: RawFile, told: dict[str, object], number: int) -> Summary:
    mean = told.get("rttAvg")
    return Summary(
        host=str(told.get("host", "")),
        clock_s=counter(raw, told.get("time"), str(number)),
        sent=counter(raw, told.get("xmt"), str(number)),
        received=counter(raw, told.get("rcv"), str(number)),
        mean_s=None if mean is None else _ms(raw, mean, number) * _MS,
        last_s=_LAST_DIGIT * _MS,
    )


def _json_times(raw: RawFile, told: dict[str, object], number: int) -> _Host:
    values = told.get("values")
    listed = values if isinstance(values, list) else []
    times = [_ms(raw, one, number) for one in listed if one is not None]
    mean = fmean(times) if times else None
    return _Host(sent=len(listed), received=len(times), mean=mean, times=times)


def _ms(raw: RawFile, value: object, number: int) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not 0 <= value < 1e9:  # type: ignore[operator]
        raise CaptureError(raw.path, f"{value!r} is not a time", where=str(number))
    return float(value)  # type: ignore[arg-type]


# ---- values -------------------------------------------------------------------------


def _host(name: str, host: _Host, reading: Reading) -> None:
    labels = {"host": name}
    if host.sent == 0:
        reading.doubt("loss-absent", f"nothing was sent to {name}")
        return
    reading.loss(host.sent - host.received, host.sent, labels)
    if host.mean is None:
        reading.note("rtt-absent", f"{name} gave no answer; its round trip is absent")
        return
    last = host.last_digit * _MS
    reading.whole("rtt_mean", host.mean * _MS, labels, resolution=last)
    times = sorted(host.times) if len(host.times) == host.received else []
    if len(times) >= _ENOUGH_FOR_P50:
        reading.whole("rtt_p50", median(times) * _MS, labels, resolution=last)
    if len(times) >= _ENOUGH_FOR_P99:
        rank = math.ceil(0.99 * len(times))
        reading.whole("rtt_p99", times[rank - 1] * _MS, labels, resolution=last)
