"""A plan as text, CSV and JSON."""

import csv
import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from patchstudy.checks import ENOUGH_UNITS
from patchstudy.errors import StudyError, printable
from patchstudy.metrics import Scale, metric
from patchstudy.plan import PROBLEMS, Campaign, Goal, Need, Order, Plan
from patchstudy.report import files
from patchstudy.report.table import Column, Table, cell_of_csv, to_text
from patchstudy.study import Role
from patchstudy.units import for_people

WIDTH: Final = 72
#: Units of each variant for which a given spread tells the change that shows.
LADDER: Final = (3, 4, 5, 8, 10, 20)
#: A longer schedule is not printed as text.
LONGEST: Final = 200
_SLOT: Final = ("position", "block", "variant", "run", "folder")
_SHOWN: Final = {
    Goal.CHANGE: "a change of",
    Goal.NO_HARM: "that harm stays below",
    Goal.SAME: "that any change stays below",
}


def plan_text(campaign: Campaign) -> str:
    """The plan of every device for people: needs, where to spend, schedule."""
    return "\n\n".join(
        part for one in campaign.plans for part in _device(one, campaign)
    )


def plan_csv(campaign: Campaign) -> str:
    """The schedule alone, one line a run; devices follow each other."""
    stream = io.StringIO()
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow(["device", *_SLOT])
    for one in campaign.plans:
        for slot in one.slots:
            cells = [one.device, *(getattr(slot, name) for name in _SLOT)]
            rows.writerow([x if isinstance(x, int) else cell_of_csv(x) for x in cells])
    return stream.getvalue()


def plan_content(campaign: Campaign) -> dict[str, Any]:
    """All of the plan as plain values, as ``--format json`` and ``--store`` write it.

    ``study_sha256`` is that of ``study.toml`` (empty without one): a margin that was
    changed after planning shows in it.
    """
    wish = campaign.wish
    return {
        "schema": 1,
        "study": campaign.study,
        "study_sha256": campaign.design.digest,
        "from": "pilot" if campaign.pilot else "given spread",
        "seed": campaign.seed,
        "order": str(wish.order),
        "detect": wish.detect,
        "power": wish.power,
        "alpha": campaign.design.alpha,
        "boot_cost_s": wish.boot_cost_s,
        "run_cost_s": wish.run_cost_s,
        "margins": [
            {
                "metric": one.metric.name,
                "workloads": list(one.workloads),
                "role": str(one.role),
                "margin": one.margin.text,
                "declared": one.margin.declared,
                "required": one.required,
            }
            for one in campaign.design.metrics
            if one.role in {Role.PRIMARY, Role.GUARD}
        ],
        "plans": [asdict(one) for one in campaign.plans],
    }


