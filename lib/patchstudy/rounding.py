"""What a printed number can stand for: the number give or take half its last digit.

Bounds are those of interval arithmetic: every value between them is possible, none is
more likely. They say nothing of noise.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

#: Bounds that touch count as meeting; so far apart is the rounding of floats.
_TOUCH = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A value and the bounds that rounding leaves for it; a bound may be infinite."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> "Bounds":
        """Return the bounds times a positive factor."""
        return Bounds(
            value=self.value * factor, low=self.low * factor, high=self.high * factor
        )

    def less(self, amount: float) -> "Bounds":
        """Return the bounds minus an exact amount."""
        return Bounds(
            value=self.value - amount, low=self.low - amount, high=self.high - amount
        )

    def meets(self, low: float, high: float) -> bool:
        """Say whether any value lies within both; a common end is enough."""
        ends = [abs(x) for x in (self.low, self.high, low, high) if math.isfinite(x)]
        slack = _TOUCH * max(ends, default=0.0)
        return self.low <= high + slack and low <= self.high + slack


def printed(number: str, *, about: bool = False) -> Bounds:
    """Return what a decimal number can stand for.

    Half its last digit either way. Of a number that is said to be about right, zeros at
    the end do not count as digits, and the last digit may be one off.

    Raises
    ------
    ValueError
        If it is no finite decimal number.

    Examples
    --------
    >>> printed("0.05")
    Bounds(value=0.05, low=0.045, high=0.055)
    >>> printed("60", about=True)
    Bounds(value=60.0, low=55.0, high=65.0)
    """
    try:
        exact = Decimal(number.strip())
    except InvalidOperation as error:
        raise ValueError(f"{number!r} is no number such as 12.5") from error
    if not exact.is_finite() or "_" in number:
        raise ValueError(f"{number!r} is no number such as 12.5")
    step = Decimal(1).scaleb(int(exact.as_tuple().exponent))
    half = step / 2
    if about:
        coarse = Decimal(1).scaleb(int(exact.normalize().as_tuple().exponent))
        half = max(step, coarse / 2) if exact else step
    return Bounds(value=float(exact), low=float(exact - half), high=float(exact + half))


def within(value: float, resolution: float) -> Bounds:
    """Return the bounds of a value of which the last printed digit is known."""
    return Bounds(value=value, low=value - resolution / 2, high=value + resolution / 2)


def quotient(top: Bounds, bottom: Bounds) -> Bounds:
    """Return the bounds of a ratio of two values that are not negative.

    Raises
    ------
    ValueError
        If the lower value is not positive, or the upper one is negative.
    """
    if not (bottom.value > 0 and top.value >= 0):
        raise ValueError(f"no ratio of {top.value:g} to {bottom.value:g}")
    lowest = max(0.0, top.low)
    return Bounds(
        value=top.value / bottom.value,
        low=lowest / bottom.high,
        high=top.high / bottom.low if bottom.low > 0 else math.inf,
    )


def difference(one: Bounds, other: Bounds) -> Bounds:
    """Return the bounds of ``one`` minus ``other``."""
    return Bounds(
        value=one.value - other.value,
        low=one.low - other.high,
        high=one.high - other.low,
    )
