"""Runs that failed, counted by variant: a run that fails is a result too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from patchstudy import stats
from patchstudy.checks import Material
from patchstudy.study import Run
from patchstudy.tables import Question, series

#: p below which more failed patched runs than baseline runs break the patch.
FAILED_P: Final = 0.05
#: Share of the runs of a workload and variant that may fail before the rest no longer
#: speaks for all (ours).
MOST_FAILED: Final = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Failed runs of one variant on a device.

    Attributes
    ----------
    failed, runs
        How many of how many; the workloads of one run directory count once.
    share
        ``failed / runs`` with the interval of Wilson (1927).
    worst
        Largest share over the workloads.
    """

    failed: int
    runs: int
    share: stats.Estimate
    worst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Failed runs of the baseline and of one patched variant on a device.

    Attributes
    ----------
    p_value
        That both fail equally often (Fisher 1934, two-sided).
    """

    device: str
    variant: str
    baseline: Tally
    patched: Tally
    p_value: float

    @property
    def broken(self) -> bool:
        """Whether patched runs fail more often, beyond chance."""
        more = self.patched.share.value > self.baseline.share.value
        return more and self.p_value < FAILED_P

    @property
    def mended(self) -> bool:
        """Whether baseline runs fail more often, beyond chance."""
        fewer = self.patched.share.value < self.baseline.share.value
        return fewer and self.p_value < FAILED_P

    @property
    def too_many(self) -> bool:
        """Whether so many failed that the others do not speak for all."""
        worst = max(self.baseline.worst, self.patched.worst)
        return worst > MOST_FAILED and not self.mended


def count(found: Material) -> tuple[Failures, ...]:
    """Count the failed runs of every device on which one failed."""
    design, failed = found.study.design, _failed(found)
    devices: dict[str, list[Run]] = {}
    for run in found.study.runs:
        if run.measuring:
            devices.setdefault(run.device, []).append(run)
    return tuple(
        one
        for device, runs in sorted(devices.items())
        for variant in design.patched
        for one in _of_pair(device, (design.baseline, variant), runs, failed)
        if one.baseline.failed + one.patched.failed
    )


def _of_pair(
    device: str,
    variants: tuple[str, str],
    runs: Sequence[Run],
    failed: set[tuple[str, str, str]],
) -> Iterator[Failures]:
    sides = [[run for run in runs if run.variant == name] for name in variants]
    if not all(sides):
        return
    base, new = (_tally(side, failed) for side in sides)
    table = [[one.failed, one.runs - one.failed] for one in (base, new)]
    yield Failures(
        device=device,
        variant=variants[1],
        baseline=base,
        patched=new,
        p_value=stats.fisher_p(table),
    )


def _tally(runs: Sequence[Run], failed: set[tuple[str, str, str]]) -> Tally:
    names = {run.name for run in runs}
    bad = {run.name for run in runs if _key(run) in failed}
    by_workload: dict[str, list[bool]] = {}
    for run in runs:
        by_workload.setdefault(run.workload, []).append(_key(run) in failed)
    return Tally(
        failed=len(bad),
        runs=len(names),
        share=stats.wilson(len(bad), len(names), 0.95),
        worst=max(sum(these) / len(these) for these in by_workload.values()),
    )


def _key(run: Run) -> tuple[str, str, str]:
    return run.device, run.workload, run.name


def _failed(found: Material) -> set[tuple[str, str, str]]:
    """Runs whose tool failed, or without a number that most others have."""
    failed = {
        _key(run)
        for run in found.study.runs
        if run.measuring and any(one.capture.error for one in run.sources)
    }
    for question, _ in found.deciding:
        failed |= set(_without(found, question))
    return failed


def _without(found: Material, question: Question) -> Iterator[tuple[str, str, str]]:
    """Runs without a value that most of the workload and some of the variant have."""
    having = series(found.runs, question)
    names, variants = set(having["name"]), set(having["variant"])
    cell = [
        run
        for run in found.study.runs
        if run.measuring
        and (run.device, run.workload) == (question.device, question.workload)
    ]
    lacking = [run for run in cell if run.name not in names]
    if 2 * len(lacking) < len(cell):
        yield from (_key(run) for run in lacking if run.variant in variants)
