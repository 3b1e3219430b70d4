"""The answer, what changed and what it costs: sections 1 and 2 of a report."""

from collections.abc import Iterator, Sequence
from typing import Final

from patchstudy.compare import Comparison
from patchstudy.decisions import DECIDING, Decision
from patchstudy.findings import Assessment
from patchstudy.patchfile import Patch
from patchstudy.report import answer as brief
from patchstudy.report import ledger
from patchstudy.report.sections.cells import (
    Part,
    answer_of,
    level_of,
    number_columns,
    of_roles,
    place_of,
    quantity_of,
    replication_of,
    text_columns,
)
from patchstudy.report.table import Column, Linked, Note, Table
from patchstudy.sentences import change_in_words, values_in_words
from patchstudy.study import Role, is_published
from patchstudy.verdicts import Finding

_DECISION_KINDS: Final = {
    Decision.ACCEPT: "accept",
    Decision.SMALL: "accept",
    Decision.VETO: "veto",
    Decision.NOT_YET: "notyet",
    Decision.REJECT: "reject",
    Decision.MIXED: "mixed",
}
#: Most doubts that the first screen tells.
_MOST_DOUBTS: Final = 3


def answer(assessment: Assessment) -> tuple[Part, ...]:
    """The first screen: question, verdict, changes, guards, what is not known."""
    changed, guarded = brief.intervals(assessment), brief.marks(assessment)
    return (
        Note("question", assessment.study.design.question),
        verdict(assessment),
        *_machines(assessment),
        *([] if changed is None else [changed]),
        _no_guards() if guarded is None else guarded,
        *_unknown(assessment),
    )


def _machines(assessment: Assessment) -> Iterator[Note]:
    """Say what the devices are that the verdict rests on, where the study tells it."""
    design = assessment.study.design
    deciding = [one for one in assessment.findings if one.role in DECIDING]
    names = dict.fromkeys(
        one.comparison.question.device for one in deciding if one.comparison.patched
    )
    for title, published in (("Measured on:", False), ("Published for:", True)):
        told = [
            ", ".join([name, *facts])
            for name in names
            if is_published(name) == published and (facts := design.facts(name))
        ]
        if told:
            yield Note("text", f"{'; '.join(told)}.", title)


def _unknown(assessment: Assessment) -> Iterator[Note]:
    missing = "; ".join(brief.not_measured(assessment))
    if missing:
        yield Note("caveat", f"{missing}.", "Not measured:")
    found = brief.doubts(assessment)
    if found:
        said = "; ".join(dict.fromkeys(one.sentence for one in found[:_MOST_DOUBTS]))
        more = len(found) - _MOST_DOUBTS
        tail = f"; and {more} more below" if more > 0 else ""
        yield Note("caveat", f"{said}{tail}.", "Doubts:")
    if steps := "; ".join(brief.next_steps(assessment)):
        yield Note("caveat", f"{steps}.", "What would help:")


def verdict(assessment: Assessment) -> Note:
    """The decision and why, in one sentence."""
    kind = _DECISION_KINDS[assessment.decision]
    title = str(assessment.decision).upper()
    return Note(kind, brief.headline(assessment), title)


def study(assessment: Assessment) -> tuple[Part, ...]:
    """How it was measured, and the patch."""
    patch = assessment.study.patch
    design = assessment.study.design
    return (
        *([Note("text", _patch_words(patch))] if patch is not None else []),
        *([Note("text", design.setting)] if design.setting else []),
    ) or (Note("empty", "The study does not say how it was measured."),)


def _patch_words(patch: Patch) -> str:
    """The patch by its subject, its driver and its size; people are not named."""
    lines = sum(one.added + one.removed for one in patch.files)
    files = ", ".join(one.path for one in patch.files[:3])
    more = f" and {len(patch.files) - 3} more" if len(patch.files) > 3 else ""
    where = f" It changes {lines} lines of {files}{more}." if patch.files else ""
    driver = f", driver {patch.driver}" if patch.driver else ""
    return f"The patch: {patch.subject or 'a diff without subject'}{driver}.{where}"


def devices(assessment: Assessment) -> Part:
    """The decision on each device, where there are several or something is known."""
    design = assessment.study.design
    if len(assessment.devices) == 1 and not design.facts(assessment.devices[0].device):
        return Note("empty", "There is one device.")
    return Table(
        text_columns("Device", "What it is", "Variant", "Decision"),
        tuple(
            (
                one.device,
                "; ".join(design.facts(one.device)) or "-",
                one.variant,
                str(one.decision),
            )
            for one in assessment.devices
        ),
        "Decision on each device",
    )


def changes(assessment: Assessment) -> Table:
    """The primary metrics and the controls: both values and the change."""
    chosen = of_roles(assessment, Role.PRIMARY, Role.CONTROL)
    caption = "Primary metrics and controls; change with its confidence interval"
    return _change_table(assessment, chosen, caption, "changes")


def guards(assessment: Assessment) -> Part:
    """What the patch must not harm, and whether it does."""
    chosen = of_roles(assessment, Role.GUARD)
    if not chosen:
        return _no_guards()
    caption = "Guards: what the patch may cost"
    return _change_table(assessment, chosen, caption, "guards")


def _no_guards() -> Note:
    """What is to be said where no guard is declared."""
    return Note("caveat", "No guard is declared: what the patch costs is unknown.")


def _change_table(
    assessment: Assessment, chosen: Sequence[Finding], caption: str, name: str
) -> Table:
    rows = tuple(
        (
            quantity_of(one),
            place_of(one),
            *values_in_words(one.comparison),
            change_in_words(one.comparison),
            one.planned.margin.text + ("" if one.planned.margin.declared else "*"),
            _behind(assessment, one.comparison),
            answer_of(one),
        )
        for one in chosen
    )
    level = f"Change [{level_of(assessment)}]"
    numbers = ("Baseline", "Patched", level, "Margin", "Runs")
    if any(not one.planned.margin.declared for one in chosen):
        caption += "; * a default margin, none was declared"
    columns = (
        *text_columns("Metric", "Where"),
        *number_columns(*numbers),
        Column("Answer"),
    )
    return Table(columns, rows, caption, name=name)


def _behind(assessment: Assessment, one: Comparison) -> str:
    """The replication, as a link to the runs behind the number."""
    question, text = one.question, replication_of(one)
    name = ledger.anchor(assessment, question.device, question.workload)
    return Linked((text, f"#{name}")) if name and not question.problem else text


def sentences(assessment: Assessment) -> tuple[Note, ...]:
    """Every declared finding in one sentence."""
    return tuple(
        Note("text", f"{one.comparison.question.device}: {one.sentence}")
        for one in of_roles(assessment, Role.PRIMARY, Role.CONTROL, Role.GUARD)
    )
