"""An executed notebook becomes one self-contained page that loads nothing.

The page is complete without its one small script, which sorts, filters and copies
tables; the page's policy names the digest of that script and allows no other.
"""

import base64
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Final

import mistune
from mistune.util import unescape
from nbconvert.exporters import TemplateExporter
from nbformat import NotebookNode, v4

from patchstudy.report import svg, table
from patchstudy.report.lead import (
    Intervals,
    Marks,
    intervals_to_html,
    marks_to_html,
)
from patchstudy.report.outputs import (
    Part,
    Picture,
    may_link,
    parts,
    picture,
    preferred,
)
from patchstudy.report.pages import pruned
from patchstudy.report.table import Note, note_to_html, shown, visible_lines

_HERE: Final = Path(__file__).parent
_TAG: Final = re.compile(r"<[^>]*>")
_NO_WORD: Final = re.compile(r"\W+")
_FIRST_SECTION: Final = "<h2 "


def to_html(notebook: NotebookNode, *, title: str) -> str:
    """Return the page of an executed notebook.

    Parameters
    ----------
    notebook
        Markdown in it may hold no HTML: tags are shown as text, pictures as their
        description, links of another kind than web and mail as text.
    title
        Stands in the browser's tab, and at the top where the notebook has no heading
        of its own.

    Returns
    -------
    str
        HTML that loads nothing from elsewhere; equal for equal notebooks.
    """
    page = pruned(notebook)
    markdown = _Markdown()
    for cell in page.cells:
        _make_safe(cell, markdown)
    _gather_code(page)
    _insert_contents(page, markdown.headings)
    resources = {
        "title": title,
        "needs_title": all(heading.level != 1 for heading in markdown.headings),
        "css": _template_file("report.css"),
        "script": _template_file("report.js"),
        "script_digest": _digest(_template_file("report.js")),
    }
    return _exporter().from_notebook_node(page, resources=resources)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heading:
    """A heading of the page: ``label`` is safe HTML without tags."""

    level: int
    anchor: str
    label: str


class _Markdown(mistune.HTMLRenderer):
    """Markdown to HTML without foreign tags; remembers the headings of the page."""

    def __init__(self) -> None:
        super().__init__(escape=True)
        self.headings: list[_Heading] = []
        self._parse = mistune.create_markdown(
            renderer=self, plugins=["table", "strikethrough"]
        )

    def page(self, source: str) -> str:
        """Return the HTML of one cell."""
        return str(self._parse(visible_lines(source)))

    def text(self, text: str) -> str:
        # An entity can stand for a control character, too.
        return shown(unescape(text))

    def heading(self, text: str, level: int, **attrs: object) -> str:
        label = _TAG.sub("", text)
        anchor = self._anchor(label)
        self.headings.append(_Heading(level=level, anchor=anchor, label=label))
        return f'<h{level} id="{anchor}">{text}</h{level}>\n'

    def block_html(self, html: str) -> str:
        return f"<p>{escape(html.strip())}</p>\n"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        if may_link(url):
            return f'<a href="{escape(url)}">{text}</a>'
        return f"{text} ({shown(url)})"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return f"[{text}]"

    def table(self, text: str) -> str:
        return _scrolling(f"<table>\n{text}</table>", "Table")

    def table_cell(
        self, text: str, align: str | None = None, *, head: bool = False
    ) -> str:
        side = "right" if align == "right" else "left"
        tag, scope = ("th", ' scope="col"') if head else ("td", "")
        return f'<{tag}{scope} class="{side}">{text}</{tag}>\n'

    def _anchor(self, label: str) -> str:
        taken = {heading.anchor for heading in self.headings}
        wanted = _NO_WORD.sub("-", unescape(label).lower()).strip("-") or "section"
        anchor, number = wanted, 1
        while anchor in taken:
            number += 1
            anchor = f"{wanted}-{number}"
        return anchor


