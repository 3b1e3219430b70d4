"""One report from its study, and the page that lists all: bytes by file name."""

import json
import re
import time
import traceback
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from nbformat import NotebookNode, reads, writes

from patchstudy.errors import PatchstudyError, StudyError, printable
from patchstudy.report import files, fresh, handing
from patchstudy.report.batch import FORMATS, REPORT, Order, Outcome, Task, shipped
from patchstudy.report.html import to_html
from patchstudy.report.pdf import to_pdf
from patchstudy.report.run import NotebookError, Run, execute
from patchstudy.report.table import as_markdown
from patchstudy.tree import RECORD

_TITLE: Final = re.compile(r"\A# [^\n]*")
_DIGEST: Final = re.compile(r"report\.json\): sha256 ([0-9a-f]{64})")
#: Errors whose text is a line for people.
_OURS: Final = ("CaptureError", "GrainError", "StudyError", "UnknownToolError")
_HOME: Final = re.compile(r"\b(home|Users)/[^/]+")
_EXTENSION: Final = {"html": "html", "pdf": "pdf", "text": "txt"}


def report(task: Task) -> Outcome:
    """Make the report of one study; whatever goes wrong is said in the outcome."""
    began = time.monotonic()
    try:
        result = _report(task)
        error = ""
    except PatchstudyError as problem:
        result, error = {}, str(problem)
    except OSError as problem:
        place = printable(str(problem.filename or task.target))
        result = {}
        error = f"{place}: cannot be read or written ({problem.strerror})"
    except Exception as problem:  # a mistake of ours: it costs this study, not a night
        result, error = {}, _mistake(task, problem)
    return Outcome(
        study=task.study,
        decision=result.get("decision", ""),
        error=error,
        unread=(
            *(
                printable(f"{task.folder / path}: {reason}")
                for path, reason in result.get("unread", ())
            ),
            *result.get("failed", ()),
        ),
        worse=tuple(result.get("worse", ())),
        seconds=time.monotonic() - began,
    )


