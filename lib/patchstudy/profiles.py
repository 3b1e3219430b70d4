"""Profiles of the variants: shares and costs of symbols, and their difference.

Profile runs are evidence of the mechanism. They are never pooled with measured runs:
the probe itself slows what it watches. The inclusive share of a symbol is that of the
stacks that hold it, its own (self) share that of the stacks that end in it; the two are
never mixed, and events are never added up.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import stats
from patchstudy.moved import Moved, moved
from patchstudy.origins import bare, idle, origin
from patchstudy.records import Profile
from patchstudy.study import Design, Run, Source, Study

DIFFERENCE_COLUMNS: Final = (
    "device", "workload", "event", "symbol", "origin", "inclusive_baseline",
    "inclusive_patched", "self_baseline", "self_patched", "change", "change_low",
    "change_high", "cost_baseline", "cost_patched", "self_cost_baseline",
    "self_cost_patched", "profiles_baseline", "profiles_patched",
)  # fmt: skip
#: Share from which a symbol that is gone or new is worth a line.
NOTABLE: Final = 0.01
#: Beginnings of the names of events that sample time, the ones first looked at.
_TIME: Final = ("cpu-clock", "task-clock", "cycles", "cpu-cycles", "cpu_core/cycles")


@dataclass(frozen=True, kw_only=True)
class ProfileRun:
    """One profile of one variant, with the file that it came from.

    ``event`` is what was sampled; empty where the file does not tell it. Counts of
    events that the file does not name are told apart by tool and place.
    """

    run: Run
    path: str
    event: str
    profile: Profile

    @cached_property
    def moved(self) -> Moved:
        """What this run moved while it was profiled."""
        return moved(self.run)

    @cached_property
    def inclusive(self) -> dict[str, float]:
        """Share of the weight in stacks that hold a symbol, as ``inclusive``."""
        return inclusive(self.profile)

    @cached_property
    def own(self) -> dict[str, float]:
        """Share of the weight in stacks that end in a symbol, as ``own``."""
        return own(self.profile)

    @cached_property
    def cost(self) -> tuple[float | None, str]:
        """CPU seconds per packet of the whole profile, or None; and how they are known.

        The CPU time of the run over its packets, spread over the samples that are not
        idle. Where no tool tells the CPU time, samples times period of a clock.
        """
        if not samples_time(self.event):
            return None, f"{self.event} samples no time"
        busy, packets = busy_share(self.profile), self.moved.packet
        if packets and self.moved.cpu_s is not None and busy:
            words = "; ".join(("share of the busy samples", *self.moved.counters))
            return self.moved.cpu_s / busy / packets, words
        if packets and self.profile.unit == "ns":
            seconds = self.profile.total * 1e-9
            return seconds / packets, "samples x period, as if sampled all the time"
        return None, "; ".join(self.moved.missing) or "every sample is idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The profiles of one event on one device and workload.

    Attributes
    ----------
    profiles
        Variant -> its profiles, one a run.
    left_out
        Events that were profiled too; they are not added to this one.
    """

    device: str
    workload: str
    event: str
    profiles: Mapping[str, tuple[ProfileRun, ...]]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Inclusive share of one symbol in the profile of each variant.

    Attributes
    ----------
    shares
        Variant -> inclusive shares, one per profile.
    costs
        Variant -> CPU seconds per packet, one per profile where known.
    weights
        Variant -> weight of the stacks with the symbol, and of all, one per profile.
    unit
        Unit of the weights, ``"sample"`` where the file does not tell.
    paths
        The files that they came from.
    """

    device: str
    workload: str
    symbol: str
    shares: Mapping[str, tuple[float, ...]]
    costs: Mapping[str, tuple[float, ...]]
    weights: Mapping[str, tuple[tuple[float, float], ...]]
    unit: str
    paths: tuple[str, ...]


def profile_runs(study: Study) -> tuple[ProfileRun, ...]:
    """Return every profile with a weight, from the runs that do not measure.

    Of several files of one run with the same event the one with the most stacks counts:
    they are views of one recording.
    """
    found: dict[tuple[int, str], ProfileRun] = {}
    for at, run in enumerate(study.runs):
        for source in () if run.measuring else run.sources:
            for profile in source.capture.profiles:
                event = _event(source, profile)
                key = (at, event)
                known = found.get(key)
                fewer = known and len(known.profile.stacks) >= len(profile.stacks)
                if profile.total > 0 and not fewer:
                    path = study.path_of(source.capture)
                    found[key] = ProfileRun(
                        run=run, path=path, event=event, profile=profile
                    )
    return tuple(found.values())


def _event(source: Source, profile: Profile) -> str:
    if profile.event or profile.unit != "event":
        return profile.event or ""
    return " ".join(filter(None, (source.capture.tool, source.place)))


def cells(study: Study) -> tuple[Cell, ...]:
    """Return the profiles by device and workload, of one event each.

    It is an event of both variants if there is one, and one that samples time before
    any other; of several such, the first.
    """
    grouped: dict[tuple[str, str], list[ProfileRun]] = {}
    for one in profile_runs(study):
        grouped.setdefault((one.run.device, one.run.workload), []).append(one)
    return tuple(
        _cell(device, workload, found, study.design)
        for (device, workload), found in sorted(grouped.items())
    )


def _cell(
    device: str, workload: str, found: Sequence[ProfileRun], design: Design
) -> Cell:
    variants: dict[str, set[str]] = {}
    for one in found:
        variants.setdefault(one.event, set()).add(one.run.variant)
    judged = {design.baseline, design.patched[0]}
    event = max(
        variants, key=lambda name: (len(variants[name] & judged), samples_time(name))
    )
    chosen: dict[str, tuple[ProfileRun, ...]] = {}
    for one in found:
        if one.event == event:
            chosen[one.run.variant] = (*chosen.get(one.run.variant, ()), one)
    return Cell(
        device=device,
        workload=workload,
        event=event,
        profiles=chosen,
        left_out=tuple(name or "not told" for name in variants if name != event),
    )


def samples_time(event: str) -> bool:
    """Say whether an event samples time; one that is not told is taken to."""
    return not event or event.startswith(_TIME)


def inclusive(profile: Profile) -> dict[str, float]:
    """Share of the weight in stacks that hold a symbol; a recursion counts once."""
    shares: dict[str, float] = {}
    total = profile.total
    for stack in profile.stacks:
        for symbol in {bare(frame) for frame in stack.frames}:
            shares[symbol] = shares.get(symbol, 0.0) + stack.weight / total
    return shares


def own(profile: Profile) -> dict[str, float]:
    """Share of the weight in stacks that end in a symbol (self time)."""
    shares: dict[str, float] = {}
    total = profile.total
    for stack in profile.stacks:
        symbol = bare(stack.frames[-1])
        shares[symbol] = shares.get(symbol, 0.0) + stack.weight / total
    return shares


def holding(profile: Profile, symbols: Iterable[str]) -> float:
    """Weight of the stacks that hold any of these symbols, each stack once."""
    named = set(symbols)
    return sum(
        stack.weight
        for stack in profile.stacks
        if not named.isdisjoint(map(bare, stack.frames))
    )


def busy_share(profile: Profile) -> float:
    """Share of the weight in stacks that do not end in the idle loop."""
    waiting = sum(one.weight for one in profile.stacks if idle(one))
    return 1 - waiting / profile.total


def by_origin(profile: Profile) -> dict[str, float]:
    """Share of the weight by where the leaf lies: kernel, module, user, idle."""
    shares: dict[str, float] = {}
    for stack in profile.stacks:
        name = origin(stack)
        shares[name] = shares.get(name, 0.0) + stack.weight / profile.total
    return shares


# ---- difference ---------------------------------------------------------------------


def difference(study: Study) -> pd.DataFrame:
    """One row per device, workload and symbol in the profiles of both variants.

    Several profiles of one variant are averaged, each with the same weight: the run is
    what is repeated, not the sample.

    Returns
    -------
    pandas.DataFrame
        Columns ``DIFFERENCE_COLUMNS``; shares between 0 and 1; ``change`` is the
        inclusive share patched minus baseline with the ends of its t interval (Welch;
        NaN below two profiles of each); costs in CPU seconds per packet, NaN where not
        known; ``profiles_*`` how many there are; the largest change first.
    """
    judged = (study.design.baseline, study.design.patched[0])
    confidence = 1 - study.design.alpha
    tables = [
        _cell_difference(
            cell, cell.profiles[judged[0]], cell.profiles[judged[1]], confidence
        )
        for cell in cells(study)
        if all(one in cell.profiles for one in judged)
    ]
    empty = pd.DataFrame(columns=list(DIFFERENCE_COLUMNS))
    return pd.concat(tables, ignore_index=True) if tables else empty


def telling(difference: pd.DataFrame, named: Sequence[str], top: int) -> pd.DataFrame:
    """The symbols of a difference that tell most, at most ``top`` of a cell.

    First those that the study names, then those that are gone or new (at least
    ``NOTABLE`` of one profile and in none of the stacks of the other), then those whose
    self time changes most; outer frames change only by what they call.
    """
    parts = [
        rows.loc[_telling(rows, named)].head(top)
        for _, rows in difference.groupby(["device", "workload"], sort=False)
    ]
    return pd.concat(parts, ignore_index=True) if parts else difference


def dearest(difference: pd.DataFrame, top: int) -> pd.DataFrame:
    """The symbols of the largest own cost per packet, at most ``top`` of a cell.

    Rows without a known cost and idle symbols are left out.
    """
    known = difference.dropna(subset=["self_cost_baseline", "self_cost_patched"])
    known = known[known["origin"] != "idle"]
    costs = known[["self_cost_baseline", "self_cost_patched"]].max(axis=1)
    order = costs.sort_values(ascending=False, kind="stable").index
    ranked = known.loc[order].groupby(["device", "workload"], sort=False).head(top)
    return ranked.reset_index(drop=True)


def appeared(difference: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Symbols that are new and that are gone, each at least ``NOTABLE``.

    Inclusive: a symbol is gone where no stack of the other variant holds it.
    """
    base, new = difference["inclusive_baseline"], difference["inclusive_patched"]
    names = difference["symbol"]
    return (
        names[(base == 0) & (new >= NOTABLE)].tolist(),
        names[(new == 0) & (base >= NOTABLE)].tolist(),
    )


