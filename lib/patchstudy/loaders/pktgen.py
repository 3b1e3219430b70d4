"""Read what the kernel's packet generator writes to ``/proc/net/pktgen/<interface>``.

What the values are (net/core/pktgen.c). pktgen is a sender: what arrived is not known.

``packet_rate``
    Packets sent over the time of the ``Result`` line (the printed pps is cut off to an
    integer).
``send_rate``
    The bits in parentheses; the ``Mb/sec`` before them is cut off. Frames without FCS,
    preamble and gap; old kernels count 4 byte more than the packet size, which is said
    in a note. With IMIX the size in the line is only that of the last packet.
``errors``
    Of the ``Result`` line, with the packets as exposure.

Several results in a file carry the label ``document``; ``workload`` tells the
interface.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from patchstudy.loaders.documents import together
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.records import Capture, Fault, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "packet_rate": 'line "Result: OK": packets over usec',
    "send_rate": "the bps in parentheses below it",
    "errors": "errors below it",
}
_RESULT: Final = re.compile(
    r"^\s*Result: OK: (\d{1,15})\(c(\d+)\+[di](\d+)\) (?:usec|nsec), (\d{1,15})"
    r" \((\d{1,6})byte,(\d{1,3})frags\)"
)
_RATE: Final = re.compile(
    r"^\s*(\d{1,15})pps (\d{1,9})Mb/sec \((\d{1,18})bps\) errors: (\d{1,15})"
)
_OTHER: Final = re.compile(r"^\s*Result: (?!OK: \d)(.*\S)")
_PARAMS: Final = re.compile(r"^\s*Params:(?: count (\d{1,15}) +min_pkt_size: (\d+))?")
_SOFAR: Final = re.compile(r"^\s*pkts-sofar: (\d{1,15})")
_IMIX: Final = re.compile(
    r"^\s*imix_size_counts: ((?:\d{1,9},\d{1,18} ?)+)", re.MULTILINE
)


def sniff(raw: RawFile) -> bool:
    """Say whether a line is one that only pktgen writes."""
    patterns = (_RESULT, _RATE, _SOFAR, _IMIX)
    lines = plain_head(raw)
    if any(pattern.match(line) for line in lines for pattern in patterns):
        return True
    return any((m := _PARAMS.match(line)) and m[1] for line in lines)


def load(raw: RawFile) -> Capture:
    """Read the result of one interface, or of several in a row."""
    results = list(_results(raw)) or [_Result()]
    return together([_capture(raw, result) for result in results])


@dataclass(slots=True)
class _Result:
    """What the lines of one interface tell."""

    lines: list[str] = field(default_factory=list)
    usec: float | None = None
    packets: int = 0
    size: int = 0
    rate: tuple[int, int] | None = None
    error: Fault | None = None

    def found(self, pattern: str | re.Pattern[str]) -> str | None:
        match = re.search(pattern, "\n".join(self.lines))
        return match[1] if match else None


def _results(raw: RawFile) -> Iterator[_Result]:
    """Yield each result; the line of the rate or the next Params ends one."""
    result = _Result()
    for number, line in plain(raw.text):
        if _PARAMS.match(line) and (result.usec is not None or result.error):
            yield result
            result = _Result()
        result.lines.append(line)
        if found := _RESULT.match(line):
            result.usec = float(found[1])
            result.packets, result.size = int(found[4]), int(found[5])
        elif rate := _RATE.match(line):
            result.rate = (int(rate[3]), int(rate[4]))
            yield result
            result = _Result()
        elif other := _OTHER.match(line):
            result.error = Fault(text=f"Result: {other[1]}", where=str(number))
    told = result.found(r"(pkts-sofar|Params:)") or result.found(r"(imix_size_counts:)")
    if result.usec is not None or result.error or told:
        yield result


def _capture(raw: RawFile, result: _Result) -> Capture:
    reading = Reading()
    fault = result.error or _fault(result)
    if fault is None:
        _values(result, reading)
    started = result.found(r"started: (\d{1,18})us")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="pktgen",
        started_at=_epoch(started),
        workload=_workload(result),
        measurements=tuple(reading.measurements),
        facts=_facts(result),
        caveats=tuple(reading.caveats),
        error=fault,
    )


def _fault(result: _Result) -> Fault | None:
    if result.usec is None:
        return Fault(text="no Result line; is pktgen still running?")
    if result.rate is None:
        return Fault(text="the line of the rate is missing; was the file cut short?")
    if result.usec == 0:
        return Fault(text="the Result line has no time")
    return None


def _values(result: _Result, reading: Reading) -> None:
    seconds = (result.usec or 0.0) * 1e-6
    bits, errors = result.rate or (0, 0)
    reading.whole("packet_rate", result.packets / seconds, resolution=1 / seconds)
    reading.whole("send_rate", float(bits), resolution=1.0)
    reading.whole("errors", float(errors), exposure=float(result.packets))
    reading.note("sent-only", "pktgen tells what was sent, not what arrived")
    asked = result.found(r"Params: count (\d{1,15})")
    if asked and int(asked) > result.packets:
        reading.doubt(
            "stopped-early",
            f"{result.packets} of {asked} packets were sent",
            "find out who stopped pktgen",
        )
    _check_bits(result, bits, seconds, reading)


def _check_bits(result: _Result, bits: int, seconds: float, reading: Reading) -> None:
    """Say of which frame size the printed bits are."""
    size = bits * seconds / 8 / result.packets if result.packets else 0.0
    mix = _mix(result)
    if mix and abs(size - mix) <= 0.01 * mix:
        reading.note("imix", f"packets of mixed sizes, {mix:.1f} byte in the mean")
    elif mix or abs(size - result.size) > 0.01 * result.size:
        reading.doubt(
            "frame-size",
            f"the bits are those of {size:.1f} byte a packet; the packets have"
            f" {mix or result.size:.4g}",
            "compare packet_rate",
        )


def _mix(result: _Result) -> float | None:
    """Return the mean size of the packets that IMIX sent."""
    counts = result.found(_IMIX)
    if counts is None:
        return None
    pairs = [[int(one) for one in pair.split(",")] for pair in counts.split()]
    packets = sum(count for _size, count in pairs)
    return sum(size * count for size, count in pairs) / packets if packets else None


def _epoch(started: str | None) -> str | None:
    """Return the start; kernels after 2.6.36 count from the boot instead."""
    if started is None or not 1e15 < int(started) < 4e15:
        return None
    moment = datetime.fromtimestamp(int(started) // 10**6, tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _workload(result: _Result) -> dict[str, str | int | float | None]:
    imix = result.found(r"(imix_size_counts): ")
    return {
        "protocol": "UDP",
        "direction": "forward",
        "interface": result.found(r"ifname: (\S+)"),
        "duration_s": None if result.usec is None else result.usec * 1e-6,
        "packets": result.packets or None,
        "packet_size": None if imix else result.size or None,
    }


def _facts(result: _Result) -> dict[str, object]:
    facts: dict[str, object] = {}
    for name in ("clone_skb", "burst", "delay", "flows"):
        value = result.found(rf"\b{name}: (\d{{1,15}})")
        if value is not None:
            facts[name] = int(value)
    return facts
