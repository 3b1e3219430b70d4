"""Code placement: how much builds of one source differ, and so any two kernels may."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import stats
from patchstudy.checks.doubts import Doubt, Material, doubt_about
from patchstudy.metrics import Scale
from patchstudy.records import Severity
from patchstudy.tables import Question

#: Builds of one source from which their spread is taken as the layout noise floor.
FLOOR_BUILDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The layout noise floor of a metric on a device.

    Attributes
    ----------
    workload
        Where the builds were measured.
    builds
        How many builds of the baseline and of the placebo variant there are.
    between, within
        Standard deviation of logs: of the means of builds, and of the runs of a build
        (None where every build has one).
    """

    workload: str
    builds: int
    between: float
    within: float | None

    def reach(self, confidence: float) -> float:
        """Largest difference of logs that two builds of one source show.

        With this confidence, for two more builds: a t interval of the difference of two
        values whose standard deviation is that between builds.
        """
        difference = stats.Effect(
            value=0.0,
            standard_error=math.sqrt(2) * self.between,
            df=self.builds - 1,
            method="t interval of the difference of two builds",
            floored=False,
        )
        return difference.interval(confidence).high


def layout_floor(found: Material, question: Question) -> Floor | None:
    """Return the layout noise floor that holds for a question, if it was measured.

    It comes from the builds of the baseline and of the placebo variant, which differ in
    code layout only. Those of the same workload are taken, else those of the workload
    on this device that has most.
    """
    if question.planned.metric.scale is not Scale.RATIO or question.problem:
        return None
    rows = _built(found)
    if len(set(rows["build"])) < FLOOR_BUILDS:
        return None
    rows = rows[
        (rows["metric"] == question.planned.metric.name)
        & (rows["device"] == question.device)
        & (rows["value"] > 0)
    ]
    alike = [labels == question.labels for labels in rows["labels"]]
    rows = rows[np.array(alike, dtype=bool)]
    floors = [
        floor
        for workload, part in rows.groupby("workload")
        if (floor := _floor(str(workload), part)) is not None
    ]
    return max(
        floors, key=lambda x: (x.workload == question.workload, x.builds), default=None
    )


def _built(found: Material) -> pd.DataFrame:
    """Runs of known builds that differ in code layout only; none without a placebo."""
    design = found.study.design
    if not design.placebo:
        return found.runs.iloc[:0]
    same = found.runs["variant"].isin([design.baseline, design.placebo])
    return found.runs[same & (found.runs["build"] != "")]


def _floor(workload: str, rows: pd.DataFrame) -> Floor | None:
    builds = [
        np.log(part["value"].to_numpy(dtype=float)) for _, part in rows.groupby("build")
    ]
    if len(builds) < FLOOR_BUILDS:
        return None
    spreads = [one.var(ddof=1) for one in builds if len(one) > 1]
    return Floor(
        workload=workload,
        builds=len(builds),
        between=float(np.std([one.mean() for one in builds], ddof=1)),
        within=math.sqrt(np.mean(spreads)) if spreads else None,
    )


def code_placement(found: Material) -> Iterator[Doubt]:
    """How much builds of the same source differ on this device."""
    for question, _ in found.deciding:
        floor = layout_floor(found, question)
        if floor is None:
            continue
        confidence = 1 - found.study.design.alpha
        inside = (
            "" if floor.within is None else f", {_percent(floor.within)} within one"
        )
        yield doubt_about(
            question, "code-placement", Severity.NOTE,
            f"{floor.builds} builds that differ in code placement only have a standard "
            f"deviation of {_percent(floor.between)} between builds{inside}, so two of "
            f"them may differ by {_percent(floor.reach(confidence))}",
            "",
        )  # fmt: skip


def _percent(log: float) -> str:
    return f"{100 * math.expm1(log):.2g} %"
