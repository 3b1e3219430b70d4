"""What the order of the values tells: drift, and how much each repeats the last."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.stats import kendalltau

from patchstudy.stats.arrays import finite, spread

TREND_LEAST: Final = 6
"""Fewest values for a test of trend (STATISTICS 3.12)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Rank correlation with the order of measurement.

    Attributes
    ----------
    tau
        Kendall's tau-b, from -1 (always falling) to 1 (always rising); 0 if constant.
    p_value
        Two-sided p of no trend; 1 if constant.
    """

    tau: float
    p_value: float


def trend(values: ArrayLike) -> Trend:
    """Test for drift over the order of the values (Mann 1945, Kendall 1938).

    Raises
    ------
    ValueError
        With fewer than ``TREND_LEAST`` values.
    """
    array = finite(values, least=TREND_LEAST, what="values")
    if spread(array) == 0:
        return Trend(tau=0.0, p_value=1.0)
    tau, p_value = kendalltau(np.arange(array.size), array)
    return Trend(tau=float(tau), p_value=float(p_value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """A straight line through values over places, by least squares.

    Attributes
    ----------
    value, standard_error
        Per place.
    df
        Degrees of freedom: two less than there are values.
    """

    value: float
    standard_error: float
    df: float

    @property
    def p_value(self) -> float:
        """Two-sided p of no slope; 0 where the values lie on the line."""
        if self.standard_error == 0:
            return 0.0 if self.value else 1.0
        return float(2 * special.stdtr(self.df, -abs(self.value) / self.standard_error))


def slope(values: ArrayLike, places: ArrayLike) -> Slope:
    """Fit a straight line.

    Raises
    ------
    ValueError
        With fewer than three values, not as many places, or all places the same.
    """
    y = finite(values, least=3, what="values")
    x = finite(places, least=3, what="places")
    if x.size != y.size or np.ptp(x) == 0:
        raise ValueError("places: give one for each value, not all the same")
    away = x - x.mean()
    squares = float(away @ away)
    value = float(away @ (y - y.mean())) / squares
    rest = y - y.mean() - value * away
    df = float(y.size - 2)
    error = math.sqrt(float(rest @ rest) / df / squares)
    return Slope(value=value, standard_error=error, df=df)


def lag1(values: ArrayLike) -> float:
    """Return the correlation of each value with the next; 0 if all are equal.

    Sum of products of neighbours' deviations over the sum of squares, as NIST certifies
    it (StRD, univariate summary statistics).
    """
    array = finite(values, least=2, what="values")
    if spread(array) == 0:
        return 0.0
    away = array - array.mean()
    return float((away[1:] @ away[:-1]) / (away @ away))


def effective_size(values: ArrayLike) -> float:
    """Return how many independent values would tell as much about the mean.

    m (1 - phi) / (1 + phi) with phi from `lag1`, the rule for a first-order
    autoregression (Wilks 2011, 5.2.4); held between 1 and m, so that a negative phi
    that came by chance does not make more of the values than there are.
    """
    array = finite(values, least=2, what="values")
    phi = lag1(array)
    return float(np.clip(array.size * (1 - phi) / (1 + phi), 1, array.size))
