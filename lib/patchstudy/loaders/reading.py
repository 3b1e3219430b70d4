"""What a loader has read so far, and the rules that several loaders share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from patchstudy.records import Caveat, Measurement, Severity

#: Part of the fair share below which a stream counts as starved (ours).
STARVED: Final = 0.1

_BINARY: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_DECIMAL: Final = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_COARSE: Final = 0.011
_MISMATCH: Final = 0.05
#: Above such a last digit in bit/s (Gbit/s, Tbit/s) a printed 0 may be a fair rate.
_NO_ZERO: Final = 1e6


@dataclass(slots=True)
class Reading:
    """Measurements and caveats of one file, in the order of their reading.

    Attributes
    ----------
    labels
        Labels that every measurement carries.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    caveats: list[Caveat] = field(default_factory=list)

    def whole(
        self,
        metric: str,
        value: float | None,
        labels: Mapping[str, str] | None = None,
        *,
        exposure: float | None = None,
        resolution: float | None = None,
    ) -> None:
        """Add a value of the whole run, if there is one."""
        if value is None:
            return
        self.measurements.append(
            Measurement(
                metric=metric,
                value=value,
                labels={**self.labels, **(labels or {})},
                exposure=exposure,
                resolution=resolution,
            )
        )

    def interval(
        self,
        metric: str,
        value: float,
        span: tuple[float, float],
        labels: Mapping[str, str] | None = None,
        *,
        resolution: float | None = None,
    ) -> None:
        """Add a value of an interval; pass over one of no length, or of no digits."""
        if not span[1] > span[0]:
            self.note("interval-unread", f"interval {span[0]}-{span[1]} has no length")
            return
        if value == 0 and resolution and resolution > _NO_ZERO:
            self._no_zero(metric)
            return
        self.measurements.append(
            Measurement(
                metric=metric,
                value=value,
                start_s=span[0],
                end_s=span[1],
                labels={**self.labels, **(labels or {})},
                resolution=resolution,
            )
        )

    def note(self, code: str, text: str) -> None:
        """Add a caveat that is worth knowing, once."""
        self._caveat(Caveat(code=code, severity=Severity.NOTE, text=text))

    def doubt(self, code: str, text: str, todo: str = "") -> None:
        """Add a caveat that may change the conclusion, once."""
        self._caveat(Caveat(code=code, severity=Severity.DOUBT, text=text, todo=todo))

    def _caveat(self, caveat: Caveat) -> None:
        if caveat not in self.caveats:
            self.caveats.append(caveat)

    def rate(
        self,
        metric: str,
        value: float | None,
        labels: Mapping[str, str] | None = None,
        *,
        resolution: float | None = None,
    ) -> None:
        """Add a whole-run rate; doubt it where it is 0 or has too few digits."""
        if value is None:
            return
        if value == 0 and resolution and resolution > _NO_ZERO:
            self._no_zero(metric)
            return
        self.whole(metric, value, labels, resolution=resolution)
        if value == 0 and metric == "throughput":
            self.doubt(
                "zero-throughput",
                "nothing reached the receiver",
                "check that the link was up and the run long enough",
            )
        elif value and resolution and resolution > _COARSE * value:
            self.doubt(
                "coarse-resolution",
                f"{metric} is printed with too few digits to see a change below"
                f" {100 * resolution / value:.0f} %",
                "let the tool print a smaller unit",
            )

    def _no_zero(self, metric: str) -> None:
        self.doubt(
            "coarse-resolution",
            f"{metric} is printed as 0 in a unit that is too large; it is absent",
            "let the tool print a smaller unit",
        )

    def loss(
        self, lost: float, packets: float, labels: Mapping[str, str] | None = None
    ) -> None:
        """Add the share that was lost; one outside 0..1 is absent and says why."""
        if packets <= 0 or not 0 <= lost <= packets:
            cause = (
                "reordered or omitted packets were counted"
                if lost < 0
                else "lost and sent packets are not of the same time"
            )
            self.doubt(
                "loss-absent",
                f"{lost:.0f} lost of {packets:.0f} packets cannot be ({cause});"
                " loss is absent",
            )
            return
        self.whole(
            "loss", lost / packets, labels, exposure=packets, resolution=1 / packets
        )

    def streams(
        self, rates: Sequence[float], labels: Mapping[str, str] | None = None
    ) -> None:
        """Add each stream's throughput and their shares where there are several."""
        if len(rates) < 2 or sum(rates) == 0:
            return
        for number, rate in enumerate(rates, start=1):
            self.whole("throughput", rate, {**(labels or {}), "stream": str(number)})
        self.measurements += shares(rates, {**self.labels, **(labels or {})})

    def bear_out(
        self, metric: str, value: float | None, spans: Sequence[tuple[float, float]]
    ) -> None:
        """Doubt a whole-run rate that its intervals (rate, seconds) do not bear out."""
        seconds = math.fsum(length for _rate, length in spans)
        if value is None or seconds <= 0:
            return
        mean = math.fsum(rate * length for rate, length in spans) / seconds
        if abs(value - mean) > _MISMATCH * max(mean, 1.0):
            self.doubt(
                "interval-mismatch",
                f"the end says {metric} {value:.4g} bit/s, the intervals"
                f" {mean:.4g} bit/s",
                "look at the intervals; run longer",
            )


def shares(rates: Sequence[float], labels: Mapping[str, str]) -> list[Measurement]:
    """Say how evenly several streams shared what they moved; nothing of one stream.

    Jain's index (Jain, Chiu and Hawe 1984), the smallest stream over the mean of all,
    and the part of the streams below ``STARVED`` of that mean (exposure: streams).
    """
    count, total = len(rates), math.fsum(rates)
    if count < 2 or total == 0:
        return []
    squares = math.fsum(rate * rate for rate in rates)
    starved = sum(rate * count < STARVED * total for rate in rates)
    return [
        Measurement(
            metric="fairness", value=total**2 / (count * squares), labels=dict(labels)
        ),
        Measurement(
            metric="flow_share_min",
            value=min(rates) * count / total,
            labels=dict(labels),
        ),
        Measurement(
            metric="starved_flows",
            value=starved / count,
            labels=dict(labels),
            exposure=count,
            resolution=1 / count,
        ),
    ]


def byte(value: float, prefix: str) -> float:
    """Return bytes of a number printed in Bytes, KBytes and so on (2^10).

    Examples
    --------
    >>> byte(1.5, "K")
    1536.0
    """
    return value * _BINARY[prefix.upper()]


def bit(value: float, prefix: str) -> float:
    """Return bits of a number printed in bits, Kbits and so on (10^3).

    Examples
    --------
    >>> bit(1.5, "K")
    1500.0
    """
    return value * _DECIMAL[prefix.upper()]


def last_digit(text: str) -> float:
    """Return what one more in the last printed digit means.

    Examples
    --------
    >>> last_digit("12.50")
    0.01
    """
    return 10.0 ** -len(text.partition(".")[2])


def number(value: object) -> float | None:
    """Return a finite number, not negative, of JSON or of text; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and found >= 0 else None
