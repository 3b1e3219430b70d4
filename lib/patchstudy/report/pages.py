"""What of an executed notebook goes onto a page: nothing that only says "nothing"."""

import copy
import re
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from patchstudy.report.outputs import parts, preferred
from patchstudy.report.table import Note

_SECTION = re.compile(r"^## .*$", re.MULTILINE)


def pruned(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook without outputs that have nothing to say.

    A cell that shows nothing but notes of kind ``empty`` loses them, and the words
    before it go too. The first cells of a section keep its heading and one such note.
    """
    page = copy.deepcopy(notebook)
    for section in _sections(page.cells):
        _prune(section)
    page.cells = [cell for cell in page.cells if _holds(cell)]
    return page


def _sections(cells: Sequence[NotebookNode]) -> Iterator[list[NotebookNode]]:
    section: list[NotebookNode] = []
    for cell in cells:
        if cell.cell_type == "markdown" and _SECTION.search(cell.source) and section:
            yield section
            section = []
        section.append(cell)
    yield section


def _prune(section: Sequence[NotebookNode]) -> None:
    groups = [group for group in _groups(section) if _shows(group)]
    for at, group in enumerate(groups):
        if not all(_is_empty(one) for one in _shows(group)):
            continue
        if at == 0:
            _only_note(group)
            continue
        if group[0].cell_type == "markdown":
            group[0].source = ""
        _clear(group)


def _groups(section: Sequence[NotebookNode]) -> Iterator[list[NotebookNode]]:
    """A cell of words with the cells of code that follow it."""
    group: list[NotebookNode] = []
    for cell in section:
        if cell.cell_type != "code" and group:
            yield group
            group = []
        group.append(cell)
    if group:
        yield group


def _shows(group: Sequence[NotebookNode]) -> list[NotebookNode]:
    return [cell for cell in group if cell.get("outputs")]


def _is_empty(cell: NotebookNode) -> bool:
    return all(_is_empty_output(one) for one in cell.outputs)


def _is_empty_output(output: NotebookNode) -> bool:
    if "data" not in output or preferred(output.data) != "text/html":
        return False
    found = parts(output.data["text/html"])
    return bool(found) and all(
        isinstance(one, Note) and one.kind == "empty" for one in found
    )


def _only_note(group: Sequence[NotebookNode]) -> None:
    """Keep the heading and the first note."""
    head = group[0]
    found = _SECTION.search(head.source) if head.cell_type == "markdown" else None
    if found:
        head.source = head.source[: found.end()]
    first, *others = _shows(group)
    first.outputs = first.outputs[:1]
    _clear(others)


def _clear(cells: Sequence[NotebookNode]) -> None:
    for cell in cells:
        if "outputs" in cell:
            cell.outputs = []


def _holds(cell: NotebookNode) -> bool:
    return bool(cell.source.strip() or cell.get("outputs"))
