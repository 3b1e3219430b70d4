"""Read ``ethtool -S``: the counters that a network driver names itself.

One line a counter, ``name: value``; a name may hold blanks, dots and ``: ``, so the
line is split at its last colon (``do_gstats`` of ethtool, strings of the driver's
``get_strings``). Values are 64 bits wide, though drivers copy narrower registers into
them, and counts, bytes or packets as the name says. Some are no counters but states
(``peer_ifindex`` of veth, temperatures); they get the label ``kind`` with ``gauge``.

ethtool does not print the interface; it is known only where the command line stands
above (``# ethtool -S eth0``). A file with the output of several calls has several
headers; their counters are told apart by the label ``section``, counted from 1. "no
stats available" is not zero.
"""

import re
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import head_lines, line_end, lines
from patchstudy.records import Capture, Measurement, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": "the number behind the last colon of the line <name>",
}
#: How a file begins that is of ``ethtool -S`` and of nothing else.
OPENS = re.compile(r"NIC statistics:[ \t]*\r?\n")
_HEADER = "NIC statistics:"
_NONE = "no stats available"
_COMMAND = re.compile(r"\S*[#$>]\s*(ethtool\s.*\S)\s*")
_COUNT = re.compile(r"[ \t]*\d{1,20}")
_GAUGE = re.compile(r"ifindex|temperature|voltage|link_speed", re.IGNORECASE)


def sniff(raw: RawFile) -> bool:
    """Say whether its header, or the word that there are no counters, stands on top."""
    top = [line.strip() for line in head_lines(raw)[:2]]
    if len(top) > 1 and _COMMAND.fullmatch(top[0]):
        top = top[1:]
    return bool(top) and top[0] in {_HEADER, _NONE}


def load(raw: RawFile) -> Capture:
    """Read every line as a reading of ``event:<name>``."""
    rows = lines(raw)
    command = _COMMAND.fullmatch(rows[0][1])
    rows = rows[1:] if command else rows
    if all(line.strip() == _NONE for _, line in rows):
        raise CaptureError(raw.path, "the driver offers no counters; this is not zero")
    readings = _readings(raw, rows)
    if not readings:
        raise CaptureError(raw.path, "holds no counter; was it cut short?")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ethtool_s",
        command=command.group(1) if command else None,
        measurements=tuple(readings),
        cumulative=True,
        caveats=line_end(raw),
    )


def _readings(raw: RawFile, rows: list[tuple[int, str]]) -> list[Measurement]:
    """Return the readings of all lines that are no header, told apart by labels."""
    printed: dict[tuple[int, str], int] = {}
    readings: list[Measurement] = []
    section = 0
    several = sum(line.strip() in {_HEADER, _NONE} for _, line in rows) > 1
    for number, line in rows:
        if line.strip() in {_HEADER, _NONE}:
            section += 1
            continue
        name, value = _counter(raw, number, line)
        printed[section, name] = repeat = printed.get((section, name), 0) + 1
        labels = {"kind": "gauge"} if _GAUGE.search(name) else {}
        if several:
            labels["section"] = str(section)
        if repeat > 1:
            labels["repeat"] = str(repeat)
        readings.append(Measurement(metric=f"event:{name}", value=value, labels=labels))
    return readings


def _counter(raw: RawFile, number: int, line: str) -> tuple[str, int]:
    """Return the name and the value of one line."""
    name, _, value = line.strip().rpartition(":")
    if not name.strip() or not _COUNT.fullmatch(value):
        problem = f"{line.strip()!r} is not a name, a colon and a number"
        raise CaptureError(raw.path, problem, where=str(number))
    return name.strip(), int(value)
