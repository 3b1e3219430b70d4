"""Read every file of a corpus and compare it with what its MANIFEST.csv expects.

Run: ``python benchmarks/corpus.py ../shared/corpus``. Prints, for every tool of both
manifests, how many files were

- right: every value that can be compared agrees, and at least one could be;
- refused, or read as a failed run, where the manifest expects an error;
- disputed: the manifest itself is doubted (``DISPUTED`` has the evidence);
- read, where the manifest names no value that a capture has (numbers of lines);
- declined with a clear error, where the manifest names nothing that could be read;
- wrong, or crashed;
- unknown: no loader knows it, and it holds values.

Exits with 1 if any file was read wrong or crashed; those, the disputed and the declined
ones are named below the table.
"""

import argparse
import csv
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patchstudy import loaders
from patchstudy.errors import CaptureError, UnknownToolError
from patchstudy.records import Capture, Profile

OUTCOMES = (
    "right", "refused", "disputed", "read", "declined", "wrong", "crash", "unknown",
)  # fmt: skip

#: Entries of the manifests that are not taken as the truth, each with the evidence.
DISPUTED = {
    "iperf2/moler-205-singlerun-udp-server.txt": (
        "jitter 0.033 ms, 447 packets: the [SUM] row, which adds the first interval"
        " twice (642 KBytes in 4 s); the stream's own last row says 0.028 ms, 357"
    ),
    "iperf3/issue-openwrt-24660-bidir.txt": (
        "the six RX-C rows are 151, 152, 161, 150, 150, 158: their mean is 153.67, not"
        " 153.17 Mbit/s"
    ),
    "iperf3/v3011-udp-rev-zero-received-nan.json": (
        "jitter 0: nothing arrived, so there is no jitter; it is absent with a caveat"
    ),
    "iperf3/v312-udp-rev-zero-received.json": (
        "jitter 0: nothing arrived, so there is no jitter; it is absent with a caveat"
    ),
    "iperf3/v317-udp-rev-zero-received-nan.json": (
        "jitter 0: nothing arrived, so there is no jitter; it is absent with a caveat"
    ),
    "netperf/v270-tcp_rr-burst-bps.txt": (
        "740 Mbit/s is requests and answers added up, no one's throughput; read as"
        " transactions, with a caveat"
    ),
    "netperf/v270-tcp_stream-P0-v0.txt": (
        "394.12 alone: neither test nor unit is in the file, so bit/s would be a guess"
    ),
    "sockperf/v37-throughput-tcp.txt": (
        "the client prints what it sent; that it arrived is not in the file: send_rate"
    ),
    "sockperf/v37-throughput-udp.txt": (
        "the client prints what it sent; that it arrived is not in the file: send_rate"
    ),
    "uperf/manual-default-output.txt": (
        "50.70 Mb/s divides by the 2 s of set-up and end as well; the transaction that"
        " moved the data took 30.30 s: 54.07 Mb/s"
    ),
    "folded/inferno-diff-before_fractionals.txt": (
        "'20.' is a number (inferno reads it too): the total is 67.08, not 47.08"
    ),
    "tc/ne-qdisc-results.json": (
        "no output of tc: an exporter's own keys (IfaceName, Kind); refused as unknown"
    ),
    "sadf/sysstat-test-T-tz.txt": (
        "pieces of a drawing (SVG <text>) without any value; refused as unknown"
    ),
    "ftrace/perftools-tpoint-block.txt": (
        "two traces pasted together: the first line is later than the last"
    ),
    "hist-trigger/perftools-perf-stat-hist.txt": (
        "no hist trigger: the table of a script; refused as unknown"
    ),
    "perf-script/inferno-weird-stack-line.txt": (
        "the sample with the line that is no frame has no frame at all: it counts as"
        " [unknown], which ties with main"
    ),
    "folded/cap-ha-difffolded.txt": (
        "a difference of two profiles is no profile; refused with what to give"
    ),
    "folded/inferno-diff-bad_before.txt": (
        "a line without a weight may be a cut file; refused with its line"
    ),
    "folded/speedscope-simple-with-invalids.txt": (
        "lines without a weight may be a cut file; refused with the first"
    ),
}

