"""Permutation of the variants within blocks: exact where few, drawn where many."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from patchstudy.stats.arrays import finite
from patchstudy.stats.ranks import (
    EXACT_SPLITS,
    PermutationTest,
    all_of,
    drawn,
    splits,
)


def blocked_permutation_p(
    blocks: Sequence[tuple[ArrayLike, ArrayLike]],
) -> PermutationTest:
    """Test two arms by the sum of their differences within blocks.

    Variants are exchanged only within their block, as they took turns: two-sided, by
    the distance from zero of the patched values' sum, each less the mean of its block.
    With equally many of each in every block that is the difference of means. Beyond
    ``EXACT_SPLITS`` arrangements, p is (hits + 1) / (draws + 1) (Phipson and Smyth
    2010), from a seed that the data determine.

    Parameters
    ----------
    blocks
        Baseline and patched values of each block, one block for all where there are
        none.

    Raises
    ------
    ValueError
        If there is no block, or one lacks a variant.
    """
    if not blocks:
        raise ValueError("blocks: none given; give at least one")
    arms = [_arms(*one) for one in blocks]
    scale = max(float(np.abs(pooled).max()) for pooled, _ in arms) or 1.0
    sums = [_sums(pooled / scale, chosen) for pooled, chosen in arms]
    observed = abs(sum(float(pooled[:chosen].sum()) for pooled, chosen in arms)) / scale
    if math.prod(one.size for one in sums) <= EXACT_SPLITS:
        every = np.zeros(1)
        for one in sums:
            every = np.add.outer(every, one).ravel()
        return all_of(every, observed)

    def draw(rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
        return sum(
            (one[rng.integers(one.size, size=rows)] for one in sums), np.zeros(rows)
        )

    return drawn(draw, np.concatenate([one / scale for one, _ in arms]), observed)


def smallest_blocked_p(sizes: Sequence[tuple[int, int]]) -> float:
    """Return the smallest p that blocks of these sizes can give without ties."""
    ways = math.prod(math.comb(base + new, base) for base, new in sizes)
    return min(1.0, 2 / ways)


def _arms(base: ArrayLike, new: ArrayLike) -> tuple[NDArray[np.float64], int]:
    """Values less the mean of the block, the patched first; and how many these are."""
    one = np.sort(finite(new, least=1, what="patched"))
    other = np.sort(finite(base, least=1, what="baseline"))
    pooled = np.concatenate([one, other])
    return pooled - pooled.mean(), one.size


def _sums(pooled: NDArray[np.float64], chosen: int) -> NDArray[np.float64]:
    """Sum of the chosen values for every way to choose them; drawn ways where many."""
    if math.comb(pooled.size, chosen) <= EXACT_SPLITS:
        return pooled[splits(pooled.size, chosen)].sum(axis=1)
    rng = np.random.default_rng(pooled.size)
    ways = rng.permuted(np.tile(pooled, (EXACT_SPLITS // 10, 1)), axis=1)
    return ways[:, :chosen].sum(axis=1)
