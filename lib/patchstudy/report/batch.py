"""Reports of many studies: run the notebooks, write every file whole or not at all."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nbformat import NotebookNode, writes

from patchstudy.errors import PatchstudyError, StudyError, printable
from patchstudy.findings import Assessment, assess
from patchstudy.report import files, results
from patchstudy.report.html import to_html
from patchstudy.report.pdf import to_pdf
from patchstudy.report.run import execute
from patchstudy.report.table import as_markdown
from patchstudy.report.text import for_mail, text
from patchstudy.study import hide, open_study

FORMATS: Final = ("html", "pdf", "text")
#: Longest time for one cell of a notebook.
TIMEOUT_S: Final = 600
#: Lists every study of a batch, with its report or why there is none.
INDEX: Final = "index.json"

_REPORT: Final = "report"
_TITLE: Final = re.compile(r"\A# [^\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one study.

    Attributes
    ----------
    study
        ``driver/patch``.
    decision
        The decision, empty where there is none.
    error
        Why there is no report, one line a mistake; empty where there is one.
    unread
        Raw files that could not be read although a report was made, one line each.
    """

    study: str
    decision: str
    error: str
    unread: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True where the study and all its raw files could be read."""
        return not self.error and not self.unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to make, and where.

    Attributes
    ----------
    out
        Folder of the reports.
    formats
        Out of ``FORMATS``; the notebook and ``report.json`` are always made.
    notebook
        The notebook that is run for each study, with a parameter ``study``.
    jobs
        How many studies are done at once.
    redact
        Keep names and addresses of the raw files out of every file; out of the block
        for the mailing list they are kept always.
    """

    out: Path
    formats: tuple[str, ...]
    notebook: Path
    jobs: int
    redact: bool = False


