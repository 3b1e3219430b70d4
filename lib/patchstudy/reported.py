"""Self shares of ``perf report`` where no stacks were kept: what they say and hide.

A report has the share of every symbol alone (column Self, or Overhead without
Children). They are compared with each other only, never with inclusive shares, and only
where no profile with stacks of both variants is there. A symbol that a report does not
have may have any share of what its rows leave; where a row stands for a symbol in all
threads and objects, no more than the smallest of them. That is a bound, not 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import stats
from patchstudy.profiles import cells, samples_time
from patchstudy.study import Run, Source, Study

REPORTED_COLUMNS: Final = (
    "device", "workload", "event", "symbol", "baseline", "patched", "bound_baseline",
    "bound_patched", "change", "change_low", "change_high", "reports_baseline",
    "reports_patched",
)  # fmt: skip
#: Columns that split a symbol over several rows, of which some may be hidden.
_SPLITS: Final = frozenset({"Command", "Shared Object", "CPU", "Tid", "Pid:Command"})
#: Half of the last digit that perf prints: a share of 0.00 % may be this.
_ROUNDED: Final = 5e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The self shares of one event in one file.

    Attributes
    ----------
    shares
        Symbol -> share, as printed.
    bound
        What a symbol that is not in it may have at most.
    samples
        Number of samples, where the file tells it.
    """

    run: Run
    path: str
    event: str
    shares: Mapping[str, float]
    bound: float
    samples: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCell:
    """The reports of one event on one device and workload, one a run."""

    device: str
    workload: str
    event: str
    baseline: tuple[Report, ...]
    patched: tuple[Report, ...]


def reports(study: Study) -> tuple[Report, ...]:
    """Return every table of self shares, from the runs that do not measure."""
    return tuple(
        one
        for run in study.runs
        for source in run.sources
        if not run.measuring and source.capture.tool == "perf_report"
        for one in _of_source(study, run, source)
    )


def _of_source(study: Study, run: Run, source: Source) -> Iterator[Report]:
    tables: dict[str, dict[str, float]] = {}
    samples: dict[str, int | None] = {}
    for one in source.capture.measurements:
        if one.labels.get("share") == "self":
            event, symbol = one.labels["event"], one.metric.partition(":")[2]
            tables.setdefault(event, {})[symbol] = one.value
            samples[event] = int(one.exposure) if one.exposure else None
    split = _split(source.capture.facts)
    for event, shares in tables.items():
        rest = max(1 - sum(shares.values()), 0.0)
        most = rest if split else min(rest, *shares.values())
        yield Report(
            run=run,
            path=study.path_of(source.capture),
            event=event,
            shares=shares,
            bound=max(most, _ROUNDED),
            samples=samples[event],
        )


def _split(facts: Mapping[str, object]) -> bool:
    columns = facts.get("columns")
    return not isinstance(columns, list) or not _SPLITS.isdisjoint(columns)


def difference(study: Study) -> pd.DataFrame:
    """One row per device, workload and symbol in reports of both variants.

    Returns
    -------
    pandas.DataFrame
        Columns ``REPORTED_COLUMNS``: self shares between 0 and 1 as the mean of the
        reports, NaN where one of them does not have the symbol, and then ``bound_*`` is
        the most it may be; ``change`` patched minus baseline with its t interval
        (Welch) where there are two reports of each; where a symbol is missing,
        ``change`` is NaN and the ends are what its bound leaves; the largest change
        first.
    """
    tables = [
        _cell_difference(one, 1 - study.design.alpha) for one in reported_cells(study)
    ]
    empty = pd.DataFrame(columns=list(REPORTED_COLUMNS))
    return pd.concat(tables, ignore_index=True) if tables else empty


def reported_cells(study: Study) -> Iterator[ReportCell]:
    """Yield the reports of both variants where no stacks of both are."""
    judged = (study.design.baseline, study.design.patched[0])
    stacked = {
        (one.device, one.workload)
        for one in cells(study)
        if all(variant in one.profiles for variant in judged)
    }
    found: dict[tuple[str, str], dict[str, dict[str, list[Report]]]] = {}
    for one in reports(study):
        events = found.setdefault((one.run.device, one.run.workload), {})
        events.setdefault(one.event, {}).setdefault(one.run.variant, []).append(one)
    for place, events in sorted(found.items()):
        event = _event(events, judged)
        if place not in stacked and event is not None:
            baseline, patched = (tuple(events[event][side]) for side in judged)
            yield ReportCell(
                device=place[0],
                workload=place[1],
                event=event,
                baseline=baseline,
                patched=patched,
            )


def telling(difference: pd.DataFrame, named: Sequence[str], top: int) -> pd.DataFrame:
    """The symbols that the study names, then those that change most; ``top`` a cell."""
    first = difference["symbol"].isin(named).to_numpy()
    ranked = pd.concat([difference[first], difference[~first]])
    places = ranked.groupby(["device", "workload"], sort=False)
    return places.head(top).sort_values(
        ["device", "workload"], kind="stable", ignore_index=True
    )


def _event(
    events: Mapping[str, Mapping[str, object]], judged: Sequence[str]
) -> str | None:
    """Return an event of both variants, one that samples time before any other."""
    both = [name for name, sides in events.items() if set(judged) <= sides.keys()]
    return max(both, key=samples_time, default=None)


def _cell_difference(cell: ReportCell, confidence: float) -> pd.DataFrame:
    sides = (cell.baseline, cell.patched)
    symbols = sorted({name for side in sides for one in side for name in one.shares})
    rows = [
        {
            "device": cell.device,
            "workload": cell.workload,
            "event": cell.event,
            "symbol": symbol,
            **_row(symbol, sides, confidence),
        }
        for symbol in symbols
    ]
    table = pd.DataFrame(rows, columns=list(REPORTED_COLUMNS))
    size = table[["change_low", "change_high"]].mean(axis=1)
    size = table["change"].fillna(size).abs()
    order = size.sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)


def _row(
    symbol: str, sides: Sequence[Sequence[Report]], confidence: float
) -> dict[str, float]:
    told = [[one.shares.get(symbol, np.nan) for one in side] for side in sides]
    least = [np.nan_to_num(side) for side in told]
    most = [[one.shares.get(symbol, one.bound) for one in side] for side in sides]
    means = [float(np.mean(side)) for side in told]
    bounds = [float(np.mean(side)) for side in most]
    low, high = bounds[0], bounds[1]
    ends = {
        "change_low": float(np.mean(least[1])) - low,
        "change_high": high - float(np.mean(least[0])),
    }
    change = means[1] - means[0]
    if not np.isnan(change):
        ends = {"change_low": np.nan, "change_high": np.nan}
        if min(map(len, told)) >= 2:
            one = stats.welch(*told).interval(confidence)
            ends = {"change_low": one.low, "change_high": one.high}
    return {
        "baseline": means[0],
        "patched": means[1],
        "bound_baseline": bounds[0],
        "bound_patched": bounds[1],
        "change": change,
        **ends,
        "reports_baseline": len(told[0]),
        "reports_patched": len(told[1]),
    }
