"""How often the rules are wrong, by simulation: ``python benchmarks/error_rates.py``.

Every bar is a promise of ``docs/statistics.md``. Draws come from a fixed seed for each
scenario. Rates that need many draws are counted with a vectorised restatement of the
interval and verdict rules; the bars "the restated rules agree" run the same draws
through ``compare`` and ``findings.judge``, or through a study on disk and
``findings.assess``, and count every difference. Exit status 1 where a bar breaks by
more than three standard errors of the simulation; where the bar is the worst of
several cells, by as many as are equally rare in that many cells.
"""

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from patchstudy import stats
from patchstudy.compare import Comparison, compare, sensitive
from patchstudy.errors import GrainError
from patchstudy.failures import Failures, Tally
from patchstudy.findings import assess, judge
from patchstudy.study import Design, Role, Study, open_study
from patchstudy.study.design import design_of_files
from patchstudy.tables import (
    INTERVAL_COLUMNS,
    RUN_COLUMNS,
    UNIT_COLUMNS,
    UNIT_GRAIN,
    Question,
)
from patchstudy.turns import PULL, order_of, pull
from patchstudy.verdicts import Finding, Guarded, Verdict

Array = NDArray[np.float64]

DRAWS: Final = 20_000
SIZES: Final = (3, 4, 5, 6, 8, 10, 15, 20)
SHAPES: Final = ("normal", "skewed", "two modes", "outliers")
MARGIN_TEXT: Final = "2 %"
MARGIN: Final = float(np.log1p(0.02))
SD: Final = 0.01
GAIN: Final = float(np.log1p(0.02))
GUARDS: Final = 20
LEVEL: Final = 2.0  # of throughput in bit/s is LEVEL * 1e8
BASE, PATCHED = "baseline", "patched"
#: Orders in which one variant came first, though not all of it.
EVADING: Final = ("AAAAABBBBBA", "BAAAAABBBB", "AAAAABABBBB")


# ---- bars ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One rate, and what is required of it.

    Attributes
    ----------
    rate
        Share of the draws.
    draws
        How many there were.
    limit
        Required bound of the rate; None where the rate is shown for comparison only.
    at_least
        Whether ``limit`` is a lower bound.
    cell, cells
        For the worst of several cells: which one it was, of how many.
    """

    name: str
    rate: float
    draws: int
    limit: float | None
    at_least: bool
    cell: str = ""
    cells: int = 1

    @property
    def error(self) -> float:
        """Standard error of the rate."""
        return _error(self.rate, self.draws)

    @property
    def excess(self) -> float:
        """By how much the bar is broken; 0 or less where it holds."""
        if self.limit is None:
            return 0.0
        return self.limit - self.rate if self.at_least else self.rate - self.limit

    @property
    def broken(self) -> bool:
        """Whether chance does not explain by how much it is exceeded."""
        if self.limit is None:
            return False
        tail = float(special.ndtr(-3.0)) / self.cells
        return self.excess > -special.ndtri(tail) * _error(self.limit, self.draws)

    @property
    def result(self) -> str:
        """In words."""
        if self.limit is None:
            return "-"
        if self.broken:
            return "FAIL"
        return "pass" if self.excess <= 0 else "pass (within error)"

    @property
    def required(self) -> str:
        """In words."""
        if self.limit is None:
            return "shown only"
        if self.limit == 0 and not self.at_least:
            return "none"
        return f"{'>=' if self.at_least else '<='} {100 * self.limit:g} %"


def at_most(limit: float | None, name: str, wrong: NDArray[np.bool_]) -> Bar:
    """Make the bar of a rate that must be small."""
    rate = float(np.mean(wrong))
    return Bar(name=name, rate=rate, draws=len(wrong), limit=limit, at_least=False)


def at_least(limit: float, name: str, right: NDArray[np.bool_]) -> Bar:
    """Make the bar of a rate that must be large."""
    rate = float(np.mean(right))
    return Bar(name=name, rate=rate, draws=len(right), limit=limit, at_least=True)


def shown(name: str, hit: NDArray[np.bool_]) -> Bar:
    """Make a line that is shown for comparison."""
    return at_most(None, name, hit)


def worst(cells: Sequence[Bar], name: str) -> Bar:
    """Return the cell that comes closest to breaking, under a common name."""
    found = max(cells, key=lambda one: one.excess)
    return replace(found, name=name, cell=found.name, cells=len(cells))


def _error(rate: float, draws: int) -> float:
    return float(np.sqrt(rate * (1 - rate) / draws))


# ---- made-up data -------------------------------------------------------------------


def seeded(*names: object) -> np.random.Generator:
    """Random numbers that the name of a scenario determines, on every machine."""
    text = " ".join(map(str, names)).encode()
    return np.random.default_rng(int.from_bytes(sha256(text).digest()[:8], "little"))


def noise(shape: str, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Noise on the log scale, in units of the standard deviation of the normal one.

    ``skewed`` is a shifted log-normal with its long tail towards slow runs (standard
    deviation 1, skewness -3.3), ``two modes`` has half of the runs 2.5 lower (0.5
    within a mode), ``outliers`` has one run in ten 8 lower.
    """
    if shape == "normal":
        return rng.normal(size=size)
    if shape == "skewed":
        sigma = 0.75
        mean, sd = np.exp(sigma**2 / 2), np.sqrt(np.expm1(sigma**2))
        return (mean - rng.lognormal(sigma=sigma, size=size)) / (mean * sd)
    if shape == "two modes":
        return 2.5 * (0.5 - rng.integers(2, size=size)) + rng.normal(0, 0.5, size)
    return rng.normal(size=size) - 8 * (rng.random(size) < 0.1)


