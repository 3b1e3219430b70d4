"""Read what a notebook's outputs show, as text, tables and pictures.

Both the HTML page and the PDF are written from what comes out here, never from markup
that an output brought along.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final
from urllib.parse import unquote

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement

from patchstudy.errors import StudyError
from patchstudy.report.lead import Intervals, Marks, read_intervals, read_marks
from patchstudy.report.table import KIND, Align, Column, Linked, Note, Table

_IMAGES: Final = ("image/svg+xml", "image/png", "image/jpeg")
_PREFERRED: Final = (*_IMAGES, "text/html", "text/markdown", "text/plain")
_SCHEMES: Final = frozenset({"http", "https", "mailto"})
_NUMBER: Final = re.compile(r"[-+−±<>~≈]?\s*\d[\d.,\s]*(e[-+]?\d+)?\s*\D{0,12}")
_UNSEEN: Final = frozenset(
    {"script", "style", "template", "noscript", "head", "title", "summary"}
)
_BLOCKS: Final = frozenset(
    {"p", "pre", "li", "dt", "dd", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6"}
)
_WIDEST_SPAN: Final = 100
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,99}")

Part = Table | Note | Marks | Intervals
_LISTS: Final = {"marks": read_marks, "intervals": read_intervals}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A figure of a notebook.

    Attributes
    ----------
    mime
        ``image/svg+xml``, ``image/png`` or ``image/jpeg``.
    data
        The file.
    alt, caption
        As the figure brought them; ``alt`` is never empty.
    """

    mime: str
    data: bytes
    alt: str
    caption: str


def preferred(data: Mapping[str, Any]) -> str:
    """Return the type in which an output is shown: a picture, a table, then text.

    An output of none of the known types has none: the result is empty.
    """
    return next((mime for mime in _PREFERRED if data.get(mime)), "")


def picture(output: Mapping[str, Any], mime: str) -> Picture | None:
    """Return the picture of an output, or nothing where ``mime`` is not one."""
    if mime not in _IMAGES:
        return None
    about = output.get("metadata", {}).get(mime, {})
    return Picture(
        mime=mime,
        data=_decoded(output["data"][mime], mime),
        alt=str(about.get("alt") or "Figure without a description"),
        caption=str(about.get("caption") or ""),
    )


def may_link(url: str) -> bool:
    """Tell whether a link may stay one: to the web, to mail, or to a place nearby."""
    before, colon, _ = re.split(r"[/?#]", unquote(url), maxsplit=1)[0].partition(":")
    return not colon or before.strip().lower() in _SCHEMES


@lru_cache(maxsize=128)  # the page asks twice for each output of a study, the PDF once
def parts(html: str) -> tuple[Part, ...]:
    """Read the tables and paragraphs of an HTML output, in order; the rest is dropped.

    Scripts, styles, images and attributes do not come through: what comes out is text
    in tables, lists and notes, and is escaped again by whoever writes it. A link stays
    where a cell holds nothing else and ``may_link`` allows it.
    """
    # The outer element keeps the parser from taking a file name for a mistake.
    soup = BeautifulSoup(f"<div>{html}</div>", "html.parser")
    return tuple(_parts(soup))


def _decoded(data: str, mime: str) -> bytes:
    if mime == "image/svg+xml":
        return data.encode("utf-8")
    try:
        return base64.b64decode(data)
    except binascii.Error as error:
        raise StudyError(f"an output of type {mime} is damaged: {error}") from error


def _parts(soup: Tag) -> Iterator[Part]:
    # A stack, not recursion: foreign markup can be nested as deep as it likes.
    waiting: list[PageElement] = [soup]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Tag) and node.name not in _UNSEEN:
            part = _part(node)
            if part is not None:
                yield part
            elif node.name not in _BLOCKS:
                waiting.extend(reversed(node.contents))
        elif type(node) is NavigableString and node.strip():
            yield Note("text", " ".join(node.split()))


def _part(tag: Tag) -> Part | None:
    """Read what stands for itself; None for what only holds others, or nothing."""
    if tag.name == "table":
        return _read_table(tag)
    if tag.name == "ul":
        readers = [_LISTS[one] for one in _classes(tag) if one in _LISTS]
        return readers[0](tag) if readers else None
    return _note(tag) if tag.name in _BLOCKS and _text(tag) else None


