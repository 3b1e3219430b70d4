"""What published driver measurements state, and what the rules here say of each.

A table of facts: one row a measurement, with its source; a case is one mail, commit or
pull request. Nothing in it was measured here, so nothing in it becomes a verdict.
"""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from patchstudy import stats
from patchstudy.errors import StudyError
from patchstudy.report.table import Column, Table

_NEEDED: Final = (
    "case_id", "source", "subject", "driver", "metric", "unit", "baseline", "patched",
    "change_pct", "runs_per_arm", "spread_or_p", "cpu_baseline", "cpu_patched",
)  # fmt: skip
#: A number as it is printed, without a range or a remark.
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d+)?")
#: Units in which the CPU is what was measured.
_CPU: Final = re.compile(r"cpu|cycles", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One published measurement.

    Attributes
    ----------
    row
        The cells of the table, by column.
    runs
        Runs of each variant; None where no number is stated.
    ratio
        Patched / baseline with the bounds that the printed digits leave; None where a
        value is missing, zero or negative.
    """

    row: dict[str, str]
    runs: int | None
    ratio: stats.Bounds | None

    @property
    def case(self) -> str:
        """Name of the mail, commit or pull request."""
        return self.row["case_id"]

    @property
    def states_cpu(self) -> bool:
        """Whether it gives any figure of CPU or cycles."""
        told = self.row["cpu_baseline"] or self.row["cpu_patched"]
        cells = (self.row["unit"], self.row["metric"])
        return bool(told) or any(map(_CPU.search, cells))


def read(path: str | Path) -> tuple[Published, ...]:
    """Read the table of published measurements.

    Raises
    ------
    StudyError
        If a column is missing, or a row has too few cells.
    """
    path = Path(path)
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if missing := [one for one in _NEEDED if one not in (reader.fieldnames or ())]:
            raise StudyError(f"{path}: no column {missing[0]!r}; it needs {_NEEDED}")
        rows = list(reader)
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise StudyError(f"{path}: row {number} has not one cell a column")
    return tuple(_published(row) for row in rows)


def _published(row: dict[str, str]) -> Published:
    base, new = _printed(row["baseline"]), _printed(row["patched"])
    ratio = None
    if base is not None and new is not None and base.low > 0 and new.value > 0:
        ratio = stats.quotient(new, base)
    return Published(row=row, runs=runs_of(row["runs_per_arm"]), ratio=ratio)


def _printed(text: str) -> stats.Bounds | None:
    return stats.printed(text) if _NUMBER.fullmatch(text) else None


def runs_of(text: str) -> int | None:
    """Read how many runs of each variant are stated; None where no number is.

    >>> runs_of("2x10"), runs_of("~10"), runs_of("1 (60 s average)")
    (20, 10, 1)
    """
    if found := re.match(r"(\d+)x(\d+)", text):
        return int(found[1]) * int(found[2])
    found = re.match(r"[~>=\s]*(\d+)", text)
    return int(found[1]) if found else None


def rule(one: Published) -> str:
    """Say what the rules of this project make of a measurement as it was published."""
    if one.ratio is None:
        return "no ratio: a value is missing or not above zero"
    if one.runs is None:
        return "not assessable: no number of runs is stated"
    if one.runs == 1:
        return "not assessable: one run"
    return "not assessable here: several runs, of which only a summary is in the table"


def practice(found: Iterable[Published]) -> Table:
    """Count what the cases state."""
    cases = by_case(found)
    counts = {
        "state no number of runs, or one run": [x for x in cases if not replicated(x)],
        "state more runs": [x for x in cases if replicated(x)],
        "state a spread or a p": [
            x for x in cases if any(y.row["spread_or_p"] for y in x)
        ],
        "give any figure of CPU or cycles": [
            x for x in cases if any(y.states_cpu for y in x)
        ],
    }
    return Table(
        columns=(Column("Cases that"), Column("n", "right"), Column("of", "right"),
                 Column("Share", "right")),
        rows=tuple(
            (name, str(len(ones)), str(len(cases)), f"{len(ones) / len(cases):.0%}")
            for name, ones in counts.items()
        ),
        caption="What published driver measurements state, by case",
    )  # fmt: skip


def rules(found: Iterable[Published]) -> Table:
    """Count what the rules say of the measurements."""
    counts: dict[str, int] = {}
    for one in found:
        counts[rule(one)] = counts.get(rule(one), 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Table(
        columns=(Column("Rule"), Column("Measurements", "right")),
        rows=tuple((name, str(count)) for name, count in ordered),
        caption="What the rules say of published measurements, by row",
    )


def table(found: Iterable[Published]) -> Table:
    """List every measurement with the ratio of its values and its rounding bounds."""
    return Table(
        columns=(
            Column("Case"), Column("Driver"), Column("Metric"),
            Column("Baseline", "right"), Column("Patched", "right"), Column("Unit"),
            Column("Runs"), Column("Ratio [by rounding]", "right"), Column("Rule"),
        ),
        rows=tuple(_cells(one) for one in found),
        caption="Every published measurement",
    )  # fmt: skip


def _cells(one: Published) -> tuple[str, ...]:
    named = ("case_id", "driver", "metric", "baseline", "patched", "unit")
    ratio = one.ratio
    shown = f"{ratio.value:.4g} [{ratio.low:.4g}, {ratio.high:.4g}]" if ratio else "-"
    cells = [one.row[name] or "-" for name in named]
    return (*cells, one.row["runs_per_arm"] or "not stated", shown, rule(one))


def by_case(found: Iterable[Published]) -> list[list[Published]]:
    """Group the measurements of each case."""
    cases: dict[str, list[Published]] = {}
    for one in found:
        cases.setdefault(one.case, []).append(one)
    return list(cases.values())


def replicated(case: Iterable[Published]) -> bool:
    """Say whether any measurement of a case states more than one run."""
    return any(one.runs is not None and one.runs > 1 for one in case)
