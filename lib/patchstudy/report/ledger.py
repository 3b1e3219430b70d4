"""The runs behind the numbers: each with its values and its raw files."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import pandas as pd

from patchstudy.compare import Comparison
from patchstudy.findings import Assessment
from patchstudy.metrics import Kind
from patchstudy.report.table import Column, Linked, Table
from patchstudy.sentences import shared_unit
from patchstudy.study import Role, Study
from patchstudy.tables import series
from patchstudy.units import significant

#: Digits of a sha256 that a table shows; ``report.json`` has all 64.
SHOWN_DIGITS: Final = 12
_ROLES: Final = (Role.PRIMARY, Role.CONTROL, Role.GUARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measured run.

    Attributes
    ----------
    order, timed
        Its place among the runs of the device and workload; whether it is that in time.
    measured
        By metric, in the base unit; counts per packet where packets are known.
    files
        The raw files that these values come from, with their sha256.
    """

    device: str
    workload: str
    variant: str
    block: str
    name: str
    order: int
    timed: bool
    measured: Mapping[str, float]
    files: Mapping[str, str]


def lines(assessment: Assessment) -> tuple[Line, ...]:
    """Every measured run, by device and workload and then in time."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for comparison in _compared(assessment):
        question = comparison.question
        metric = question.planned.metric
        for row in _rows(assessment, comparison).to_dict("records"):
            key = (question.device, question.workload, str(row["name"]))
            blank = {**row, "values": {}, "files": {}}
            line = found.setdefault(key, {str(name): x for name, x in blank.items()})
            line["values"][metric.name] = float(row["value"])
            path = str(row["path"])
            line["files"][path] = assessment.study.files.get(path, "")
    made = [
        Line(
            device=device,
            workload=workload,
            variant=str(row["variant"]),
            block=str(row["block"]),
            name=name,
            order=int(row["order"]),
            timed=bool(row["timed"]),
            measured=row["values"],
            files=dict(sorted(row["files"].items())),
        )
        for (device, workload, name), row in found.items()
    ]
    return tuple(sorted(made, key=lambda one: (one.device, one.workload, one.order)))


def _compared(assessment: Assessment) -> list[Comparison]:
    """One comparison of each question that decides something and has data."""
    found = {
        one.comparison.question.key: one.comparison
        for one in assessment.findings
        if one.role in _ROLES
        and not one.comparison.question.problem
        and one.planned.metric.name != "failed_runs"
    }
    return list(found.values())


def _rows(assessment: Assessment, comparison: Comparison) -> pd.DataFrame:
    rows = series(assessment.material.runs, comparison.question)
    if comparison.question.planned.metric.kind is Kind.COUNT:
        share = rows["value"] / rows["exposure"].where(rows["exposure"] > 0)
        if not share.isna().any():
            return rows.assign(value=share)
    return rows


def anchor(assessment: Assessment, device: str, workload: str) -> str:
    """Name of the table that holds the runs of a device and workload."""
    cells = sorted({(one.device, one.workload) for one in assessment.study.runs})
    cell = (device, workload)
    return f"runs-{cells.index(cell) + 1}" if cell in cells else ""


def address(folder: Path, path: str) -> str:
    """Where a raw file is, for a link; of a member of an archive, the archive."""
    place = folder / path
    archives = [one for one in place.parents if one.is_file()]
    place = archives[0] if archives else place
    return quote(place.as_posix(), errors="surrogateescape")


def tables(assessment: Assessment) -> tuple[Table, ...]:
    """One folded table a device and workload, one row a run, in order of time."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for one in lines(assessment):
        groups.setdefault((one.device, one.workload), []).append(one)
    return tuple(
        _table(assessment, device, workload, members)
        for (device, workload), members in groups.items()
    )


def _table(
    assessment: Assessment, device: str, workload: str, members: Sequence[Line]
) -> Table:
    units = {
        one.question.planned.metric.name: shared_unit(one)
        for one in _compared(assessment)
        if (one.question.device, one.question.workload) == (device, workload)
    }
    names = [f"{name} [{unit}]" if unit else name for name, (_, unit) in units.items()]
    rows = tuple(
        (
            str(one.order), one.variant, one.block or "-", one.name,
            *_values(one, units), _raw(one.files, assessment.study),
        )
        for one in members
    )  # fmt: skip
    columns = (
        Column("Order", "right"), Column("Variant"), Column("Block"), Column("Run"),
        *(Column(name, "right") for name in names), Column("Raw files, sha256"),
    )  # fmt: skip
    known = in_order(timed=all(one.timed for one in members))
    caption = f"{workload} on {device}: {len(members)} runs {known}"
    name = anchor(assessment, device, workload)
    return Table(columns, rows, caption, name=name, folded=True)


def in_order(*, timed: bool) -> str:
    """Say how runs are ordered: in time only where every file tells when."""
    if timed:
        return "in order of time"
    return "in the order of the files, that in time is not known"


def _values(one: Line, units: Mapping[str, tuple[float, str]]) -> Iterable[str]:
    for name, (scale, _) in units.items():
        value = one.measured.get(name)
        yield "-" if value is None else significant(value / scale)


def _raw(files: Mapping[str, str], study: Study) -> str:
    """Links to the raw files, by the rest of their names and the sha256."""
    shown = {path: _short(path, digest) for path, digest in files.items()}
    links = [(text, address(study.folder, path)) for path, text in shown.items()]
    # Of a redacted report a path may be renamed: it leads nowhere.
    there = (unquote(to, errors="surrogateescape") for _, to in links)
    if study.hidden and not all(map(os.path.exists, there)):
        return ", ".join(shown.values())
    return Linked(*links) if links else "-"


def _short(path: str, digest: str) -> str:
    name = path.rpartition("/")[2]
    rest = name.partition(".")[2] or name
    return f"{rest} {digest[:SHOWN_DIGITS]}".strip()
