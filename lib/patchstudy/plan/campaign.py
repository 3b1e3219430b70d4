"""How much to measure on each device of a study, and the calls that plan it."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from scipy import special

from patchstudy import checks, stats
from patchstudy.compare import ONE_SIDED_ALPHA, compare
from patchstudy.errors import StudyError
from patchstudy.plan.needs import (
    PROBLEMS,
    Given,
    Need,
    Wish,
    given_design,
    of_comparison,
    of_given,
)
from patchstudy.plan.order import Order, Shape, Slot, schedule
from patchstudy.study import Design, Role, Study, of_files, open_study, read_design
from patchstudy.study.design import design_of_files

#: Nobody measures more blocks, or waits a year for one run.
MOST_BLOCKS: Final = 100_000
LONGEST_S: Final = 365 * 86_400.0
#: Blocks, or units of each variant, of a plan that asks for fewer (STATISTICS 3.16).
DEFAULT_UNITS: Final = 8
#: Runs looked at where a unit adds no spread of its own to that of its runs (ours).
MOST_RUNS: Final = 20
#: Share of pilots whose true spread is above the upper bound that is told.
ROUGH: Final = 0.05

_DECIDING: Final = frozenset({Role.PRIMARY, Role.GUARD, Role.CONTROL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure on one device, and why.

    Attributes
    ----------
    paired
        Whether blocks are compared; else units.
    n
        Planned blocks, or units of each variant; None where even 10 000 do not do.
    needed
        What the margins ask for, before the default of ``DEFAULT_UNITS``; None: more
        than 10 000, or nothing to plan from.
    decides, guard
        The need that asks for most, and the required guard that does: a plan must do
        for the noisiest one (STATISTICS 3.13).
    optimum
        Runs in a unit (of each variant in a block) that cost least; None where the
        level above adds no spread, or ``decides`` does not tell.
    rough
        Factor by which the true spread may exceed that of the pilot.
    boots
        Boots that the pilot saw; 0 where they are not recorded.
    seconds
        What the schedule takes.
    """

    device: str
    unit: str
    block: str
    paired: bool
    needs: tuple[Need, ...]
    n: int | None
    needed: int | None
    shape: Shape | None
    decides: Need | None
    guard: Need | None
    optimum: int | None
    rough: float | None
    boots: int
    seconds: float
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """The plans of all devices of a study, and what they were asked for."""

    study: str
    design: Design
    pilot: bool
    wish: Wish
    seed: int
    plans: tuple[Plan, ...]


def make(
    pilot: Sequence[Path], patched: Sequence[Path], given: Given, wish: Wish
) -> Campaign:
    """Plan from what there is: a study, two sets of raw files, or a given spread.

    Parameters
    ----------
    pilot
        The folder of a study, or the raw files of the baseline; may be empty.
    patched
        The raw files of the patched variant; empty for a study.

    Raises
    ------
    StudyError
        If there is neither a pilot nor a spread, or either cannot be used.
    """
    spread = given.sd or given.boot_sd or given.run_sd
    if patched:
        sets = {"baseline": pilot, "patched": patched}
        if not pilot or spread:
            raise StudyError("--with: needs the baseline's files, and no spread")
        _check(wish)
        return of_pilot(of_files(sets, metric=given.metric, margin=wish.detect), wish)
    if len(pilot) > 1:
        raise StudyError(
            f"{len(pilot)} studies given; plan one, or two sets of files by --with"
        )
    if not spread and not pilot:
        raise StudyError("nothing to plan from; give a STUDY, or --sd '1.5 %'")
    if not spread:
        return of_pilot(open_study(pilot[0]), wish)
    if pilot:
        name = "/".join(pilot[0].resolve().parts[-2:])
        return of_spread(read_design(pilot[0]), given, wish, study=name)
    return of_spread(_no_design(given, wish), given, wish, study="")


def _no_design(given: Given, wish: Wish) -> Design:
    try:
        return design_of_files(
            ("baseline", "patched"), metric=given.metric, margin=wish.detect
        )
    except StudyError as error:
        problem = re.sub(r"^compare: metrics\[1\]\.", "", str(error))
        name = {"name": "--metric", "margin": "--detect"}
        key, _, rest = problem.partition(": ")
        raise StudyError(f"{name.get(key, key)}: {rest}") from error


def of_pilot(study: Study, wish: Wish) -> Campaign:
    """Plan from the spread of a pilot.

    Raises
    ------
    StudyError
        If the wish is wrong, or the pilot shows no spread of anything that decides.
    """
    _check(wish)
    found = checks.material(study)
    compared = compare(found.units, found.asked, study.design)
    needs: dict[str, list[Need]] = {}
    for one in compared:
        planned = one.question.planned
        if one.question.role in _DECIDING and (
            one.question.role is not Role.GUARD or planned.required
        ):
            needs.setdefault(one.question.device, []).append(
                of_comparison(one, found, wish)
            )
    _require_spread(study, needs)
    boots = found.runs[found.runs["boot"] != ""].groupby("device")["boot"].nunique()
    campaign = _campaign(study.design, wish, study.name, pilot=True)
    plans = [
        replace(_plan(device, members, campaign), boots=int(boots.get(device, 0)))
        for device, members in needs.items()
    ]
    return replace(campaign, plans=tuple(plans))


