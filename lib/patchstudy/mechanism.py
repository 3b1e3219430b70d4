"""What the profile runs say about the symbols and events that a study names.

A metric of the role *mechanism* names what the patch is said to remove or to add:
``profile_share:<symbol>``, ``profile_cost:<symbol>``, or any counter
(``event:kprobe_hits`` with ``where = { probe = "..." }``). Counters of profile runs are
read here; those of measured runs are compared like every other metric.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np

from patchstudy import profiles, stats
from patchstudy.calls import probed_functions, whole_trace
from patchstudy.metrics import Kind
from patchstudy.moved import moved, whole_run
from patchstudy.records import Measurement
from patchstudy.reported import Report, ReportCell, reported_cells
from patchstudy.stats import Estimate
from patchstudy.study import Planned, Role, Run, Source, Study
from patchstudy.units import for_people, prefix, significant, with_interval

#: Part of what there was from which a symbol or an event counts as gone.
GONE: Final = 0.01
_SHARE: Final = "profile_share"
_COST: Final = "profile_cost"


class Holds(StrEnum):
    """Whether the mechanism behaves as the study expects."""

    YES = "as expected"
    NO = "not as expected"
    UNKNOWN = "cannot tell"
    NOT_ASKED = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What the profile runs say about one named symbol or counter.

    Attributes
    ----------
    metric, symbol
        As the study names it; ``symbol`` is the part after the colon, with the labels.
    unit
        Of the values: ``"1"`` for a share or a count, ``"s/packet"`` for a cost.
    values
        Variant -> one value a profile run.
    per_packet
        Of a counter: variant -> one value a profile run whose packets are known.
    change
        Patched minus baseline with its t interval (Welch); of a counter per packet if
        that is known. None below two profile runs of each.
    holds
        By the interval; with one run of each only a symbol or event that is gone
        altogether, or was not there before, is as expected.
    paths
        The files that they came from.
    """

    device: str
    workload: str
    metric: str
    symbol: str
    unit: str
    expect: str
    values: Mapping[str, tuple[float, ...]]
    per_packet: Mapping[str, tuple[float, ...]]
    change: Estimate | None
    holds: Holds
    sentence: str
    paths: tuple[str, ...]


def explanations(study: Study) -> Iterator[Explanation]:
    """Yield what the profile runs say about each metric of the role mechanism."""
    for planned in study.design.metrics:
        family, _, symbol = planned.metric.name.partition(":")
        if planned.role is not Role.MECHANISM:
            continue
        if family in {_SHARE, _COST}:
            for found in profiles.evidence(study, symbol):
                if _applies(planned, found.device, found.workload):
                    yield _of_symbol(study, planned, found)
            for cell in reported_cells(study) if family == _SHARE else ():
                if _applies(planned, cell.device, cell.workload):
                    yield _of_report(study, planned, cell)
        else:
            yield from _of_counter(study, planned)


def named_symbols(study: Study, device: str, workload: str) -> tuple[str, ...]:
    """Symbols that the study names as the mechanism on a device and workload."""
    return tuple(
        dict.fromkeys(
            planned.metric.name.partition(":")[2]
            for planned in study.design.metrics
            if planned.role is Role.MECHANISM
            and planned.metric.name.partition(":")[0] in {_SHARE, _COST}
            and _applies(planned, device, workload)
        )
    )


def _applies(planned: Planned, device: str, workload: str) -> bool:
    right_device = not planned.devices or device in planned.devices
    return right_device and (not planned.workloads or workload in planned.workloads)


# ---- symbols ------------------------------------------------------------------------


def _of_symbol(study: Study, planned: Planned, found: profiles.Evidence) -> Explanation:
    share = planned.metric.name.startswith(_SHARE)
    values = found.shares if share else found.costs
    change, holds = _judged(study, planned.expect, values)
    return Explanation(
        device=found.device,
        workload=found.workload,
        metric=planned.metric.name,
        symbol=found.symbol,
        unit=planned.metric.unit,
        expect=planned.expect,
        values=values,
        per_packet={},
        change=change,
        holds=holds,
        sentence=_symbol_sentence(study, found, change, share=share) + _verdict(holds),
        paths=found.paths,
    )


def _symbol_sentence(
    study: Study, found: profiles.Evidence, change: Estimate | None, *, share: bool
) -> str:
    parts = [_symbol_part(found, one, share=share) for one in study.design.variants]
    said = f"{found.symbol} is in {' and '.join(parts)}"
    units = ("%", "") if share else ("s", " per packet")
    return f"{said} ({_replicates(study, found.shares, change, units)})"


