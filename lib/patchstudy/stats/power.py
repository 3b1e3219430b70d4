"""How small a change a plan can show, and how many units a change needs.

Power of the two-sided t test from the noncentral F distribution of t squared. It equals
the usual noncentral t (the tests compare the two), which in scipy turns to nan for a
few units and a large change.
"""

import math
from typing import Final

from scipy import optimize, special

from patchstudy.stats.arrays import share

LARGEST_N: Final = 10_000
"""A plan that needs more than this is no plan."""


def detectable_change(
    sd: float, n: int, *, paired: bool = False, power: float = 0.8, alpha: float = 0.05
) -> float:
    """Return the change that a two-sided t test finds with the given power.

    Parameters
    ----------
    sd
        Standard deviation of the units, or of the differences within blocks if
        ``paired``, on the scale of the analysis; the result is on the same scale.
    n
        Units per arm, or blocks if ``paired``.
    """
    if n < 2:
        raise ValueError(f"n: {n} given; a spread needs at least 2")
    _check(sd, power, alpha)

    def missing(size: float) -> float:
        return _power(size, n, paired=paired, alpha=alpha) - power

    high = 1.0
    while missing(high) < 0:
        high *= 2
    found = optimize.root_scalar(missing, bracket=(0.0, high), method="brentq")
    return sd * float(found.root)


def needed_n(
    sd: float,
    change: float,
    *,
    paired: bool = False,
    power: float = 0.8,
    alpha: float = 0.05,
) -> int | None:
    """Return the units per arm, or blocks if ``paired``, that show such a change.

    None where even ``LARGEST_N`` do not reach the power. ``sd`` and ``change`` are on
    the same scale, as in `detectable_change`.
    """
    _check(sd, power, alpha)
    if not math.isfinite(change) or change == 0:
        raise ValueError(f"change: {change} given; give a number other than 0")
    if sd == 0:
        return 2
    size = abs(change) / sd

    def enough(n: int) -> bool:
        return _power(size, n, paired=paired, alpha=alpha) >= power

    if not enough(LARGEST_N):
        return None
    low, high = 1, LARGEST_N
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _power(size: float, n: int, *, paired: bool, alpha: float) -> float:
    """Power for a change of ``size`` standard deviations (Cohen 1988, chapter 2)."""
    df = n - 1 if paired else 2 * n - 2
    noncentral = size * size * (n if paired else n / 2)
    limit = float(special.stdtrit(df, 1 - alpha / 2)) ** 2
    power = 1 - float(special.ncfdtr(1, df, noncentral, limit))
    # the library has gaps (nan) far out, all where the power is 1 to the last bit
    return 1.0 if math.isnan(power) else power


def _check(sd: float, power: float, alpha: float) -> None:
    share(power, what="power")
    share(alpha, what="alpha")
    if power <= alpha:
        raise ValueError(f"power: {power} given; give more than alpha, {alpha}")
    if not (math.isfinite(sd) and sd >= 0):
        raise ValueError(f"sd: {sd} given; give 0 or a positive number")
