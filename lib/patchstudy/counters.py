"""Which counters changed between the variants beyond noise, asked of all of them.

Nobody declares the cost that nobody expects: drops, retransmits, ``time_squeeze``,
interrupts. Every counter of the measured runs is looked at, as events per byte (or
packet) moved where that is known, so that a faster variant does not change all of them.
The p-values are exact, from exchanging the variants of runs within their blocks,
adjusted over the counters of a device and workload (Benjamini-Hochberg, q = .10).
It is exploratory: what is found wants a study of its own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from patchstudy import stats
from patchstudy.metrics import Kind, metric
from patchstudy.moved import moved
from patchstudy.study import Study
from patchstudy.tables import Labels, unit_level

#: Share of false findings that is accepted among those shown (STATISTICS 3.11).
FALSE_SHARE: Final = 0.10
#: Words in names of counters whose rise is a cost.
_COST: Final = re.compile(
    r"drop|err|fail|retrans|squeeze|lost|loss|over(?:run|_err|flow)|missed|timeout"
    r"|prun|collaps|discard|collision|abort|no_?buf|stop",
    re.IGNORECASE,
)
#: Readings that count no events; bins of a histogram are shown as one.
_NO_COUNTER: Final = frozenset({"event:uptime", "alloc_count"})
#: Tools that leave out counters that are 0.
_OMITS_ZEROS: Final = frozenset({"nstat"})
_SERIES: Final = ["metric", "labels", "tool", "place"]

_Key = tuple[str, Labels, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """One counter that changed.

    Attributes
    ----------
    name, labels, tool, place
        Which counter it is.
    same
        Other counters with the same readings in every run.
    baseline, patched
        Mean reading of a run.
    per
        ``"MB"``, ``"packet"`` or ``"run"``: what the rates are counted over.
    rate_baseline, rate_patched
        Mean of the units.
    p_value, p_adjusted
        Exact or drawn permutation p; adjusted over the counters of the cell.
    costs
        Whether it is of the sort that costs something and rose.
    """

    device: str
    workload: str
    name: str
    labels: Labels
    tool: str
    place: str
    same: tuple[str, ...]
    baseline: float
    patched: float
    per: str
    rate_baseline: float
    rate_patched: float
    p_value: float
    p_adjusted: float
    costs: bool

    @property
    def ratio(self) -> float | None:
        """Patched / baseline of the rates; None where the baseline counted nothing."""
        return self.rate_patched / self.rate_baseline if self.rate_baseline else None

    @property
    def shown(self) -> str:
        """Name with its labels."""
        where = ", ".join(value for _, value in self.labels)
        return self.name.removeprefix("event:") + (f" of {where}" if where else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The counters of one device and workload.

    Attributes
    ----------
    looked_at
        How many differ at all between runs.
    units, blocks
        Units of each variant, and blocks in which variants were exchanged (1: none).
    least_p
        Smallest adjusted p that these units can give to one counter alone.
    changed
        Those with an adjusted p below ``FALSE_SHARE``: costs first, then by p.
    """

    device: str
    workload: str
    variant: str
    looked_at: int
    units: tuple[int, int]
    blocks: int
    least_p: float
    changed: tuple[Counter, ...]


def counters(study: Study, runs: pd.DataFrame) -> tuple[Counted, ...]:
    """Look at every counter of the measured runs of the judged variant.

    Parameters
    ----------
    runs
        As ``tables.per_run`` returns them.
    """
    judged = [study.design.baseline, study.design.patched[0]]
    kinds = {name: _counts(str(name)) for name in runs["metric"].unique()}
    rows = runs[runs["metric"].map(kinds).astype(bool) & runs["variant"].isin(judged)]
    amounts = _amounts(study)
    return tuple(
        found
        for (device, workload), cell in rows.groupby(["device", "workload"])
        if cell["variant"].nunique() == 2
        if (found := _cell(study, cell, (str(device), str(workload)), amounts))
    )


def _counts(name: str) -> bool:
    told = name in _NO_COUNTER or name.startswith("event:hist_")
    return not told and metric(name).kind is Kind.COUNT


def _amounts(study: Study) -> Mapping[tuple[str, str, str], tuple[float, float]]:
    """Megabytes and packets that each measured run moved; NaN where not known."""
    found = {}
    for run in study.runs:
        if run.measuring:
            amount = moved(run)
            found[run.device, run.workload, run.name] = (
                np.nan if amount.byte is None else amount.byte / 1e6,
                np.nan if amount.packet is None else amount.packet,
            )
    return found