def arms(shape: str, n: int, draws: int, *, gain: float = 0.0) -> tuple[Array, Array]:
    """Logs of both arms, one draw a row, with noise of 1 % and a true gain."""
    rng = seeded("arms", shape, n, gain)
    base, new = (SD * noise(shape, rng, (draws, n)) for _ in range(2))
    return base, new + gain


# ---- the rules, restated for many draws at once -------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """As ``stats.Effect``, one entry a draw."""

    value: Array
    error: Array
    df: Array

    def reach(self, quantile: float) -> Array:
        """Half width of an interval."""
        return special.stdtrit(self.df, quantile) * self.error

    def low(self, quantile: float = 0.975) -> Array:
        """Lower bound."""
        return self.value - self.reach(quantile)

    def high(self, quantile: float = 0.975) -> Array:
        """Upper bound."""
        return self.value + self.reach(quantile)

    def covers(self, truth: float) -> NDArray[np.bool_]:
        """Whether the 95 % interval holds the truth."""
        return (self.low() <= truth) & (truth <= self.high())

    def differs(self) -> NDArray[np.bool_]:
        """Whether the 95 % interval excludes zero."""
        return ~self.covers(0.0)

    def p_values(self) -> Array:
        """Two-sided p of no difference."""
        return 2 * special.stdtr(self.df, -np.abs(self.value) / self.error)


def welch(base: Array, new: Array, floor: float = 0.0) -> Effects:
    """Restate ``stats.welch`` for one draw a row, with one floor for both arms."""
    sides = (base, new)
    seen = [_spread(side) for side in sides]
    parts = [
        np.maximum(sd, floor) ** 2 / side.shape[1]
        for sd, side in zip(seen, sides, strict=True)
    ]
    total = parts[0] + parts[1]
    own = [side.shape[1] - 1 for side in sides]
    unseen = (np.maximum(*seen) <= floor) | (total == 0)
    below = np.where(unseen, 1.0, total)
    spent = sum((part / below) ** 2 / df for part, df in zip(parts, own, strict=True))
    return Effects(
        value=new.mean(axis=1) - base.mean(axis=1),
        error=np.sqrt(total),
        df=np.where(unseen, float(sum(own)), 1 / np.where(unseen, 1.0, spent)),
    )


def paired(differences: Array) -> Effects:
    """Restate ``stats.paired`` for one draw a row."""
    blocks = differences.shape[1]
    return Effects(
        value=differences.mean(axis=1),
        error=_spread(differences) / np.sqrt(blocks),
        df=np.full(len(differences), blocks - 1.0),
    )


def verdicts(found: Effects, margin: float = MARGIN) -> NDArray[np.str_]:
    """Restate the verdict of a metric of which more is better, with its size."""
    low, high = found.low(), found.high()
    same = (-margin < found.low(0.95)) & (found.high(0.95) < margin)
    return np.select(
        [
            low > margin, (low > 0) & (high < margin), low > 0,
            high < -margin, (high < 0) & (low > -margin), high < 0,
            same,
        ],
        [
            "better, material", "better, at most small", "better, size uncertain",
            "worse, material", "worse, at most small", "worse, size uncertain",
            "equivalent",
        ],
        default="inconclusive",
    )  # fmt: skip


def guarded(found: Effects, margin: float, guards: int = 1) -> NDArray[np.str_]:
    """Restate what is known of harm to guards; ``guards`` neighbours are a family."""
    adjusted = np.array(
        [stats.holm(row) for row in found.p_values().reshape(-1, guards).tolist()],
        dtype=float,
    ).ravel()
    harmed = found.high() < 0
    inside = -found.low(0.95) < margin
    broken = harmed & (adjusted < 0.05) & (-found.value >= margin)
    return np.select(
        [inside & harmed, inside, broken],
        [Guarded.HARM.value, Guarded.SAFE.value, Guarded.BROKEN.value],
        default=Guarded.UNRESOLVED.value,
    )


def _spread(rows: Array) -> Array:
    flat = np.ptp(rows, axis=1) <= 1e-12 * np.abs(rows).max(axis=1)
    return np.where(flat, 0.0, rows.std(axis=1, ddof=1))


# ---- the rules themselves -----------------------------------------------------------


def design(role: Role = Role.PRIMARY, margin: str = MARGIN_TEXT) -> Design:
    """Runs, no blocks, one metric."""
    made = design_of_files((BASE, PATCHED), metric="throughput", margin=margin)
    planned = replace(made.metrics[0], role=role)
    return replace(made, metrics=(planned,))


def compared(
    base: Array, new: Array, plan: Design, *, step: float = np.nan
) -> tuple[Comparison, ...]:
    """Send logs through the real ``compare``, one question a row."""
    questions = [_question(plan, row) for row in range(len(base))]
    rows = [
        (
            question.key, question.device, question.workload, "throughput", variant,
            f"{variant} {place}", place if plan.block else "", place, True,
            1e8 * LEVEL * np.exp(value), np.nan, step, 1, "",
        )
        for question, *sides in zip(questions, base, new, strict=True)
        for variant, side in zip((BASE, PATCHED), sides, strict=True)
        for place, value in enumerate(map(float, side), start=1)
    ]  # fmt: skip
    units = pd.DataFrame(rows, columns=list(UNIT_COLUMNS))
    units.attrs["grain"] = UNIT_GRAIN
    return compare(units, questions, plan)


def judged(base: Array, new: Array, plan: Design, **more: float) -> list[Finding]:
    """Send logs through the real ``compare`` and ``judge``, one finding a row."""
    study = Study(
        folder=Path(), name="made/up", design=plan, runs=(), facts=(), leftovers=(),
        files={}, plan=None, patch=None,
    )  # fmt: skip
    return [judge(one, study) for one in compared(base, new, plan, **more)]


