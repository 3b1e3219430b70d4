"""Derive every number of a report again from its raw files, and compare.

First the inputs, by their sha256: where one is not what it was, that is the reason for
whatever else differs. Then ``report.json``, value by value, in its order; then what was
made of it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from reprlib import Repr
from typing import Any, Final

from patchstudy.errors import StudyError, printable
from patchstudy.findings import assess
from patchstudy.loaders import parsed
from patchstudy.report import files, results
from patchstudy.report.text import for_mail, text
from patchstudy.study import Study, hide, open_study

#: What names the programs, not the data: told, and no difference.
_PROGRAMS: Final = ("versions", "command")
_SHOWN: Final = re.compile(r"report\.json\): sha256 ([0-9a-f]{64})")
#: Writes a value of a report, which may be as long or nested as somebody liked.
_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 200
_MISSING: Final = object()
_REPORT: Final = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What came of deriving a report again.

    Attributes
    ----------
    study
        ``driver/patch``.
    numbers
        How many numbers of ``report.json`` were derived and are the same.
    differences
        One line each, the causes first; empty where the report is borne out.
    notes
        What differs and is no fault: another version of a library.
    """

    study: str
    numbers: int
    differences: tuple[str, ...]
    notes: tuple[str, ...]


def verify(folder: Path, data: Path | None = None) -> Verified:
    """Derive the report in a folder again.

    Parameters
    ----------
    folder
        A folder with ``report.json``.
    data
        The study; where None, the one that the report's notebook names.

    Raises
    ------
    StudyError
        If there is no report, or its study cannot be read at all.
    """
    _settle(folder)
    told = _told(folder)
    source = data or _source(folder)
    hidden = told["provenance"].get("hidden_names", 0) > 0
    with parsed.unused():
        study = hide(open_study(source), wanted=hidden)
    assessment = assess(study)
    content = json.loads(results.written(assessment))
    differences = [*_inputs(told["provenance"], study)]
    numbers, first = _first_difference(
        _without_programs(told), _without_programs(content)
    )
    if first:
        differences.append(f"{_REPORT}.json: {first}")
    shown = text(for_mail(assessment))
    differences.extend(_files(folder, shown, results.digest(assessment)))
    return Verified(
        study=study.name,
        numbers=numbers,
        differences=tuple(printable(one) for one in differences),
        notes=tuple(_other_programs(told, content)),
    )


def _settle(folder: Path) -> None:
    try:
        files.settle(folder)
    except OSError as error:
        raise StudyError(
            f"{folder}: holds files of two reports, and the newer ones cannot be put "
            f"in their places ({error.strerror}); make the report again"
        ) from error


def _told(folder: Path) -> dict[str, Any]:
    path = folder / f"{_REPORT}.json"
    try:
        told = json.loads(files.read(path))
    except OSError as error:
        raise StudyError(
            f"{path}: cannot be read ({error.strerror}); give the folder of one report"
        ) from error
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{path}: not the JSON of a report ({error})") from error
    if not isinstance(told, dict) or told.get("schema") != results.SCHEMA:
        raise StudyError(f"{path}: not a report of schema {results.SCHEMA}")
    if not _has_provenance(told):
        raise StudyError(f"{path}: does not say from which files it was made")
    return told


def _has_provenance(told: Mapping[str, Any]) -> bool:
    made = told.get("provenance")
    return (
        isinstance(made, dict)
        and isinstance(made.get("files"), dict)
        and isinstance(made.get("versions", {}), dict)
        and isinstance(made.get("hidden_names", 0), int)
    )


