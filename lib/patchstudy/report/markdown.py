"""The block for a forge: tables in Markdown, what comes from files as text."""

from collections.abc import Iterable, Iterator

from patchstudy.findings import Assessment
from patchstudy.report import answer
from patchstudy.report.table import Column, Table, as_markdown, to_markdown
from patchstudy.report.text import design_in_words
from patchstudy.sentences import (
    GUARD_WORDS,
    change_in_words,
    replication_in_words,
    shared_unit,
    values_in_words,
)
from patchstudy.verdicts import Finding


def markdown(assessment: Assessment) -> str:
    """Write the block; it says the same as the one for mail."""
    study = assessment.study
    word = str(assessment.decision).upper()
    return "\n".join(
        [
            f"### {as_markdown(study.title)}",
            "",
            f"**{word}.** {as_markdown(answer.headline(assessment))}",
            "",
            as_markdown(study.design.question),
            "",
            to_markdown(_table(assessment)),
            *_list("Design", [design_in_words(assessment)]),
            *_list("Doubts", [one.sentence for one in answer.doubts(assessment)]),
            *_list("Not measured", answer.not_measured(assessment)),
        ]
    )


def _table(assessment: Assessment) -> Table:
    rows = tuple(
        _row(one)
        for one in answer.told(assessment)
        if one.comparison.change is not None
    )
    numbers = ("Baseline", "Patched", "Change", "Margin", "Runs")
    columns = (
        Column("Where"), Column("Metric"), *(Column(name, "right") for name in numbers),
        Column("Answer"),
    )  # fmt: skip
    return Table(columns, rows, study_caption(assessment))


def study_caption(assessment: Assessment) -> str:
    """What the table holds, with the level of its intervals."""
    level = f"{100 * (1 - assessment.study.design.alpha):g} %"
    return f"Every declared metric; change with its {level} interval"


def _row(one: Finding) -> tuple[str, ...]:
    question, comparison = one.comparison.question, one.comparison
    variant = "" if comparison.variant == "patched" else f", {comparison.variant}"
    unit = shared_unit(comparison)[1]
    name = one.planned.metric.name + (f" [{unit}]" if unit else "")
    said = GUARD_WORDS[one.guarded] if one.guarded else str(one.verdict)
    return (
        f"{question.workload} on {question.device}{variant}",
        f"{name} ({one.role})",
        *values_in_words(comparison),
        change_in_words(comparison),
        one.planned.margin.text,
        replication_in_words(comparison),
        said,
    )


def _list(title: str, items: Iterable[str]) -> Iterator[str]:
    told = list(dict.fromkeys(items))
    if told:
        yield f"{title}:"
        yield ""
        yield from (f"- {as_markdown(one)}" for one in told)
        yield ""
