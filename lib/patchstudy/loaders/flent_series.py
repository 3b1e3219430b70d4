"""What the series of a flent data file say: loads, pings, and the CPU of hosts.

Part of the loader ``flent``, whose docstring says what the values are.
"""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Final

from patchstudy.loaders.flent_page import Page, Series, number
from patchstudy.loaders.reading import Reading, shares
from patchstudy.units import to_base

_SINGLE_PINGS: Final = ("PingRunner", "IrttRunner")
#: A ping series with points for less than this part of the whole time has died.
_DIED: Final = 0.75
_ENOUGH_FOR_P50: Final = 20
_ENOUGH_FOR_P99: Final = 1000
#: A mean above all points by more than rounding.
_ABOVE: Final = 1.05
#: A mean below that of all points by more than how their ends differ.
_BELOW: Final = 0.97
#: irtt's interval, which is not flent's step where it plays a telephone.
_EVERY: Final = re.compile(r"/irtt client .{0,200} -i (\d{1,6}(?:\.\d{1,6})?)s ")
_INTERVAL: Final = re.compile(r"--interval (\d{1,6}(?:\.\d{1,6})?)(?: |$)")


def tcp(page: Page, direction: str, reading: Reading) -> None:
    """Add the throughput of one direction, of its streams, and what belongs to it."""
    streams = page.streams("TCP", direction)
    if not streams:
        return
    labels = {"direction": direction}
    metric = "throughput" if direction == "download" else "send_rate"
    for one in streams:
        several = {"stream": one.stream} if len(streams) > 1 else {}
        _rate_intervals(page, one, metric, {**labels, **several}, reading)
    rates = [one.mean for one in streams]
    known = [rate for rate in rates if rate is not None]
    if len(known) < len(rates):
        missing = ", ".join(one.name for one in streams if one.mean is None)
        reading.doubt(
            "throughput-absent",
            f"netperf gave no result for {missing}; the {direction} throughput is"
            " absent",
            "see why netperf failed; run it again",
        )
        return
    _direction(streams, known, labels, reading)


def _direction(
    streams: Sequence[Series],
    rates: list[float],
    labels: dict[str, str],
    reading: Reading,
) -> None:
    """Add the whole-run values of one direction."""
    total = sum(rates)
    reading.whole("throughput", total, labels)
    if total == 0:
        reading.doubt(
            "zero-throughput",
            f"the {labels['direction']} throughput is 0",
            "check that the link was up",
        )
    if len(rates) > 1:
        for one, rate in zip(streams, rates, strict=True):
            reading.whole("throughput", rate, {**labels, "stream": one.stream})
    reading.measurements += shares(rates, labels)
    _retransmits(streams, labels, reading)


def _retransmits(
    streams: Sequence[Series], labels: dict[str, str], reading: Reading
) -> None:
    counts = [_retransmitted(one) for one in streams]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        reading.note(
            "retransmits-absent",
            f"the file does not count {labels['direction']} retransmits",
        )
        return
    segments = [_segments(one) for one in streams]
    sent = [one for one in segments if one is not None]
    packets = sum(sent) if sum(sent) > 0 and len(sent) == len(segments) else None
    reading.whole("retransmits", sum(known), labels, exposure=packets)


def _retransmitted(series: Series) -> float | None:
    """Return the sender's count; flent puts 0 where netperf was not asked for it."""
    command = series.meta.get("COMMAND")
    side = "LOCAL" if series.direction == "upload" else "REMOTE"
    if isinstance(command, str) and f"{side}_TRANSPORT_RETRANS" not in command:
        return None
    count = number(series.meta.get("TCP_RETRANSMIT"))
    return count if count is not None and count < 2**31 else None


def _segments(series: Series) -> float | None:
    sent = number(series.meta.get("BYTES_SENT"))
    mss = number(series.meta.get("TCP_MSS"))
    return sent / mss if sent and mss and mss >= 1 else None


def _rate_intervals(
    page: Page, series: Series, metric: str, labels: dict[str, str], reading: Reading
) -> None:
    """Add netperf's interim results; each ends at its time stamp."""
    for point in series.points:
        end = point["t"] - page.origin_s
        start = end - point.get("dur", 0.0)
        if 0 <= start < end:
            rate = to_base(point["val"], "Mbits/s")[0]
            reading.interval(metric, rate, (start, end), labels)


def udp(page: Page, direction: str, reading: Reading) -> None:
    """Add UDP by iperf 2: the server's figure, or what the sender says of itself."""
    streams = page.streams("UDP", direction)
    if not streams:
        return
    labels = {"direction": direction}
    if any(_misread(one) for one in streams):
        reading.doubt(
            "send-rate-absent",
            f"the mean of the UDP {direction} is above all its points: flent takes"
            " another column of iperf 2.2 for the rate; both are absent",
            "use iperf 2.1",
        )
        return
    for one in streams:
        _udp_intervals(page, one, labels, reading)
    rates = [one.mean for one in streams if one.mean is not None]
    known = len(rates) == len(streams) and direction == "upload"
    if known and all(map(_by_server, streams)):
        reading.rate("throughput", sum(rates), labels)
        return
    if known:
        reading.whole("send_rate", sum(rates), labels)
    reading.note(
        "throughput-absent",
        f"the file does not tell how much of the UDP {direction} arrived",
    )


def _misread(series: Series) -> bool:
    """Say whether the mean cannot be that of the points."""
    most = max((point["val"] for point in series.points), default=0.0)
    mean = number(series.meta.get("MEAN_VALUE"))
    return len(series.points) > 1 and mean is not None and mean > _ABOVE * most


