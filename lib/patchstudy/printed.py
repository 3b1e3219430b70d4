"""A value as a mail prints it, with the bounds that its last digit leaves.

``362 Mbit/s``, ``about 0.4 us``, or a total over what it was spent on:
``14.241828 s / 33211099`` and ``2000000 byte / 341.79 s``.
"""

import re
from dataclasses import dataclass
from typing import Final

from patchstudy import stats
from patchstudy.stats import Bounds
from patchstudy.units import to_base

NUMBER: Final = r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
#: Words that take a number for about right.
ABOUT: Final = (
    r"(?:~|≈|about|around|roughly|approximately|approx\.|circa|ca\.|nearly|almost)"
)

_VALUE: Final = re.compile(rf"(?:({ABOUT})\s*)?([-+]?{NUMBER})(?:\s*([^\s\d]\S*))?")
_OVER: Final = re.compile(r"\s/\s+(?=[\d.])")
#: Base units of a total and of what it is divided by -> base unit and factor.
_QUOTIENTS: Final = {
    ("byte", "s"): ("bit/s", 8.0),
    ("1", "s"): ("1/s", 1.0),
    ("s", "byte"): ("s/byte", 1.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A printed value.

    Attributes
    ----------
    text
        As it is written.
    unit
        Base unit of the bounds.
    bounds
        What the text can stand for, in the base unit.
    about
        Whether it is said to be about right only.
    """

    text: str
    unit: str
    bounds: Bounds
    about: bool


def value(text: str) -> Printed:
    """Read a value with its unit, or a quotient of two; no unit means a plain number.

    Raises
    ------
    ValueError
        If it is neither, or a unit is not known.
    """
    plain = " ".join(text.split())
    total, *over = _OVER.split(plain)
    if len(over) > 1:
        raise ValueError(f"{text!r} divides more than once")
    top = _single(total)
    if not over:
        return top
    bottom = _single(over[0])
    unit, factor = _divided(top.unit, bottom.unit, plain)
    return Printed(
        text=plain,
        unit=unit,
        bounds=stats.quotient(top.bounds, bottom.bounds).scaled(factor),
        about=top.about or bottom.about,
    )


def _divided(top: str, bottom: str, text: str) -> tuple[str, float]:
    """Return the base unit of a quotient, and what brings it there."""
    if bottom == "1":
        return top, 1.0
    if top == bottom:
        return "1", 1.0
    if (top, bottom) not in _QUOTIENTS:
        raise ValueError(f"{text!r}: no unit is known for {top} over {bottom}")
    return _QUOTIENTS[top, bottom]


def _single(text: str) -> Printed:
    found = _VALUE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no value with a unit, such as '362 Mbit/s'")
    about = found[1] is not None
    factor, unit = to_base(1.0, found[3] or "1")
    return Printed(
        text=text.strip(),
        unit=unit,
        bounds=stats.printed(found[2], about=about).scaled(factor),
        about=about,
    )