def shipped(name: str) -> Path:
    """Return a notebook of the package, installed or in a checkout.

    Raises
    ------
    StudyError
        If there is none of this name.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "notebooks", package.parents[1] / "notebooks"):
        if (folder / name).is_file():
            return folder / name
    raise StudyError(f"{name}: this installation has no such notebook; install again")


def find(data: Path, names: Sequence[str]) -> tuple[Path, ...]:
    """Find the study folders under a folder: those that hold ``study.toml``.

    Parameters
    ----------
    data
        A folder of studies, or one study.
    names
        ``driver/patch`` of the wanted ones; all where empty.

    Raises
    ------
    StudyError
        If there is none, a wanted one is missing, or two have the same name.
    """
    if not data.is_dir():
        raise StudyError(f"{data}: no such folder; give the folder of the studies")
    found: dict[str, Path] = {}
    for path in sorted(data.rglob("study.toml")):
        name = "/".join(path.parent.resolve().parts[-2:])
        if name in found:
            raise StudyError(f"{path.parent}: {found[name]} has the same name; move it")
        found[name] = path.parent
    missing = [name for name in names if name not in found]
    if missing or not found:
        known = ", ".join(found) or "no folder with a study.toml"
        what = f"no study {missing[0]!r}" if missing else "no study"
        raise StudyError(f"{data}: {what}; there is {known}")
    return tuple(found[name] for name in dict.fromkeys(names or found))


def report_all(
    folders: Sequence[Path], order: Order, *, tell: Callable[[Outcome], None]
) -> tuple[Outcome, ...]:
    """Make the reports of all studies; one failure stops no other.

    Parameters
    ----------
    tell
        Called with each outcome as soon as it is known.
    """
    outcomes: list[Outcome] = []
    pool = ThreadPoolExecutor(max_workers=order.jobs)
    try:
        waiting = [pool.submit(_report, folder, order) for folder in folders]
        for done in as_completed(waiting):
            outcomes.append(done.result())
            tell(outcomes[-1])
    finally:
        pool.shutdown(cancel_futures=True)  # stopped by the user: begin no other
    return tuple(sorted(outcomes, key=lambda one: one.study))


def _report(folder: Path, order: Order) -> Outcome:
    name = "/".join(folder.resolve().parts[-2:])
    try:
        assessment = assess(hide(open_study(folder), wanted=order.redact))
        made = dict(_files(assessment, order))
        target = order.out / name
        target.mkdir(parents=True, exist_ok=True)
        files.write_all(target, made)
    except PatchstudyError as error:
        return Outcome(study=name, decision="", error=str(error), unread=())
    except OSError as error:
        reason = _refused(error, order.out)
        return Outcome(study=name, decision="", error=reason, unread=())
    unread = tuple(
        printable(f"{folder / one.path}: {one.reason}")
        for one in assessment.study.leftovers
        if one.broken
    )
    return Outcome(
        study=name, decision=str(assessment.decision), error="", unread=unread
    )


def _refused(error: OSError, out: Path) -> str:
    place = printable(str(error.filename or out))
    return f"{place}: cannot be read or written ({error.strerror})"


def _files(assessment: Assessment, order: Order) -> Iterator[tuple[str, bytes]]:
    """Yield the files of one report by name."""
    study = assessment.study
    content = results.results(assessment)
    target = order.out / study.name
    target.mkdir(parents=True, exist_ok=True)
    place = os.path.relpath(study.folder.resolve(), target.resolve())
    parameters = {"study": place} | ({"redact": True} if order.redact else {})
    done = execute(order.notebook, parameters, cwd=target, timeout_s=TIMEOUT_S)
    _require_same(done, content, order.notebook)
    yield f"{_REPORT}.ipynb", _notebook(done)
    yield f"{_REPORT}.json", results.to_bytes(content)
    if "text" in order.formats:
        yield f"{_REPORT}.txt", text(for_mail(assessment)).encode("ascii")
    titled = _titled(done, study.title)
    if "html" in order.formats:
        yield f"{_REPORT}.html", to_html(titled, title=study.title).encode("utf-8")
    if "pdf" in order.formats:
        subtitle = study.design.question
        yield f"{_REPORT}.pdf", to_pdf(titled, title=study.title, subtitle=subtitle)


def _notebook(done: NotebookNode) -> bytes:
    """Write a notebook; a name that is not UTF-8 on disk is an escape of JSON."""
    return (writes(done) + "\n").encode("utf-8", errors="backslashreplace")


def _require_same(
    done: NotebookNode, content: Mapping[str, object], notebook: Path
) -> None:
    """Refuse a notebook that shows its results' digest, but not that of these.

    The shipped notebook shows it; one of the user's own need not.
    """
    shown = set(re.findall(r"report\.json\): sha256 ([0-9a-f]{64})", writes(done)))
    if shown and shown != {results.digest(content)}:
        raise StudyError(
            f"{notebook}: the notebook found other results than report.json; "
            "did a raw file change meanwhile? make the report again"
        )


def _titled(done: NotebookNode, title: str) -> NotebookNode:
    """Put the study's name in place of the notebook's own title."""
    first, *others = done.cells
    if first.cell_type != "markdown":
        return done
    named = _TITLE.sub(lambda _: f"# {as_markdown(title)}", first.source)
    heading = NotebookNode({**first, "source": named})
    return NotebookNode({**done, "cells": [heading, *others]})


def index(outcomes: Sequence[Outcome], order: Order) -> None:
    """Write ``index.json`` and the page that lists all studies.

    Raises
    ------
    StudyError
        If a report of the folder cannot be read, or the folder not be written.
    """
    try:
        order.out.mkdir(parents=True, exist_ok=True)
        _write_index(outcomes, order)
    except OSError as error:
        raise StudyError(_refused(error, order.out)) from error


def _write_index(outcomes: Sequence[Outcome], order: Order) -> None:
    listed = {one.study: one for one in outcomes}
    kept = _listed_before(order.out)
    entries = [
        {
            "study": name,
            "error": listed[name].error if name in listed else kept[name],
            "report": (order.out / name / f"{_REPORT}.json").is_file(),
        }
        for name in sorted({*listed, *kept})
    ]
    content = json.dumps({"schema": 1, "studies": entries}, indent=1) + "\n"
    files.write(order.out / INDEX, content.encode("utf-8"))
    done = execute(
        shipped("summary.ipynb"), {"reports": "."}, cwd=order.out, timeout_s=TIMEOUT_S
    )
    page = to_html(done, title="All studies").encode("utf-8")
    made = {"index.ipynb": _notebook(done), "index.html": page}
    files.write_all(order.out, made)


def _listed_before(out: Path) -> dict[str, str]:
    """Studies of earlier batches whose reports are still there, with their error."""
    try:
        earlier = json.loads((out / INDEX).read_text(encoding="utf-8"))["studies"]
        return {
            one["study"]: one["error"]
            for one in earlier
            if (out / one["study"] / f"{_REPORT}.json").is_file()
        }
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
