"""Profiles of the variants: shares of symbols, and their difference.

Profile runs are evidence of the mechanism. They are never pooled with measured runs:
the probe itself slows what it watches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from patchstudy.records import Profile
from patchstudy.study import Run, Study

DIFFERENCE_COLUMNS: Final = (
    "device", "workload", "symbol", "inclusive_baseline", "inclusive_patched",
    "self_baseline", "self_patched", "change",
)  # fmt: skip


#: Share from which a symbol that is gone or new is worth a line.
NOTABLE: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRun:
    """One profile of one variant, with the file that it came from."""

    run: Run
    path: str
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Inclusive share of one symbol in the profile of each variant.

    Attributes
    ----------
    shares
        Variant -> inclusive shares, one per profile.
    paths
        The files that they came from.
    """

    device: str
    workload: str
    symbol: str
    shares: Mapping[str, tuple[float, ...]]
    paths: tuple[str, ...]


def profile_runs(study: Study) -> tuple[ProfileRun, ...]:
    """Return every profile with a weight, from the runs that do not measure.

    Of a file with several events the first is taken: they cannot be added up.
    """
    return tuple(
        ProfileRun(
            run=run,
            path=source.capture.path.relative_to(study.folder).as_posix(),
            profile=profile,
        )
        for run in study.runs
        if not run.measuring
        for source in run.sources
        for profile in source.capture.profiles[:1]
        if profile.total > 0
    )


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


def bare(frame: str) -> str:
    """Return the symbol without the mark of kernel, inlined or compiled code."""
    for mark in ("_[k]", "_[i]", "_[j]", "_[w]"):
        frame = frame.removesuffix(mark)
    return frame


def difference(study: Study) -> pd.DataFrame:
    """One row per device, workload and symbol in the profiles of both variants.

    Several profiles of one variant are averaged, each with the same weight.

    Returns
    -------
    pandas.DataFrame
        Columns ``DIFFERENCE_COLUMNS``; shares between 0 and 1; ``change`` is the
        inclusive share patched minus baseline; the largest change first.
    """
    names = {study.design.baseline: "baseline", study.design.patched[0]: "patched"}
    cells: dict[tuple[str, str], dict[str, list[Profile]]] = {}
    for one in profile_runs(study):
        if one.run.variant in names:
            cell = cells.setdefault((one.run.device, one.run.workload), {})
            cell.setdefault(names[one.run.variant], []).append(one.profile)
    tables = [
        _cell_difference(device, workload, profiles)
        for (device, workload), profiles in sorted(cells.items())
        if len(profiles) == 2
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


def _telling(rows: pd.DataFrame, named: Sequence[str]) -> pd.Index:
    shares = rows[["inclusive_baseline", "inclusive_patched"]]
    gone = (shares.min(axis=1) == 0) & (shares.max(axis=1) >= NOTABLE)
    own_change = (rows["self_patched"] - rows["self_baseline"]).abs()
    ranks = pd.DataFrame(
        {"named": rows["symbol"].isin(named), "gone": gone, "own": own_change}
    )
    return ranks.sort_values(["named", "gone", "own"], ascending=False).index


def _cell_difference(
    device: str, workload: str, profiles: Mapping[str, list[Profile]]
) -> pd.DataFrame:
    columns = {
        f"{kind}_{variant}": _mean(function(one) for one in profiles[variant])
        for kind, function in (("inclusive", inclusive), ("self", own))
        for variant in ("baseline", "patched")
    }
    table = pd.DataFrame(columns).fillna(0.0).rename_axis("symbol").reset_index()
    change = table["inclusive_patched"] - table["inclusive_baseline"]
    table = table.assign(device=device, workload=workload, change=change)
    largest = change.abs().sort_values(ascending=False, kind="stable").index
    return table.loc[largest, list(DIFFERENCE_COLUMNS)].reset_index(drop=True)


def _mean(shares: Iterable[Mapping[str, float]]) -> pd.Series:
    table = pd.DataFrame([dict(one) for one in shares]).fillna(0.0)
    return table.mean().sort_index()


def evidence(study: Study, symbol: str) -> Iterator[Evidence]:
    """Yield what the profiles say about one symbol, per device and workload."""
    cells: dict[tuple[str, str], list[ProfileRun]] = {}
    for one in profile_runs(study):
        cells.setdefault((one.run.device, one.run.workload), []).append(one)
    for (device, workload), profiles in sorted(cells.items()):
        shares: dict[str, tuple[float, ...]] = {}
        for one in profiles:
            share = inclusive(one.profile).get(symbol, 0.0)
            shares[one.run.variant] = (*shares.get(one.run.variant, ()), share)
        yield Evidence(
            device=device,
            workload=workload,
            symbol=symbol,
            shares=shares,
            paths=tuple(one.path for one in profiles),
        )
