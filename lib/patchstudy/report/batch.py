"""Reports of many studies: which must be made, and the list of all.

Nothing slow is imported before there is something to make.
"""

import json
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from patchstudy.errors import StudyError, printable
from patchstudy.report import files, fresh
from patchstudy.tree import RECORD

FORMATS: Final = ("html", "pdf", "text")
#: Longest time for one notebook.
TIMEOUT_S: Final = 600
#: Lists every study of a batch, with its report or why there is none.
INDEX: Final = "index.json"
REPORT: Final = "report"
#: The same while the page is made.
NEXT_INDEX: Final = ".index.json"
#: Settings that each report has for itself.
_OWN: Final = ("notebook", "formats", "redact", "study")
_GRAMMAR: Final = "rfc3987_syntax"
#: Reasons that are told of one report.
_SHOWN: Final = 3


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
        Raw files that could not be read, and pages that could not be made, although a
        report was: one line each.
    worse
        Metrics that got worse, as ``device: metric, workload``.
    made
        True where the report was made now, False where the one there is still right.
    seconds
        How long it took.
    """

    study: str
    decision: str
    error: str
    unread: tuple[str, ...]
    worse: tuple[str, ...] = ()
    made: bool = True
    seconds: float = 0.0

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
    added
        Notebooks that are run for each study too, and get pages of their own.
    jobs
        How many studies are done at once.
    redact
        Keep names and addresses of the raw files out of every file; out of the block
        for the mailing list they are kept always.
    force
        Make every report, whether it is still right or not.
    timeout_s
        Longest time for one notebook.
    memory_byte
        What the kernel of one notebook may hold; None for no bound.
    engine
        papermill's name of what runs the notebooks.
    executor
        ``local``, or where a cluster is found (``executors``).
    parsed
        Folder in which what large traces say is kept (``loaders.parsed``); None: they
        are read each time.
    """

    out: Path
    formats: tuple[str, ...]
    notebook: Path
    jobs: int
    added: tuple[Path, ...] = ()
    redact: bool = False
    force: bool = False
    timeout_s: float = TIMEOUT_S
    memory_byte: int | None = None
    engine: str = "patchstudy-warm"
    executor: str = "local"
    parsed: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One study to be reported, as it can be sent to another process or machine.

    Attributes
    ----------
    folder
        The study.
    settings
        What else decides about the bytes of the report (``fresh.settings``).
    """

    folder: Path
    order: Order
    settings: dict[str, str]

    @property
    def study(self) -> str:
        """``driver/patch``."""
        return study_name(self.folder)

    @property
    def target(self) -> Path:
        """Folder of the report."""
        return self.order.out / self.study

    @property
    def place(self) -> str:
        """The study, as seen from the folder of its report."""
        return os.path.relpath(self.folder.resolve(), self.target.resolve())


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


def study_name(folder: Path) -> str:
    """Return the last two parts of a study's folder."""
    return "/".join(folder.resolve().parts[-2:])


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
    for folder in _studies(data):
        name = study_name(folder)
        if name in found:
            raise StudyError(f"{folder}: {found[name]} has the same name; move it")
        found[name] = folder
    missing = [name for name in names if name not in found]
    if missing or not found:
        known = ", ".join(found) or "no folder with a study.toml"
        what = f"no study {missing[0]!r}" if missing else "no study"
        raise StudyError(f"{data}: {what}; there is {known}")
    return tuple(found[name] for name in dict.fromkeys(names or found))


def _studies(data: Path) -> list[Path]:
    """Folders with a ``study.toml``; what lies in one is its own, not another study."""
    found: list[Path] = []
    for place, folders, names in os.walk(data):
        if "study.toml" in names:
            found.append(Path(place))
            folders.clear()
    return sorted(found)


def tasks(folders: Sequence[Path], order: Order) -> tuple[Task, ...]:
    """Return a task for every study.

    Raises
    ------
    StudyError
        If the notebook cannot be read.
    """
    notebook = order.notebook
    if notebook.exists() and not notebook.is_file():
        raise StudyError(printable(f"{notebook}: no plain file; give a notebook"))
    try:
        settings = fresh.settings(notebook, order.formats, order.added)
    except OSError as error:
        raise StudyError(_refused(error, order.notebook)) from error
    settings["redact"] = str(order.redact)
    found = [Task(folder=one, order=order, settings=settings) for one in folders]
    return tuple(
        Task(folder=one.folder, order=order, settings={**settings, "study": one.place})
        for one in found
    )


def reasons(task: Task) -> tuple[str, ...]:
    """Return why a report must be made again; nothing where it is still right."""
    if task.order.force:
        return ("--force was given",)
    return fresh.look(task.target, task.folder, task.settings).reasons


def report_all(
    folders: Sequence[Path], order: Order, *, tell: Callable[[Outcome], None]
) -> tuple[Outcome, ...]:
    """Make the reports that are not right any more; one failure stops no other.

    Parameters
    ----------
    tell
        Called with each outcome as soon as it is known.
    """
    outcomes: list[Outcome] = []
    waiting: list[Task] = []
    for task in tasks(folders, order):
        kept = None if order.force else _kept(task)
        if kept is None:
            waiting.append(task)
        else:
            outcomes.append(kept)
            tell(kept)
    with closing(_made(waiting, order)) as done:  # also where telling is stopped
        for made in done:
            outcomes.append(made)
            tell(made)
    return tuple(sorted(outcomes, key=lambda one: one.study))


