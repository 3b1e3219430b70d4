"""Read every file of a corpus and compare it with what its MANIFEST.csv expects.

Run: ``python benchmarks/corpus.py ../shared/corpus``. Prints, for every tool of both
manifests, how many files were read right, refused as expected, read without a value
that could be compared, declined with a clear error though the manifest has values, read
wrong, crashed, and known to no loader. Exits with 1 if any file was read wrong or
crashed; those, and the declined ones, are named below the table.
"""

import argparse
import csv
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchstudy import loaders
from patchstudy.errors import CaptureError, UnknownToolError
from patchstudy.records import Capture

OUTCOMES = ("right", "refused", "read", "declined", "wrong", "crash", "no loader")

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
    },
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
        outcome = "refused" if is_error(wanted) else "no loader"
    except CaptureError as error:
        outcome, detail = "refused", error.problem
        if "recognised as" in error.problem:
            outcome = "wrong"
        elif not is_error(wanted):
            outcome = "declined"
    except Exception as error:  # a crash is what this program looks for
        detail = f"{type(error).__name__}: {error}"
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
    yield f"{'tool':<16}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES)
    for tool, row in counts.items():
        cells = (f"{row[outcome] or '-':>10}" for outcome in OUTCOMES)
        yield f"{tool:<16}" + "".join(cells)
    for one in found:
        if one.outcome in {"declined", "wrong", "crash"}:
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
