"""Runs that failed, events that were counted, and what none at all can show."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, chi2, fisher_exact

from patchstudy.stats.arrays import finite
from patchstudy.stats.estimates import Estimate

POISSON_DISPERSION: Final = 1.5
"""Dispersion above which counts are not taken as Poisson (STATISTICS 3.10)."""
POISSON_ALPHA: Final = 0.05
"""Level of the test that they are."""
NONE_IN_ALPHA: Final = 0.05
"""Chance of seeing none although the true share is at the bound of `none_in`."""


def wilson(k: int, n: int, confidence: float) -> Estimate:
    """Share ``k / n`` with the score interval (Wilson 1927)."""
    interval = binomtest(k, n).proportion_ci(confidence, method="wilson")
    return Estimate(
        value=k / n,
        low=float(interval.low),
        high=float(interval.high),
        confidence=confidence,
        method="Wilson",
    )


def newcombe(
    baseline: tuple[int, int], patched: tuple[int, int], confidence: float
) -> Estimate:
    """Difference of two shares (k, n), patched - baseline (Newcombe 1998, method 10).

    Its ends are made of those of both Wilson intervals; it never leaves -1..1.
    """
    base, new = (wilson(k, n, confidence) for k, n in (baseline, patched))
    value = new.value - base.value
    below = math.hypot(new.value - new.low, base.high - base.value)
    above = math.hypot(new.high - new.value, base.value - base.low)
    return Estimate(
        value=value,
        low=value - below,
        high=value + above,
        confidence=confidence,
        method="Newcombe",
    )


def fisher_p(table: Sequence[Sequence[int]]) -> float:
    """Two-sided exact p of independence in a table of two by two (Fisher 1934)."""
    _, p_value = fisher_exact(np.asarray(table, dtype=np.int64))
    return float(p_value)


def none_in(n_runs: int) -> float:
    """Upper 95 % bound of the share of runs with an event after none had one.

    The share at which seeing none in ``n_runs`` has the probability .05. It needs
    independent runs only, not independent packets.
    """
    if n_runs < 1:
        raise ValueError(f"n_runs: {n_runs} given; give at least 1")
    return 1 - NONE_IN_ALPHA ** (1 / n_runs)


def poisson_ratio(
    baseline: tuple[int, float], patched: tuple[int, float], confidence: float
) -> Estimate:
    """Ratio of two Poisson rates, patched over baseline, with the exact interval.

    Given all events, those of patched are binomial; the interval is that of Clopper and
    Pearson (1934) for their share. An end is 0 or infinite where a side has no event.

    Parameters
    ----------
    baseline, patched
        Events, and what they were counted in (packets, seconds; above 0).

    Raises
    ------
    ValueError
        If no event was counted on either side.
    """
    (base, below), (new, above) = baseline, patched
    if not base + new:
        raise ValueError("no event was counted; a ratio of rates does not exist")
    share = binomtest(new, base + new).proportion_ci(confidence, method="exact")
    low, high = (
        math.inf if one == 1 else float(one / (1 - one)) * below / above
        for one in (share.low, share.high)
    )
    return Estimate(
        value=math.inf if base == 0 else new * below / (base * above),
        low=low,
        high=high,
        confidence=confidence,
        method="exact, Poisson rates",
    )


def poisson_ratio_p(baseline: tuple[int, float], patched: tuple[int, float]) -> float:
    """Two-sided exact p of equal Poisson rates, given all events."""
    (base, below), (new, above) = baseline, patched
    return float(binomtest(new, base + new, above / (below + above)).pvalue)


def dispersion(counts: ArrayLike, exposures: ArrayLike) -> float | None:
    """Variance of counts over that of a Poisson: chi squared divided by n - 1.

    About 1 for independent events, above for bursts. None where nothing was counted.

    Parameters
    ----------
    counts
        Events per run.
    exposures
        What they were counted in, per run: packets, seconds; all above 0.
    """
    seen = finite(counts, least=2, what="counts")
    over = finite(exposures, least=2, what="exposures")
    if seen.size != over.size:
        raise ValueError(f"{seen.size} counts but {over.size} exposures; give one each")
    if seen.min() < 0 or over.min() <= 0:
        raise ValueError("a count is negative or an exposure is not above 0")
    if seen.sum() == 0:
        return None
    expected = seen.sum() * over / over.sum()
    return float(((seen - expected) ** 2 / expected).sum() / (seen.size - 1))


def poisson_fits(counts: ArrayLike, exposures: ArrayLike) -> bool:
    """Whether a Poisson may be used: dispersion small and not rejected either.

    False where nothing was counted: there is then nothing that supports it.
    """
    ratio = dispersion(counts, exposures)
    if ratio is None:
        return False
    df = np.size(counts) - 1
    fits = float(chi2.sf(ratio * df, df)) >= POISSON_ALPHA
    return fits and ratio <= POISSON_DISPERSION
