"""What the command line prints: plain tables, CSV and JSON."""

import io
import json
import math
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from patchstudy import banks, checks, loaders
from patchstudy.compare import Comparison, compare, margin_on_scale, units_each
from patchstudy.errors import CaptureError, NoRunsError, StudyError
from patchstudy.findings import Assessment
from patchstudy.metrics import metric
from patchstudy.noise import Noise, Series, series_of
from patchstudy.records import Capture, Measurement, Profile, Severity
from patchstudy.report import noise, starting
from patchstudy.report.results import results
from patchstudy.report.table import Column, Table, cell_of_csv, to_text, visible
from patchstudy.sentences import (
    change_in_words,
    difference_unit,
    replication_in_words,
    shared_unit,
    values_in_words,
)
from patchstudy.study import Role, Study, open_study
from patchstudy.units import for_people
from patchstudy.verdicts import Finding

_ORDER = ("device", "workload", "variant", "purpose")
#: Columns of ``load_table``: words that repeat, and numbers.
_WORDS = ("path", "tool", "metric", "labels", "unit")
_NUMBERS = ("start_s", "end_s", "value", "exposure", "cumulative")
_COLUMNS = ("path", "tool", "metric", "labels", "start_s", "end_s", "value", "unit",
            "exposure", "cumulative")  # fmt: skip
