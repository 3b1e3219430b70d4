"""What the tables of several sections write into their cells."""

from patchstudy.compare import Comparison
from patchstudy.findings import Assessment
from patchstudy.metrics import Kind, Scale
from patchstudy.report.lead import Intervals, Marks
from patchstudy.report.table import Column, Note, Table, Vector
from patchstudy.sentences import GUARD_WORDS, shared_unit
from patchstudy.study import Role
from patchstudy.verdicts import Finding

Part = Table | Note | Vector | Marks | Intervals


def level_of(assessment: Assessment) -> str:
    """The level of the intervals: ``95 %``."""
    return f"{100 * (1 - assessment.study.design.alpha):g} %"


def quantity_of(one: Finding) -> str:
    """The metric with the unit of its values: ``Throughput [Mbit/s]``."""
    unit = shared_unit(one.comparison)[1]
    return one.planned.metric.label + (f" [{unit}]" if unit else "")


def place_of(one: Finding) -> str:
    """Workload and device, and the variant where it is not plain."""
    question, variant = one.comparison.question, one.comparison.variant
    named = f", {variant}" if one.named or variant != "patched" else ""
    return f"{question.workload} on {question.device}{named}"


def replication_of(one: Comparison) -> str:
    """Runs of both variants, and the blocks they took turns in: ``8+8 in 4``."""
    runs = f"{one.n_baseline}+{one.n_patched}"
    return f"{runs} in {one.blocks}" if one.blocks else runs


def answer_of(one: Finding) -> str:
    """The verdict with what qualifies it, or what became of the guard."""
    if one.comparison.question.problem:
        return "not measured"
    if one.guarded is not None:
        return GUARD_WORDS[one.guarded]
    prefix = "control: " if one.role is Role.CONTROL else ""
    return prefix + ", ".join([str(one.verdict), *one.qualifiers])


def p_in_words(value: float | None) -> str:
    """A p-value with three digits."""
    if value is None:
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def in_percent(one: Comparison) -> bool:
    """Tell whether a change is read in percent or in points."""
    kinds = {Kind.SHARE, Kind.PROPORTION, Kind.COUNT, Kind.PASSFAIL}
    return one.scale is Scale.RATIO or one.question.planned.metric.kind in kinds


def of_roles(assessment: Assessment, *roles: Role) -> list[Finding]:
    """Findings with one of these roles, in their order."""
    return [one for one in assessment.findings if one.role in roles]


def text_columns(*names: str) -> tuple[Column, ...]:
    """Columns of text."""
    return tuple(Column(name) for name in names)


def number_columns(*names: str) -> tuple[Column, ...]:
    """Columns of numbers: they stand at the right."""
    return tuple(Column(name, "right") for name in names)
