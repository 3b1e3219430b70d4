"""Doubts about the data, found before anything is compared.

A check is a function from the material of a study to the doubts it found. To add one,
write the function and put it in ``CHECKS``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import courses, stats
from patchstudy.errors import printable
from patchstudy.loaders import dmesg
from patchstudy.metrics import METRICS, Kind
from patchstudy.records import Caveat, RawFile, Severity
from patchstudy.study import (
    Design,
    FactFile,
    Role,
    Run,
    StoredPlan,
    Study,
    declared_margins,
)
from patchstudy.tables import Question, per_interval, per_run, per_unit, questions
from patchstudy.turns import order_of
from patchstudy.units import for_people, to_base

#: A run this close to the ceiling is taken as limited by it (STATISTICS 3.8, ours).
NEAR_CEILING: Final = 0.985
#: A rate this far above the ceiling is an error of unit, MTU or clock (ours).
ABOVE_CEILING: Final = 1.002
#: How far a share may lie outside 0 to 1 for the rounding of floats.
ROUNDING: Final = 1e-9
#: Busiest CPU from which a run is taken as limited by the CPU (netdev practice, ours).
CPU_SATURATED: Final = 0.97
#: Units per variant from which the boot-to-boot spread is believed (STATISTICS 3.7).
ENOUGH_UNITS: Final = 5
#: p below which a trend over time is mentioned; several are looked at.
TREND_P: Final = 0.01

#: What a tool was told to do; times are left out, they vary in the last digits.
_SETTINGS: Final = frozenset(
    {"blksize", "direction", "mss", "protocol", "streams", "target_bitrate"}
)
_DECIDING: Final = frozenset({Role.PRIMARY, Role.GUARD, Role.CONTROL})
#: Facts that name a run, a moment or the treatment's own parts.
_NAMING: Final = frozenset(
    {
        "block", "boot_id", "commands", "ended_at", "loadavg_after", "loadavg_before",
        "position", "purpose", "run", "started_at", "topology_id", "workload",
    }
)  # fmt: skip


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

    @property
    def deciding(self) -> Iterator[tuple[Question, pd.DataFrame]]:
        """Questions that the decision rests on, each with its units."""
        for question in self.asked:
            if question.role in _DECIDING and not question.problem:
                yield question, self.units[self.units["question"] == question.key]


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


def check(found: Material) -> tuple[Doubt, ...]:
    """Apply every check; the gravest doubts first."""
    doubts = [doubt for function in CHECKS for doubt in function(found)]
    ranks = [Severity.UNUSABLE, Severity.CAP, Severity.DOUBT, Severity.NOTE]
    return tuple(sorted(doubts, key=lambda one: ranks.index(one.caveat.severity)))


def ceiling(study: Study, question: Question) -> tuple[float, str] | None:
    """Return what a rate cannot exceed here, and why; None where nothing limits it.

    The lowest of the declared ceiling, the payload share of the link (TCP: MSS of MSS
    plus 52 bytes of headers with time stamps plus 38 of Ethernet framing; UDP: datagram
    of datagram plus 28 plus 38) and the offered load.
    """
    limits = []
    if question.planned.ceiling is not None:
        limits.append((question.planned.ceiling, "the declared ceiling"))
    if question.planned.metric.name == "throughput":
        limits.extend(_link_limit(study, question))
        limits.extend(_offered(study, question))
    return min(limits, default=None)


# ---- replication and order ----------------------------------------------------------


def replication(found: Material) -> Iterator[Doubt]:
    """Too few units, boots or builds to speak about what was not repeated."""
    for question, units in found.deciding:
        counts = [
            int((units["variant"] == name).sum())
            for name in found.study.design.variants
        ]
        if 0 < min(counts) < 3:
            yield _doubt(
                question, "few-units", Severity.DOUBT,
                f"only {min(counts)} {question.unit}(s) in a variant",
                f"measure at least {ENOUGH_UNITS} of each",
            )  # fmt: skip
    yield from _one_boot(found)
    yield from _one_build(found)


def _one_boot(found: Material) -> Iterator[Doubt]:
    for (device, workload), rows in _cells(found.runs):
        counts = rows[rows["boot"] != ""].groupby("variant")["boot"].nunique()
        single = sorted(counts.index[counts == 1])
        if single:
            whose = "each variant" if len(single) == len(counts) else _some(single)
            yield Doubt(
                caveat=Caveat(
                    code="one-boot",
                    severity=Severity.DOUBT,
                    text=f"one boot of {whose}; what differs from boot to boot is "
                    "unknown",
                    todo=f"repeat over at least {ENOUGH_UNITS} boots",
                ),
                device=device,
                workload=workload,
            )


def _one_build(found: Material) -> Iterator[Doubt]:
    """Builds that differ between the variants, with one of each."""
    for (device, workload), rows in _cells(found.runs):
        known = rows[rows["build"] != ""]
        builds = known.groupby("variant")["build"].agg(set)
        single = len(builds) > 0 and all(len(one) == 1 for one in builds)
        if single and len(set.union(*builds)) > 1:
            yield Doubt(
                caveat=Caveat(
                    code="one-build",
                    severity=Severity.NOTE,
                    text="one build of each variant; effects of code layout are not "
                    "excluded",
                    todo="add a placebo build or several builds of each variant",
                ),
                device=device,
                workload=workload,
            )


def order(found: Material) -> Iterator[Doubt]:
    """Variants that did not take turns are confounded with time."""
    for (device, workload), rows in _cells(found.runs):
        runs = _in_turn(found, rows)
        if runs["variant"].nunique() < 2 or len(runs) < 3:
            continue
        for caveat in _ORDER_CAVEATS.get(_order(runs, found.study.design.baseline), ()):
            yield Doubt(caveat=caveat, device=device, workload=workload)


def _in_turn(found: Material, rows: pd.DataFrame) -> pd.DataFrame:
    """What took turns, in time: runs, or the boots or builds that are counted."""
    device, workload = rows["device"].iloc[0], rows["workload"].iloc[0]
    levels = {
        question.unit
        for question, _ in found.deciding
        if (question.device, question.workload) == (device, workload)
    }
    level = levels.pop() if len(levels) == 1 else "run"
    keys = {"build": ["variant", "build"], "boot": ["variant", "build", "boot"]}
    runs = rows.sort_values("order", kind="stable")
    return runs.drop_duplicates(keys.get(level, ["name"]))


def _order(runs: pd.DataFrame, baseline: str) -> str:
    if not runs["timed"].all():
        return "unknown"
    kind = order_of(list(runs["variant"]), list(runs["block"]), baseline)
    in_blocks = runs["block"].ne("").all()
    return kind if in_blocks or kind not in _WITHIN_BLOCKS else "mixed"


#: Orders that say something about blocks, and nothing where there are none.
_WITHIN_BLOCKS: Final = frozenset({"ABAB"})
_SEQUENTIAL: Final = Caveat(
    code="sequential",
    severity=Severity.CAP,
    text=(
        "the variants did not take turns: a change of the machine over time looks the "
        "same as an effect of the patch"
    ),
    todo="let the variants take turns (ABBA) within short blocks",
)
_FIXED: Final = Caveat(
    code="fixed-order",
    severity=Severity.NOTE,
    text="every block begins with the same variant",
    todo="turn the order round in every other block (ABBA)",
)
_ORDER_CAVEATS: Final = {
    "unknown": (
        Caveat(
            code="order-unknown",
            severity=Severity.DOUBT,
            text="the order of the runs in time is not known",
            todo="record started_at in <workload>.run.json",
        ),
    ),
    "sequential": (_SEQUENTIAL,),
    "rechecked": (
        _SEQUENTIAL,
        Caveat(
            code="base-rechecked",
            severity=Severity.NOTE,
            text=(
                "the baseline was measured again at the end: that shows a machine that "
                "did not come back, and misses a change that came and went"
            ),
            todo="see every run in order of time; let the variants take turns",
        ),
    ),
    "unbalanced": (
        Caveat(
            code="unbalanced-order",
            severity=Severity.DOUBT,
            text=(
                "one variant was measured earlier than the other on average: a change "
                "of the machine over time is part of the difference"
            ),
            todo="let the variants take turns (ABBA) within short blocks",
        ),
    ),
    "AABB": (_FIXED,),
    "ABAB": (_FIXED,),
}


def drift(found: Material) -> Iterator[Doubt]:
    """A trend over the session within one variant (Kendall's tau, 6 units or more)."""
    for question, units in found.deciding:
        for variant, rows in units.groupby("variant"):
            values = rows.sort_values("order")["value"].to_numpy(dtype=float)
            if len(values) < 6 or np.ptp(values) == 0:
                continue
            trend = stats.trend(values)
            if trend.p_value < TREND_P:
                yield _doubt(
                    question, "drift", Severity.NOTE,
                    f"{variant} {'rises' if trend.tau > 0 else 'falls'} over the "
                    f"session (Kendall tau {trend.tau:+.2f}, p {trend.p_value:.3f})",
                    "compare within blocks; look for heat, load or a filling cache",
                )  # fmt: skip


# ---- within the runs ----------------------------------------------------------------


def uneven_runs(found: Material) -> Iterator[Doubt]:
    """Runs that warm up, drift, stall or change their level: what intervals are for."""
    for question, units in found.deciding:
        if question.role is not Role.PRIMARY:
            continue
        runs = courses.per_course(found.intervals, question)
        margin = courses.margin_of(question, float(units["value"].median()))
        for variant, rows in runs.groupby("variant", sort=False):
            yield from _unsteady(question, str(variant), rows, margin)
            yield from _stalled(question, rows)
            yield from _shifted(question, rows)
        yield from _repeating(question, runs)


def _unsteady(
    question: Question, variant: str, rows: pd.DataFrame, margin: float
) -> Iterator[Doubt]:
    shown = question.planned.margin.text
    if courses.systematic(rows["warm_up"], margin):
        yield _doubt(
            question, "warm-up", Severity.DOUBT,
            f"{variant}: the first tenth of a run is off the rest by "
            f"{100 * np.expm1(rows['warm_up'].mean()):+.2g} %, more than the margin of "
            f"{shown}",
            "leave the warm-up out (iperf3 -O 3), or measure longer",
        )  # fmt: skip
    if courses.systematic(rows["drift"], margin):
        yield _doubt(
            question, "drift-in-run", Severity.DOUBT,
            f"{variant}: a run changes by {100 * rows['drift'].mean():+.2g} % from its "
            f"beginning to its end, more than the margin of {shown}",
            "measure longer, until the level stays; look for heat or a filling cache",
        )  # fmt: skip


def _stalled(question: Question, rows: pd.DataFrame) -> Iterator[Doubt]:
    stalled = rows[rows["stalls"] > 0]
    if len(stalled):
        yield _doubt(
            question, "stall", Severity.DOUBT,
            f"{int(stalled['stalls'].sum())} interval(s) at less than a fifth of the "
            f"run's median, in {_some(list(stalled['name']))}",
            "look for link changes, resets or other load at that time",
        )  # fmt: skip


def _shifted(question: Question, rows: pd.DataFrame) -> Iterator[Doubt]:
    shifted = rows[rows["shifts"] > 0]
    if len(shifted):
        yield _doubt(
            question, "level-shift", Severity.NOTE,
            f"the level changes within {len(shifted)} of {len(rows)} runs: "
            f"{_some(list(shifted['name']))}",
            "look at the course of these runs",
        )  # fmt: skip


def _repeating(question: Question, runs: pd.DataFrame) -> Iterator[Doubt]:
    """Neighbours alike in most runs: how little a run's intervals tell."""
    known = runs.dropna(subset=["lag1"])
    if known.empty:
        return
    phi, n = known["lag1"].median(), known["intervals"].median()
    if phi > 2 / np.sqrt(n):
        yield _doubt(
            question, "repeating-intervals", Severity.NOTE,
            f"intervals of a run repeat each other (lag-1 correlation {phi:.2f}): "
            f"{n:.0f} of them tell as much as {known['worth'].median():.0f}",
            "",
        )  # fmt: skip


# ---- was it measured as planned -----------------------------------------------------


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
    for (device, workload), runs in _run_cells(study):
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
                f"{_some(changed)}",
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


# ---- what the kernel says -----------------------------------------------------------


def kernel_warnings(found: Material) -> Iterator[Doubt]:
    """A warning of the kernel in a patched run that no baseline run has."""
    design = found.study.design
    for device, told in sorted(_splats(found.study).items()):
        known = {_without_numbers(one) for one in told.get(design.baseline, ())}
        for variant in design.patched:
            new = [x for x in told.get(variant, ()) if _without_numbers(x) not in known]
            if new:
                compared = design.baseline in told and variant == design.patched[0]
                caveat = _new_warning if compared else _other_warning
                yield Doubt(caveat=caveat(variant, new), device=device)


def _new_warning(variant: str, new: Sequence[str]) -> Caveat:
    return Caveat(
        code="kernel-warning",
        severity=Severity.CAP,
        text=f"{variant}: the kernel warns as with no baseline run: {_quoted(new)}",
        todo="find its cause; a patch with a new kernel warning is not accepted",
    )


def _other_warning(variant: str, new: Sequence[str]) -> Caveat:
    return Caveat(
        code="kernel-warning-alone",
        severity=Severity.DOUBT,
        text=f"{variant}: the kernel warns, and whether it does so with the baseline "
        f"is not known, or this variant does not decide: {_quoted(new)}",
        todo="record dmesg with the runs of every variant",
    )


def _quoted(texts: Sequence[str]) -> str:
    return printable(_some([f"'{one}'" for one in texts]))


def _splats(study: Study) -> dict[str, dict[str, list[str]]]:
    """Device -> variant -> warnings, of every variant whose messages were recorded."""
    told: dict[str, dict[str, list[str]]] = {}
    for run in study.runs:
        for source in run.sources:
            if source.capture.tool == "dmesg":
                lines = told.setdefault(run.device, {}).setdefault(run.variant, [])
                lines.extend(_texts(source.capture.facts.get("splats")))
    for fact in study.facts:
        variant = _variant_of(fact, study)
        if variant and _messages(fact):
            raw = RawFile.of(Path(fact.name), fact.text.encode())
            lines = told.setdefault(fact.device, {}).setdefault(variant, [])
            lines.extend(_texts(dmesg.load(raw).facts.get("splats")))
    return told


def _texts(told: object) -> list[str]:
    return [str(one) for one in told] if isinstance(told, list) else []


def _variant_of(fact: FactFile, study: Study) -> str:
    """Variant of a fact file: by its name, or the only one of its boot."""
    if fact.variant in study.design.variants:
        return fact.variant
    there = {
        run.variant
        for run in study.runs
        if fact.boot and (run.device, run.boot) == (fact.device, fact.boot)
    }
    return there.pop() if len(there) == 1 else ""


def _without_numbers(text: str) -> str:
    """Return a message without what differs each time: process, address, line."""
    return re.sub(r"0x[0-9a-f]+|\d+", "#", text)


# ---- what is there ------------------------------------------------------------------


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
                        text=f"no usable {kind} file in {_some(lacking)}",
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
        text = printable(f"{len(paths)} file(s) not used: {reason} ({_some(paths)})")
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
        text = f"{tool}: {caveat.text} ({_some(names)})"
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
            f"{len(names)} profile run(s) kept apart from the measured ones: "
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
            yield _doubt(
                question, "no-number", Severity.DOUBT,
                f"{question.planned.metric.name} has no value here: {question.problem}",
                "measure it, or name the workload and the labels in study.toml",
            )  # fmt: skip


def unasked(found: Material) -> Iterator[Doubt]:
    """Metrics that were measured in several places, and that nobody asked for."""
    for (device, workload), rows in _cells(found.runs):
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


# ---- is the treatment the only difference -------------------------------------------


def differences(found: Material) -> Iterator[Doubt]:
    """Facts that differ between the variants beside the declared treatment."""
    expected = set(found.study.design.treatment)
    for (device, workload), runs in _run_cells(found.study):
        facts = _facts_of(runs)
        differing = _differing(facts, found.study.design.variants)
        for name in sorted(expected):
            caveat = _treatment(name, facts.get(name, {}), found.study.design)
            if caveat is not None:
                yield Doubt(caveat=caveat, device=device, workload=workload)
        for name, text in differing.items():
            if name not in expected:
                yield Doubt(
                    caveat=Caveat(
                        code="another-difference",
                        severity=Severity.DOUBT,
                        text=f"{name} differs between the variants: {text}",
                        todo="make it the same, or declare it as treatment",
                    ),
                    device=device,
                    workload=workload,
                )


def _treatment(
    name: str, values: dict[str, list[str]], design: Design
) -> Caveat | None:
    """Say what is wrong with a fact by which the variants differ on purpose.

    Further variants may be copies (of the baseline, for the noise); the first differs.
    """
    base, new = (set(values.get(v, ())) for v in (design.baseline, design.patched[0]))
    if not (base and new):
        return _unrecorded(name)
    shared = sorted(base & new)
    if not shared:
        return None
    text = (
        f"{name} is the same in all variants"
        if base == new
        else f"{name} is {_some(shared)} in runs of both variants"
    )
    return Caveat(
        code="treatment-same",
        severity=Severity.CAP,
        text=f"{text}: was the patched module loaded?",
        todo="compare the build ids of what was loaded",
    )


def _unrecorded(name: str) -> Caveat:
    return Caveat(
        code="treatment-unrecorded",
        severity=Severity.NOTE,
        text=f"{name}, by which the variants differ, was not recorded here",
        todo="write it into <workload>.run.json",
    )


def fact_files(found: Material) -> Iterator[Doubt]:
    """Fact files of the variants (offloads, driver) that differ in a line."""
    variants = found.study.design.variants
    texts: dict[tuple[str, str], dict[str, set[str]]] = {}
    for fact in found.study.facts:
        if fact.variant in variants and not _messages(fact):
            name = fact.name.removeprefix(f"{fact.variant}.")
            lines = texts.setdefault((fact.device, name), {})
            lines.setdefault(fact.variant, set()).update(fact.text.splitlines())
    for (device, name), lines in texts.items():
        odd = set.union(*lines.values()) - set.intersection(*lines.values())
        if len(lines) > 1 and odd:
            yield Doubt(
                caveat=Caveat(
                    code="another-difference",
                    severity=Severity.DOUBT,
                    text=f"facts {name} differ between variants: {_some(sorted(odd))}",
                    todo="make it the same, or declare it as treatment",
                ),
                device=device,
            )


def _messages(fact: FactFile) -> bool:
    """Say whether a fact file holds messages of the kernel, each with its time."""
    return dmesg.sniff(RawFile.of(Path(fact.name), fact.text.encode()))


def _facts_of(runs: Iterable[Run]) -> dict[str, dict[str, list[str]]]:
    """Fact -> variant -> values of its runs, tool versions and settings included."""
    facts: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        told: dict[str, object] = dict(run.facts)
        told |= {
            f"{one.capture.tool} version": one.capture.tool_version
            for one in run.sources
            if one.capture.tool_version
        }
        told |= {
            f"{one.capture.tool} {key}": value
            for one in run.sources
            if one.capture.error is None  # a run that failed tells too little
            for key, value in one.capture.workload.items()
            if key in _SETTINGS
        }
        for name, value in told.items():
            if name not in _NAMING:
                by_variant = facts.setdefault(name, {})
                by_variant.setdefault(run.variant, []).append(str(value))
    return facts


def _differing(
    facts: dict[str, dict[str, list[str]]], variants: Sequence[str]
) -> dict[str, str]:
    """Facts whose sets of values differ; values that are new in each run name it."""
    differing = {}
    for name, by_variant in sorted(facts.items()):
        values = [value for these in by_variant.values() for value in these]
        sets = {variant: sorted(set(these)) for variant, these in by_variant.items()}
        names_runs = len(set(values)) > max(2, len(values) / 2)
        if len(sets) < 2 or names_runs or len(set(map(tuple, sets.values()))) == 1:
            continue
        differing[name] = "; ".join(
            f"{variant}: {_some([value or '(none)' for value in sets[variant]])}"
            for variant in variants
            if variant in sets
        )
    return differing


# ---- values -------------------------------------------------------------------------


def saturation(found: Material) -> Iterator[Doubt]:
    """Runs at a ceiling of link, offered load or declaration, or with a full CPU."""
    for question, units in found.deciding:
        limit = ceiling(found.study, question)
        if limit is None:
            continue
        near = units["value"] >= NEAR_CEILING * limit[0]
        for variant, rows in units[near].groupby("variant"):
            total = int((units["variant"] == variant).sum())
            shown = for_people(limit[0], question.planned.metric.unit)
            yield _doubt(
                question, "saturated", Severity.NOTE,
                f"{len(rows)} of {total} {variant} units reach {limit[1]} ({shown})",
                "compare CPU per byte or packet instead, or use a faster link",
            )  # fmt: skip
    yield from _full_cpu(found)


def _full_cpu(found: Material) -> Iterator[Doubt]:
    busiest = found.runs[found.runs["metric"] == "cpu_busy_max"]
    for (device, workload), rows in _cells(busiest):
        means = rows.groupby("variant")["value"].median()
        if len(means) and (means >= CPU_SATURATED).all():
            yield Doubt(
                caveat=Caveat(
                    code="cpu-saturated",
                    severity=Severity.NOTE,
                    text="the busiest CPU is full in every variant: the CPU limits "
                    "the rate",
                ),
                device=device,
                workload=workload,
            )


def impossible(found: Material) -> Iterator[Doubt]:
    """Values that cannot be: above the ceiling, or a share outside 0 to 1."""
    for question, units in found.deciding:
        limit = ceiling(found.study, question)
        bad = pd.Series(data=False, index=units.index)
        if limit is not None:
            bad |= units["value"] > ABOVE_CEILING * limit[0]
        if question.planned.metric.kind in {Kind.SHARE, Kind.PROPORTION}:
            bad |= (units["value"] < -ROUNDING) | (units["value"] > 1 + ROUNDING)
        if bad.any():
            worst = units.loc[bad, "value"].max()
            shown = for_people(worst, question.planned.metric.unit)
            yield _doubt(
                question, "impossible", Severity.UNUSABLE,
                f"{shown} in {_some(list(units.loc[bad, 'unit']))} cannot be",
                "look for a wrong unit, MTU, link speed or clock",
            )  # fmt: skip


def ties(found: Material) -> Iterator[Doubt]:
    """Most values equal to another one: the tool prints too few digits."""
    for question, units in found.deciding:
        values = units["value"]
        if len(values) >= 6 and 1 < values.nunique() <= len(values) / 2:
            yield _doubt(
                question, "ties", Severity.NOTE,
                f"only {values.nunique()} different values in {len(values)} units",
                "use output with more digits (JSON)",
            )  # fmt: skip


def two_modes(found: Material) -> Iterator[Doubt]:
    """A gap that parts the units of one variant into two groups (STATISTICS 3.6)."""
    for question, units in found.deciding:
        for variant, rows in units.groupby("variant"):
            values = rows["value"].to_numpy(dtype=float)
            if len(values) < 4 or np.ptp(values) == 0:
                continue
            gap = stats.gap(values, resolution=_step(rows))
            if gap.flagged:
                yield _doubt(
                    question, "two-modes", Severity.DOUBT,
                    f"{variant} falls into two groups; the gap is {gap.ratio:.1f} "
                    "times as wide as the wider group",
                    "look at every run; find what sets the mode (CPU, queue, path)",
                )  # fmt: skip


def outliers(found: Material) -> Iterator[Doubt]:
    """Units far from the others of their variant; flagged, never removed."""
    for question, units in found.deciding:
        for variant, rows in units.groupby("variant"):
            values = rows["value"].to_numpy(dtype=float)
            if len(values) < 4:
                continue
            far = stats.modified_z_outliers(values, resolution=_step(rows))
            if far:
                names = [str(rows["unit"].iloc[number]) for number in far]
                yield _doubt(
                    question, "outlier", Severity.NOTE,
                    f"far from the other {variant} units, and kept in all figures "
                    f"and tests: {_some(names)}",
                    "",
                )  # fmt: skip


CHECKS: Final[tuple[Check, ...]] = (
    leftovers,
    failed_runs,
    missing_files,
    variants,
    unanswered,
    unasked,
    replication,
    order,
    uneven_runs,
    planning,
    kernel_warnings,
    differences,
    fact_files,
    impossible,
    saturation,
    two_modes,
    outliers,
    ties,
    drift,
    profile_runs,
    capture_caveats,
)


# ---- small parts --------------------------------------------------------------------


def _doubt(
    question: Question, code: str, severity: Severity, text: str, todo: str
) -> Doubt:
    return Doubt(
        caveat=Caveat(code=code, severity=severity, text=text, todo=todo),
        device=question.device,
        workload=question.workload,
        question=question.key,
    )


def _step(rows: pd.DataFrame) -> float:
    """Last digit of the values, 0 where it is not known."""
    step = rows["resolution"].max()
    return float(step) if step > 0 else 0.0


def _cells(runs: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    for (device, workload), rows in runs.groupby(["device", "workload"]):
        yield (str(device), str(workload)), rows


def _run_cells(study: Study) -> Iterator[tuple[tuple[str, str], list[Run]]]:
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in study.runs:
        if run.measuring:
            cells.setdefault((run.device, run.workload), []).append(run)
    yield from sorted(cells.items())


def _some(names: Sequence[str]) -> str:
    """Name a few, and say how many more there are."""
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - 3} more" if len(unique) > 3 else ""
    return ", ".join(unique[:3]) + more


def _link_limit(study: Study, question: Question) -> Iterator[tuple[float, str]]:
    link = study.design.devices.get(question.device, {}).get("link", "")
    if not link:
        return
    number, _, unit = link.partition(" ")
    rate, _ = to_base(float(number), unit)
    for protocol, payload in _payloads(study, question):
        headers = 52 if protocol == "TCP" else 28
        yield rate * payload / (payload + headers + 38), f"the {link} link"


def _payloads(study: Study, question: Question) -> set[tuple[str, float]]:
    """Protocol and payload bytes of a packet, as the tools of the workload say."""
    found = set()
    for run in study.runs:
        if (run.device, run.workload) != (question.device, question.workload):
            continue
        for source in run.sources:
            said = source.capture.workload
            size = said.get("mss" if said.get("protocol") == "TCP" else "blksize")
            if isinstance(size, (int, float)) and 0 < size <= 9000:
                found.add((str(said.get("protocol")), float(size)))
    return found


def _offered(study: Study, question: Question) -> Iterator[tuple[float, str]]:
    for run in study.runs:
        if (run.device, run.workload) != (question.device, question.workload):
            continue
        for source in run.sources:
            target = source.capture.workload.get("target_bitrate")
            streams = source.capture.workload.get("streams") or 1
            if isinstance(target, (int, float)) and target > 0:
                yield float(target) * float(streams), "the offered load"
