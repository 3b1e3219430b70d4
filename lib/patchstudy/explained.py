"""How much of the change that was measured the removed cost can explain.

Where one CPU is full the rate is 1 / (CPU time per packet). A patch that removes the
share s of that time, and leaves all else as it was, raises the rate by 1 / (1 - s) - 1.
Where the link is full the rate cannot rise, and the CPU time per byte falls by s. With
the inclusive shares b and p of the named symbols in both profiles (of the samples that
are not idle, a stack counted once) the share is s = 1 - (1 - b) / (1 - p): what is not
in these symbols costs the same per packet before and after.

Where a driver counts its own calls (``alloc_time``) s is what the calls cost less,
times calls per packet, over the CPU time per packet.

The measured runs give the change that was found, the profile runs give s; they are
never pooled. ``weighing`` holds the two against each other.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Final, NamedTuple

import pandas as pd

from patchstudy import stats
from patchstudy.checks import CPU_SATURATED, NEAR_CEILING, ceiling
from patchstudy.compare import Comparison
from patchstudy.mechanism import named_symbols
from patchstudy.metrics import Kind, Scale
from patchstudy.moved import moved, whole_run
from patchstudy.profiles import Cell, busy_share, cells, holding, samples_time
from patchstudy.records import Profile
from patchstudy.stats import Estimate
from patchstudy.study import Role, Study
from patchstudy.tables import series
from patchstudy.weighing import (
    COSTS,
    Explained,
    Word,
    bounded,
    spoken,
    weighed,
    without_interval,
)

#: Loss of rate in a profile run from which its shares are not those of measured runs.
SLOWED: Final = 0.05
#: Metric of the time of one call, by a driver's own counters.
_CALL_TIME: Final = "alloc_time"
#: Bytes of a packet where nothing tells how many there were.
_FULL_PACKET: Final = 1500


def explained(
    study: Study, runs: pd.DataFrame, compared: Sequence[Comparison]
) -> tuple[Explained, ...]:
    """Set what the named symbols predict beside what was found.

    One for each primary rate of the judged variant where symbols are named or a
    profile was taken; none for controls.

    Parameters
    ----------
    runs
        As ``tables.per_run`` returns them.
    compared
        As ``compare.compare`` returns them.
    """
    profiled = {(one.device, one.workload): one for one in cells(study)}
    return tuple(
        one
        for rate in compared
        if rate.question.role is Role.PRIMARY
        and rate.variant == study.design.patched[0]
        and rate.question.planned.metric.kind is Kind.RATE
        for one in _both(
            _Case(study, runs, compared, rate), profiled.get(_cell_of(rate))
        )
    )


class _Case(NamedTuple):
    """One primary rate, and all that may explain its change."""

    study: Study
    runs: pd.DataFrame
    compared: Sequence[Comparison]
    rate: Comparison

    @property
    def here(self) -> pd.DataFrame:
        """Rows of the measured runs of this device and workload."""
        device, workload = _cell_of(self.rate)
        runs = self.runs
        return runs[(runs["device"] == device) & (runs["workload"] == workload)]

    def of(self, *names: str) -> Comparison | None:
        """The comparison of the first of these metrics here."""
        found = [
            one
            for one in self.compared
            if _cell_of(one) == _cell_of(self.rate)
            and one.variant == self.rate.variant
            and one.question.planned.metric.name in names
            and one.baseline
            and one.patched
        ]
        return min(
            found,
            key=lambda one: names.index(one.question.planned.metric.name),
            default=None,
        )


class _Basis(NamedTuple):
    """What the removed share was worked out from."""

    name: str
    symbols: tuple[str, ...]
    assumption: str
    reasons: tuple[str, ...]
    slowed: Mapping[str, float]


def _both(case: _Case, cell: Cell | None) -> Iterator[Explained]:
    """Yield what the profiles say, and what the calls that a driver counts."""
    symbols = named_symbols(case.study, *_cell_of(case.rate))
    calls = case.of(_CALL_TIME)
    if symbols or (cell is not None and calls is None):
        yield _by_profile(case, cell, symbols)
    if calls is not None:
        yield _by_calls(case, calls)


def _cell_of(one: Comparison) -> tuple[str, str]:
    return one.question.device, one.question.workload


def _by_profile(case: _Case, cell: Cell | None, symbols: tuple[str, ...]) -> Explained:
    removed = _removed(case.study, cell, symbols)
    slowed = _slowed(case, cell)
    reasons = _reasons(case, symbols, removed, slowed)
    same = "all else costs the same per packet"
    return _answer(case, removed, _Basis("profile", symbols, same, reasons, slowed))


def _by_calls(case: _Case, calls: Comparison) -> Explained:
    removed, assumption = _removed_by_calls(case, calls)
    reasons = () if _limit(case) else (_not_full(case),)
    if removed is not None and not bounded(removed):
        reasons = (*reasons, "one value each")
    named = ("the time of the counted calls",)
    return _answer(case, removed, _Basis("calls", named, assumption, reasons, {}))


def _answer(case: _Case, removed: Estimate | None, basis: _Basis) -> Explained:
    """Set what the removed cost predicts beside what was found."""
    limit = _limit(case)
    response = case.of(*COSTS) if limit == "link" else case.rate
    blank = Explained(
        device=case.rate.question.device,
        workload=case.rate.question.workload,
        variant=case.rate.variant,
        response=(response or case.rate).question.planned.metric.name,
        limit=limit,
        basis=basis.name,
        symbols=basis.symbols,
        removed=removed and _mapped(removed, lambda gain: -math.expm1(-gain)),
        predicted=removed and _mapped(removed, _prediction(limit)),
        found=response and _found(response),
        part=None,
        word=Word.UNKNOWN,
        reasons=basis.reasons,
        assumption=basis.assumption,
        slowed=basis.slowed,
        sentence="",
    )
    return spoken(weighed(blank))


def _found(one: Comparison) -> Estimate | None:
    """The change as a ratio; without an interval where there are too few units."""
    if one.change is not None:
        return one.change if one.scale is Scale.RATIO else None
    if not (one.baseline and one.patched) or one.baseline.mean <= 0:
        return None
    return without_interval(one.patched.mean / one.baseline.mean - 1, 0.95, "one each")


# ---- what is predicted --------------------------------------------------------------


def _removed(
    study: Study, cell: Cell | None, symbols: Sequence[str]
) -> Estimate | None:
    """Ln of the gain that the removed share predicts; None without both profiles."""
    sides = (study.design.baseline, study.design.patched[0])
    if cell is None or not symbols or any(one not in cell.profiles for one in sides):
        return None
    if not samples_time(cell.event):
        return None
    logs = [
        [
            math.log1p(-min(_busy(one.profile, symbols), 1 - 1e-9))
            for one in cell.profiles[side]
        ]
        for side in sides
    ]
    confidence = 1 - study.design.alpha
    if min(map(len, logs)) >= 2:
        return stats.welch(*logs).interval(confidence)
    base, new = (sum(one) / len(one) for one in logs)
    return without_interval(new - base, confidence, "one profile each")


def _removed_by_calls(case: _Case, calls: Comparison) -> tuple[Estimate | None, str]:
    """Ln of the gain that cheaper calls predict, and under which assumption.

    Calls per packet and CPU time per packet are those of the measured baseline runs
    (medians). Where they do not tell, one full CPU and one call for every full-sized
    packet are assumed.
    """
    change, rate = _found(calls), case.rate.baseline
    if change is None or calls.baseline is None or rate is None:
        return None, ""
    known = _per_packet(case)
    if known is None and case.rate.question.planned.metric.name != "throughput":
        return None, ""
    each, packet_s = known or (1.0, 8 * _FULL_PACKET / rate.mean)
    assumption = (
        f"{each:.2f} calls a packet as in the baseline runs"
        if known
        else f"one full CPU, and one call for every packet of {_FULL_PACKET} bytes"
    )
    per_packet = each * calls.baseline.mean / packet_s

    def gain(ratio: float) -> float:
        return -math.log1p(-min(-ratio * per_packet, 1 - 1e-9))

    return _mapped(change, gain), f"{assumption}; all else costs the same per packet"


def _per_packet(case: _Case) -> tuple[float, float] | None:
    """Calls per packet and CPU seconds per packet; None where no run tells both."""
    device, workload = _cell_of(case.rate)
    found = []
    for run in case.study.runs:
        place = (run.device, run.workload, run.variant)
        if run.measuring and place == (device, workload, case.study.design.baseline):
            counts = [one.value for _, one in whole_run(run, "event:alloc_count")]
            moves = moved(run)
            if counts and moves.packet and moves.cpu_per_packet:
                found.append((counts[0] / moves.packet, moves.cpu_per_packet))
    if not found:
        return None
    calls, costs = zip(*found, strict=True)
    return median(calls), median(costs)


def _busy(profile: Profile, symbols: Sequence[str]) -> float:
    """Share of the busy samples whose stacks hold any of the symbols."""
    busy = profile.total * busy_share(profile)
    return holding(profile, symbols) / busy if busy else 0.0


def _prediction(limit: str) -> Callable[[float], float]:
    """What the removed share predicts: a rise of the rate, or a fall of CPU time."""
    return (lambda gain: math.expm1(-gain)) if limit == "link" else math.expm1


def _mapped(estimate: Estimate, function: Callable[[float], float]) -> Estimate:
    if not bounded(estimate):
        return replace(estimate, value=function(estimate.value))
    low, high = sorted((function(estimate.low), function(estimate.high)))
    return replace(estimate, value=function(estimate.value), low=low, high=high)


# ---- what limits, what slows --------------------------------------------------------


def _limit(case: _Case) -> str:
    """Return ``"cpu"`` or ``"link"`` where it is full in both variants."""
    rate, here = case.rate, case.here
    busiest = here[here["metric"] == "cpu_busy_max"]
    medians = busiest.groupby("variant")["value"].median()
    judged = [case.study.design.baseline, rate.variant]
    if all(medians.get(one, 0.0) >= CPU_SATURATED for one in judged):
        return "cpu"
    limit = ceiling(case.study, rate.question)
    if limit is None or rate.baseline is None or rate.patched is None:
        return ""
    least = min(rate.baseline.median, rate.patched.median)
    return "link" if least >= NEAR_CEILING * limit[0] else ""


def _not_full(case: _Case) -> str:
    known = (case.here["metric"] == "cpu_busy_max").any()
    return (
        "not saturated: neither a CPU nor the link is full in both variants"
        if known
        else "no CPU load is known"
    )


def _slowed(case: _Case, cell: Cell | None) -> dict[str, float]:
    """Rate of the profile runs of each variant over that of its measured runs."""
    question = case.rate.question
    if cell is None:
        return {}
    name = question.planned.metric.name
    measured = series(case.runs, question)
    medians = measured.groupby("variant")["value"].median()
    found: dict[str, float] = {}
    for variant in (case.study.design.baseline, case.rate.variant):
        rates = [
            one.value
            for profiled in cell.profiles.get(variant, ())
            for _, one in whole_run(profiled.run, name)
            if tuple(sorted(one.labels.items())) == question.labels
        ]
        if rates and medians.get(variant, 0.0) > 0:
            found[variant] = sum(rates) / len(rates) / float(medians[variant]) - 1
    return found


def _reasons(
    case: _Case,
    symbols: Sequence[str],
    removed: Estimate | None,
    slowed: Mapping[str, float],
) -> tuple[str, ...]:
    """Why the removed cost cannot be held against the change."""
    told = []
    if not symbols:
        told.append("the study names no symbol")
    elif removed is None:
        told.append("no profile of both variants that samples time")
    elif not bounded(removed):
        told.append("one profile each")
    if not _limit(case):
        told.append(_not_full(case))
    worst = min(slowed.values(), default=0.0)
    if worst <= -SLOWED:
        told.append(f"profiling slows the run by up to {-100 * worst:.0f} %")
    return tuple(told)
