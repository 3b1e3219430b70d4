"""Bring every value to a base unit on the way in; scale it for people on the way out.

Base units: ``bit/s``, ``byte``, ``s``, ``packet/s``, ``1/s``, ``s/byte``,
``s/packet`` and ``1`` (a count or a share).
"""

import math
from typing import Final

_FACTOR: Final[dict[str, tuple[float, str]]] = {
    "bit/s": (1.0, "bit/s"),
    "kbit/s": (1e3, "bit/s"),
    "Mbit/s": (1e6, "bit/s"),
    "Gbit/s": (1e9, "bit/s"),
    "Mbits/s": (1e6, "bit/s"),  # flent
    "10^6bits/s": (1e6, "bit/s"),  # netperf
    "10^6bits/sec": (1e6, "bit/s"),  # netperf
    "10^3bits/s": (1e3, "bit/s"),  # netperf -f k
    "10^9bits/s": (1e9, "bit/s"),  # netperf -f g
    "kB/s": (8e3, "bit/s"),
    "MB/s": (8e6, "bit/s"),
    "GB/s": (8e9, "bit/s"),
    "byte": (1.0, "byte"),
    "kB": (1e3, "byte"),
    "KiB": (2.0**10, "byte"),
    "MB": (1e6, "byte"),
    "MiB": (2.0**20, "byte"),
    "GiB": (2.0**30, "byte"),
    "s": (1.0, "s"),
    "ms": (1e-3, "s"),
    "us": (1e-6, "s"),
    "µs": (1e-6, "s"),
    "ns": (1e-9, "s"),
    "packet/s": (1.0, "packet/s"),
    "kpacket/s": (1e3, "packet/s"),
    "Mpacket/s": (1e6, "packet/s"),
    "1/s": (1.0, "1/s"),
    "s/byte": (1.0, "s/byte"),
    "ns/byte": (1e-9, "s/byte"),
    "s/packet": (1.0, "s/packet"),
    "us/packet": (1e-6, "s/packet"),
    "ns/packet": (1e-9, "s/packet"),
    "%": (1e-2, "1"),
    "pp": (1e-2, "1"),
    "1": (1.0, "1"),
}

_LARGE: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_SMALL: Final = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))


def to_base(value: float, unit: str) -> tuple[float, str]:
    """Convert a value to its base unit.

    Parameters
    ----------
    value
        Number as the tool printed it.
    unit
        Unit as the tool printed it, for example ``"Mbit/s"``.

    Returns
    -------
    tuple of (float, str)
        The value in the base unit, and that unit.

    Raises
    ------
    ValueError
        If ``unit`` is not known; the message lists the known ones.

    Examples
    --------
    >>> to_base(12.54, "10^6bits/sec")
    (12540000.0, 'bit/s')
    """
    if unit not in _FACTOR:
        known = ", ".join(sorted(_FACTOR))
        raise ValueError(f"unknown unit {unit!r}; known units: {known}")
    factor, base = _FACTOR[unit]
    return value * factor, base


def fitting(base: str) -> tuple[str, ...]:
    """Return the units that are multiples of a base unit, the largest first.

    Examples
    --------
    >>> fitting("s/byte")
    ('s/byte', 'ns/byte')
    """
    own = {name: factor for name, (factor, of) in _FACTOR.items() if of == base}
    names = {name for name in own if "bits/" not in name} - {"µs", "1"}
    return tuple(sorted(names, key=lambda name: (-own[name], name)))


def prefix(magnitude: float, unit: str) -> tuple[float, str]:
    """Return the scale and the unit in which people read a value of this size.

    Divide the base-unit value by the scale. A share is read in percent, a rate in
    ``kbit/s`` and so on, a time down to nanoseconds; the letter ``u`` stands for micro
    because mail is written in ASCII.

    Examples
    --------
    >>> prefix(12_540_000.0, "bit/s")
    (1000000.0, 'Mbit/s')
    >>> prefix(4.3e-7, "s")
    (1e-09, 'ns')
    """
    size = abs(magnitude)
    if unit in {"1", "1/s", ""} or size == 0:
        return 1.0, unit
    for scale, letter in _SMALL if unit.startswith("s") else _LARGE:
        if size >= scale:
            return scale, f"{letter}{unit}"
    return (1e-9, f"n{unit}") if unit.startswith("s") else (1.0, unit)


