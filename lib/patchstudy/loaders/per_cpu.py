"""Tables with a column for every CPU: /proc/interrupts and /proc/softirqs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patchstudy.errors import CaptureError
from patchstudy.loaders.text import lines
from patchstudy.records import RawFile

_START = re.compile(r"\s*CPU\d+\s")
_HEADER = re.compile(r"(?:\s+CPU\d+)+\s*")
_ROW = re.compile(r"\s*(?P<name>[^\s:][^:]{0,30}):(?P<rest>.*)")
_COUNT = re.compile(r"\s*(\d{1,20})(?!\S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: its name, the counts of the CPUs, and the words behind them."""

    line: int
    name: str
    counts: tuple[int, ...]
    words: str


def first_row(raw: RawFile) -> str | None:
    """Return the name of the first row below a header of CPUs; None without such."""
    if _START.match(raw.head) is None:
        return None
    rows = raw.text.lstrip("\r\n").split("\n", 2)
    if len(rows) < 2 or _HEADER.fullmatch(" " + rows[0]) is None:
        return None
    match = _ROW.fullmatch(rows[1].rstrip("\r"))
    return match["name"].strip() if match else None


def table(raw: RawFile) -> tuple[list[str], list[Row]]:
    """Return the numbers of the CPUs and the rows, each name once.

    Raises
    ------
    CaptureError
        If a line is no row, or a name stands twice.
    """
    (_, header), *body = lines(raw)
    cpus = [word.removeprefix("CPU") for word in header.split()]
    rows = [_row(raw, line, cpus) for line in body]
    seen: set[str] = set()
    for row in rows:
        if row.name in seen:
            problem = f"{row.name!r} stands twice; split the file, one reading each"
            raise CaptureError(raw.path, problem, where=str(row.line))
        seen.add(row.name)
    return cpus, rows


def _row(raw: RawFile, line: tuple[int, str], cpus: Sequence[str]) -> Row:
    """Split a row at its first colon, then take one count for each CPU."""
    number, text = line
    match = _ROW.fullmatch(text)
    if match is None:
        problem = f"{text.strip()[:60]!r} is not a name, a colon and counts"
        raise CaptureError(raw.path, problem, where=str(number))
    rest, counts = match["rest"], list[int]()
    while len(counts) < len(cpus) and (count := _COUNT.match(rest)):
        counts.append(int(count[1]))
        rest = rest[count.end() :]
    return Row(
        line=number,
        name=match["name"].strip(),
        counts=tuple(counts),
        words=" ".join(rest.split()),
    )
