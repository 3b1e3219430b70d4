"""What stands beside an estimate and never decides: second opinions on the same units.

Ranks, the ratio of arithmetic means, the spread of either variant. ``compare`` puts
them into a comparison.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from patchstudy import stats
from patchstudy.metrics import Scale

Values = npt.NDArray[np.float64]

#: Fewest units of a variant from which outliers are looked for, as the checks do.
OUTLIER_LEAST: Final = 4
#: Why rates are not compared where one of them is zero.
NO_EVENT: Final = "no event in a variant"
#: Fewest units of each variant for a test of the spread (STATISTICS 3.6).
SPREAD_LEAST: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """The rank-based second opinion that is always printed beside the estimate.

    Attributes
    ----------
    estimate
        Hodges-Lehmann shift (of pairs: Walsh pseudo-median) on the scale of the
        change, with its exact interval.
    test
        What is permuted, in words.
    p_value
        Exact permutation p.
    least_p
        The smallest p that so many units can give: three a side give 0.10.
    wins, pairs
        In how many of all pairs the patched value is the larger one.
    """

    estimate: stats.Estimate
    test: str
    p_value: float
    least_p: float
    wins: float
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How much more the patched units scatter than those of the baseline.

    Attributes
    ----------
    ratio
        Standard deviation of patched over that of the baseline, on the scale of the
        analysis.
    p_value
        Of equal spread (Brown and Forsythe 1974).
    """

    ratio: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed:
    """The change without the units that were flagged as outliers.

    Attributes
    ----------
    change
        As the change of the comparison.
    left_out
        Names of the units.
    """

    change: stats.Estimate
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a Poisson says of events counted in runs, where it may say anything.

    Attributes
    ----------
    change
        Ratio of the rates less 1, with the exact interval; None where it is not used.
    p_value
        Exact, of equal rates; None where it is not used.
    dispersion
        Of the baseline and of patched; None where nothing was counted.
    why_not
        Why it is not used; empty where it is.
    """

    change: stats.Estimate | None
    p_value: float | None
    dispersion: tuple[float | None, float | None]
    why_not: str


def of_blocks(differences: Values, scale: Scale, confidence: float) -> Companion:
    """Signed ranks of the differences within blocks."""
    return Companion(
        estimate=shown(stats.walsh(differences, confidence), scale),
        test="signs of ranks",
        p_value=stats.sign_flip_p(differences).p_value,
        least_p=stats.smallest_sign_flip_p(differences.size),
        wins=float((differences > 0).sum() + (differences == 0).sum() / 2),
        pairs=len(differences),
    )


def of_arms(old: Values, new: Values, scale: Scale, confidence: float) -> Companion:
    """Ranks of all units; where a value is zero the test is one of the means.

    A count that is zero in most runs has few ranks; its sum is what was lost.
    """
    rank = stats.superiority(old, new)
    zeros = scale is Scale.DIFFERENCE and not (old.all() and new.all())
    test = stats.mean_difference_permutation_p if zeros else stats.permutation_p
    return Companion(
        estimate=shown(stats.hodges_lehmann(old, new, confidence), scale),
        test="permutation of the values" if zeros else "permutation of the ranks",
        p_value=test(old, new).p_value,
        least_p=stats.smallest_permutation_p(old.size, new.size),
        wins=rank.wins,
        pairs=rank.pairs,
    )


def ratio_of_means(
    base: pd.DataFrame, new: pd.DataFrame, confidence: float
) -> stats.Estimate:
    """Ratio of the arithmetic means less 1, as a change is written (Fieller 1954)."""
    old, patched = (rows["value"].to_numpy(dtype=float) for rows in (base, new))
    power = power_of_two(np.concatenate([old, patched]))
    old, patched = (np.ldexp(side, -power) for side in (old, patched))
    found = stats.fieller(old, patched, confidence)
    return replace(found, value=found.value - 1, low=found.low - 1, high=found.high - 1)


def power_of_two(values: Values) -> int:
    """Return the power of two that brings the largest value to 0.5..1.

    To scale by it changes no digit, and squares no longer overflow.
    """
    return math.frexp(float(np.abs(values).max()))[1]


def counted(base: pd.DataFrame, new: pd.DataFrame, confidence: float) -> Counted | None:
    """Compare events per exposure as Poisson rates, if each variant's runs allow it.

    Only where no variant's runs scatter more than a Poisson (STATISTICS 3.10); bursts
    do. None where the values are no whole numbers of events in a known exposure.
    """
    sides = [_events(rows) for rows in (base, new)]
    if any(one is None for one in sides):
        return None
    (k_base, t_base), (k_new, t_new) = (one for one in sides if one is not None)
    found = (stats.dispersion(k_base, t_base), stats.dispersion(k_new, t_new))
    why_not = ""
    if None in found:
        why_not = NO_EVENT
    elif not (stats.poisson_fits(k_base, t_base) and stats.poisson_fits(k_new, t_new)):
        why_not = "bursts"
    if why_not:
        return Counted(change=None, p_value=None, dispersion=found, why_not=why_not)
    old, patched = (
        (round(k.sum()), float(t.sum())) for k, t in ((k_base, t_base), (k_new, t_new))
    )
    ratio = stats.poisson_ratio(old, patched, confidence)
    return Counted(
        change=replace(
            ratio, value=ratio.value - 1, low=ratio.low - 1, high=ratio.high - 1
        ),
        p_value=stats.poisson_ratio_p(old, patched),
        dispersion=found,
        why_not="",
    )


def _events(rows: pd.DataFrame) -> tuple[Values, Values] | None:
    """Events and exposure of each run; None where they are not known."""
    over = rows["exposure"].to_numpy(dtype=float)
    if len(rows) < 2 or not (np.isfinite(over).all() and (over > 0).all()):
        return None
    events = rows["value"].to_numpy(dtype=float) * over
    whole = np.round(events)
    known = (rows["runs"] == 1).all() and (rows["value"] <= 1).all()
    near = np.allclose(events, whole, rtol=1e-6, atol=1e-3)
    return (whole, over) if known and near and whole.min() >= 0 else None


def spread(base: pd.DataFrame, new: pd.DataFrame, scale: Scale) -> Spread | None:
    """Compare the scatter of the variants; None with few units or without scatter."""
    old, patched = (analysis(rows["value"], scale) for rows in (base, new))
    flat = min(np.ptp(old), np.ptp(patched)) == 0 if len(old) and len(patched) else True
    if flat or min(len(old), len(patched)) < SPREAD_LEAST:
        return None
    p_value = stats.spread_ratio_p(old, patched)
    if p_value is None:
        return None
    return Spread(ratio=float(patched.std(ddof=1) / old.std(ddof=1)), p_value=p_value)


def outlying(rows: pd.DataFrame) -> list[str]:
    """Name the units far from the others of their variant, as the checks flag them."""
    if len(rows) < OUTLIER_LEAST:
        return []
    step = rows["resolution"].max()
    far = stats.modified_z_outliers(
        rows["value"].to_numpy(dtype=float), resolution=float(step) if step > 0 else 0.0
    )
    return [str(rows["unit"].iloc[number]) for number in far]


def analysis(values: pd.Series, scale: Scale) -> Values:
    """Bring values to the scale of the analysis: logs for a ratio."""
    return log(values, scale).to_numpy(dtype=float)


def log(values: pd.Series, scale: Scale) -> pd.Series:
    """Return the logarithms for a ratio, the values for a difference."""
    return values.map(math.log) if scale is Scale.RATIO else values


def shown(estimate: stats.Estimate, scale: Scale) -> stats.Estimate:
    """Bring an estimate from logs to patched / baseline - 1."""
    if scale is Scale.DIFFERENCE:
        return estimate
    return replace(
        estimate,
        value=math.expm1(estimate.value),
        low=math.expm1(estimate.low),
        high=math.inf if estimate.high > 700 else math.expm1(estimate.high),
    )
