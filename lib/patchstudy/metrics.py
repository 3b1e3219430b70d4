"""The one list of what is measured, in which unit, and which way is better.

The names are part of the interface: studies, ``report.json`` and other programs rely
on them. To add a metric, add one entry to ``METRICS``. Five families are open:
``event:<name>`` (any counter), ``calls:<function>`` and ``call_time:<function>`` (of
tracers; the mean time of a call with all that it calls), ``profile_share:<symbol>`` and
``profile_cost:<symbol>``; ``metric`` makes their entries on demand.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Better(StrEnum):
    """Direction of improvement of a metric."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


class Kind(StrEnum):
    """What sort of quantity it is; decides the scale on which it is compared."""

    RATE = "rate"
    LATENCY = "latency"
    COST = "cost"
    SHARE = "share"
    PROPORTION = "proportion"
    COUNT = "count"
    SIGNED = "signed"  # may be zero or negative
    PASSFAIL = "passfail"  # 1 where a run had the outcome, 0 where it had not
    EXACT = "exact"  # deterministic: every run gives the same number


class Scale(StrEnum):
    """How a change is expressed: patched / baseline, or patched - baseline."""

    RATIO = "ratio"
    DIFFERENCE = "difference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A response variable.

    Attributes
    ----------
    name
        Key used in tables, in ``study.toml`` and in ``report.json``.
    unit
        Base unit of every value of this metric.
    better
        Direction of improvement.
    kind
        Sort of quantity.
    label
        Words for axes and tables.
    """

    name: str
    unit: str
    better: Better
    kind: Kind
    label: str

    @property
    def scale(self) -> Scale:
        """Ratio for rates, latencies and costs; difference for the others."""
        positive = {Kind.RATE, Kind.LATENCY, Kind.COST}
        return Scale.RATIO if self.kind in positive else Scale.DIFFERENCE

    @property
    def sign(self) -> int:
        """Return +1 where more is better, -1 where less is, 0 where neither."""
        return {Better.HIGHER: 1, Better.LOWER: -1, Better.NEITHER: 0}[self.better]


_UP, _DOWN, _NONE = Better.HIGHER, Better.LOWER, Better.NEITHER
_ROWS: Final = (
    ("throughput", "bit/s", _UP, Kind.RATE, "Throughput"),
    ("send_rate", "bit/s", _NONE, Kind.RATE, "Send rate"),
    ("packet_rate", "packet/s", _UP, Kind.RATE, "Packet rate"),
    ("transaction_rate", "1/s", _UP, Kind.RATE, "Transaction rate"),
    ("loss", "1", _DOWN, Kind.PROPORTION, "Loss"),
    ("retransmits", "1", _DOWN, Kind.COUNT, "Retransmits"),
    ("drops", "1", _DOWN, Kind.COUNT, "Drops"),
    ("errors", "1", _DOWN, Kind.COUNT, "Errors"),
    ("rtt_mean", "s", _DOWN, Kind.LATENCY, "Round-trip time, mean"),
    ("rtt_p50", "s", _DOWN, Kind.LATENCY, "Round-trip time, median"),
    ("rtt_p99", "s", _DOWN, Kind.LATENCY, "Round-trip time, 99 %"),
    ("jitter", "s", _DOWN, Kind.LATENCY, "Jitter"),
    ("fairness", "1", _UP, Kind.SHARE, "Fairness (Jain)"),
    ("flow_share_min", "1", _UP, Kind.SHARE, "Smallest share of a flow"),
    ("starved_flows", "1", _DOWN, Kind.PROPORTION, "Starved flows"),
    ("cpu_busy", "1", _DOWN, Kind.SHARE, "CPU busy"),
    ("cpu_busy_max", "1", _DOWN, Kind.SHARE, "Busiest CPU"),
    ("cpu_softirq", "1", _DOWN, Kind.SHARE, "CPU in softirq"),
    ("cpu_per_byte", "s/byte", _DOWN, Kind.COST, "CPU per byte"),
    ("cpu_per_packet", "s/packet", _DOWN, Kind.COST, "CPU per packet"),
    ("interrupts", "1", _NONE, Kind.COUNT, "Interrupts"),
    ("softirqs", "1", _NONE, Kind.COUNT, "Softirqs"),
    ("context_switches", "1", _NONE, Kind.COUNT, "Context switches"),
    ("alloc_time", "s", _DOWN, Kind.COST, "Allocation time"),
    ("alloc_count", "1", _DOWN, Kind.COUNT, "Allocations"),
)
METRICS: Final[dict[str, Metric]] = {
    name: Metric(name=name, unit=unit, better=better, kind=kind, label=label)
    for name, unit, better, kind, label in _ROWS
}
_FAMILIES: Final = {
    "event": ("1", _NONE, Kind.COUNT, "Event"),
    "calls": ("1", _NONE, Kind.COUNT, "Calls of"),
    "call_time": ("s", _DOWN, Kind.COST, "Time per call of"),
    "profile_share": ("1", _DOWN, Kind.SHARE, "Profile share of"),
    "profile_cost": ("s/packet", _DOWN, Kind.COST, "Profile cost of"),
}


def metric(name: str) -> Metric:
    """Return the metric of this name.

    Raises
    ------
    ValueError
        If the name is neither listed nor of an open family; the message lists both.
    """
    if name in METRICS:
        return METRICS[name]
    family, _, member = name.partition(":")
    if family in _FAMILIES and member:
        unit, better, kind, label = _FAMILIES[family]
        return Metric(
            name=name, unit=unit, better=better, kind=kind, label=f"{label} {member}"
        )
    known = ", ".join([*METRICS, *(f"{family}:<name>" for family in _FAMILIES)])
    raise ValueError(f"unknown metric {name!r}; known metrics: {known}")