def of_spread(design: Design, given: Given, wish: Wish, *, study: str) -> Campaign:
    """Plan the primary metrics of a design from a given spread.

    With ``sd`` a unit is a run, and the variants take turns within boots. With
    ``boot_sd`` and ``run_sd`` a boot runs one variant, and the boots take turns.

    Raises
    ------
    StudyError
        If the spread or the wish is wrong.
    """
    _check(wish)
    design = given_design(design, given)
    primary = [
        of_given(one, given, design, wish)
        for one in design.metrics
        if one.role is Role.PRIMARY
    ]
    campaign = _campaign(design, wish, study, pilot=False)
    devices = tuple(design.devices) or ("device",)
    plans = [_plan(device, primary, campaign) for device in devices]
    return replace(campaign, plans=tuple(plans))


def _campaign(design: Design, wish: Wish, study: str, *, pilot: bool) -> Campaign:
    seed = int(design.digest[:8] or "1", 16) if wish.seed is None else wish.seed
    return Campaign(
        study=study, design=design, pilot=pilot, wish=wish, seed=seed, plans=()
    )


def _check(wish: Wish) -> None:
    if not ONE_SIDED_ALPHA < wish.power < 1:
        raise StudyError(f"--power: {wish.power:g} given; give a share such as 0.8")
    if wish.blocks == 1:
        raise StudyError("--blocks: 1 given; a spread needs at least 2")
    if wish.blocks is not None and wish.blocks > MOST_BLOCKS:
        raise StudyError(f"--blocks: give at most {MOST_BLOCKS}")
    if not all(0 < one <= LONGEST_S for one in (wish.run_cost_s, wish.boot_cost_s)):
        raise StudyError(
            f"--boot-cost, --run-cost: give seconds above 0, at most {LONGEST_S:.0f}"
        )


def _require_spread(study: Study, needs: dict[str, list[Need]]) -> None:
    """Refuse a pilot that says nothing about noise."""
    everything = [(device, one) for device, ones in needs.items() for one in ones]
    if any(not one.problem for _, one in everything):
        return
    for device, one in everything:
        raise StudyError(
            f"{study.folder}: {device}: {one.metric} on {one.workload}: "
            f"{one.problem}: {PROBLEMS[one.problem]}"
        )
    raise StudyError(f"{study.folder}: nothing that decides was measured")