def _telling(rows: pd.DataFrame, named: Sequence[str]) -> pd.Index:
    shares = rows[["inclusive_baseline", "inclusive_patched"]]
    gone = (shares.min(axis=1) == 0) & (shares.max(axis=1) >= NOTABLE)
    own_change = (rows["self_patched"] - rows["self_baseline"]).abs()
    ranks = pd.DataFrame(
        {"named": rows["symbol"].isin(named), "gone": gone, "own": own_change}
    )
    return ranks.sort_values(["named", "gone", "own"], ascending=False).index


def _cell_difference(
    cell: Cell,
    base: Sequence[ProfileRun],
    new: Sequence[ProfileRun],
    confidence: float,
) -> pd.DataFrame:
    sides = {"baseline": base, "patched": new}
    symbols = sorted(set().union(*(one.inclusive for one in (*base, *new))))
    shares = {
        (kind, variant): _matrix([getattr(one, attribute) for one in runs], symbols)
        for kind, attribute in (("inclusive", "inclusive"), ("self", "own"))
        for variant, runs in sides.items()
    }
    table = pd.DataFrame(
        {f"{kind}_{variant}": x.mean(axis=0) for (kind, variant), x in shares.items()}
    )
    for variant, runs in sides.items():
        cost = np.array([[np.nan if x.cost[0] is None else x.cost[0]] for x in runs])
        for kind, name in (("inclusive", "cost"), ("self", "self_cost")):
            table[f"{name}_{variant}"] = (shares[kind, variant] * cost).mean(axis=0)
        table[f"profiles_{variant}"] = len(runs)
    low, high = _interval(
        shares["inclusive", "baseline"], shares["inclusive", "patched"], confidence
    )
    origins = _origins(one.profile for one in (*base, *new))
    table = table.assign(
        device=cell.device,
        workload=cell.workload,
        event=cell.event,
        symbol=symbols,
        origin=[origins[name] for name in symbols],
        change=table["inclusive_patched"] - table["inclusive_baseline"],
        change_low=low,
        change_high=high,
    )
    largest = table["change"].abs().sort_values(ascending=False, kind="stable").index
    return table.loc[largest, list(DIFFERENCE_COLUMNS)].reset_index(drop=True)


