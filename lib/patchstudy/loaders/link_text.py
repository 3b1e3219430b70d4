"""The text of ``ip link``: its interfaces and the counters of ``-s``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import lines
from patchstudy.records import RawFile

#: The first line of an interface.
START: Final = re.compile(r"\d+: (?P<name>[^\s@]+)(?:@[^\s:]+)?: <[\w,-]*>(?P<rest>.*)")

_FACT = re.compile(r"\b(mtu|qdisc) (\S+)")
_TITLE = re.compile(r"\s*(RX|TX)( errors)?:((?:\s+[a-z_]+)+)\s*")
_COLUMNS: Final = {
    "mcast": "multicast",
    "collsns": "collisions",
    "overrun": "over_errors",
    "missed": "missed_errors",
    "carrier": "carrier_errors",
    "length": "length_errors",
    "crc": "crc_errors",
    "frame": "frame_errors",
    "fifo": "fifo_errors",
    "aborted": "aborted_errors",
    "window": "window_errors",
    "heartbt": "heartbeat_errors",
    "heartbeat": "heartbeat_errors",
    "transns": "carrier_changes",
}


@dataclass(slots=True)
class Link:
    """One interface: what its set-up is, and its counters by direction and name."""

    name: str
    facts: dict[str, object]
    counters: dict[str, dict[str, int]] = field(default_factory=dict)


def links(raw: RawFile) -> list[Link]:
    """Return the interfaces of the file; those of ``-o`` stand on one line.

    Raises
    ------
    CaptureError
        If a line of counters cannot be read; that of ``-h`` is rounded and refused.
    """
    found: list[Link] = []
    rows = list(_rows(raw))
    for index, (number, line) in enumerate(rows):
        start, title = START.fullmatch(line), _TITLE.fullmatch(line)
        if start:
            found.append(Link(name=start["name"], facts=_facts(start["rest"])))
        elif title and found:
            below = rows[index + 1] if index + 1 < len(rows) else (number, "")
            counts = found[-1].counters.setdefault(title[1].lower(), {})
            counts.update(_counts(raw, title[3].split(), below))
    return found


def _rows(raw: RawFile) -> Iterator[tuple[int, str]]:
    for number, line in lines(raw):
        for part in line.split("\\"):
            yield number, part.rstrip()


def _facts(rest: str) -> dict[str, object]:
    """Return the set-up by the keys of ``ip -j link``."""
    told: dict[str, str] = dict(_FACT.findall(rest))
    return {key: int(one) if one.isdecimal() else one for key, one in told.items()}


def _counts(
    raw: RawFile, columns: Sequence[str], below: tuple[int, str]
) -> dict[str, int]:
    """Return the counters of the line below a title."""
    number, line = below
    words = line.split()
    if len(words) != len(columns) or not all(map(str.isdecimal, words)):
        problem = f"{line.strip()!r} is not {len(columns)} whole numbers"
        todo = "call ip without -h, whose numbers are rounded; or was it cut short?"
        raise CaptureError(raw.path, f"{problem}; {todo}", where=str(number))
    names = [_COLUMNS.get(column, column) for column in columns]
    return dict(zip(names, map(int, words), strict=True))
