"""What a check finds, and what it may look at."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pandas as pd

from patchstudy.records import Caveat, Severity
from patchstudy.study import Role, Run, Study
from patchstudy.tables import Question, per_interval, per_run, per_unit, questions

_DECIDING: Final = frozenset({Role.PRIMARY, Role.GUARD, Role.CONTROL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A caveat and what it concerns; an empty field means all."""

    caveat: Caveat
    device: str = ""
    workload: str = ""
    question: str = ""

    def concerns(self, question: Question) -> bool:
        """Say whether the doubt touches this question."""
        return (
            self.device in {"", question.device}
            and self.workload in {"", question.workload}
            and self.question in {"", question.key}
        )


@dataclass(frozen=True, kw_only=True)
class Material:
    """All that a check may look at: the study and its tables."""

    study: Study
    runs: pd.DataFrame
    intervals: pd.DataFrame
    asked: tuple[Question, ...]
    units: pd.DataFrame

    @cached_property
    def deciding(self) -> tuple[tuple[Question, pd.DataFrame], ...]:
        """Questions that the decision rests on, each with its units."""
        return tuple(
            (question, self.units[self.units["question"] == question.key])
            for question in self.asked
            if question.role in _DECIDING and not question.problem
        )

    @cached_property
    def by_variant(self) -> tuple[tuple[Question, str, pd.DataFrame], ...]:
        """The same questions, with the units of one variant each, in order of time."""
        found = []
        for question, units in self.deciding:
            variants = units["variant"].to_numpy()
            found += [
                (question, str(name), units[variants == name])
                for name in sorted(set(variants))
            ]
        return tuple(found)


Check = Callable[[Material], Iterator[Doubt]]


def material(study: Study) -> Material:
    """Make the tables of a study."""
    runs = per_run(study)
    asked = questions(runs, study.design)
    return Material(
        study=study,
        runs=runs,
        intervals=per_interval(study),
        asked=asked,
        units=per_unit(runs, asked),
    )


def doubt_about(
    question: Question, code: str, severity: Severity, text: str, todo: str
) -> Doubt:
    """Return a doubt that touches one question."""
    return Doubt(
        caveat=Caveat(code=code, severity=severity, text=text, todo=todo),
        device=question.device,
        workload=question.workload,
        question=question.key,
    )


def step(rows: pd.DataFrame) -> float:
    """Last digit of the values, 0 where it is not known."""
    step = rows["resolution"].max()
    return float(step) if step > 0 else 0.0


def cells(runs: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """Yield the rows of each (device, workload), sorted."""
    for (device, workload), rows in runs.groupby(["device", "workload"]):
        yield (str(device), str(workload)), rows


def run_cells(study: Study) -> Iterator[tuple[tuple[str, str], list[Run]]]:
    """Yield the measuring runs of each (device, workload), sorted."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in study.runs:
        if run.measuring:
            found.setdefault((run.device, run.workload), []).append(run)
    yield from sorted(found.items())


def some(names: Sequence[str]) -> str:
    """Name a few, and say how many more there are."""
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - 3} more" if len(unique) > 3 else ""
    return ", ".join(unique[:3]) + more