def _source(folder: Path) -> Path:
    """Return the study that the notebook of the report was run for."""
    path = folder / f"{_REPORT}.ipynb"
    try:
        notebook = json.loads(files.read(path))
        study = notebook["metadata"]["papermill"]["parameters"]["study"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise StudyError(
            f"{path}: does not name its study; give it with --data"
        ) from error
    return folder / str(study)


# ---- the inputs ---------------------------------------------------------------------


def _inputs(told: Mapping[str, Any], study: Study) -> Iterator[str]:
    """Name every raw file that is not what it was when the report was made."""
    before, now = dict(told["files"]), dict(study.files)
    for path in sorted(before.keys() | now.keys()):
        if path not in now:
            yield f"{path}: used by the report, and not found or not used now"
        elif path not in before:
            yield f"{path}: used now, and not by the report"
        elif before[path] != now[path]:
            yield (
                f"{path}: changed since the report: sha256 {before[path]} then, "
                f"{now[path]} now"
            )


# ---- the numbers --------------------------------------------------------------------


def _without_programs(content: Mapping[str, Any]) -> dict[str, Any]:
    made = content["provenance"]
    kept = {key: value for key, value in made.items() if key not in _PROGRAMS}
    return {**content, "provenance": kept}


def _first_difference(told: Any, derived: Any) -> tuple[int, str]:  # noqa: ANN401
    """Count the equal numbers before the first difference, and say what that is."""
    numbers = 0
    for path, one, other in _pairs("", told, derived):
        if one is _MISSING or other is _MISSING:
            where = "the report" if one is _MISSING else "what was derived"
            return numbers, f"{path}: missing in {where}"
        if type(one) is not type(other) or one != other:
            before, now = _SHORT.repr(one), _SHORT.repr(other)
            return numbers, f"{path}: {before} in the report, {now} derived"
        numbers += isinstance(one, int | float) and not isinstance(one, bool)
    return numbers, ""


def _pairs(path: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401
    """Yield the leaves of two JSON values side by side."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            inner = f"{path}.{key}" if path else key
            yield from _pairs(inner, one.get(key, _MISSING), other.get(key, _MISSING))
    elif isinstance(one, list) and isinstance(other, list):
        for at, (a, b) in enumerate(zip_longest(one, other, fillvalue=_MISSING)):
            yield from _pairs(f"{path}[{at}]", a, b)
    else:
        yield path, one, other


def _other_programs(told: Mapping[str, Any], derived: Mapping[str, Any]) -> list[str]:
    before = told["provenance"].get("versions", {})
    now = derived["provenance"]["versions"]
    return [
        printable(f"{name} {before.get(name)} made the report, {version} is here")
        for name, version in now.items()
        if before.get(name) != version
    ]


# ---- what was made of them ----------------------------------------------------------


def _files(folder: Path, shown: str, digest: str) -> Iterator[str]:
    """Compare the text, and the digest of the results that notebook and page show."""
    name = f"{_REPORT}.txt"
    block = _text(folder / name)
    if block is not None and block != shown:
        line = _first_line(block, shown)
        yield f"{name}: line {line} is not what was derived"
    for name in (f"{_REPORT}.ipynb", f"{_REPORT}.html"):
        found = set(_SHOWN.findall(_text(folder / name) or ""))
        if found and found != {digest}:
            yield f"{name}: was made from other results: sha256 {min(found)}"


def _text(path: Path) -> str | None:
    """Return what a file says; None where there is none.

    Raises
    ------
    StudyError
        If it cannot be read.
    """
    try:
        return files.read(path).decode("utf-8", "backslashreplace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from error


def _first_line(one: str, other: str) -> int:
    pairs = zip_longest(one.split("\n"), other.split("\n"))
    return next(at for at, (a, b) in enumerate(pairs, start=1) if a != b)


def report_folders(places: list[Path]) -> list[Path]:
    """Return the folders of reports in some folders: each itself, or all below it.

    Raises
    ------
    StudyError
        If there is none.
    """
    # A killed program may have left the results where the set was that it switched to.
    found = [
        folder
        for place in places
        for folder in sorted(
            {path.parent for path in place.rglob(f"{_REPORT}.json")}
            | {path.parent for path in place.rglob(f"{files.SWITCH}/")}
        )
    ]
    if not found:
        shown = ", ".join(map(str, places))
        raise StudyError(f"{shown}: no report.json; give the folder of reports")
    return found


def lines(found: Verified) -> list[str]:
    """Say what came of it, for people."""
    whole = f"all {found.numbers} numbers derived again, and the same"
    told = found.differences or (whole,)
    return [f"{found.study}: {one}" for one in (*told, *found.notes)]
