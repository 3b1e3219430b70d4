"""What a run moved and the CPU time that it took, from its own counters.

A profile says which share of the CPU time a symbol took. What it cost per packet or per
byte follows from what the same run moved: the bytes that a traffic generator received,
the packets that an interface or the IP layer counted, and the busy share of its CPUs.
Whatever is not known is absent, with the reason.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from patchstudy.records import Measurement
from patchstudy.study import Run, Source

#: Counters of packets; of the first that counted, the largest number.
_FORWARDED: Final = "event:IpForwDatagrams"
_INTERFACE: Final = ("event:rx_packets", "event:tx_packets")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What one run moved.

    Attributes
    ----------
    seconds
        Length of the transfer.
    byte, packet
        Payload bytes that were received, and packets; None where no counter tells.
    cpu_s
        Busy CPU seconds of all CPUs; None where no tool tells.
    rate
        Throughput in bit/s, or else packets a second.
    counters
        In words, where packets and CPU time come from.
    missing
        Why a number is absent, one reason each.
    """

    seconds: float | None
    byte: float | None
    packet: float | None
    cpu_s: float | None
    rate: float | None
    counters: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def cpu_per_packet(self) -> float | None:
        """CPU seconds per packet."""
        return _over(self.cpu_s, self.packet)

    @property
    def cpu_per_byte(self) -> float | None:
        """CPU seconds per payload byte."""
        return _over(self.cpu_s, self.byte)


def moved(run: Run) -> Moved:
    """Return what the counters of a run say that it moved."""
    seconds, rate = _transfer(run)
    packets = _packets(run)
    busy = _busy_cpus(run, packets[2] if packets else "")
    told = {
        "no throughput with a known length": seconds,
        "no counter of packets": packets,
        "no CPU load of one machine with its number of CPUs": busy,
    }
    return Moved(
        seconds=seconds,
        byte=None if rate is None or seconds is None else rate / 8 * seconds,
        packet=packets[0] if packets else None,
        cpu_s=None if busy is None or seconds is None else busy[0] * seconds,
        rate=rate if rate is not None else _over(packets and packets[0], seconds),
        counters=tuple(one[1] for one in (packets, busy) if one),
        missing=tuple(reason for reason, found in told.items() if found is None),
    )


def whole_run(run: Run, *names: str) -> Iterator[tuple[Source, Measurement]]:
    """Yield the values of these metrics that hold for the whole run."""
    for source in run.sources:
        for one in source.capture.measurements:
            if one.start_s is None and one.metric in names:
                yield source, one


def _transfer(run: Run) -> tuple[float | None, float | None]:
    """Length of the transfer in seconds, and its throughput in bit/s."""
    for source, one in whole_run(run, "throughput"):
        length = source.capture.workload.get("duration_s")
        if not one.labels and isinstance(length, int | float) and length > 0:
            return float(length), one.value
    clocks = [one.value for _, one in whole_run(run, "event:uptime") if one.value > 0]
    return (clocks[0] if len(clocks) == 1 else None), None


def _packets(run: Run) -> tuple[float, str, str] | None:
    """Packets, the counter in words, and the place where it stands."""
    for names in ((_FORWARDED,), _INTERFACE):
        found = [
            (one.value, _named(source, one), source.place)
            for source, one in whole_run(run, *names)
            if one.value > 0 and one.labels.get("interface") != "lo"
        ]
        if found:
            return max(found)
    return None


def _named(source: Source, one: Measurement) -> str:
    where = " ".join(one.labels.values())
    name = one.metric.removeprefix("event:")
    return f"packets: {name}{' of ' + where if where else ''} ({source.capture.tool})"


def _busy_cpus(run: Run, place: str) -> tuple[float, str] | None:
    """Mean number of busy CPUs of the machine that counted the packets."""
    found = [
        (source, one.value * count)
        for source, one in whole_run(run, "cpu_busy")
        if not one.labels
        and isinstance(count := source.capture.facts.get("number_of_cpus"), int)
    ]
    here = [one for one in found if one[0].place == place] or found
    if len({source.place for source, _ in here}) != 1:
        return None
    source, busy = here[0]
    return busy, f"CPU time: {source.capture.tool}"


def _over(value: float | None, moved: float | None) -> float | None:
    return value / moved if value is not None and moved else None