def words(finding: Finding) -> str:
    """Write a verdict as ``verdicts`` does."""
    sizes = {"material", "at most small", "size uncertain"}
    return ", ".join([finding.verdict, *(q for q in finding.qualifiers if q in sizes)])


def _question(plan: Design, row: int) -> Question:
    """Ask the row: of another device, or of guards of another workload on one."""
    planned = plan.metrics[0]
    guard = planned.role is Role.GUARD
    place = ("d", f"w{row:05}") if guard else (f"d{row:05}", "tcp")
    return Question(
        device=place[0], workload=place[1], planned=planned, role=planned.role,
        labels=(), tool="", place="", problem="", unit=plan.unit,
    )  # fmt: skip


STUDY: Final = """\
question = "How often is a verdict wrong?"
unit = "run"
{declared}
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""

Row = tuple[str, str, str, str, int, float]


def assessed(rows: Sequence[Row], **keys: str) -> list[Finding]:
    """Write a study (device, variant, block, boot, position, log) and assess it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "made" / "up"
        folder.mkdir(parents=True)
        declared = "\n".join(f'{key} = "{value}"' for key, value in keys.items())
        text = STUDY.format(declared=declared)
        (folder / "study.toml").write_text(text, encoding="utf-8")
        path = folder / "measurements.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                ["device", "variant", "block", "boot", "position", "run", "workload",
                 "metric", "unit", "value"]
            )  # fmt: skip
            for *factors, value in rows:
                number = 1e8 * LEVEL * np.exp(value)
                shared = [
                    factors[-1],
                    "tcp",
                    "throughput",
                    "bit/s",
                    repr(float(number)),
                ]
                writer.writerow([*factors, *shared])
        return list(assess(open_study(folder)).findings)


# ---- scenarios ----------------------------------------------------------------------