def _mistake(task: Task, problem: Exception) -> str:
    """Say what went wrong in the program, and where; the whole goes to stderr."""
    traceback.print_exception(problem)
    last = traceback.extract_tb(problem.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    told = f"{type(problem).__name__}: {problem} ({place})"
    return printable(
        f"{task.folder}: a mistake of patchstudy, please report it: {told}"
    )


def _report(task: Task) -> Mapping[str, Any]:
    """Write the files of a report and what it was made from, all at once."""
    target = task.target
    if files.leads_out(target, task.order.out):
        raise StudyError(
            f"{printable(str(target))}: a link leads out of"
            f" {printable(str(task.order.out))}; remove it, or give -o where it leads"
        )
    target.mkdir(parents=True, exist_ok=True)
    before = fresh.read(target)
    noted_ns, inputs = fresh.inputs(task.folder, before)
    done, told = _executed(task)
    pages, failed = _pages(task, told["title"])
    made = {**dict(_files(done, told, task)), **pages}
    result = {name: told[name] for name in ("decision", "unread", "worse")}
    # What failed is not noted, and so tried again next time.
    missing = {f"{fresh.PAGE}{name}" for name in failed}
    record = fresh.Record(
        noted_ns=noted_ns,
        settings={x: y for x, y in task.settings.items() if x not in missing},
        inputs=inputs,
        outputs=fresh.signed(made),
        result=result,
    )
    names = {*_not_asked_for(task.order), *_of_old_pages(before)} - made.keys()
    others = dict.fromkeys(sorted(names))
    fresh.claim(target)
    files.write_all(target, {**made, **others, RECORD: fresh.to_bytes(record)})
    return {**result, "failed": tuple(failed.values())}


def _not_asked_for(order: Order) -> Iterator[str]:
    """Files of an earlier report that would now tell other numbers than the rest."""
    for one in FORMATS:
        if one not in order.formats:
            yield f"{REPORT}.{_EXTENSION[one]}"


def _of_old_pages(before: fresh.Record | None) -> Iterator[str]:
    """Pages of an earlier report, whose notebooks may not be there any more."""
    for name in () if before is None else before.outputs:
        if Path(name).name == name and name.endswith((".html", ".ipynb")):
            yield name


def _pages(task: Task, title: str) -> tuple[dict[str, bytes], dict[str, str]]:
    """Run the notebooks that people added.

    Returns
    -------
    tuple of (dict, dict)
        The files by name; and by notebook why it has no page, in one line.
    """
    made: dict[str, bytes] = {}
    failed: dict[str, str] = {}
    for notebook in task.order.added:
        run = _run(task, notebook)
        try:
            done = _without_login(execute(run), task)
        except StudyError as error:
            problem = str(error).replace(task.place, str(task.folder))
            failed[notebook.name] = printable(f"{task.study}: {problem}")
            continue
        made[notebook.name] = _notebook(done)
        if "html" in task.order.formats:
            page = to_html(_titled(done, title, keep=True), title=title)
            made[f"{notebook.stem}.html"] = page.encode("utf-8")
    return made, failed


def _executed(task: Task) -> tuple[NotebookNode, Mapping[str, Any]]:
    """Run the notebook; return it, and what its last cell handed over."""
    # Only of the shipped notebook it is known what its variables hold.
    own = "assessment" if _is_shipped(task.order.notebook) else ""
    last = handing.cell(task.place, variable=own, redact=task.order.redact)
    try:
        done = execute(_run(task, task.order.notebook, last))
    except NotebookError as error:
        if error.name not in _OURS:
            raise
        # Ours tell people what to do as they are, of a folder as people named it.
        lines = error.value.replace(task.place, str(task.folder)).splitlines()
        raise StudyError("\n".join(map(printable, lines))) from error
    done = _without_login(done, task)
    told = done.cells.pop().outputs[-1].data[handing.MIME]
    _require_same(done, str(told["digest"]), task.order.notebook)
    return done, told


def _without_login(done: NotebookNode, task: Task) -> NotebookNode:
    """Hide whose home a study lies in, where names are to be kept out of the report."""
    place, other = task.place, _HOME.sub(r"\1/user", task.place)
    if not task.order.redact or place == other:
        return done
    text = writes(done)
    for form in (quote, _in_json):
        text = text.replace(form(place), form(other))
    return reads(text, as_version=4)


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _run(task: Task, notebook: Path, last: str = "") -> Run:
    redact = {"redact": True} if task.order.redact else {}
    return Run(
        notebook=notebook,
        parameters={"study": task.place, **redact},
        cwd=task.target,
        timeout_s=task.order.timeout_s,
        last=last,
        engine=task.order.engine,
        memory_byte=task.order.memory_byte,
        parsed=task.order.parsed,
    )


def _is_shipped(notebook: Path) -> bool:
    ours = shipped("patch.ipynb").read_bytes()
    return sha256(notebook.read_bytes()).digest() == sha256(ours).digest()


def _files(
    done: NotebookNode, told: Mapping[str, Any], task: Task
) -> Iterator[tuple[str, bytes]]:
    """Yield the files of one report by name."""
    formats, title = task.order.formats, told["title"]
    yield f"{REPORT}.ipynb", _notebook(done)
    yield f"{REPORT}.json", told["json"].encode("utf-8")
    if "text" in formats:
        yield f"{REPORT}.txt", told["text"].encode("ascii")
    titled = _titled(done, title)
    if "html" in formats:
        yield f"{REPORT}.html", to_html(titled, title=title).encode("utf-8")
    if "pdf" in formats:
        pdf = to_pdf(titled, title=title, subtitle=told["question"])
        yield f"{REPORT}.pdf", pdf


def _notebook(done: NotebookNode) -> bytes:
    """Write a notebook; a name that is not UTF-8 on disk is an escape of JSON."""
    return (writes(done) + "\n").encode("utf-8", errors="backslashreplace")


def _require_same(done: NotebookNode, digest: str, notebook: Path) -> None:
    """Refuse a notebook that shows its results' digest, but not that of these.

    The shipped notebook shows it; one of the user's own need not.
    """
    shown = set(_DIGEST.findall(writes(done)))
    if shown and shown != {digest}:
        raise StudyError(
            f"{notebook}: the notebook found other results than report.json; "
            "did a raw file change meanwhile? make the report again"
        )


def _titled(done: NotebookNode, title: str, *, keep: bool = False) -> NotebookNode:
    """Put the study's name in place of the notebook's own title, or before it."""
    first, *others = done.cells
    if first.cell_type != "markdown":
        return done
    name = as_markdown(title)
    named = _TITLE.sub(
        lambda own: f"# {name}: {own[0][2:]}" if keep else f"# {name}", first.source
    )
    heading = NotebookNode({**first, "source": named})
    return NotebookNode({**done, "cells": [heading, *others]})


def index(notebook: Path, order: Order) -> dict[str, bytes]:
    """Return the notebook and the page that list all studies of a folder."""
    run = Run(
        notebook=notebook,
        parameters={"reports": "."},
        cwd=order.out,
        timeout_s=order.timeout_s,
        engine=order.engine,
        memory_byte=order.memory_byte,
    )
    done = execute(run)
    page = to_html(done, title="All studies").encode("utf-8")
    return {"index.ipynb": _notebook(done), "index.html": page}
