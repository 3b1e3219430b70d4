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

``--groups`` and ``--all-groups`` print the standard counters of IEEE 802.3 and RMON
(``parse_grp`` in netlink/stats.c), as text or as JSON, with the interface. Both give
the names of the text: ``eth-mac-FramesReceivedOK``,
``rx-rmon-etherStatsPkts65to127Octets``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import (
    counter,
    head_lines,
    json_value,
    line_end,
    lines,
    sequence,
)
from patchstudy.records import Capture, Measurement, RawFile

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": (
        "the number behind the last colon of the line <name>; JSON of --groups: "
        "[0].<group>.<counter>"
    ),
}
#: How a file begins that is of ``ethtool -S`` and of nothing else.
OPENS = re.compile(r"NIC statistics:[ \t]*\r?\n")
_HEADER = re.compile(r"(?:NIC|PHY|Standard) (?:statistics|stats for (\S+)):")
_JSON = re.compile(
    r'\s*\[\s*\{\s*"ifname"\s*:\s*"[^"]*"\s*,\s*"(?:eth-\w+|rmon|phydev|phy)"\s*:\s*\{'
)
_NONE = "no stats available"
_COMMAND = re.compile(r"\S*[#$>]\s*(ethtool\s.*\S)\s*")
_COUNT = re.compile(r"[ \t]*\d{1,20}")
_GAUGE = re.compile(r"ifindex|temperature|voltage|link_speed", re.IGNORECASE)


def sniff(raw: RawFile) -> bool:
    """Say whether its header, or the word that there are no counters, stands on top."""
    if _JSON.match(raw.head):
        return True
    top = [line.strip() for line in head_lines(raw)[:2]]
    if len(top) > 1 and _COMMAND.fullmatch(top[0]):
        top = top[1:]
    return bool(top) and _is_header(top[0])


def load(raw: RawFile) -> Capture:
    """Read every line as a reading of ``event:<name>``."""
    if _JSON.match(raw.head):
        return _of_json(raw)
    rows = lines(raw)
    command = _COMMAND.fullmatch(rows[0][1])
    rows = rows[1:] if command else rows
    if all(_says_none(line.strip()) for _, line in rows):
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


def _says_none(line: str) -> bool:
    return line == _NONE or line.startswith("Standard stats for ")


def _is_header(line: str) -> bool:
    return line == _NONE or _HEADER.fullmatch(line) is not None


def _of_json(raw: RawFile) -> Capture:
    """Read the groups of every interface, as ``--json --groups`` prints them."""
    listed = sequence(json_value(raw))
    readings = [
        Measurement(metric=f"event:{name}", value=count, labels=_interface(one))
        for one in listed
        if isinstance(one, dict)
        for group, counters in one.items()
        if isinstance(counters, dict)
        for name, count in _group(raw, group, counters)
    ]
    if not readings:
        raise CaptureError(raw.path, "the driver offers no such counters; not zero")
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="ethtool_s",
        measurements=tuple(readings),
        cumulative=True,
    )


def _interface(told: Mapping[str, object]) -> dict[str, str]:
    return {"interface": str(told["ifname"])} if "ifname" in told else {}


def _group(
    raw: RawFile, group: str, counters: Mapping[str, object]
) -> Iterator[tuple[str, int]]:
    """Yield the counters of a group, a histogram by the names of the text."""
    for name, value in counters.items():
        if not isinstance(value, list):
            yield f"{group}-{name}", counter(raw, value, f"{group}.{name}")
            continue
        for one in value:
            if isinstance(one, dict):
                ends = (one.get("low", 0), one.get("high", 0))
                sizes = f"{ends[0]}toMax" if not ends[1] else f"{ends[0]}to{ends[1]}"
                sizes = str(ends[1]) if not ends[0] else sizes
                full = f"{name.partition('-')[0]}-{group}-etherStatsPkts{sizes}Octets"
                yield full, counter(raw, one.get("val"), f"{group}.{name}")


def _readings(raw: RawFile, rows: list[tuple[int, str]]) -> list[Measurement]:
    """Return the readings of all lines that are no header, told apart by labels."""
    printed: dict[tuple[int, str], int] = {}
    readings: list[Measurement] = []
    section = 0
    several = sum(_is_header(line.strip()) for _, line in rows) > 1
    interface: dict[str, str] = {}
    for number, line in rows:
        if _is_header(line.strip()):
            section += 1
            title = _HEADER.fullmatch(line.strip())
            interface = {"interface": title[1]} if title and title[1] else {}
            continue
        name, value = _counter(raw, number, line)
        printed[section, name] = repeat = printed.get((section, name), 0) + 1
        gauge = {"kind": "gauge"} if _GAUGE.search(name) else {}
        labels = {**interface, **gauge}
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
