"""Read ``dropwatch``: where the kernel threw packets away, and how many.

Its summary mode prints ``n drops at symbol+offset (address) [origin]`` for every
message of the kernel, so the same place stands there many times; packet mode prints a
block a packet (the handlers of alerts in dropwatch's src/main.c). ``drops`` is the
sum, and with the label ``symbol`` that of a place. ``__brk_limit`` and the like are
addresses of modules that an old dropwatch cannot name.
"""

import re
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, Fault, RawFile

_SUMMARY: Final = re.compile(
    r"(?P<count>\d{1,18}) drops at (?P<place>\S+) \(0x[0-9a-f]+\)(?: \[\w+\])?"
)
_PACKET: Final = re.compile(r"drop at: (?P<place>\S+) \(0x[0-9a-f]+\)")
#: A drop is told, in whatever form.
_DROP: Final = re.compile(r"\bdrops? at\b")
_STARTS: Final = re.compile(
    r"(?:dropwatch> |Initi?ali[sz]ing \w+ db|Enabling monitoring|Unable to find NET_DM)"
)


def sniff(raw: RawFile) -> bool:
    """Say whether a drop or a line of dropwatch's own stands at the beginning."""
    top = [one.strip() for one in raw.head.split("\n") if one.strip()][:8]
    return any(_SUMMARY.match(one) or _PACKET.match(one) for one in top) or any(
        map(_STARTS.match, top[:1])
    )


def load(raw: RawFile) -> Capture:
    """Add up the drops by place; without the kernel's monitor the run has failed.

    Raises
    ------
    CaptureError
        If a drop is told in another form: it must not be missing in the sum.
    """
    places: dict[str, int] = {}
    out = Reading()
    packets = 0
    for number, line in enumerate(map(str.strip, raw.text.split("\n")), start=1):
        found = _SUMMARY.match(line)
        packet = None if found else _PACKET.match(line)
        if found:
            place, count = found["place"], int(found["count"])
        elif packet:
            place, count = packet["place"], 1
            packets += 1
        elif _DROP.search(line):
            problem = f"{line[:60]!r} is not a drop as dropwatch prints it"
            raise CaptureError(raw.path, problem, where=str(number))
        else:
            continue
        places[place] = places.get(place, 0) + count
    error = None
    if "Unable to find NET_DM" in raw.head:
        error = Fault(text="the kernel has no drop monitor (CONFIG_NET_DROP_MONITOR)")
    else:
        out.whole("drops", sum(places.values()))
    for place, count in places.items():
        out.whole("drops", count, {"symbol": place})
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="dropwatch",
        measurements=tuple(out.measurements),
        facts={"packets": packets} if packets else {},
        caveats=(*out.caveats, *line_end(raw)),
        error=error,
    )