def _kept(task: Task) -> Outcome | None:
    """Return the outcome of a report that is still right."""
    if files.leads_out(task.target, task.order.out):
        return None  # said when it is made
    found = fresh.look(task.target, task.folder, task.settings)
    if found.reasons or found.record is None:
        return None
    told = found.record.result
    return Outcome(
        study=task.study,
        decision=str(told.get("decision", "")),
        error="",
        unread=tuple(
            printable(f"{task.folder / path}: {reason}")
            for path, reason in told.get("unread", ())
        ),
        worse=tuple(told.get("worse", ())),
        made=False,
    )


def _made(waiting: Sequence[Task], order: Order) -> Generator[Outcome, None, None]:
    if waiting:
        with without_grammar():
            from patchstudy.report import executors  # noqa: PLC0415 - slow to import

        yield from executors.run(waiting, order)


@contextmanager
def without_grammar() -> Iterator[None]:
    """Let jsonschema, which nbformat imports, compile no grammar of addresses.

    That takes longer than all other imports of a batch together, and no notebook needs
    it. jsonschema does without where the module cannot be imported.
    """
    modules: dict[str, Any] = sys.modules
    there = _GRAMMAR in modules
    if not there:
        modules[_GRAMMAR] = None  # so that importing it fails
    try:
        yield
    finally:
        if not there:
            del modules[_GRAMMAR]


def _refused(error: OSError, out: Path) -> str:
    place = printable(str(error.filename or out))
    return f"{place}: cannot be read or written ({error.strerror})"


# ---- the list of all ----------------------------------------------------------------


def index(outcomes: Sequence[Outcome], order: Order) -> None:
    """Write ``index.json`` and the page that lists all studies, where they changed.

    Raises
    ------
    StudyError
        If a report of the folder cannot be read, or the folder not be written.
    """
    try:
        fresh.claim(order.out)
        _write_index(outcomes, order)
    except OSError as error:
        raise StudyError(_refused(error, order.out)) from error


def _write_index(outcomes: Sequence[Outcome], order: Order) -> None:
    notebook = shipped("summary.ipynb")
    shared = fresh.settings(notebook, ())
    entries = _entries(outcomes, order.out, shared)
    content = json.dumps({"schema": 1, "studies": entries}, indent=1) + "\n"
    reports = {
        f"{one['study']}/{name}": signed[-1]
        for one in entries
        if (record := fresh.read(order.out / str(one["study"])))
        for name, signed in record.outputs.items()
    }
    told = {INDEX: content, **reports}
    settings = {**shared, "studies": fresh.one_digest(told)}
    if order.force or fresh.look(order.out, None, settings).reasons:
        _make_index(content.encode("utf-8"), settings, order)


def _make_index(content: bytes, settings: dict[str, str], order: Order) -> None:
    with without_grammar():
        from patchstudy.report import make  # noqa: PLC0415 - slow, and seldom needed

    # The notebook reads it, while the list beside the old page stays as it is.
    files.write(order.out / NEXT_INDEX, content)
    made = {INDEX: content, **make.index(shipped("summary.ipynb"), order)}
    record = fresh.Record(
        noted_ns=0,
        settings=settings,
        inputs={},
        outputs=fresh.signed(made),
        result={},
    )
    told = {NEXT_INDEX: None, RECORD: fresh.to_bytes(record)}
    files.write_all(order.out, {**made, **told})


def _entries(
    outcomes: Sequence[Outcome], out: Path, settings: dict[str, str]
) -> list[dict[str, object]]:
    """Every study of this batch, and of earlier ones whose reports are still there."""
    listed = {one.study: one.error for one in outcomes}
    earlier = {
        name: error for name, error in _listed_before(out).items() if name not in listed
    }
    return [
        {
            "study": name,
            "error": error,
            "report": (out / name / f"{REPORT}.json").is_file(),
            "pages": _pages(out / name),
            "stale": _stale(out / name, settings) if name in earlier else "",
        }
        for name, error in sorted({**earlier, **listed}.items())
    ]


def _pages(target: Path) -> list[str]:
    """Pages of a study besides its report, as file names."""
    record = fresh.read(target)
    made = () if record is None else sorted(record.outputs)
    return [
        name
        for name in made
        if name.endswith(".html")
        and name != f"{REPORT}.html"
        and (target / name).is_file()
    ]


def _stale(target: Path, settings: dict[str, str]) -> str:
    """Say why a report that this batch did not look at is not right any more."""
    record = fresh.read(target)
    if record is None:
        return "it is not known from what it was made"
    pages = [name for name in record.settings if name.startswith(fresh.PAGE)]
    own = {name: record.settings.get(name, "") for name in (*_OWN, *pages)}
    study = target / own["study"]
    if not (study / "study.toml").is_file():  # never a folder that is no study
        return "its study is not there any more"
    return in_words(fresh.look(target, study, {**settings, **own}).reasons)


def in_words(reasons: Sequence[str]) -> str:
    """Return reasons as one line: the first ones, and how many more."""
    more = f" and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    return printable("; ".join(reasons[:_SHOWN]) + more)


def _listed_before(out: Path) -> dict[str, str]:
    """Studies of other batches whose reports are there, with their error in the list.

    The folders tell which there are: several batches may write the list at once.
    """
    places = [one for one in sorted(out.glob("*/*")) if not files.leads_out(one, out)]
    for one in places:
        if os.path.lexists(one / files.SWITCH):
            files.settle(one)
    found = [made for one in places if (made := one / f"{REPORT}.json").is_file()]
    there = {"/".join(path.parts[-3:-1]): "" for path in found}
    try:
        earlier = json.loads(files.read(out / INDEX))["studies"]
        told = {str(one["study"]): str(one["error"]) for one in earlier}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        told = {}
    return there | {name: told[name] for name in there if name in told}
