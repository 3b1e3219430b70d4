"""The last check of every capture: numbers of an order of magnitude that cannot be.

A rate above the link, a share outside 0 to 1 or a number that is none mean that a unit
was misread or that the tool printed nonsense. Both are errors, with the likely cause:
such a number must not reach an average.
"""

import re
import sys
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.metrics import METRICS, Kind
from patchstudy.records import Capture, Measurement

#: A payload rate may exceed the link's by what the clocks of both ends differ.
_CLOCKS: Final = 1.02
#: Percentages with two decimals may add up to a little more than 100.
_ROUNDING: Final = 0.005
_LARGEST: Final = sys.float_info.max
_SPEED: Final = re.compile(r"(\d+) ?Mb/s")
_PAYLOAD: Final = frozenset({"throughput", "send_rate"})
#: Above any link, in bit/s; 10 Tbit/s of the shortest Ethernet frames, in packet/s.
_RATES: Final = {"throughput": 1e13, "send_rate": 1e13, "packet_rate": 1e13 / (84 * 8)}
_SHARES: Final = frozenset(
    name for name, one in METRICS.items() if one.kind in {Kind.SHARE, Kind.PROPORTION}
)
#: The largest value that needs no second look.
_MOST: Final = _RATES | dict.fromkeys(_SHARES, 1 + _ROUNDING)


def checked(capture: Capture) -> Capture:
    """Return the capture as it is, if all its numbers can be.

    An interval has a length and an end. A rate may not exceed 10 Tbit/s; one of the
    whole run not the link either, where the fact ``link_speed`` (``1000Mb/s``) tells
    it.

    Raises
    ------
    CaptureError
        If a number cannot be; the message names the likely cause.
    """
    link = _link(capture)
    for one in capture.measurements:
        metric, value, start_s, end_s, _labels, exposure, resolution = one
        if not 0 <= value <= _MOST.get(metric, _LARGEST):
            _check(capture, one)
        if exposure is not None or resolution is not None:
            _check_beside(capture, one)
        if start_s is None:
            if link and metric in _PAYLOAD:
                _check_link(capture, one, link)
        elif end_s is None or not -_LARGEST <= start_s < end_s <= _LARGEST:
            raise _impossible(capture, one, "lies nowhere in time; is it damaged?")
    return capture


def _check(capture: Capture, one: Measurement) -> None:
    """Look again at a number that is negative, none, or above its bound."""
    problem = ""
    if not -_LARGEST <= one.value <= _LARGEST:
        problem = "is no number; the tool printed nan or inf"
    elif one.metric in _SHARES:
        problem = "is outside 0 to 1; a percentage, or counts of different times?"
    elif one.metric in _RATES and one.value < 0:
        problem = "is negative; a counter that wrapped?"
    elif one.metric in _RATES:
        problem = "is above 10 Tbit/s; a wrong unit, or a run of no length?"
    if problem:
        raise _impossible(capture, one, problem)


def _check_beside(capture: Capture, one: Measurement) -> None:
    for beside in (one.exposure, one.resolution):
        if beside is not None and not 0 <= beside <= _LARGEST:
            problem = "is told of a count or a last digit that is no number"
            raise _impossible(capture, one, f"{problem}; is the file damaged?")


def _check_link(capture: Capture, one: Measurement, link: float) -> None:
    if one.value > _CLOCKS * link:
        problem = (
            f"is above the link's {link:g} bit/s, which the file tells; a wrong unit,"
            " or traffic that stayed on the machine?"
        )
        raise _impossible(capture, one, problem)


def _link(capture: Capture) -> float | None:
    """Return the rate of the link in bit/s, where the file tells it."""
    if "link_speed" not in capture.facts:
        return None
    told = _SPEED.fullmatch(str(capture.facts["link_speed"]))
    return float(told[1]) * 1e6 if told else None


def _short(value: float) -> str:
    return f"{value:g}" if abs(value) <= _LARGEST else str(value)[:20]


def _impossible(capture: Capture, one: Measurement, problem: str) -> CaptureError:
    span = "" if one.start_s is None else f" at {one.start_s:g}-{one.end_s:g} s"
    labels = "".join(f" {name}={value}" for name, value in sorted(one.labels.items()))
    text = f"{one.metric} {_short(one.value)}{labels}{span} {problem}"
    return CaptureError(capture.path, text)
