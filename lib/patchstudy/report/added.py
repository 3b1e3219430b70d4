"""Notebooks that people add: each is run for every study and gets a page of its own.

Nothing slow is imported here: this is asked before it is known what has to be made.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from patchstudy.errors import StudyError, printable
from patchstudy.report import files

#: Notebooks of the package: ``patch`` is the report, the others are started by hand.
SHIPPED: Final = frozenset({"explore", "literature", "method", "patch", "summary"})
#: Names that the files of a report have themselves.
_TAKEN: Final = "report"
_LARGEST_BYTE: Final = 2**26


def find(folder: Path, *, instead: Path | None = None) -> tuple[Path, ...]:
    """Return the notebooks of a folder that are to be run for every study.

    Those are all with a cell tagged ``parameters`` that sets ``study``, but for the
    shipped ones, which are known by their names. A folder that is not there has none.

    Parameters
    ----------
    instead
        The notebook that is run in place of ``patch.ipynb``: it is no other page.

    Raises
    ------
    StudyError
        If one cannot be read, or has the name of the report.
    """
    taken = None if instead is None else instead.resolve()
    found = sorted(one for one in folder.glob("*.ipynb") if one.stem not in SHIPPED)
    chosen = tuple(one for one in found if one.resolve() != taken and _asks(one))
    for one in chosen:
        if one.stem.lower() == _TAKEN:
            words = "its page would take the name of the report; rename it"
            raise StudyError(printable(f"{one}: {words}"))
    return chosen


def _asks(path: Path) -> bool:
    """Tell whether a notebook takes a study."""
    try:
        if path.stat().st_size > _LARGEST_BYTE:
            raise StudyError(printable(f"{path}: over 64 MiB; is it a notebook?"))
        content = json.loads(files.read(path))
    except OSError as error:
        problem = f"{path}: cannot be read ({error.strerror})"
        raise StudyError(printable(problem)) from error
    except (ValueError, RecursionError) as error:
        problem = f"{path}: not a notebook (no JSON); mend it or take it away"
        raise StudyError(printable(problem)) from error
    return any(_sets_study(source) for source in _parameters(content))


def _parameters(content: Any) -> Iterator[str]:  # noqa: ANN401 - whatever it holds
    """Yield the sources of the cells tagged ``parameters``."""
    cells = content.get("cells") if isinstance(content, dict) else None
    for cell in cells if isinstance(cells, list) else ():
        if not isinstance(cell, dict) or not isinstance(cell.get("metadata"), dict):
            continue
        tags, source = cell["metadata"].get("tags"), cell.get("source")
        if isinstance(tags, list) and "parameters" in tags:
            lines = source if isinstance(source, list) else [source]
            yield "".join(map(str, lines))


def _sets_study(source: str) -> bool:
    try:
        lines = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    names = [
        target
        for line in lines
        if isinstance(line, ast.Assign | ast.AnnAssign)
        for target in (line.targets if isinstance(line, ast.Assign) else [line.target])
    ]
    return any(isinstance(one, ast.Name) and one.id == "study" for one in names)
