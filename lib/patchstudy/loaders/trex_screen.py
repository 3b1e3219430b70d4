"""Read the screen of TRex's server (``t-rex-64``), logged or pasted.

It is drawn again and again: a table of the ports (counters since the start), rates and
the ``current time``; a run that ended itself prints ``summary stats`` behind the last.

What the values are (``CGlobalStats`` and ``DumpAllPorts`` of TRex's source):

``throughput``, ``send_rate``, ``packet_rate``
    Of layer 2: what ``ibytes``, ``obytes`` and ``ipackets`` of all ports grew by from
    one screen to the next; each of these is an interval. Whole run: from the first to
    the last screen between which frames moved. Of one screen alone they are its moving
    averages ``Total-Rx`` and ``Total-Tx``, which are 0 soon after a run: with a caveat.
``loss``
    1 - ipackets / opackets of all ports, of ``summary stats`` where they are there.
``errors``
    ``ierrors`` and ``oerrors`` of all ports.

Prefixes are of 10^3 (``KBYE_1000``).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading, bit
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "throughput": (
        "ibytes of all ports: growth over that of the current time; of one screen "
        "Total-Rx"
    ),
    "send_rate": "obytes of all ports, the same; of one screen Total-Tx",
    "packet_rate": "ipackets of all ports, the same",
    "loss": "1 - ipackets / opackets of all ports, or of summary stats",
    "errors": "ierrors and oerrors of all ports",
}
_TABLE: Final = re.compile(r"^\s*-Per port stats table\s*$")
_COUNTS: Final = re.compile(
    r"^\s*([io](?:packets|bytes|errors)) \|((?: +\d{1,20} ?\|?)+)$"
)
_RATE: Final = re.compile(r"^\s*Total-(Tx|Rx) +: +(\d{1,15}\.\d+) +([KMGT]?)bps\b")
_TIME: Final = re.compile(r"^\s*current time +: +(\d{1,9}\.\d+) sec\b")
_SUMMARY: Final = re.compile(r"^\s*Total-(tx|rx)-pkt +: +(\d{1,20}) pkts\b")


def sniff(raw: RawFile) -> bool:
    """Say whether a line is the head of TRex's table of ports."""
    return any(_TABLE.match(line) for line in plain_head(raw))


def load(raw: RawFile) -> Capture:
    """Read all screens of one run.

    Raises
    ------
    CaptureError
        If no screen has the counters of its ports.
    """
    screens = [
        one for one in _screens(raw) if {"opackets", "ipackets"} <= one.counts.keys()
    ]
    if not screens:
        raise CaptureError(raw.path, "no counters of TRex's ports; was it cut short?")
    reading = Reading()
    reading.caveats.extend(line_end(raw))
    _rates(screens, reading)
    last = screens[-1]
    sent = last.summary.get("tx", last.counts["opackets"])
    received = last.summary.get("rx", last.counts["ipackets"])
    if sent:
        reading.loss(sent - received, sent)
    for name, way in (("ierrors", "received"), ("oerrors", "sent")):
        packets = last.counts[name.replace("errors", "packets")]
        reading.whole(
            "errors", last.counts.get(name), {"direction": way}, exposure=packets
        )
    reading.note("layer-2", "bit rates are those of frames (layer 2), not of payload")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="trex",
        workload={"protocol": None, "direction": None, "streams": last.ports or None},
        measurements=tuple(reading.measurements),
        facts={name: int(count) for name, count in last.counts.items()},
        caveats=tuple(reading.caveats),
    )


@dataclass(slots=True)
class _Screen:
    """One screen: counters over all ports, averages in bit/s, its time in s."""

    counts: dict[str, float] = field(default_factory=dict)
    averages: dict[str, float] = field(default_factory=dict)
    summary: dict[str, float] = field(default_factory=dict)
    time: float | None = None
    ports: int = 0


def _screens(raw: RawFile) -> Iterator[_Screen]:
    screen: _Screen | None = None
    whole = raw.text[: raw.text.rfind("\n") + 1]  # a last line may be cut in a number
    for _number, line in plain(whole):
        if _TABLE.match(line):
            if screen:
                yield screen
            screen = _Screen()
        elif screen:
            _take(screen, line)
    if screen:
        yield screen


def _take(screen: _Screen, line: str) -> None:
    """Add what a line tells to its screen."""
    if counts := _COUNTS.match(line):
        values = [float(one) for one in re.findall(r"\d+", counts[2])]
        screen.counts[counts[1]] = sum(values)
        screen.ports = len(values)
    elif rate := _RATE.match(line):
        screen.averages[rate[1]] = bit(float(rate[2]), rate[3])
    elif time := _TIME.match(line):
        screen.time = float(time[1])
    elif total := _SUMMARY.match(line):
        screen.summary[total[1]] = float(total[2])


_GROWTH: Final = (
    ("throughput", "ibytes", 8),
    ("send_rate", "obytes", 8),
    ("packet_rate", "ipackets", 1),
)


def _rates(screens: list[_Screen], reading: Reading) -> None:
    """Add the rates between the screens, and over those between which frames moved."""
    timed = [one for one in screens if one.time is not None]
    steps = [(a, b) for a, b in pairwise(timed) if (b.time or 0.0) > (a.time or 0.0)]
    moving = [step for step in steps if _growth(step, "opackets") > 0]
    for metric, name, factor in _GROWTH:
        for step in steps:
            first, then = (one.time or 0.0 for one in step)
            rate = factor * _growth(step, name) / (then - first)
            reading.interval(metric, rate, (first, then))
        if moving:
            whole = (moving[0][0], moving[-1][1])
            length = (whole[1].time or 0.0) - (whole[0].time or 0.0)
            reading.rate(metric, factor * _growth(whole, name) / length)
    if moving:
        return
    reading.doubt(
        "moving-average",
        "one screen alone: its rates are TRex's moving averages at that moment",
        "log the screens of the whole run",
    )
    reading.rate("throughput", screens[-1].averages.get("Rx"))
    reading.rate("send_rate", screens[-1].averages.get("Tx"))


def _growth(step: tuple[_Screen, _Screen], name: str) -> float:
    return step[1].counts.get(name, 0.0) - step[0].counts.get(name, 0.0)
