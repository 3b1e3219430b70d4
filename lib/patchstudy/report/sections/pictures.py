"""Every change, every run and every interval as a figure: sections 3 and 4."""

from collections.abc import Iterator

import pandas as pd

from patchstudy import figures
from patchstudy.findings import Assessment
from patchstudy.metrics import metric
from patchstudy.report import figure_tables
from patchstudy.report.ledger import in_order
from patchstudy.report.sections.cells import Part, level_of
from patchstudy.report.table import Note, Vector
from patchstudy.study import Role
from patchstudy.tables import Question
from patchstudy.units import for_people
from patchstudy.verdicts import Guarded


def forest(assessment: Assessment) -> Part:
    """Every declared change with its interval against its margin."""
    chosen = figure_tables.declared(assessment)
    if not chosen:
        return Note("empty", "Nothing could be compared.")
    rows = figure_tables.forest_rows(assessment)
    alt = " ".join(one.sentence for one in chosen)
    return Vector(
        figures.to_svg(figures.forest(rows)),
        alt,
        f"Change of every declared metric with its {level_of(assessment)} interval; "
        "the band is the margin. An interval beside the zero line shows a difference; "
        "one inside the band shows that it does not matter."
        f"{figure_tables.noise_note(chosen)}",
    )


def all_runs(assessment: Assessment) -> tuple[Part, ...]:
    """Every unit of the primary metrics and controls, in order of time."""
    return tuple(_runs_figures(assessment, {Role.PRIMARY, Role.CONTROL}))


def guard_runs(assessment: Assessment) -> tuple[Part, ...]:
    """Every unit of the guards that are broken, harmed or unresolved."""
    telling = {Guarded.BROKEN, Guarded.HARM, Guarded.UNRESOLVED}
    keys = {
        one.comparison.question.key
        for one in assessment.findings
        if one.guarded in telling
    }
    drawn = tuple(_runs_figures(assessment, {Role.GUARD}, keys))
    return drawn or (Note("empty", "No guard is harmed or unresolved."),)


def _runs_figures(
    assessment: Assessment, roles: set[Role], keys: set[str] | None = None
) -> Iterator[Vector]:
    """One figure a metric: all its workloads and devices."""
    by_metric: dict[str, list[Question]] = {}
    for question in assessment.material.asked:
        wanted = keys is None or question.key in keys
        if question.role in roles and wanted and not question.problem:
            by_metric.setdefault(question.planned.metric.name, []).append(question)
    units = assessment.material.units
    for questions in by_metric.values():
        quantity = questions[0].planned.metric
        table = units[units["question"].isin([one.key for one in questions])]
        plot = figures.runs(
            table,
            label=quantity.label,
            unit=quantity.unit,
            variants=assessment.study.design.variants,
        )
        bands = ", bands are blocks" if (table["block"] != "").any() else ""
        yield Vector(
            figures.to_svg(plot),
            _medians_in_words(table, quantity.unit, quantity.label),
            f"{quantity.label}: every {questions[0].unit} {_in_order(table)}; the line "
            f"is the median of its variant{bands}.",
        )


def _medians_in_words(table: pd.DataFrame, unit: str, label: str) -> str:
    keys = ["device", "workload", "variant"]
    medians = table.groupby(keys, as_index=False)["value"].median()
    parts = [
        f"{variant} {for_people(value, unit)} on {device}, {workload}"
        for device, workload, variant, value in medians.itertuples(index=False)
    ]
    return f"{label}, every unit {_in_order(table)}. Medians: {'; '.join(parts)}."


def _in_order(units: pd.DataFrame) -> str:
    return in_order(timed=bool(units["timed"].all()))


def course(assessment: Assessment) -> tuple[Part, ...]:
    """The course within runs of the primary metrics, where tools print intervals."""
    drawn: list[Part] = []
    for name, tool, table in figure_tables.courses(assessment):
        quantity = metric(name)
        plot = figures.course(
            table,
            label=quantity.label,
            unit=quantity.unit,
            variants=assessment.study.design.variants,
        )
        drawn.append(
            Vector(
                figures.to_svg(plot),
                f"{quantity.label} within each run, interval by interval, from {tool}.",
                f"{quantity.label} within each run ({tool}); thick: median over the "
                "runs of a variant. Intervals of one run are never replicates.",
            )
        )
    return tuple(drawn) or (Note("empty", "No tool printed intervals."),)
