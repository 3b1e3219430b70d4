"""Whether a report still is what its inputs, settings and the package would make it.

Beside each report a record says from which bytes it was made. A file is hashed again
only if its size, its times or its inode differ from those in the record, or if it was
written so shortly before the record that its times prove nothing (as git does). Times
alone never make a report new or old. Nothing slow is imported here: to find that
nothing changed must cost next to nothing.
"""

import contextlib
import json
import os
import platform
import stat
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from patchstudy.report import files
from patchstudy.tree import MAX_BYTES, RECORD, beside, walk

_SCHEMA: Final = 1
#: Opening of the settings that name a notebook with a page of its own.
PAGE: Final = "page of "
#: A file system's clock may tick so slowly, or be so far from ours.
_RACY_NS: Final = 2_000_000_000
_PACKAGE: Final = Path(__file__).parents[1]
#: Whose version can change a byte of a report.
_LIBRARIES: Final = (
    "beautifulsoup4", "ipykernel", "ipython", "jinja2", "matplotlib", "mistune",
    "nbclient", "nbconvert", "nbformat", "numpy", "orjson", "pandas", "papermill",
    "pyarrow", "scipy", "seaborn", "typst", "unidiff",
)  # fmt: skip

#: What a file raises that is no record: somebody may have written it.
_NO_RECORD: Final = (
    OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError,
    RecursionError,
)  # fmt: skip

