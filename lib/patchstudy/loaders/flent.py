"""Read flent's data files (``.flent``, ``.flent.gz``), formats 1 to 4.

What the values are (flent's source, ``runners.py``, and its data files). Averages are
the final figures of the tools that flent ran (``SERIES_META``), never means of flent's
points: those leave out streams without points and hold the filling of buffers.

``throughput``
    Sum over the TCP streams of one direction of netperf's own result: payload over the
    time until the receiver had it all; labels ``direction`` (``upload`` is local to
    remote, ``download``) and, for one of several streams, ``stream``. Points of a
    download are intervals of it: what the local side received.
``send_rate``
    The UDP upload is what the sender offered. Points of a TCP upload are intervals of
    it: what the local side sent.
``fairness``
    Jain's index over those final figures, where a direction has several streams.
``flow_share_min``, ``starved_flows``
    Smallest stream over the mean of them; part of them below a tenth of that mean.
``retransmits``
    Sum over a direction's streams of the sender's TCP segments sent again. Exposure:
    segments of one MSS.
``rtt_mean``, ``rtt_p50``, ``rtt_p99``
    Of each ping series, label ``test`` (``ICMP``, ``UDP BE``): the tool's own mean, or
    the mean of all pings where it printed none; quantiles over all single pings (20 at
    least, 1000 for 99 %). flent pings some seconds before and after the load too; both
    are in these values, with a caveat. Points are intervals of ``rtt_mean``. Where
    flent let netperf ping (UDP_RR), its points are means over an interval; before
    format 4 they are transactions per second (``resultset.py``), and one lost datagram
    ends the exchange, but not the time by which netperf divides: a caveat.

Rates are 10^6 bit/s of payload in the file, times ms. Nothing is omitted. Sums, means
and socket statistics that flent derives (``TCP upload sum``, ``...::tcp_cwnd``) are no
streams and are not read.
"""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.reading import shares
from patchstudy.records import (
    Capture,
    Caveat,
    Measurement,
    RawFile,
    Severity,
)
from patchstudy.units import to_base

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "sum over the streams of metadata.SERIES_META[series].MEAN_VALUE; an "
        "interval (download): results[series][i]"
    ),
    "send_rate": (
        "UDP upload: metadata.SERIES_META[series].MEAN_VALUE; an interval (TCP "
        "upload): results[series][i]"
    ),
    "retransmits": (
        "metadata.SERIES_META[series].TCP_RETRANSMIT, sum over the streams"
    ),
    "rtt_mean": (
        "metadata.SERIES_META[ping series].MEAN_VALUE, else the mean of "
        "raw_values[series][].val; an interval: results[series][i]"
    ),
    "rtt_p50": "median of raw_values[series][].val",
    "fairness": "Jain's index of the streams' MEAN_VALUE",
    "flow_share_min": "the smallest of the same over their mean",
    "starved_flows": "part of the same below a tenth of their mean",
}
_OPENING: Final = re.compile(r'^\s*\{.*"metadata"\s*:\s*\{', re.DOTALL)
_LOAD: Final = re.compile(r"^(TCP|UDP) (upload|download)(?:::(\d+)| (.+?))?$")
_PING: Final = re.compile(r"^Ping \(ms\) (.+)$")
_DERIVED: Final = re.compile(
    r"^(?:TCP|UDP|Ping)\b.*(?: (?:sum|avg|fairness|totals)|::[a-z]\w*)$"
)
_SINGLE_PINGS: Final = ("PingRunner", "IrttRunner")
_NEWEST: Final = 4
#: The first format in which all points of a ping are times.
_TIMES: Final = 4
#: A ping series with points for less than this part of the whole time has died.
_DIED: Final = 0.75
_ENOUGH_FOR_P50: Final = 20
_ENOUGH_FOR_P99: Final = 1000
_ABSURD: Final = 1e18