def few(draws: int) -> int:
    """Draws that go through the real path, which takes some 20 ms each."""
    return min(100, max(20, draws // 100))


def coverage(draws: int) -> Iterator[Bar]:
    """False positives and coverage of the interval, by shape and size."""
    for kind in ("Welch", "paired"):
        false, covered = [], []
        for shape in SHAPES:
            for n in SIZES:
                base, new = arms(shape, n, draws)
                found = welch(base, new) if kind == "Welch" else paired(new - base)
                name = f"{shape}, n={n}"
                false.append(at_most(0.05, name, found.differs()))
                gained = replace(found, value=found.value + GAIN)
                covered.append(at_least(0.94, name, gained.covers(GAIN)))
        yield worst(false, f"false positives, {kind}, 4 shapes, n=3..20")
        yield worst(covered, f"95 % interval covers the change, {kind}, same")


def power(draws: int) -> Iterator[Bar]:
    """How often a true +2 % is found."""
    for shape, n, limit in (
        ("normal", 5, 0.75), ("normal", 3, 0.35), ("two modes", 10, 0.85)
    ):  # fmt: skip
        base, new = arms(shape, n, draws)
        yield at_least(
            limit,
            f"power at +2 %, {shape}, sd 1 %, n={n}",
            welch(base, new + GAIN).low() > 0,
        )
        false = welch(base, new).differs()
        yield at_most(0.05, f"false positives there, {shape}, n={n}", false)


def unequal(draws: int) -> Iterator[Bar]:
    """Beyond the bars: arms that differ in more than the mean."""
    rng = seeded("unequal")
    base = rng.normal(size=(draws, 5))
    wide = welch(base, 3 * rng.normal(size=(draws, 5)))
    yield at_least(0.94, "covers, patched spreads 3 times as wide, n=5", wide.covers(0))
    few_wide = welch(rng.normal(size=(draws, 15)), 3 * rng.normal(size=(draws, 5)))
    yield at_least(0.94, "covers, the same with n=15 and n=5", few_wide.covers(0))
    # the mean of the outlying noise is -0.8: with +0.8 the true change is zero
    for n in (5, 10, 20):
        odd = welch(
            rng.normal(size=(draws, n)), noise("outliers", rng, (draws, n)) + 0.8
        )
        yield shown(f"covers, outliers in one arm only, n={n}", odd.covers(0))


def verdict(draws: int) -> Iterator[Bar]:
    """How often the words of a verdict are wrong, at a margin of 2 %."""
    at_margin = {n: welch(*arms("normal", n, draws, gain=MARGIN)) for n in SIZES}
    said = {n: verdicts(found) for n, found in at_margin.items()}
    for word, limit in (
        ("better, material", 0.025),
        ("better, at most small", 0.025),
        ("equivalent", 0.05),
    ):
        cells = [at_most(limit, f"n={n}", said[n] == word) for n in SIZES]
        yield worst(cells, f"wrong '{word}': the change is the margin, n=3..20")
    yield at_least(
        0.95,
        "'material' at +5 %, sd 1 %, n=5",
        verdicts(welch(*arms("normal", 5, draws, gain=np.log1p(0.05))))
        == "better, material",
    )
    yield from equivalence(draws)


def equivalence(draws: int) -> Iterator[Bar]:
    """How often no change is called one, and how often proven."""
    base, new = arms("normal", 5, draws)
    harmless = ["equivalent", "better, at most small", "worse, at most small"]
    for sd, limit in ((0.5, 0.99), (1.0, 0.75)):
        said = verdicts(welch(sd * base, sd * new))
        name = f"no change, sd {sd:g} %, n=5"
        yield at_least(
            limit, f"{name}: 'equivalent' or 'at most small'", np.isin(said, harmless)
        )
        yield shown(f"{name}: 'equivalent'", said == "equivalent")
    loud = verdicts(welch(3 * base, 3 * new))
    yield shown("no change, sd 3 %, n=5: 'inconclusive'", loud == "inconclusive")


def nested(draws: int) -> Iterator[Bar]:
    """No effect, 3 boots of 5 runs in each arm: boots are the units."""
    cells, pooled = [], []
    for ratio in (0.3, 1.0, 3.0):
        runs = nested_runs(ratio, draws)
        means = welch(*(arm.mean(axis=2) for arm in runs))
        name = f"run sd / boot sd = {ratio:g}"
        cells.append(at_most(0.05, name, means.differs()))
        flat = welch(*(arm.reshape(draws, -1) for arm in runs))
        pooled.append(shown(f"for comparison: 15 runs pooled, {name}", flat.differs()))
    yield worst(cells, "false positives, 3 boots x 5 runs, means of boots")
    yield from pooled


def nested_runs(ratio: float, draws: int) -> list[Array]:
    """Logs of both arms: draw, boot, run."""
    rng = seeded("nested", ratio)
    return [
        SD * (rng.normal(size=(draws, 3, 1)) + ratio * rng.normal(size=(draws, 3, 5)))
        for _ in range(2)
    ]


#: Standard deviation between boots, in those of a run, from none to most of it.
BOOT_SDS: Final = (0.0, 0.3, 1.0, 3.0)


def lending(draws: int) -> Iterator[Bar]:
    """No effect, and a spread borrowed from the boots of another study.

    One run of each variant, and 3 to 10 runs in one boot of each.
    """
    single, added, alone = [], [], []
    for boots, runs, boot_sd in (
        (boots, runs, sd) for boots in (3, 5, 10) for runs in (1, 4) for sd in BOOT_SDS
    ):
        bank = lender(boots, runs, boot_sd, draws)
        where = f"{boots} boots of {runs} lent, boot sd {boot_sd:g}"
        one = welch_free(*one_boot(1, boot_sd, draws), bank, boots, runs)
        single.append(at_least(0.94, where, one.covers(0.0)))
        for n in (3, 10):
            base, new = one_boot(n, boot_sd, draws)
            both = with_boots(welch(base, new), bank, boots)
            added.append(at_least(0.94, f"{where}, {n} runs", both.covers(0.0)))
    for boot_sd in BOOT_SDS[1:]:
        found = welch(*one_boot(5, boot_sd, draws)).differs()
        alone.append(shown(f"one boot of each alone, boot sd {boot_sd:g}", found))
    yield worst(single, "coverage, single runs with a borrowed spread")
    yield worst(added, "coverage, one boot of each with boots borrowed")
    for one in alone:
        yield replace(one, name=f"for comparison: false positives, {one.name}")


def lender(boots: int, runs: int, boot_sd: float, draws: int) -> tuple[Array, Array]:
    """Standard deviation of boot means, and of runs in a boot, one entry a draw."""
    rng = seeded("lender", boots, runs, boot_sd)
    values = boot_sd * rng.normal(size=(draws, boots, 1))
    values = values + rng.normal(size=(draws, boots, runs))
    inside = values.var(axis=2, ddof=1).mean(axis=1) if runs > 1 else np.zeros(draws)
    return values.mean(axis=2).std(axis=1, ddof=1), np.sqrt(inside)


def one_boot(n: int, boot_sd: float, draws: int) -> tuple[Array, Array]:
    """Runs in one boot of each variant, one draw a row."""
    rng = seeded("one boot", n, boot_sd)
    base, new = (
        boot_sd * rng.normal(size=(draws, 1)) + rng.normal(size=(draws, n))
        for _ in range(2)
    )
    return base, new


def welch_free(
    base: Array, new: Array, bank: tuple[Array, Array], boots: int, runs: int
) -> Effects:
    """Restate ``noise.without_spread`` for one run of each variant."""
    between, within = bank
    sd = np.sqrt(between**2 + within**2 * (1 - 1 / runs))
    return Effects(
        value=new.mean(axis=1) - base.mean(axis=1),
        error=np.sqrt(2) * sd,
        df=np.full(len(base), boots - 1.0),
    )


def with_boots(found: Effects, bank: tuple[Array, Array], boots: int) -> Effects:
    """Restate ``noise.with_boots``."""
    error = np.sqrt(found.error**2 + 2 * bank[0] ** 2)
    return replace(found, error=error, df=np.minimum(found.df, boots - 1.0))


def intervals_as_runs(draws: int) -> Iterator[Bar]:
    """One run a side, compared by its one-second rows: refused."""
    plan = design()
    asked = [_question(plan, 0)]
    refused = []
    for columns in (INTERVAL_COLUMNS, RUN_COLUMNS, UNIT_COLUMNS):
        table = pd.DataFrame(columns=list(columns))
        try:
            compare(table, asked, plan)
        except GrainError:
            refused.append(True)
        else:
            refused.append(False)
    tried = np.array(refused)
    yield at_least(1.0, "tables of intervals or runs refused", tried)
    rng = seeded("intervals")
    rows = rng.normal(size=(draws, 2, 30)) + 0.5 * rng.normal(size=(draws, 2, 1))
    false = welch(rows[:, 0], rows[:, 1]).differs()
    yield shown("for comparison: 30 rows of one run a side as samples", false)


# ---- drift --------------------------------------------------------------------------


def drift(draws: int) -> Iterator[Bar]:
    """No effect, while the machine changes over the session."""
    for order in ("ABBA", "random pairs"):
        cells = []
        for size in (2.0, 4.0):
            for n in SIZES:
                differences = np.subtract(*drifting(order, n, size, draws)[::-1])
                name = f"drift of {size:g} sd, {n} blocks"
                cells.append(at_most(0.06, name, paired(differences).differs()))
        yield worst(cells, f"false positives under drift, {order}, paired")
    for size in (2.0, 4.0):
        fixed = np.subtract(*drifting("ABAB", 5, size, draws)[::-1])
        name = f"for comparison: ABAB in pairs, drift of {size:g} sd, 5 blocks"
        yield shown(name, paired(fixed).differs())
        blocks = welch(*drifting("AAAABBBB", 5, size, draws))
        name = f"for comparison: all A before all B, drift of {size:g} sd, n=5"
        yield shown(name, blocks.differs())
    for order in EVADING:
        found = welch(*leaning(order, 4.0, draws))
        yield shown(f"for comparison: {order}, drift of 4 sd", found.differs())
    yield from unbalanced(draws)
    yield sequential_cap(draws)


def unbalanced(draws: int) -> Iterator[Bar]:
    """Orders whose pull is just below the cap, and orders that must never be capped."""
    cells = [
        at_most(
            0.06,
            f"n={len(order) // 2}, {order}",
            welch(*leaning(order, 4.0, draws)).differs(),
        )
        for n in SIZES
        for order in _nearly_capped(n)
    ]
    yield worst(cells, "false positives under drift of 4 sd, pull just below the cap")
    capped = [
        order_of(letters, blocks, "A") in {"sequential", "rechecked"}
        for n in SIZES
        for letters, blocks in _taking_turns(n, few(draws))
    ]
    yield at_most(0.0, "ABBA, ABAB or random pairs capped", np.array(capped))


def _nearly_capped(n: int) -> list[str]:
    """Random orders with a pull at most a tenth below the cap."""
    rng = seeded("nearly capped", n)
    letters = np.repeat(["A", "B"], n)
    drawn = ("".join(rng.permutation(letters)) for _ in range(1000))
    return [one for one in drawn if 0.9 * PULL < pull([one]) <= PULL][:4]


def _taking_turns(n: int, count: int) -> Iterator[tuple[str, list[int]]]:
    """Orders that must pass, each within blocks and as a session without blocks."""
    rng = seeded("taking turns", n)
    pairs = ["".join(rng.choice(["AB", "BA"], size=n)) for _ in range(count)]
    for order in ("ABBA" * n, "AB" * n, *pairs):
        size = len(order) // n
        yield order, [at // size for at in range(len(order))]
        yield order, [0] * len(order)


def leaning(order: str, size: float, draws: int) -> tuple[Array, Array]:
    """Logs of both arms in such an order; the level falls by ``size`` sd."""
    rng = seeded("leaning", order, size)
    level = -size * np.linspace(0, 1, len(order))
    runs = SD * (level + rng.normal(size=(draws, len(order))))
    patched = np.array([letter == "B" for letter in order])
    return runs[:, ~patched], runs[:, patched]


def drifting(order: str, n: int, size: float, draws: int) -> tuple[Array, Array]:
    """Logs of both arms by block; the level falls by ``size`` sd over the session."""
    rng = seeded("drift", order, n, size)
    places = _places(order, n, draws, rng)
    level = -size * places / (places.max() or 1)
    runs = SD * (level + rng.normal(size=places.shape))
    base, new = runs.mean(axis=3).transpose(1, 0, 2)
    return base, new


def _places(order: str, n: int, draws: int, rng: np.random.Generator) -> Array:
    """Position in time of each run: draw, variant, block, run of the block."""
    start = np.arange(n)[:, None] * 2.0
    if order == "ABBA":
        both = np.stack([2 * start + [0, 3], 2 * start + [1, 2]])
    elif order == "AAAABBBB":
        both = np.stack([start / 2, start / 2 + n])
    else:
        both = np.stack([start, start + 1])
    places = np.broadcast_to(both, (draws, *both.shape)).copy()
    if order == "random pairs":
        turned = rng.integers(2, size=(draws, 1, n, 1)).astype(bool)
        places = np.where(turned, places[:, ::-1], places)
    return places


def sequential_cap(draws: int) -> Bar:
    """Better or worse said of a study in which one variant came first: never."""
    count = max(5, few(draws) // 4)
    rows = list(rows_in_order(*drifting("AAAABBBB", 5, 4.0, count), "AAAABBBB"))
    for order in EVADING:
        rows += rows_of(order, *leaning(order, 4.0, count))
    answers = {Verdict.BETTER, Verdict.WORSE, Verdict.EQUIVALENT}
    said = np.array([one.verdict in answers for one in assessed(rows)])
    return at_most(0.0, "a verdict although A came before B (4 orders)", said)


def rows_of(order: str, base: Array, new: Array) -> list[Row]:
    """Rows of a study on disk, a device a draw, measured in such an order."""
    return [
        (f"{order}{draw:05}", variant, f"{at:02}", "", place, float(side[draw, at]))
        for variant, letter, side in ((BASE, "A", base), (PATCHED, "B", new))
        for draw in range(len(side))
        for at, place in enumerate(
            (place for place, one in enumerate(order, 1) if one == letter)
        )
    ]


def rows_in_order(base: Array, new: Array, order: str) -> Iterator[Row]:
    """Rows of a study on disk, a device a draw."""
    places = _places(order, base.shape[1], 1, seeded())[0, :, :, 0]
    for draw, sides in enumerate(zip(base, new, strict=True)):
        for variant, side, where in zip((BASE, PATCHED), sides, places, strict=True):
            for block, (value, place) in enumerate(zip(side, where, strict=True)):
                yield (
                    f"d{draw:05}", variant, f"{block:02}", "", int(place) + 1,
                    float(value),
                )  # fmt: skip


# ---- guards -------------------------------------------------------------------------


def guards(draws: int) -> Iterator[Bar]:
    """Twenty guards that nothing harms, and one that is harmed by its margin."""
    studies = max(draws // 4, 20)
    cells = []
    for sd in (1.0, 3.0, 10.0):
        found = welch(*guard_arms(sd, studies))
        broken = guarded(found, MARGIN, GUARDS).reshape(-1, GUARDS)
        vetoed = (broken == Guarded.BROKEN).any(axis=1)
        cells.append(at_most(0.05, f"sd {sd:g} %", vetoed))
    yield worst(cells, f"false veto, {GUARDS} harmless guards, margin 2 %, n=5")
    naive = found.high(0.95).reshape(-1, GUARDS) < 0
    yield shown("for comparison: any guard 'worse' at one-sided 5 %", naive.any(axis=1))
    harmed = [
        at_most(
            0.05,
            f"n={n}",
            guarded(welch(*arms("normal", n, studies, gain=-MARGIN)), MARGIN)
            == Guarded.SAFE,
        )
        for n in SIZES
    ]
    yield worst(harmed, "wrong 'safe': the harm is the margin, n=3..20")
    base, new = arms("normal", 5, studies)
    safe = guarded(welch(base, new), MARGIN) == Guarded.SAFE
    name = "harmless guard proven 'safe', sd 1 %, margin 2 %, n=5"
    yield at_least(0.85, name, safe)
    loud = guarded(welch(3 * base, 3 * new), MARGIN) == Guarded.SAFE
    yield shown("harmless guard proven 'safe', sd 3 %, margin 2 %, n=5", loud)


def guard_arms(sd: float, studies: int) -> tuple[Array, Array]:
    """Logs of both arms, ``GUARDS`` rows a study."""
    rng = seeded("guards", sd)
    base, new = SD * sd * rng.normal(size=(2, studies * GUARDS, 5))
    return base, new


# ---- layout, re-checks, failed runs -------------------------------------------------


def placebo(draws: int) -> Iterator[Bar]:
    """A patch that only moves code, held against one placebo build (STATISTICS 3.7)."""
    small = []
    for layout in (0.0, 0.5):
        for n in (3, 5, 10):
            name = f"layout sd / run sd = {layout:g}, n={n}"
            small.append(at_most(0.06, name, beyond(*builds(layout, n, draws))))
    yield worst(small, "false 'beyond layout', one placebo build, little layout")
    for layout in (1.0, 3.0):
        found = builds(layout, 10, draws)
        name = f"layout sd / run sd = {layout:g}, n=10"
        yield shown(f"the same, {name}", beyond(*found))
        yield shown(f"for comparison: no placebo build, {name}", found[0].differs())
    base, new, other = builds_runs(0.5, 5, draws)
    gained = welch(base, new + np.log1p(0.05))
    yield at_least(
        0.75, "+5 % found 'beyond layout', little layout, sd 1 %, n=5",
        beyond(gained, welch(base, other)),
    )  # fmt: skip


def builds(layout: float, n: int, draws: int) -> tuple[Effects, Effects]:
    """Patched and placebo, each against the same runs of the baseline."""
    base, new, other = builds_runs(layout, n, draws)
    return welch(base, new), welch(base, other)


def builds_runs(layout: float, n: int, draws: int) -> tuple[Array, Array, Array]:
    """Logs of baseline, patched and placebo: a build is as fast as its layout is."""
    rng = seeded("builds", layout, n)
    base, new, other = (
        SD * (layout * rng.normal(size=(draws, 1)) + rng.normal(size=(draws, n)))
        for _ in range(3)
    )
    return base, new, other


def beyond(changed: Effects, other: Effects) -> NDArray[np.bool_]:
    """Restate when a change exceeds what the placebo build may have changed."""
    reach = np.maximum(np.abs(other.low()), np.abs(other.high()))
    return reach < np.maximum(changed.low(), -changed.high())


#: Sessions in which the baseline came back at the end.
RETURNING: Final = ("AAAAABBBBBAAAAA", "AAAAABBBBBAA", "AAABBBAA")


def rechecks(draws: int) -> Iterator[Bar]:
    """No effect in A..A B..B A..A, where the last A lift the cap (STATISTICS 3.12)."""
    cells = []
    for order in RETURNING:
        for size in (0.0, 0.5, 1.0, 2.0, 4.0):
            base, new = leaning(order, size, draws)
            wrong = lifted(order, base) & welch(base, new).differs()
            cells.append(at_most(0.06, f"{order}, drift of {size:g} sd", wrong))
    yield worst(cells, "false positives where the baseline came back")
    order = RETURNING[0]
    calm, _ = leaning(order, 0.0, draws)
    yield shown(f"cap lifted, no drift, sd 1 %, margin 2 %, {order}",
                lifted(order, calm))  # fmt: skip
    base, new = leaning(order, 4.0, draws)
    yield shown(f"cap lifted, drift of 4 sd, {order}", lifted(order, base))
    went = lifted(order, calm) & welch(calm, new - new.mean() + 2 * SD).differs()
    yield shown("not seen: a change of 2 sd that came and went with B", went)


def lifted(order: str, base: Array, margin: float = MARGIN) -> NDArray[np.bool_]:
    """Restate when the last runs of the baseline lie within the margin of the first."""
    first = order.index("B")
    again = welch(base[:, :first], base[:, first:])
    return (-margin < again.low()) & (again.high() < margin)


def failed_runs(draws: int) -> Iterator[Bar]:
    """Runs that fail by chance as often in both variants, and twice as often."""
    cells = []
    for share in (0.05, 0.2, 0.5):
        for n in (5, 10, 20):
            name = f"{100 * share:g} % fail, n={n}"
            cells.append(at_most(0.05, name, vetoed(share, share, n, draws)))
    yield worst(cells, "false veto: more patched runs failed by chance")
    for n in (5, 10, 20):
        name = f"veto where none and half of the patched runs fail, n={n}"
        yield shown(name, vetoed(0.0, 0.5, n, draws))


def vetoed(base: float, new: float, n: int, draws: int) -> NDArray[np.bool_]:
    """Say where so many failed runs are a veto, by the rule itself."""
    rng = seeded("failed", base, new, n)
    counts = np.stack([rng.binomial(n, share, draws) for share in (base, new)], axis=1)
    rows, place = np.unique(counts, axis=0, return_inverse=True)
    broken = [fails_more(int(old), int(patched), n) for old, patched in rows]
    return np.array(broken)[place.ravel()]


def fails_more(base: int, new: int, n: int) -> bool:
    """Ask the rule of ``failures`` about runs that failed of ``n`` each."""
    tallies = (
        Tally(
            failed=count,
            runs=n,
            share=stats.wilson(count, n, 0.95),
            worst=count / n,
        )
        for count in (base, new)
    )
    table = [[count, n - count] for count in (base, new)]
    return Failures(
        device="d", variant=PATCHED, baseline=next(tallies), patched=next(tallies),
        p_value=stats.fisher_p(table),
    ).broken  # fmt: skip


# ---- counts, edges, notes -----------------------------------------------------------


def counts(draws: int) -> Iterator[Bar]:
    """Counts with zeros: the difference of the shares, floored at one event."""
    packets = 1e5
    for burst, name in ((0, "independent"), (1, "in bursts")):
        cells = []
        for mean in (0.5, 2.0, 10.0):
            for n in (5, 10):
                rng = seeded("counts", burst, mean, n)
                rate = mean * (rng.gamma(1.0, 1.0, (2, draws, n)) if burst else 1.0)
                lost = rng.poisson(rate, (2, draws, n)) / packets
                found = welch(*lost, floor=1 / packets / np.sqrt(12))
                cell = f"mean {mean:g} a run, n={n}"
                cells.append(at_most(0.05, cell, found.differs()))
        yield worst(cells, f"false positives, losses {name}, some runs without")


def edges(draws: int) -> Iterator[Bar]:
    """One unit a side, and units without spread."""
    count = few(draws)
    rng = seeded("edges")
    one = judged(rng.normal(size=(count, 1)), rng.normal(size=(count, 1)), design())
    judged_one = np.array([f.verdict is not Verdict.NOT_ASSESSABLE for f in one])
    yield at_most(0.0, "a verdict with one unit in each arm", judged_one)
    flat = np.zeros((1, 5))
    same, other = (judged(flat, flat + g, design(), step=1e5)[0] for g in (0, GAIN))
    right = [same.verdict is Verdict.EQUIVALENT, other.verdict is Verdict.BETTER]
    no_p = [found.comparison.p_value is None for found in (same, other)]
    yield at_least(
        1.0, "no spread: floored by the last digit, no p", np.array(right + no_p)
    )


def notes(draws: int) -> Iterator[Bar]:
    """Notes about the shape: they must be silent on normal data."""
    many = draws // 2
    rng = seeded("modes")
    heavy = {n: rng.standard_t(3, size=(many, n)) for n in SIZES[2:]}
    normal = {n: rng.normal(size=(many, n)) for n in SIZES[1:]}
    flagged = [
        at_most(0.04, f"{name}, n={n}", _two_modes(rows[n]))
        for name, rows in (("normal", normal), ("t with 3 df", heavy))
        for n in SIZES[2:]
    ]
    yield worst(flagged, "two modes flagged where there is one, n=5..20")
    yield shown("the same, normal, n=4", _two_modes(normal[4]))
    skewed = _two_modes(noise("skewed", rng, (many, 8)))
    yield shown("the same, skewed, n=8", skewed)
    for n in (5, 8):
        name = f"sensitivity note, normal, n={n}"
        yield at_most(0.01, name, _noted(*arms("normal", n, few(draws))))
    base, new = arms("outliers", 8, few(draws))
    name = "sensitivity note, outliers in both arms, +2 %, n=8"
    yield shown(name, _noted(base, new + GAIN))
    calm, _ = arms("normal", 8, few(draws))
    name = "sensitivity note, outliers in one arm only, +0.8 %, n=8"
    yield shown(name, _noted(calm, new + 0.8 * SD))


def _two_modes(rows: Array) -> NDArray[np.bool_]:
    return np.array([stats.gap(row).flagged for row in rows])


def _noted(base: Array, new: Array) -> NDArray[np.bool_]:
    return np.array([sensitive(one) for one in compared(base, new, design())])


# ---- do the restated rules agree ----------------------------------------------------


def agreement(draws: int) -> Iterator[Bar]:
    """The same draws through the restated rules and through the package."""
    yield _agrees("Welch verdicts", *_welch_both(draws))
    yield _agrees("paired verdicts", *_paired_both(draws))
    yield _agrees("guards with Holm", *_guards_both(draws))
    yield _agrees("study on disk, ABBA blocks", *_abba_both(draws))
    yield _agrees("study on disk, means of boots", *_boots_both(draws))
    yield _agrees("study on disk, placebo build", *_placebo_both(draws))
    yield _agrees("study on disk, baseline came back", *_rechecks_both(draws))


def _agrees(what: str, restated: Sequence[str], real: Sequence[str]) -> Bar:
    pairs = list(zip(restated, real, strict=True))
    differ = np.array([one != other for one, other in pairs])
    return at_most(0.0, f"the restated rules disagree: {what}", differ)


def _mixed(draws: int) -> tuple[Array, Array]:
    """Arms that between them bring out every verdict."""
    rng = seeded("mixed")
    count = few(draws)
    sd = SD * np.geomspace(0.1, 5, count)[:, None]
    gain = rng.choice([-0.06, -0.02, -0.01, 0, 0.01, 0.02, 0.06], size=(count, 1))
    return sd * rng.normal(size=(count, 5)), gain + sd * rng.normal(size=(count, 6))


def _welch_both(draws: int) -> tuple[list[str], list[str]]:
    base, new = _mixed(draws)
    return _with_numbers(welch(base, new), judged(base, new, design()))


def _paired_both(draws: int) -> tuple[list[str], list[str]]:
    base, new = _mixed(draws)
    new = new[:, :5]
    plan = replace(design(), block="block")
    return _with_numbers(paired(new - base), judged(base, new, plan))


def _with_numbers(
    found: Effects, real: Sequence[Finding]
) -> tuple[list[str], list[str]]:
    """Verdict, estimate, standard error, degrees of freedom and p of both ways."""
    columns = (found.value, found.error, found.df, found.p_values())
    restated = [
        _written(word, *numbers)
        for word, *numbers in zip(verdicts(found), *columns, strict=True)
    ]
    return restated, [_written(words(one), *_effect(one)) for one in real]


def _effect(finding: Finding) -> tuple[float, ...]:
    effect = finding.comparison.effect
    if effect is None or effect.p_value is None:
        return ()
    return effect.value, effect.standard_error, effect.df, effect.p_value


def _written(word: str, *numbers: float) -> str:
    return " ".join([word, *(f"{number:.8g}" for number in numbers)])


def _guards_both(draws: int) -> tuple[list[str], list[str]]:
    studies = max(2, few(draws) // GUARDS)
    base, new = guard_arms(1.0, studies)
    new = new - np.tile([0.0, 0.01, 0.02, 0.05, 0.08], len(new) // 5)[:, None]
    restated = list(guarded(welch(base, new), MARGIN, GUARDS))
    edges = range(0, len(base) + 1, GUARDS)
    real = [
        str(finding.guarded)
        for start, end in pairwise(edges)
        for finding in judged(base[start:end], new[start:end], design(Role.GUARD))
    ]
    return restated, real


def _abba_both(draws: int) -> tuple[list[str], list[str]]:
    base, new = drifting("random pairs", 6, 4.0, few(draws))
    new = new + np.linspace(-0.05, 0.05, len(new))[:, None]
    real = assessed(list(rows_in_order(base, new, "random pairs")), block="block")
    return list(verdicts(paired(new - base))), [words(one) for one in _in_order(real)]


def _boots_both(draws: int) -> tuple[list[str], list[str]]:
    sides = nested_runs(1.0, few(draws))
    rows = [
        (f"d{draw:05}", variant, "", f"{2 * boot + side}", 10 * boot + 5 * side + run,
         float(value))
        for side, variant in enumerate((BASE, PATCHED))
        for draw, boots in enumerate(sides[side])
        for boot, runs in enumerate(boots)
        for run, value in enumerate(runs, start=1)
    ]  # fmt: skip
    real = _in_order(assessed(rows))
    means = welch(*(side.mean(axis=2) for side in sides))
    return list(verdicts(means)), [words(one) for one in real]


def _placebo_both(draws: int) -> tuple[list[str], list[str]]:
    base, new, other = builds_runs(1.0, 5, few(draws))
    new = new + np.linspace(-0.06, 0.06, len(new))[:, None]
    variants = zip((BASE, PATCHED, "placebo"), (base, new, other), strict=True)
    rows = [
        (f"d{draw:05}", variant, "", "", 3 * run + (at + run) % 3, float(value))
        for at, (variant, side) in enumerate(variants)
        for draw, runs in enumerate(side)
        for run, value in enumerate(runs)
    ]
    real = _in_order(
        one
        for one in assessed(rows, placebo="placebo")
        if one.comparison.variant == PATCHED
    )
    found = welch(base, new)
    moved = np.char.startswith(verdicts(found), ("better"))
    moved |= np.char.startswith(verdicts(found), ("worse"))
    hidden = moved & ~beyond(found, welch(base, other))
    restated = np.where(hidden, "inconclusive", verdicts(found))
    return list(restated), [words(one) for one in real]


def _rechecks_both(draws: int) -> tuple[list[str], list[str]]:
    order = RETURNING[0]
    base, new = leaning(order, 0.5, few(draws))
    new = new + np.linspace(-0.05, 0.05, len(new))[:, None]
    real = _in_order(assessed(rows_of(order, base, new)))
    said = verdicts(welch(base, new))
    restated = np.where(lifted(order, base), said, str(Verdict.NOT_ASSESSABLE))
    return list(restated), [words(one) for one in real]


def _in_order(found: Iterable[Finding]) -> list[Finding]:
    return sorted(found, key=lambda one: one.comparison.question.device)


SCENARIOS: Final[tuple[Callable[[int], Iterator[Bar]], ...]] = (
    power, coverage, unequal, verdict, nested, lending, placebo, intervals_as_runs,
    drift, rechecks, guards, failed_runs, counts, edges, notes, agreement,
)  # fmt: skip


# ---- printing -----------------------------------------------------------------------


def line(bar: Bar) -> str:
    """One row of the table in Markdown."""
    name = bar.name + (f"; worst: {bar.cell}" if bar.cell else "")
    rate = f"{100 * bar.rate:.1f} ± {100 * bar.error:.1f} %"
    return f"| {name} | {rate} | {bar.required} | {bar.result} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every bar; return 1 where one is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=DRAWS)
    draws = parser.parse_args(arguments).draws
    if draws < 200:
        parser.error("--draws: give at least 200")
    print(f"{draws} draws; ± is one standard error of the simulation\n")
    print("| bar | ours | required | result |")
    print("| --- | --- | --- | --- |")
    broken = 0
    for scenario in SCENARIOS:
        start = time.perf_counter()
        for bar in scenario(draws):
            print(line(bar), flush=True)
            broken += bar.broken
        took = time.perf_counter() - start
        print(f"{scenario.__name__}: {took:.1f} s", file=sys.stderr)
    print(f"\n{broken or 'no'} bar(s) broken")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
