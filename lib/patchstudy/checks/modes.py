"""Two modes: units of one variant, or intervals of one run, that fall into two groups.

A mean of two modes is a value that was never seen. The interval of the change is kept,
as it covers under two modes too (STATISTICS 3.6); what is added is how many lie in
which mode.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from patchstudy import courses, stats
from patchstudy.checks.doubts import Doubt, Material, doubt_about, some, step
from patchstudy.records import Severity
from patchstudy.study import Role
from patchstudy.tables import Question
from patchstudy.units import for_people


def two_modes(found: Material) -> Iterator[Doubt]:
    """A gap that parts the units of one variant into two groups (STATISTICS 3.6)."""
    for question, variant, rows in found.by_variant:
        values = rows["value"].to_numpy(dtype=float)
        if np.ptp(values) == 0:
            continue
        gap = stats.gap(values, resolution=step(rows))
        if gap.flagged and gap.split is not None:
            yield doubt_about(
                question, "two-modes", Severity.DOUBT,
                f"{variant} falls into two groups; the gap is {gap.ratio:.1f} times as "
                f"wide as the wider group. {_by_variant(found, question, gap.split)}",
                "look at every run; find what sets the mode (CPU, queue, path)",
            )  # fmt: skip


def _by_variant(found: Material, question: Question, split: float) -> str:
    """Say how many units of each variant lie above the gap, and whether that differs.

    The first patched variant is judged, so Fisher's exact test is of its units and
    those of the baseline.
    """
    design = found.study.design
    units = found.units[found.units["question"] == question.key]
    counts = {
        name: _above(units.loc[units["variant"] == name, "value"], split)
        for name in (design.baseline, design.patched[0])
    }
    told = ", ".join(f"{k} of {n} {name}" for name, (k, n) in counts.items())
    shown = for_people(split, question.planned.metric.unit)
    table = [[k, n - k] for k, n in counts.values()]
    return f"Above {shown}: {told} (Fisher p {stats.fisher_p(table):.2g})"


def modes_within_runs(found: Material) -> Iterator[Doubt]:
    """Two levels between which one run goes to and fro, or gets stuck in either.

    The gap rule is applied to the intervals of one variant without the beginning of
    each run, so that a warm-up is not taken for a mode; the gap must be wider than the
    margin, and a run must have been in both modes. Intervals are only counted: they are
    no replicates, so nothing is tested.
    """
    for question in found.asked:
        asked = question.planned in found.study.design.metrics and not question.problem
        if not asked or question.role not in {Role.PRIMARY, Role.DIAGNOSTIC}:
            continue
        rows = courses.rows_of(found.intervals, question)
        for variant in found.study.design.variants:
            split = _split(rows[rows["variant"] == variant], question)
            told = [] if split is None else list(_within(found, question, rows, split))
            yield from told
            if told:
                break


def _split(rows: pd.DataFrame, question: Question) -> float | None:
    """Return the level between two modes of the intervals of a variant, if any."""
    runs = rows.groupby("name")
    beginning = np.ceil(courses.BEGINNING * runs["value"].transform("size"))
    rest = rows.loc[runs.cumcount() >= beginning, "value"].to_numpy(dtype=float)
    if not len(rest) or rest.min() <= 0:
        return None
    gap = stats.gap(np.log(rest))
    margin = courses.margin_of(question, float(np.median(rest)))
    if not gap.flagged or gap.split is None or _width(rest, gap.split) <= margin:
        return None
    return float(np.exp(gap.split))


def _width(values: np.ndarray, split: float) -> float:
    logs = np.log(values)
    return float(logs[logs > split].min() - logs[logs < split].max())


def _within(
    found: Material, question: Question, rows: pd.DataFrame, split: float
) -> Iterator[Doubt]:
    """Describe both modes, if any run was in both."""
    upper = rows["value"] > split
    inside = upper.groupby(rows["name"]).nunique()
    both = sorted(str(name) for name in inside.index[inside == 2])
    if not both:
        return
    unit = question.planned.metric.unit
    low, high = (
        for_people(float(rows.loc[part, "value"].median()), unit)
        for part in (~upper, upper)
    )
    counts = ", ".join(
        f"{k} of {n} {name}"
        for name in found.study.design.variants
        for k, n in [_above(rows.loc[rows["variant"] == name, "value"], split)]
        if n
    )
    yield doubt_about(
        question, "modes-within-runs", Severity.DOUBT,
        f"two modes within runs, near {low} and {high}: {counts} intervals in the "
        f"upper one; {len(both)} of {len(inside)} runs were in both ({some(both)}), so "
        "the mean of a run says how long it stayed in each",
        "look at the course of every run; find what sets the mode (CPU, queue, path)",
    )  # fmt: skip


def _above(values: Sequence[float] | pd.Series, split: float) -> tuple[int, int]:
    """How many lie above, and of how many."""
    array = np.asarray(values, dtype=float)
    return int((array > split).sum()), len(array)
