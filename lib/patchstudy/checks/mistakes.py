"""Raw data that were mixed up: copied, swapped, mislabelled, rounded, or sorted.

Each check asks whether the files contradict what their place in the study says of them.
None can prove an intention; each names the files to look at.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd

from patchstudy.checks.doubts import (
    Doubt,
    Material,
    doubt_about,
    run_cells,
    some,
)
from patchstudy.metrics import Kind
from patchstudy.records import Capture, Caveat, Severity
from patchstudy.study import Design, Role, Run, Source, Study
from patchstudy.units import for_people

#: Different numbers from which two files alike are no chance (ours): a tool that
#: prints one rate may well print it twice.
TELLING: Final = 4
#: A count tells from here on (ours), where the file is the same byte for byte: counters
#: since boot never come back, but two runs may well move the same packets.
LARGE: Final = 1000
#: Units of one variant from which values in ascending order are no chance: 2 / 7! is
#: one in 2,520 (ours).
SORTED: Final = 7
#: Factors between units that are taken for each other: byte and bit, 10^3 and 2^10.
FACTORS: Final = (8.0, 1000.0, 1024.0, 8000.0, 8192.0, 1e6, 2.0**20)
#: How near a ratio must come to such a factor (ours): of one unit to its own kind,
#: whose scatter is known and counts three times up to a third; and of two variants,
#: which a patch may part by some more.
NEAR_FACTOR: Final = 0.03
NEAR_BY_SCATTER: Final = 0.3
NEAR_BETWEEN: Final = 0.15
#: Significant digits below which all values of a variant count as rounded (ours).
FEW_DIGITS: Final = 2
#: So many values of a variant it takes to say so (ours).
FEWEST_ROUNDED: Final = 4

#: Facts that name the machine, as ``uname``, ``lscpu`` and the scripts call them.
_MACHINE: Final = (
    "hostname", "nodename", "machine", "Architecture", "Model name", "number_of_cpus",
)  # fmt: skip
#: Facts that name what was loaded.
_LOADED: Final = ("build_id", "srcversion", "module_build_id")
#: Facts by which a script notes where a run belongs.
_PLACE: Final = ("variant", "device")
#: Facts whose text may hold the name of a variant: ``qmi_wwan.patched.ko``.
_NAMED: Final = ("module", "kernel", "image", "build")
_RATES: Final = frozenset({Kind.RATE, Kind.LATENCY, Kind.COST})


def copied_runs(found: Material) -> Iterator[Doubt]:
    """The same measurement under two names: copied files are not replicates."""
    alike: dict[tuple[object, ...], list[tuple[Run, Source]]] = {}
    for run in found.study.runs:
        for source in run.sources:
            if run.measuring and (content := _content(source.capture)):
                alike.setdefault(content, []).append((run, source))
    for members in alike.values():
        names = list(dict.fromkeys(_told(found.study, *one) for one in members))
        runs = {one.name for one, _ in members}
        if len(names) < 2 or len(runs) < 2:
            continue
        device, workload = _common(run for run, _ in members)
        variants = {run.variant for run, _ in members}
        yield Doubt(
            caveat=Caveat(
                code="copied-run",
                severity=Severity.CAP,
                text=f"the same measurement {_across(variants)}: {some(names)}",
                todo="put the right file in its place, or measure that run again",
            ),
            device=device,
            workload=workload,
        )


def _content(capture: Capture) -> tuple[object, ...]:
    """Return the numbers of a capture; nothing where two may be alike by chance."""
    if capture.cumulative or capture.tool == "measurements":
        return ()
    values = {one.value for one in capture.measurements}
    if sum(value % 1 != 0 for value in values) >= TELLING:
        numbers = (
            (one.metric, one.value, one.start_s, one.end_s, *sorted(one.labels.items()))
            for one in capture.measurements
        )
        return (capture.tool, *numbers)
    counts = sum(value >= LARGE for value in values)
    return (capture.sha256,) if counts >= TELLING else ()


def _told(study: Study, run: Run, source: Source) -> str:
    path = source.capture.path
    inside = path.is_relative_to(study.folder)
    shown = path.relative_to(study.folder).as_posix() if inside else path.as_posix()
    return f"{shown} ({run.variant})"


def _common(runs: Iterable[Run]) -> tuple[str, str]:
    """Device and workload of all these runs; empty where they differ."""
    cells = {(run.device, run.workload) for run in runs}
    return cells.pop() if len(cells) == 1 else ("", "")


def _across(variants: set[str]) -> str:
    return "stands in two variants" if len(variants) > 1 else "stands under two names"


def misplaced_runs(found: Material) -> Iterator[Doubt]:
    """Runs that say themselves that they are of another variant or device."""
    if _claims_nothing(found.study.design):
        return
    for (device, workload), runs in run_cells(found.study):
        strangers = _strangers(runs, found.study.design)
        for told, names in (
            strangers | _of_other_side(runs, found.study.design)
        ).items():
            yield Doubt(
                caveat=Caveat(
                    code="misplaced-run",
                    severity=Severity.CAP,
                    text=f"{told} is what the facts say of {some(names)}",
                    todo="were variants or devices swapped when files were copied?",
                ),
                device=device,
                workload=workload,
            )


def _strangers(runs: Sequence[Run], design: Design) -> dict[str, list[str]]:
    """What a run says of itself that its place denies -> the runs that say so."""
    sides = {design.baseline, design.patched[0]}
    naming = {
        name
        for name in _NAMED
        # where one name stands for the other variant, it is no name of a variant here
        if set().union(*(_words(run, name) for run in runs)) >= sides
    }
    found: dict[str, list[str]] = {}
    for run in runs:
        for name, value in run.facts.items():
            placed = name in _PLACE and str(value) != getattr(run, name)
            named = name in naming and run.variant in sides
            others = _words(run, name) & sides if named else set()
            if placed or (others and run.variant not in others):
                found.setdefault(f"{name} = {value}", []).append(run.name)
    return found


def _of_other_side(runs: Sequence[Run], design: Design) -> dict[str, list[str]]:
    """What most runs of the other variant loaded -> the runs that loaded it too.

    Where another treatment is declared, builds may be shared.
    """
    sides = (design.baseline, design.patched[0])
    found: dict[str, list[str]] = {}
    for name in _LOADED:
        told = [(one, str(one.facts[name])) for one in runs if name in one.facts]
        counts = [
            Counter(x for one, x in told if one.variant == side) for side in sides
        ]
        usual = [max(sorted(each), key=each.__getitem__, default="") for each in counts]
        if (design.treatment and name not in design.treatment) or len({*usual}) < 2:
            continue
        other = dict(zip(sides, reversed(usual), strict=True))
        for run, value in told:
            if value == other.get(run.variant):
                found.setdefault(f"{name} = {value}", []).append(run.name)
    return found


def _words(run: Run, name: str) -> set[str]:
    return set(re.split(r"[^A-Za-z0-9_-]+", str(run.facts.get(name, ""))))


def _claims_nothing(design: Design) -> bool:
    """Say whether the study compares a thing with itself (A/A)."""
    primary = [one for one in design.metrics if one.role is Role.PRIMARY]
    return bool(primary) and all(one.expect == "same" for one in primary)


def same_build(found: Material) -> Iterator[Doubt]:
    """One build on both sides, where no other treatment was declared."""
    design = found.study.design
    if design.treatment or _claims_nothing(design):
        return
    sides = (design.baseline, design.patched[0])
    for (device, workload), runs in run_cells(found.study):
        loaded = {
            name: tuple(
                {str(run.facts[name]) for run in runs if run.variant == side}
                for side in sides
            )
            for name in _LOADED
            if all(name in run.facts for run in runs if run.variant in sides)
        }
        if any(base.isdisjoint(new) for base, new in loaded.values()):
            continue  # of kernel and module it takes one that is another
        for name, (base, new) in loaded.items():
            if base == new:
                yield Doubt(
                    caveat=Caveat(
                        code="same-build",
                        severity=Severity.CAP,
                        text=f"{name} is the same on both sides: {some(sorted(base))}; "
                        "was the patched one loaded?",
                        todo="load the patched build, or name in study.toml, under "
                        "treatment, by which fact the variants differ",
                    ),
                    device=device,
                    workload=workload,
                )


def mixed_machines(found: Material) -> Iterator[Doubt]:
    """Runs of one device whose files were written by different machines."""
    told: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for run in found.study.runs:
        for source in run.sources:
            for name, value in _machine(source.capture):
                place = f"{source.capture.tool} {source.place}".strip()
                values = told.setdefault((run.device, place, name), {})
                values.setdefault(value, []).append(run.name)
    for (device, place, name), values in told.items():
        if len(values) > 1:
            each = [f"{one} ({some(runs)})" for one, runs in values.items()]
            yield Doubt(
                caveat=Caveat(
                    code="mixed-machines",
                    severity=Severity.DOUBT,
                    text=f"{place}: {name} differs within one device: {some(each)}",
                    todo="give each machine a device of its own",
                ),
                device=device,
            )


def _machine(capture: Capture) -> Iterator[tuple[str, str]]:
    for name in _MACHINE:
        if name in capture.facts:
            yield name, str(capture.facts[name])
    words = str(capture.facts.get("system_info", "")).split()
    if len(words) > 2:  # uname -a in iperf3: system, host, release, ...
        yield "hostname", words[1]
        yield "machine", words[-1]


def wrong_units(found: Material) -> Iterator[Doubt]:
    """Values off by the factor of one unit taken for another."""
    middles: dict[tuple[str, str], float] = {}
    for question, variant, rows in found.by_variant:
        if question.planned.metric.kind not in _RATES:
            continue
        middles[question.key, variant] = float(np.median(rows["value"]))
        for factor, names in _off(rows).items():
            yield doubt_about(
                question, "wrong-unit", Severity.CAP,
                f"{some(names)}: {factor:.0f} times off the other {variant} units, "
                "as one unit taken for another",
                "look whether byte and bit, or 1000 and 1024, were mixed up",
            )  # fmt: skip
    yield from _wrong_between(found, middles)


def _wrong_between(
    found: Material, middles: Mapping[tuple[str, str], float]
) -> Iterator[Doubt]:
    """Variants whose medians differ by such a factor."""
    design = found.study.design
    for question, _ in found.deciding:
        unit = question.planned.metric.unit
        sides = [
            middles.get((question.key, one), math.nan)
            for one in (design.baseline, design.patched[0])
        ]
        if factor := _factor(*sides, near=NEAR_BETWEEN):
            yield doubt_about(
                question, "wrong-unit-between", Severity.DOUBT,
                f"the variants differ {factor:.0f} times "
                f"({for_people(sides[0], unit)}, {for_people(sides[1], unit)}), as one "
                "unit taken for another",
                "look whether both were measured by the same tool in the same unit",
            )  # fmt: skip


def _off(rows: pd.DataFrame) -> dict[float, list[str]]:
    """Factor -> units that lie by it off the median of three or more."""
    found: dict[float, list[str]] = {}
    if len(rows) >= 3:
        values = rows["value"].to_numpy(dtype=float)
        middle = float(np.median(values))
        scatter = float(np.median(np.abs(values - middle))) / middle if middle else 0.0
        near = min(max(3 * scatter, NEAR_FACTOR), NEAR_BY_SCATTER)
        for name, value in zip(rows["unit"], values, strict=True):
            if factor := _factor(middle, float(value), near=near):
                found.setdefault(factor, []).append(str(name))
    return found


def _factor(one: float, other: float, *, near: float) -> float:
    """Return the factor between units that parts two values; 0 where none does."""
    if not (one > 0 and other > 0):
        return 0.0
    ratio = max(one, other) / min(one, other)
    found = [x for x in FACTORS if abs(ratio / x - 1) < near]
    return min(found, key=lambda x: abs(ratio / x - 1), default=0.0)


def odd_clocks(found: Material) -> Iterator[Doubt]:
    """Times that contradict each other: end before start, or the order of the runs."""
    for (device, workload), runs in run_cells(found.study):
        timed = [(run, start) for run in runs if (start := _time(run.started_at))]
        backwards = [
            run.name
            for run, start in timed
            if (end := _time(run.facts.get("ended_at"))) and end < start
        ]
        placed = sorted(
            ((run.position, start, run.name) for run, start in timed if run.position),
            key=lambda one: one[0],
        )
        swapped = [
            name
            for (_, before, _), (_, after, name) in pairwise(placed)
            if after < before
        ]
        for names, what in (
            (_unset(timed), "began before 2000: its clock was not set"),
            (_overlapping(timed), "began before the one before it ended"),
            (backwards, "ended before it began"),
            (swapped, "began before the run that its position puts ahead of it"),
        ):
            if names:
                yield Doubt(
                    caveat=Caveat(
                        code="odd-clock",
                        severity=Severity.DOUBT,
                        text=f"{some(names)}: {what}",
                        todo="find which clock was wrong; the order of the runs "
                        "rests on it",
                    ),
                    device=device,
                    workload=workload,
                )


def _unset(timed: Iterable[tuple[Run, datetime]]) -> list[str]:
    """Runs of a machine without a clock of its own, which began in 1970."""
    return [run.name for run, start in timed if start.year < 2000]


def _overlapping(timed: Iterable[tuple[Run, datetime]]) -> list[str]:
    """Runs of one workload that began while another one ran there."""
    spans = sorted(
        ((start, end, run.name) for run, start in timed
         if (end := _time(run.facts.get("ended_at"))) and end >= start),
        key=lambda one: one[0],
    )  # fmt: skip
    return [name for (_, end, _), (start, _, name) in pairwise(spans) if start < end]


def _time(told: object) -> datetime | None:
    """Return an aware time, None where it is none."""
    try:
        time = datetime.fromisoformat(str(told))
    except ValueError:
        return None
    return time if time.tzinfo else None


def sorted_values(found: Material) -> Iterator[Doubt]:
    """Values that rise or fall from unit to unit without one exception."""
    for question, variant, rows in found.by_variant:
        values = rows["value"].to_numpy(dtype=float)
        before, after = values[:-1], values[1:]
        one_way = (before < after).all() or (before > after).all()
        if len(rows) >= SORTED and one_way:
            yield doubt_about(
                question, "sorted-values", Severity.DOUBT,
                f"the {len(rows)} values of {variant} are in ascending or "
                "descending order: sorted by hand, or a strong drift",
                "give the values in the order in which they were measured",
            )  # fmt: skip


def rounded_values(found: Material) -> Iterator[Doubt]:
    """Values of two digits: the step between them hides what is asked."""
    for question, units in found.deciding:
        kind = question.planned.metric.kind
        if kind not in _RATES or question.unit != "run":
            continue
        sides = [
            [float(one) for one in values if one]
            for _, values in units.groupby("variant")["value"]
        ]
        values = [value for side in _coarse(sides) for value in side]
        if not values:
            continue
        whose = "" if len(values) == sum(map(len, sides)) else " of one variant"
        step = max(_step(one) / abs(one) for one in values)
        yield doubt_about(
            question, "rounded-values", Severity.DOUBT,
            f"no value{whose} has more than {FEW_DIGITS} digits: one more in the last "
            f"is {100 * step:.2g} %",
            "give the numbers as the tool prints them",
        )  # fmt: skip


def _coarse(sides: Sequence[list[float]]) -> list[list[float]]:
    """Return the variants whose values all have few digits.

    One alone only if its last digit is worth more than that of another variant: small
    values of a tool with a fixed number of decimals are not rounded.
    """
    lasts = [
        min((int(_decimal(x).as_tuple().exponent) for x in side), default=0)
        for side in sides
    ]
    coarse = [
        (side, last)
        for side, last in zip(sides, lasts, strict=True)
        if len(side) >= FEWEST_ROUNDED and max(map(_digits, side)) <= FEW_DIGITS
    ]
    if len(coarse) < len(sides):
        coarse = [(side, last) for side, last in coarse if last > min(lasts)]
    return [side for side, _ in coarse]


def _digits(value: float) -> int:
    """Count the significant digits of the shortest text that means a number.

    Examples
    --------
    >>> [_digits(x) for x in (94e6, 941.0, 0.5)]
    [2, 3, 1]
    """
    return len(_decimal(value).as_tuple().digits)


def _step(value: float) -> float:
    """Return one in the second digit of a number.

    Examples
    --------
    >>> _step(94.0)
    1.0
    """
    return float(Decimal(10) ** (_decimal(value).adjusted() - FEW_DIGITS + 1))


def _decimal(value: float) -> Decimal:
    """Return a number as it was printed, before a factor of its unit touched it."""
    return Decimal(f"{value:.12g}").normalize()
