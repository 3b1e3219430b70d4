"""The text of ``mpstat`` as it is nearly always, read in one pass for speed.

One call, one table of CPU shares, numbers with two decimals, whole lines. Whatever
differs is left to ``sysstat``, which reads the same values.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from patchstudy.loaders import cpu_shares, sysstat
from patchstudy.loaders.cpu_shares import Record

_HEAD: Final = re.compile(r"CPU +%usr +%nice +%sys +%iowait +%irq +%soft [^\n]*%idle$")
_SLACK: Final = 150  # hundredths of a percent

_Shares = dict[str, dict[str, float]]


@dataclass(slots=True, kw_only=True)
class Plain:
    """What was read.

    Attributes
    ----------
    header
        As ``sysstat.Report`` has it.
    own
        mpstat's averages; none where it was killed.
    since_boot
        Whether it is one report without an interval: means since boot.
    """

    header: dict[str, str]
    records: list[Record]
    own: _Shares
    since_boot: bool


def read(text: str) -> Plain | None:
    """Return the shares of every interval and the averages; None for another text."""
    if "intr/s" in text or "NODE" in text:  # more than one table
        return None
    lines = text.split("\n")
    banner = sysstat.BANNER.match(lines[0])
    if banner is None or lines[-1]:
        return None
    page = _Page()
    for line in lines[1:]:
        if line and not page.take(line):
            return None
    if page.start is None or not page.times:
        return None
    if page.average and not page.average.keys() >= set().union(*page.rows):
        return None
    ends = cpu_shares.ends(page.times, page.start)
    records = [
        Record(start_s=start, end_s=end, cpus=_online(rows))
        for start, end, rows in zip([0.0, *ends], ends, page.rows, strict=False)
    ]
    return Plain(
        header=banner.groupdict(),
        records=records,
        own=_online(page.average),
        since_boot=not page.average and page.times == [page.start],
    )


def _online(rows: _Shares) -> _Shares:
    return {cpu: shares for cpu, shares in rows.items() if shares}


@dataclass(slots=True)
class _Page:
    """What was read so far; ``place`` is what stands in front of the last row."""

    head: str = ""
    count: int = 0
    start: int | None = None
    place: str = "\n"
    rows: list[_Shares] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    average: _Shares = field(default_factory=dict)
    latest: _Shares = field(default_factory=dict)

    def take(self, line: str) -> bool:
        """Take in a line; return False where it is not as expected."""
        if line.endswith("%idle"):
            return self._take_head(line)
        if not line.startswith(self.place):
            self._take_place(line)
        point = line[-3:-2]
        if point not in {".", ","}:
            return False
        words = line[len(self.place) :].replace(point, "").split()
        if len(words) != self.count or words[0] in self.latest or words[0] == "-1":
            return False
        try:
            shares = _shares(words)
        except ValueError:
            return False
        self.latest[words[0]] = shares
        return True

    def _take_head(self, line: str) -> bool:
        found = _HEAD.search(line)
        if found is None or (self.head and found[0] != self.head):
            return False
        if self.start is None:
            row = sysstat.place(line)
            if row is None or row[0] is None:
                return False
            self.start = row[0]
        self.head, self.count, self.place = found[0], found[0].count("%") + 1, "\n"
        return True

    def _take_place(self, line: str) -> None:
        """Begin the rows of another time, or the averages."""
        row = sysstat.place(line)
        if row is None:
            self.place, self.count = "", -1
            return
        self.place = line[: row[1]]
        if row[0] is None:
            self.latest = self.average
        else:
            self.latest = {}
            self.rows.append(self.latest)
            self.times.append(row[0])


def _shares(words: list[str]) -> dict[str, float]:
    """Return the shares of a row, usr, nice, sys, iowait, irq, soft, ..., idle.

    They are written in hundredths of a percent, which is exact and fast.

    Raises
    ------
    ValueError
        If a number is none, or they are no shares.
    """
    values = [*map(int, words[1:])]
    total = sum(values)
    if not 10_000 - _SLACK <= total <= 10_000 + _SLACK or min(values) < 0:
        if any(values):
            raise ValueError(total)
        return {}
    away = values[-1] + values[3]
    shares = {"busy": max(0, 10_000 - away) / 1e4, "soft": values[5] / 1e4}
    if len(values) > 7:
        shares["steal"] = values[6] / 1e4
    return shares
