"""Find the runs of a study under its folder; list whatever is not used, and why."""

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from patchstudy import loaders, patchfile
from patchstudy.cards import Carded, Rows
from patchstudy.errors import (
    CaptureError,
    NoRunsError,
    StudyError,
    UnknownToolError,
    printable,
)
from patchstudy.patchfile import Patch, PatchError
from patchstudy.records import KINDS, Capture
from patchstudy.study.design import Design, design_of_files, read_design
from patchstudy.study.keys import declared
from patchstudy.study.stored import StoredPlan, read_plan
from patchstudy.tree import beside, no_file, walk

#: Files in a study folder that are no raw measurements.
_KNOWN: Final = frozenset(
    {
        "study.toml", "plan.json", "patch.mbox", "runs.csv", "measurements.csv",
        "README.md",
    }
)  # fmt: skip
_FACTORS: Final = ("device", "variant", "build", "boot", "run", "workload", "purpose")
_NO_BLOCKS: Final = (*_FACTORS, "rest", "position", "kind", "source")
#: Columns of ``measurements.csv`` that place a row in the design; others are labels.
_TABLE_FACTORS: Final = (*_FACTORS, "block", "position", "kind")
#: Last words of the names of compressed files.
_COMPRESSED: Final = frozenset({"gz", "xz", "zst", "bz2", "zip"})
#: Ends the name of a device whose values were published, not measured here.
PUBLISHED: Final = " (published)"
#: What ``purpose`` is called for a run that measures.
_MEASURING: Final = frozenset({"run", "measurement", ""})


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One capture of a run, and where in the run it was taken.

    Attributes
    ----------
    place
        Words of the file name between the tool and the extension: ``"router"``.
    capture
        What the file, or the pair of files, says.
    """

    place: str
    capture: Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a workload within one boot of one build of one variant.

    Attributes
    ----------
    name
        The run in words, from the factors of its path: ``baseline boot-01 run-02``.
    position, started_at
        Order in time, where ``run.json`` or the tool tells it.
    purpose
        ``"run"`` for a measurement; anything else is evidence and never pooled.
    published
        Where its values were published; empty where they were measured here. The name
        of its device then ends with ``PUBLISHED``, so that the two are never pooled.
    factors
        Every other ``{name}`` of the layout.
    facts
        What ``run.json`` says.
    """

    name: str
    device: str
    variant: str
    build: str
    boot: str
    run: str
    workload: str
    purpose: str
    position: int | None
    started_at: str | None
    published: tuple[str, ...]
    factors: Mapping[str, str]
    facts: Mapping[str, object]
    sources: tuple[Source, ...]

    @property
    def measuring(self) -> bool:
        """True for a measurement, False for a profile run or other evidence."""
        return self.purpose in _MEASURING


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFile:
    """A file with facts of a device, of one boot, or of one variant in a boot."""

    device: str
    boot: str
    variant: str
    name: str
    text: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A file that was found and not used.

    Attributes
    ----------
    path
        Relative to the study folder.
    reason
        Why, in one line.
    broken
        True where its tool was recognised but the file cannot be used.
    digest
        sha256 of the bytes on disk, empty where they could not be read.
    """

    path: str
    reason: str
    broken: bool
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Study(Carded):
    """A design and everything that was found for it.

    Attributes
    ----------
    folder
        As the user named it.
    name
        ``driver/patch``, the last two parts of the folder.
    files
        Path relative to the folder -> sha256, of every raw file that was used.
    plan
        What ``patchstudy plan --store`` left in ``plan.json``; None without one.
    patch
        The patch as mailed, of ``patch.mbox``; None without one.
    noise
        The study that tells the noise of these devices, if ``study.toml`` names one;
        its raw files are among ``files``, those that cannot be read in ``leftovers``.
    hidden
        How many names and addresses of raw files were replaced (``hide``).
    """

    folder: Path
    name: str
    design: Design
    runs: tuple[Run, ...]
    facts: tuple[FactFile, ...]
    leftovers: tuple[Leftover, ...]
    files: Mapping[str, str]
    plan: StoredPlan | None = None
    patch: Patch | None = None
    noise: "Study | None" = None
    hidden: int = 0

    @property
    def title(self) -> str:
        """How people call it: as ``study.toml`` says, else its name."""
        return self.design.title or self.name

    def path_of(self, capture: Capture) -> str:
        """Return the path of a raw file, relative to the folder, as it can be shown."""
        return printable(capture.path.relative_to(self.folder).as_posix())

    def card(self) -> tuple[str, Rows]:
        """Tell the question, and what was found under the folder."""
        measuring = [one for one in self.runs if one.measuring]
        cells: dict[str, Counter[str]] = {}
        for one in measuring:
            place = f"{one.workload} on {one.device}"
            cells.setdefault(place, Counter())[one.variant] += 1
        return self.title, (
            ("question", self.design.question),
            *((place, ", ".join(f"{n} {name} runs" for name, n in counts.items()))
              for place, counts in sorted(cells.items())),
            ("other runs", str(len(self.runs) - len(measuring))),
            ("raw files", str(len(self.files))),
            ("not used", str(len(self.leftovers))),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A raw file and the factors its path or ``runs.csv`` gives it."""

    path: str
    factors: Mapping[str, str]


