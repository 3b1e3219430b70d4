"""What is there, what is missing, and what the loaders said of it."""

from collections.abc import Iterator
from dataclasses import replace

from patchstudy.checks.doubts import (
    Doubt,
    Material,
    cells,
    doubt_about,
    some,
)
from patchstudy.errors import printable
from patchstudy.metrics import METRICS
from patchstudy.records import Caveat, Severity
from patchstudy.study import Role, Run
from patchstudy.units import count_of


def missing_files(found: Material) -> Iterator[Doubt]:
    """A file that most runs of a workload have and some have not."""
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in found.study.runs:
        if run.measuring:
            cells.setdefault((run.device, run.workload), []).append(run)
    for (device, workload), runs in cells.items():
        kinds = [
            {f"{one.capture.tool} {one.place}".strip() for one in run.sources}
            for run in runs
        ]
        for kind in sorted(set().union(*kinds)):
            lacking = [
                run.name
                for run, has in zip(runs, kinds, strict=True)
                if kind not in has
            ]
            if 0 < len(lacking) <= len(runs) / 2:
                yield Doubt(
                    caveat=Caveat(
                        code="missing-file",
                        severity=Severity.DOUBT,
                        text=f"no usable {kind} file in {some(lacking)}",
                        todo="copy the missing files or measure these runs again",
                    ),
                    device=device,
                    workload=workload,
                )


def leftovers(found: Material) -> Iterator[Doubt]:
    """Files that cannot be read, and files that nothing uses."""
    for one in found.study.leftovers:
        if one.broken:
            yield Doubt(
                caveat=Caveat(
                    code="broken-file",
                    severity=Severity.DOUBT,
                    text=printable(f"{one.path}: {one.reason}"),
                    todo="copy the file again or measure the run again",
                )
            )
    reasons: dict[str, list[str]] = {}
    for one in found.study.leftovers:
        if not one.broken:
            reasons.setdefault(one.reason, []).append(one.path)
    for reason, paths in reasons.items():
        files = count_of(len(paths), "file")
        text = printable(f"{files} not used: {reason} ({some(paths)})")
        yield Doubt(caveat=Caveat(code="not-used", severity=Severity.NOTE, text=text))


def failed_runs(found: Material) -> Iterator[Doubt]:
    """Runs whose tool failed: an outcome, never dropped in silence."""
    for run in found.study.runs:
        for source in run.sources:
            if source.capture.error is not None:
                yield Doubt(
                    caveat=Caveat(
                        code="failed-run",
                        severity=Severity.DOUBT,
                        text=f"{run.name}: {source.capture.error.text}",
                        todo="find out why; a run that fails is a result too",
                    ),
                    device=run.device,
                    workload=run.workload,
                )


def capture_caveats(found: Material) -> Iterator[Doubt]:
    """What the loaders said, once for all files of which they said the same.

    A doubt about a file that answers no question is only a note.
    """
    asked = {(one.device, one.workload, one.tool) for one in found.asked}
    said: dict[tuple[str, str, str, str], list[str]] = {}
    caveats: dict[tuple[str, str, str, str], Caveat] = {}
    for run in found.study.runs:
        for source in run.sources:
            for caveat in source.capture.caveats:
                if caveat.code == "clock-unknown" and run.started_at:
                    continue
                key = (run.device, run.workload, source.capture.tool, caveat.code)
                said.setdefault(key, []).append(run.name)
                caveats.setdefault(key, caveat)
    for (device, workload, tool, code), names in said.items():
        caveat = caveats[device, workload, tool, code]
        used = (device, workload, tool) in asked
        text = f"{tool}: {caveat.text} ({some(names)})"
        yield Doubt(
            caveat=replace(
                caveat,
                severity=caveat.severity if used else Severity.NOTE,
                text=text,
            ),
            device=device,
            workload=workload,
        )


def profile_runs(found: Material) -> Iterator[Doubt]:
    """Runs with another purpose than measuring, kept apart."""
    apart: dict[tuple[str, str], list[str]] = {}
    for run in found.study.runs:
        if not run.measuring:
            apart.setdefault((run.device, run.workload), []).append(run.name)
    for (device, workload), names in apart.items():
        text = (
            f"{count_of(len(names), 'profile run')} kept apart from the measured ones: "
            "a probe slows what it watches"
        )
        yield Doubt(
            caveat=Caveat(code="profile-apart", severity=Severity.NOTE, text=text),
            device=device,
            workload=workload,
        )


def variants(found: Material) -> Iterator[Doubt]:
    """A declared variant of which no run was found."""
    measured = {run.variant for run in found.study.runs if run.measuring}
    for name in found.study.design.variants:
        if name not in measured:
            yield Doubt(
                caveat=Caveat(
                    code="no-variant",
                    severity=Severity.DOUBT,
                    text=f"no run of the variant {name!r} was found",
                    todo="name the variants in study.toml as the folders are named",
                )
            )


def unanswered(found: Material) -> Iterator[Doubt]:
    """Declared metrics for which no number could be chosen."""
    for question in found.asked:
        if question.problem and question.role is not Role.DIAGNOSTIC:
            yield doubt_about(
                question, "no-number", Severity.DOUBT,
                f"no number here: {question.problem}",
                "measure it, or name the workload and the labels in study.toml",
            )  # fmt: skip


def unasked(found: Material) -> Iterator[Doubt]:
    """Metrics that were measured in several places, and that nobody asked for."""
    for (device, workload), rows in cells(found.runs):
        here = [one for one in found.asked if one.device == device]
        names = {one.planned.metric.name for one in here if one.workload == workload}
        left = sorted(set(rows["metric"]) & METRICS.keys() - names)
        if left:
            yield Doubt(
                caveat=Caveat(
                    code="not-asked",
                    severity=Severity.NOTE,
                    text=f"measured in several places and not compared: "
                    f"{', '.join(left)}",
                    todo="declare one with where = {interface = ..., direction = ...}",
                ),
                device=device,
                workload=workload,
            )
