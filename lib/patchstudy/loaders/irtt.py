"""Read irtt's JSON and text.

What the values are (irtt's source and captured runs). Durations in the JSON are
nanoseconds, those in the text are Go's (``706us``, ``1.2ms``, ``1m2s``). Values are
of the whole run where nothing else is said:

``loss``
    Of the packets sent, those without an answer. Labels ``direction``: ``upload`` is
    the share that did not reach the server, ``download`` that of its answers which got
    lost, both as irtt works them out from the server's counts. A ``lost`` of the JSON
    is a word (``false``, ``true_up``, ``true_down``, ``true``), never a number.
``rtt_mean``, ``rtt_p50``, ``rtt_p99``
    Round trip without the server's processing time: irtt's mean and median (20 answers
    at least), and the quantile of the single round trips (1000). Intervals, of the
    JSON: every round trip from its sending until the next one's. Of the text, the mean
    of the printed round trips where all are there, as the summary has three digits.
``jitter``
    irtt's mean of the absolute IPDV (change of the round trip between neighbours).

One-way delays need synchronised clocks and are not read.
"""

import math
import re
from datetime import UTC, datetime
from statistics import fmean
from typing import Any, Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, number
from patchstudy.loaders.text import json_value, mapping
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "loss": (
        "stats: 1 - packets_received / packets_sent; by direction: "
        "server_packets_received between the two"
    ),
    "rtt_mean": (
        "stats.rtt.mean, nanoseconds; an interval: round_trips[].delay.rtt; text: the "
        "mean of the printed round trips"
    ),
    "rtt_p50": "stats.rtt.median",
    "jitter": "stats.ipdv_round_trip.mean",
}
_JSON: Final = re.compile(r'^\s*\{\s*"version"\s*:\s*\{\s*"irtt"', re.MULTILINE)
_TEXT: Final = re.compile(r"^\[Connecting\] connecting to |^\[\S+\] \[Connected\] ")
_SEQ: Final = re.compile(r"^seq=(\d+) rtt=(\S+)")
_PACKETS: Final = re.compile(r"^ *packets sent/received: (\d{1,12})/(\d{1,12}) ")
_SERVER: Final = re.compile(r"^ *server packets received: (\d{1,12})/(\d{1,12}) ")
_ROW: Final = re.compile(r"^ *(RTT|IPDV \(jitter\)) +(\S+) +(\S+) +(\S+) +(\S+)")
_DURATION: Final = re.compile(r"^ *duration: (\S+)")
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(h|ms|m|s|us|µs|μs|ns)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "ns": 1e-9}
_ENOUGH_FOR_P50: Final = 20
_ENOUGH_FOR_P99: Final = 1000
_NS: Final = 1e-9


def sniff(raw: RawFile) -> bool:
    """Say whether it is irtt's JSON, or text that starts with its connection."""
    if _JSON.match(raw.head):
        return True
    return any(_TEXT.match(line) for line in plain_head(raw)[:3])


def load(raw: RawFile) -> Capture:
    """Read one run of irtt.

    Raises
    ------
    CaptureError
        If the JSON is cut, the text has no summary, or more packets came back than
        were sent.
    """
    begins = _JSON.search(raw.text)
    if not begins:
        return _from_text(raw)
    if raw.text[: begins.start()].strip():  # the text too, as "-o -" prints it
        document = raw.text[begins.start() :].encode()
        raw = RawFile(path=raw.path, data=document, digest=raw.digest)
    return _from_json(raw)


def _from_json(raw: RawFile) -> Capture:
    document = mapping(json_value(raw))
    stats, trips = document.get("stats"), document.get("round_trips")
    if not isinstance(stats, dict):
        raise CaptureError(raw.path, "irtt's stats are missing; was it cut short?")
    reading = Reading()
    sent, received = _counts(raw, stats)
    for key in ("rtt", "ipdv_round_trip"):
        if not isinstance(stats.get(key) or {}, dict):
            problem = f"{stats[key]!r} is no object; is the file damaged?"
            raise CaptureError(raw.path, problem, where=f"stats.{key}")
    _losses(reading, sent, received, number(stats.get("server_packets_received")))
    workload = _workload(document, stats)
    trips = trips if isinstance(trips, list) else []
    _spread(reading, stats, trips)
    _intervals(reading, trips, workload.get("interval_s"))
    facts = {"packets_sent": sent, "packets_received": received}
    for key in ("duplicates", "late_packets", "timer_misses"):
        if key in stats:
            facts[key] = stats[key]
    version = document.get("version")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="irtt",
        tool_version=version.get("irtt") if isinstance(version, dict) else None,
        started_at=_started_at(stats.get("start_time"), reading),
        workload=workload,
        measurements=tuple(reading.measurements),
        facts=facts,
        caveats=tuple(reading.caveats),
    )