def open_study(folder: str | Path) -> Study:
    """Read the design and every raw file of a study folder.

    Raises
    ------
    StudyError
        If ``study.toml`` or ``plan.json`` is wrong, or no measuring run of any declared
        variant is found; also of the study that it names for the noise.
    """
    study = _opened(Path(folder))
    return _with_noise(study) if study.design.noise else study


def _with_noise(study: Study) -> Study:
    """Open the study that tells the noise; what that one names itself is not read."""
    told = study.design.noise
    place = beside(study.folder, told)
    where = printable(f"{study.folder / 'study.toml'}: noise.study: {told!r} ")
    if place is None:
        raise StudyError(
            f"{where}is no other study beside this one; as in '../same-module'"
        )
    if not os.path.isdir(place):  # noqa: PTH112 - an impossible name is no folder
        raise StudyError(f"{where}is no folder; give a study, as seen from this one")
    noise = _opened(study.folder / told)
    files = {f"{told}/{path}": digest for path, digest in noise.files.items()}
    unread = [
        replace(one, path=f"{told}/{one.path}") for one in noise.leftovers if one.broken
    ]
    return replace(
        study,
        noise=noise,
        files={**study.files, **files},
        leftovers=(*study.leftovers, *unread),
    )


def _opened(folder: Path) -> Study:
    if not folder.is_dir():
        raise StudyError(f"{folder}: no such folder; give the folder with study.toml")
    design = read_design(folder)
    places, leftovers = _places(folder, design)
    reader = _Reader(folder)
    runs = [*_runs(design, places, reader), *_tabled(folder, design, reader)]
    facts = tuple(_facts(folder, reader))
    patch = _patch(folder, reader)
    study = Study(
        folder=folder,
        name="/".join(folder.resolve().parts[-2:]),
        design=design,
        runs=tuple(sorted(runs, key=_order)),
        facts=facts,
        leftovers=tuple(sorted([*leftovers, *reader.leftovers], key=lambda x: x.path)),
        files=dict(sorted(reader.files.items())),
        plan=read_plan(folder),
        patch=patch,
    )
    _require_runs(study)
    return study


def _patch(folder: Path, reader: "_Reader") -> Patch | None:
    """Read ``patch.mbox``, in whatever shape the patch came."""
    path = folder / "patch.mbox"
    if not _is_there(folder, path.name, reader):
        return None
    try:
        return patchfile.read(loaders.read(path).data)
    except (CaptureError, PatchError) as error:
        problem = error.problem if isinstance(error, CaptureError) else str(error)
        reader.refuse(path.name, problem, broken=True)
        return None


def _is_there(folder: Path, name: str, reader: "_Reader") -> bool:
    """Tell whether a file of a study can be read; list one that is no file of it."""
    if reason := no_file(folder, name):
        reader.leftovers.append(_unread(name, reason))
        return False
    return (folder / name).is_file()


def _require_runs(study: Study) -> None:
    found = {run.variant for run in study.runs if run.measuring}
    missing = [name for name in study.design.variants if name not in found]
    if len(missing) == len(study.design.variants):
        hint = "".join(
            printable(f"; {one.path} was found and not used: {one.reason}")
            for one in study.leftovers[:1]
        )
        kind = StudyError if study.leftovers else NoRunsError
        raise kind(
            printable(f"{study.folder}: no run of {' or '.join(missing)} under the ")
            + f"layout {study.design.layout!r}{hint}"
        )
    _require_block(study)


