"""Where the variation arises when runs sit in boots and boots in builds.

Kalibera and Jones, "Rigorous benchmarking in reasonable time" (2013).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponents:
    """Variances by level, the lowest level (runs) first.

    Attributes
    ----------
    observed
        Mean variance, within a group of one level up, of the means at this level.
    components
        What the level adds by itself; never negative.
    clamped
        Whether the component came out negative and was set to 0.
    """

    observed: tuple[float, ...]
    components: tuple[float, ...]
    clamped: tuple[bool, ...]


def variance_components(values: ArrayLike) -> VarianceComponents:
    """Split the variance of a balanced nested design by level (section 5 there).

    Parameters
    ----------
    values
        One axis per level, the highest first: ``values[build, boot, run]``. At least
        two of everything.
    """
    means = np.asarray(values, dtype=np.float64)
    if means.ndim == 0 or min(means.shape) < 2 or not np.isfinite(means).all():
        raise ValueError(
            f"values: shape {means.shape} or a value cannot be split; give an equal "
            "number, at least 2, of finite values at each level"
        )
    observed: list[float] = []
    raw: list[float] = []
    below = 0.0
    while means.ndim:
        observed.append(float(means.var(axis=-1, ddof=1).mean()))
        raw.append(observed[-1] - below)
        below = observed[-1] / means.shape[-1]
        means = means.mean(axis=-1)
    return VarianceComponents(
        observed=tuple(observed),
        components=tuple(max(one, 0.0) for one in raw),
        clamped=tuple(one < 0 for one in raw),
    )


def optimal_repetitions(
    costs: Sequence[float], components: Sequence[float]
) -> tuple[int | None, ...]:
    """Repetitions of each level but the highest that cost least (equation 3 there).

    Parameters
    ----------
    costs
        Time of one more repetition at each level, the lowest level first.
    components
        Variance that each level adds, in the same order.

    Returns
    -------
    tuple of (int or None)
        At least 1; None where the level above adds no variance, so that repeating it is
        worth nothing beyond its runs.
    """
    if len(costs) != len(components):
        raise ValueError(
            f"{len(costs)} costs but {len(components)} components; give one each"
        )
    if min(costs) <= 0:
        raise ValueError(f"costs: {min(costs)} given; each must be above 0")
    pairs = list(zip(costs, components, strict=True))
    return tuple(
        _repetitions(cost_above / cost, own, above)
        for (cost, own), (cost_above, above) in pairwise(pairs)
    )


def _repetitions(cost_ratio: float, own: float, above: float) -> int | None:
    if above <= 0:
        return None
    return max(1, math.ceil(math.sqrt(cost_ratio * max(own, 0.0) / above)))
