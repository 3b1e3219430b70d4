"""Shares of CPU time as measurements, whatever tool printed them.

``cpu_busy`` is all but ``idle`` and ``iowait``. ``steal``, time that the hypervisor
gave to others, counts as busy, as this machine could not use it; where it reaches 1 %
a caveat tells it. ``cpu_softirq`` is ``soft``, absent where the tool adds it to the
system's time.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final

from patchstudy.records import Caveat, Measurement, Severity

#: Other names of the columns.
_SAME: Final = {"user": "usr", "system": "sys"}
#: Shares that are read: the machine could do something else in the others.
_KEPT: Final = ("busy", "soft", "steal")
#: Two decimals each of ten columns, and CPUs that come and go within an interval.
_SLACK: Final = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The shares of one interval.

    Attributes
    ----------
    start_s, end_s
        Place in the run; both None where the tool does not tell it.
    cpus
        By CPU (``all`` is the machine) the shares ``busy`` and, where known, ``soft``
        and ``steal``.
    """

    start_s: float | None
    end_s: float | None
    cpus: Mapping[str, Mapping[str, float]]

    @property
    def length_s(self) -> float:
        """Its weight in a mean; 1 for each where the place is not told."""
        if self.start_s is None or self.end_s is None:
            return 1.0
        return self.end_s - self.start_s


def shares(percent: Mapping[str, float], *, slack: float = _SLACK) -> dict[str, float]:
    """Return the shares of one CPU of 1; none for a CPU that was offline.

    Parameters
    ----------
    percent
        By the tool's column name without ``%``; ``idle`` must be among them.
    slack
        By how much their sum may miss 100, as each is rounded.

    Raises
    ------
    ValueError
        If they do not add up to 100 %, or ``idle`` is missing.

    Examples
    --------
    >>> shares({"user": 10.0, "system": 20.0, "iowait": 5.0, "idle": 65.0})
    {'busy': 0.3}
    """
    named = percent
    if not _SAME.keys().isdisjoint(percent):
        named = {_SAME.get(name, name): value for name, value in percent.items()}
    if "idle" not in named:
        raise ValueError("no column tells how much of a CPU was idle")
    values = named.values()
    total = sum(values)
    if not total and not any(values):
        return {}
    if abs(total - 100) > slack or min(values) < 0:
        raise ValueError(f"the shares of a CPU add up to {total:.1f} %, not to 100 %")
    away = named["idle"] + named.get("iowait", 0.0)
    kept = {"busy": round(1 - away / 100, 6) if away < 100 else 0.0}
    for name in ("soft", "steal"):
        if name in named:
            kept[name] = round(named[name] / 100, 6)
    return kept


def ends(times: Sequence[int], start: int | None = None) -> list[float]:
    """Return the end of every record in seconds from the start of the first.

    The clock shows whole seconds of a day; where two records share one second, all are
    taken as equally long. Without its start the first is as long as the second.
    """
    known = [*([] if start is None else [start]), *times]
    steps = [(after - before) % 86400 for before, after in pairwise(known)] or [1]
    if min(steps) == 0:
        steps = [max(1, sum(steps)) / len(steps)] * len(steps)
    lengths = steps if start is not None else [steps[0], *steps][: len(times)]
    return [float(end) for end in accumulate(lengths)]


def means(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Return the means over the records in which each CPU was online."""
    found: dict[str, dict[str, float]] = {}
    weighted = [(one.cpus, one.length_s) for one in records]
    for cpu in dict.fromkeys(cpu for one in records for cpu in one.cpus):
        online = [(cpus[cpu], length) for cpus, length in weighted if cpu in cpus]
        found[cpu] = {
            share: _mean([(told[share], s) for told, s in online if share in told])
            for share in _KEPT
            if any(share in told for told, _ in online)
        }
    return found


def intervals(records: Sequence[Record], resolution: float) -> Iterator[Measurement]:
    """Yield the shares of the whole machine, record by record."""
    for record in records:
        told, start, end = record.cpus.get("all", {}), record.start_s, record.end_s
        if start is None or end is None:
            continue
        for metric, share in (("cpu_busy", "busy"), ("cpu_softirq", "soft")):
            if share in told:
                yield Measurement(
                    metric=metric,
                    value=told[share],
                    start_s=start,
                    end_s=end,
                    resolution=resolution,
                )


def whole_run(
    over: Mapping[str, Mapping[str, float]],
    resolution: float,
    labels: Mapping[str, str] | None = None,
) -> list[Measurement]:
    """Return the means over the run: of the machine, its busiest CPU, and every CPU."""
    own = dict(labels or {})
    machine, most = over.get("all", {}), busiest(over)
    values = [
        ("cpu_busy", machine.get("busy"), own),
        ("cpu_softirq", machine.get("soft"), own),
        ("cpu_busy_max", None if most is None else over[most].get("busy"), own),
    ]
    values += [
        ("cpu_busy", told.get("busy"), {"cpu": cpu, **own})
        for cpu, told in over.items()
        if cpu != "all"
    ]
    return [
        Measurement(metric=metric, value=value, labels=named, resolution=resolution)
        for metric, value, named in values
        if value is not None
    ]


def busiest(over: Mapping[str, Mapping[str, float]]) -> str | None:
    """Return the CPU that was busiest over the run; None where only ``all`` is told."""
    cpus = [cpu for cpu, told in over.items() if cpu != "all" and "busy" in told]
    return max(cpus, key=lambda cpu: over[cpu]["busy"], default=None)


def caveats(over: Mapping[str, Mapping[str, float]], present: object) -> list[Caveat]:
    """Return what is doubtful: time that was stolen, CPUs that are not told apart."""
    found: list[Caveat] = []
    steal = over.get("all", {}).get("steal", 0.0)
    if steal >= 0.01:
        found.append(_stolen(steal))
    told = len(over) - ("all" in over)
    if isinstance(present, int) and told < present:
        found.append(_missing(told, present))
    if over and not any("soft" in one for one in over.values()):
        found.append(_NO_SOFTIRQ)
    return found


def _mean(weighted: Sequence[tuple[float, float]]) -> float:
    total = math.fsum(value * length for value, length in weighted)
    return round(total / math.fsum(length for _value, length in weighted), 9)


def _stolen(steal: float) -> Caveat:
    return _note(
        "steal",
        f"the hypervisor took {steal:.1%} of the CPU time; it counts as busy",
        "Measure on a machine that nobody else uses.",
    )


@lru_cache(maxsize=16)  # the files of a study have the same
def _missing(told: int, present: int) -> Caveat:
    return _note(
        "cpus-missing",
        f"{told} of {present} CPUs are told apart; the busiest may be another",
        "Call the tool so that it prints every CPU (-P ALL).",
    )


def _note(code: str, text: str, todo: str) -> Caveat:
    return Caveat(code=code, severity=Severity.NOTE, text=text, todo=todo)


_NO_SOFTIRQ: Final = _note(
    "softirq-absent",
    "softirq time is contained in the system's and not told apart",
    "Call sar with -u ALL, or use mpstat.",
)