def _require_block(study: Study) -> None:
    """Refuse a block that no run has: the design would silently be another one."""
    block = study.design.block
    known = {name for run in study.runs for name, value in _given(run) if value != ""}
    if block and not any(block in {*run.facts} or block in known for run in study.runs):
        raise StudyError(
            f"{study.folder / 'study.toml'}: block: no run has a factor {block!r}; "
            f"there is {', '.join(sorted(known)) or 'none'}; name it in the layout, or "
            "leave block out"
        )


def _given(run: Run) -> Iterator[tuple[str, str]]:
    """What may be a block: the boot, the build, and every other factor."""
    yield from (("boot", run.boot), ("build", run.build))
    yield from run.factors.items()


def _order(run: Run) -> tuple[str, ...]:
    factors = [f"{key}={value}" for key, value in sorted(run.factors.items())]
    return (
        run.device,
        run.workload,
        run.started_at or "",
        f"{run.position or 0:09}",
        run.variant,
        run.build,
        run.boot,
        *factors,
        run.purpose,
        run.run,
    )


def of_files(sets: Mapping[str, Sequence[Path]], *, metric: str, margin: str) -> Study:
    """Make a study of two bare sets of raw files, each file a run.

    Files named ``...before...`` and ``...after...`` are pairs of snapshots and make
    one run.

    Parameters
    ----------
    sets
        Variant -> raw files; the first variant is the baseline.
    metric, margin
        What decides, and the smallest change that matters (empty: the default).

    Raises
    ------
    StudyError
        If the metric or the margin is wrong, a file stands twice in a set, or a set
        holds no file that can be read.
    """
    design = design_of_files(tuple(sets), metric=metric, margin=margin)
    reader = _Reader(Path())
    runs = []
    for variant, paths in sets.items():
        for number, members in enumerate(_by_run(paths), start=1):
            factors = {"device": "files", "variant": variant, "run": f"{number:03}"}
            places = [
                # The paths of a study are relative to its folder: here, where we are.
                _Place(
                    path=os.path.relpath(path), factors={**factors, "rest": path.name}
                )
                for path in members
            ]
            sources = tuple(_sources(places, reader))
            if sources:
                runs.append(_run(factors, sources))
    study = Study(
        folder=Path(),
        name="files",
        design=design,
        runs=tuple(sorted(runs, key=_order)),
        facts=(),
        leftovers=tuple(reader.leftovers),
        files=dict(sorted(reader.files.items())),
    )
    for variant in sets:
        if not any(run.variant == variant for run in runs):
            reasons = "".join(f"; {one.path}: {one.reason}" for one in study.leftovers)
            raise StudyError(f"no {variant} file can be used{reasons}")
    return study


def _by_run(paths: Iterable[Path]) -> Iterator[tuple[Path, ...]]:
    """Put the snapshots of a pair together; any other file stands alone."""
    groups: dict[str, list[Path]] = {}
    for path in paths:
        if any(path in members for members in groups.values()):
            raise StudyError(f"{path}: given twice in one set; name each file once")
        words = _words(path.name)
        stem = ".".join(word for word in words if word not in {"before", "after"})
        groups.setdefault(str(path.with_name(stem)), []).append(path)
    yield from map(tuple, groups.values())


# ---- which file belongs to which run ------------------------------------------------


def _places(folder: Path, design: Design) -> tuple[list[_Place], list[Leftover]]:
    """Give every file its factors; list those that match nothing."""
    if os.path.lexists(folder / "runs.csv"):
        return _from_csv(folder)
    pattern = _pattern(design.layout)
    places: list[_Place] = []
    leftovers: list[Leftover] = []
    for path in _files(folder):
        match = pattern.fullmatch(path)
        if reason := no_file(folder, path):
            leftovers.append(_unread(path, reason))
        elif match is None:
            reason = f"matches neither the layout {design.layout!r} nor <device>/facts"
            leftovers.append(_leftover(folder, path, reason))
        else:
            places.append(_Place(path=path, factors=_factors(match.groupdict())))
    return places, leftovers


def _factors(told: Mapping[str, str]) -> dict[str, str]:
    """Return the factors that are told, as text that can be shown."""
    return {key: printable(value) for key, value in told.items() if value}