def sniff(raw: RawFile) -> bool:
    """Say whether the text is a JSON object with flent's metadata."""
    head = raw.head
    names = ('"BATCH_NAME"', '"DATA_FILENAME"')
    return bool(_OPENING.match(head)) and any(name in head for name in names)


def load(raw: RawFile) -> Capture:
    """Read one flent data file.

    Raises
    ------
    CaptureError
        If the JSON is cut or broken, or of a newer format.
    """
    page = _page(raw)
    found = _Found()
    for direction in ("upload", "download"):
        _tcp(page, direction, found)
        _udp(page, direction, found)
    for series in page.streams("ping", ""):
        _ping(page, series, found)
    _doubts(page, found)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="flent",
        tool_version=_version(page),
        started_at=_started_at(page),
        workload=_workload(page),
        measurements=tuple(found.measurements),
        facts=_facts(page),
        caveats=tuple(found.caveats),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """One measured series.

    Attributes
    ----------
    name
        As flent calls it.
    kind
        ``TCP``, ``UDP`` or ``ping``.
    direction
        ``upload`` or ``download``; empty for a ping.
    stream
        What tells it from the others of its direction, or which ping it is.
    meta
        Its entry in SERIES_META.
    points
        Its raw values that have a time and a value.
    empty
        Whether all its values are null.
    """

    name: str
    kind: str
    direction: str
    stream: str
    meta: dict[str, object]
    points: list[dict[str, float]]
    empty: bool

    @property
    def mean(self) -> float | None:
        """The tool's final figure in the base unit."""
        value = _number(self.meta.get("MEAN_VALUE"))
        usual = "ms" if self.kind == "ping" else "Mbits/s"
        if value is None or self.meta.get("UNITS", usual) != usual:
            return None
        return to_base(value, usual)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """One data file.

    Attributes
    ----------
    form
        Number of the file format.
    metadata
        flent's metadata.
    series
        The measured series.
    unread
        Names of other series, neither measured streams nor derived from them.
    origin_s
        Start of the time axis in seconds since 1970.
    """

    form: int
    metadata: dict[str, object]
    series: list[_Series]
    unread: list[str]
    origin_s: float

    @property
    def length_s(self) -> float:
        """How long all of it took."""
        return _number(self.metadata.get("TOTAL_LENGTH")) or 0.0

    def streams(self, kind: str, direction: str) -> list[_Series]:
        return [
            one
            for one in self.series
            if one.kind == kind and one.direction == direction
        ]


@dataclass(slots=True)
class _Found:
    """What has been read so far."""

    measurements: list[Measurement] = field(default_factory=list)
    caveats: list[Caveat] = field(default_factory=list)

    def whole(
        self,
        metric: str,
        value: float,
        labels: dict[str, str],
        packets: float | None = None,
    ) -> None:
        """Add a whole-run value."""
        self.measurements.append(
            Measurement(metric=metric, value=value, labels=labels, exposure=packets)
        )

    def note(self, code: str, text: str) -> None:
        self.caveats.append(Caveat(code=code, severity=Severity.NOTE, text=text))

    def doubt(self, code: str, text: str, todo: str = "") -> None:
        self.caveats.append(
            Caveat(code=code, severity=Severity.DOUBT, text=text, todo=todo)
        )


def _page(raw: RawFile) -> _Page:
    document = _document(raw)
    metadata, results = document.get("metadata"), document.get("results")
    if not isinstance(metadata, dict) or not isinstance(results, dict):
        raise CaptureError(
            raw.path, "no 'metadata' and 'results' objects; not a flent data file"
        )
    form = _number(document.get("version", 1))
    if form is None or not 1 <= form <= _NEWEST:
        raise CaptureError(
            raw.path,
            f"flent format {document.get('version')!r} is not known; formats 1 to"
            f" {_NEWEST} are read",
            where="version",
        )
    raw_values = _dict(document.get("raw_values"))
    metas = _dict(metadata.get("SERIES_META"))
    series, unread = [], []
    for name, values in results.items():
        meta = _dict(metas.get(name))
        points = _points(raw_values.get(name, meta.get("RAW_VALUES")))
        if form < _TIMES and name.startswith("Ping (ms) UDP"):
            points = _times(points)
        one = _series(name, values, meta, points)
        if one is not None:
            series.append(one)
        elif not _DERIVED.search(name):
            unread.append(name)
    return _Page(
        form=int(form),
        metadata=metadata,
        series=series,
        unread=unread,
        origin_s=_origin(metadata, series),
    )


