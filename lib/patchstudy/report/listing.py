"""What the command line prints: plain tables, CSV and JSON."""

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

from patchstudy import checks, loaders
from patchstudy.errors import CaptureError, StudyError
from patchstudy.findings import (
    Assessment,
    Finding,
    change_in_words,
    replication_in_words,
    shared_unit,
    values_in_words,
)
from patchstudy.metrics import metric
from patchstudy.records import Capture, Measurement, Severity
from patchstudy.report.results import results
from patchstudy.report.table import Column, Table, to_text, visible
from patchstudy.study import Role, open_study
from patchstudy.units import for_people

_ORDER = ("device", "workload", "variant", "purpose")


def as_json(content: object) -> str:
    """Write any content as JSON, as programs like it."""
    return json.dumps(content, indent=1, allow_nan=False)


# ---- check --------------------------------------------------------------------------


def checked(folder: Path) -> dict[str, Any]:
    """What a study holds and what is doubtful about it.

    Returns
    -------
    dict
        ``study``, ``runs`` (counts by device, workload, variant and purpose),
        ``files`` used, ``not_used`` with reasons, ``doubts``, and ``status``: 0 where
        nothing is doubtful, 1 where something is, 2 where a raw file cannot be read.

    Raises
    ------
    StudyError
        If the study cannot be used at all.
    """
    study = open_study(folder)
    found = checks.check(checks.material(study))
    counts: dict[tuple[str, ...], int] = {}
    for run in study.runs:
        key = tuple(getattr(run, name) for name in _ORDER)
        counts[key] = counts.get(key, 0) + 1
    return {
        "study": study.name,
        "runs": [
            {**dict(zip(_ORDER, key, strict=True)), "runs": count}
            for key, count in sorted(counts.items())
        ],
        "files": len(study.files),
        "not_used": [
            {"path": one.path, "reason": one.reason, "broken": one.broken}
            for one in study.leftovers
        ],
        "doubts": [_doubt(one) for one in found],
        "status": _status(study.leftovers, found),
    }


def _doubt(one: checks.Doubt) -> dict[str, str]:
    return {
        "severity": str(one.caveat.severity),
        "code": one.caveat.code,
        "device": one.device,
        "workload": one.workload,
        "question": one.question,
        "text": one.caveat.text,
        "todo": one.caveat.todo,
    }


def _status(leftovers: Iterable[Any], found: Iterable[checks.Doubt]) -> int:
    if any(one.broken for one in leftovers):
        return 2
    return int(any(one.caveat.severity is not Severity.NOTE for one in found))


def check_text(content: Mapping[str, Any]) -> str:
    """Write what ``checked`` found for people."""
    columns = (*(Column(name) for name in _ORDER), Column("runs", "right"))
    rows = tuple(
        tuple(str(one[column.name]) for column in columns) for one in content["runs"]
    )
    counted = f"{content['study']}: {content['files']} raw files used"
    lines = [to_text(Table(columns, rows, counted)), ""]
    lines += [
        visible(f"not used: {one['path']}: {one['reason']}")
        for one in content["not_used"]
    ]
    for one in content["doubts"]:
        where = " ".join(x for x in (one["device"], one["workload"]) if x) or "all"
        todo = f" ({one['todo']})" if one["todo"] else ""
        lines.append(visible(f"{one['severity']}: {where}: {one['text']}{todo}"))
    return "\n".join(lines)


# ---- load ---------------------------------------------------------------------------


def loaded(paths: Sequence[Path]) -> tuple[list[Capture], list[CaptureError]]:
    """Load files side by side; a folder stands for all files below it."""
    files = [file for path in paths for file in _files(path)]
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(_loaded, files))
    captures = [one for one in found if isinstance(one, Capture)]
    errors = [one for one in found if isinstance(one, CaptureError)]
    return captures, errors + [_aborted(one) for one in captures if one.error]


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(one for one in path.rglob("*") if one.is_file())
    return [path]


def _loaded(path: Path) -> Capture | CaptureError:
    try:
        return loaders.load(path)
    except CaptureError as error:
        return error


def _aborted(capture: Capture) -> CaptureError:
    fault = capture.error
    text = fault.text if fault else ""
    where = fault.where if fault else None
    return CaptureError(capture.path, f"aborted run: {text}", where=where)


def load_json(captures: Iterable[Capture], errors: Iterable[CaptureError]) -> str:
    """One JSON object per file, as a list; a file that failed has only its error."""
    failed = {one.path: one for one in errors}
    objects = [loaders.as_json(one) for one in captures]
    objects += [
        {"path": str(path), "error": {"text": one.problem, "where": one.where}}
        for path, one in failed.items()
        if str(path) not in {entry["path"] for entry in objects}
    ]
    return as_json(objects)


def load_text(captures: Iterable[Capture], grain: str) -> str:
    """One table a file, for people."""
    return "\n\n".join(_capture_text(one, grain) for one in captures)


