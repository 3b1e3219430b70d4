"""Baseline against patched within blocks, one metric at a time.

Only tables of experimental units are accepted: intervals of one run can never be taken
for replicates.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from patchstudy import stats
from patchstudy.checks import Doubt
from patchstudy.errors import GrainError
from patchstudy.metrics import Scale
from patchstudy.records import Caveat, Severity
from patchstudy.study import Design, Role
from patchstudy.tables import UNIT_COLUMNS, UNIT_GRAIN, Question

Values = npt.NDArray[np.float64]

#: Sensitivity note: the mean-based and the rank-based p disagree (STATISTICS 3.3).
SENSITIVE_LOW: Final = 0.05
SENSITIVE_HIGH: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The units of one variant, in the base unit of the metric.

    ``geometric_mean`` is None where a value is not positive.
    """

    n: int
    mean: float
    geometric_mean: float | None
    median: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """The rank-based second opinion that is always printed beside the estimate.

    Attributes
    ----------
    estimate
        Hodges-Lehmann shift (of pairs: Walsh pseudo-median) on the scale of the
        change, with its exact interval.
    p_value
        Exact permutation p.
    wins, pairs
        In how many of all pairs the patched value is the larger one.
    """

    estimate: stats.Estimate
    p_value: float
    wins: float
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The change of one metric on one device and workload, with its interval.

    Attributes
    ----------
    n_baseline, n_patched
        Runs in each variant.
    blocks
        Blocks that hold both variants; 0 where the analysis is not paired.
    unit_of_analysis
        What is counted as independent, in words.
    baseline, patched
        The values.
    scale
        ``ratio``: the change is patched / baseline - 1. ``difference``: patched -
        baseline in the base unit (of a count: per packet where packets are known).
    change
        With the confidence interval of the design (95 %); None where the units are too
        few.
    effect
        The estimate on the scale of the analysis (logs for a ratio).
    p_value, p_adjusted
        Two-sided; adjusted within its family by Holm (diagnostics: Benjamini-Hochberg).
    method
        How the interval was made, in words.
    """

    question: Question
    variant: str
    n_baseline: int
    n_patched: int
    blocks: int
    unit_of_analysis: str
    baseline: Summary | None
    patched: Summary | None
    scale: Scale
    change: stats.Estimate | None
    effect: stats.Effect | None
    companion: Companion | None
    p_value: float | None
    p_adjusted: float | None
    method: str
    caveats: tuple[Caveat, ...]


def compare(
    units: pd.DataFrame,
    asked: Iterable[Question],
    design: Design,
    doubts: Sequence[Doubt] = (),
) -> tuple[Comparison, ...]:
    """Compare every patched variant with the baseline, one question at a time.

    Parameters
    ----------
    units
        As ``tables.per_unit`` returns them.
    asked
        The questions, as ``tables.questions`` returns them; those without units give
        a comparison without a change.
    doubts
        What the checks found; each comparison carries those that concern it.

    Raises
    ------
    GrainError
        If the table is not one of experimental units.
    """
    _require_units(units)
    found = []
    for question in asked:
        rows = units[units["question"] == question.key]
        caveats = tuple(one.caveat for one in doubts if one.concerns(question))
        for variant in design.patched:
            one = _compare(rows, question, variant, design)
            found.append(replace(one, caveats=one.caveats + caveats))
    return tuple(_adjusted(found))


def _require_units(units: pd.DataFrame) -> None:
    if units.attrs.get("grain") != UNIT_GRAIN or list(units) != list(UNIT_COLUMNS):
        raise GrainError(
            "compare needs the table of experimental units that tables.per_unit makes; "
            "rows of intervals or runs of another table are not replicates"
        )
    names = ["question", "variant", "unit"]
    if units.duplicated(names).any():
        twice = units.loc[units.duplicated(names), "unit"].iloc[0]
        raise GrainError(f"unit {twice!r} stands twice in the table for one question")


def _compare(
    rows: pd.DataFrame, question: Question, variant: str, design: Design
) -> Comparison:
    base = rows[rows["variant"] == design.baseline]
    new = rows[rows["variant"] == variant]
    scale = _scale(question, pd.concat([base["value"], new["value"]]))
    blank = Comparison(
        question=question,
        variant=variant,
        n_baseline=int(base["runs"].sum()),
        n_patched=int(new["runs"].sum()),
        blocks=0,
        unit_of_analysis=question.unit,
        baseline=_summary(base["value"]),
        patched=_summary(new["value"]),
        scale=scale,
        change=None,
        effect=None,
        companion=None,
        p_value=None,
        p_adjusted=None,
        method="",
        caveats=_scale_caveats(question, scale),
    )
    if question.role is Role.MECHANISM and question.problem:
        return blank
    pairs = _pairs(base, new, scale)
    if len(pairs) >= 2:
        return _by_block(blank, base, new, pairs, design)
    if min(len(base), len(new)) >= 2:
        return _unpaired(blank, base, new, design)
    return blank


def _scale(question: Question, values: pd.Series) -> Scale:
    """Ratio for positive kinds; a zero has no ratio, so then the difference."""
    wanted = question.planned.metric.scale
    return wanted if bool((values > 0).all()) else Scale.DIFFERENCE


def _scale_caveats(question: Question, scale: Scale) -> tuple[Caveat, ...]:
    if scale is question.planned.metric.scale:
        return ()
    text = "a value is zero or negative: the change is a difference, not a ratio"
    return (Caveat(code="no-ratio", severity=Severity.NOTE, text=text),)


def _pairs(base: pd.DataFrame, new: pd.DataFrame, scale: Scale) -> pd.DataFrame:
    """Mean of each variant in every block that holds both, on the analysis scale."""
    means = [
        rows.assign(value=_analysis(rows["value"], scale))
        .loc[rows["block"] != ""]
        .groupby("block")["value"]
        .mean()
        for rows in (base, new)
    ]
    return pd.concat(means, axis=1, join="inner", keys=["baseline", "patched"])


def _analysis(values: pd.Series, scale: Scale) -> pd.Series:
    return values.map(math.log) if scale is Scale.RATIO else values


def _by_block(
    blank: Comparison,
    base: pd.DataFrame,
    new: pd.DataFrame,
    pairs: pd.DataFrame,
    design: Design,
) -> Comparison:
    differences = (pairs["patched"] - pairs["baseline"]).to_numpy(dtype=float)
    floor = math.hypot(*(_floor(rows, blank.scale) for rows in (base, new)))
    effect = stats.paired(differences, floor=floor)
    confidence = 1 - design.alpha
    alone = sorted({*base["block"], *new["block"]} - set(pairs.index) - {""})
    inside = pd.concat([base, new])
    unmatched = inside[~inside["block"].isin(pairs.index)]
    name = design.block or "block"
    filled = _filled(blank, effect, confidence)
    return replace(
        filled,
        blocks=len(pairs),
        unit_of_analysis=f"{name} (mean of its {blank.question.unit}s per variant)",
        companion=Companion(
            estimate=_shown(stats.walsh(differences, confidence), blank.scale),
            p_value=stats.sign_flip_p(differences).p_value,
            wins=float((differences > 0).sum() + (differences == 0).sum() / 2),
            pairs=len(differences),
        ),
        method=f"paired t interval of {name} differences"
        + (" of logs" if blank.scale is Scale.RATIO else ""),
        caveats=filled.caveats + _unmatched(alone, len(unmatched)),
    )


def _unmatched(blocks: Sequence[str], count: int) -> tuple[Caveat, ...]:
    if not count:
        return ()
    named = f" (block {', '.join(blocks[:5])})" if blocks else ""
    return (
        Caveat(
            code="unmatched-block",
            severity=Severity.DOUBT,
            text=f"{count} unit(s) lie in no block with both variants{named} and do "
            "not enter the paired interval",
            todo="measure both variants in every block",
        ),
    )


def _unpaired(
    blank: Comparison, base: pd.DataFrame, new: pd.DataFrame, design: Design
) -> Comparison:
    old, patched = (
        _analysis(rows["value"], blank.scale).to_numpy(dtype=float)
        for rows in (base, new)
    )
    floors = (_floor(base, blank.scale), _floor(new, blank.scale))
    effect = stats.welch(old, patched, floors=floors)
    confidence = 1 - design.alpha
    shift = stats.hodges_lehmann(old, patched, confidence)
    rank = stats.superiority(old, patched)
    return replace(
        _filled(blank, effect, confidence),
        companion=Companion(
            estimate=_shown(shift, blank.scale),
            p_value=stats.permutation_p(old, patched).p_value,
            wins=rank.wins,
            pairs=rank.pairs,
        ),
        method="Welch t interval" + (" of logs" if blank.scale is Scale.RATIO else ""),
    )


def _filled(blank: Comparison, effect: stats.Effect, confidence: float) -> Comparison:
    return replace(
        blank,
        effect=effect,
        change=_shown(effect.interval(confidence), blank.scale),
        p_value=effect.p_value,
        caveats=blank.caveats + ((_NO_SPREAD,) if effect.standard_error == 0 else ()),
    )


_NO_SPREAD: Final = Caveat(
    code="no-spread",
    severity=Severity.DOUBT,
    text="no spread is visible and the last digit of the tool is not known: the "
    "interval is a single point and says nothing about noise",
    todo="use output with more digits",
)


def _shown(estimate: stats.Estimate, scale: Scale) -> stats.Estimate:
    """Bring an estimate from logs to patched / baseline - 1."""
    if scale is Scale.DIFFERENCE:
        return estimate
    return replace(
        estimate,
        value=math.expm1(estimate.value),
        low=math.expm1(estimate.low),
        high=math.expm1(min(estimate.high, 700.0)),
    )


def _floor(rows: pd.DataFrame, scale: Scale) -> float:
    """Spread that rounding alone leaves: last digit over the square root of twelve."""
    step = rows["resolution"].max()
    if not step > 0 and rows["exposure"].gt(0).any():
        step = 1 / rows["exposure"].median()
    if not step > 0:
        return 0.0
    mean = float(rows["value"].mean()) if scale is Scale.RATIO else 1.0
    return stats.resolution_floor(float(step), mean)


def _summary(values: pd.Series) -> Summary | None:
    if values.empty:
        return None
    numbers = values.to_numpy(dtype=float)
    positive = bool((numbers > 0).all())
    return Summary(
        n=len(numbers),
        mean=float(numbers.mean()),
        geometric_mean=float(np.exp(np.log(numbers).mean())) if positive else None,
        median=float(np.median(numbers)),
        sd=float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0,
        low=float(numbers.min()),
        high=float(numbers.max()),
    )


def _adjusted(found: Sequence[Comparison]) -> Iterator[Comparison]:
    """Adjust p within the families of STATISTICS 3.14: Holm, diagnostics by BH."""
    families: dict[Role, list[int]] = {}
    for number, one in enumerate(found):
        families.setdefault(one.question.role, []).append(number)
    adjusted: dict[int, float | None] = {}
    for role, numbers in families.items():
        exploring = role is Role.DIAGNOSTIC
        adjust = stats.benjamini_hochberg if exploring else stats.holm
        values = adjust([found[number].p_value for number in numbers])
        adjusted |= dict(zip(numbers, values, strict=True))
    for number, one in enumerate(found):
        yield replace(one, p_adjusted=adjusted[number])


def sensitive(one: Comparison) -> bool:
    """Say whether the answer depends on a few units (STATISTICS 3.3)."""
    if one.companion is None or one.p_value is None or one.change is None:
        return False
    found, ranked = one.p_value, one.companion.p_value
    small = min(one.n_baseline, one.n_patched) < 4 or 0 < one.blocks < 6
    disagree = (found < SENSITIVE_LOW and ranked > SENSITIVE_HIGH) or (
        ranked < SENSITIVE_LOW and found > SENSITIVE_HIGH
    )
    shift = one.companion.estimate.value
    outside = not one.change.low <= shift <= one.change.high
    turned = found < SENSITIVE_LOW and shift * one.change.value < 0
    return (disagree and not small) or outside or turned