def _document(raw: RawFile) -> dict[str, object]:
    try:
        document = json.loads(raw.text, parse_constant=lambda _name: None)
    except json.JSONDecodeError as error:
        raise CaptureError(
            raw.path,
            f"not JSON ({error.msg}); was it cut short?",
            where=str(error.lineno),
        ) from error
    except (ValueError, RecursionError) as error:
        raise CaptureError(raw.path, f"not flent's JSON ({error})") from error
    return _dict(document)


def _series(
    name: str,
    values: object,
    meta: dict[str, object],
    points: list[dict[str, float]],
) -> _Series | None:
    """Return a measured series; None for a derived one or one of another kind."""
    load, ping = _LOAD.match(name), _PING.match(name)
    if _DERIVED.search(name) or not (load or ping):
        return None
    kind, direction, number, word = load.groups() if load else ("ping", "", None, None)
    return _Series(
        name=name,
        kind=kind,
        direction=direction,
        stream=ping[1] if ping else number or word or "1",
        meta=meta,
        points=points,
        empty=not any(_number(one) is not None for one in _list(values)),
    )


def _points(values: object) -> list[dict[str, float]]:
    """Return the points with time and value; socket statistics have no value."""
    points = []
    for one in _list(values):
        numbers = {key: _number(value) for key, value in _dict(one).items()}
        known = {key: value for key, value in numbers.items() if value is not None}
        if "t" in known and "val" in known:
            points.append(known)
    return points


def _times(points: list[dict[str, float]]) -> list[dict[str, float]]:
    """Bring netperf's transactions per second, the points with a length, to ms."""
    return [
        {**one, "val": 1000 / one["val"]} if "dur" in one else one
        for one in points
        if one["val"] > 0 or "dur" not in one
    ]


def _origin(metadata: dict[str, object], series: list[_Series]) -> float:
    """Return T0, or the first point where T0 has no zone (formats 1 and 2)."""
    moment = _moment(metadata.get("T0"))
    if moment is not None:
        return moment.timestamp()
    return min((point["t"] for one in series for point in one.points), default=0.0)


def _tcp(page: _Page, direction: str, found: _Found) -> None:
    """Add the throughput of one direction, of its streams, and what belongs to it."""
    streams = page.streams("TCP", direction)
    if not streams:
        return
    labels = {"direction": direction}
    metric = "throughput" if direction == "download" else "send_rate"
    for one in streams:
        several = {"stream": one.stream} if len(streams) > 1 else {}
        _rate_intervals(page, one, metric, {**labels, **several}, found)
    rates = [one.mean for one in streams]
    known = [rate for rate in rates if rate is not None]
    if len(known) < len(rates):
        missing = ", ".join(one.name for one in streams if one.mean is None)
        found.doubt(
            "throughput-absent",
            f"netperf gave no result for {missing}; the {direction} throughput is"
            " absent",
            "see why netperf failed; run it again",
        )
        return
    _direction(streams, known, labels, found)


def _direction(
    streams: list[_Series],
    rates: list[float],
    labels: dict[str, str],
    found: _Found,
) -> None:
    """Add the whole-run values of one direction."""
    total = sum(rates)
    found.whole("throughput", total, labels)
    if total == 0:
        found.doubt(
            "zero-throughput",
            f"the {labels['direction']} throughput is 0",
            "check that the link was up",
        )
    if len(rates) > 1:
        for one, rate in zip(streams, rates, strict=True):
            found.whole("throughput", rate, {**labels, "stream": one.stream})
    found.measurements += shares(rates, labels)
    _retransmits(streams, labels, found)


