"""Whether the patch is the only difference, and what the checks found."""

from collections.abc import Sequence

from patchstudy.findings import Assessment
from patchstudy.report import answer as brief
from patchstudy.report import circumstances
from patchstudy.report.sections.cells import Part, number_columns, text_columns
from patchstudy.report.table import Column, Note, Table
from patchstudy.units import for_people


def treatment(assessment: Assessment) -> Part:
    """Facts of the runs by variant, to see whether the treatment is the difference."""
    found = circumstances.facts(assessment.study)
    if not found:
        words = "No fact of the runs is recorded, so this cannot be told."
        return Note("caveat", words)
    rows = tuple(
        (one.name, *(_few(values) for values in one.values_by_variant), one.meaning)
        for one in found
    )
    variants = assessment.study.design.variants
    columns = text_columns("Fact", *variants, "Between variants")
    return Table(columns, rows, "Facts of the measured runs")


def _few(values: Sequence[str]) -> str:
    names = [value or "(none)" for value in values]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (", ".join(names[:3]) or "-") + more


def bottleneck(assessment: Assessment) -> Part:
    """What limits each variant: the link, the offered load, or one full CPU."""
    found = circumstances.limits(assessment)
    told = [(one.busiest, one.softirq, one.ceiling) for one in found]
    if all(one == (None, None, None) for one in told):
        return Note("empty", "Not known: no load of a CPU and no ceiling is recorded.")
    rows = tuple(
        (
            one.device,
            one.workload,
            one.variant,
            "-" if one.busiest is None else f"{100 * one.busiest:.1f} %",
            "-" if one.softirq is None else f"{100 * one.softirq:.1f} %",
            "-" if one.ceiling is None else for_people(one.ceiling, "bit/s"),
            ", ".join(one.by) or "not known",
        )
        for one in found
    )
    numbers = number_columns("Busiest CPU", "Softirq", "Ceiling")
    return Table(
        (
            *text_columns("Device", "Workload", "Variant"),
            *numbers,
            Column("Limited by"),
        ),
        rows,
        "What limits the rate in each variant (medians over runs)",
    ).without_blanks()


def doubts(assessment: Assessment) -> Part:
    """What weakens a result that was declared, the gravest first, with what to do."""
    found = brief.doubts(assessment)
    if not found:
        return Note("text", "The checks found nothing graver than a note.")
    rows = tuple(
        (
            one.weight,
            "; ".join(one.places),
            one.metric or "-",
            one.text,
            one.todo or "-",
        )
        for one in found
    )
    return Table(
        text_columns("Weight", "Where", "Metric", "What", "What would help"),
        rows,
        "Doubts about the data",
    ).without_blanks()


def notes(assessment: Assessment) -> Part:
    """What else the checks found, said once for all places of which it is true."""
    above = {(one.text, one.todo) for one in brief.doubts(assessment)}
    found = [
        one
        for one in brief.once(assessment.doubts)
        if (one.text, one.todo) not in above
    ]
    if not found:
        return Note("empty", "No notes.")
    rows = tuple(
        (
            "; ".join(f"{place} {one.metric}".strip() for place in one.places),
            one.text,
            one.todo or "-",
        )
        for one in found
    )
    columns = text_columns("Where", "What", "What would help")
    return Table(columns, rows, "Notes").without_blanks()
