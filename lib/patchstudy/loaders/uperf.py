"""Read what uperf's master prints, also with ``-R`` (raw samples), ``-v`` and ``-a``.

What the values are (uperf's source; checked against a shaped link). The ``Total``,
``master`` and slave lines divide by a time that holds the set-up too (5.2 s for a test
of 3 s): their rates are facts and no metric. What a test moved in its own time stands
in the samples or the line of one transaction; the one with most bytes is taken. MB is
2^20 byte, Mb/s 10^6 bit/s.

``throughput``
    Payload of the transaction over its own time, as the master counted it. Only where
    the profile's name says TCP or says nothing of UDP. Intervals: between two samples.
``send_rate``
    The same of UDP: the master counts what it sent.
``loss``
    UDP: 1 - bytes of the slaves / bytes of the master, of the ``Run Statistics``.

Operations are single reads and writes, not transactions: ``operations_per_second`` is a
fact.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, bit, byte, last_digit
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "bytes of the transaction that moved most over its own time; an interval: "
        "nr_bytes between two samples (-R)"
    ),
    "send_rate": "the same of UDP",
    "loss": "Run Statistics: 1 - bytes of the slaves / bytes of the master",
}
_SAMPLE: Final = re.compile(
    r"^timestamp_ms:(\d{1,15}(?:\.\d+)?) name:(\w+) nr_bytes:(\d{1,18})"
    r" nr_ops:(\d{1,18})"
)
_FIGURE: Final = r"(\d{1,12}(?:\.\d+)?)([KMGT]?)"
_TOTAL: Final = re.compile(
    rf"^ *(?P<name>[\w.-]+) +{_FIGURE}B? ?/ *(\d{{1,9}}\.\d+) *\(s\) = +"
    rf"{_FIGURE}(?:b/s)?(?: +(\d{{1,15}})(?:op|txn)/s)?"
)
_SIDE: Final = re.compile(
    rf"^(?:\[\S+\] Success)?(\S+) +(\d{{1,9}}\.\d+)s? +{_FIGURE}B +{_FIGURE}b(?:/s|ps)"
    r" +(\d{1,18}) +(\d+\.\d+)\s*$"
)
_STARTING: Final = re.compile(
    r"^Starting (\d{1,6}) (?:threads|processes|strands) running profile:(\S+) \.\.\."
)
_ERROR: Final = re.compile(
    r"^(?:\*\* .*|.*Error (?:connecting|opening|parsing|initializing).*"
    r"|.*(?:Connection refused|Cannot connect|handshake failed|Failed to).*)$"
)


def sniff(raw: RawFile) -> bool:
    """Say whether a line is one that only uperf prints."""
    lines = plain_head(raw)
    return any(
        _STARTING.match(line)
        or _SAMPLE.match(line)
        or "exchange stats with slave" in line
        for line in lines
    )


def load(raw: RawFile) -> Capture:
    """Read the output of one run."""
    run = _run(raw)
    reading = Reading()
    fault = run.error if not run.sides else None
    busiest = _busiest(run)
    metric = "send_rate" if run.udp else "throughput"
    for span, rate in _between(run.samples.get(busiest or "", [])):
        reading.interval(metric, rate, span)
    if fault is None:
        _whole_run(run, busiest, reading)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="uperf",
        started_at=_started_at(run),
        workload=_workload(run, busiest),
        measurements=tuple(reading.measurements),
        facts=_facts(run, busiest),
        caveats=tuple(reading.caveats),
        error=fault,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Total:
    """A line of totals: bytes, seconds, bit/s with its last digit, operations/s."""

    size: float
    seconds: float
    rate: float
    resolution: float
    operations: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """What the master or a slave counted over the whole run, set-up included."""

    name: str
    seconds: float
    size: float
    resolution: float
    rate: float


@dataclass(slots=True)
class _Run:
    """What the lines tell; samples are (ms since 1970, bytes, operations)."""

    threads: int | None
    profile: str
    samples: dict[str, list[tuple[float, int, int]]]
    totals: dict[str, _Total]
    sides: list[_Side]
    error: Fault | None

    @property
    def udp(self) -> bool:
        return "udp" in self.profile.lower()


def _run(raw: RawFile) -> _Run:
    run = _Run(threads=None, profile="", samples={}, totals={}, sides=[], error=None)
    for number, line in plain(raw.text):
        if sample := _SAMPLE.match(line):
            row = (float(sample[1]), int(sample[3]), int(sample[4]))
            run.samples.setdefault(sample[2], []).append(row)
        elif starting := _STARTING.match(line):
            run.threads, run.profile = int(starting[1]), starting[2]
        elif total := _TOTAL.match(line):
            _take_total(run, total)
        elif side := _SIDE.match(line):
            run.sides.append(_side(side))
        elif run.error is None and _ERROR.match(line):
            run.error = Fault(text=line.strip(), where=str(number))
    if not (run.samples or run.totals or run.sides or run.error):
        run.error = Fault(text="no result; did the run fail, or was it cut short?")
    return run


def _take_total(run: _Run, match: re.Match[str]) -> None:
    """Keep the last line of each transaction: it is written over itself."""
    size, size_unit, seconds, rate, rate_unit, operations = match.groups()[1:]
    run.totals[match["name"]] = _Total(
        size=byte(float(size), size_unit),
        seconds=float(seconds),
        rate=bit(float(rate), rate_unit),
        resolution=bit(last_digit(rate), rate_unit),
        operations=float(operations) if operations else None,
    )


def _side(match: re.Match[str]) -> _Side:
    return _Side(
        name=match[1],
        seconds=float(match[2]),
        size=byte(float(match[3]), match[4]),
        resolution=byte(last_digit(match[3]), match[4]),
        rate=bit(float(match[5]), match[6]),
    )


def _busiest(run: _Run) -> str | None:
    """Return the transaction that moved most bytes, if one moved any."""
    sizes = {name: float(rows[-1][1]) for name, rows in run.samples.items()}
    sizes |= {name: one.size for name, one in run.totals.items() if name not in sizes}
    moved = {name: size for name, size in sizes.items() if name.startswith("Txn")}
    best = max(moved, key=lambda name: moved[name], default=None)
    return best if best is not None and moved[best] > 0 else None


def _between(
    rows: list[tuple[float, int, int]],
) -> list[tuple[tuple[float, float], float]]:
    """Return span and rate between two samples, of time from the first."""
    found = []
    for (before_ms, before, _), (after_ms, after, _) in pairwise(rows):
        span = ((before_ms - rows[0][0]) * 1e-3, (after_ms - rows[0][0]) * 1e-3)
        if span[1] > span[0] and after >= before:
            found.append((span, (after - before) * 8 / (span[1] - span[0])))
    return found


def _whole_run(run: _Run, busiest: str | None, reading: Reading) -> None:
    metric = "send_rate" if run.udp else "throughput"
    rows = run.samples.get(busiest or "", [])
    if len(rows) > 1 and rows[-1][0] > rows[0][0]:
        size, ms = rows[-1][1] - rows[0][1], rows[-1][0] - rows[0][0]
        reading.rate(metric, size * 8 / ms * 1e3)
    elif busiest and busiest in run.totals and run.totals[busiest].rate:
        total = run.totals[busiest]
        reading.rate(metric, total.rate, resolution=total.resolution)
    else:
        reading.doubt(
            f"{metric.replace('_', '-')}-absent",
            "the printed rates divide by a time that holds the set-up too; the rate of"
            " the test alone is not in the file",
            "run uperf with -R (raw samples)",
        )
    if not run.sides:
        reading.doubt("cut-short", "the Run Statistics are missing; was the file cut?")
    _slaves(run, reading)


def _slaves(run: _Run, reading: Reading) -> None:
    """Compare what the master sent with what the slaves got."""
    masters = [one for one in run.sides if one.name.lower() == "master"]
    slaves = [one for one in run.sides if one.name.lower() != "master"]
    if not masters or not slaves or not masters[0].size:
        return
    sent, received = masters[0].size, sum(one.size for one in slaves)
    if run.udp and 0 <= received <= sent:
        reading.whole(
            "loss", 1 - received / sent, resolution=slaves[0].resolution / sent
        )
        reading.note("loss-by-bytes", "loss is what the slaves lack of the sent bytes")
    elif abs(received - sent) > 0.01 * sent:
        reading.doubt(
            "sides-differ",
            f"the slaves count {received / sent:.1%} of the bytes of the master",
            "compare with a counter of the interface",
        )


def _started_at(run: _Run) -> str | None:
    times = [rows[0][0] for rows in run.samples.values()]
    if not times or not 1e12 < min(times) < 4e12:
        return None
    moment = datetime.fromtimestamp(int(min(times) // 1000), tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _workload(run: _Run, busiest: str | None) -> dict[str, str | int | float | None]:
    rows = run.samples.get(busiest or "", [])
    total = run.totals.get(busiest or "")
    seconds = (rows[-1][0] - rows[0][0]) * 1e-3 if rows else None
    if seconds is None and total and total.seconds:
        seconds = total.seconds
    protocol = "TCP" if "tcp" in run.profile.lower() else None
    return {
        "protocol": "UDP" if run.udp else protocol,
        "direction": None,
        "profile": run.profile or None,
        "streams": run.threads,
        "duration_s": seconds,
    }


def _facts(run: _Run, busiest: str | None) -> dict[str, object]:
    facts: dict[str, object] = {}
    rows = run.samples.get(busiest or "", [])
    total = run.totals.get(busiest or "")
    if len(rows) > 1 and rows[-1][0] > rows[0][0]:
        ms = rows[-1][0] - rows[0][0]
        facts["operations_per_second"] = (rows[-1][2] - rows[0][2]) / ms * 1e3
    elif total and total.operations:
        facts["operations_per_second"] = total.operations
    for one in run.sides:
        facts[f"{one.name}_bit_per_s_with_setup"] = one.rate
        facts[f"{one.name}_seconds_with_setup"] = one.seconds
    return facts
