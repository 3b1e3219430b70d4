"""What a mail claims, as ``[[claims]]`` in ``study.toml`` states it."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from patchstudy import printed, stats
from patchstudy.metrics import Metric, metric
from patchstudy.printed import ABOUT, NUMBER, Printed
from patchstudy.stats import Bounds
from patchstudy.study.keys import Keys

_PERCENT: Final = re.compile(
    rf"(?:({ABOUT})\s*+)?([-+]?)\s*+(?:({ABOUT})\s*+)?({NUMBER})\s*+%(?:\s+(\w+))?"
)
_FACTOR: Final = re.compile(
    rf"(?:({ABOUT})\s*+)?({NUMBER})\s*+(?:x|times)(?:\s+(\w+))?"
)
_ARROW: Final = re.compile(r"(?<!\s)\s*+(?:->|→)\s*")
_EQUAL: Final = frozenset({"equal", "same", "the same", "no change", "unchanged"})
_UP: Final = frozenset({"higher", "more", "larger"})
_DOWN: Final = frozenset({"lower", "less", "fewer", "smaller"})
_SHAPES: Final = (
    "'+50 %', '-60 %', 'about +50 %', '3x', '3x lower', '200 -> 300 Mbit/s', "
    "'+3 pp', '300 Mbit/s' or 'equal'"
)


class ClaimKind(StrEnum):
    """In which form a claim states a change."""

    PERCENT = "percent"  # +50 %: in percent of the baseline, or of patched
    FACTOR = "factor"  # 3x: patched over baseline
    VALUES = "values"  # 200 -> 300 Mbit/s
    DIFFERENCE = "difference"  # -276 ns, +3 pp
    VALUE = "value"  # 300 Mbit/s after the patch
    EQUAL = "equal"  # no change
    NONE = "none"  # in words only


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """The change that a claim states.

    Attributes
    ----------
    kind
        Its form; decides what ``bounds`` are of.
    bounds
        Of a percentage: the change as a fraction of its base. Of a factor: patched /
        baseline. Of a difference or a value: base unit. None for the other kinds.
    ends
        Of values: baseline and patched.
    decimals
        Digits after the point as printed; of two values those of the patched one.
    about
        Whether the mail says that it is about right only.
    """

    kind: ClaimKind
    bounds: Bounds | None
    ends: tuple[Printed, Printed] | None
    decimals: int
    about: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the mail says about the change of one metric.

    Attributes
    ----------
    text
        The words of the mail.
    change
        The change as it was written in ``study.toml``; empty where none is stated.
    of
        ``"baseline"`` or ``"patched"``: what a percentage is a percentage of.
    baseline, patched
        The values in the mail that the claim was made from; None where it has none.
    device, workload, variant
        What it speaks of; empty: all devices, all workloads, the judged variant.
    reference
        Device that the patched values are said to be equal to; empty: the baseline of
        the same device.
    """

    text: str
    metric: str
    change: str
    stated: Stated
    of: str
    baseline: Printed | None
    patched: Printed | None
    device: str
    workload: str
    variant: str
    reference: str

    @property
    def said(self) -> str:
        """The change as it was written, and the reference device if it has one."""
        return f"{self.change} to {self.reference}" if self.reference else self.change


def read_claim(keys: Keys) -> Claim:
    """Read one table of ``[[claims]]``; every mistake is noted with its key."""
    quantity = _metric(keys)
    change = keys.text("change", default="").strip()
    claim = Claim(
        text=keys.text("text"),
        metric=quantity.name,
        change=change,
        stated=_stated(keys, change, quantity),
        of=keys.choice("of", ("baseline", "patched"), default="baseline"),
        baseline=_input(keys, "baseline", quantity),
        patched=_input(keys, "patched", quantity),
        device=keys.text("device", default=""),
        workload=keys.text("workload", default=""),
        variant=keys.text("variant", default=""),
        reference=keys.text("reference", default=""),
    )
    if claim.reference:
        _of_equality(keys, claim)
    keys.finish_table()
    return claim


def _of_equality(keys: Keys, claim: Claim) -> None:
    """Note what is wrong with a claim beside a reference device."""
    if claim.stated.kind is not ClaimKind.EQUAL:
        keys.wrong("change", "beside a reference device it must be 'equal'")
    if claim.reference == claim.device:
        keys.wrong("reference", f"{claim.reference!r} is the device of the claim")
    for name, one in (("baseline", claim.baseline), ("patched", claim.patched)):
        if one is not None:
            keys.wrong(name, "a claim beside a reference device has no such value")