def _note(tag: Tag) -> Note:
    """Read a paragraph; what a note of ours has as its title stays one."""
    kind, title = _kind(tag), tag.find("strong", recursive=False)
    text = _text(tag)
    if "note" not in _classes(tag) or title is None or tag.contents[0] is not title:
        return Note(kind, text)
    words = _text(title)
    return Note(kind, text.removeprefix(words).lstrip(), words)


def _kind(tag: Tag) -> str:
    kinds = [one for one in _classes(tag) if one != "note" and KIND.fullmatch(one)]
    return kinds[0] if kinds else "text"


def _classes(tag: Tag) -> list[str]:
    found = tag.get("class")
    return [found] if isinstance(found, str) else list(found or ())


def _text(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split())


def _read_table(tag: Tag) -> Table:
    lines = tag.find_all("tr")
    head = [line for line in lines if _in(line, "thead")]
    body = [line for line in lines if not _in(line, "thead")]
    rows = _grid(body, _cell)
    names = [" ".join(filter(None, cells)) for cells in _turned(_grid(head, _text))]
    width = max([len(names), *(len(row) for row in rows)])
    rows = [row + [""] * (width - len(row)) for row in rows]
    names += [""] * (width - len(names))
    aligns = _aligns(body or head, rows, width)
    choices = _choices(head, width)
    columns = tuple(map(Column, names, aligns, choices))
    caption = tag.find("caption")
    return Table(
        columns,
        tuple(map(tuple, rows)),
        _text(caption) if caption else "",
        _name(tag),
        "folded" in _classes(tag),
    )


def _choices(head: Sequence[Tag], width: int) -> list[bool]:
    """Tell which columns a single row of headings marks as choices."""
    cells = head[0].find_all(["th", "td"]) if len(head) == 1 else []
    found = ["choice" in _classes(cell) for cell in cells]
    return found if len(found) == width else [False] * width


def _name(tag: Tag) -> str:
    found = str(tag.get("id", ""))
    return found if _NAME.fullmatch(found) else ""


def _cell(tag: Tag) -> str:
    """Text of a cell, with its links where it holds nothing else."""
    links = [(_text(one), str(one.get("href", ""))) for one in tag.find_all("a")]
    if links and all(url and may_link(url) for _, url in links):
        linked = Linked(*links)
        if linked == " ".join(tag.get_text().split()):
            return linked
    return _text(tag)


def _in(tag: Tag, name: str) -> bool:
    return tag.parent is not None and tag.parent.name == name


def _turned(rows: list[list[str]]) -> list[tuple[str, ...]]:
    return list(zip_longest(*rows, fillvalue=""))


def _grid(lines: Sequence[Tag], read: Callable[[Tag], str]) -> list[list[str]]:
    """Cells by row; a cell over several rows or columns is followed by empty ones."""
    rows: list[list[str]] = []
    open_below: dict[int, int] = {}  # rows still covered from above, by column
    for line in lines:
        row: list[str] = []
        for cell in line.find_all(["th", "td"]):
            _fill(row, open_below)
            span, depth = _span(cell, "colspan"), _span(cell, "rowspan")
            row += [read(cell)] + [""] * (span - 1)
            open_below |= dict.fromkeys(range(len(row) - span, len(row)), depth)
        _fill(row, open_below)
        rows.append(row)
        open_below = {at: left - 1 for at, left in open_below.items() if left > 1}
    return rows


def _fill(row: list[str], covered: dict[int, int]) -> None:
    while len(row) in covered:
        row.append("")


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name, "1"))
    known = value.isascii() and value.isdecimal() and len(value) < 6
    return min(max(int(value), 1), _WIDEST_SPAN) if known else 1


def _aligns(lines: Sequence[Tag], rows: list[list[str]], width: int) -> list[Align]:
    """As the classes of the first row say, else right where all cells are numbers."""
    first = lines[0].find_all(["th", "td"]) if lines else []
    said = [set(_classes(cell)) & {"left", "right"} for cell in first]
    if len(said) == width and all(said):
        return ["right" if "right" in one else "left" for one in said]
    columns = list(zip(*rows, strict=True)) or [()] * width
    return ["right" if _numbers(cells) else "left" for cells in columns]


def _numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(_NUMBER.fullmatch(cell) for cell in filled)
