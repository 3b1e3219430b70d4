"""Whether it was measured as planned."""

from collections.abc import Iterator, Sequence

from patchstudy.checks.doubts import Doubt, Material, run_cells, some
from patchstudy.records import Caveat, Severity
from patchstudy.study import Design, Run, StoredPlan, declared_margins


def planning(found: Material) -> Iterator[Doubt]:
    """A study that was not measured as its stored plan says."""
    plan, study = found.study.plan, found.study
    if plan is None:
        return
    yield from _changed_design(plan, study.design)
    if plan.pilot == study.name:
        text = "plan.json was made from these runs: its numbers are for the next study"
        caveat = Caveat(code="own-pilot", severity=Severity.NOTE, text=text)
        yield Doubt(caveat=caveat)
        return
    asked = {(one.device, one.workload) for one, _ in found.deciding}
    for (device, workload), runs in run_cells(study):
        planned = plan.order_on(device)
        if planned and (device, workload) in asked:
            for caveat in _as_planned(planned, runs):
                yield Doubt(caveat=caveat, device=device, workload=workload)


def _changed_design(plan: StoredPlan, design: Design) -> Iterator[Doubt]:
    if plan.study_sha256 in {"", design.digest}:
        return
    now = set(declared_margins(design))
    changed = [f"{one[0]} ({one[2]})" for one in sorted(now ^ set(plan.margins))]
    if changed:
        yield Doubt(
            caveat=Caveat(
                code="design-changed",
                severity=Severity.DOUBT,
                text=f"the design changed after planning: metric, role or margin of "
                f"{some(changed)}",
                todo="say in the report why; judge by the margins of the plan",
            )
        )
        return
    text = "study.toml changed after planning; its metrics, roles and margins did not"
    yield Doubt(caveat=Caveat(code="text-changed", severity=Severity.NOTE, text=text))


def _as_planned(planned: Sequence[str], runs: Sequence[Run]) -> Iterator[Caveat]:
    taken = [run.variant for run in runs]
    if len(taken) < len(planned):
        yield Caveat(
            code="stopped-early",
            severity=Severity.DOUBT,
            text=f"stopped early: {len(taken)} of {len(planned)} planned runs",
            todo="measure the others as planned, whatever these show",
        )
    elif len(taken) > len(planned):
        yield Caveat(
            code="optional-stopping",
            severity=Severity.DOUBT,
            text=f"optional stopping possible: {len(taken)} runs where {len(planned)} "
            "were planned",
            todo="say why there are more; never measure until a result appears",
        )
    timed = all(run.started_at is not None or run.position is not None for run in runs)
    same = min(len(taken), len(planned))
    if timed and taken[:same] != list(planned[:same]):
        yield Caveat(
            code="order-not-planned",
            severity=Severity.NOTE,
            text="the variants took turns in another order than planned",
            todo="follow the schedule of the plan",
        )
