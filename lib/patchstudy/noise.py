"""What another study of the same device says about its noise.

An A/A study compares a build with itself: its interval says which margins can be
tested there. The runs of the baseline of any study say how much boots differ. That
spread is lent to a study that has none of its own; what comes of it is never more than
a hint.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd
from scipy import special

from patchstudy import companions, outcomes, stats
from patchstudy.metrics import Kind, Scale
from patchstudy.tables import Labels, Question, series

#: How many half-widths of an A/A interval a margin must span (STATISTICS 3.4).
TESTABLE: Final = 2.0
#: Fewest boots, or runs, from which a spread is lent: two have one degree of freedom.
LEAST_GROUPS: Final = 3
#: Kinds of which no spread is lent: that of a count, or of what passes or fails,
#: follows from its size, and exact numbers have none.
_NOT_LENT: Final = frozenset({Kind.COUNT, Kind.PROPORTION, *outcomes.KINDS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series of numbers: two studies that have it measured the same thing."""

    device: str
    workload: str
    metric: str
    labels: Labels
    tool: str
    place: str


def series_of(question: Question) -> Series:
    """Return the series that was chosen to answer a question."""
    return Series(
        device=question.device,
        workload=question.workload,
        metric=question.planned.metric.name,
        labels=question.labels,
        tool=question.tool,
        place=question.place,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What one comparison of a build with itself shows: noise, and nothing else.

    Attributes
    ----------
    study, series
        Where it was measured, and what.
    scale
        Of the half width.
    half_width
        Of the interval of the A/A change, on the scale of the analysis.
    sd
        Standard deviation of the baseline's units over their mean; None without one.
    units, paired
        How many blocks there were (``paired``), or units of each variant (their
        harmonic mean).
    alpha
        Level of the interval.
    """

    study: str
    series: Series
    scale: Scale
    half_width: float
    sd: float | None
    units: float
    paired: bool
    alpha: float

    @property
    def least_margin(self) -> float:
        """Smallest margin that can be tested with so many units."""
        return TESTABLE * self.half_width

    def with_units(self, units: float) -> "Noise":
        """Return the noise as so many units would show it.

        The interval is as wide as a t quantile over the root of the number of units.
        """
        if units == self.units:
            return self
        change = _width(units, self) / _width(self.units, self)
        return replace(self, half_width=self.half_width * change, units=units)


def _width(units: float, one: Noise) -> float:
    df = units - 1 if one.paired else 2 * (units - 1)
    return float(special.stdtrit(df, 1 - one.alpha / 2)) / math.sqrt(units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """How much the runs of one build differ, as another study saw it.

    Attributes
    ----------
    study, series
        Where it was measured, and what.
    scale
        Of the standard deviations: of logs with ``ratio``.
    level
        ``"boot"``, the block where boots are not recorded, or ``"run"`` where neither
        was repeated.
    groups, runs
        How many of them there are, and runs in each (the harmonic mean).
    between
        Standard deviation of their means; it holds that of their runs too, and is
        never smaller than what they add by themselves.
    within
        Standard deviation of the runs in one; 0 where each holds one run.
    """

    study: str
    series: Series
    scale: Scale
    level: str
    groups: int
    runs: float
    between: float
    within: float

    @property
    def df(self) -> int:
        """Degrees of freedom: boots are what was repeated, not their runs."""
        return self.groups - 1

    def sd_of(self, runs: float) -> float:
        """Standard deviation of the mean of so many runs in a boot of their own."""
        fewer = max(0.0, 1 / runs - 1 / self.runs)
        return math.sqrt(self.between**2 + self.within**2 * fewer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bank:
    """All that is known about the noise of some devices."""

    noises: tuple[Noise, ...]
    lent: tuple[Lent, ...]

    def noise_of(self, question: Question, scale: Scale) -> Noise | None:
        """Return the noise of the very same numbers; None where it is not known."""
        wanted = series_of(question)
        known = (x for x in self.noises if x.scale is scale and x.series == wanted)
        return next(known, None)

    def lent_to(self, question: Question, scale: Scale) -> Lent | None:
        """Return the spread of the very same numbers; None where it is not known."""
        wanted = series_of(question)
        known = (x for x in self.lent if x.scale is scale and x.series == wanted)
        return next(known, None)


EMPTY: Final = Bank(noises=(), lent=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrowed:
    """A change whose uncertainty comes, wholly or in part, from another study.

    Attributes
    ----------
    change
        As the change of the comparison, with its confidence interval.
    sd
        What was borrowed, on the scale of the analysis: the standard deviation of a
        unit, or with ``boots`` of the means of boots.
    boots
        True where it was added to the spread of the study's own runs, which lie in one
        boot of each variant; False where the study has no spread of its own.
    """

    change: stats.Estimate
    lent: Lent
    sd: float
    boots: bool

    @property
    def shows(self) -> bool:
        """Say whether the interval lies on one side of no change."""
        return self.change.low > 0 or self.change.high < 0


def spreads(
    study: str, runs: pd.DataFrame, asked: tuple[Question, ...], baseline: str
) -> Iterator[Lent]:
    """Yield how much the runs of the baseline differ, question by question.

    Those of one variant only: two variants may share boots under one name, or may
    not, and then boots could not be counted.

    Parameters
    ----------
    runs, asked
        As ``tables.per_run`` and ``tables.questions`` return them.
    """
    for question in asked:
        if question.problem or question.planned.metric.kind in _NOT_LENT:
            continue
        rows = series(runs, question)
        rows = rows[rows["variant"] == baseline]
        scale = question.planned.metric.scale
        if scale is Scale.RATIO and not (rows["value"] > 0).all():
            continue
        values = companions.analysis(rows["value"], scale)
        one = _lent(study, question, rows, values)
        if one is not None:
            yield one


def _lent(
    study: str, question: Question, rows: pd.DataFrame, values: companions.Values
) -> Lent | None:
    level, names = _groups(rows)
    groups = [values[names == name] for name in dict.fromkeys(names.tolist())]
    if len(groups) < LEAST_GROUPS:
        return None
    spare = len(values) - len(groups)
    inside = sum(float(((one - one.mean()) ** 2).sum()) for one in groups)
    return Lent(
        study=study,
        series=series_of(question),
        scale=question.planned.metric.scale,
        level=level,
        groups=len(groups),
        runs=len(groups) / sum(1 / one.size for one in groups),
        between=float(np.std([one.mean() for one in groups], ddof=1)),
        within=math.sqrt(inside / spare) if spare else 0.0,
    )


def _groups(rows: pd.DataFrame) -> tuple[str, np.ndarray]:
    """Name what was repeated: boots, or blocks, or else every run by itself."""
    boots = rows["build"].astype(str) + "\n" + rows["boot"].astype(str)
    for level, known, names in (
        ("boot", rows["boot"], boots),
        ("block", rows["block"], rows["block"]),
    ):
        if known.ne("").all() and len(set(names)) > 1:
            return level, names.to_numpy()
    return "run", np.arange(len(rows))


def without_spread(
    value: float, lent: Lent, *, runs: float, floor: float, confidence: float
) -> Borrowed | None:
    """Give a change of single units the spread that was lent (STATISTICS 3.6).

    The standard error is the root of two times that of a unit, also where one variant
    has more of them: they may lie in one boot.

    Parameters
    ----------
    value
        The change on the scale of the analysis.
    runs
        Runs in each unit.
    floor
        Smallest standard deviation that the last printed digit allows.
    """
    sd = max(lent.sd_of(runs), floor)
    found = stats.Effect(
        value=value,
        standard_error=math.sqrt(2) * sd,
        df=float(lent.df),
        method=f"t interval, spread between {lent.level}s of {lent.study}",
        floored=False,
    )
    return _borrowed(found, lent, sd, confidence, boots=False)


def with_boots(
    effect: stats.Effect, lent: Lent, *, confidence: float
) -> Borrowed | None:
    """Add what two boots may differ by to a change within one boot of each variant.

    The variance of the change grows by twice that between boots (STATISTICS 3.7). The
    fewest degrees of freedom of all parts are taken: those of Satterthwaite, which lie
    between, held too few of such intervals (``benchmarks/error_rates.py``).
    """
    if lent.level != "boot":
        return None
    both = stats.Effect(
        value=effect.value,
        standard_error=math.hypot(effect.standard_error, math.sqrt(2) * lent.between),
        df=min(effect.df, float(lent.df)),
        method=f"{effect.method} and the spread between boots of {lent.study}",
        floored=False,
    )
    return _borrowed(both, lent, lent.between, confidence, boots=True)


def _borrowed(
    effect: stats.Effect, lent: Lent, sd: float, confidence: float, *, boots: bool
) -> Borrowed | None:
    if not effect.standard_error > 0:
        return None
    change = companions.shown(effect.interval(confidence), lent.scale)
    return Borrowed(change=change, lent=lent, sd=sd, boots=boots)