def parse_change(text: str, quantity: Metric) -> Stated:
    """Read the change that a claim states.

    Raises
    ------
    ValueError
        If it has none of the known forms, or its unit does not fit the metric.
    """
    plain = " ".join(text.split())
    if not plain or plain.lower() in _EQUAL:
        kind = ClaimKind.EQUAL if plain else ClaimKind.NONE
        return Stated(kind=kind, bounds=None, ends=None, decimals=0, about=False)
    if found := _PERCENT.fullmatch(plain):
        return _percent(found, plain)
    if found := _FACTOR.fullmatch(plain):
        return _factor(found, plain)
    parts = _ARROW.split(plain)
    if len(parts) == 2:
        return _values(parts[0], parts[1], quantity)
    return _amount(plain, quantity)


def _metric(keys: Keys) -> Metric:
    name = keys.text("metric")
    try:
        return metric(name)
    except ValueError as error:
        if name:
            keys.wrong("metric", str(error))
        return metric("throughput")


def _stated(keys: Keys, change: str, quantity: Metric) -> Stated:
    try:
        return parse_change(change, quantity)
    except ValueError as error:
        keys.wrong("change", str(error))
        return parse_change("", quantity)


def _input(keys: Keys, key: str, quantity: Metric) -> Printed | None:
    text = keys.text(key, default="")
    if not text:
        return None
    try:
        return _fitting(printed.value(text), quantity)
    except ValueError as error:
        keys.wrong(key, str(error))
        return None


def _fitting(one: Printed, quantity: Metric) -> Printed:
    if one.unit != quantity.unit:
        raise ValueError(
            f"{one.text!r} does not fit {quantity.name}, which is in {quantity.unit!r}"
        )
    return one


def _percent(found: re.Match[str], text: str) -> Stated:
    first, sign, second, number, word = found.groups()
    about = bool(first or second)
    down = _down(word, text) if word else sign == "-"
    if bool(word) is bool(sign):
        raise ValueError(
            f"{text!r} does not say in which direction; write '+{number} %' or "
            f"'-{number} %'"
        )
    size = stats.printed(number, about=about).scaled(0.01)
    return Stated(
        kind=ClaimKind.PERCENT,
        bounds=_turned(size) if down else size,
        ends=None,
        decimals=_decimals(number),
        about=about,
    )


def _turned(one: Bounds) -> Bounds:
    return Bounds(value=-one.value, low=-one.high, high=-one.low)


def _factor(found: re.Match[str], text: str) -> Stated:
    about, number, word = found[1] is not None, found[2], found[3]
    size = stats.printed(number, about=about)
    if word and _down(word, text):
        size = stats.quotient(Bounds(value=1.0, low=1.0, high=1.0), size)
    return Stated(
        kind=ClaimKind.FACTOR,
        bounds=size,
        ends=None,
        decimals=_decimals(number),
        about=about,
    )


def _down(word: str, text: str) -> bool:
    if word not in _UP | _DOWN:
        known = ", ".join(sorted(_UP | _DOWN))
        raise ValueError(f"{text!r}: {word!r} is none of {known}")
    return word in _DOWN


def _values(left: str, right: str, quantity: Metric) -> Stated:
    patched = _fitting(printed.value(right), quantity)
    if re.fullmatch(rf"(?:{ABOUT}\s*)?{NUMBER}", left):
        # 200 -> 300 Mbit/s: the unit stands once
        left = f"{left} {re.sub(rf'^(?:{ABOUT})?[ ]*{NUMBER}', '', right).strip()}"
    baseline = _fitting(printed.value(left.strip()), quantity)
    return Stated(
        kind=ClaimKind.VALUES,
        bounds=None,
        ends=(baseline, patched),
        decimals=_decimals(_number(right)),
        about=baseline.about or patched.about,
    )


def _amount(text: str, quantity: Metric) -> Stated:
    try:
        amount = printed.value(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no change; write it as {_SHAPES}") from error
    signed = re.match(rf"(?:{ABOUT}\s*)?[-+]", text) is not None
    return Stated(
        kind=ClaimKind.DIFFERENCE if signed else ClaimKind.VALUE,
        bounds=_fitting(amount, quantity).bounds,
        ends=None,
        decimals=_decimals(_number(text)),
        about=amount.about,
    )


def _number(text: str) -> str:
    found = re.search(NUMBER, text)
    return found[0] if found else ""


def _decimals(number: str) -> int:
    return len(number.partition(".")[2])