def _symbol_part(found: profiles.Evidence, variant: str, *, share: bool) -> str:
    shares, costs = found.shares.get(variant, ()), found.costs.get(variant, ())
    if not shares:
        return f"not profiled of the {variant} profile"
    if not share:
        known = (
            f"{for_people(_mean(costs), 's', digits=3)} per packet"
            if costs
            else ("no known cost")
        )
        return f"{known} of the {variant} profile"
    words = f"{100 * _mean(shares):.2f} % of the {variant} profile"
    if len(shares) > 1:
        return words
    weight, total = found.weights[variant][0]
    return f"{words} [{weight:.10g} of {total:.10g} {found.unit}s]"


# ---- self shares of perf report ------------------------------------------------------


def _of_report(study: Study, planned: Planned, cell: ReportCell) -> Explanation:
    """Judge the self share; where a report does not have the symbol, its bound."""
    symbol = planned.metric.name.partition(":")[2]
    sides = {
        study.design.baseline: cell.baseline,
        study.design.patched[0]: cell.patched,
    }
    values = {
        variant: tuple(one.shares.get(symbol, one.bound) for one in found)
        for variant, found in sides.items()
    }
    change, holds = _judged(study, planned.expect, values)
    known = all(symbol in one.shares for found in sides.values() for one in found)
    if not known:  # a bound is no value: it can show that a share is less, not by what
        change, holds = None, _below(planned.expect, symbol, cell)
    parts = [_report_part(found, symbol, name) for name, found in sides.items()]
    said = f"{symbol} alone (self, without what it calls) has {' and '.join(parts)}"
    replicates = _replicates(study, values, change, ("%", "")).replace(
        "profile", "report"
    )
    return Explanation(
        device=cell.device,
        workload=cell.workload,
        metric=planned.metric.name,
        symbol=symbol,
        unit=planned.metric.unit,
        expect=planned.expect,
        values={name: one for name, one in values.items() if known},
        per_packet={},
        change=change,
        holds=holds,
        sentence=f"{said} ({replicates})" + _verdict(holds),
        paths=tuple(one.path for found in sides.values() for one in found),
    )


def _report_part(found: Sequence[Report], symbol: str, variant: str) -> str:
    share = 100 * _mean([one.shares.get(symbol, one.bound) for one in found])
    known = all(symbol in one.shares for one in found)
    return f"{'' if known else 'less than '}{share:.2f} % of the {variant} report"


def _below(expect: str, symbol: str, cell: ReportCell) -> Holds:
    """Say whether a share that is printed is far above the bound of one that is not."""
    if expect not in {"lower", "higher"}:
        return Holds.NOT_ASKED
    before, after = cell.baseline, cell.patched
    if expect == "higher":
        before, after = after, before
    most = max(one.shares.get(symbol, one.bound) for one in after)
    least = min(one.shares.get(symbol, 0.0) for one in before)
    return Holds.YES if least > 0 and most <= GONE * least else Holds.UNKNOWN


# ---- counters -----------------------------------------------------------------------


def _of_counter(study: Study, planned: Planned) -> Iterator[Explanation]:
    """Yield what a counter says in the profile runs of each device and workload."""
    found: dict[tuple[str, str], list[tuple[Run, float, str]]] = {}
    for run in study.runs:
        if run.measuring or not _applies(planned, run.device, run.workload):
            continue
        if (counted := _counted(run, planned)) is not None:
            cell = found.setdefault((run.device, run.workload), [])
            cell.append((run, *counted))
    for (device, workload), runs in sorted(found.items()):
        yield _counter(study, planned, (device, workload), runs)


def _counted(run: Run, planned: Planned) -> tuple[float, str] | None:
    """Reading with the wanted labels of the first tool, and its file.

    The reading of a whole has the fewest labels; of parts alone, all are added up. A
    trace that tells others of the kind, and lost nothing, had none of this one.
    """
    readings = [
        (source, one)
        for source, one in whole_run(run, planned.metric.name)
        if _wanted(planned, source, one)
    ]
    if not readings:
        return _none(run, planned)
    first = readings[0][0]
    here = [one for source, one in readings if source is first]
    parts = tuple(min((tuple(one.labels) for one in here), key=len))
    value = sum(one.value for one in here if tuple(one.labels) == parts)
    return value, first.capture.path.name


def _wanted(planned: Planned, source: Source, one: Measurement) -> bool:
    told = {**one.labels, "tool": source.capture.tool, "place": source.place}
    return planned.where.items() <= told.items()


def _none(run: Run, planned: Planned) -> tuple[float, str] | None:
    """A count of 0, where a whole trace tells only others of the kind; and its file."""
    for source, one in whole_run(run, planned.metric.name):
        others = planned.where.keys() & one.labels.keys()
        rest = {k: x for k, x in planned.where.items() if k not in one.labels}
        same = replace(planned, where=rest)
        if others and _wanted(same, source, one) and whole_trace(source.capture):
            return 0.0, source.capture.path.name
    return None