def _retransmits(streams: list[_Series], labels: dict[str, str], found: _Found) -> None:
    counts = [_retransmitted(one) for one in streams]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        found.note(
            "retransmits-absent",
            f"the file does not count {labels['direction']} retransmits",
        )
        return
    segments = [_segments(one) for one in streams]
    sent = [one for one in segments if one is not None]
    packets = sum(sent) if sum(sent) > 0 and len(sent) == len(segments) else None
    found.whole("retransmits", sum(known), labels, packets)


def _retransmitted(series: _Series) -> float | None:
    """Return the sender's count; flent puts 0 where netperf was not asked for it."""
    command = series.meta.get("COMMAND")
    side = "LOCAL" if series.direction == "upload" else "REMOTE"
    if isinstance(command, str) and f"{side}_TRANSPORT_RETRANS" not in command:
        return None
    count = _number(series.meta.get("TCP_RETRANSMIT"))
    return count if count is not None and count < 2**31 else None


def _segments(series: _Series) -> float | None:
    sent = _number(series.meta.get("BYTES_SENT"))
    mss = _number(series.meta.get("TCP_MSS"))
    return sent / mss if sent and mss and mss >= 1 else None


def _rate_intervals(
    page: _Page, series: _Series, metric: str, labels: dict[str, str], found: _Found
) -> None:
    """Add netperf's interim results; each ends at its time stamp."""
    for point in series.points:
        end = point["t"] - page.origin_s
        start = end - point.get("dur", 0.0)
        if 0 <= start < end:
            found.measurements.append(
                Measurement(
                    metric=metric,
                    value=to_base(point["val"], "Mbits/s")[0],
                    start_s=start,
                    end_s=end,
                    labels=labels,
                )
            )


def _udp(page: _Page, direction: str, found: _Found) -> None:
    """Add the UDP upload; flent takes it from the sender's report."""
    streams = page.streams("UDP", direction)
    rates = [one.mean for one in streams if one.mean is not None]
    if not streams:
        return
    if direction == "upload" and len(rates) == len(streams):
        found.whole("send_rate", sum(rates), {"direction": direction})
    found.note(
        "throughput-absent",
        f"the file does not tell how much of the UDP {direction} arrived",
    )


def _ping(page: _Page, series: _Series, found: _Found) -> None:
    """Add the mean, the quantiles and the single round trips of one ping series."""
    labels = {"test": series.stream}
    times = sorted(to_base(point["val"], "ms")[0] for point in series.points)
    single = _is_single(series)
    mean = series.mean
    if mean is None and single and times:
        mean = fmean(times)
    if mean is not None:
        found.whole("rtt_mean", mean, labels)
    if single and len(times) >= _ENOUGH_FOR_P50:
        found.whole("rtt_p50", median(times), labels)
    if single and len(times) >= _ENOUGH_FOR_P99:
        rank = math.ceil(0.99 * len(times))
        found.whole("rtt_p99", times[rank - 1], labels)
    step = _number(page.metadata.get("STEP_SIZE")) or 0.0
    for point in series.points:
        start = point["t"] - page.origin_s - point.get("dur", 0.0)
        length = point.get("dur", step)
        if start >= 0 and length > 0:
            found.measurements.append(
                Measurement(
                    metric="rtt_mean",
                    value=to_base(point["val"], "ms")[0],
                    start_s=start,
                    end_s=start + length,
                    labels=labels,
                )
            )
    if not single and times:
        _died(page, series, found)


def _is_single(series: _Series) -> bool:
    """Say whether a point is one round trip; netperf's, with a length, are means."""
    if any("dur" in point for point in series.points):
        return False
    return series.meta.get("RUNNER", "PingRunner") in _SINGLE_PINGS


