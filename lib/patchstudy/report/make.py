"""One report from its study, and the page that lists all: bytes by file name."""

import re
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from nbformat import NotebookNode, writes

from patchstudy.errors import PatchstudyError, StudyError, printable
from patchstudy.report import files, fresh, handed
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
    return Outcome(
        study=task.study,
        decision=result.get("decision", ""),
        error=error,
        unread=tuple(
            printable(f"{task.folder / path}: {reason}")
            for path, reason in result.get("unread", ())
        ),
        worse=tuple(result.get("worse", ())),
        seconds=time.monotonic() - began,
    )


def _report(task: Task) -> Mapping[str, Any]:
    """Write the files of a report and what it was made from, all at once."""
    target = task.target
    target.mkdir(parents=True, exist_ok=True)
    noted_ns, inputs = fresh.inputs(task.folder, fresh.read(target))
    done, told = _executed(task)
    made = dict(_files(done, told, task))
    result = {name: told[name] for name in ("decision", "unread", "worse")}
    record = fresh.Record(
        noted_ns=noted_ns,
        settings=task.settings,
        inputs=inputs,
        outputs=fresh.signed(made),
        result=result,
    )
    others = dict.fromkeys(_not_asked_for(task.order))
    fresh.claim(target)
    files.write_all(target, {**made, **others, RECORD: fresh.to_bytes(record)})
    return result


def _not_asked_for(order: Order) -> Iterator[str]:
    """Files of an earlier report that would now tell other numbers than the rest."""
    for one in FORMATS:
        if one not in order.formats:
            yield f"{REPORT}.{_EXTENSION[one]}"


def _executed(task: Task) -> tuple[NotebookNode, Mapping[str, Any]]:
    """Run the notebook; return it, and what its last cell handed over."""
    # Only of the shipped notebook it is known what its variables hold.
    own = "assessment" if _is_shipped(task.order.notebook) else ""
    redact = task.order.redact
    run = Run(
        notebook=task.order.notebook,
        parameters={"study": task.place} | ({"redact": True} if redact else {}),
        cwd=task.target,
        timeout_s=task.order.timeout_s,
        last=handed.cell(task.place, variable=own, redact=redact),
        engine=task.order.engine,
        memory_byte=task.order.memory_byte,
    )
    try:
        done = execute(run)
    except NotebookError as error:
        if error.name not in _OURS:
            raise
        # Ours tell people what to do as they are, of a folder as people named it.
        lines = error.value.replace(task.place, str(task.folder)).splitlines()
        raise StudyError("\n".join(map(printable, lines))) from error
    told = done.cells.pop().outputs[-1].data[handed.MIME]
    _require_same(done, str(told["digest"]), task.order.notebook)
    return done, told


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


def _titled(done: NotebookNode, title: str) -> NotebookNode:
    """Put the study's name in place of the notebook's own title."""
    first, *others = done.cells
    if first.cell_type != "markdown":
        return done
    named = _TITLE.sub(lambda _: f"# {as_markdown(title)}", first.source)
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
