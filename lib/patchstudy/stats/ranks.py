"""Rank and permutation companions of the t analysis: few assumptions, exact if small.

The library calls for the U test are not used: with ties, one falls back to the normal
approximation and another ignores them ([5, 5, 5] against [6, 6, 6] gives .047 where the
exact p is .10).
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.stats import rankdata

from patchstudy.stats.arrays import ROUNDING, finite, share
from patchstudy.stats.estimates import Estimate

EXACT_SPLITS: Final = 200_000
"""Most splits that are enumerated: all of 10 against 10 (STATISTICS 3.3)."""
EXACT_FLIPS: Final = 17
"""Most differences of which every pattern of signs is enumerated."""
DRAWS: Final = 19_999
"""Monte Carlo draws beyond that: p = .05 is then known to within .003."""
EXACT_PAIRS: Final = 10_000
"""Most pairs for which the distribution of U is counted, not approximated."""

_TIE: Final = 1e-9  # sums of scores in [-1, 1] closer than this are the same sum
_CELLS: Final = 2_000_000  # numbers drawn at a time

_Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutationTest:
    """A two-sided permutation p.

    Attributes
    ----------
    p_value
        Share of arrangements at least as far from the middle as the data.
    arrangements
        How many were looked at.
    exact
        Whether these were all there are; otherwise they were drawn, from a seed that
        the data determine.
    """

    p_value: float
    arrangements: int
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Superiority:
    """How often a patched value beats a baseline value, over all pairs.

    Attributes
    ----------
    wins
        Pairs in which the patched value is the greater.
    pairs
        All pairs.
    cliffs_delta
        Wins minus losses, divided by pairs (Cliff 1993).
    """

    wins: int
    pairs: int
    cliffs_delta: float


def permutation_p(baseline: ArrayLike, patched: ArrayLike) -> PermutationTest:
    """Test two arms by the sum of mid-ranks, over all ways to split the values.

    Two-sided by the distance of the rank sum from its mean; ties are part of the
    enumeration. Beyond ``EXACT_SPLITS`` splits, p is (hits + 1) / (draws + 1)
    (Phipson and Smyth 2010).
    """
    one = finite(baseline, least=1, what="baseline")
    other = finite(patched, least=1, what="patched")
    ranks = rankdata(np.concatenate([one, other]))
    return _split_test(ranks[: one.size], ranks[one.size :])


def mean_difference_permutation_p(
    baseline: ArrayLike, patched: ArrayLike
) -> PermutationTest:
    """Test two arms by the difference of means, over all ways to split the values.

    As `permutation_p`, on the values themselves: for counts with zeros.
    """
    one = finite(baseline, least=1, what="baseline")
    other = finite(patched, least=1, what="patched")
    return _split_test(one, other)


def sign_flip_p(differences: ArrayLike) -> PermutationTest:
    """Test paired differences by signed mid-ranks, over all patterns of signs.

    The ranks of the sizes keep those of zero differences, which then count for neither
    side (Pratt 1959). Exact to ``EXACT_FLIPS`` differences other than zero.
    """
    array = finite(differences, least=1, what="differences")
    largest = np.abs(array).max()
    # equal ratios differ in the last bits once they are differences of logarithms
    sizes = np.round(np.abs(array) / largest / ROUNDING) if largest else np.abs(array)
    ranks = rankdata(sizes)[sizes > 0]
    observed = abs(float(ranks @ np.sign(array[sizes > 0])))
    ranks = np.sort(ranks)
    if ranks.size <= EXACT_FLIPS:
        sums = np.zeros(1)
        for rank in ranks:
            sums = np.concatenate([sums + rank, sums - rank])
        return all_of(sums, observed)

    def draw(rng: np.random.Generator, rows: int) -> _Array:
        return rng.choice([-1.0, 1.0], size=(rows, ranks.size)) @ ranks

    return drawn(draw, ranks, observed)


def smallest_permutation_p(n_baseline: int, n_patched: int) -> float:
    """Return the smallest p that `permutation_p` can give without ties."""
    return min(1.0, 2 / math.comb(n_baseline + n_patched, n_baseline))


def smallest_sign_flip_p(n_differences: int) -> float:
    """Return the smallest p that `sign_flip_p` can give without zero differences."""
    return min(1.0, 2 / 2**n_differences)


def hodges_lehmann(
    baseline: ArrayLike, patched: ArrayLike, confidence: float
) -> Estimate:
    """Shift between two arms: the median of all differences, patched minus baseline.

    Hodges and Lehmann (1963); the bounds are the differences at the ranks that the
    exact distribution of U gives (Hollander and Wolfe 1973, 4.3), so the confidence is
    at least the one asked for. Where even the outermost differences do not reach it
    (at 95 %: three values per arm), both bounds are infinite.
    """
    one = finite(baseline, least=1, what="baseline")
    other = finite(patched, least=1, what="patched")
    tail = (1 - share(confidence, what="confidence")) / 2
    exact = one.size * other.size <= EXACT_PAIRS
    if exact:
        rank = _rank(_u_distribution(*sorted((one.size, other.size))), tail)
    else:
        pairs = one.size * other.size
        deviation = math.sqrt(pairs * (one.size + other.size + 1) / 12)
        rank = math.floor(pairs / 2 + float(special.ndtri(tail)) * deviation)
    differences = np.sort(np.subtract.outer(other, one), axis=None)
    kind = "exact U" if exact else "normal U"
    return _by_rank(differences, rank, confidence, f"Hodges-Lehmann, {kind} interval")


def walsh(differences: ArrayLike, confidence: float) -> Estimate:
    """Pseudomedian of paired differences: the median of the means of all pairs of them.

    The bounds are the Walsh averages at the ranks of the exact signed-rank distribution
    (Hollander and Wolfe 1973, 3.3); infinite below six differences at 95 %.
    """
    array = finite(differences, least=1, what="differences")
    tail = (1 - share(confidence, what="confidence")) / 2
    averages = np.add.outer(array, array)[np.triu_indices(array.size)] / 2
    rank = _rank(_signed_rank_distribution(array.size), tail)
    name = "Walsh averages, exact signed-rank interval"
    return _by_rank(np.sort(averages), rank, confidence, name)


def superiority(baseline: ArrayLike, patched: ArrayLike) -> Superiority:
    """Count the pairs in which the patched value is the greater."""
    one = finite(baseline, least=1, what="baseline")
    other = finite(patched, least=1, what="patched")
    signs = np.sign(np.subtract.outer(other, one))
    return Superiority(
        wins=int((signs > 0).sum()),
        pairs=signs.size,
        cliffs_delta=float(signs.mean()),
    )


def _split_test(one: _Array, other: _Array) -> PermutationTest:
    # a fixed order of arms and values makes the drawn p the same for any order given
    arms = sorted((np.sort(one), np.sort(other)), key=lambda arm: (arm.size, [*arm]))
    pooled = np.concatenate(arms)
    chosen = arms[0].size
    centred = pooled - pooled.mean()
    scores = centred / (np.abs(centred).max() or 1.0)
    observed = abs(float(scores[:chosen].sum()))
    if math.comb(scores.size, chosen) <= EXACT_SPLITS:
        sums = scores[splits(scores.size, chosen)].sum(axis=1)
        return all_of(sums, observed)

    def draw(rng: np.random.Generator, rows: int) -> _Array:
        shuffled = rng.permuted(np.tile(scores, (rows, 1)), axis=1)
        return shuffled[:, :chosen].sum(axis=1)

    return drawn(draw, scores, observed)


@lru_cache(maxsize=4)
def splits(total: int, chosen: int) -> NDArray[np.int32]:
    """Every way to choose, one per row."""
    flat = chain.from_iterable(combinations(range(total), chosen))
    return np.fromiter(flat, dtype=np.int32).reshape(-1, chosen)


def all_of(sums: _Array, observed: float) -> PermutationTest:
    """Return the p of sums over all arrangements."""
    hits = int((np.abs(sums) >= observed - _TIE).sum())
    return PermutationTest(p_value=hits / sums.size, arrangements=sums.size, exact=True)


def drawn(
    draw: Callable[[np.random.Generator, int], _Array], scores: _Array, observed: float
) -> PermutationTest:
    """Return the p of drawn arrangements; ``draw`` makes sums, a row each."""
    rng = np.random.default_rng(_seed(scores, observed))
    batch = max(1, _CELLS // scores.size)
    hits = 0
    for start in range(0, DRAWS, batch):
        sums = draw(rng, min(batch, DRAWS - start))
        hits += int((np.abs(sums) >= observed - _TIE).sum())
    return PermutationTest(
        p_value=(hits + 1) / (DRAWS + 1), arrangements=DRAWS, exact=False
    )


def _seed(scores: _Array, observed: float) -> int:
    rounded = np.round(np.append(scores, observed) / _TIE).astype("<i8")
    return int.from_bytes(hashlib.sha256(rounded.tobytes()).digest()[:8], "little")


@lru_cache(maxsize=64)
def _u_distribution(fewer: int, more: int) -> _Array:
    """Probability of each value of U without ties (Mann and Whitney 1947)."""
    # counts[k, s]: ways to choose k of the ranks so far with the sum s
    total = fewer + more
    counts = np.zeros((fewer + 1, fewer * (2 * total - fewer + 1) // 2 + 1))
    counts[0, 0] = 1
    for rank in range(1, total + 1):
        counts[1:, rank:] += counts[:-1, : counts.shape[1] - rank]
    ways = counts[fewer, fewer * (fewer + 1) // 2 :]
    return ways / ways.sum()


@lru_cache(maxsize=64)
def _signed_rank_distribution(n: int) -> _Array:
    """Probability of each sum of the ranks with a positive sign (Wilcoxon 1945)."""
    chances = np.zeros(n * (n + 1) // 2 + 1)
    chances[0] = 1
    for rank in range(1, n + 1):
        moved = np.zeros_like(chances)
        moved[rank:] = chances[: chances.size - rank]
        chances = (chances + moved) / 2
    return chances


def _rank(chances: _Array, tail: float) -> int:
    """Largest rank, from 1, beyond which at most ``tail`` lies; 0 where none is."""
    return int((np.cumsum(chances) <= tail + ROUNDING).sum())


def _by_rank(ordered: _Array, rank: int, confidence: float, method: str) -> Estimate:
    bounded = rank >= 1
    return Estimate(
        value=float(np.median(ordered)),
        low=float(ordered[rank - 1]) if bounded else -math.inf,
        high=float(ordered[-rank]) if bounded else math.inf,
        confidence=confidence,
        method=method if bounded else f"{method}: unbounded, too few values",
    )
