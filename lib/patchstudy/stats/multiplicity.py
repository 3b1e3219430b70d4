"""Adjust p-values for how many were looked at."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjust so that the chance of any false finding stays at the level (Holm 1979).

    An entry without a p-value (None) passes through and counts for nothing.
    """
    return _adjusted(p_values, _step_down)


def benjamini_hochberg(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjust so that the share of false findings stays at the level.

    Benjamini and Hochberg (1995). An entry without a p-value (None) passes through and
    counts for nothing.
    """
    return _adjusted(p_values, false_discovery_control)


def _step_down(p: NDArray[np.float64]) -> NDArray[np.float64]:
    order = p.argsort(kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = stepped.clip(max=1.0)
    return adjusted


def _adjusted(
    p_values: Sequence[float | None],
    adjust: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> tuple[float | None, ...]:
    known = np.array([p for p in p_values if p is not None], dtype=np.float64)
    wrong = known[~((known >= 0) & (known <= 1))]
    if wrong.size:
        raise ValueError(f"p-value: {wrong[0]} given; give 0 to 1, or None for no p")
    adjusted = iter(adjust(known).tolist() if known.size else ())
    return tuple(None if p is None else next(adjusted) for p in p_values)
