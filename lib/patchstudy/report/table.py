"""What a report shows besides text: tables, notes and figures, all safe to print.

Every string may come from a raw file and is not trusted: markup in it is shown as
text, control characters as escapes.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final, Literal, Self

from patchstudy.errors import printable

Align = Literal["left", "right"]

KIND: Final = re.compile(r"[a-z][a-z0-9-]*")

#: A cell of which nothing is known.
NOTHING: Final = "-"

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&$])")
_LONG: Final = 26  # characters; longer cells may be broken into lines
#: Letters from which a column takes a third of a page rather than a high cell.
_WIDE: Final = 120
_SPACES: Final = frozenset("\u00a0\u2009\u202f")  # fixed and thin spaces


@dataclass(frozen=True, slots=True)
class Column:
    """Name and alignment of one column; numbers stand to the right.

    By a ``choice`` column, rows can be picked where the page is read in a browser.
    """

    name: str
    align: Align = "left"
    choice: bool = False


class Linked(str):
    """A cell whose words lead somewhere: text and address, one pair or several.

    An address is ``#name`` for a named table, or a path from the report's folder.
    """

    links: tuple[tuple[str, str], ...]

    def __new__(cls, *links: tuple[str, str]) -> Self:
        """Make the text of the cell from the texts of its links."""
        made = super().__new__(cls, ", ".join(text for text, _ in links))
        made.links = links
        return made


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as people read them, with a caption; the first column names the row.

    A notebook cell that ends in a table shows it.

    Attributes
    ----------
    name
        Where a link to the table leads; may be empty.
    folded
        True for a long table that a page shows when its caption is clicked.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    name: str = ""
    folded: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"row {row!r} has {len(row)} cells; "
                    f"the table has {len(self.columns)} columns"
                )

    def without_blanks(self) -> "Table":
        """Return the table without columns that hold ``-`` in every row."""
        told = [
            at
            for at in range(len(self.columns))
            if any(row[at] != NOTHING for row in self.rows)
        ]
        return replace(
            self,
            columns=tuple(self.columns[at] for at in told),
            rows=tuple(tuple(row[at] for at in told) for row in self.rows),
        )

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, str]:
        # A notebook aligns every cell to the right, whatever its class.
        left = 'style="text-align:left" class="left'
        html = to_html(self).replace('class="left', left)
        if self.folded:
            summary = f"<summary>{shown(self.caption)}</summary>"
            html = f"<details>{summary}\n{html}\n</details>"
        return {"text/html": html, "text/plain": to_text(self)}


@dataclass(frozen=True, slots=True)
class Note:
    """One paragraph of a kind.

    Attributes
    ----------
    kind
        How it is meant, in lower case: a verdict (``accept``, ``veto``, ``notyet``,
        ``reject``, ``mixed``), ``caveat``, ``question``, ``empty`` where a section
        has nothing to say, or ``text`` for an ordinary paragraph.
    text
        The words; they carry the meaning without the kind.
    title
        A word or two that stand before the text; may be empty.
    """

    kind: str
    text: str
    title: str = ""

    def __post_init__(self) -> None:
        if not KIND.fullmatch(self.kind):
            raise ValueError(f"kind {self.kind!r} is not a lower-case word")

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, str]:
        title = f"{self.title.rstrip(':')}: " if self.title else ""
        words = f"{title}{self.text}"
        return {"text/html": note_to_html(self), "text/plain": visible(words)}


@dataclass(frozen=True, slots=True)
class Vector:
    """A figure as SVG.

    Attributes
    ----------
    svg
        The file, in UTF-8.
    alt
        What the figure shows, for those who do not see it.
    caption
        One sentence below it; may be empty.
    """

    svg: bytes
    alt: str
    caption: str

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        svg = {"image/svg+xml": self.svg.decode("utf-8"), "text/plain": self.alt}
        return svg, {"image/svg+xml": {"alt": self.alt, "caption": self.caption}}


def to_html(table: Table) -> str:
    """Return a ``<table>`` with caption, header scopes and nothing but class names."""
    cells = [_html_class(table, at) for at in range(len(table.columns))]
    heads = [
        style + (" choice" if column.choice else "")
        for style, column in zip(cells, table.columns, strict=True)
    ]
    names = zip(heads, table.columns, strict=True)
    head = "".join(_html_cell("th", style, one.name, "col") for style, one in names)
    body = "".join(_html_row(cells, row) for row in table.rows)
    kind = f' id="{shown(table.name)}"' if table.name else ""
    kind += ' class="folded"' if table.folded else ""
    return (
        f"<table{kind}>\n<caption>{shown(table.caption)}</caption>\n"
        f"<thead>\n<tr>{head}</tr>\n</thead>\n<tbody>\n{body}</tbody>\n</table>"
    )


def note_to_html(note: Note) -> str:
    """Return a ``<p>`` whose class is the kind; its title is strong."""
    title = f"<strong>{shown(note.title)}</strong> " if note.title else ""
    return f'<p class="note {note.kind}">{title}{shown(note.text)}</p>'


def to_markdown(table: Table) -> str:
    """Return the caption and a pipe table; markup in cells is escaped."""
    names = _pipes(column.name for column in table.columns)
    rule = _pipes("---:" if c.align == "right" else ":---" for c in table.columns)
    rows = [_pipes(map(as_markdown, row)) for row in table.rows]
    return "\n".join([as_markdown(table.caption), "", names, rule, *rows]) + "\n"


def as_markdown(text: str) -> str:
    """Return text for Markdown: markup as text, control characters as escapes."""
    return _MARKDOWN.sub(r"\\\1", visible(text))


def to_text(table: Table) -> str:
    """Return the caption and the rows, aligned for a terminal or a mail."""
    head = [visible(column.name) for column in table.columns]
    body = [[visible(cell) for cell in row] for row in table.rows]
    widths = [max(map(_width, cells)) for cells in zip(head, *body, strict=True)]
    lines = [head, ["-" * width for width in widths], *body]
    aligns: list[Align] = [column.align for column in table.columns]
    rows = [_line(cells, widths, aligns) for cells in lines]
    return "\n".join([visible(table.caption), "", *rows])


def visible(text: str) -> str:
    """Return one line without control or formatting characters; spaces may be fixed."""
    if text.isprintable():
        return str(text)
    return "".join(one if one in _SPACES else printable(one) for one in text)


def cell_of_csv(text: str) -> str:
    """Return text for a cell of CSV that no spreadsheet takes for a formula.

    As OWASP says, an apostrophe before the first sign makes it text.
    """
    told = visible(text)
    return f"'{told}" if told.startswith(("=", "+", "-", "@")) else told


def visible_lines(text: str) -> str:
    """Return lines without control characters, colours of a terminal or tabs."""
    plain = _ANSI.sub("", text).replace("\r\n", "\n").expandtabs(4)
    return "\n".join(visible(line) for line in plain.split("\n"))


def shown(text: str) -> str:
    """Return text for HTML: markup as text, control characters as escapes."""
    return escape(visible(text))


def _html_class(table: Table, at: int) -> str:
    """Alignment, and whether the column holds more than fits on a line."""
    longest = max((len(row[at]) for row in table.rows), default=0)
    kinds = " long" * (longest > _LONG) + " wide" * (longest > _WIDE)
    return table.columns[at].align + kinds


def _html_row(styles: Sequence[str], row: Sequence[str]) -> str:
    first = "".join(_html_cell("th", styles[0], cell, "row") for cell in row[:1])
    rest = zip(styles[1:], row[1:], strict=True)
    cells = "".join(_html_cell("td", style, cell) for style, cell in rest)
    return f"<tr>{first}{cells}</tr>\n"


def _html_cell(tag: str, style: str, text: str, scope: str = "") -> str:
    attributes = f' scope="{scope}"' if scope else ""
    words = _html_links(text) if isinstance(text, Linked) else shown(text)
    return f'<{tag}{attributes} class="{style}">{words}</{tag}>'


def _html_links(cell: Linked) -> str:
    return ", ".join(
        f'<a href="{shown(target)}">{shown(text)}</a>' for text, target in cell.links
    )


def _pipes(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _line(cells: Sequence[str], widths: Sequence[int], aligns: Sequence[Align]) -> str:
    columns = zip(cells, widths, aligns, strict=True)
    return "  ".join(_padded(*column) for column in columns).rstrip()


def _padded(cell: str, width: int, align: Align) -> str:
    gap = " " * (width - _width(cell))
    return gap + cell if align == "right" else cell + gap


def _width(text: str) -> int:
    """Columns that a terminal uses."""
    return sum(
        0 if unicodedata.combining(one) else 1 + (_east_asian(one) in "WF")
        for one in text
    )


def _east_asian(character: str) -> str:
    return unicodedata.east_asian_width(character)
