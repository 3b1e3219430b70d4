"""Read ``mpstat -o JSON`` of sysstat: how busy the CPUs were.

The shares of a CPU's time are percentages with two decimals (mpstat.c of sysstat);
``guest`` is not contained in ``usr``, so they add up to 100. Here they become shares
of 1:

- ``cpu_busy`` is all but ``idle`` and ``iowait``. ``steal``, time that the hypervisor
  gave to others, counts as busy, as this machine could not use it; where it reaches
  1 % of a run a caveat tells it.
- ``cpu_softirq`` is ``soft``.

A record's ``timestamp`` is its end, in local time and whole seconds, and the header's
date is written as the locale likes, so the time in UTC is not known. A record is as
long as the time since the one before, the first as long as the second. sysstat 11 and
12.1 write ``-1`` for the CPU ``all``. A CPU that is offline has shares of 0 only and is
left out.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import json_value
from patchstudy.records import Capture, Caveat, Measurement, RawFile, Severity

_TABLES = re.compile(r'"(?:cpu|node)-load"|"(?:sum|individual|soft)-interrupts"')
_LIST = re.compile(r'"statistics"\s*:\s*\[')
_TIME = re.compile(r"(\d{1,2})\D(\d{1,2})\D(\d{1,2})(\D{0,12})")
_NEEDED = ("usr", "nice", "sys", "iowait", "irq", "soft", "idle")
_LATER = ("steal", "guest", "gnice")  # old versions have none of them
_RESOLUTION: Final = 1e-4
_CLOCK = Caveat(
    code="clock-unknown",
    severity=Severity.NOTE,
    text="mpstat writes local time without its zone; when it started is not known",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """The CPU table of one interval; shares of 1 by CPU and column."""

    start_s: float
    end_s: float
    cpus: dict[str, dict[str, float]]

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


def sniff(raw: RawFile) -> bool:
    """Say whether it is JSON of sysstat with a table of mpstat, and not of sadf."""
    head = raw.head
    if not head.lstrip().startswith("{") or '"sysstat"' not in head[:200]:
        return False
    return '"file-date"' not in head and _TABLES.search(head) is not None


def load(raw: RawFile) -> Capture:
    """Read the shares of every record and their means over the run."""
    host, cut = _host(raw)
    records = _records(raw, host)
    if not records:
        problem = "holds no record of CPU shares; call mpstat with -u -P ALL -o JSON 1"
        raise CaptureError(raw.path, problem)
    means = {
        cpu: {share: _mean(records, cpu, share) for share in ("busy", "soft", "steal")}
        for cpu in dict.fromkeys(cpu for one in records for cpu in one.cpus)
    }
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="mpstat",
        measurements=(*_intervals(records), *_whole_run(means)),
        facts=_facts(host, means),
        caveats=tuple(_caveats(host, means, len(records), cut=cut)),
    )


def _host(raw: RawFile) -> tuple[dict[str, Any], bool]:
    """Return the header with its records, and whether the file is cut."""
    if raw.text.count('"sysstat"') > 1:
        raise CaptureError(raw.path, "holds the output of two calls; split the file")
    value: Any
    try:
        value, cut = json_value(raw), False
    except CaptureError:
        value, cut = _complete_part(raw.text), True
        if value is None:
            raise
    try:
        host = value["sysstat"]["hosts"][0]
        if isinstance(host["statistics"], list):
            return host, cut
    except (KeyError, IndexError, TypeError) as error:
        missing = f"not laid out as mpstat does ({type(error).__name__}: {error})"
        raise CaptureError(raw.path, missing) from error
    raise CaptureError(raw.path, "not laid out as mpstat does: no list of statistics")


def _complete_part(text: str) -> object:
    """Return the header and the records before the cut; None where it has neither."""
    match = _LIST.search(text)
    if match is None:
        return None
    records: list[object] = []
    rest = text[match.end() :].lstrip(" \t\r\n,")
    while rest.startswith("{"):
        try:
            record, end = json.JSONDecoder().raw_decode(rest)
        except (ValueError, RecursionError):
            break
        records.append(record)
        rest = rest[end:].lstrip(" \t\r\n,")
    try:
        value = json.loads(text[: match.end()] + "]}]}}")
        value["sysstat"]["hosts"][0]["statistics"] = records
    except (ValueError, LookupError, TypeError):
        return None
    return value


def _records(raw: RawFile, host: dict[str, Any]) -> list[_Record]:
    """Return the records that hold a CPU table, with their place in the run."""
    tables = [
        (f"statistics[{index}]", one)
        for index, one in enumerate(host["statistics"])
        if isinstance(one, dict) and isinstance(one.get("cpu-load"), list)
    ]
    times = [_seconds(raw, one.get("timestamp"), where) for where, one in tables]
    ends = _ends(times)
    return [
        _Record(start_s=start, end_s=end, cpus=_cpus(raw, one["cpu-load"], where))
        for (where, one), start, end in zip(tables, [0.0, *ends], ends, strict=False)
    ]


def _seconds(raw: RawFile, timestamp: object, where: str) -> int:
    """Return the seconds since midnight of a time with 24 or 12 hours."""
    match = _TIME.fullmatch(str(timestamp).strip())
    if match is None:
        problem = f"{timestamp!r} is not a time of day"
        raise CaptureError(raw.path, problem, where=f"{where}.timestamp")
    hour, minute, second = (int(part) for part in match.groups()[:3])
    half = match[4].strip().lower()[:1]
    if half and half in "ap":
        hour = hour % 12 + (12 if half == "p" else 0)
    return hour * 3600 + minute * 60 + second


def _ends(times: Sequence[int]) -> list[float]:
    """Return the end of every record in seconds from the start of the first.

    The clock shows whole seconds; where two records share one second, all are taken as
    equally long.
    """
    steps = [(after - before) % 86400 for before, after in pairwise(times)] or [1]
    if min(steps) == 0:
        steps = [max(1, sum(steps)) / len(steps)] * len(steps)
    lengths = [steps[0], *steps][: len(times)]
    return [float(sum(lengths[: index + 1])) for index in range(len(lengths))]


def _cpus(raw: RawFile, rows: list[object], where: str) -> dict[str, dict[str, float]]:
    """Return the shares of every CPU that was online."""
    cpus: dict[str, dict[str, float]] = {}
    for index, row in enumerate(rows):
        name, shares = _shares(raw, row, f"{where}.cpu-load[{index}]")
        if any(shares.values()):
            away = shares["idle"] + shares["iowait"]
            cpus[name] = {**shares, "busy": round(max(0.0, 1 - away), 6)}
    return cpus


def _shares(raw: RawFile, row: object, where: str) -> tuple[str, dict[str, float]]:
    """Return the CPU of a row and its shares of 1."""
    if not isinstance(row, dict) or "cpu" not in row:
        raise CaptureError(raw.path, "not a row of a CPU", where=where)
    shares: dict[str, float] = {}
    for key in (*_NEEDED, *_LATER):
        value = row.get(key, 0.0 if key in _LATER else None)
        if isinstance(value, bool) or not isinstance(value, int | float):
            problem = f"{value!r} is not a share in percent"
            raise CaptureError(raw.path, problem, where=f"{where}.{key}")
        shares[key] = round(value / 100, 6)
    name = str(row["cpu"])
    return "all" if name == "-1" else name, shares


def _mean(records: Sequence[_Record], cpu: str, share: str) -> float:
    """Return the mean over the records in which the CPU was online."""
    online = [one for one in records if cpu in one.cpus]
    total = sum(one.cpus[cpu][share] * one.length_s for one in online)
    return round(total / sum(one.length_s for one in online), 9)


def _intervals(records: Sequence[_Record]) -> Iterator[Measurement]:
    """Yield the shares of the whole machine, record by record."""
    for record in records:
        if "all" not in record.cpus:
            continue
        for metric, share in (("cpu_busy", "busy"), ("cpu_softirq", "soft")):
            yield Measurement(
                metric=metric,
                value=record.cpus["all"][share],
                start_s=record.start_s,
                end_s=record.end_s,
                resolution=_RESOLUTION,
            )


def _whole_run(means: dict[str, dict[str, float]]) -> Iterator[Measurement]:
    """Yield the means over the run: of the machine, its busiest CPU, and every CPU."""
    if "all" in means:
        yield _mean_of("cpu_busy", means["all"]["busy"])
        yield _mean_of("cpu_softirq", means["all"]["soft"])
    busiest = _busiest(means)
    if busiest is not None:
        yield _mean_of("cpu_busy_max", means[busiest]["busy"])
    for cpu, mean in means.items():
        if cpu != "all":
            yield _mean_of("cpu_busy", mean["busy"], cpu=cpu)


def _mean_of(metric: str, value: float, **labels: str) -> Measurement:
    return Measurement(
        metric=metric, value=value, labels=labels, resolution=_RESOLUTION
    )


def _busiest(means: dict[str, dict[str, float]]) -> str | None:
    """Return the CPU that was busiest over the run; None where only ``all`` is told."""
    cpus = [cpu for cpu in means if cpu != "all"]
    return max(cpus, key=lambda cpu: means[cpu]["busy"], default=None)


def _facts(
    host: dict[str, object], means: dict[str, dict[str, float]]
) -> dict[str, object]:
    """Return what the header says of the machine, and which CPU was busiest."""
    facts: dict[str, object] = {
        key: host[key]
        for key in ("nodename", "sysname", "release", "machine")
        if host.get(key) not in {None, "(none)"}
    }
    if isinstance(host.get("number-of-cpus"), int):
        facts["number_of_cpus"] = host["number-of-cpus"]
    busiest = _busiest(means)
    return facts if busiest is None else {**facts, "busiest_cpu": busiest}


def _caveats(
    host: dict[str, object],
    means: dict[str, dict[str, float]],
    n_records: int,
    *,
    cut: bool,
) -> Iterator[Caveat]:
    """Yield what is absent or doubtful."""
    yield _CLOCK
    if cut:
        text = (
            f"mpstat was killed or the file is cut: {n_records} complete records read"
        )
        yield _note("cut-short", text, "Stop mpstat with SIGINT, which ends the file.")
    if n_records == 1:
        text = "one record only, taken as 1 s; without an interval it is since boot"
        yield _note(
            "length-unknown", text, "Call mpstat with an interval, as in -o JSON 1."
        )
    steal = means.get("all", {}).get("steal", 0.0)
    if steal >= 0.01:
        text = f"the hypervisor took {steal:.1%} of the CPU time; it counts as busy"
        yield _note("steal", text, "Measure on a machine that nobody else uses.")
    told, present = len(means) - ("all" in means), host.get("number-of-cpus")
    if isinstance(present, int) and told < present:
        text = f"{told} of {present} CPUs are told apart; the busiest may be another"
        yield _note("cpus-missing", text, "Call mpstat with -P ALL.")


def _note(code: str, text: str, todo: str) -> Caveat:
    return Caveat(code=code, severity=Severity.NOTE, text=text, todo=todo)
