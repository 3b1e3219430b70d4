"""The look of the values: outliers, two modes, unequal spread. Nothing is removed."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.stats import levene

from patchstudy.stats.arrays import ROUNDING, finite, share, spread

MODIFIED_Z: Final = 3.5
"""Modified z beyond which a value is an outlier (Iglewicz and Hoaglin 1993)."""
MAD_TO_SD: Final = 0.6745
"""Median absolute deviation of a normal with standard deviation 1 (same source)."""
MEAN_AD_TO_SD: Final = 0.797885
"""Mean absolute deviation of that normal, used where more than half are equal."""
GESD_LEAST: Final = 15
"""Fewest values for which GESD is accurate (NIST handbook 1.3.5.17.3)."""
GAP_FEW: Final = 3.0
"""Gap ratio that tells two modes from one with 4 to 7 values (STATISTICS 3.6)."""
GAP_MANY: Final = 1.5
"""The same with ``GAP_MANY_FROM`` values or more."""
GAP_MANY_FROM: Final = 8
GAP_LEAST: Final = 4
SPREAD_LEAST: Final = 5
"""Fewest values per arm for a test of the spread (STATISTICS 3.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The widest gap that leaves two values or more on each side.

    Attributes
    ----------
    ratio
        Its width divided by the range of the wider side; infinite where both sides are
        constant, 0 with fewer than four values.
    split
        Middle of the gap, in the unit of the values: below it lies one mode, above it
        the other. None with fewer than four values.
    flagged
        Whether the ratio says that there are two modes.
    """

    ratio: float
    split: float | None
    flagged: bool


def modified_z_outliers(
    values: ArrayLike, *, resolution: float = 0.0
) -> tuple[int, ...]:
    """Positions of the values far from the median, in units of the median deviation.

    Iglewicz and Hoaglin (1993). Where more than half of the values are equal the mean
    absolute deviation takes the place of the median one; with ``resolution`` a step of
    the last printed digit is not called an outlier.
    """
    array = finite(values, least=1, what="values")
    away = np.abs(array - np.median(array))
    scale = float(np.median(away)) / MAD_TO_SD or float(away.mean()) / MEAN_AD_TO_SD
    scale = max(scale, resolution / math.sqrt(12))
    if scale <= ROUNDING * np.abs(array).max():
        return ()
    return tuple(int(place) for place in np.flatnonzero(away / scale > MODIFIED_Z))


def gesd_outliers(
    values: ArrayLike, max_outliers: int, alpha: float
) -> tuple[int, ...]:
    """Positions of outliers by the generalised extreme studentised deviate.

    Rosner (1983). The number is the largest at which the deviate exceeds its critical
    value, so that two outliers cannot hide each other.

    Raises
    ------
    ValueError
        With fewer than ``GESD_LEAST`` values.
    """
    array = finite(values, least=GESD_LEAST, what="values")
    share(alpha, what="alpha")
    left = np.arange(array.size)
    removed: list[int] = []
    found = 0
    while len(removed) < min(max_outliers, array.size - 3) and spread(array[left]) > 0:
        rest = array[left]
        away = np.abs(rest - rest.mean()) / spread(rest)
        farthest = int(away.argmax())
        removed.append(int(left[farthest]))
        if away[farthest] > _gesd_critical(rest.size, alpha):
            found = len(removed)
        left = np.delete(left, farthest)
    return tuple(sorted(removed[:found]))


def gap(values: ArrayLike, *, resolution: float = 0.0) -> Gap:
    """Look for two modes by the widest gap between the ordered values.

    With ``resolution`` a side is never taken as narrower than one step of the last
    printed digit. Few false flags, modest power: draw every value as well.
    """
    ordered = np.sort(finite(values, least=1, what="values"))
    n = ordered.size
    if n < GAP_LEAST:
        return Gap(ratio=0.0, split=None, flagged=False)
    widths = np.diff(ordered)[1:-1]
    last = int(widths.argmax()) + 1  # of the lower side
    low, high = ordered[last], ordered[last + 1]
    wider = max(low - ordered[0], ordered[-1] - high, resolution)
    width = float(high - low)
    ratio = width / float(wider) if wider else math.inf if width else 0.0
    limit = GAP_MANY if n >= GAP_MANY_FROM else GAP_FEW
    return Gap(ratio=ratio, split=float(low + width / 2), flagged=ratio > limit)


def spread_ratio_p(baseline: ArrayLike, patched: ArrayLike) -> float | None:
    """Two-sided p of equal spread (Brown and Forsythe 1974: medians as centres).

    None where the deviations are all equal within both arms, so that nothing can be
    judged.

    Raises
    ------
    ValueError
        With fewer than ``SPREAD_LEAST`` values in an arm.
    """
    arms = (
        finite(baseline, least=SPREAD_LEAST, what="baseline"),
        finite(patched, least=SPREAD_LEAST, what="patched"),
    )
    if all(spread(np.abs(arm - np.median(arm))) == 0 for arm in arms):
        return None
    return float(levene(*arms, center="median").pvalue)


def _gesd_critical(n: int, alpha: float) -> float:
    t = float(special.stdtrit(n - 2, 1 - alpha / (2 * n)))
    return (n - 1) * t / math.sqrt((n - 2 + t * t) * n)