def _counts(raw: RawFile, stats: dict[str, Any]) -> tuple[int, int]:
    """Return the packets sent and received of the JSON."""
    counts = []
    for key in ("packets_sent", "packets_received"):
        value = stats.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            problem = f"{value!r} is not a count"
            raise CaptureError(raw.path, problem, where=f"stats.{key}")
        counts.append(value)
    _possible(raw, *counts)
    return counts[0], counts[1]


def _possible(raw: RawFile, sent: int, received: int) -> None:
    if received > sent:
        problem = (
            f"{received} packets came back of {sent} sent: loss below 0; were"
            " duplicates counted?"
        )
        raise CaptureError(raw.path, problem)


def _losses(reading: Reading, sent: int, received: int, server: float | None) -> None:
    """Add the loss of the round trip and, where the server counted, each way's."""
    if sent == 0:
        reading.doubt("loss-absent", "irtt sent nothing; loss is absent")
        return
    reading.loss(sent - received, sent)
    if server is None or not received <= server <= sent or server == 0:
        reading.note("loss-ways-absent", "which way packets got lost is not known")
        return
    reading.loss(sent - server, sent, {"direction": "upload"})
    reading.loss(server - received, server, {"direction": "download"})


def _spread(reading: Reading, stats: dict[str, Any], trips: list[Any]) -> None:
    """Add mean, median, 99 % and jitter in seconds."""
    rtt = stats.get("rtt") or {}
    mean, count = number(rtt.get("mean")), number(rtt.get("n")) or 0
    if mean is None or count == 0:
        reading.note("rtt-absent", "no packet came back; round trips are absent")
        return
    reading.whole("rtt_mean", mean * _NS, resolution=_NS)
    middle = number(rtt.get("median"))
    if middle is not None and count >= _ENOUGH_FOR_P50:
        reading.whole("rtt_p50", middle * _NS, resolution=_NS)
    times = sorted(time for one in trips if (time := _round_trip(one)) is not None)
    if len(times) >= _ENOUGH_FOR_P99:
        rank = math.ceil(0.99 * len(times))
        reading.whole("rtt_p99", times[rank - 1] * _NS, resolution=_NS)
    change = number((stats.get("ipdv_round_trip") or {}).get("mean"))
    if change is not None:
        reading.whole("jitter", change * _NS, resolution=_NS)


def _intervals(reading: Reading, trips: list[Any], length: object) -> None:
    """Add every answered round trip, from its sending until the next one's."""
    if not isinstance(length, float) or length <= 0:
        return
    sent = [_sent(trip) for trip in trips]
    first = min((one for one in sent if one), default=0.0)
    for trip, at in zip(trips, sent, strict=True):
        time = _round_trip(trip)
        if time is not None and at is not None:
            start = (at - first) * _NS
            reading.interval("rtt_mean", time * _NS, (start, start + length))


def _sent(trip: object) -> float | None:
    """Return when a packet left, in ns of the monotonic clock."""
    found = trip
    for key in ("timestamps", "client", "send", "monotonic"):
        found = found.get(key) if isinstance(found, dict) else None
    return number(found)


def _round_trip(trip: object) -> float | None:
    """Return the round trip in ns of an answered packet."""
    if not isinstance(trip, dict) or str(trip.get("lost")).startswith("true"):
        return None
    delay = trip.get("delay")
    return number(delay.get("rtt")) if isinstance(delay, dict) else None