def _cell(
    study: Study,
    rows: pd.DataFrame,
    cell: tuple[str, str],
    amounts: Mapping[tuple[str, str, str], tuple[float, float]],
) -> Counted | None:
    rows, per = _as_rates(rows, amounts)
    baseline = study.design.baseline
    found, same = [], dict[tuple[float, ...], int]()
    sizes: list[tuple[int, int]] = []
    for key, series in _series(rows, unit_level(rows, study.design)):
        readings = tuple(one.value for one in series)
        if len(set(readings)) < 2 or len({one.variant for one in series}) < 2:
            continue
        if readings in same:
            twin = found[same[readings]]
            found[same[readings]] = replace(twin, same=(*twin.same, _name(key)))
            continue
        same[readings] = len(found)
        blocks = _blocks(series, baseline)
        sizes = sizes or [(len(x), len(y)) for x, y in blocks]
        counter = _counter(key, series, blocks, baseline)
        found.append(replace(counter, device=cell[0], workload=cell[1], per=per))
    if not found:
        return None
    adjusted = stats.benjamini_hochberg([one.p_value for one in found])
    found = [
        replace(one, p_adjusted=float(p or 0.0))
        for one, p in zip(found, adjusted, strict=True)
    ]
    changed = [one for one in found if one.p_adjusted < FALSE_SHARE]
    changed.sort(key=lambda one: (not one.costs, one.p_adjusted, one.shown))
    return Counted(
        device=cell[0],
        workload=cell[1],
        variant=study.design.patched[0],
        looked_at=len(found),
        units=(sum(x for x, _ in sizes), sum(y for _, y in sizes)),
        blocks=len(sizes),
        least_p=min(1.0, stats.smallest_blocked_p(sizes) * len(found)),
        changed=tuple(changed),
    )


class _Reading(NamedTuple):
    """One reading of a counter in one run; ``unit`` is what the run belongs to."""

    run: str
    variant: str
    unit: tuple[str, ...]
    block: str
    value: float
    rate: float


def _series(
    rows: pd.DataFrame, level: str
) -> Iterator[tuple[_Key, tuple[_Reading, ...]]]:
    """Yield the readings of each counter in the order of the runs' names.

    Of a tool that leaves out counters that are 0, a run without the counter has a 0.
    """
    units = {"build": ["build"], "boot": ["build", "boot"], "run": ["name"]}[level]
    columns = [*_SERIES, "name", "variant", "block", "value", "rate", *units]
    found: dict[_Key, dict[str, _Reading]] = {}
    runs: dict[tuple[str, str], dict[str, _Reading]] = {}
    for row in rows[columns].itertuples(index=False, name=None):
        metric_, labels, tool, place, name, variant, block, value, rate, *unit = row
        reading = _Reading(name, variant, (variant, *unit), block, value, rate)
        found.setdefault((metric_, labels, tool, place), {})[name] = reading
        none = reading._replace(value=0.0, rate=0.0)
        runs.setdefault((tool, place), {})[name] = none
    for key in sorted(found):
        readings = found[key]
        if key[2] in _OMITS_ZEROS:
            readings = runs[key[2], key[3]] | readings
        yield key, tuple(readings[name] for name in sorted(readings))


def _as_rates(
    rows: pd.DataFrame, amounts: Mapping[tuple[str, str, str], tuple[float, float]]
) -> tuple[pd.DataFrame, str]:
    """Add the column ``rate``: per MB if every run has moved bytes, or per packet."""
    keys = rows[["device", "workload", "name"]].itertuples(index=False, name=None)
    moves = np.array([amounts.get(key, (np.nan, np.nan)) for key in keys])
    for column, per in ((0, "MB"), (1, "packet")):
        if len(moves) and bool((moves[:, column] > 0).all()):
            return rows.assign(rate=rows["value"] / moves[:, column]), per
    return rows.assign(rate=rows["value"]), "run"


def _blocks(
    series: Sequence[_Reading], baseline: str
) -> list[tuple[list[float], list[float]]]:
    """Rates of the units of both variants, in every block that holds both.

    Where fewer than two blocks hold both, all units are one block. A unit that reaches
    over several blocks lies in none of them.
    """
    units: dict[tuple[str, ...], list[_Reading]] = {}
    for one in series:
        units.setdefault(one.unit, []).append(one)
    blocks: dict[str, tuple[list[float], list[float]]] = {}
    every: tuple[list[float], list[float]] = ([], [])
    for members in units.values():
        rate = sum(one.rate for one in members) / len(members)
        side = int(members[0].variant != baseline)
        every[side].append(rate)
        names = {one.block for one in members}
        if len(names) == 1 and "" not in names:
            blocks.setdefault(names.pop(), ([], []))[side].append(rate)
    paired = [blocks[name] for name in sorted(blocks) if all(blocks[name])]
    return paired if len(paired) >= 2 else [every]


def _counter(
    key: _Key,
    series: Sequence[_Reading],
    blocks: list[tuple[list[float], list[float]]],
    baseline: str,
) -> Counter:
    """Return one counter with its p, not yet adjusted."""
    name, labels, tool, place = key
    old, new = (fmean(x for one in blocks for x in one[side]) for side in (0, 1))
    return Counter(
        device="",
        workload="",
        name=name,
        labels=labels,
        tool=tool,
        place=place,
        same=(),
        baseline=fmean(one.value for one in series if one.variant == baseline),
        patched=fmean(one.value for one in series if one.variant != baseline),
        per="run",
        rate_baseline=old,
        rate_patched=new,
        p_value=stats.blocked_permutation_p(blocks).p_value,
        p_adjusted=1.0,
        costs=bool(_COST.search(name)) and new > old,
    )


def _name(key: _Key) -> str:
    name, labels, tool, _ = key
    where = ", ".join(value for _, value in labels)
    words = f"{name} of {where}" if where else name
    return f"{words.removeprefix('event:')} ({tool})"
