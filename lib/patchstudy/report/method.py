"""How the statistics behave on the spread of one's own runs: made-up data, named so.

The differences of a study's blocks (or the units of each variant) are drawn again at
random, around a change that is known, and compared as the report compares them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import stats
from patchstudy.errors import StudyError
from patchstudy.findings import Assessment
from patchstudy.metrics import Scale
from patchstudy.report.table import Column, Table
from patchstudy.verdicts import Finding

#: Columns of ``behaviour``.
COLUMNS: Final = ("change", "units", "shown", "wrong", "covered", "width")
_Generator = np.random.Generator
_CHANGES: Final = (0.0, 0.01, 0.02, 0.05)
_UNITS: Final = (3, 5, 8, 12, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What varies in a study, with its mean taken away, on the scale of the analysis.

    Attributes
    ----------
    what
        In words: differences of blocks, or units of each variant.
    arms
        One array where blocks are paired, else two.
    sd
        Standard deviation, over all arms.
    """

    what: str
    arms: tuple[np.ndarray, ...]
    sd: float


def own_spread(assessment: Assessment, name: str) -> Spread:
    """Return what varies in a metric of a study.

    Raises
    ------
    StudyError
        If the metric was not compared as a ratio, or nothing of it varies.
    """
    finding = _finding(assessment, name)
    rows = assessment.material.units
    rows = rows[rows["question"] == finding.comparison.question.key]
    logs = rows.assign(log=np.log(rows["value"].astype(float)))
    design = assessment.study.design
    pair = [design.baseline, finding.comparison.variant]
    if finding.comparison.blocks:
        table = logs.pivot_table(index="block", columns="variant", values="log")
        differences = (table[pair[1]] - table[pair[0]]).dropna().to_numpy()
        arms, what = (differences,), "differences of blocks"
    else:
        arms = tuple(logs.loc[logs["variant"] == one, "log"].to_numpy() for one in pair)
        what = "units of each variant"
    centred = tuple(one - one.mean() for one in arms)
    sd = float(np.sqrt(np.mean([one.var(ddof=1) for one in centred])))
    if not sd > 0:
        raise StudyError(f"{name}: nothing varies; there is no spread to draw from")
    return Spread(what=what, arms=centred, sd=sd)


def _finding(assessment: Assessment, name: str) -> Finding:
    for one in assessment.findings:
        known = one.planned.metric.name == name and one.comparison.change is not None
        if known and one.comparison.scale is Scale.RATIO:
            return one
    raise StudyError(f"{name}: not compared as a ratio in this study")


def behaviour(
    spread: Spread,
    *,
    changes: Sequence[float] = _CHANGES,
    units: Sequence[int] = _UNITS,
    draws: int = 400,
    seed: int = 1,
) -> pd.DataFrame:
    """One row per true change and number of units (blocks, or units of a variant).

    Returns
    -------
    pandas.DataFrame
        Columns ``COLUMNS``: the true change (0.01 is 1 %), units, the share of the
        draws whose 95 % interval excludes zero, excludes it on the wrong side, and
        holds the true change, and the median half width of the interval. ``shown`` at
        no change is the rate of false alarms, at a change the power.
    """
    generator = np.random.default_rng(seed)
    rows = [
        (change, count, *_shares(spread, change, count, draws, generator))
        for change in changes
        for count in units
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _shares(
    spread: Spread,
    change: float,
    count: int,
    draws: int,
    generator: np.random.Generator,
) -> tuple[float, float, float, float]:
    true = float(np.log1p(change))
    ends = np.array(list(_intervals(spread, true, count, draws, generator)))
    low, high = ends[:, 0], ends[:, 1]
    shown = (low > 0) | (high < 0)
    wrong = (high < 0) if change >= 0 else (low > 0)
    covered = (low <= true) & (true <= high)
    width = np.expm1(np.median(high - low) / 2)
    return (
        float(shown.mean()),
        float(wrong.mean()),
        float(covered.mean()),
        float(width),
    )


def _intervals(
    spread: Spread, true: float, count: int, draws: int, generator: np.random.Generator
) -> Iterator[tuple[float, float]]:
    for _ in range(draws):
        # Drawing again shrinks the spread: give back what the mean took away.
        drawn = [
            generator.choice(one, count) * np.sqrt(one.size / (one.size - 1))
            for one in spread.arms
        ]
        if len(drawn) == 1:
            effect = stats.paired(drawn[0] + true)
        else:
            effect = stats.welch(drawn[0], drawn[1] + true)
        interval = effect.interval(0.95)
        yield interval.low, interval.high


def as_table(rows: pd.DataFrame) -> Table:
    """The behaviour for people: shares in percent."""
    cells = tuple(
        (
            f"{100 * row['change']:+.3g} %" if row["change"] else "none",
            f"{row['units']:.0f}",
            *(f"{100 * row[name]:.1f} %" for name in ("shown", "wrong", "covered")),
            f"+-{100 * row['width']:.2g} %",
        )
        for row in rows.to_dict("records")
    )
    numbers = ("Units", "Shown", "Wrong side", "Covered", "Half width")
    return Table(
        (Column("True change"), *(Column(name, "right") for name in numbers)),
        cells,
        "Made-up data with the spread of this study: how often the interval shows a "
        "change, shows it on the wrong side, and holds the true change",
    )
