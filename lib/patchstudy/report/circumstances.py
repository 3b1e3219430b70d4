"""Under which circumstances was measured: facts of the runs, and what limited them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pandas as pd

from patchstudy.checks import CPU_SATURATED, NEAR_CEILING, ceiling
from patchstudy.findings import Assessment
from patchstudy.study import Role, Run, Study

#: Facts that name a run or a moment.
_PER_RUN: Final = frozenset(
    {
        "block", "boot_id", "commands", "ended_at", "loadavg_after", "loadavg_before",
        "position", "purpose", "run", "started_at", "topology_id", "workload",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What the measured runs of each variant say of one thing.

    Attributes
    ----------
    values_by_variant
        In the order of the study's variants, each sorted.
    meaning
        ``"same"``, ``"differs"`` or ``"differs, as declared"``.
    """

    name: str
    values_by_variant: tuple[tuple[str, ...], ...]
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What limits the rate of one variant; medians over its runs.

    Attributes
    ----------
    busiest, softirq
        Share of the busiest CPU, and of all CPUs spent in softirq; None if unknown.
    ceiling
        In bit/s; None where nothing is known to limit the rate.
    by
        What is reached, in words; empty where that is not known.
    """

    device: str
    workload: str
    variant: str
    busiest: float | None
    softirq: float | None
    ceiling: float | None
    by: tuple[str, ...]


def facts(study: Study) -> tuple[Fact, ...]:
    """Facts of the measured runs by variant, sorted by name."""
    found: dict[str, dict[str, set[str]]] = {}
    for run in study.runs:
        for name, value in _identity(run) if run.measuring else ():
            found.setdefault(name, {}).setdefault(run.variant, set()).add(value)
    return tuple(_fact(study, name, told) for name, told in sorted(found.items()))


def _identity(run: Run) -> Iterator[tuple[str, str]]:
    for name, value in run.facts.items():
        if name not in _PER_RUN:
            yield name, str(value)
    for one in run.sources:
        if one.capture.tool_version:
            yield f"{one.capture.tool} version", one.capture.tool_version


def _fact(study: Study, name: str, told: dict[str, set[str]]) -> Fact:
    design = study.design
    sets = [told.get(variant, set()) for variant in design.variants]
    same = all(one == sets[0] for one in sets)
    declared = ", as declared" if name in design.treatment else ""
    return Fact(
        name=name,
        values_by_variant=tuple(tuple(sorted(one)) for one in sets),
        meaning="same" if same else f"differs{declared}",
    )


def limits(assessment: Assessment) -> tuple[Limit, ...]:
    """What limits each variant where a primary metric or a control was measured."""
    measured = {(x.device, x.workload, x.variant) for x in assessment.study.runs}
    cells = sorted(
        {
            (one.comparison.question.device, one.comparison.question.workload)
            for one in assessment.findings
            if one.role in {Role.PRIMARY, Role.CONTROL}
        }
    )
    return tuple(
        _limit(assessment, device, workload, variant)
        for device, workload in cells
        for variant in assessment.study.design.variants
        if (device, workload, variant) in measured
    )


def _limit(assessment: Assessment, device: str, workload: str, variant: str) -> Limit:
    runs = assessment.material.runs
    here = runs[
        (runs["device"] == device)
        & (runs["workload"] == workload)
        & (runs["variant"] == variant)
    ]
    known = [
        limit
        for one in assessment.material.asked
        if (one.device, one.workload) == (device, workload)
        if (limit := ceiling(assessment.study, one)) is not None
    ]
    limit = min(known, default=None)
    busiest, rate = _median(here, "cpu_busy_max"), _median(here, "throughput")
    by = []
    if busiest is not None and busiest >= CPU_SATURATED:
        by.append("one full CPU")
    if limit is not None and rate is not None and rate >= NEAR_CEILING * limit[0]:
        by.append(limit[1])
    return Limit(
        device=device, workload=workload, variant=variant, busiest=busiest,
        softirq=_median(here, "cpu_softirq"),
        ceiling=None if limit is None else limit[0], by=tuple(by),
    )  # fmt: skip


def _median(rows: pd.DataFrame, name: str) -> float | None:
    values = rows.loc[rows["metric"] == name, "value"]
    return None if values.empty else float(values.median())