def _pattern(layout: str) -> re.Pattern[str]:
    """Turn a layout into a pattern over relative paths.

    ``{rest}`` takes all that is left of the file name; any other name takes as little
    as it can and never a ``/``.
    """
    parts = re.split(r"{(\w+)}", layout)
    pattern = ""
    for number, part in enumerate(parts):
        if number % 2 == 0:
            pattern += re.escape(part)
        else:
            pattern += f"(?P<{part}>[^/]+)" if part == "rest" else f"(?P<{part}>[^/]+?)"
    return re.compile(pattern)


def _files(folder: Path) -> Iterator[str]:
    """Yield the relative paths of all that may hold measurements, sorted."""
    found = [tuple(path.split("/")) for path, _entry in walk(folder)]
    for parts in sorted(found):
        hidden = any(part.startswith(".") for part in parts)
        fact = len(parts) > 2 and parts[1] == "facts"
        known = len(parts) == 1 and parts[0] in _KNOWN
        if not (hidden or fact or known):
            yield "/".join(parts)


def _from_csv(folder: Path) -> tuple[list[_Place], list[Leftover]]:
    """Read ``runs.csv``: column ``path`` and any factor columns."""
    path = folder / "runs.csv"
    places: list[_Place] = []
    listed: set[str] = set()
    for number, row in enumerate(_csv_rows(path), start=2):
        place = _csv_place(folder, row, f"{path}:{number}")
        if place.path in listed:
            raise StudyError(f"{path}:{number}: {place.path!r} is listed twice")
        listed.add(place.path)
        places.append(place)
    left = [
        _unread(name, reason)
        if (reason := no_file(folder, name))
        else _leftover(folder, name, "is not listed in runs.csv")
        for name in _files(folder)
        if name not in listed
    ]
    return places, left


def _csv_rows(path: Path) -> list[dict[str, str]]:
    try:
        text = declared(path).decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise StudyError(f"{path}: not CSV in UTF-8 ({error})") from error
    if not rows or not {"path", "device", "variant"} <= rows[0].keys():
        raise StudyError(f"{path}: needs a header with the columns path,device,variant")
    return rows


def _csv_place(folder: Path, row: Mapping[str, str], where: str) -> _Place:
    if None in row or None in row.values():
        raise StudyError(f"{where}: not as many cells as the header has")
    name = row["path"]
    if not (folder / name).is_file():
        raise StudyError(f"{where}: there is no file {name!r}")
    if not (folder / name).resolve().is_relative_to(folder.resolve()):
        raise StudyError(f"{where}: {name!r} lies outside the study")
    factors = _factors({key: value for key, value in row.items() if key != "path"})
    if missing := {"device", "variant"} - factors.keys():
        raise StudyError(f"{where}: the {' and the '.join(sorted(missing))} is empty")
    return _Place(path=PurePosixPath(name).as_posix(), factors=factors)


def _unread(path: str, reason: str) -> Leftover:
    return Leftover(path=path, reason=reason, broken=False, digest="")


def _leftover(folder: Path, path: str, reason: str) -> Leftover:
    try:
        digest = loaders.read(folder / path).digest
    except CaptureError:
        digest = ""
    return Leftover(path=path, reason=reason, broken=False, digest=digest)


# ---- reading ------------------------------------------------------------------------


