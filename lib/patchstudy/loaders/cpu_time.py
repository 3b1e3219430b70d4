"""Shares of CPU time from the ticks that passed between two readings of /proc/stat."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from patchstudy.records import Capture, Caveat, Measurement, Severity

#: Counters of ticks, for the machine without labels and for each CPU with ``cpu``:
#: all time, the part in which the CPU was idle (waiting for a disk included), the part
#: in softirq, and the part that a hypervisor gave to others.
TIME: Final = "event:cpu_time"
IDLE: Final = "event:cpu_not_busy"
SOFTIRQ: Final = "event:cpu_softirq"
STEAL: Final = "event:cpu_steal"

_Ticks = Mapping[str, Mapping[str, float]]


def with_shares(before: Capture, delta: Capture) -> Capture:
    """Return the difference to the reading before with ``cpu_busy`` and its kin added.

    ``cpu_busy`` of the machine and of each CPU is the time that was not idle over all
    time, as ``mpstat`` has it: ``steal`` counts as busy. ``cpu_busy_max`` is that of
    the busiest CPU, ``cpu_softirq`` the machine's time in softirq over all time. A CPU
    whose ticks fell, or for which no tick passed, has none and a caveat says so.
    """
    ticks = {name: _ticks(delta, name) for name in (TIME, IDLE, SOFTIRQ)}
    broken = [cpu for cpu, time in ticks[TIME].items() if _broken(ticks, cpu, time)]
    usable = {
        name: {cpu: value for cpu, value in values.items() if cpu not in broken}
        for name, values in ticks.items()
    }
    shares = tuple(_shares(usable))
    busiest = _busiest(shares)
    fact = {} if busiest is None else {"busiest_cpu": busiest.labels["cpu"]}
    return replace(
        delta,
        measurements=(*delta.measurements, *shares),
        facts={**delta.facts, **fact},
        caveats=(*delta.caveats, *_caveats((before, delta), shares, broken)),
    )


def _ticks(delta: Capture, name: str) -> dict[str, float]:
    """Return the ticks of one counter by CPU; of the machine under the empty name."""
    return {
        one.labels.get("cpu", ""): one.value
        for one in delta.measurements
        if one.metric == name
    }


def _broken(ticks: _Ticks, cpu: str, time: float) -> bool:
    """Say whether no share can be made: nothing passed, or more was idle than did."""
    idle = ticks[IDLE].get(cpu)
    return time <= 0 or idle is None or idle > time


def _shares(ticks: _Ticks) -> Iterator[Measurement]:
    busy = {
        cpu: Measurement(
            metric="cpu_busy",
            value=1 - ticks[IDLE][cpu] / time,
            labels={"cpu": cpu} if cpu else {},
            resolution=1 / time,
        )
        for cpu, time in ticks[TIME].items()
    }
    yield from busy.values()
    busiest = _busiest(list(busy.values()))
    if busiest is not None:
        yield busiest._replace(metric="cpu_busy_max", labels={})
    machine = ticks[TIME].get("")
    if machine is not None and "" in ticks[SOFTIRQ]:
        share = ticks[SOFTIRQ][""] / machine
        yield Measurement(metric="cpu_softirq", value=share, resolution=1 / machine)


def _busiest(shares: Sequence[Measurement]) -> Measurement | None:
    """Return the share of the busiest CPU; None where no CPU is told apart."""
    cpus = [one for one in shares if one.metric == "cpu_busy" and one.labels]
    return max(cpus, key=lambda one: one.value, default=None)


def _caveats(
    readings: Sequence[Capture], shares: Sequence[Measurement], broken: Sequence[str]
) -> Iterator[Caveat]:
    """Yield why shares are absent or may mislead."""
    told = {one.labels.get("cpu", "") for one in shares if one.metric == "cpu_busy"}
    if "" not in told or broken:
        names = ", ".join(cpu or "all" for cpu in broken) or "all"
        yield Caveat(
            code="cpu-time-unknown",
            severity=Severity.DOUBT,
            text=f"CPU time stood still or went backwards; no shares of: {names}",
            todo="Read /proc/stat further apart and without a reboot in between.",
        )
    online = [one.facts.get("number_of_cpus") for one in readings]
    cpus = len(told - {""})
    if any(number != cpus for number in online):
        yield Caveat(
            code="cpus-changed",
            severity=Severity.DOUBT,
            text=f"CPUs came, went or were reset: the busiest is one of {cpus} with"
            f" shares, while {online[0]} were online before and {online[1]} after",
            todo="Keep all CPUs online during a run.",
        )
    yield from _steal(readings[1])


def _steal(delta: Capture) -> Iterator[Caveat]:
    """Yield a caveat where the hypervisor took one percent or more."""
    stolen, time = (_ticks(delta, name).get("", 0) for name in (STEAL, TIME))
    if time > 0 and stolen >= 0.01 * time:
        yield Caveat(
            code="steal",
            severity=Severity.NOTE,
            text=f"the hypervisor took {stolen / time:.1%} of the CPU time; it counts"
            " as busy",
            todo="Measure on a machine that nobody else uses.",
        )