def for_people(value: float, unit: str, *, digits: int = 4) -> str:
    """Write a base-unit value with its significant digits and a prefix.

    Examples
    --------
    >>> for_people(12_540_000.0, "bit/s")
    '12.54 Mbit/s'
    """
    scale, shown = prefix(value, unit)
    number = significant(value / scale, digits=digits)
    return number if shown in {"1", ""} else f"{number} {shown}"


def significant(value: float, *, digits: int = 4) -> str:
    """Write a number with so many significant digits and no exponent where readable.

    Examples
    --------
    >>> significant(118.4221)
    '118.4'
    >>> significant(0.0)
    '0'
    """
    if value == 0:
        return "0"
    text = f"{value:#.{digits}g}"
    if "e" in text:
        return f"{value:.{digits - 1}e}" if abs(value) < 1 else f"{value:.0f}"
    return text.rstrip(".")


def count_of(number: int, noun: str) -> str:
    """Write how many there are: ``1 run``, ``3 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def with_interval(
    value: float, low: float, high: float, *, floor: float = -math.inf
) -> tuple[str, str, str]:
    """Write a change and the ends of its interval, with the digits that tell something.

    Two digits of the interval's width, but at most four of the value and three behind
    the point, as long as both ends differ; of an end above a thousand none behind the
    width's. An interval too narrow for that is rounded outwards. Nothing has no sign.

    Parameters
    ----------
    floor
        What no change can reach, as -100 of a ratio in percent: no end is rounded to
        it.

    Examples
    --------
    >>> with_interval(5.9321, 5.6121, 6.2521)
    ('+5.93', '+5.61', '+6.25')
    >>> with_interval(32.1, -97.64, 5535.2, floor=-100)
    ('+32', '-98', '+5500')
    >>> with_interval(-0.04, -0.34, 0.25)
    ('-0.04', '-0.34', '+0.25')
    >>> with_interval(0.00004, -0.00002, 0.0001)
    ('0', '-0.001', '+0.001')
    """
    width = high - low
    if not (math.isfinite(width) and width > 0):
        kept = _clear(low, floor, 2)
        return _signed(value, 2), _signed(low, kept), _signed(high, 2)
    if width < 10.0**-_MOST_DECIMALS:
        outward = 10**_MOST_DECIMALS
        below = math.floor(low * outward) / outward
        low = low if below <= floor else below
        high = math.ceil(high * outward) / outward
        digits = _MOST_DECIMALS
        return _signed(value, digits), _signed(low, digits), _signed(high, digits)
    digits = _decimals(width, value)
    return (
        _signed(value, digits),
        _signed(low, _clear(low, floor, digits)),
        _signed(high, digits),
    )


_MOST_DECIMALS: Final = 3


def _decimals(width: float, value: float) -> int:
    """Digits behind the point; negative ones leave out digits before it."""
    distinct = -math.floor(math.log10(width))
    by_value = 3 - math.floor(math.log10(abs(value))) if value else _MOST_DECIMALS
    return min(_MOST_DECIMALS, distinct + 1, max(by_value, distinct))


def _clear(end: float, floor: float, digits: int) -> int:
    """Return so many digits that an end is not rounded to what cannot be reached."""
    kept = max(digits, 0)
    while end > floor and round(end, kept) <= floor and kept < _MOST_DECIMALS:
        kept += 1
    return kept if kept > 0 else digits


def _signed(value: float, digits: int) -> str:
    """Write a number with its sign; digits before the point go from a thousand on."""
    shown = digits if abs(value) >= 1000 else max(digits, 0)
    rounded = round(value, shown) if math.isfinite(value) else value
    return "0" if rounded == 0 else f"{rounded:+.{max(shown, 0)}f}"
