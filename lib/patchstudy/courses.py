"""What happens within a run: warm-up, stalls, drift, memory and shifts of the level.

Intervals of a run follow each other closely and are never replicates: nothing here says
whether variants differ, only whether a run is one steady thing.
"""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from patchstudy import stats
from patchstudy.metrics import Scale
from patchstudy.tables import Question, series

Values = npt.NDArray[np.float64]

#: Intervals from which a tenth of the run is one interval or more.
LEAST: Final = 10
#: Intervals from which the median tells what is usual in a run.
LEAST_STALLS: Final = 4
#: Intervals from which shifts of the level are looked for (STATISTICS 3.11).
LEAST_SHIFTS: Final = 30
#: Share of the run that is taken as its beginning (STATISTICS 3.11).
BEGINNING: Final = 0.1
#: An interval below this share of the run's median is a stall (STATISTICS 3.11).
STALLED: Final = 0.2
#: Penalty of a shift, times log n, in variances of the noise (STATISTICS 3.11).
PENALTY: Final = 15.0
#: Runs of a variant from which something is taken as more than chance.
RUNS: Final = 3
#: p below which it is; four things are looked at in every variant.
SURE: Final = 0.01
#: Sender's rate, in place of a rate that only the receiver knows.
_INSTEAD: Final = {"throughput": "send_rate"}

COLUMNS: Final = (
    "variant", "name", "intervals", "warm_up", "drift", "stalls", "lag1", "worth",
    "shifts",
)  # fmt: skip


def per_course(intervals: pd.DataFrame, question: Question) -> pd.DataFrame:
    """One row per run that has intervals of a metric: what they tell.

    Parameters
    ----------
    intervals
        As ``tables.per_interval`` returns them. Where a tool prints what was sent in
        place of what arrived, that is taken.

    Returns
    -------
    pandas.DataFrame
        Columns ``COLUMNS``: ``warm_up`` is ln(beginning / rest), ``drift`` the change
        of the rest from its first to its last interval by a straight line, over its
        mean; ``stalls`` counts intervals; ``lag1`` is the correlation of neighbours and
        ``worth`` the number of independent intervals that tell as much; ``shifts``
        counts changes of the level. NaN where a run has too few intervals.
    """
    if question.planned.metric.scale is not Scale.RATIO or question.problem:
        return pd.DataFrame(columns=list(COLUMNS))
    rows = [
        _course(str(variant), str(name), run)
        for (variant, name), run in rows_of(intervals, question).groupby(
            ["variant", "name"], sort=False
        )
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def systematic(found: pd.Series, margin: float) -> bool:
    """Say whether the runs of a variant show on average more than the margin.

    And whether that is more than chance (a t test at ``SURE``): one uneven run is not
    a property of the variant.
    """
    values = found.dropna().to_numpy(dtype=float)
    if len(values) < RUNS or abs(values.mean()) <= margin:
        return False
    p_value = stats.paired(values).p_value
    return p_value is None or p_value < SURE


def margin_of(question: Question, level: float) -> float:
    """Return the margin as a difference of logs, at a level of the values."""
    margin = question.planned.margin
    if margin.scale is Scale.RATIO:
        return math.log1p(margin.value)
    return math.log1p(margin.value / level) if level > 0 else math.inf


def shifts(values: Values) -> tuple[int, ...]:
    """Places at which the level of a series changes, by binary segmentation.

    A shift is kept if it takes more than ``PENALTY`` log n variances of the noise from
    the sum of squares; the noise is taken from the differences of neighbours.
    """
    if len(values) < LEAST_SHIFTS:
        return ()
    spread = np.median(np.abs(np.diff(values))) / 0.6745 / math.sqrt(2)
    noise = float(spread) or float(values.std(ddof=1))
    if noise == 0:
        return ()
    gain = PENALTY * math.log(len(values)) * noise**2
    return tuple(sorted(_split(values, 0, gain)))


def rows_of(intervals: pd.DataFrame, question: Question) -> pd.DataFrame:
    """Intervals of the series of a question, without cut-off ones at the ends."""
    rows = series(intervals, question)
    if rows.empty:
        told = intervals["metric"] == _INSTEAD.get(question.planned.metric.name, "")
        for column in ("device", "workload", "tool", "place"):
            told &= intervals[column] == getattr(question, column)
        rows = intervals[told & (intervals["labels"].map(len) == 0)]
    length = rows["end_s"] - rows["start_s"]
    usual = length.groupby(rows["name"]).transform("median")
    return rows[length >= usual / 2].sort_values("start_s", kind="stable")


# ---- parts --------------------------------------------------------------------------


def _course(variant: str, name: str, run: pd.DataFrame) -> dict[str, object]:
    values = run["value"].to_numpy(dtype=float)
    n = len(values)
    usual = float(np.median(values))
    stalled = n >= LEAST_STALLS and usual > 0
    found: dict[str, object] = {
        "variant": variant,
        "name": name,
        "intervals": n,
        "stalls": int((values < STALLED * usual).sum()) if stalled else 0,
        "shifts": len(shifts(values)),
    }
    missing = dict.fromkeys(("warm_up", "drift", "lag1", "worth"), np.nan)
    return found | (_steadiness(values) if n >= LEAST else missing)


def _steadiness(values: Values) -> dict[str, float]:
    first = math.ceil(BEGINNING * len(values))
    rest = values[first:]
    means = float(values[:first].mean()), float(rest.mean())
    positive = min(means) > 0
    slope = float(np.polyfit(np.arange(len(rest)), rest, 1)[0])
    return {
        "warm_up": math.log(means[0] / means[1]) if positive else np.nan,
        "drift": slope * (len(rest) - 1) / means[1] if positive else np.nan,
        "lag1": stats.lag1(rest),
        "worth": stats.effective_size(rest),
    }


def _split(values: Values, start: int, gain: float) -> Iterator[int]:
    """Yield the best place to split, and those of both parts, while it gains enough."""
    n = len(values)
    if n < 4:
        return
    left = np.arange(2, n - 1)
    sums = np.cumsum(values)[left - 1]
    means = sums / left, (values.sum() - sums) / (n - left)
    gains = left * (n - left) / n * (means[0] - means[1]) ** 2
    best = int(gains.argmax())
    if gains[best] <= gain:
        return
    place = int(left[best])
    yield start + place
    yield from _split(values[:place], start, gain)
    yield from _split(values[place:], start + place, gain)