#: Files that are loaded before they are asked for.
_AHEAD = 8


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
        ``files`` used, ``not_used`` with reasons, ``doubts``, ``noise`` (what A/A
        comparisons show) and ``margins`` to hold against it, and ``status``: 0 where
        nothing is doubtful, 1 where something is, 2 where a raw file cannot be read.

    Raises
    ------
    StudyError
        If the study cannot be used at all.
    """
    try:
        study = open_study(folder)
    except NoRunsError:
        return starting.unmeasured(folder)
    material = checks.material(study)
    found = checks.check(material)
    bank = banks.bank_of(study)
    compared = compare(material.units, material.asked, study.design, found, bank)
    own = banks.noises(study.name, compared, study.design)
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
        "noise": [asdict(one) for one in (*own, *bank.noises)],
        "margins": list(_margins(study, compared)),
        "status": _status(study.leftovers, found),
    }


def _margins(study: Study, compared: Iterable[Comparison]) -> Iterator[dict[str, Any]]:
    """Yield the margins that decide, on the analysis scale, of the variant judged."""
    for one in compared:
        planned, role = one.question.planned, one.question.role
        decides = role in {Role.PRIMARY, Role.GUARD} and planned.expect != "same"
        first = one.variant == study.design.patched[0]
        value = margin_on_scale(one)
        if decides and first and one.effect is not None and value is not None:
            yield {
                "study": study.name,
                "series": asdict(series_of(one.question)),
                "scale": str(one.scale),
                "text": planned.margin.text,
                "value": value,
                "unit": difference_unit(one),
                "units": float(one.blocks) or units_each(one),
                "paired": one.blocks > 0,
                "copy": study.design.base2 != "",
            }


def testable_text(contents: Sequence[Mapping[str, Any]]) -> str:
    """Say which margins of these studies their A/A noise lets be tested; or nothing."""
    bank = [
        Noise(**{**one, "series": Series(**one["series"])})
        for content in contents
        for one in content["noise"]
    ]
    told = [
        noise.testable({**one, "series": Series(**one["series"])}, bank)
        for content in contents
        for one in content["margins"]
    ]
    return "\n".join(visible(one) for one in told if one)


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
    lines = [to_text(Table(columns, rows, counted)) if rows else counted, ""]
    lines += [
        visible(f"not used: {one['path']}: {one['reason']}")
        for one in content["not_used"]
    ]
    for one in content["doubts"]:
        cell = f"{one['device']}/{one['workload']}/"
        metric_name = one["question"].removeprefix(cell)
        parts = (one["device"], one["workload"], metric_name)
        where = " ".join(part for part in parts if part) or "all"
        todo = f" ({one['todo']})" if one["todo"] else ""
        lines.append(visible(f"{one['severity']}: {where}: {one['text']}{todo}"))
    return "\n".join(lines)


# ---- load ---------------------------------------------------------------------------


def loaded(paths: Sequence[Path]) -> tuple[Iterator[Capture], list[CaptureError]]:
    """Load files side by side; a folder stands for all files below it.

    Returns
    -------
    captures
        In the order of the files, one for each member of an archive. They are loaded
        as they are taken, a few ahead, so that many files need little memory.
    errors
        Why there is no capture, or none of a whole run; complete when all captures
        have been taken.
    """
    errors: list[CaptureError] = []
    return _captures(paths, errors), errors


def _captures(paths: Sequence[Path], errors: list[CaptureError]) -> Iterator[Capture]:
    aborted: list[CaptureError] = []
    for one in _in_order(file for path in paths for file in raw_files(path)):
        if isinstance(one, CaptureError):
            errors.append(one)
            continue
        if one.error:
            aborted.append(_aborted(one))
        yield one
    errors += aborted


def _in_order(files: Iterable[Path]) -> Iterator[Capture | CaptureError]:
    """Load so many files at once as there are threads."""
    with ThreadPoolExecutor() as pool:
        ahead: deque[Future[list[Capture | CaptureError]]] = deque()
        for file in files:
            ahead.append(pool.submit(lambda file=file: list(loaders.load_all(file))))
            if len(ahead) > _AHEAD:
                yield from ahead.popleft().result()
        while ahead:
            yield from ahead.popleft().result()


def raw_files(path: Path) -> list[Path]:
    """Return the file itself, or all files below a folder."""
    if path.is_dir():
        return sorted(one for one in path.rglob("*") if one.is_file())
    return [path]


def _aborted(capture: Capture) -> CaptureError:
    fault = capture.error
    text = fault.text if fault else ""
    where = fault.where if fault else None
    return CaptureError(capture.path, f"aborted run: {text}", where=where)


def load_json(
    captures: Iterable[Capture], errors: Sequence[CaptureError]
) -> Iterator[str]:
    """Yield the pieces of a JSON list of one object per file, failed ones at its end.

    ``errors`` is looked at when all captures have been taken (``loaded``).
    """
    shown: set[str] = set()
    start = "[\n"
    for one in captures:
        shown.add(str(one.path))
        yield start + as_json(loaders.as_json(one))
        start = ",\n"
    failed = {str(one.path): one for one in errors if str(one.path) not in shown}
    for path, one in failed.items():
        error = {"text": one.problem, "where": one.where}
        yield start + as_json({"path": path, "error": error})
        start = ",\n"
    yield "]\n" if start != "[\n" else "[]\n"


def load_text(captures: Iterable[Capture], grain: str) -> Iterator[str]:
    """Yield one table a file, for people."""
    start = ""
    for one in captures:
        yield f"{start}{_capture_text(one, grain)}\n"
        start = "\n"


def _capture_text(capture: Capture, grain: str) -> str:
    kind = "counters since boot" if capture.cumulative else f"values by {grain}"
    version = f" {capture.tool_version}" if capture.tool_version else ""
    caption = f"{capture.path}: {capture.tool}{version}, {kind}"
    columns = (Column("metric"), Column("labels"), Column("from s", "right"),
               Column("to s", "right"), Column("value", "right"))  # fmt: skip
    rows = tuple(_cells(one) for one in _of_grain(capture, grain))
    lines = [to_text(Table(columns, rows, caption)), *_left_out(capture, grain)]
    lines += [_profile_line(one) for one in capture.profiles]
    lines += [visible(f"{one.severity}: {one.text}") for one in capture.caveats]
    return "\n".join(lines)


def _left_out(capture: Capture, grain: str) -> Iterator[str]:
    """Say how many values of the other grain there are, and how to see them."""
    other = "run" if grain == "interval" else "interval"
    if count := sum(1 for _ in _of_grain(capture, other)):
        yield f"{count} values by {other} are not shown; see them with --grain {other}"


def _profile_line(one: Profile) -> str:
    """Return one line on a profile: its event, its stacks and what they add up to."""
    event = f" of {visible(one.event)}" if one.event else ""
    unit = f" {one.unit}" if one.unit else ""
    samples = "" if one.samples is None else f", {one.samples} samples"
    lost = f", {one.lost} lost" if one.lost else ""
    weight = f"weight {one.total:.10g}{unit}"
    return f"profile{event}: {len(one.stacks)} stacks, {weight}{samples}{lost}"


def _cells(one: Measurement) -> tuple[str, ...]:
    labels = _labels(one)
    ends = ("" if end is None else f"{end:g}" for end in (one.start_s, one.end_s))
    shown = for_people(one.value, metric(one.metric).unit, digits=6)
    if float(one.value).is_integer() and metric(one.metric).unit == "1":
        shown = f"{one.value:.0f}"
    return (one.metric, labels or "-", *ends, shown)


def _labels(one: Measurement) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(one.labels.items()))


def _of_grain(capture: Capture, grain: str) -> Iterator[Measurement]:
    for one in capture.measurements:
        if (one.start_s is None) == (grain == "run"):
            yield one


def load_table(captures: Iterable[Capture], grain: str) -> pd.DataFrame:
    """One row per measurement of the grain, of all files.

    Returns
    -------
    pandas.DataFrame
        Columns ``path``, ``tool``, ``metric``, ``labels`` and ``unit`` (categories),
        ``start_s``, ``end_s``, ``value`` (base unit), ``exposure``, ``cumulative``.
    """
    words: dict[str, _Words] = {name: _Words() for name in _WORDS}
    numbers = {name: array("d") for name in _NUMBERS}
    for capture in captures:
        chosen = list(_of_grain(capture, grain))
        words["path"].add([str(capture.path)] * len(chosen))
        words["tool"].add([capture.tool] * len(chosen))
        words["metric"].add([one.metric for one in chosen])
        words["labels"].add([_labels(one) if one.labels else "" for one in chosen])
        words["unit"].add([metric(one.metric).unit for one in chosen])
        for name in ("start_s", "end_s", "value", "exposure"):
            found = [getattr(one, name) for one in chosen]
            numbers[name].extend(math.nan if one is None else one for one in found)
        numbers["cumulative"].extend([capture.cumulative] * len(chosen))
    columns = {name: told.column() for name, told in words.items()}
    columns |= {name: np.asarray(told) for name, told in numbers.items()}
    table = pd.DataFrame({name: columns[name] for name in _COLUMNS})
    return table.astype({"cumulative": bool})


class _Words:
    """A column of words that repeat: each is kept once."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._rows = array("i")

    def add(self, words: Iterable[str]) -> None:
        codes = self._codes
        self._rows.extend(codes.setdefault(word, len(codes)) for word in words)

    def column(self) -> pd.Categorical:
        rows = np.asarray(self._rows)
        return pd.Categorical.from_codes(
            rows, categories=pd.Index(list(self._codes), dtype=object)
        )


def load_csv(captures: Iterable[Capture], grain: str) -> Iterator[str]:
    """Yield the table of ``load_table`` as CSV, file by file, without control marks."""
    header = True
    for one in captures:
        table = load_table([one], grain)
        for name in ("path", "metric", "labels"):
            table[name] = table[name].map(cell_of_csv)
        yield table.to_csv(index=False, header=header, lineterminator="\n")
        header = False
    if header:
        yield ",".join(_COLUMNS) + "\n"


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
    chosen = [
        one
        for one in assessment.findings
        if one.comparison.change is not None or one.role is Role.PRIMARY
    ]
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
