"""What every function here asks of its input before it counts with it."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROUNDING: Final = 1e-12
"""Spread below this share of the largest magnitude is the rounding of floats."""


def finite(values: ArrayLike, *, least: int, what: str) -> NDArray[np.float64]:
    """Return the values as a one-dimensional array of finite numbers.

    Raises
    ------
    ValueError
        If there are fewer than ``least`` values, or one is not finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(
            f"{what}: shape {array.shape} given; give a flat list of values"
        )
    if array.size < least:
        raise ValueError(f"{what}: {array.size} value(s) given; give at least {least}")
    bad = array[~np.isfinite(array)]
    if bad.size:
        raise ValueError(
            f"{what}: {bad[0]} is not a finite number; count failed runs as outcomes"
        )
    return array


def share(value: float, *, what: str) -> float:
    """Return the value if it lies strictly between 0 and 1, or raise ValueError."""
    if not 0 < value < 1:
        raise ValueError(f"{what}: {value} given; give a number between 0 and 1")
    return value


def spread(values: NDArray[np.float64]) -> float:
    """Return the sample standard deviation; exactly 0 where only rounding differs."""
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        return 0.0
    return float(values.std(ddof=1))