# ---- how much to measure ------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """What is fixed before the number of runs is chosen.

    Attributes
    ----------
    units
        Units of a variant in a block, where a unit holds runs.
    step
        2 where a palindrome needs pairs.
    begin_s
        What a variant pays for one more entry of the analysis, without its runs.
    """

    paired: bool
    unit: str
    units: int
    step: int
    begin_s: float
    run_s: float
    least: int
    fixed: bool

    def sd(self, need: Need, runs: int) -> float:
        """Spread of what is compared with so many runs in a unit."""
        if need.spread is None:
            return 0.0
        entry = runs * (self.units if self.paired else 1)
        return math.sqrt((2 if self.paired else 1) * need.spread.variance(entry))

    def needed(self, needs: Iterable[Need], runs: int) -> float:
        """Blocks, or units of each variant, that the most demanding margin needs."""
        each = (one.units_for(self.sd(one, runs), paired=self.paired) for one in needs)
        return max((math.inf if n is None else n for n in each), default=0)

    def price(self, needs: Sequence[Need], runs: int) -> tuple[bool, float, int]:
        """Order of choices: enough units first, then the cheapest, then fewest runs."""
        needed = self.needed(needs, runs)
        n = self.least if self.fixed else max(self.least, needed)
        run_s = self.run_s * (self.units if self.paired else 1)
        return self.fixed and needed > n, n * (self.begin_s + runs * run_s), runs


def _frame(needs: Sequence[Need], campaign: Campaign) -> _Frame:
    design, wish = campaign.design, campaign.wish
    unit = needs[0].unit if needs else design.unit
    paired = unit == "run" or any(one.paired for one in needs)
    step = 2 if wish.order is Order.ABBA else 1
    held = [one.spread.units for one in needs if one.spread is not None]
    most = max([1, *held])
    units = 1 if unit == "run" else step * math.ceil(most / step)
    begin = wish.boot_cost_s
    if unit == "run":
        begin /= len(design.variants)  # the variants share a boot
    elif paired:
        begin *= units
    least = wish.blocks or DEFAULT_UNITS
    if wish.blocks and not paired:
        least *= units
    return _Frame(
        paired=paired,
        unit=unit,
        units=units,
        step=step if unit == "run" else 1,
        begin_s=begin,
        run_s=wish.run_cost_s,
        least=least,
        fixed=wish.blocks is not None,
    )


def _optimum(need: Need | None, frame: _Frame) -> int | None:
    """Runs in a unit that cost least (Kalibera and Jones 2013, equation 3)."""
    if need is None or need.spread is None or not need.spread.told:
        return None
    spread = need.spread
    (runs,) = stats.optimal_repetitions(
        (frame.run_s, frame.begin_s), (spread.own, spread.above)
    )
    per_unit_ = frame.units if frame.paired else 1
    return None if runs is None else math.ceil(runs / per_unit_)


def _runs(needs: Sequence[Need], frame: _Frame, optimum: int | None) -> int:
    """Choose the number of runs, up to the optimum, that makes the plan cheapest."""
    told = [one.spread for one in needs if one.spread is not None]
    knows = any(one.own > 0 for one in told)
    most = optimum or (MOST_RUNS if knows else frame.step)
    choices = range(frame.step, most + frame.step, frame.step)
    return min(choices, key=lambda runs: frame.price(needs, runs))


def _plan(device: str, needs: Sequence[Need], campaign: Campaign) -> Plan:
    open_ = [one for one in needs if not one.problem]
    frame = _frame(open_, campaign)
    first = max(open_, key=lambda one: frame.needed([one], frame.step), default=None)
    optimum = _optimum(first, frame)
    runs = _runs(open_, frame, optimum)
    shape = _shape(frame.needed(open_, runs), runs, frame)
    done = tuple(_with_plan(one, frame, shape, runs) for one in needs)
    ranked = sorted((one for one in done if not one.problem), key=_demand, reverse=True)
    guards = [one for one in ranked if one.role is Role.GUARD]
    decides = ranked[0] if ranked else None
    return Plan(
        device=device,
        unit=frame.unit,
        block=_block_name(campaign.design, frame.unit),
        paired=frame.paired,
        needs=done,
        n=None if shape is None else _units(shape, frame),
        needed=None if decides is None else decides.planned,
        shape=shape,
        decides=decides,
        guard=guards[0] if guards else None,
        optimum=optimum,
        rough=None if decides is None else _rough(decides),
        boots=0,
        seconds=_seconds(shape, campaign),
        slots=_slots(device, shape, campaign),
    )


def _slots(device: str, shape: Shape | None, campaign: Campaign) -> tuple[Slot, ...]:
    if shape is None:
        return ()
    order, seed = campaign.wish.order, campaign.seed
    return schedule(campaign.design, device, shape, order=order, seed=seed)


def _demand(one: Need) -> float:
    return math.inf if one.planned is None else one.planned


def _block_name(design: Design, unit: str) -> str:
    """Return what holds the turns: as declared, else what the layout numbers."""
    boots = unit == "run" and "{boot}" in design.layout
    return design.block or ("boot" if boots else "block")


def _shape(needed: float, runs: int, frame: _Frame) -> Shape | None:
    if math.isinf(needed) and not frame.fixed:
        return None
    n = frame.least if frame.fixed else max(frame.least, int(needed))
    if frame.unit == "run":
        return Shape(unit="run", blocks=n, units=runs, runs=1)
    blocks = n if frame.paired else math.ceil(n / frame.units)
    return Shape(unit=frame.unit, blocks=blocks, units=frame.units, runs=runs)


def _units(shape: Shape, frame: _Frame) -> int:
    """Blocks, or units of each variant, as the schedule has them."""
    return shape.blocks if frame.paired else shape.blocks * shape.units


def _with_plan(one: Need, frame: _Frame, shape: Shape | None, runs: int) -> Need:
    if one.problem:
        return one
    sd = frame.sd(one, runs)
    shows = None
    if shape is not None and _units(shape, frame) >= 2:
        shows = one.shown_by(_units(shape, frame), sd, paired=frame.paired)
    return replace(one, planned=one.units_for(sd, paired=frame.paired), shows=shows)


def _rough(need: Need) -> float | None:
    """Upper bound of the spread over its estimate, from the chi-square distribution.

    The pilot's variance times its degrees of freedom over the true one follows it.
    """
    if need.df <= 0:
        return None
    return math.sqrt(need.df / float(special.chdtri(need.df, 1 - ROUGH)))


def _seconds(shape: Shape | None, campaign: Campaign) -> float:
    if shape is None:
        return 0.0
    wish, variants = campaign.wish, len(campaign.design.variants)
    units = shape.blocks * shape.units * variants
    boots = shape.blocks if shape.unit == "run" else units
    return boots * wish.boot_cost_s + units * shape.runs * wish.run_cost_s
