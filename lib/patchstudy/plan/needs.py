"""What each margin asks of a study, from the spread of a pilot or a given one."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import stats
from patchstudy.checks import Material
from patchstudy.compare import (
    Comparison,
    Goal,
    error_rates,
    goal_of,
    margin_on_scale,
)
from patchstudy.errors import StudyError
from patchstudy.metrics import Scale
from patchstudy.plan.order import Order
from patchstudy.study import Design, Margin, Planned, Role, parse_margin
from patchstudy.tables import per_unit

_NO_SPREAD: Final = "no spread"
_TOO_FEW: Final = "too few"
_NOT_MEASURED: Final = "unmeasured"
_NO_SCALE: Final = "no scale"
#: What each problem means, and what to do about it.
PROBLEMS: Final = {
    _NO_SPREAD: "all units of the pilot are the same to the last digit, so it says "
    "nothing about noise; use output with more digits, or give --sd",
    _TOO_FEW: "a spread needs two units of each variant (or two blocks with both); "
    "measure more, or give --sd",
    _NOT_MEASURED: "the pilot has no number of it; a plan needs one",
    _NO_SCALE: "the margin cannot be brought to the scale of the values; declare it in "
    "the unit of the metric",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked of a plan.

    Attributes
    ----------
    detect
        Change to detect in the primary metric (``"2 %"``); empty: its margin.
    power
        Chance that a change of this size, or its absence, is shown.
    seed
        Of the order; None: taken from the sha256 of ``study.toml``.
    blocks
        Number of blocks that are measured in any case; None: as many as needed.
    boot_cost_s, run_cost_s
        Seconds to begin a boot (or a block), and for one run of a variant.
    """

    detect: str
    power: float
    order: Order
    seed: int | None
    blocks: int | None
    boot_cost_s: float
    run_cost_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A spread that is known from elsewhere, as the user wrote it; empty: not given.

    Attributes
    ----------
    sd
        Of the units of one variant.
    boot_sd, run_sd
        What boots add by themselves, and runs within a boot.
    """

    metric: str
    sd: str
    boot_sd: str
    run_sd: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Where the variance of one variant's entry in the analysis comes from.

    The entry is the mean of a variant in a block, or a unit where nothing is paired.

    Attributes
    ----------
    above, own
        Variance that the entry adds by itself, and that of one run within it.
    runs
        Runs in an entry of the pilot (harmonic mean).
    units
        Units in an entry of the pilot.
    told
        Whether the pilot tells the two variances apart.
    """

    above: float
    own: float
    runs: float
    units: int
    told: bool

    def variance(self, runs: float) -> float:
        """Variance of an entry of so many runs (Kalibera and Jones 2013, section 5)."""
        return self.above + self.own / runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one margin asks for.

    Attributes
    ----------
    labels
        The series of numbers that answers the question, in words.
    margin
        As written; a ``*`` marks a default.
    target
        The margin, or the change to detect, on the scale of the analysis.
    alpha, power
        Of the test that is planned for; ``alpha`` is two-sided.
    paired, n
        Whether blocks are compared, and how many (else units of each variant) the
        pilot has; 0 without a pilot.
    sd, df
        Of the differences within blocks, or of the units of one variant, and the
        degrees of freedom with which the pilot knows it; 0 without a pilot.
    detectable
        Smallest change that ``n`` shows with this power; None without a pilot.
    needed
        As ``n``, for the target, replicated as in the pilot; None: more than 10 000.
    planned, shows
        What is needed with the replication of the plan, and what the plan can show.
    problem
        Why nothing can be planned for; empty where it can.
    """

    metric: str
    workload: str
    labels: str
    variant: str
    role: Role
    goal: Goal
    margin: str
    target: float | None
    scale: Scale
    unit: str
    alpha: float
    power: float
    paired: bool
    n: int
    sd: float
    df: float
    spread: Spread | None
    detectable: float | None
    needed: int | None
    planned: int | None
    shows: float | None
    problem: str

    def units_for(self, sd: float, *, paired: bool) -> int | None:
        """Return how many show the target at this spread; None: more than 10 000."""
        target = 0.0 if self.target is None else self.target
        return stats.needed_n(
            sd, target, paired=paired, power=self.power, alpha=self.alpha
        )

    def shown_by(self, n: int, sd: float, *, paired: bool) -> float:
        """Return the smallest change that so many show at this spread."""
        return stats.detectable_change(
            sd, n, paired=paired, power=self.power, alpha=self.alpha
        )


def of_comparison(comparison: Comparison, found: Material, wish: Wish) -> Need:
    """Plan for one metric from the units of the pilot."""
    question = comparison.question
    margin = _margin(question.planned, question.role, wish)
    target = margin_on_scale(comparison, margin)
    blank = _blank(question.planned, question.role, found.study.design, wish)
    blank = replace(
        blank,
        workload=question.workload,
        labels=",".join(f"{k}={v}" for k, v in question.labels),
        variant=comparison.variant,
        target=target,
        scale=comparison.scale,
        unit=question.unit,
        paired=comparison.blocks > 0,
    )
    seen = _seen(comparison, found)
    problem = _problem(comparison, seen, target)
    if problem or seen is None:
        return replace(blank, problem=problem)
    n, sd, df = seen
    known = replace(blank, n=n, sd=sd, df=df, spread=_spread(comparison, found, sd))
    return replace(
        known,
        detectable=known.shown_by(n, sd, paired=known.paired),
        needed=known.units_for(sd, paired=known.paired),
    )


def _seen(comparison: Comparison, found: Material) -> tuple[int, float, float] | None:
    """How many blocks, or units of each variant, the pilot has; their spread, its df.

    That of unpaired variants is pooled through the standard error of their difference.
    A pilot may hold the baseline alone: then its spread stands for both variants.
    """
    effect, alone = comparison.effect, comparison.patched is None
    if effect is not None:
        paired = comparison.blocks > 0
        counts = [one.n for one in (comparison.baseline, comparison.patched) if one]
        count = comparison.blocks or _harmonic(counts)
        sd = effect.standard_error * math.sqrt(count if paired else count / 2)
        return int(count), 0.0 if effect.floored else sd, effect.df
    if not alone or comparison.baseline is None or comparison.baseline.n < 2:
        return None
    rows = found.units[found.units["question"] == comparison.question.key]
    values = rows.loc[rows["variant"] == found.study.design.baseline, "value"]
    numbers = values.to_numpy(dtype=float)
    numbers = np.log(numbers) if comparison.scale is Scale.RATIO else numbers
    sd = float(numbers.std(ddof=1)) if np.ptp(numbers) > 0 else 0.0
    return comparison.baseline.n, sd, comparison.baseline.n - 1


def _blank(planned: Planned, role: Role, design: Design, wish: Wish) -> Need:
    margin = _margin(planned, role, wish)
    goal = goal_of(planned, role)
    alpha, power = error_rates(goal, design.alpha, wish.power)
    return Need(
        metric=planned.metric.name,
        workload=", ".join(planned.workloads) or "any workload",
        labels="",
        variant=design.patched[0],
        role=role,
        goal=goal,
        margin=margin.text + ("" if margin.declared else " *"),
        target=None,
        scale=planned.metric.scale,
        unit=design.unit,
        alpha=alpha,
        power=power,
        paired=False,
        n=0,
        sd=0.0,
        df=0.0,
        spread=None,
        detectable=None,
        needed=None,
        planned=None,
        shows=None,
        problem="",
    )


def _margin(planned: Planned, role: Role, wish: Wish) -> Margin:
    if role is not Role.PRIMARY or not wish.detect:
        return planned.margin
    try:
        return parse_margin(wish.detect, planned.metric)
    except ValueError as error:
        raise StudyError(f"--detect: {error}") from error


def _problem(
    comparison: Comparison, seen: tuple[int, float, float] | None, target: float | None
) -> str:
    if comparison.question.problem or comparison.baseline is None:
        return _NOT_MEASURED
    if seen is None:
        return _TOO_FEW
    if seen[1] == 0:
        return _NO_SPREAD
    return _NO_SCALE if target is None else ""


def _harmonic(counts: Iterable[float]) -> float:
    inverse = [1 / count for count in counts]
    return len(inverse) / sum(inverse)


# ---- where the spread arises --------------------------------------------------------


def _spread(comparison: Comparison, found: Material, sd: float) -> Spread:
    """Split the variance by level (STATISTICS 3.7; Kalibera and Jones 2013).

    Half the variance of a block difference is that of one variant's mean in a block.
    What runs leave of it is the block's own; where that is negative, all is the runs'.
    """
    unit, paired = comparison.question.unit, comparison.blocks > 0
    total = sd**2 / 2 if paired else sd**2
    if comparison.patched is None:
        return Spread(above=total, own=0.0, runs=1, units=1, told=False)
    if unit == "run" and not paired:
        return Spread(above=0.0, own=total, runs=1, units=1, told=False)
    rows = _run_rows(comparison, found)
    level = [
        "variant",
        *{"run": ["block"], "boot": ["build", "boot"]}.get(unit, [unit]),
    ]
    entry = rows.groupby(["variant", "block"] if paired else level)
    runs = _harmonic(entry.size())
    units = int(entry["unit"].nunique().max()) if paired else 1
    own = _pooled(rows, level)
    if own is None:
        return Spread(above=total, own=0.0, runs=runs, units=units, told=False)
    above = total - own / runs
    if above <= 0:
        above, own = 0.0, total * runs
    return Spread(above=above, own=own, runs=runs, units=units, told=True)


def _run_rows(comparison: Comparison, found: Material) -> pd.DataFrame:
    """One row per run of both variants, with its unit, on the scale of the analysis."""
    question = comparison.question
    rows = per_unit(found.runs, [replace(question, unit="run")])
    variants = (found.study.design.baseline, comparison.variant)
    rows = rows[rows["variant"].isin(variants)].rename(columns={"unit": "name"})
    if comparison.blocks:
        both = rows[rows["block"] != ""].groupby("block")["variant"].nunique() == 2
        rows = rows[rows["block"].isin(both.index[both])]
    cell = ["device", "workload", "name"]
    places = found.runs[[*cell, "build", "boot"]].drop_duplicates(cell)
    rows = rows.merge(places, on=cell)
    log = comparison.scale is Scale.RATIO
    keys = {"run": ["name"], "boot": ["build", "boot"]}.get(question.unit, ["build"])
    units = rows[keys].agg(" ".join, axis=1)
    return rows.assign(
        value=np.log(rows["value"]) if log else rows["value"], unit=units
    )


def _pooled(rows: pd.DataFrame, level: Sequence[str]) -> float | None:
    """Variance of the runs within their level; None where no level holds two."""
    inside = rows["value"] - rows.groupby(list(level))["value"].transform("mean")
    df = len(rows) - rows.groupby(list(level)).ngroups
    return float((inside**2).sum() / df) if df > 0 else None


# ---- a given spread -----------------------------------------------------------------


def given_design(design: Design, given: Given) -> Design:
    """Return the design with the unit and the block that the spread speaks of."""
    split = bool(given.boot_sd or given.run_sd)
    if split and given.sd:
        raise StudyError("--sd: give either --sd, or --boot-sd and --run-sd")
    if split and not (given.boot_sd and given.run_sd):
        raise StudyError("--boot-sd, --run-sd: give both, or --sd alone")
    if split:
        return replace(design, unit="boot", block="")
    return replace(design, unit="run", block=design.block or "boot")


def of_given(planned: Planned, given: Given, design: Design, wish: Wish) -> Need:
    """Plan for one metric from a given spread."""
    need = _blank(planned, planned.role, design, wish)
    margin = _margin(planned, planned.role, wish)
    if margin.scale is not planned.metric.scale:
        raise StudyError(_other_scale("--detect", margin.text, planned))
    ratio = margin.scale is Scale.RATIO
    names = ("--sd",) if given.sd else ("--boot-sd", "--run-sd")
    texts = (given.sd,) if given.sd else (given.boot_sd, given.run_sd)
    sds = [
        _given_sd(name, text, planned) for name, text in zip(names, texts, strict=True)
    ]
    spread = Spread(
        above=sum(sd**2 for sd in sds[:-1]),
        own=sds[-1] ** 2,
        runs=1,
        units=1,
        told=len(sds) > 1,
    )
    sd = math.sqrt(spread.variance(1))
    known = replace(
        need,
        target=math.log1p(margin.value) if ratio else margin.value,
        sd=sd,
        spread=spread,
    )
    return replace(known, needed=known.units_for(sd, paired=False))


def _given_sd(name: str, text: str, planned: Planned) -> float:
    """Read a spread; of a ratio, the standard deviation of its logarithms.

    For a few percent that is the coefficient of variation.
    """
    try:
        sd = parse_margin(text, planned.metric)
    except ValueError as error:
        problem = str(error).replace("is no margin", "is no spread above 0")
        raise StudyError(f"{name}: {problem}") from error
    if sd.scale is not planned.metric.scale:
        raise StudyError(_other_scale(name, text, planned))
    return sd.value


def _other_scale(name: str, text: str, planned: Planned) -> str:
    metric = planned.metric
    relative = metric.scale is Scale.RATIO
    right = "in percent" if relative else f"in the unit of {metric.name} (as '0.1 pp')"
    return f"{name}: {text!r} given; without a pilot of {metric.name} give it {right}"
