"""Read flent's data files (``.flent``, ``.flent.gz``), formats 1 to 4.

What the values are (flent's source, ``runners.py``, and its data files). Averages are
the final figures of the tools that flent ran (``SERIES_META``), never means of flent's
points: those leave out streams without points and hold the filling of buffers.

``throughput``
    Sum over the TCP streams of one direction of netperf's own result: payload over the
    time until the receiver had it all; labels ``direction`` (``upload`` is local to
    remote, ``download``) and, for one of several streams, ``stream``. Points of a
    download are intervals of it: what the local side received.
    Of a UDP upload the final figure, where it is below what the points say was sent:
    iperf 2.0 copies it from the server's report, which flent does not say.
``send_rate``
    The UDP upload else: what the sender offered. Points of an upload are intervals of
    it: what the local side sent. A final figure above all points is no rate (flent
    takes another column of iperf 2.2 for it): both are absent.
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
``loss``, ``jitter``
    Where irtt made the round trips (also of ``voip``): its counts of packets, and its
    mean of the absolute IPDV.
``cpu_busy``, ``cpu_busy_max``
    ``cpu_stats`` of a host (label ``host``): all but idle and iowait of /proc/stat
    (``stat_iterate.sh``), of each reading and over all of them; the busiest CPU over
    all of them. Readings before and after the load are in the latter: a caveat.

Rates are 10^6 bit/s of payload in the file, times ms. Nothing is omitted. Sums and
means that flent derives (``TCP upload sum``) are no streams and are not read; other
series (sockets, qdiscs, HTTP, one-way delays) are named in a caveat.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from patchstudy.loaders import flent_series
from patchstudy.loaders.flent_page import Page, moment, number, read
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import mapping
from patchstudy.records import Capture, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "sum over the streams of metadata.SERIES_META[series].MEAN_VALUE; an "
        "interval (download): results[series][i]"
    ),
    "send_rate": (
        "UDP upload: metadata.SERIES_META[series].MEAN_VALUE; an interval (upload): "
        "raw_values[series][i]"
    ),
    "retransmits": (
        "metadata.SERIES_META[series].TCP_RETRANSMIT, sum over the streams"
    ),
    "rtt_mean": (
        "metadata.SERIES_META[ping series].MEAN_VALUE, else the mean of "
        "raw_values[series][].val; an interval: results[series][i]"
    ),
    "rtt_p50": "median of raw_values[series][].val",
    "loss": (
        "metadata.SERIES_META[series of irtt]: 1 - PACKETS_RECEIVED / PACKETS_SENT"
    ),
    "jitter": "metadata.SERIES_META[series of irtt].IPDV_MEAN, ms",
    "cpu_busy": (
        "raw_values[cpu_stats_HOST][].load, mean over time; an interval: one reading"
    ),
    "cpu_busy_max": "the largest mean over time of raw_values[cpu_stats_HOST][].cpuN",
    "fairness": "Jain's index of the streams' MEAN_VALUE",
    "flow_share_min": "the smallest of the same over their mean",
    "starved_flows": "part of the same below a tenth of their mean",
}
_OPENING: Final = re.compile(r'^\s*\{.*"metadata"\s*:\s*\{', re.DOTALL)


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
    page = read(raw)
    reading = Reading()
    for direction in ("upload", "download"):
        flent_series.tcp(page, direction, reading)
        flent_series.udp(page, direction, reading)
    for series in page.streams("ping", ""):
        flent_series.ping(page, series, reading)
    flent_series.cpu(page, reading)
    _doubts(page, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="flent",
        tool_version=_version(page),
        started_at=_started_at(page),
        workload=_workload(page),
        measurements=tuple(reading.measurements),
        facts=_facts(page),
        caveats=tuple(reading.caveats),
    )


def _doubts(page: Page, reading: Reading) -> None:
    """Add what is wrong with the file as a whole."""
    failed = number(page.metadata.get("FAILED_RUNNERS"))
    if failed:
        reading.doubt(
            "failed-runners",
            f"{failed:.0f} of the tools that flent started failed",
            "run it again",
        )
    for one in page.series:
        if one.empty:
            reading.doubt(
                "series-empty", f"{one.name} has no value at all; it is absent"
            )
    kinds = {one.kind for one in page.series if not one.empty}
    if page.idle_s > 0 and "ping" in kinds and len(kinds) > 1:
        reading.doubt(
            "idle-pings",
            f"the round-trip times also hold {page.idle_s:g} s without load, before and"
            " after the test",
            "use a longer test, or the points between",
        )
    if page.idle_s > 0 and page.cpu:
        reading.doubt(
            "idle-cpu",
            f"the CPU load also holds {page.idle_s:g} s without load, before and after"
            " the test",
            "use a longer test, or the readings between",
        )
    if page.unread:
        reading.note("series-unread", "not read: " + _names(page.unread))


def _names(series: Sequence[str]) -> str:
    """Name series that are not read, those of one owner together."""
    owners: dict[str, list[str]] = {}
    for name in series:
        owner, _, key = name.rpartition("::")
        socket = owner.startswith(("TCP ", "UDP "))
        keys = owners.setdefault("sockets" if socket else owner or name, [])
        if owner and key not in keys:
            keys.append(key)
    return "; ".join(
        f"{owner} ({', '.join(keys)})" if keys else owner
        for owner, keys in sorted(owners.items())
    )


def _workload(page: Page) -> dict[str, str | int | float | None]:
    name = page.metadata.get("NAME")
    load = [one for one in page.series if one.kind != "ping"]
    protocols = {one.kind for one in load}
    return {
        "protocol": protocols.pop() if len(protocols) == 1 else None,
        "direction": _direction_word(one.direction for one in load),
        "streams": len(load),
        "duration_s": number(page.metadata.get("LENGTH")),
        "step_s": number(page.metadata.get("STEP_SIZE")),
        "test": name if isinstance(name, str) else None,
    }


def _direction_word(directions: Iterable[str]) -> str | None:
    """Return the direction as seen from the local side."""
    seen = set(directions)
    if len(seen) == 2:
        return "bidir"
    return {"upload": "forward", "download": "reverse"}[seen.pop()] if seen else None


def _facts(page: Page) -> dict[str, object]:
    """Return what the file says about the machine, and the notes of its author."""
    names = ("KERNEL_NAME", "KERNEL_RELEASE", "TITLE", "NOTE", "BATCH_UUID")
    names += ("BATCH_NAME", "TEST_PARAMETERS", "SYSCTLS", "IP_VERSION")
    metadata = page.metadata
    facts = {name.lower(): metadata[name] for name in names if metadata.get(name)}
    egress = mapping(metadata.get("EGRESS_INFO"))
    for name in ("driver", "offloads", "qdiscs"):
        if egress.get(name):
            facts[f"egress_{name}"] = egress[name]
    speed = mapping(egress.get("link_params")).get("speed")
    if egress.get("driver") and isinstance(speed, str):  # a veth's speed means nothing
        facts["link_speed"] = speed
    return {**facts, "format": page.form}


def _version(page: Page) -> str | None:
    for name in ("FLENT_VERSION", "NETPERF_WRAPPER_VERSION"):
        version = page.metadata.get(name)
        if isinstance(version, str):
            return version
    return None


def _started_at(page: Page) -> str | None:
    """Return the start in UTC; formats 1 and 2 have local time without a zone."""
    start = moment(page.metadata.get("T0")) or moment(page.metadata.get("TIME"))
    return start.strftime("%Y-%m-%dT%H:%M:%SZ") if start else None
