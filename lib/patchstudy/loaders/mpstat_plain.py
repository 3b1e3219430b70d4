"""The text of ``mpstat`` as it is nearly always, read in one pass for speed.

One call, one table of CPU shares, numbers with two decimals, whole lines. Whatever
differs is left to ``sysstat``, which reads the same values.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from patchstudy.loaders import cpu_shares, sysstat
from patchstudy.loaders.cpu_shares import Record

#: The banner, an empty line and the first head, with its time and its columns.
_START: Final = re.compile(
    sysstat.BANNER.pattern + r"\n\n(?P<when>[^\n%]*?[ \t])(?P<head>CPU +%usr +%nice +"
    r"%sys +%iowait +%irq +%soft [^\n]*%idle)\n"
)
#: What stands in front of a row with the blanks behind it, its CPU and its numbers.
_ROW: Final = re.compile(
    r"^(\S[^\n%]{0,40}?[ \t]+)(all|\d+)((?: +\d+[.,]\d\d){8,})$", re.MULTILINE
)
_SLACK: Final = 150  # hundredths of a percent

_Shares = dict[str, dict[str, float]]


@dataclass(slots=True)
class Plain:
    """What was read.

    Attributes
    ----------
    header
        As ``sysstat.Report`` has it.
    records
        The shares of every interval.
    own
        mpstat's averages; none where it was killed.
    since_boot
        Whether it is one report without an interval: means since boot.
    """

    header: Mapping[str, str]
    records: list[Record]
    own: _Shares
    since_boot: bool


def read(text: str) -> Plain | None:
    """Return the shares of every interval and the averages; None for another text."""
    start = _START.match(text)
    if start is None or text[-1] != "\n" or "intr/s" in text:
        return None  # another text, or more than one table
    rows = _ROW.findall(text, start.end())
    heads = text.count(start["head"] + "\n")
    if text.count("\n") != 1 + text.count("\n\n") + heads + len(rows):
        return None
    first = sysstat.time_of(start["when"])
    told = _tables(rows, start["head"].count("%"))
    if told is None or first is None or first[0] is None:
        return None
    times, tables, own = told
    since_boot = not own and times == [first[0]]
    ends = [1.0] if since_boot else cpu_shares.ends(times, first[0])
    records = [
        Record(start_s=begin, end_s=end, cpus=cpus)
        for begin, end, cpus in zip([0.0, *ends], ends, tables, strict=False)
    ]
    return Plain(start.groupdict(), records, own, since_boot)


def _tables(
    rows: Sequence[tuple[str, str, str]], count: int
) -> tuple[list[int], list[_Shares], _Shares] | None:
    """Return the time and the shares of every interval, and the averages."""
    times: list[int] = []
    tables: list[_Shares] = []
    average: _Shares = {}
    seen: set[str] = set()
    place, latest = "", average
    for when, cpu, numbers in rows:
        if when.rstrip() != place or cpu in seen:  # two may share a second
            row = sysstat.time_of(when)
            if row is None or (row[0] is None and average):
                return None
            place, seen = when.rstrip(), set()
            latest = average if row[0] is None else {}
            if row[0] is not None:
                tables.append(latest)
                times.append(row[0])
        shares = _shares(numbers, count)
        if shares is None:
            return None
        seen.add(cpu)
        if shares:
            latest[cpu] = shares
    if not times or (average and not average.keys() >= {*chain(*tables)}):
        return None
    return times, tables, average


def _shares(numbers: str, count: int) -> dict[str, float] | None:
    """Return the shares of a row, usr, nice, sys, iowait, irq, soft, ..., idle.

    They are read in hundredths of a percent, which is exact and fast. A CPU that was
    offline has none; None where they are no shares.
    """
    try:
        values = [*map(int, numbers.replace(numbers[-3], "").split())]
    except ValueError:  # a point here and a comma there
        return None
    total = sum(values)
    if len(values) != count:
        return None
    if not 10_000 - _SLACK <= total <= 10_000 + _SLACK:
        return None if total else {}
    away = values[-1] + values[3]
    shares = {
        "busy": (10_000 - away) / 1e4 if away < 10_000 else 0.0,
        "soft": values[5] / 1e4,
    }
    if count > 7:
        shares["steal"] = values[6] / 1e4
    return shares
