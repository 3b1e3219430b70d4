"""How often and in which order it was measured, and whether that was the plan."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import stats
from patchstudy.checks.doubts import Doubt, Material, cells, doubt_about, some
from patchstudy.records import Caveat, Severity
from patchstudy.turns import order_of
from patchstudy.units import count_of

#: Units per variant from which the boot-to-boot spread is believed (STATISTICS 3.7).
ENOUGH_UNITS: Final = 5
#: p below which a trend over time is mentioned; several are looked at.
TREND_P: Final = 0.01


def replication(found: Material) -> Iterator[Doubt]:
    """Too few units, boots or builds to speak about what was not repeated."""
    for question, units in found.deciding:
        counts = [
            int((units["variant"] == name).sum())
            for name in found.study.design.variants
        ]
        if 0 < min(counts) < 3:
            yield doubt_about(
                question, "few-units", Severity.DOUBT,
                f"only {count_of(min(counts), question.unit)} in a variant",
                f"measure at least {ENOUGH_UNITS} of each",
            )  # fmt: skip
    yield from _one_boot(found)
    yield from _one_build(found)


def _one_boot(found: Material) -> Iterator[Doubt]:
    """A variant that was booted once: what the next boot would show is not known.

    Where the variants took turns within that boot, what boots differ by cancels.
    """
    taken = orders(found)
    for (device, workload), rows in cells(found.runs):
        known = rows[rows["boot"] != ""]
        counts = known.groupby("variant")["boot"].nunique()
        single = sorted(counts.index[counts == 1])
        if not single:
            continue
        turns = taken[device, workload] not in {"sequential", "unknown"}
        shared = turns and len(counts) > 1 and len(set(known["boot"])) == 1
        whose = "each variant" if len(single) == len(counts) else some(single)
        yield Doubt(
            caveat=_SHARED_BOOT if shared else _boot_each(whose),
            device=device,
            workload=workload,
        )


def _boot_each(whose: str) -> Caveat:
    return Caveat(
        code="one-boot",
        severity=Severity.DOUBT,
        text=f"one boot of {whose}; what differs from boot to boot is unknown",
        todo=f"repeat over at least {ENOUGH_UNITS} boots",
    )


_SHARED_BOOT: Final = Caveat(
    code="shared-boot",
    severity=Severity.DOUBT,
    text="the variants took turns within one boot; whether they differ as much in "
    "another boot is unknown",
    todo=f"repeat over at least {ENOUGH_UNITS} boots",
)


def _one_build(found: Material) -> Iterator[Doubt]:
    """Builds that differ between the variants, with one of each."""
    for (device, workload), rows in cells(found.runs):
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
    for (device, workload), rows in cells(found.runs):
        runs = _in_turn(found, rows)
        if runs["variant"].nunique() < 2 or len(runs) < 3:
            continue
        for caveat in _ORDER_CAVEATS.get(_order(runs, found.study.design.baseline), ()):
            yield Doubt(caveat=caveat, device=device, workload=workload)


def orders(found: Material) -> dict[tuple[str, str], str]:
    """In which order the variants took turns, by device and workload.

    One of ``turns.ORDERS``, or ``"unknown"`` where the files do not tell the time.
    """
    baseline = found.study.design.baseline
    return {
        (device, workload): _order(_in_turn(found, rows), baseline)
        for (device, workload), rows in cells(found.runs)
    }


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
    for question, variant, rows in found.by_variant:
        values = rows["value"].to_numpy(dtype=float)
        if len(values) < 6 or np.ptp(values) == 0:
            continue
        trend = stats.trend(values)
        if trend.p_value < TREND_P:
            yield doubt_about(
                question, "drift", Severity.NOTE,
                f"{variant} {'rises' if trend.tau > 0 else 'falls'} over the "
                f"session (Kendall tau {trend.tau:+.2f}, p {trend.p_value:.3f})",
                "compare within blocks; look for heat, load or a filling cache",
            )  # fmt: skip