def store(path: Path, content: bytes) -> None:
    """Write a plan whole, or say why that cannot be done."""
    try:
        files.write(path, content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StudyError(
            f"--store: {path}: cannot be written ({reason}); its folder must exist"
        ) from error


# ---- the parts ----------------------------------------------------------------------


def _device(plan: Plan, campaign: Campaign) -> Iterator[str]:
    yield _needs(plan, campaign)
    if not campaign.pilot:
        yield from _ladder(plan)
    sentences = (*_decided(plan), *_spending(plan, campaign), *_trust(plan, campaign))
    yield "\n".join(_wrapped(one) for one in sentences)
    yield from _schedule(plan, campaign)


def _needs(plan: Plan, campaign: Campaign) -> str:
    several = len(campaign.design.patched) > 1
    columns = (Column("role"), Column("metric, workload"), Column("margin"),
               Column("has", "right"), Column("shows", "right"),
               Column("needs", "right"))  # fmt: skip
    rows = tuple(_row(one, several=several) for one in plan.needs)
    source = f"the pilot {campaign.study}" if campaign.pilot else "a given spread"
    caption = (
        f"{plan.device}, from {source}: {_counted(plan)}, at a power of "
        f"{campaign.wish.power:g}."
    )
    return _table(caption, columns, rows)


def _table(
    caption: str, columns: tuple[Column, ...], rows: tuple[tuple[str, ...], ...]
) -> str:
    """Write a table below a caption that is broken into lines."""
    return f"{_wrapped(caption)}\n\n{to_text(Table(columns, rows, '')).lstrip()}"


def _row(one: Need, *, several: bool) -> tuple[str, ...]:
    name = _name(one) + (f" ({one.variant})" if several else "")
    if one.problem:
        return (str(one.role), name, one.margin, "-", "-", one.problem)
    has = str(one.n) if one.n else "-"
    shows = "-" if one.detectable is None else _on_scale(one, one.detectable)
    return (str(one.role), name, one.margin, has, shows, _count(one.needed))


def _name(one: Need) -> str:
    return f"{one.metric}, {one.workload}"


def _counted(plan: Plan) -> str:
    known = [one for one in plan.needs if not one.problem]
    paired = known[0].paired if known else plan.paired
    return f"{plan.block}s" if paired else f"{plan.unit}s of each variant"


def _count(needed: int | None) -> str:
    return ">10000" if needed is None else str(needed)


def _on_scale(one: Need, value: float) -> str:
    """Write a change as people read it: percent, points, or the metric's unit."""
    if one.scale is Scale.RATIO:
        return f"{100 * math.expm1(min(value, 700.0)):.3g} %"
    unit = metric(one.metric).unit
    return f"{100 * value:.3g} pp" if unit == "1" else for_people(value, unit, digits=3)


def _ladder(plan: Plan) -> Iterator[str]:
    """What other numbers of units show: a row of STATISTICS 3.16 for each need."""
    runs = plan.shape.runs if plan.shape else 1
    columns = (Column("metric"), *(Column(str(n), "right") for n in LADDER))
    rows = tuple(
        (
            one.metric,
            *(
                _on_scale(one, one.shown_by(n, math.sqrt(sd), paired=False))
                for n in LADDER
            ),
        )
        for one in plan.needs
        if one.spread is not None
        for sd in [one.spread.variance(runs)]
    )
    each = f" of {runs} runs" if runs > 1 else ""
    caption = f"Smallest change that so many {plan.unit}s{each} of each variant show:"
    yield _table(caption, columns, rows)


def _decided(plan: Plan) -> Iterator[str]:
    if any(one.margin.endswith("*") for one in plan.needs):
        yield "* a default: the study declares no margin for it."
    for problem in dict.fromkeys(one.problem for one in plan.needs if one.problem):
        yield f"Not planned for, '{problem}': {PROBLEMS[problem]}."
    need, guard = plan.decides, plan.guard
    if need is None:
        yield "There is nothing to plan from here; this is the default plan."
    else:
        yield (
            f"Decides: {_name(need)} ({need.role}). To show {_SHOWN[need.goal]} "
            f"{need.margin.removesuffix(' *')} takes most."
        )
    if guard is not None:
        yield (
            f"Noisiest required guard: {_name(guard)}; its margin of {guard.margin} "
            f"takes {_count(guard.planned)} {_planned_units(plan)}."
        )
    yield from _planned(plan)


def _planned(plan: Plan) -> Iterator[str]:
    shape = plan.shape
    if shape is None:
        yield (
            "No plan: not even 10000 would do. Take a larger margin, a quieter setup "
            "or longer runs; or see with --blocks N what N blocks show."
        )
        return
    each = f"{shape.units} {shape.unit}{'s' if shape.units > 1 else ''} of each variant"
    inner = f", {shape.runs} runs a {shape.unit}" if shape.runs > 1 else ""
    yield (
        f"Plan: {shape.blocks} {plan.block}s, each with {each}{inner}; in all "
        f"{len(plan.slots)} runs, {_duration(plan.seconds)}{_why(plan)}."
    )
    chosen = [
        one for one in plan.needs if one.role is Role.PRIMARY or one == plan.guard
    ]
    parts = [
        f"{_on_scale(one, one.shows)} ({_name(one)})"
        for one in chosen
        if one.shows is not None
    ]
    if parts:
        yield f"It shows {'; '.join(parts)}."


def _planned_units(plan: Plan) -> str:
    return f"{plan.block}s" if plan.paired else f"{plan.unit}s of each variant"


def _why(plan: Plan) -> str:
    """Say how the plan differs from what the margins ask for."""
    if plan.decides is None or plan.needed == plan.n:
        return ""
    needed = f"the margins need {_count(plan.needed)} {_planned_units(plan)}"
    if plan.needed is None or plan.needed > (plan.n or 0):
        return f"; too few, {needed}"
    return f" ({needed}, the rest is the default)"


def _spending(plan: Plan, campaign: Campaign) -> Iterator[str]:
    """Boots or runs: Kalibera and Jones (2013)."""
    need = plan.decides
    if need is None or need.spread is None:
        return
    level = plan.block if plan.paired else plan.unit
    if need.spread.told:
        yield _split(plan, need, campaign)
    elif need.paired:
        yield (
            f"Runs or {level}s: the pilot has one run of each variant in a {level} and "
            f"cannot say which of them the noise comes from; more {level}s always help."
        )
    elif campaign.pilot:
        yield (
            f"Runs or {level}s: the pilot has no blocks with both variants and cannot "
            f"say what a {level} adds to the noise; {level}s in which the variants "
            "take turns are planned."
        )


def _split(plan: Plan, need: Need, campaign: Campaign) -> str:
    level = plan.block if plan.paired else plan.unit
    own, above = (need.spread.own, need.spread.above) if need.spread else (0.0, 0.0)
    runs = f"Runs or {level}s: runs vary by {_sd(need, own)} (sd)"
    if plan.optimum is None:
        return (
            f"{runs}, {level}s add nothing beyond that: a run more helps as much as a "
            f"{level} more with as many runs."
        )
    wish, shape = campaign.wish, plan.shape
    taken = None if shape is None else shape.units if plan.unit == "run" else shape.runs
    other = f" (planned: {taken})" if taken not in {None, plan.optimum} else ""
    return (
        f"{runs}, {level}s add {_sd(need, above)}; at {wish.boot_cost_s:g} s to "
        f"begin a {level} and {wish.run_cost_s:g} s a run, {_runs(plan)} cost"
        f"{'s' if plan.optimum == 1 else ''} least{other}."
    )


def _runs(plan: Plan) -> str:
    word = "run" if plan.optimum == 1 else "runs"
    where = f"of each variant in a {plan.block}" if plan.paired else f"a {plan.unit}"
    return f"{plan.optimum} {word} {where}"


def _sd(need: Need, variance: float) -> str:
    return _on_scale(need, math.sqrt(variance))


def _trust(plan: Plan, campaign: Campaign) -> Iterator[str]:
    if plan.rough is not None:
        yield (
            f"The pilot knows the spread only roughly: it may be {plan.rough:.2g} "
            f"times as large (95 % bound), and the need then {plan.rough**2:.2g} times."
        )
    if campaign.pilot:
        yield (
            "Measure into a new study: runs of the pilot are not counted again, and "
            "the number of runs stays as planned whatever the first ones show."
        )
    elif any(one.role is Role.GUARD for one in campaign.design.metrics):
        yield "Guards are not planned for: their spread was not given."
    inside = plan.unit == "run" and campaign.pilot and plan.block != "boot"
    if inside and plan.boots <= 1:
        seen = "lies in one boot" if plan.boots else "does not record its boots"
        yield (
            f"The pilot {seen}: spread the {plan.block}s over at least "
            f"{ENOUGH_UNITS} boots, or the verdict holds within one boot only."
        )
    few = plan.shape is not None and (plan.n or 0) < ENOUGH_UNITS
    need = plan.decides
    if few and need is not None and need.spread is not None and need.spread.above > 0:
        yield f"Fewer than {ENOUGH_UNITS} {plan.block}s: their spread is hardly known."


def _schedule(plan: Plan, campaign: Campaign) -> Iterator[str]:
    if not plan.slots:
        return
    alternate = campaign.wish.order is Order.ABBA
    order = "ABBA and BAAB in turn" if alternate else "random in each block"
    head = f"Schedule ({order}, seed {campaign.seed})"
    if len(plan.slots) > LONGEST:
        more = "print it with --format csv"
        yield _wrapped(f"{head}: {len(plan.slots)} runs; {more}.")
        return
    prefix = f"{plan.device}/"
    under = all(slot.folder.startswith(prefix) for slot in plan.slots)
    where = f", folders under {prefix}" if under else ""
    columns = (Column("position", "right"), *(Column(name) for name in _SLOT[1:]))
    rows = tuple(
        (
            str(slot.position),
            slot.block,
            slot.variant,
            slot.run,
            slot.folder.removeprefix(prefix) if under else slot.folder,
        )
        for slot in plan.slots
    )
    yield _table(f"{head}{where}:", columns, rows)


def _duration(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    hours, rest = divmod(minutes, 60)
    return f"about {hours} h {rest} min" if hours else f"about {rest} min"


def _wrapped(text: str) -> str:
    lines = textwrap.wrap(
        printable(text), WIDTH, subsequent_indent="  ", break_on_hyphens=False
    )
    return "\n".join(lines)


def as_bytes(text: str) -> bytes:
    """Return the text as the bytes that ``--store`` writes, one line end at its end."""
    return (text.rstrip("\n") + "\n").encode()


__all__: Sequence[str] = [
    "as_bytes",
    "plan_content",
    "plan_csv",
    "plan_text",
    "store",
]
