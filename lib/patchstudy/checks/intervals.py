"""What the intervals within the runs show."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from patchstudy import courses
from patchstudy.checks.doubts import Doubt, Material, doubt_about, some
from patchstudy.records import Severity
from patchstudy.study import Role
from patchstudy.tables import Question


def uneven_runs(found: Material) -> Iterator[Doubt]:
    """Runs that warm up, drift, stall or change their level: what intervals are for."""
    for question, units in found.deciding:
        if question.role is not Role.PRIMARY:
            continue
        runs = courses.per_course(found.intervals, question)
        margin = courses.margin_of(question, float(units["value"].median()))
        for variant, rows in runs.groupby("variant", sort=False):
            yield from _unsteady(question, str(variant), rows, margin)
            yield from _stalled(question, rows)
            yield from _shifted(question, rows)
        yield from _repeating(question, runs)


def _unsteady(
    question: Question, variant: str, rows: pd.DataFrame, margin: float
) -> Iterator[Doubt]:
    shown = question.planned.margin.text
    if courses.systematic(rows["warm_up"], margin):
        yield doubt_about(
            question, "warm-up", Severity.DOUBT,
            f"{variant}: the first tenth of a run is off the rest by "
            f"{100 * np.expm1(rows['warm_up'].mean()):+.2g} %, more than the margin of "
            f"{shown}",
            "leave the warm-up out (iperf3 -O 3), or measure longer",
        )  # fmt: skip
    if courses.systematic(rows["drift"], margin):
        yield doubt_about(
            question, "drift-in-run", Severity.DOUBT,
            f"{variant}: a run changes by {100 * rows['drift'].mean():+.2g} % from its "
            f"beginning to its end, more than the margin of {shown}",
            "measure longer, until the level stays; look for heat or a filling cache",
        )  # fmt: skip


def _stalled(question: Question, rows: pd.DataFrame) -> Iterator[Doubt]:
    stalled = rows[rows["stalls"] > 0]
    if len(stalled):
        count = int(stalled["stalls"].sum())
        often = "once" if count == 1 else f"{count} times"
        yield doubt_about(
            question, "stall", Severity.DOUBT,
            f"{often} the rate within a run falls below a fifth of its median, in "
            f"{some(list(stalled['name']))}",
            "look for link changes, resets or other load at that time",
        )  # fmt: skip


def _shifted(question: Question, rows: pd.DataFrame) -> Iterator[Doubt]:
    shifted = rows[rows["shifts"] > 0]
    if len(shifted):
        yield doubt_about(
            question, "level-shift", Severity.NOTE,
            f"the level changes within {len(shifted)} of {len(rows)} runs: "
            f"{some(list(shifted['name']))}",
            "look at the course of these runs",
        )  # fmt: skip


def _repeating(question: Question, runs: pd.DataFrame) -> Iterator[Doubt]:
    """Neighbours alike in most runs: how little a run's intervals tell."""
    known = runs.dropna(subset=["lag1"])
    if known.empty:
        return
    phi, n = known["lag1"].median(), known["intervals"].median()
    if phi > 2 / np.sqrt(n):
        yield doubt_about(
            question, "repeating-intervals", Severity.NOTE,
            f"intervals of a run repeat each other (lag-1 correlation {phi:.2f}): "
            f"{n:.0f} of them tell as much as {known['worth'].median():.0f}",
            "",
        )  # fmt: skip
