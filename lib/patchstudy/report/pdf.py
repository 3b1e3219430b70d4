"""An executed notebook becomes a PDF for paper and archives, by way of Typst.

All text goes into the Typst source as string literals, never as markup: nothing that
stands in a raw file or a cell is ever read as Typst code. Code cells are left out.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import mistune
import typst
from matplotlib.ft2font import FT2Font
from mistune.util import unescape
from nbformat import NotebookNode

from patchstudy.errors import StudyError, printable
from patchstudy.report.columns import FONTS, widths
from patchstudy.report.lead import SIGNS, Interval, Intervals, Mark, Marks
from patchstudy.report.outputs import (
    Part,
    Picture,
    may_link,
    parts,
    picture,
    preferred,
)
from patchstudy.report.pages import pruned
from patchstudy.report.table import Note, visible, visible_lines

_STYLE: Final = Path(__file__).parent / "template" / "report.typ"
_FAMILIES: Final = ("DejaVuSans.ttf", "DejaVuSans-*.ttf", "DejaVuSansMono*.ttf")

_STYLES: Final = {"strong": "strong", "emphasis": "emph", "strikethrough": "strike"}

_MOST_ROWS: Final = 200  # Typst needs seconds for thousands; the page has them all
_MOST_LINES: Final = 200
_LONG_WORD: Final = re.compile(r"\S{18,}")
#: A number stays on one line with its unit, both ends of an interval if they are short;
#: a line may break before the interval, and between two numbers.
_TOGETHER: Final = re.compile(
    r"(?<=\d) (?!(?:to|in|and|of)\b|[\[(])|(?<=,) (?=[^\[\]]{1,5}\])"
)
_LONG_LINE: Final = re.compile(r"\S{80,}")
_BREAK: Final = re.compile(r"([/_:.,=&-]|\w{8})(?=\S)")
_MAY_BREAK: Final = r"\1" + "\u200b"
_LAYOUT: Final = frozenset("\n\u200b")


def to_pdf(notebook: NotebookNode, *, title: str, subtitle: str) -> bytes:
    """Return the PDF of an executed notebook.

    Parameters
    ----------
    notebook
        Its first heading is left out where it repeats the title.
    title
        Stands at the top of the first page and in the header of the others.
    subtitle
        One line below the title; may be empty.

    Returns
    -------
    bytes
        A4, tagged, with bookmarks; equal for equal notebooks on one platform.

    Raises
    ------
    StudyError
        A figure is damaged.
    """
    source, pictures = to_typst(notebook, title=title, subtitle=subtitle)
    with tempfile.TemporaryDirectory(prefix="patchstudy-") as name:
        folder = Path(name)
        for font in _fonts():
            shutil.copyfile(font, folder / font.name)
        shutil.copyfile(_STYLE, folder / _STYLE.name)
        for number, one in enumerate(pictures):
            (folder / _file_name(number, one)).write_bytes(one.data)
        main = folder / "main.typ"
        main.write_text(source, encoding="utf-8")
        return _compiled(main)


#: So many parts at the end of a document stand on one page.
_ENDING: Final = 3


def to_typst(
    notebook: NotebookNode, *, title: str, subtitle: str
) -> tuple[str, list[Picture]]:
    """Return the Typst source of a notebook and the pictures it shows, in order."""
    document = _Document(title=title, subtitle=subtitle, levels=[], pictures=[])
    parts = list(filter(None, document.blocks(pruned(notebook))))
    if len(parts) > _ENDING:  # no last page with a line alone
        end = "\n\n".join(parts[-_ENDING:])
        parts[-_ENDING:] = [f"#block(breakable: false)[\n{end}\n]"]
    body = "\n\n".join(parts)
    head = (
        '#import "report.typ": grid-of, intervals-of, marks-of, note, report\n'
        f"#show: report.with({_string(title)}, {_string(subtitle)})\n\n"
    )
    return f"{head}{body}\n", document.pictures


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """What must be known about the document so far while it is written."""

    title: str
    subtitle: str
    levels: list[int]
    pictures: list[Picture]

    def blocks(self, notebook: NotebookNode) -> Iterator[str]:
        """Typst source of everything shown, code cells left out."""
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                yield from self.markdown(cell.source)
            elif cell.cell_type == "raw":
                yield _raw(cell.source)
            for output in cell.get("outputs", []):
                yield from self.output(output)

    def markdown(self, source: str) -> Iterator[str]:
        for token in _tokens(source):
            if token["type"] == "heading":
                yield self.heading(token)
            elif token["type"] == "paragraph":
                # It introduces what follows: keep both on one page.
                yield f"#block(sticky: true)[{_block(token)}]"
            else:
                yield _block(token)

    def heading(self, token: dict[str, Any]) -> str:
        level = token["attrs"]["level"]
        if level == 1 and not self.levels and _words(token) == self.title:
            return ""
        # Screen readers need levels without gaps: count the headings that hold it.
        while self.levels and self.levels[-1] >= level:
            self.levels.pop()
        self.levels.append(level)
        return f"#heading(level: {len(self.levels)})[{_inline(token)}]"

    def output(self, output: NotebookNode) -> Iterator[str]:
        if output.output_type == "stream":
            yield _raw(output.text)
        elif output.output_type == "error":
            yield _raw("\n".join(output.traceback))
        else:
            yield from self.data(output)

    def new(self, part: Part) -> bool:
        """Say whether a part is more than the question below the title."""
        return not (
            isinstance(part, Note)
            and part.kind == "question"
            and part.text == self.subtitle
        )

    def data(self, output: NotebookNode) -> Iterator[str]:
        mime = preferred(output.data)
        found = picture(output, mime)
        if found:
            self.pictures.append(found)
            yield _figure(len(self.pictures) - 1, found)
        elif mime == "text/html":
            yield from map(_part, filter(self.new, parts(output.data[mime])))
        elif mime == "text/markdown":
            yield from self.markdown(output.data[mime])
        elif mime:
            yield _raw(output.data[mime])


def _tokens(source: str) -> list[dict[str, Any]]:
    parse = mistune.create_markdown(renderer=None, plugins=["table", "strikethrough"])
    tokens = parse(visible_lines(source))
    assert not isinstance(tokens, str)  # only renderers make text
    return tokens


def _block(token: dict[str, Any]) -> str:
    kind = token["type"]
    if kind in {"paragraph", "block_text"}:
        return _inline(token)
    if kind == "list":
        return _list(token)
    if kind == "table":
        return _markdown_table(token)
    return _simple_block(token)


def _simple_block(token: dict[str, Any]) -> str:
    match token["type"]:
        case "block_code":
            return _raw(token["raw"])
        case "block_quote":
            return f"#quote[{_blocks(token)}]"
        case "thematic_break":
            return "#line(length: 100%, stroke: .4pt + luma(180))"
        case "heading":
            return f"#strong[{_inline(token)}]"  # within a list or a quotation
    return _text(token["raw"]) if token.get("raw", "").strip() else ""


def _blocks(token: dict[str, Any]) -> str:
    return "\n\n".join(filter(None, map(_block, token["children"])))


def _list(token: dict[str, Any]) -> str:
    items = ", ".join(f"[{_blocks(item)}]" for item in token["children"])
    tight = "true" if token.get("tight", True) else "false"
    if not token["attrs"].get("ordered"):
        return f"#list(tight: {tight}, {items})"
    start = token["attrs"].get("start", 1)
    return f"#enum(tight: {tight}, start: {start}, {items})"


def _inline(token: dict[str, Any]) -> str:
    return "".join(map(_span, token.get("children", [])))


def _words(token: dict[str, Any]) -> str:
    return token.get("raw") or "".join(map(_words, token.get("children", [])))


def _span(token: dict[str, Any]) -> str:
    kind = token["type"]
    if kind in _STYLES:
        return f"#{_STYLES[kind]}[{_inline(token)}]"
    match kind:
        case "codespan":
            return f"#raw({_string(token['raw'])})"
        case "link":
            return _link(token)
        case "image":
            return f"{_text('[')}{_inline(token)}{_text(']')}"
    return _plain(token)


def _plain(token: dict[str, Any]) -> str:
    match token["type"]:
        case "softbreak":
            return _text(" ")
        case "linebreak":
            return "#linebreak()"
        case "text":
            return _text(unescape(token["raw"]))
    return _text(token["raw"]) if "raw" in token else _inline(token)


def _link(token: dict[str, Any]) -> str:
    url = token["attrs"]["url"]
    if not may_link(url):
        return f"{_inline(token)}{_text(f' ({url})')}"
    if url.startswith("#"):  # a place on the page, not in the PDF
        return _inline(token)
    return f"#link({_string(url)})[{_inline(token)}]"


def _markdown_table(token: dict[str, Any]) -> str:
    head = token["children"][0]["children"]
    aligns = [cell["attrs"].get("align") or "left" for cell in head]
    rows = [
        [_inline(cell) for cell in row["children"]]
        for part in token["children"][1:]
        for row in part["children"]
    ]
    return _grid(aligns, [_inline(cell) for cell in head], rows, "")


def _part(part: Part) -> str:
    if isinstance(part, Note):
        title = f"#strong[{_text(part.title)}] " if part.title else ""
        return f"#note({_string(part.kind)})[{title}{_text(part.text)}]"
    if isinstance(part, Marks):
        return f"#marks-of({_string(part.title)}, {', '.join(map(_mark, part.items))})"
    if isinstance(part, Intervals):
        rows = ", ".join(map(_interval, part.items))
        return f"#intervals-of({_string(part.caption)}, {rows})"
    if part.folded:
        return f"- {_text(f'{part.caption}: in the HTML report and report.json')}"
    aligns = [column.align for column in part.columns]
    names = [_cell(column.name, "left") for column in part.columns]
    rows = [list(map(_cell, row, aligns)) for row in part.rows[:_MOST_ROWS]]
    grid = _grid(aligns, names, rows, part.caption)
    left_out = len(part.rows) - len(rows)
    if not left_out:
        return grid
    return f"{grid}\n\n{_text(f'{left_out} more rows stand in the HTML report.')}"


def _mark(one: Mark) -> str:
    words = (SIGNS[one.mood], one.name, one.word, one.detail)
    return f"({_string(one.mood)}, {', '.join(map(_string, words))})"


def _interval(one: Interval) -> str:
    words = (one.mood, one.what, one.where, one.values)
    told = (one.change, one.verdict, one.runs)
    at = ", ".join(f"{place:g}%" for place in one.places or ())
    return f"({', '.join(map(_string, (*words, *told)))}, ({at}))"


def _grid(
    aligns: Sequence[str],
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str,
) -> str:
    """A table from Typst content; its letters get smaller the wider it is."""
    if not names:
        return ""
    cells = "\n".join("".join(f"[{cell}], " for cell in row) for row in rows)
    head = "".join(f"[{name}], " for name in names)
    title = f"[{_text(caption)}]" if caption else "none"
    letters = [list(map(_letters, row)) for row in rows]
    wide, size = widths(list(map(_letters, names)), letters, aligns)
    columns = f"({', '.join(aligns)},), ({', '.join(wide)},)"
    return f"#grid-of({columns}, {size}pt, {title}, ({head}), (\n{cells}\n))"


def _letters(content: str) -> str:
    """The words of a cell that is one Typst string; of any other, about as many."""
    return content.removeprefix('#"').removesuffix('"')


def _cell(text: str, align: str) -> str:
    shown = _LONG_WORD.sub(_broken, visible(text))
    return _text(_TOGETHER.sub("\u00a0", shown) if align == "right" else shown)


def _broken(word: re.Match[str]) -> str:
    return _BREAK.sub(_MAY_BREAK, word[0])


def _figure(number: int, found: Picture) -> str:
    caption = f"[{_text(found.caption)}]" if found.caption else "none"
    name = _string(_file_name(number, found))
    return f"#figure(image({name}, alt: {_string(found.alt)}), caption: {caption})"


def _file_name(number: int, found: Picture) -> str:
    return f"figure-{number}.{found.mime.removeprefix('image/').removesuffix('+xml')}"


def _raw(text: str) -> str:
    lines = visible_lines(text).rstrip("\n").split("\n")
    left_out = len(lines) - _MOST_LINES
    if left_out > 0:
        lines = [*lines[:_MOST_LINES], f"({left_out} more lines)"]
    shown = _LONG_LINE.sub(_broken, "\n".join(lines))
    return f"#raw(block: true, {_string(shown)})"


def _text(text: str) -> str:
    return f"#{_string(text)}"


def _string(text: str) -> str:
    """A Typst string literal; what no font can draw is shown as an escape."""
    drawn = "".join(one if _can_draw(one) else _escape(one) for one in text)
    quoted = drawn.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{quoted}"'


def _can_draw(character: str) -> bool:
    if character in _LAYOUT:
        return True
    return visible(character) == character and ord(character) in _glyphs()


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _fonts() -> list[Path]:
    """Regular, bold and italic DejaVu; never the fonts of the system.

    The folder also holds a font that draws a box for every character there is.
    """
    return sorted(font for pattern in _FAMILIES for font in FONTS.glob(pattern))


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(FT2Font(FONTS / "DejaVuSans.ttf").get_charmap())


def _compiled(main: Path) -> bytes:
    try:
        return _compile(main, ["ua-1"])
    except typst.TypstError:
        # Something in it is not accessible; the report matters more than the mark.
        pass
    try:
        return _compile(main, [])
    except typst.TypstError as error:
        raise StudyError(f"the PDF cannot be made: {printable(str(error))}") from error


def _compile(main: Path, standards: list) -> bytes:
    made = typst.compile(
        main,
        root=main.parent,
        font_paths=[main.parent],
        ignore_system_fonts=True,
        pdf_standards=standards,
    )
    assert isinstance(made, bytes)  # a list is for images of pages
    return made
