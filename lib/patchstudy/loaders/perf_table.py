"""The tables that ``perf report`` and ``perf diff`` print; shared by their loaders.

``hists__fprintf`` in tools/perf/ui/stdio/hist.c: comments with the event, the names of
the columns, dots as wide as each column, then rows. With ``-t`` the columns are
separated by that character and there are no dots. Lines of call graphs, and chains of
``-g folded`` (a percentage that does not stand in its column), are no rows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from patchstudy.records import RawFile

_EVENT: Final = re.compile(
    r"# (?:Samples: (?P<samples>\d+[KMG]?)\s+of (?P<of>events?) '(?P<event>.*?)'.*|"
    r"Event '(?P<diff>.*)')"
)
_COUNT: Final = re.compile(r"# Event count \(approx\.\): (\d+)")
_LOST: Final = re.compile(r"# Total Lost Samples: (\d+)")
_NAMES: Final = re.compile(r"#\s+(?:Overhead|Children|Baseline|Samples|Self)\b")
_SEPARATOR: Final = re.compile(
    r"# *(?:Overhead|Children|Baseline|Samples|Self)(?:/\d+)? *([,|;:\t])"
)
_NUMBERS: Final = re.compile(r"\d+|(?:[-+]?\d+\.\d+%\s*)+")
_PERCENT: Final = re.compile(r"(?:[-+]|(?<!\d))\d{1,9}\.\d\d%?")


@dataclass(slots=True)
class Section:
    """The table of one event.

    Attributes
    ----------
    event
        As printed; of a group ``anon group { a, b }``, or ``group { a, b }``.
    count
        Sum of the periods, where it is told.
    lost
        Lost samples of the whole file, where told.
    columns
        Names, in order.
    rows
        A cell a column, without the blanks around it.
    """

    event: str
    count: int | None = None
    lost: int | None = None
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def cell(self, row: tuple[str, ...], name: str) -> str:
        """Return the cell of a column; empty where there is no such column."""
        return row[self.columns.index(name)] if name in self.columns else ""


def named(raw: RawFile, first: tuple[str, ...]) -> bool:
    """Say whether the names of the columns begin with one of these."""
    found = (line for line in _lines(raw.text[:65536]) if _NAMES.match(line))
    line = next(found, "")
    return line.lstrip("# ").startswith(first) and line != ""


def sections(raw: RawFile) -> Iterator[Section]:
    """Yield the table of every event."""
    table = _Table()
    for line in _lines(raw.text):
        if line.startswith("#"):
            done = table.section if _EVENT.match(line) else None
            table.comment(line)
            if done:
                yield done
        elif table.section and (row := table.row(line)):
            table.section.rows.append(row)
    if table.section:
        yield table.section


#: More columns than perf has sort keys: a ruler of that many is none.
_MOST_COLUMNS: Final = 200


class _Table:
    """The table that is being read, and where its columns are."""

    def __init__(self) -> None:
        self.section: Section | None = None
        self._lost: int | None = None
        self._header = ""
        self._separator = ""
        self._spans: list[tuple[int, int]] = []

    def comment(self, line: str) -> None:
        """Read a comment: the event, its count, the names and widths of columns."""
        if told := _LOST.match(line):
            self._lost = int(told[1])
        elif event := _EVENT.match(line):
            name = event["event"] or event["diff"]
            if event["of"] == "events" and not name.endswith("}"):
                name = f"group {{ {name} }}"  # as --group names events of its own
            self.section = Section(event=name, lost=self._lost)
            self._spans, self._separator = [], ""
        elif self.section is not None and not self.section.columns:
            self._columns(self.section, line)

    def _columns(self, section: Section, line: str) -> None:
        if count := _COUNT.match(line):
            section.count = int(count[1])
        elif _NAMES.match(line):
            self._header = line
            if split := _SEPARATOR.match(line):
                self._separator = split[1]
                names = line[1:].split(self._separator)
                section.columns = tuple(map(str.strip, names))
        elif line.startswith("# ..") and self._header:
            spans = [one.span() for one in re.finditer(r"\.+", line)]
            if len(spans) <= _MOST_COLUMNS:
                self._spans = spans
                section.columns = self._cells(self._header)

    def _cells(self, line: str) -> tuple[str, ...]:
        ends = [*(end for _start, end in self._spans[:-1]), None]
        starts = [start for start, _end in self._spans]
        return tuple(
            line[start:end].strip() for start, end in zip(starts, ends, strict=True)
        )

    def row(self, line: str) -> tuple[str, ...]:
        """Return the cells of a row; none if the line is none."""
        columns = self.section.columns if self.section else ()
        if self._separator:
            cells = tuple(map(str.strip, line.split(self._separator, len(columns) - 1)))
            return cells if len(cells) == len(columns) else ()
        if not self._spans or not line.startswith(" "):
            return ()
        first = line[: self._spans[0][1]].strip()
        blank = not first and "".join(columns).startswith("Baseline")
        cells = self._cells(line)
        return cells if (blank or _NUMBERS.fullmatch(first)) and cells[-1] else ()


def _lines(text: str) -> list[str]:
    """Return the whole lines: a symbol at a cut would be another one."""
    return text.replace("\r\n", "\n").split("\n")[:-1]


def percents(cell: str) -> list[float]:
    """Return the percentages of a cell as shares; of a group there are several."""
    return [round(float(one.rstrip("%")) / 100, 6) for one in _PERCENT.findall(cell)]


def symbol(cell: str) -> str:
    """Return a symbol without the mark of where it ran, and the address of ``-v``."""
    return re.sub(r"^(?:0x[0-9a-f]+ +\S +)?\[[\w.]\] ", "", cell)