def _counter(
    study: Study,
    planned: Planned,
    cell: tuple[str, str],
    runs: Sequence[tuple[Run, float, str]],
) -> Explanation:
    values: dict[str, tuple[float, ...]] = {}
    rates: dict[str, tuple[float, ...]] = {}
    packets: dict[str, tuple[float, ...]] = {}
    for run, value, _ in runs:
        values[run.variant] = (*values.get(run.variant, ()), value)
        counts = planned.metric.kind is Kind.COUNT  # a time is of a call already
        if counts and (moves := moved(run).packet):
            rates[run.variant] = (*rates.get(run.variant, ()), value / moves)
            packets[run.variant] = (*packets.get(run.variant, ()), moves)
    complete = all(len(rates.get(one, ())) == len(x) for one, x in values.items())
    change, holds = _judged(study, planned.expect, rates if complete else values)
    unit = planned.metric.unit
    per = " per packet" if complete else ""
    replicates = _replicates(study, values, change, (unit, per))
    symbol = _counter_name(planned, (run for run, _, _ in runs))
    return Explanation(
        device=cell[0],
        workload=cell[1],
        metric=planned.metric.name,
        symbol=symbol,
        unit=planned.metric.unit,
        expect=planned.expect,
        values=values,
        per_packet=rates,
        change=change,
        holds=holds,
        sentence=f"{symbol}: {_counter_parts(study, values, packets, unit)} "
        f"({replicates})" + _verdict(holds),
        paths=tuple(f"{run.name}: {name}" for run, _, name in runs),
    )


def _counter_name(planned: Planned, runs: Iterable[Run]) -> str:
    """The counter with its labels; of a probe the function that it watches."""
    name = planned.metric.name.partition(":")[2] or planned.metric.name
    probe = planned.where.get("probe", "")
    watched = [probed_functions(run).get(probe) for run in runs]
    labels = ", ".join(planned.where.values())
    if probe and any(watched):
        labels = next(filter(None, watched))
    return f"{name} of {labels}" if labels else name


def _counter_parts(
    study: Study,
    values: Mapping[str, tuple[float, ...]],
    packets: Mapping[str, tuple[float, ...]],
    unit: str,
) -> str:
    parts = []
    for variant in study.design.variants:
        if variant not in values:
            continue
        words = f"{_amount(_mean(values[variant]), unit)} in the {variant} profile run"
        if variant in packets:
            words += f" for {_number(_mean(packets[variant]))} packets"
        parts.append(words)
    return ", ".join(parts)


# ---- common -------------------------------------------------------------------------


def _judged(
    study: Study, expect: str, values: Mapping[str, tuple[float, ...]]
) -> tuple[Estimate | None, Holds]:
    base = values.get(study.design.baseline, ())
    new = values.get(study.design.patched[0], ())
    change = None
    if min(len(base), len(new)) >= 2:
        change = stats.welch(base, new).interval(1 - study.design.alpha)
    return change, _holds(expect, base, new, change)


def _holds(
    expect: str, base: Sequence[float], new: Sequence[float], change: Estimate | None
) -> Holds:
    if expect not in {"lower", "higher"}:
        return Holds.NOT_ASKED
    if not (base and new):
        return Holds.UNKNOWN
    before, after = (base, new) if expect == "lower" else (new, base)
    if change is None:
        # next to nothing is left: no interval is needed to see that
        gone = min(before) > 0 and max(after) <= GONE * min(before)
        if gone or max(before) == 0:
            return Holds.YES if gone else Holds.NO
        return Holds.UNKNOWN
    low, high = (change.low, change.high)
    if expect == "lower":
        low, high = -high, -low
    if low > 0:
        return Holds.YES
    return Holds.NO if high < 0 else Holds.UNKNOWN


def _verdict(holds: Holds) -> str:
    return f": {holds}." if holds else "."


def _replicates(
    study: Study,
    values: Mapping[str, Sequence[float]],
    change: Estimate | None,
    units: tuple[str, str],
) -> str:
    """Say how often it was profiled, and the change with its interval.

    ``units`` are the unit of the change and what it is per; the unit of a share is
    ``"%"``, its change is in points.
    """
    counts = [len(values.get(one, ())) for one in study.design.variants]
    if max(counts, default=0) <= 1:
        return "one profile each, no interval"
    several = f"means of {' and '.join(map(str, counts))} profiles"
    if change is None:
        return f"{several}, no interval"
    unit, per = units
    ends = (change.value, change.low, change.high)
    scale, shown = prefix(max(map(abs, ends)), unit) if unit != "%" else (0.01, "pp")
    value, low, high = with_interval(*(x / scale for x in ends))
    shown = "" if shown == "1" else f" {shown}"
    return f"{several}, change {value}{shown}{per} [{low}, {high}]"


def _amount(value: float, unit: str) -> str:
    """Write a count, or a value with its unit."""
    return _number(value) if unit in {"1", ""} else for_people(value, unit)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _number(value: float) -> str:
    """Write a count as people do, with a comma between the thousands."""
    return (
        f"{value:,.0f}"
        if value >= 1000 or value == int(value)
        else (significant(value))
    )