def _by_server(series: Series) -> bool:
    """Say whether the mean is of the report that the server sent back.

    flent takes the last row, which old versions of iperf 2 copy from that report. Only
    where it is below what the rows before it say was sent is it surely not the
    sender's own.
    """
    mean = number(series.meta.get("MEAN_VALUE"))
    sent = [point["val"] for point in series.points]
    iperf = series.meta.get("RUNNER") == "IperfCsvRunner"
    return iperf and len(sent) > 1 and mean is not None and mean < _BELOW * fmean(sent)


def _udp_intervals(
    page: Page, series: Series, labels: dict[str, str], reading: Reading
) -> None:
    """Add iperf's rows: what was sent until their time, each of one interval."""
    told = _INTERVAL.search(str(series.meta.get("COMMAND", "")))
    if told is None or series.direction != "upload":
        return
    length_s = float(told[1])
    for point in series.points:
        end = point["t"] - page.origin_s
        if end - length_s >= 0 and length_s > 0:
            rate = to_base(point["val"], "Mbits/s")[0]
            reading.interval("send_rate", rate, (end - length_s, end), labels)


def ping(page: Page, series: Series, reading: Reading) -> None:
    """Add the mean, the quantiles and the single round trips of one ping series."""
    labels = {"test": series.stream}
    times = sorted(to_base(point["val"], "ms")[0] for point in series.points)
    single = _is_single(series)
    mean = series.mean
    if mean is None and single and times:
        mean = fmean(times)
    if mean is not None:
        reading.whole("rtt_mean", mean, labels)
    if single and len(times) >= _ENOUGH_FOR_P50:
        reading.whole("rtt_p50", median(times), labels)
    if single and len(times) >= _ENOUGH_FOR_P99:
        rank = math.ceil(0.99 * len(times))
        reading.whole("rtt_p99", times[rank - 1], labels)
    _irtt(series, labels, reading)
    told = _EVERY.search(str(series.meta.get("COMMAND", "")))
    step = float(told[1]) if told else number(page.metadata.get("STEP_SIZE")) or 0.0
    for point in series.points:
        start = point["t"] - page.origin_s - point.get("dur", 0.0)
        length = point.get("dur", step)
        if start >= 0 and length > 0:
            time = to_base(point["val"], "ms")[0]
            reading.interval("rtt_mean", time, (start, start + length), labels)
    if not single and times:
        _died(page, series, reading)


def _irtt(series: Series, labels: dict[str, str], reading: Reading) -> None:
    """Add irtt's loss, from its counts, and its jitter."""
    sent = number(series.meta.get("PACKETS_SENT"))
    got = number(series.meta.get("PACKETS_RECEIVED"))
    if sent and got is not None:
        reading.loss(sent - got, sent, labels)
    jitter = number(series.meta.get("IPDV_MEAN"))
    if jitter is not None:
        reading.whole("jitter", to_base(jitter, "ms")[0], labels)


def _is_single(series: Series) -> bool:
    """Say whether a point is one round trip; netperf's, with a length, are means."""
    if any("dur" in point for point in series.points):
        return False
    return series.meta.get("RUNNER", "PingRunner") in _SINGLE_PINGS


def _died(page: Page, series: Series, reading: Reading) -> None:
    """Doubt a mean of which netperf's usual points cover only a part of the time."""
    lengths = [point["dur"] for point in series.points if "dur" in point]
    covered = len(lengths) * median(lengths) if lengths else page.length_s
    if covered < _DIED * page.length_s:
        reading.doubt(
            "ping-stopped",
            f"{series.name} was answered for {covered:.0f} of {page.length_s:g} s: a"
            " lost datagram ends netperf's exchange; rtt_mean counts the silence too",
            "use flent with irtt",
        )


def cpu(page: Page, reading: Reading) -> None:
    """Add how busy each host was, of each reading and over all of them."""
    for host, rows in page.cpu.items():
        labels = {"host": host}
        spans = _cpu_spans(page, rows)
        for row, span in zip(rows, spans, strict=True):
            if span[1] > span[0]:
                reading.interval("cpu_busy", row["load"], span, labels)
        covered = sum(max(end - start, 0.0) for start, end in spans)
        if covered < _DIED * page.length_s:
            reading.note(
                "cpu-absent",
                f"{host} was read for {covered:.0f} of {page.length_s:g} s: the CPU"
                " load of the whole run is absent",
            )
            continue
        busy = _over_time(rows, spans, "load")
        names = {name for row in rows for name in row if name.startswith("cpu")}
        single = [_over_time(rows, spans, name) for name in names]
        reading.whole("cpu_busy", busy, labels)
        known = [one for one in single if one is not None]
        reading.whole("cpu_busy_max", max(known, default=None), labels)


def _cpu_spans(
    page: Page, rows: Sequence[dict[str, float]]
) -> list[tuple[float, float]]:
    """Return start and end of each row; the first is as long as the others."""
    ends = [row["t"] - page.origin_s for row in rows]
    usual = median(later - one for one, later in pairwise(ends))
    starts = [ends[0] - usual, *ends[:-1]]
    return [(max(one, 0.0), end) for one, end in zip(starts, ends, strict=True)]


def _over_time(
    rows: Sequence[dict[str, float]], spans: Sequence[tuple[float, float]], name: str
) -> float | None:
    """Return the mean of a column over time; None where a row lacks it."""
    lengths = [max(end - start, 0.0) for start, end in spans]
    if not sum(lengths) or any(name not in row for row in rows):
        return None
    parts = [row[name] * one for row, one in zip(rows, lengths, strict=True)]
    return sum(parts) / sum(lengths)