def _started_at(text: object, reading: Reading) -> str | None:
    """Return the start in UTC to the second; irtt writes the zone.

    0.9.1 writes nanoseconds since 1970 instead.
    """
    wall = number(text.get("wall")) if isinstance(text, dict) else None
    if wall is not None and 0 < wall * _NS < 2**36:
        return f"{datetime.fromtimestamp(int(wall * _NS), tz=UTC):%Y-%m-%dT%H:%M:%SZ}"
    match = re.fullmatch(
        r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)", str(text)
    )
    try:
        moment = datetime.fromisoformat(match[1] + match[2]) if match else None
    except ValueError:
        moment = None
    if moment is None:
        reading.note("clock-unknown", "when irtt started is not known")
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _workload(
    document: dict[str, Any], stats: dict[str, Any]
) -> dict[str, str | int | float | None]:
    workload: dict[str, str | int | float | None] = {"protocol": "UDP", "streams": 1}
    duration = number(stats.get("duration"))
    if duration is not None:
        workload["duration_s"] = duration * _NS
    config = document.get("config")
    params = config.get("params") if isinstance(config, dict) else None
    if isinstance(params, dict):
        interval, length = number(params.get("interval")), number(params.get("length"))
        workload["interval_s"] = None if interval is None else interval * _NS
        workload["length_byte"] = None if length is None else int(length)
    return workload


def _from_text(raw: RawFile) -> Capture:
    lines = list(plain(raw.text))
    fault = _fault(lines)
    reading = Reading()
    workload: dict[str, str | int | float | None] = {"protocol": "UDP", "streams": 1}
    facts: dict[str, object] = {}
    if fault is None:
        sent, received = _summary_counts(raw, lines, _PACKETS)
        _losses(reading, sent, received, _server(raw, lines))
        _text_times(raw, lines, received, reading)
        facts = {"packets_sent": sent, "packets_received": received}
        told = [match[1] for _n, line in lines if (match := _DURATION.match(line))]
        workload["duration_s"] = _seconds(raw, told[0], "duration") if told else None
    reading.note("clock-unknown", "irtt's text has no date; its JSON has")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="irtt",
        workload=workload,
        measurements=tuple(reading.measurements),
        facts=facts,
        caveats=tuple(reading.caveats),
        error=fault,
    )


def _fault(lines: list[tuple[int, str]]) -> Fault | None:
    """Say what stopped irtt, where it does."""
    for at, line in lines:
        if line.startswith("Error: "):
            return Fault(text=line.removeprefix("Error: "), where=str(at))
    return None


def _summary_counts(
    raw: RawFile, lines: list[tuple[int, str]], pattern: re.Pattern[str]
) -> tuple[int, int]:
    found = [match for _number, line in lines if (match := pattern.match(line))]
    if len(found) != 1:
        problem = "irtt's summary is missing; was it cut short?"
        several = "several runs in one file; save each in a file of its own"
        raise CaptureError(raw.path, several if found else problem)
    sent, received = int(found[0][1]), int(found[0][2])
    _possible(raw, sent, received)
    return sent, received


def _server(raw: RawFile, lines: list[tuple[int, str]]) -> float | None:
    """Return what reached the server (the first number, of those sent)."""
    if not any(_SERVER.match(line) for _number, line in lines):
        return None
    found = [match for _n, line in lines if (match := _SERVER.match(line))]
    return float(min(int(found[0][1]), int(found[0][2])))


def _text_times(
    raw: RawFile, lines: list[tuple[int, str]], received: int, reading: Reading
) -> None:
    """Add mean, median, 99 % and jitter of the text."""
    rows = {m[1]: (m, n) for n, line in lines if (m := _ROW.match(line))}
    if "RTT" not in rows or received == 0:
        reading.note("rtt-absent", "no packet came back; round trips are absent")
        return
    times = sorted(
        _seconds(raw, match[2], str(at))
        for at, line in lines
        if (match := _SEQ.match(line))
    )
    match, at = rows["RTT"]
    whole = len(times) == received
    mean = fmean(times) if whole else _seconds(raw, match[3], str(at))
    reading.whole("rtt_mean", mean, resolution=mean / 1000)
    if received >= _ENOUGH_FOR_P50:
        middle = _seconds(raw, match[4], str(at))
        reading.whole("rtt_p50", middle, resolution=middle / 1000)
    if whole and received >= _ENOUGH_FOR_P99:
        rank = math.ceil(0.99 * received)
        reading.whole("rtt_p99", times[rank - 1])
    if "IPDV (jitter)" in rows:
        match, at = rows["IPDV (jitter)"]
        reading.whole("jitter", _seconds(raw, match[3], str(at)))


def _seconds(raw: RawFile, text: str, where: str) -> float:
    """Return the seconds of a duration as Go writes it."""
    parts = list(_PART.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        problem = f"{text!r} is not a duration such as 1.2ms"
        raise CaptureError(raw.path, problem, where=where)
    return sum(float(part[1]) * _SECONDS.get(part[2], 1e-6) for part in parts)
