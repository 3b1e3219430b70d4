"""Tidy tables of an assessment, as the figures draw them."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pandas as pd

from patchstudy.compare import Comparison
from patchstudy.findings import Assessment
from patchstudy.metrics import Scale
from patchstudy.sentences import GUARD_WORDS, shared_unit
from patchstudy.study import Role
from patchstudy.verdicts import Finding, Guarded


def declared(assessment: Assessment) -> list[Finding]:
    """Findings that decide something and have a change."""
    deciding = {Role.PRIMARY, Role.CONTROL, Role.GUARD}
    return [
        one
        for one in assessment.findings
        if one.role in deciding and one.comparison.change is not None
    ]


def noise_note(findings: Iterable[Finding]) -> str:
    """Say what is dashed in a picture of changes; empty where nothing is."""
    if all(one.layout_noise is None for one in findings):
        return ""
    return " Dashed: how far builds may lie apart that differ in code placement only."


def bounds(one: Finding) -> tuple[float, float]:
    """Return margin and noise of code placement, shares of 1 where a change is one.

    NaN for what is not known.
    """
    ratio = one.comparison.scale is Scale.RATIO
    margin, noise = (
        np.nan if size is None else float(np.expm1(size)) if ratio else size
        for size in (one.margin, one.layout_noise)
    )
    return margin, noise


def forest_rows(assessment: Assessment) -> pd.DataFrame:
    """The table that ``figures.forest`` draws: a row a declared change."""
    return pd.DataFrame([_forest_row(one) for one in declared(assessment)])


def _forest_row(one: Finding) -> dict[str, object]:
    comparison = one.comparison
    scale, axis = _axis(comparison)
    change = comparison.change
    ends = (change.value, change.low, change.high) if change else (np.nan,) * 3
    margin, noise = bounds(one)
    return {
        "name": f"{one.planned.metric.name}, {comparison.question.workload}",
        "device": comparison.question.device,
        "role": str(one.role),
        "change": ends[0] / scale,
        "low": ends[1] / scale,
        "high": ends[2] / scale,
        "margin": margin / scale,
        "noise": noise / scale,
        "axis": axis,
        "verdict": _answer_in_brief(one),
    }


def _axis(one: Comparison) -> tuple[float, str]:
    """Scale and unit of a change: percent, points, or the unit of a difference."""
    if one.scale is Scale.RATIO:
        return 0.01, "%"
    scale, unit = shared_unit(one)
    return scale, "pp" if unit.startswith("%") else unit or "count"


#: Words that leave room for the numbers beside them.
_BRIEFLY: Final = {Guarded.HARM: "worse, small", Guarded.BROKEN: "worse: veto"}


def _answer_in_brief(one: Finding) -> str:
    if one.guarded is not None:
        return _BRIEFLY.get(one.guarded, GUARD_WORDS[one.guarded])
    small = ", small" if "at most small" in one.qualifiers else ""
    return f"{one.verdict}{small}"


def courses(assessment: Assessment) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Metric, tool and intervals behind the primary metrics.

    A sender prints what it sent: then the send rate is shown in place of throughput.
    """
    intervals = assessment.material.intervals
    if intervals.empty:
        return
    tools = {
        one.tool
        for one in assessment.material.asked
        if one.role is Role.PRIMARY and not one.problem
    }
    plain = intervals[[not labels for labels in intervals["labels"]]]
    found = plain[["metric", "tool"]].drop_duplicates()
    wanted = ("throughput", "send_rate", "transaction_rate", "packet_rate")
    for name, tool in found.itertuples(index=False):
        if name in wanted and tool in tools:
            here = (plain["metric"] == name) & (plain["tool"] == tool)
            yield str(name), str(tool), plain[here]
