"""Read the interval summaries that fping prints with ``-Q``; a part of ``fping``.

Their stamps are whole seconds and tell how long an interval is; the first begins with
the run (``next_report_time`` in fping's source). What ``-Q n,cumulative`` prints counts
from the start of the run and is not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from patchstudy.loaders.reading import Reading

_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What one interval's summary says of a host.

    Attributes
    ----------
    clock_s
        The stamp above it: seconds of the day, or since 1970.
    mean_s, last_s
        Mean round trip and what its last digit means; None where no answer came.
    """

    host: str
    clock_s: int
    sent: int
    received: int
    mean_s: float | None
    last_s: float


def add(summaries: Sequence[Summary], reading: Reading) -> None:
    """Add loss and mean round trip of every interval, or say why there are none."""
    if not summaries:
        return
    length_s = length(summaries)
    if length_s is None:
        reading.note(
            "interval-unread",
            "the stamps of the interval summaries (-Q) do not tell how long one is",
        )
        return
    hosts: dict[str, list[Summary]] = {}
    for one in summaries:
        hosts.setdefault(one.host, []).append(one)
    if all(map(_cumulative, hosts.values())):
        reading.note(
            "interval-unread",
            "the interval summaries count from the start (-Q n,cumulative)",
        )
        return
    for own in hosts.values():
        for at, one in enumerate(own):
            _one(one, (at * length_s, (at + 1) * length_s), reading)


def length(summaries: Sequence[Summary]) -> float | None:
    """Return the seconds of an interval, where all stamps are as far apart."""
    first = summaries[0].host
    clocks = [one.clock_s for one in summaries if one.host == first]
    apart = {(later - one) % _DAY_S for one, later in pairwise(clocks)}
    return float(apart.pop()) or None if len(apart) == 1 else None


def _cumulative(own: Sequence[Summary]) -> bool:
    """Say whether each summary counts all requests since the start."""
    steps = [later.sent - one.sent for one, later in pairwise(own)]
    return bool(steps) and min(steps) > own[0].sent / 2


def _one(one: Summary, span: tuple[float, float], reading: Reading) -> None:
    labels = {"host": one.host}
    if one.sent > 0 and one.received <= one.sent:
        lost = (one.sent - one.received) / one.sent
        reading.interval("loss", lost, span, labels, resolution=1 / one.sent)
    else:
        reading.note(
            "loss-absent",
            f"interval {span[0]:g}-{span[1]:g} s of {one.host}: {one.received} answers"
            f" to {one.sent} requests; its loss is absent",
        )
    if one.mean_s is not None:
        reading.interval("rtt_mean", one.mean_s, span, labels, resolution=one.last_s)
