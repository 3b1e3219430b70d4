"""What other methods say of the same values: second opinions that decide nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from patchstudy.companions import NO_EVENT
from patchstudy.compare import SENSITIVE_LOW, Comparison
from patchstudy.findings import Assessment
from patchstudy.metrics import Scale
from patchstudy.report.sections.cells import (
    Part,
    in_percent,
    number_columns,
    of_roles,
    p_in_words,
    place_of,
    text_columns,
)
from patchstudy.report.table import NOTHING, Note, Table
from patchstudy.sentences import change_in_words, floor_of
from patchstudy.stats import Estimate
from patchstudy.study import Role
from patchstudy.units import with_interval
from patchstudy.verdicts import Finding

#: p below which a different spread is mentioned; it is exploratory.
SPREAD_P: Final = 0.05


def sensitivity(assessment: Assessment) -> tuple[Part, ...]:
    """The estimate beside its rank-based companion and further second opinions."""
    chosen = [
        one
        for one in of_roles(assessment, Role.PRIMARY, Role.CONTROL, Role.GUARD)
        if one.comparison.change is not None
    ]
    if not chosen:
        return (Note("empty", "Nothing could be compared."),)
    rows = tuple(
        (
            one.planned.metric.label,
            place_of(one),
            change_in_words(one.comparison),
            p_in_words(one.comparison.p_value),
            p_in_words(one.comparison.p_adjusted),
            _companion(one.comparison),
            p_in_words(one.comparison.companion and one.comparison.companion.p_value),
            _wins(one.comparison),
        )
        for one in chosen
    )
    numbers = ("t interval", "p", "p adjusted", "Rank-based interval", "p exact",
               "Patched is larger in")  # fmt: skip
    return (
        Table(
            (*text_columns("Metric", "Where"), *number_columns(*numbers)),
            rows,
            "Does the answer depend on the method? Adjusted: Holm over the devices, "
            "for guards over those of the device",
        ),
        *_second_opinions(chosen),
    )


def _second_opinions(chosen: Sequence[Finding]) -> tuple[Table, ...]:
    """What other methods add, in the rows and columns where they add something."""
    every = (
        (
            one.planned.metric.label,
            place_of(one),
            _estimate(one.comparison, one.comparison.ratio_of_means),
            _without_outliers(one.comparison),
            _counted(one.comparison),
            _spread(one.comparison),
            _confirmation(one.comparison),
        )
        for one in chosen
    )
    rows = tuple(row for row in every if set(row[2:]) != {NOTHING})
    if not rows:
        return ()
    numbers = ("Ratio of means", "Without outliers", "As Poisson counts")
    table = Table(
        (
            *text_columns("Metric", "Where"),
            *number_columns(*numbers),
            *text_columns("Spread, patched to baseline", "Ranks"),
        ),
        rows,
        "",
    ).without_blanks()
    told = [words for column in table.columns if (words := _MEANT.get(column.name))]
    meant = f": {'; '.join(told)}" if told else ""
    return (replace(table, caption=f"Second opinions that decide nothing{meant}"),)


_MEANT: Final = {
    "Ratio of means": "of arithmetic means, with Fieller's interval",
    "Without outliers": "the change without flagged outliers",
    "As Poisson counts": "the exact ratio of Poisson rates, where runs scatter no more "
    "than that",
    "Spread, patched to baseline": "a test of equal spread (Brown-Forsythe), "
    "exploratory",
}


def _estimate(one: Comparison, estimate: Estimate | None) -> str:
    """Write a change that is no other in the table: no words for none at all."""
    if estimate is None:
        return "-"
    if not (np.isfinite(estimate.low) and np.isfinite(estimate.high)):
        return "unbounded"
    return change_in_words(replace(one, change=estimate, effect=None))


def _counted(one: Comparison) -> str:
    if one.counted is None or one.counted.why_not == NO_EVENT:
        return NOTHING  # the values beside it say so
    if one.counted.change is None:
        return f"not used: {one.counted.why_not}"
    change = one.counted.change
    numbers = (100 * x for x in (change.value, change.low, change.high))
    value, low, high = with_interval(*numbers, floor=-100.0)
    return f"{value} % [{low}, {high}], p {p_in_words(one.counted.p_value)}"


def _without_outliers(one: Comparison) -> str:
    if one.without_outliers is None:
        return "-"
    count = len(one.without_outliers.left_out)
    return f"{_estimate(one, one.without_outliers.change)} ({count} left out)"


def _spread(one: Comparison) -> str:
    if one.spread is None:
        return "-"
    words = f"x {one.spread.ratio:.2g} (p {p_in_words(one.spread.p_value)})"
    changed = one.spread.p_value < SPREAD_P
    return words + (": the patch changes the spread" if changed else "")


def _confirmation(one: Comparison) -> str:
    """Say where so few units cannot confirm anything by their ranks."""
    if one.companion is None or one.companion.least_p < SENSITIVE_LOW:
        return "-"
    units = f"{one.blocks} blocks"
    if not one.blocks and one.baseline and one.patched:
        units = f"n={one.baseline.n} and {one.patched.n}"
    return (
        f"no rank confirmation at {units}: p is never below {one.companion.least_p:.2g}"
    )


def _companion(one: Comparison) -> str:
    if one.companion is None:
        return "-"
    estimate = one.companion.estimate
    if not (np.isfinite(estimate.low) and np.isfinite(estimate.high)):
        return "too few units"
    scale = 100.0 if in_percent(one) else 1.0
    numbers = (estimate.value, estimate.low, estimate.high)
    scaled = (scale * number for number in numbers)
    value, low, high = with_interval(*scaled, floor=floor_of(one.scale))
    unit = "%" if one.scale is Scale.RATIO else "pp" if in_percent(one) else ""
    return f"{value} {unit} [{low}, {high}]"


def _wins(one: Comparison) -> str:
    if one.companion is None:
        return "-"
    tied = one.effect is not None and one.effect.floored and one.effect.value == 0
    if tied:
        return "all tied"
    return f"{one.companion.wins:g} of {one.companion.pairs} pairs"
