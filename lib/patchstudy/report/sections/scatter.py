"""Where the noise arises, and whether devices agree."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from patchstudy import together, variances
from patchstudy.findings import Assessment
from patchstudy.metrics import Kind, Scale
from patchstudy.report import noise
from patchstudy.report.sections.cells import (
    Part,
    answer_of,
    in_percent,
    number_columns,
    text_columns,
)
from patchstudy.report.table import Column, Note, Table
from patchstudy.sentences import change_in_words, floor_of
from patchstudy.units import for_people, with_interval

_NO_SPREAD: Final = (
    "No boot or block holds several runs of a variant that differ: the spread between "
    "boots and that between runs cannot be told apart."
)


def spread(assessment: Assessment) -> tuple[Part, ...]:
    """Whether the noise arises between boots or between runs, and what would help."""
    every = variances.components(assessment.material)
    found = [one for one in every if one.between or one.within]
    tested = tuple(noise.margins(assessment))
    if not found:
        return (Note("empty", _NO_SPREAD), *tested)
    rows = tuple(
        (
            one.question.planned.metric.label,
            f"{one.question.workload} on {one.question.device}",
            one.variant,
            f"{one.groups} {one.level}s of {one.runs}",
            _deviation(one, one.between) + (" (set to 0)" if one.clamped else ""),
            _deviation(one, one.within),
            "any" if one.best is None else str(one.best),
            f"{100 * one.gain:.0f} %",
        )
        for one in found
    )
    numbers = ("Used", "sd between", "sd of runs", "Best runs", "Gain at most")
    table = Table(
        (*text_columns("Metric", "Where", "Variant"), *number_columns(*numbers)),
        rows,
        "Where the spread arises (standard deviations). Best runs: in each boot or "
        f"block, at {variances.BOOT_COST_S:g} s to begin one and "
        f"{variances.RUN_COST_S:g} s a run. Gain: by how much endless runs in the same "
        "boots would narrow the interval of a variant's mean",
    )
    return (table, *_spread_notes(assessment, found), *tested)


def _deviation(one: variances.Components, value: float) -> str:
    if one.scale is Scale.RATIO:
        return f"{100 * value:.2g} %"
    quantity = one.question.planned.metric
    if quantity.kind in {Kind.SHARE, Kind.PROPORTION, Kind.COUNT}:
        return f"{100 * value:.2g} pp"
    return for_people(value, quantity.unit, digits=2)


def _spread_notes(
    assessment: Assessment, found: Sequence[variances.Components]
) -> Iterator[Note]:
    if any(one.clamped for one in found):
        text = "A variance between boots that comes out negative, which chance does "
        yield Note("text", text + "where boots add little, is set to 0.")
    if any(one.blocks for one in (x.comparison for x in assessment.findings)):
        text = "Compared within blocks, what the runs of a block share cancels: there "
        yield Note("text", text + "the spread between blocks does no harm.")


def devices_together(assessment: Assessment) -> tuple[Part, ...]:
    """One metric over several devices: each change, and whether they agree."""
    found = together.together(assessment.findings, assessment.study.design)
    if not found:
        return (Note("empty", "No declared metric was measured on two devices."),)
    return tuple(part for one in found for part in _together_parts(one))


def _together_parts(one: together.Together) -> Iterator[Part]:
    rows = tuple(
        (
            each.comparison.question.device,
            change_in_words(each.comparison),
            answer_of(each),
            one.left_out.get(each.comparison.question.device, "yes"),
        )
        for each in one.findings
    )
    columns = (
        Column("Device"),
        *number_columns("Change"),
        *text_columns("Answer", "Compared"),
    )
    first = one.findings[0]
    where = f"{first.planned.metric.label}, {first.comparison.question.workload}"
    yield Table(columns, rows, f"{where}: {len(rows)} devices side by side")
    yield Note("text", together.sentence(one) + _pooled_words(one))


def _pooled_words(one: together.Together) -> str:
    if one.pooled is None:
        return (
            f" With fewer than {together.ENOUGH_DEVICES} machines no change of all "
            "together is claimed."
        )
    numbers = (one.pooled.value, one.pooled.low, one.pooled.high)
    unit = "pp" if in_percent(one.used[0].comparison) else ""
    if one.scale is Scale.RATIO:
        numbers, unit = tuple(map(np.expm1, numbers)), "%"
    scale = 100.0 if unit else 1.0
    scaled = (scale * number for number in numbers)
    value, low, high = with_interval(*scaled, floor=floor_of(one.scale))
    return f" Over all {len(one.used)} devices: {value} {unit} [{low}, {high}]."