def _matrix(
    shares: Sequence[Mapping[str, float]], symbols: Sequence[str]
) -> np.ndarray:
    """One row per profile, one column per symbol; 0 where a profile has it not."""
    return np.array([[one.get(symbol, 0.0) for symbol in symbols] for one in shares])


def _interval(
    base: np.ndarray, new: np.ndarray, confidence: float
) -> tuple[list[float], list[float]]:
    """Ends of the t interval of each column's change; NaN below two rows of each."""
    if min(len(base), len(new)) < 2:
        return [np.nan] * base.shape[1], [np.nan] * base.shape[1]
    found = [
        stats.welch(*sides).interval(confidence)
        for sides in zip(base.T, new.T, strict=True)
    ]
    return [one.low for one in found], [one.high for one in found]


def _origins(profiles: Iterable[Profile]) -> dict[str, str]:
    """Where each symbol lies; of a name in several places, the one seen first."""
    known: dict[str, str] = {}
    for profile in profiles:
        for stack in profile.stacks:
            for at, frame in enumerate(stack.frames):
                name = bare(frame)
                if name not in known:
                    known[name] = origin(stack, at)
    return known


# ---- one symbol ---------------------------------------------------------------------


def evidence(study: Study, symbol: str) -> Iterator[Evidence]:
    """Yield what the profiles say about one symbol, per device and workload."""
    for cell in cells(study):
        every = {
            variant: [(one, one.inclusive.get(symbol, 0.0)) for one in found]
            for variant, found in cell.profiles.items()
        }
        yield Evidence(
            device=cell.device,
            workload=cell.workload,
            symbol=symbol,
            shares={name: tuple(x for _, x in found) for name, found in every.items()},
            costs={
                name: tuple(x * one.cost[0] for one, x in found if one.cost[0])
                for name, found in every.items()
            },
            weights={
                name: tuple(
                    (x * one.profile.total, one.profile.total) for one, x in found
                )
                for name, found in every.items()
            },
            unit=_unit(one for found in cell.profiles.values() for one in found),
            paths=tuple(one.path for found in cell.profiles.values() for one in found),
        )


def _unit(found: Iterable[ProfileRun]) -> str:
    return next((one.profile.unit for one in found if one.profile.unit), "sample")
