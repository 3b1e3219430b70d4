"""The course within runs, interval by interval."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
import seaborn.objects as so
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from patchstudy.figures import theme

_COLUMNS: Final = (
    "device", "workload", "metric", "variant", "name", "start_s", "end_s", "value",
)  # fmt: skip
#: What tells one series of intervals from another within a run.
_SERIES: Final = ("name", "tool", "place", "labels")


def course(
    intervals: pd.DataFrame, *, label: str, unit: str, variants: Sequence[str] = ()
) -> so.Plot:
    """Draw one thin line per run, a panel per device and workload.

    The thick line with markers is the median over the runs of a variant, interval by
    interval, as far as half of them reach. A run with several series (streams, both
    ends) has a line for each: choose the series before. Intervals are no replicates.

    Parameters
    ----------
    intervals
        As ``tables.per_interval`` returns them, the rows of one metric.
    label, unit
        Label and base unit of the metric.
    variants
        Variants of the study, baseline first; needed where they have other names.

    Raises
    ------
    ValueError
        If the table is empty or holds several metrics.
    """
    theme.require(intervals, _COLUMNS, "intervals")
    looks, scale, shown = theme.of_one_metric(intervals, unit, variants)
    table = _prepared(intervals, scale)
    wide = theme.columns(table)
    names = list(looks)
    plot = (
        so.Plot(table, x="middle_s", y="shown", color="variant")
        .facet(col="panel", wrap=wide, order=theme.panel_order(table))
        .share(x=False, y=False)
        .add(theme.OnPanel(draw=_Medians(looks), rows=table), legend=False)
        .add(_lines(table), legend=False)
        .scale(color=so.Nominal([looks[one].color for one in names], order=names))
        .label(x="Time in the run [s]", y=theme.quantity(label, shown))
    )
    count = -(-table["panel"].nunique() // wide)
    height = 0.75 + (2.6 if count == 1 else 2.0) * count
    return theme.dressed(plot, height=height)


def _prepared(intervals: pd.DataFrame, scale: float) -> pd.DataFrame:
    """Add panel, line, number within the line and place of each interval."""
    series = [name for name in _SERIES if name in intervals]
    keys = ["device", "workload", "variant", *series]
    table = intervals.assign(
        panel=theme.panels(intervals),
        shown=intervals["value"].astype(float) / scale,
        middle_s=(intervals["start_s"] + intervals["end_s"]).astype(float) / 2,
        line=intervals[keys].astype(str).agg("\n".join, axis=1),
    )
    table = table.sort_values(["line", "middle_s"], kind="stable", ignore_index=True)
    table = table.assign(number=table.groupby("line").cumcount())
    return pd.concat([table, _gaps(table)]).sort_values(
        ["line", "number"], kind="stable", ignore_index=True
    )


def _gaps(table: pd.DataFrame) -> pd.DataFrame:
    """One row without a value after each line: all lines of a variant are one path.

    A path for each line would take seaborn minutes where there are thousands.
    """
    last = table.drop_duplicates("line", keep="last")
    return last.assign(shown=np.nan, number=last["number"] + 1)


def _lines(table: pd.DataFrame) -> so.Path:
    """Thin lines, fainter the more there are."""
    most = table.groupby("panel")["line"].nunique().max()
    return so.Path(
        linewidth=0.7,
        alpha=float(np.clip(14 / most, 0.25, 0.7)),
        artist_kws={"zorder": 2},
    )


class _Medians:
    """The median course of each variant, and the key."""

    def __init__(self, looks: Mapping[str, theme.Look]) -> None:
        self._looks = looks

    def __call__(self, axes: Axes, rows: pd.DataFrame) -> None:
        for name, look in reversed(list(self._looks.items())):
            middle = _median(rows[rows["variant"] == name])
            at, shown = middle["middle_s"], middle["shown"]
            every = max(1, len(middle) // 10)
            axes.plot(at, shown, color="white", linewidth=3.4, zorder=3)
            axes.plot(at, shown, **_strong(look), markevery=every, zorder=3)
        axes.set_ylim(*theme.limits(rows["shown"]))
        axes.set_xlim(0, float(rows["end_s"].max()) * 1.01)
        axes.xaxis.set_major_locator(theme.ticks(6))
        axes.yaxis.set_major_locator(theme.ticks(5))
        entries = {
            name: Line2D([], [], **_strong(look)) for name, look in self._looks.items()
        }
        entries["one run"] = Line2D([], [], color=theme.INK, linewidth=0.7)
        entries["median of the runs"] = Line2D([], [], color=theme.INK, linewidth=1.8)
        theme.key(axes.figure, entries)


def _strong(look: theme.Look) -> dict:
    return {
        "color": look.color,
        "marker": look.marker,
        "linestyle": look.dashes,
        "linewidth": 1.8,
        "markersize": 5.5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.6,
    }


def _median(rows: pd.DataFrame) -> pd.DataFrame:
    """Median of place and value over the runs, where at least half of them are."""
    by_number = rows.dropna(subset="shown").groupby("number")[["middle_s", "shown"]]
    reached = by_number.size() * 2 >= rows["line"].nunique()
    return by_number.median()[reached]
