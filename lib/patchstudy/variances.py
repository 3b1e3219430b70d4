"""Where the spread of a metric arises: between boots, or between the runs of a boot."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import stats
from patchstudy.checks import Material
from patchstudy.metrics import Kind, Scale
from patchstudy.study import Role
from patchstudy.tables import Question, series

#: Seconds to begin a boot and for one run, as ``patchstudy plan`` takes them.
BOOT_COST_S: Final = 60.0
RUN_COST_S: Final = 40.0
_DECLARED: Final = frozenset({Role.PRIMARY, Role.GUARD, Role.CONTROL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """The spread of one metric in one variant, by level.

    Attributes
    ----------
    level
        What holds the runs: ``"boot"``, or the block where boots are not recorded.
    groups, runs
        How many of them were used, with how many runs each; further runs of fuller
        ones are left out, so that all count alike.
    between, within
        Standard deviation that the level adds by itself, and that of runs in it: of
        logs with scale ``ratio``, else in the unit of the metric.
    clamped
        Whether the variance between came out negative and was set to 0.
    best
        Runs in each that cost least; None where the level adds nothing, so that a run
        more is worth as much anywhere.
    gain
        By what share endlessly many runs in these same boots would narrow the interval
        of the mean.
    """

    question: Question
    variant: str
    scale: Scale
    level: str
    groups: int
    runs: int
    between: float
    within: float
    clamped: bool
    best: int | None
    gain: float


def components(found: Material) -> Iterator[Components]:
    """Yield the spread of every declared metric and variant with runs within boots."""
    for question in found.asked:
        if question.role in _DECLARED and not question.problem:
            rows = _with_values(series(found.runs, question), question)
            for variant in found.study.design.variants:
                one = _components(question, variant, rows[rows["variant"] == variant])
                if one is not None:
                    yield one


def _with_values(rows: pd.DataFrame, question: Question) -> pd.DataFrame:
    """Values on the scale of the analysis; counts per packet where they are known."""
    values = rows["value"]
    if question.planned.metric.kind is Kind.COUNT:
        shares = values / rows["exposure"].where(rows["exposure"] > 0)
        values = values if shares.isna().any() else shares
    ratio = _scale(question, values) is Scale.RATIO
    return rows.assign(value=np.log(values) if ratio else values, ratio=ratio)


def _scale(question: Question, values: pd.Series) -> Scale:
    wanted = question.planned.metric.scale
    return wanted if bool((values > 0).all()) else Scale.DIFFERENCE


def _components(
    question: Question, variant: str, rows: pd.DataFrame
) -> Components | None:
    for level, keys in (("boot", ["build", "boot"]), ("block", ["block"])):
        known = rows[rows[level] != ""].sort_values("order", kind="stable")
        groups = [one["value"].to_numpy() for _, one in known.groupby(keys)]
        groups = [one for one in groups if len(one) > 1]
        if len(groups) > 1:
            return _split(question, variant, level, groups, ratio=rows["ratio"].iloc[0])
    return None


def _split(
    question: Question,
    variant: str,
    level: str,
    groups: list[np.ndarray],
    *,
    ratio: bool,
) -> Components:
    runs = min(map(len, groups))
    found = stats.variance_components([one[:runs] for one in groups])
    within, between = found.components
    (best,) = stats.optimal_repetitions((RUN_COST_S, BOOT_COST_S), (within, between))
    mean = between + within / runs
    return Components(
        question=question,
        variant=variant,
        scale=Scale.RATIO if ratio else Scale.DIFFERENCE,
        level=level,
        groups=len(groups),
        runs=runs,
        between=math.sqrt(between),
        within=math.sqrt(within),
        clamped=found.clamped[1],
        best=best,
        gain=1 - math.sqrt(between / mean) if mean > 0 else 0.0,
    )