Json = Any  # a value of the manifest's JSON

#: Value of an expected key, and the other keys of its file -> agreement with the
#: capture; None where the capture tells, by a caveat, that it has no such value.
Check = Callable[[Capture, Any, Mapping[str, Any]], bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one file; ``detail`` tells why it is not right."""

    path: str
    tool: str
    outcome: str
    detail: str = ""


# ---- values of a capture ------------------------------------------------------------


def whole(capture: Capture, metric: str, **labels: str) -> list[float]:
    """Return the values of the whole run that carry exactly these labels."""
    return [
        one.value
        for one in capture.measurements
        if one.metric == metric and one.labels == labels and one.start_s is None
    ]


def every(capture: Capture, metric: str) -> list[float]:
    """Return all values of a metric, whatever their labels."""
    return [one.value for one in capture.measurements if one.metric == metric]


def fewest_labels(capture: Capture, metric: str) -> list[float]:
    """Return the values for the whole run and the whole file."""
    told = [
        one
        for one in capture.measurements
        if one.metric == metric and one.start_s is None
    ]
    fewest = min((len(one.labels) for one in told), default=0)
    return [one.value for one in told if len(one.labels) == fewest]


def close(found: float, wanted: float, relative: float = 1e-3) -> bool:
    """Say whether two numbers agree, to the digits that tools print."""
    return abs(found - wanted) <= relative * abs(wanted) + 1e-9


def metric(name: str, factor: float = 1.0, absolute: float = 0.0) -> Check:
    """Check the one value of a metric; ``factor`` brings it to the expected unit."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool | None:
        found = [value * factor for value in fewest_labels(capture, name)]
        if wanted is None or not found:
            return None if capture.caveats or wanted is None else False
        relative = told.get("tolerance_rel", 2e-3)
        return any(
            close(value, wanted, relative) or abs(value - wanted) <= absolute
            for value in found
        )

    return check


def loss(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool | None:
    """Check the loss; where a fault of iperf3 spoils it, that by bytes counts."""
    percent = metric("loss", 100, absolute=0.051)
    by_bytes = told.get("lost_percent_by_bytes", wanted)
    return percent(capture, wanted, told) or percent(capture, by_bytes, told)


def event(name: str) -> Check:
    """Check the one reading of a counter."""
    return lambda capture, wanted, told: whole(capture, name) == [wanted]


def fact(*path: str) -> Check:
    """Check a fact."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        found: Any = capture.facts
        for key in path:
            found = found[key]
        return found == wanted

    return check


def size(name: str) -> Check:
    """Check how many entries a fact has."""
    return lambda capture, wanted, told: len(capture.facts[name]) == wanted  # type: ignore[arg-type]


# ---- one function a kind of expected key --------------------------------------------


def perf_rows(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check counts as printed: ``[event, value, unit, ...]``."""
    found = {(one.metric, one.value) for one in capture.measurements}
    known = {name for name, _ in found}
    return all(
        f"event:{name}" not in known
        if printed.startswith("<")
        else any((f"event:{name}", value) in found for value in readings(printed))
        for name, printed, *_ in wanted
    )


def readings(printed: str) -> Iterator[float]:
    """Yield what a number may mean: with a decimal mark, and with groups of digits."""
    text = printed.replace("\u202f", "")
    yield float(text.replace(",", "."))
    head, _, tail = text.replace(",", ".").rpartition(".")
    if head and len(tail) == 3:
        yield float(head + tail)


def counter_named(name: str) -> Check:
    """Check a counter of nstat; one that is not there is expected as null."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        found = whole(capture, f"event:{name}")
        return found == ([] if wanted is None else [int(wanted)])

    return check


def counters(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check how many counters there are."""
    return len(capture.measurements) == wanted


def first_counter(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check name and value of the first counter."""
    first, (name, value) = capture.measurements[0], wanted
    return (first.metric, first.value) == (f"event:{name}", int(value))


def largest_interrupt(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the sum of the row with most interrupts."""
    row = told["largest_row"]
    counts = [m.value for m in capture.measurements if m.labels.get("irq") == row]
    return sum(counts) == wanted


def devices(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check every column of every interface."""
    names = {"rx_drop": "rx_dropped", "tx_drop": "tx_dropped"}
    return all(
        whole(capture, f"event:{names.get(key, key)}", interface=device) == [value]
        for device, columns in told.items()
        if isinstance(columns, dict)
        for key, value in columns.items()
    )


def sent(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check bytes, packets and drops of every qdisc or class."""
    kind = "class" if capture.tool == "tc_class" else "qdisc"
    columns = [every(capture, f"event:{kind}_{key}") for key in ("bytes", "packets")]
    rows = zip(*columns, every(capture, f"event:{kind}_drops"), strict=True)
    return [list(row) for row in rows] == wanted


def per_queue(key: str) -> Check:
    """Check one counter of every qdisc."""
    return lambda capture, wanted, told: every(capture, f"event:qdisc_{key}") == wanted


def firmware(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the version of the firmware."""
    return capture.facts["firmware-version"] == wanted


def options(value: str) -> Check:
    """Check how many options of the kernel have this value."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        found: Any = capture.facts["options"]
        return list(found.values()).count(value) == wanted

    return check


def cpus_of_lscpu(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the number of CPUs, which the table of -p does not name."""
    number = wanted[0] if isinstance(wanted, list) else wanted
    return number is None or capture.facts["number_of_cpus"] == int(number)


def among(*metrics: str, factor: float = 1.0) -> Check:
    """Check that a value, or each of a map or list, is one of the capture's."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        found = [one for name in metrics for one in every(capture, name)]
        values = wanted.values() if isinstance(wanted, dict) else wanted
        return all(
            any(close(one, value * factor, 2e-3) for one in found)
            for value in (values if not isinstance(values, int | float) else [values])
        )

    return check


def of_direction(way: str) -> Check:
    """Check one direction of a run in both, as far as the capture tells it."""
    names = {"throughput_bits_per_second", "lost_percent", "retransmits"}

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        part = only(capture, direction=way)
        return all(
            NETWORK[key](part, value, wanted) is not False
            for key, value in wanted.items()
            if key in names
        )

    return check


def only(capture: Capture, **labels: str) -> Capture:
    """Return the capture with the measurements that have these labels, without them."""
    return replace(
        capture,
        measurements=tuple(
            replace(
                one, labels={k: v for k, v in one.labels.items() if k not in labels}
            )
            for one in capture.measurements
            if labels.items() <= one.labels.items()
        ),
    )


def documents(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool | None:
    """Check the throughput of every result of a file."""
    good = [(str(at), one) for at, one in enumerate(wanted, 1) if "error" not in one]
    key = "throughput_bits_per_second"
    rates = [
        (at, one.get(key, one.get("receiver_bits_per_second"))) for at, one in good
    ]
    return all(
        any(
            close(value, rate, 2e-3)
            for part in (only(capture, document=at) if len(good) > 1 else capture,)
            for value in [*every(part, "throughput"), *every(part, "send_rate")]
        )
        for at, rate in rates
        if rate is not None
    )


def mean_of_intervals(way: str = "") -> Check:
    """Check the mean of the intervals' rates."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        part = only(capture, direction=way) if way else capture
        rates = [
            one.value
            for one in part.measurements
            if one.start_s is not None and one.metric in {"throughput", "send_rate"}
        ]
        return bool(rates) and close(sum(rates) / len(rates), wanted, 2e-3)

    return check


def flent_means(
    capture: Capture, wanted: Json, told: Mapping[str, Json]
) -> bool | None:
    """Check netperf's final figure of every series that is no mean of others."""
    rates, times = among("throughput", "send_rate", factor=1e6), among("rtt_mean")
    return all(
        times(capture, [value / 1e3], told)
        if name.startswith("Ping")
        else rates(capture, [value], told)
        for name, value in wanted.items()
        if not name.endswith(("avg", "sum", "fairness"))
    )


def hosts(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check loss and round trip of every host that was pinged."""
    return all(
        loss(part, one["lost_percent"], one) is not False
        and NETWORK["rtt_avg_ms"](part, one["rtt_avg_ms"], one) is not False
        for name, one in wanted.items()
        for part in [only(capture, host=name)]
    )


def omni(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the rate of netperf's omni output: transactions, or 10^6 bit/s."""
    value = float(wanted.get("Throughput", wanted.get("THROUGHPUT")))
    rates = every(capture, "transaction_rate")
    if rates:
        return any(close(one, value) for one in rates)
    return among("throughput", "send_rate", factor=1e6)(capture, [value], told) is True


def latency_us(metric_name: str) -> Check:
    """Check a latency of sockperf, which prints half the round trip."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool | None:
        both = 2e-6 if told["kind"] == "latency" else 1e-6
        found = every(capture, metric_name)
        return any(close(one, wanted * both) for one in found) if found else None

    return check


def sockets(key: str, factor: float = 1.0) -> Check:
    """Check a fact of the sockets of ss; of several dumps it is that of the last."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        rows: Any = capture.facts["sockets"]
        found = [one[key] for one in rows if key in one]
        last = [value * factor for value in wanted]
        return bool(found) and all(any(close(a, b) for b in last) for a in found)

    return check


def with_setup(who: str) -> Check:
    """Check a rate that uperf works out with the time of its set-up: a fact."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        found = [
            value
            for name, value in capture.facts.items()
            if name.endswith("bit_per_s_with_setup")
            and name.startswith("master") == (who == "master")
        ]
        return any(close(float(str(value)), wanted) for value in found)

    return check


def percent_of(told: Mapping[str, str], *names: str) -> float:
    """Return the sum of some columns of percentages, in any locale."""
    return sum(float(told.get(name, "0").replace(",", ".")) for name in names)


def mpstat_row(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check softirq, and busy as far as idle bounds it."""
    soft, idle = percent_of(wanted, "soft") / 100, percent_of(wanted, "idle") / 100
    busy = every(capture, "cpu_busy")
    fits = any(close(one, soft) for one in every(capture, "cpu_softirq"))
    return fits and any(one <= 1 - idle + 1e-4 for one in busy)


def share(name: str) -> Check:
    """Check one percentage of the machine, of any interval or of the run."""
    return lambda capture, wanted, told: any(
        close(one, wanted / 100) for one in every(capture, name)
    )


def busy_from_idle(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check that the machine was no busier than what was not idle."""
    return any(one <= 1 - wanted / 100 + 1e-4 for one in every(capture, "cpu_busy"))


def top_line(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check busy and softirq of the first line of CPUs, of procps or of BusyBox."""
    words = re.findall(r"(\d+[.,]?\d*)%?\s+([a-z]+)", wanted)
    row = {name: value for value, name in words}
    busy = 1 - percent_of(row, "id", "wa", "idle", "io") / 100
    soft = percent_of(row, "si", "sirq") / 100
    return any(abs(one - busy) < 2e-3 for one in every(capture, "cpu_busy")) and any(
        close(one, soft) for one in every(capture, "cpu_softirq")
    )


def vmstat_row(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the first row, of since boot or of the first interval."""
    busy = 1 - (float(wanted[14]) + float(wanted[15])) / 100
    columns = (("cpu_busy", busy), ("event:in", wanted[10]), ("event:cs", wanted[11]))
    return all(
        any(close(one, float(value)) for one in every(capture, name))
        for name, value in columns
    )


def records(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool | None:
    """Check how many records of CPU shares there are."""
    if "cpu-load" not in told.get("kinds", ["cpu-load"]):
        return None
    spans = [one for one in capture.measurements if one.start_s is not None]
    return sum(one.metric == "cpu_busy" for one in spans) == wanted


def sar_rows(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the packets a second of every interface."""
    return all(
        whole(capture, "packet_rate", interface=name, direction=way)
        == [row[f"{way}pck/s"]]
        for name, row in wanted.items()
        for way in ("rx", "tx")
    )


def weight(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the weight of all stacks."""
    [profile] = capture.profiles
    return close(profile.total, wanted, 1e-9)


def title(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool | None:
    """Check the interface that the first line names, if it does."""
    named = wanted.rstrip(":").split(" for ")[1:]
    return capture.facts.get("interface") == named[0] if named else None


def turbostat_busy(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the share of time of the whole machine."""
    return float(wanted) in whole(capture, "event:Busy%")


# ---- profiles and traces ------------------------------------------------------------


def shared_profile(capture: Capture, told: Mapping[str, Json]) -> Profile | None:
    """Return the profile of the event whose shares are expected."""
    name = told.get("share_event")
    found = [one for one in capture.profiles if name is None or one.event == name]
    return found[0] if found else None


def leaf(key: str, share: str, *, by: str) -> Check:
    """Check the share of the symbol that is expected to be on top, by self time."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        profile = shared_profile(capture, told)
        if profile is None:
            return False
        sums: Counter[str] = Counter()
        for stack in profile.stacks:
            sums[stack.frames[-1]] += getattr(stack, by)
        total = sum(sums.values())
        same = abs(sums[told[key]] / total - told[share]) < 1e-4
        return same and sums[told[key]] == max(sums.values())

    return check


def samples_by_event(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the number of samples of every event."""
    return {one.event: one.samples for one in capture.profiles} == wanted


def period_total(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the sum of the periods."""
    profile = shared_profile(capture, told)
    return profile is not None and profile.total == wanted


def in_stacks(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check how many samples have pskb_expand_head in their stack."""
    stacks = [one for profile in capture.profiles for one in profile.stacks]
    found = [one.samples or 0 for one in stacks if "pskb_expand_head" in one.frames]
    return sum(found) == wanted


def comms(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check how many threads there are."""
    stacks = [one for profile in capture.profiles for one in profile.stacks]
    return len({one.comm for one in stacks}) == wanted


def frames(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool | None:
    """Check the number of all frames; the manifest counts those with a blank before."""
    stacks = [one for profile in capture.profiles for one in profile.stacks]
    found = sum(len(one.frames) * (one.samples or 0) for one in stacks)
    return found == wanted or (
        None if "[unknown]" in str(stacks) or not wanted else False
    )


def at(fact_name: str) -> Check:
    """Check a time, where it is one in seconds and the file is in order."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool | None:
        if (
            not wanted
            or "." not in wanted
            or float(told["first_ts"]) > float(told["last_ts"])
        ):
            return None
        found: Any = capture.facts[fact_name]
        return close(found, float(wanted), 1e-12)

    return check


def trace_events(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check how often every event, or every function, is in a trace."""
    if capture.tool == "trace_stats":
        return True  # events that were lost, none that was recorded
    found = {
        one.metric.partition(":")[2]: one.value
        for one in capture.measurements
        if not one.labels and one.metric.startswith(("event:", "calls:"))
    }
    return found == wanted


def at_call_site(metric_name: str) -> Check:
    """Check a number of the allocations that pskb_expand_head made."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        found = [
            one.value
            for one in capture.measurements
            if one.metric == metric_name
            and one.labels.get("call_site") == "pskb_expand_head"
        ]
        return found == [wanted]

    return check


def losses_told(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check that overwritten or lost events are a caveat with their number."""
    lost = wanted - told["in_buffer"] if "in_buffer" in told else wanted
    texts = [one.text for one in capture.caveats if one.code == "events-lost"]
    return not lost or "in_buffer" not in told or any(str(lost) in one for one in texts)


def graph_rows(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the rows of a call graph: leaves, openings and ends."""
    kinds = ("leaf_calls", "opens", "closes_with_duration")
    return capture.facts["rows"] == sum(told[one] for one in kinds)


def profiled(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check hits and mean time of the function on top."""
    times = every(capture, f"call_time:{told['top']}")
    same = every(capture, f"calls:{told['top']}") == [wanted]
    return same and close(times[0], told["time_us"] / wanted / 1e6, 1e-9)


def hist_sum(name: str) -> Check:
    """Check the sum of the printed rows of a hist trigger."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        rows = [
            one.value
            for one in capture.measurements
            if one.metric == f"event:hist_{name}" and one.labels
        ]
        return sum(rows) == wanted

    return check


def places(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the drops of every place."""
    found = {
        one.labels["symbol"]: one.value
        for one in capture.measurements
        if "symbol" in one.labels
    }
    return found == wanted


def of_map(name: str) -> Check:
    """Check every key of a map of bpftrace."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
        found = {
            one.labels["key"]: one.value
            for one in capture.measurements
            if one.metric == f"event:{name}" and "key" in one.labels
        }
        return found == wanted

    return check


def hist_count(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the sum over all histograms of bpftrace."""
    names = {
        one.metric for one in capture.measurements if one.metric.endswith("_count")
    }
    return sum(sum(every(capture, name)) for name in names) == wanted


def report_row(key: str, *, kinds: tuple[str, ...]) -> Check:
    """Check the shares of a row as printed, where its symbol stands in one row only."""

    def check(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool | None:
        if wanted is None:
            gone = [one for one in capture.measurements if "pskb_expand" in one.metric]
            return None if key == "first_row" else not gone
        symbol = re.search(r"\[[.k]\] (\S+)", wanted)
        printed = [
            float(one) / 100
            for one in re.findall(r"(?<![-+\d.])\d+\.\d\d(?=%| ?,)", wanted)
        ]
        if symbol is None:
            return None
        found = [
            one.value
            for one in capture.measurements
            if one.metric == f"profile_share:{symbol[1]}"
            and one.labels.get("share") in kinds
        ]
        return any(close(one, printed[0], 1e-3) for one in found) or (
            None if len(found) > 4 else False
        )

    return check


def report_events(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the sum of the periods of every event of a report."""
    facts: Any = capture.facts["events"]
    return [one["count"] for one in facts] == wanted


def report_samples(capture: Capture, wanted: Json, told: Mapping[str, Json]) -> bool:
    """Check the number of samples, which is exact in the column alone."""
    found = {one.exposure for one in capture.measurements if one.exposure}
    return found <= {wanted}


_TRACE: dict[str, Check] = {
    "events": trace_events,
    "in_buffer": fact("entries_in_buffer"),
    "written": losses_told,
    "lost_events": losses_told,
    "first_ts": at("first_s"),
    "last_ts": at("last_s"),
    "kmalloc_pskb_expand_head": at_call_site("alloc_count"),
    "bytes_alloc_pskb_expand_head": at_call_site("event:kmalloc_bytes"),
}
_RATES = ("throughput", "send_rate")
#: Keys that mean the same in every network tool.
NETWORK: dict[str, Check] = {
    "throughput_bits_per_second": metric("throughput"),
    "lost_percent": loss,
    "retransmits": metric("retransmits"),
    "jitter_ms": metric("jitter", 1e3, absolute=5.1e-4),
    "rtt_avg_ms": metric("rtt_mean", 1e3, absolute=5.1e-4),
    "rtt_mean_ns": metric("rtt_mean", 1e9, absolute=1),
    "rtt_median_ns": metric("rtt_p50", 1e9, absolute=1),
    "transactions_per_second": metric("transaction_rate"),
    "requests_per_second": metric("transaction_rate"),
    "pps": metric("packet_rate"),
    "rtt_mean_us": metric("rtt_mean", 1e6, absolute=0.01),
    "forward": of_direction("forward"),
    "reverse": of_direction("reverse"),
    "forward_bits_per_second": among(*_RATES),
    "reverse_bits_per_second": among(*_RATES),
    "results": documents,
    "mean_of_intervals_bits_per_second": mean_of_intervals(),
    "interval_sum_bits_per_second": mean_of_intervals(),
    "tx_mean_of_intervals_bits_per_second": mean_of_intervals("forward"),
    "rx_mean_of_intervals_bits_per_second": mean_of_intervals("reverse"),
    "per_id_bits_per_second": among(*_RATES),
    "per_source_bits_per_second": among(*_RATES),
    "RX-C_receiver_bits_per_second": among("throughput"),
    "TX-C_receiver_bits_per_second": among("throughput"),
    "netperf_final_mean_value": flent_means,
    "hosts": hosts,
    "csv": omni,
    "keyval": omni,
    "tcp_bw_bits_per_second": among("throughput"),
    "udp_send_bits_per_second": among("send_rate"),
    "udp_recv_bits_per_second": among("throughput"),
    "tcp_lat_us": among("rtt_mean", factor=2e-6),
    "udp_lat_us": among("rtt_mean", factor=2e-6),
    "avg_us": latency_us("rtt_mean"),
    "p50_us": latency_us("rtt_p50"),
    "p99_us": latency_us("rtt_p99"),
    "rtt_ms": sockets("rtt_s", 1e-3),
    "printed_Mbps": among("send_rate", factor=2**20),
    "minrtt_ms": sockets("minrtt_s", 1e-3),
    "delivery_rate_bps": sockets("delivery_rate_bit_per_s"),
    "master_printed_bits_per_second": with_setup("master"),
    "slave_printed_bits_per_second": with_setup("slave"),
    "conn_per_s": among("transaction_rate"),
    "latency_avg_us": among("rtt_mean", factor=1e-6),
    "average_soft": share("cpu_softirq"),
    "average_idle": busy_from_idle,
    "idle_all_mean": busy_from_idle,
}
_NSTAT = ("IpForwDatagrams", "UdpInErrors", "UdpInDatagrams", "IpExtInOctets")
#: Keys of one tool.
SYSTEM: dict[str, dict[str, Check]] = {
    "perf-stat": {"values": perf_rows, "values_as_printed": perf_rows},
    "nstat": {"counters": counters, **{name: counter_named(name) for name in _NSTAT}},
    "proc-interrupts": {"rows": size("interrupts"), "largest_sum": largest_interrupt},
    "proc-softirqs": {
        "NET_RX": event("event:softirq_NET_RX"),
        "NET_TX": event("event:softirq_NET_TX"),
    },
    "proc-softnet": {
        f"{name}_sum": event(f"event:softnet_{name}")
        for name in ("processed", "dropped", "time_squeeze")
    },
    "proc-stat": {
        "cpus": fact("number_of_cpus"),
        "fields": fact("fields"),
        "cpu_total": event("event:cpu_time"),
        "ctxt": event("context_switches"),
    },
    "proc-netdev": {"devices": devices},
    "ethtool": {
        "counters": counters,
        "first": first_counter,
        "driver": fact("driver"),
        "version": fact("version"),
        "firmware": firmware,
        "text": title,
    },
    "mpstat": {
        "average_all": mpstat_row,
        "first_all": mpstat_row,
        "all_soft": share("cpu_softirq"),
        "all_idle": busy_from_idle,
        "reports": records,
        "reports_complete": records,
    },
    "folded": {"total": weight},
    "perf-script": {
        "samples": fact("samples"),
        "events": samples_by_event,
        "frames": frames,
        "top_leaf_samples": leaf("top_leaf", "top_leaf_share", by="samples"),
        "top_leaf_by_period": leaf(
            "top_leaf_by_period", "top_leaf_period_share", by="weight"
        ),
        "period_total": period_total,
        "pskb_expand_head_inclusive": in_stacks,
        "comms": comms,
        "first_ts": at("first_s"),
        "last_ts": at("last_s"),
    },
    "ftrace": _TRACE,
    "ftrace-function": _TRACE,
    "trace-cmd": _TRACE,
    "ftrace-graph": {"rows": graph_rows, "switch_lines": fact("task_switches")},
    "ftrace-profile": {"hits": profiled, "cpus": fact("cpus")},
    "hist-trigger": {
        "rows": fact("rows"),
        "Hits": event("event:hist_hits"),
        "sum_hitcount": hist_sum("hits"),
        "sum_bytes_req": hist_sum("bytes_req"),
    },
    "dropwatch": {"drops": places, "total": event("drops"), "packets": event("drops")},
    "bpftrace": {
        "@": of_map("@"),
        "@bytes": of_map("@bytes"),
        "@pkts": of_map("@pkts"),
        "hist_count": hist_count,
    },
    "perf-report": {
        "event_count": report_events,
        "samples": report_samples,
        "first_row": report_row("first_row", kinds=("self", "inclusive")),
        "max_row": report_row("first_row", kinds=("self", "inclusive")),
        "pskb_row": report_row("pskb_row", kinds=("self", "inclusive")),
    },
    "perf-diff": {
        "rows": fact("rows"),
        "first_row": report_row("first_row", kinds=("self",)),
        "pskb_row": report_row("pskb_row", kinds=("self",)),
    },
    "sar": {"average": sar_rows},
    "top": {"first_cpu_line": top_line},
    "turbostat": {"Busy%": turbostat_busy},
    "vmstat": {"first_row": vmstat_row},
    "ip": {"links": size("interfaces")},
    "tc": {"sent": sent, "drops": per_queue("drops"), "packets": per_queue("packets")},
    "lscpu": {"CPU(s)": cpus_of_lscpu},
    "sysinfo": {
        "release": fact("release"),
        "set_y": options("y"),
        "not_set": options("n"),
        "CONFIG_HZ": fact("options", "CONFIG_HZ"),
    },
}

# ---- files --------------------------------------------------------------------------


def judge(folder: Path, row: Mapping[str, str]) -> Result:
    """Read one file and compare it with its row of the manifest."""
    wanted: dict[str, Any] = json.loads(row["expected"])
    outcome, detail = "crash", ""
    try:
        outcome, detail = compare(
            loaders.load(folder / row["path"]), wanted, row["tool"], folder.name
        )
    except UnknownToolError:
        outcome = "refused" if is_error(wanted) else "unknown"
    except CaptureError as error:
        outcome, detail = "refused", error.problem
        if "recognised as" in error.problem:
            outcome = "wrong"
        elif not is_error(wanted):
            outcome = "declined"
    except Exception as error:  # a crash is what this program looks for
        detail = f"{type(error).__name__}: {error}"
    if row["path"] in DISPUTED and outcome not in {"refused", "crash"}:
        outcome, detail = "disputed", DISPUTED[row["path"]]
    return Result(path=row["path"], tool=row["tool"], outcome=outcome, detail=detail)


def is_error(wanted: Mapping[str, Any]) -> bool:
    """Say whether the manifest expects that the file is refused."""
    text = str(wanted.get("text", ""))
    return "error" in wanted or "error" in text or text == "no stats available"


def compare(
    capture: Capture, wanted: Mapping[str, Any], tool: str, corpus: str
) -> tuple[str, str]:
    """Return the outcome for a file that was read."""
    if capture.error:
        failed = "error" in wanted or "partial" in wanted
        return ("refused", "") if failed else ("wrong", capture.error.text)
    doubted = {one.code for one in capture.caveats} & {"cut-short", "no-line-end"}
    if wanted.get("error", "not JSON") != "not JSON" and not doubted:
        return "wrong", f"was read, but is broken: {wanted['error']}"
    checks = NETWORK if corpus == "net" else SYSTEM.get(tool, {})
    found = {
        key: check(capture, wanted[key], wanted)
        for key, check in checks.items()
        if key in wanted
    }
    failed = [f"{key} is not {wanted[key]}" for key, ok in found.items() if ok is False]
    if failed:
        return "wrong", "; ".join(failed)[:200]
    return ("right" if any(found.values()) else "read"), ""


def results(corpus: Path) -> Iterator[Result]:
    """Yield what became of every file of both manifests."""
    for folder in (corpus / "net", corpus / "sys"):
        with (folder / "MANIFEST.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                yield judge(folder, row)


def table(found: list[Result]) -> Iterator[str]:
    """Yield the lines of the table, then a line for each file to look at."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        counts[one.tool][one.outcome] += 1
    counts["all"] = sum(counts.values(), Counter())
    yield f"{'tool':<15}" + "".join(f"{one:>9}" for one in OUTCOMES)
    for tool, row in counts.items():
        cells = (f"{row[outcome] or '-':>9}" for outcome in OUTCOMES)
        yield f"{tool:<15}" + "".join(cells)
    for one in found:
        if one.outcome in {"disputed", "declined", "wrong", "crash"}:
            yield f"{one.outcome}: {one.path}: {one.detail}"


def main() -> int:
    """Print the table; return 1 if a file was read wrong or crashed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="folder with net/ and sys/")
    found = list(results(parser.parse_args().corpus))
    print("\n".join(table(found)))
    return int(any(one.outcome in {"wrong", "crash"} for one in found))


if __name__ == "__main__":
    sys.exit(main())
