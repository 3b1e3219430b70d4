"""How much a mean changed, and between which bounds that change lies."""

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy import special

from patchstudy.stats.arrays import finite, share, spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its confidence interval.

    Attributes
    ----------
    value, low, high
        In the unit of the values, or a ratio; a bound may be infinite.
    confidence
        Confidence level in (0, 1).
    method
        How the interval was made, in words for the report.
    """

    value: float
    low: float
    high: float
    confidence: float
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A difference with what is needed for any t interval or t test about it.

    Attributes
    ----------
    value
        Patched minus baseline, on the scale of the values given.
    standard_error
        Of ``value``; 0 where no spread was seen and no resolution was given.
    df
        Degrees of freedom.
    method
        How the standard error was made, in words for the report.
    floored
        Whether the spread came from the recorded resolution, not from the data.
    """

    value: float
    standard_error: float
    df: float
    method: str
    floored: bool

    @property
    def p_value(self) -> float | None:
        """Two-sided p of no difference; None where the data show no spread."""
        if self.floored or self.standard_error == 0:
            return None
        return float(2 * special.stdtr(self.df, -abs(self.value) / self.standard_error))

    def interval(self, confidence: float) -> Estimate:
        """Return the two-sided t interval."""
        tail = (1 - share(confidence, what="confidence")) / 2
        reach = self._reach(1 - tail)
        return Estimate(
            value=self.value,
            low=self.value - reach,
            high=self.value + reach,
            confidence=confidence,
            method=self.method,
        )

    def upper(self, confidence: float) -> float:
        """Return the one-sided upper bound."""
        return self.value + self._reach(share(confidence, what="confidence"))

    def lower(self, confidence: float) -> float:
        """Return the one-sided lower bound."""
        return self.value - self._reach(share(confidence, what="confidence"))

    def equivalence_p(self, margin: float) -> float:
        """Return the p of a change of at least ``margin``, either way.

        The larger p of two one-sided t tests (Schuirmann 1987, TOST). Where the
        standard error is 0 it is 0 inside the margin and 1 elsewhere.
        """
        if not (math.isfinite(margin) and margin > 0):
            raise ValueError(f"margin: {margin} given; give a positive number")
        room = margin - abs(self.value)
        if self.standard_error == 0:
            return 0.0 if room > 0 else 1.0
        return float(special.stdtr(self.df, -room / self.standard_error))

    def _reach(self, quantile: float) -> float:
        return float(special.stdtrit(self.df, quantile)) * self.standard_error


def welch(
    baseline: ArrayLike,
    patched: ArrayLike,
    *,
    floors: tuple[float, float] = (0.0, 0.0),
) -> Effect:
    """Difference of two means without assuming equal variances.

    Welch (1947) with the degrees of freedom of Satterthwaite (1946). The spread of an
    arm is never taken as smaller than its floor; where both are floored nothing was
    learnt about either and the degrees of freedom are those of both arms together.

    Parameters
    ----------
    baseline, patched
        One value per unit, on the scale of the analysis (logarithms for ratios).
    floors
        Smallest standard deviation that the resolution allows, baseline first, on the
        same scale; see `resolution_floor`.

    Raises
    ------
    ValueError
        If an arm has fewer than two values, or one is not finite.
    """
    arms = (
        finite(baseline, least=2, what="baseline"),
        finite(patched, least=2, what="patched"),
    )
    seen = [spread(arm) for arm in arms]
    used = [max(s, _floor(f)) for s, f in zip(seen, floors, strict=True)]
    parts = [s**2 / arm.size for s, arm in zip(used, arms, strict=True)]
    total = sum(parts)
    floored = not total or all(s <= f for s, f in zip(seen, floors, strict=True))
    return Effect(
        value=float(arms[1].mean() - arms[0].mean()),
        standard_error=math.sqrt(total),
        df=_df([arm.size - 1 for arm in arms], None if floored else parts),
        method=_method("Welch t", floored=floored, error=total),
        floored=floored,
    )


def paired(differences: ArrayLike, *, floor: float = 0.0) -> Effect:
    """Mean of the differences within blocks (Student 1908), df one less than blocks.

    Parameters
    ----------
    differences
        Patched minus baseline, one per block.
    floor
        Smallest standard deviation of a difference that the resolution allows.

    Raises
    ------
    ValueError
        If there are fewer than two blocks, or a difference is not finite.
    """
    array = finite(differences, least=2, what="differences")
    seen = spread(array)
    error = max(seen, _floor(floor)) / math.sqrt(array.size)
    floored = seen <= floor
    return Effect(
        value=float(array.mean()),
        standard_error=error,
        df=float(array.size - 1),
        method=_method("paired t", floored=floored, error=error),
        floored=floored,
    )


def resolution_floor(resolution: float, mean: float) -> float:
    """Smallest standard deviation of a logarithm that the last printed digit allows.

    A value rounded to steps of ``resolution`` hides a uniform error with the standard
    deviation ``resolution / sqrt(12)``; divided by the mean it is on the log scale.
    """
    if mean == 0 or not math.isfinite(mean):
        raise ValueError(f"mean: {mean} given; a log scale needs a mean other than 0")
    return _floor(resolution) / (math.sqrt(12) * abs(mean))


def fieller(baseline: ArrayLike, patched: ArrayLike, confidence: float) -> Estimate:
    """Ratio of the arithmetic means, patched over baseline (Fieller 1954).

    The closed form with the pooled variance. Where the mean of the baseline does not
    differ from 0 at this confidence, the set of plausible ratios has no end: both
    bounds are infinite and ``method`` says so.

    Raises
    ------
    ValueError
        If an arm has fewer than two values, or the mean of the baseline is 0.
    """
    b = finite(baseline, least=2, what="baseline")
    p = finite(patched, least=2, what="patched")
    tail = (1 - share(confidence, what="confidence")) / 2
    below, above = float(b.mean()), float(p.mean())
    if below == 0:
        raise ValueError("baseline: the mean is 0; a ratio to it does not exist")
    df = b.size + p.size - 2
    pooled = ((b.size - 1) * spread(b) ** 2 + (p.size - 1) * spread(p) ** 2) / df
    reach = float(special.stdtrit(df, 1 - tail)) ** 2 * pooled
    low, high = _quadratic(
        below**2 - reach / b.size, below * above, above**2 - reach / p.size
    )
    name = "Fieller, pooled variance"
    return Estimate(
        value=above / below,
        low=low,
        high=high,
        confidence=confidence,
        method=name if math.isfinite(low) else f"{name}: unbounded, baseline near 0",
    )


def _df(own: list[int], parts: list[float] | None) -> float:
    """Satterthwaite's degrees of freedom, or those of all arms without ``parts``."""
    if parts is None:
        return float(sum(own))
    total = sum(parts)
    return 1 / sum(
        (part / total) ** 2 / df for part, df in zip(parts, own, strict=True)
    )


def _quadratic(a: float, half_b: float, c: float) -> tuple[float, float]:
    """Where ``a r^2 - 2 half_b r + c <= 0``; infinite where that has no end."""
    if a <= 0:
        return -math.inf, math.inf
    root = math.sqrt(max(half_b**2 - a * c, 0.0))
    return (half_b - root) / a, (half_b + root) / a


def _floor(value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"resolution: {value} given; give 0 or a positive number")
    return value


def _method(name: str, *, floored: bool, error: float) -> str:
    if not floored:
        return name
    if error == 0:
        return f"{name}, no spread seen and no resolution known"
    return f"{name}, spread from the recorded resolution"