#: Size, mtime and ctime in ns, inode, sha256: of one file.
Signature = tuple[int, int, int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a report was made from, and what came out.

    Attributes
    ----------
    noted_ns
        When the files began to be looked at, in ns since 1970.
    settings
        What else decides about the bytes, by name.
    inputs, outputs
        Signature by path: relative to the study, and to the folder of the report.
    result
        What a batch says about the study, without making it again.
    """

    noted_ns: int
    settings: Mapping[str, str]
    inputs: Mapping[str, Signature]
    outputs: Mapping[str, Signature]
    result: Mapping[str, Any]


def settings(
    notebook: Path, formats: Sequence[str], added: Sequence[Path] = ()
) -> dict[str, str]:
    """Return what decides about a report besides its study, by name.

    Parameters
    ----------
    added
        Notebooks that get pages of their own.
    """
    return {
        "notebook": _digest(notebook),
        **{f"{PAGE}{one.name}": _digest(one) for one in added},
        "formats": ",".join(sorted(formats)),
        "package": _package(),
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **{name: _version(name) for name in _LIBRARIES},
    }


def inputs(
    study: Path | None, known: Record | None
) -> tuple[int, dict[str, Signature]]:
    """Return when they were looked at, and the signature of every file of a study.

    Parameters
    ----------
    known
        The record of an earlier report, whose digests are taken over where size,
        times and inode prove that they still hold.
    """
    now = time.time_ns()
    if study is None:
        return now, {}
    found = {
        f"{before}{path}": _signature(
            entry, known and known.inputs.get(f"{before}{path}"), known
        )
        for before, folder in (("", study), *_noise(study))
        for path, entry in sorted(walk(folder), key=lambda one: one[0])
        if _matters(path)
    }
    return now, found


def _noise(study: Path) -> Iterator[tuple[str, Path]]:
    """Yield the study that tells the noise of this one, as ``open_study`` finds it."""
    try:
        data = (study / "study.toml").read_bytes() if _plain(study) else b""
        if b"noise" not in data:  # then its TOML need not be read
            return
        told = tomllib.loads(data.decode())["noise"]["study"]
        place = beside(study, told)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return  # that it cannot be used is said where it is
    if place is not None:
        yield f"{told}/", place


def _plain(study: Path) -> bool:
    found = (study / "study.toml").stat()
    return stat.S_ISREG(found.st_mode) and found.st_size <= MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was found of an earlier report.

    Attributes
    ----------
    reasons
        Why it must be made again; empty where it need not.
    record
        What it was made from; None where there is no report.
    """

    reasons: tuple[str, ...]
    record: Record | None


def look(place: Path, study: Path | None, now: Mapping[str, str]) -> Look:
    """Compare a report with its study and the settings as they are now.

    A record whose files had to be hashed to prove that nothing changed is written
    again, so that next time their times will do.

    Parameters
    ----------
    place
        Folder of the report.
    study
        None for a page that has no study of its own.
    now
        Settings, as ``settings`` returns them.
    """
    record = read(place)
    if record is None:
        return Look(reasons=("no report was made yet",), record=None)
    noted_ns, found = inputs(study, record)
    made = {
        name: _again(place / name, signed, record)
        for name, signed in record.outputs.items()
    }
    reasons = (
        *_other_settings(record, now),
        *_other_inputs(record, found),
        *_other_outputs(record, made),
    )
    there = {name: one for name, one in made.items() if one is not None}
    if not reasons and (found != record.inputs or _unproven(there, record)):
        record = replace(record, noted_ns=noted_ns, inputs=found, outputs=there)
        with contextlib.suppress(OSError):  # it only saves time
            write(place, record)
    return Look(reasons=reasons, record=record)


def read(place: Path) -> Record | None:
    """Return the record of a report; None where there is none that can be used.

    What a killed program left undone is done before.
    """
    try:
        files.settle(place)
        told = json.loads(files.read(place / RECORD))
        if told["schema"] != _SCHEMA or not all(map(files.is_plain, told["outputs"])):
            return None
        return Record(
            noted_ns=int(told["noted_ns"]),
            settings={name: str(one) for name, one in told["settings"].items()},
            inputs={path: _read(one) for path, one in told["inputs"].items()},
            outputs={name: _read(one) for name, one in told["outputs"].items()},
            result=_result(told["result"]),
        )
    except _NO_RECORD:
        return None


def _result(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a batch says of a study, in the shape that it is told in."""
    unread = [[str(path), str(reason)] for path, reason in told.get("unread", ())]
    worse = [str(one) for one in told.get("worse", ())]
    kept = {"unread": unread, "worse": worse, "decision": str(told.get("decision", ""))}
    return {name: value for name, value in kept.items() if name in told}


def claim(place: Path) -> None:
    """Make a folder of reports, marked as such before anything is in it."""
    place.mkdir(parents=True, exist_ok=True)
    if not os.path.lexists(place / RECORD):  # a link may lead anywhere
        (place / RECORD).touch()


def write(place: Path, record: Record) -> None:
    """Write the record of a report, whole or not at all."""
    files.write(place / RECORD, to_bytes(record))


def to_bytes(record: Record) -> bytes:
    """Return what stands in the file of a record."""
    told = {
        "schema": _SCHEMA,
        "noted_ns": record.noted_ns,
        "settings": dict(record.settings),
        "result": dict(record.result),
        "outputs": dict(record.outputs),
        "inputs": dict(record.inputs),
    }
    # JSON escapes what is not UTF-8 in a name.
    return json.dumps(told).encode("ascii")


def signed(made: Mapping[str, bytes]) -> dict[str, Signature]:
    """Return the signatures of files that are not written yet: they prove no times."""
    return {
        name: (len(data), 0, 0, 0, sha256(data).hexdigest())
        for name, data in made.items()
    }


def one_digest(told: Mapping[str, str]) -> str:
    """Return one sha256 for many settings."""
    return sha256(json.dumps(told, sort_keys=True).encode("ascii")).hexdigest()


def _read(told: Sequence[Any]) -> Signature:
    size, mtime, ctime, inode, digest = told
    return int(size), int(mtime), int(ctime), int(inode), str(digest)


def _other_settings(record: Record, now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*record.settings, *now}):
        before, after = record.settings.get(name), now.get(name)
        if before != after:
            yield _differs(name, before, after)


def _other_inputs(record: Record, found: Mapping[str, Signature]) -> Iterator[str]:
    for path in sorted({*record.inputs, *found}):
        if path not in found:
            yield f"{path} is gone"
        elif path not in record.inputs:
            yield f"{path} is new"
        elif record.inputs[path][-1] != found[path][-1]:
            yield f"{path} changed"


def _other_outputs(
    record: Record, made: Mapping[str, Signature | None]
) -> Iterator[str]:
    for name, signed in record.outputs.items():
        found = made[name]
        if found is None:
            yield f"{name} is missing"
        elif found[-1] != signed[-1]:
            yield f"{name} was changed by another program"


def _unproven(found: Mapping[str, Signature], record: Record) -> bool:
    """Tell whether digests had to be taken that times would have saved."""
    signed = (*found.values(), *record.inputs.values())
    return any(not _proves(one[:-1], one, record) for one in signed)


def _differs(name: str, before: str | None, after: str | None) -> str:
    if name == "notebook":
        return "the notebook changed"
    if name.startswith(PAGE):
        return f"{name} {_fate(before, after)}"
    if name == "package":
        return "patchstudy itself changed"
    return f"{name}: {after or 'none'} instead of {before or 'none'}"


def _fate(before: str | None, after: str | None) -> str:
    if before is None:
        return "is not made yet"
    return "is not asked for any more" if after is None else "is of an older notebook"


def _matters(path: str) -> bool:
    """Tell whether a study reads a file: hidden ones only as facts."""
    if path == "README.md":
        return False
    parts = path.split("/")
    return parts[1:2] == ["facts"] or not any(one.startswith(".") for one in parts)


def _signature(
    entry: os.DirEntry[str], known: Signature | None, record: Record | None
) -> Signature:
    try:
        found = entry.stat()
        # A pipe or a device is no raw file: it must not be opened.
        if not stat.S_ISREG(found.st_mode):
            return (0, 0, 0, 0, f"no file: {stat.S_IFMT(found.st_mode):o}")
        times = _times(found)
        if known is not None and record is not None and _proves(times, known, record):
            return known
        return (*times, _digest(Path(entry.path)))
    except OSError as error:  # a link to nothing, or not ours to read
        return (0, 0, 0, 0, f"unreadable: {error.strerror}")


def _again(path: Path, known: Signature, record: Record) -> Signature | None:
    """Return the signature of an output as it is now, None where it is gone."""
    try:
        entry = path.stat()
        if not stat.S_ISREG(entry.st_mode):
            return None
        times = _times(entry)
        return known if _proves(times, known, record) else (*times, _digest(path))
    except OSError:
        return None


def _times(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _proves(times: tuple[int, int, int, int], known: Signature, record: Record) -> bool:
    """Tell whether a file cannot have changed since its record was written."""
    _, mtime, ctime, _ = times
    settled = max(mtime, ctime) + _RACY_NS < record.noted_ns
    return settled and times == known[:-1]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _package() -> str:
    """Return one sha256 of every source file of the package."""
    lines = [
        f"{_digest(Path(entry.path))}  {path}\n"
        for path, entry in walk(_PACKAGE)
        if not path.endswith(".pyc") and not path.startswith("notebooks/")
    ]
    return sha256("".join(sorted(lines)).encode()).hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