def _died(page: _Page, series: _Series, found: _Found) -> None:
    """Doubt a mean of which netperf's usual points cover only a part of the time."""
    lengths = [point["dur"] for point in series.points if "dur" in point]
    covered = len(lengths) * median(lengths) if lengths else page.length_s
    if covered < _DIED * page.length_s:
        found.doubt(
            "ping-stopped",
            f"{series.name} was answered for {covered:.0f} of {page.length_s:g} s: a"
            " lost datagram ends netperf's exchange; rtt_mean counts the silence too",
            "use flent with irtt",
        )


def _doubts(page: _Page, found: _Found) -> None:
    """Add what is wrong with the file as a whole."""
    failed = _number(page.metadata.get("FAILED_RUNNERS"))
    if failed:
        found.doubt(
            "failed-runners",
            f"{failed:.0f} of the tools that flent started failed",
            "run it again",
        )
    for one in page.series:
        if one.empty:
            found.doubt("series-empty", f"{one.name} has no value at all; it is absent")
    idle_s = page.length_s - (_number(page.metadata.get("LENGTH")) or 0.0)
    kinds = {one.kind for one in page.series if not one.empty}
    if idle_s > 0 and "ping" in kinds and len(kinds) > 1:
        found.doubt(
            "idle-pings",
            f"the round-trip times also hold {idle_s:g} s without load, before and"
            " after the test",
            "use a longer test, or the points between",
        )
    if page.unread:
        names = sorted({name.partition("::")[0] for name in page.unread})
        found.note("series-unread", "not read: " + ", ".join(names))


def _workload(page: _Page) -> dict[str, str | int | float | None]:
    name = page.metadata.get("NAME")
    load = [one for one in page.series if one.kind != "ping"]
    protocols = {one.kind for one in load}
    return {
        "protocol": protocols.pop() if len(protocols) == 1 else None,
        "direction": _direction_word(one.direction for one in load),
        "streams": len(load),
        "duration_s": _number(page.metadata.get("LENGTH")),
        "step_s": _number(page.metadata.get("STEP_SIZE")),
        "test": name if isinstance(name, str) else None,
    }


def _direction_word(directions: Iterable[str]) -> str | None:
    """Return the direction as seen from the local side."""
    seen = set(directions)
    if len(seen) == 2:
        return "bidir"
    return {"upload": "forward", "download": "reverse"}[seen.pop()] if seen else None


def _facts(page: _Page) -> dict[str, object]:
    """Return what the file says about the machine, and the notes of its author."""
    names = ("KERNEL_NAME", "KERNEL_RELEASE", "TITLE", "NOTE", "BATCH_UUID")
    names += ("BATCH_NAME", "TEST_PARAMETERS", "SYSCTLS", "IP_VERSION")
    metadata = page.metadata
    facts = {name.lower(): metadata[name] for name in names if metadata.get(name)}
    egress = _dict(metadata.get("EGRESS_INFO"))
    for name in ("driver", "offloads", "qdiscs"):
        if egress.get(name):
            facts[f"egress_{name}"] = egress[name]
    speed = _dict(egress.get("link_params")).get("speed")
    if egress.get("driver") and isinstance(speed, str):  # a veth's speed means nothing
        facts["link_speed"] = speed
    return {**facts, "format": page.form}


def _version(page: _Page) -> str | None:
    for name in ("FLENT_VERSION", "NETPERF_WRAPPER_VERSION"):
        version = page.metadata.get(name)
        if isinstance(version, str):
            return version
    return None


def _started_at(page: _Page) -> str | None:
    """Return the start in UTC; formats 1 and 2 have local time without a zone."""
    moment = _moment(page.metadata.get("T0")) or _moment(page.metadata.get("TIME"))
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def _moment(text: object) -> datetime | None:
    """Read a time with its zone; without a zone it is no moment."""
    if not isinstance(text, str) or not text.endswith("Z"):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _number(value: object) -> float | None:
    """Return a number, not negative; flent writes some as text. Else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < _ABSURD else None


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