def _capture_text(capture: Capture, grain: str) -> str:
    kind = "counters since boot" if capture.cumulative else f"values by {grain}"
    version = f" {capture.tool_version}" if capture.tool_version else ""
    caption = f"{capture.path}: {capture.tool}{version}, {kind}"
    columns = (Column("metric"), Column("labels"), Column("from s", "right"),
               Column("to s", "right"), Column("value", "right"))  # fmt: skip
    rows = tuple(_cells(one) for one in _of_grain(capture, grain))
    lines = [to_text(Table(columns, rows, caption))]
    if capture.profile is not None:
        count = len(capture.profile.stacks)
        lines.append(f"profile: {count} stacks, weight {capture.profile.total:g}")
    lines += [visible(f"{one.severity}: {one.text}") for one in capture.caveats]
    return "\n".join(lines)


def _cells(one: Measurement) -> tuple[str, ...]:
    labels = " ".join(f"{name}={value}" for name, value in sorted(one.labels.items()))
    ends = ("" if end is None else f"{end:g}" for end in (one.start_s, one.end_s))
    shown = for_people(one.value, metric(one.metric).unit, digits=6)
    if float(one.value).is_integer() and metric(one.metric).unit == "1":
        shown = f"{one.value:.0f}"
    return (one.metric, labels or "-", *ends, shown)


def _of_grain(capture: Capture, grain: str) -> Iterator[Measurement]:
    for one in capture.measurements:
        if (one.start_s is None) == (grain == "run"):
            yield one


def load_table(captures: Iterable[Capture], grain: str) -> pd.DataFrame:
    """One row per measurement of the grain, of all files.

    Returns
    -------
    pandas.DataFrame
        Columns ``path``, ``tool``, ``metric``, ``labels``, ``start_s``, ``end_s``,
        ``value`` (base unit), ``unit``, ``exposure``, ``cumulative``.
    """
    rows = [
        {
            "path": str(capture.path),
            "tool": capture.tool,
            "metric": one.metric,
            "labels": " ".join(f"{k}={v}" for k, v in sorted(one.labels.items())),
            "start_s": math.nan if one.start_s is None else one.start_s,
            "end_s": math.nan if one.end_s is None else one.end_s,
            "value": float(one.value),
            "unit": metric(one.metric).unit,
            "exposure": math.nan if one.exposure is None else one.exposure,
            "cumulative": capture.cumulative,
        }
        for capture in captures
        for one in _of_grain(capture, grain)
    ]
    names = ["path", "tool", "metric", "labels", "start_s", "end_s", "value", "unit",
             "exposure", "cumulative"]  # fmt: skip
    return pd.DataFrame(rows, columns=names)


def load_csv(captures: Iterable[Capture], grain: str) -> str:
    """The table of ``load_table`` as CSV; control characters are escapes."""
    table = load_table(captures, grain)
    for name in ("path", "metric", "labels"):
        table[name] = table[name].map(visible)
    return table.to_csv(index=False, lineterminator="\n")


def load_parquet(captures: Iterable[Capture], grain: str) -> bytes:
    """The table of ``load_table`` as Parquet.

    Raises
    ------
    StudyError
        If pyarrow is not installed.
    """
    buffer = io.BytesIO()
    try:
        load_table(captures, grain).to_parquet(buffer, index=False)
    except ImportError as error:
        raise StudyError("parquet needs pyarrow; pip install pyarrow") from error
    return buffer.getvalue()


# ---- compare ------------------------------------------------------------------------


def compare_text(assessment: Assessment) -> str:
    """The comparison of two sets of files, the deciding metric first."""
    chosen = [one for one in assessment.findings if one.comparison.change is not None]
    rows = tuple(_compared(one) for one in chosen)
    numbers = ("baseline", "patched", "change [95 %]", "runs")
    columns = (Column("metric"), *(Column(name, "right") for name in numbers),
               Column("verdict"))  # fmt: skip
    primary = [one.sentence for one in chosen if one.role is Role.PRIMARY]
    caption = " ".join(primary) or "The metric that decides could not be compared."
    lines = [to_text(Table(columns, rows, caption)), ""]
    lines += [
        visible(f"{one.caveat.severity}: {one.caveat.text}")
        for one in assessment.doubts
        if one.caveat.severity is not Severity.NOTE
    ]
    return "\n".join(lines)


def _compared(one: Finding) -> tuple[str, ...]:
    comparison = one.comparison
    labels = " ".join(f"{k}={v}" for k, v in comparison.question.labels)
    return (
        " ".join([one.planned.metric.name, shared_unit(comparison)[1], labels]),
        *values_in_words(comparison),
        change_in_words(comparison),
        replication_in_words(comparison),
        ", ".join([str(one.verdict), *one.qualifiers]),
    )


def compare_json(assessment: Assessment) -> str:
    """The results of the comparison, in the shape of ``report.json``."""
    return as_json(results(assessment))