class _Reader:
    """Loads raw files; collects what was used and what could not be."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files: dict[str, str] = {}
        self.leftovers: list[Leftover] = []

    def load(self, path: str) -> Capture | None:
        """Load one file, or note why it cannot be used."""
        try:
            capture = loaders.load(self._folder / path)
        except UnknownToolError:
            self.refuse(path, "no loader knows this file", broken=False)
            return None
        except CaptureError as error:
            line = bool(error.where) and str(error.where).isdecimal()
            where = f" ({'line ' if line else ''}{error.where})" if error.where else ""
            self.refuse(path, f"{error.problem}{where}", broken=True)
            return None
        self.files[path] = capture.sha256
        return capture

    def difference(self, paths: Mapping[str, str]) -> Capture | None:
        """Load a before/after pair of snapshots and subtract them."""
        loaded = {when: self.load(path) for when, path in sorted(paths.items())}
        before, after = loaded.get("before"), loaded.get("after")
        if before is None or after is None:
            for when, path in paths.items():
                if loaded[when] is not None:
                    other = "after" if when == "before" else "before"
                    self._unuse(path, f"a snapshot {when} the run without one {other}")
            return None
        if not (before.cumulative and after.cumulative):
            self._unuse(paths["before"], "named before, but holds no counters")
            return after
        try:
            return loaders.difference(before, after)
        except CaptureError as error:
            for path in paths.values():
                self._unuse(path, error.problem)
            return None

    def single(self, path: str) -> Capture | None:
        """Load a file that stands alone."""
        capture = self.load(path)
        if capture is not None and capture.cumulative:
            self._unuse(path, "counters since boot, without before and after")
            return None
        return capture

    def refuse(self, path: str, reason: str, *, broken: bool) -> None:
        """Note that a file is not used."""
        left = _leftover(self._folder, path, reason)
        self.leftovers.append(
            Leftover(path=path, reason=reason, broken=broken, digest=left.digest)
        )

    def _unuse(self, path: str, reason: str) -> None:
        self.files.pop(path, None)
        self.refuse(path, reason, broken=False)


def _runs(design: Design, places: Iterable[_Place], reader: _Reader) -> Iterator[Run]:
    """Group the files by run and load them."""
    groups: dict[tuple[tuple[str, str], ...], list[_Place]] = {}
    for place in places:
        if place.factors["variant"] not in design.variants:
            known = ", ".join(design.variants)
            reason = f"variant {place.factors['variant']!r} is none of {known}"
            reader.refuse(place.path, reason, broken=False)
            continue
        key = tuple(
            sorted((k, v) for k, v in place.factors.items() if k != "rest" and v)
        )
        groups.setdefault(key, []).append(place)
    for key, members in sorted(groups.items()):
        yield _run(dict(key), tuple(_sources(members, reader)))


def _sources(members: Iterable[_Place], reader: _Reader) -> Iterator[Source]:
    """Load the files of one run, snapshots as pairs."""
    pairs: dict[str, dict[str, str]] = {}
    for place in sorted(members, key=lambda one: one.path):
        words = _words(place.factors.get("rest", ""))
        when = next((word for word in words if word in {"before", "after"}), None)
        if when is None:
            capture = reader.single(place.path)
            if capture is not None:
                yield Source(place=".".join(words[1:-1]), capture=capture)
        else:
            stem = ".".join(word for word in words if word != when)
            pairs.setdefault(stem, {})[when] = place.path
    for stem, paths in sorted(pairs.items()):
        capture = reader.difference(paths)
        if capture is not None:
            yield Source(place=".".join(stem.split(".")[1:-1]), capture=capture)


def _words(name: str) -> list[str]:
    """Return the words of a file name, without that of its compression."""
    words = name.split(".")
    return words[:-1] if words[-1] in _COMPRESSED and len(words) > 1 else words


def is_published(device: str) -> bool:
    """Say whether the values of a device were published, not measured here."""
    return device.endswith(PUBLISHED)


def _run(factors: Mapping[str, str], sources: tuple[Source, ...]) -> Run:
    """Make a run; what its ``run.json`` says about purpose and time wins."""
    said: dict[str, object] = {}
    noted: list[str | None] = []
    for source in sources:
        if source.capture.tool == "run.json":
            said.update(source.capture.facts)
            noted.append(source.capture.started_at)
    origin = _origin(factors, said)
    told = [*noted, *(source.capture.started_at for source in sources)]
    return Run(
        name=_name(factors),
        device=_apart(factors["device"]) if origin else factors["device"],
        variant=factors["variant"],
        build=factors.get("build", str(said.get("build_id", ""))),
        boot=factors.get("boot", str(said.get("boot_id", ""))),
        run=factors.get("run", "1"),
        workload=factors.get("workload", "test"),
        purpose=_purpose(factors.get("purpose", "run"), str(said.get("purpose", ""))),
        position=_position(factors.get("position", said.get("position"))),
        started_at=next((time for time in told if time), None),
        published=origin,
        factors={k: v for k, v in factors.items() if k not in _NO_BLOCKS},
        facts={k: v for k, v in said.items() if k not in _ORIGIN},
        sources=sources,
    )


def _apart(device: str) -> str:
    """Name a device whose values were published."""
    return device if is_published(device) else device + PUBLISHED


def _origin(factors: Mapping[str, str], said: Mapping[str, object]) -> tuple[str, ...]:
    """Return where the values of a run were published; nothing if measured here."""
    kind, source = (
        str(factors.get(one) or said.get(one, "")).strip() for one in _ORIGIN
    )
    where = f"{factors['device']} {_name(factors)}"
    if kind not in KINDS:
        known = " or ".join(one for one in KINDS if one)
        raise StudyError(printable(f"{where}: kind {kind!r} is not {known}"))
    if kind == "published" and not source:
        raise StudyError(
            printable(f"{where}: published values need a source: a link or a title")
        )
    return (printable(source),) if kind == "published" else ()


#: Facts of a run that say where its values come from.
_ORIGIN: Final = ("kind", "source")


def _name(factors: Mapping[str, str]) -> str:
    levels = [
        f"{level}-{factors[level]}"
        for level in ("build", "boot", "block")
        if factors.get(level)
    ]
    others = [
        f"{key}-{value}"
        for key, value in sorted(factors.items())
        if key not in (*_NO_BLOCKS, "block") and value
    ]
    kind = factors.get("purpose") or "run"
    run = f"{kind}-{factors.get('run', '1')}"
    return " ".join([factors["variant"], *levels, *others, run])


def _position(value: object) -> int | None:
    said = str(value)
    return int(said) if said.isdecimal() else None


def _purpose(folder: str, said: str) -> str:
    """Return ``"run"`` only where neither the folder nor ``run.json`` objects."""
    if folder not in _MEASURING:
        return folder
    return "run" if said in _MEASURING else said


def _tabled(folder: Path, design: Design, reader: _Reader) -> Iterator[Run]:
    """Make runs of the rows of ``measurements.csv``."""
    path = folder / "measurements.csv"
    there = _is_there(folder, path.name, reader)
    capture = reader.load(path.name) if there else None
    if capture is None:
        return
    levels = {*_TABLE_FACTORS, design.block}
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for number, row in enumerate(capture.measurements):
        factors = _factors({k: v for k, v in row.labels.items() if k in levels})
        if missing := {"device", "variant"} - factors.keys():
            raise StudyError(f"{path}: a row has no {', '.join(sorted(missing))}")
        if factors["variant"] not in design.variants:
            known = ", ".join(design.variants)
            problem = f"variant {factors['variant']!r} is none of {known}"
            raise StudyError(f"{path}: {problem}")
        groups.setdefault(tuple(sorted(factors.items())), []).append(number)
    for key, rows in sorted(groups.items()):
        part = _part(capture, rows, {*(name for name, _ in key), *_ORIGIN})
        told = (capture.measurements[row].labels.get("source") for row in rows)
        sources = dict.fromkeys(printable(one) for one in told if one)
        run = _run(
            {**dict(key), "source": "; ".join(sources)},
            (Source(place="", capture=part),),
        )
        yield replace(run, published=tuple(sources) if run.published else ())


def _part(capture: Capture, rows: list[int], factors: set[str]) -> Capture:
    """Return the capture with these rows only, without the factors as labels."""
    chosen = (capture.measurements[number] for number in rows)
    return replace(
        capture,
        measurements=tuple(
            one._replace(
                labels={k: v for k, v in one.labels.items() if k not in factors}
            )
            for one in chosen
        ),
    )


# ---- facts --------------------------------------------------------------------------


def _facts(folder: Path, reader: _Reader) -> Iterator[FactFile]:
    """Read ``<device>/facts/[boot-NN/][variant.]name``."""
    for path in sorted(folder.glob("*/facts/**/*")):
        if path.is_dir() and not path.is_symlink():
            continue
        relative = path.relative_to(folder)
        inner = relative.parts[2:-1]
        if reason := no_file(folder, relative.as_posix()):
            reader.leftovers.append(_unread(relative.as_posix(), reason))
            continue
        try:
            raw = loaders.read(path)
        except CaptureError as error:
            reader.refuse(relative.as_posix(), error.problem, broken=True)
            continue
        yield FactFile(
            device=relative.parts[0],
            boot=inner[0].removeprefix("boot-") if inner else "",
            variant=_first_word(relative.name),
            name=relative.name,
            text=raw.text,
            sha256=raw.digest,
        )


def _first_word(name: str) -> str:
    words = name.split(".")
    return words[0] if len(words) > 2 else ""