def _make_safe(cell: NotebookNode, markdown: _Markdown) -> None:
    """Put safe HTML where the template copies what it finds."""
    if cell.cell_type == "markdown":
        cell.source = markdown.page(cell.source)
    for output in cell.get("outputs", []):
        if "data" in output:
            output.data = NotebookNode(_shown_output(output, markdown))


def _shown_output(output: NotebookNode, markdown: _Markdown) -> dict[str, str]:
    mime = preferred(output.data)
    found = picture(output, mime)
    if found:
        return {"text/html": _figure(found)}
    if mime == "text/html":
        return {"text/html": "".join(map(_part, parts(output.data[mime])))}
    if mime == "text/markdown":
        return {"text/html": markdown.page(output.data[mime])}
    unknown = ", ".join(output.data) or "nothing"
    return {"text/plain": output.data.get(mime) or f"(not shown here: {unknown})"}


def _part(part: Part) -> str:
    if isinstance(part, Note):
        return f"{note_to_html(part)}\n"
    if isinstance(part, Marks):
        return f"{marks_to_html(part)}\n"
    if isinstance(part, Intervals):
        return f"{intervals_to_html(part)}\n"
    made = _scrolling(table.to_html(part), part.caption or "Table")
    if not part.folded:
        return made
    summary = f"<summary>{shown(part.caption)}</summary>"
    return f'<details class="rows">{summary}\n{made}</details>\n'


def _scrolling(html: str, label: str) -> str:
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{shown(label)}">\n'
        f"{html}\n</div>\n"
    )


def _figure(found: Picture) -> str:
    image = svg.inline(found.data, alt=found.alt) or _image(found)
    caption = found.caption and f"<figcaption>{shown(found.caption)}</figcaption>"
    label = shown(found.caption or "Figure")
    scroll = f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">'
    return f"<figure>{scroll}{image}</div>{caption}</figure>\n"


def _gather_code(page: NotebookNode) -> None:
    """Put the code of a section behind it, in one place; that of the lead, too."""
    gathered: list[str] = []
    cells: list[NotebookNode] = []
    for cell in page.cells:
        begins = cell.cell_type == "markdown" and _FIRST_SECTION in cell.source
        if begins and gathered:
            cells.append(_code_of(gathered, len(cells)))
            gathered = []
        if cell.cell_type == "code" and cell.source.strip():
            gathered.append(cell.source)
        cells.append(cell)
    if gathered:
        cells.append(_code_of(gathered, len(cells)))
    page.cells = cells


def _code_of(sources: list[str], number: int) -> NotebookNode:
    return v4.new_raw_cell(
        "\n\n".join(sources), id=f"code-{number}", metadata={"gathered": True}
    )


def _image(found: Picture) -> str:
    data = base64.b64encode(found.data).decode("ascii")
    return f'<img alt="{shown(found.alt)}" src="data:{found.mime};base64,{data}">'


def _insert_contents(page: NotebookNode, headings: list[_Heading]) -> None:
    """Put the table of contents before the first section, after title and answer."""
    entries = "".join(
        f'<li><a href="#{one.anchor}">{one.label}</a></li>\n'
        for one in headings
        if one.level == 2
    )
    contents = f'<nav aria-label="Contents">\n<ol>\n{entries}</ol>\n</nav>\n'
    for cell in page.cells if entries else ():
        if cell.cell_type == "markdown" and _FIRST_SECTION in cell.source:
            before, section, after = cell.source.partition(_FIRST_SECTION)
            cell.source = f"{before}{contents}{section}{after}"
            return


@cache
def _exporter() -> TemplateExporter:
    """One exporter for all pages: finding and reading its templates takes longest."""
    exporter = TemplateExporter(
        template_name="template",
        template_file="index.html.j2",
        extra_template_basedirs=[str(_HERE)],
    )
    exporter.register_filter("line", lambda text: shown(str(text)))
    exporter.register_filter("lines", lambda text: escape(visible_lines(str(text))))
    return exporter


@cache
def _template_file(name: str) -> str:
    return (_HERE / "template" / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """Digest of a script as a policy names it."""
    return base64.b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
