"""A rate against the busiest CPU: what limits the rate, and what a gain costs."""

from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd
import seaborn.objects as so
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from patchstudy.figures import theme

_COLUMNS: Final = ("device", "workload", "metric", "variant", "value", "load")


def against_cpu(
    runs: pd.DataFrame, *, label: str, unit: str, variants: Sequence[str] = ()
) -> so.Plot:
    """Draw one dot per run, a panel per device and workload.

    Dots at the right edge ran into a full CPU; dots that rise without moving to the
    right are a gain that costs nothing.

    Parameters
    ----------
    runs
        One row per run with the columns ``device``, ``workload``, ``metric`` (one),
        ``variant``, ``value`` (base unit) and ``load`` (share of the busiest CPU, 1 is
        full).
    label, unit
        Label and base unit of the metric.
    variants
        Variants of the study, baseline first; needed where they have other names.

    Raises
    ------
    ValueError
        If the table is empty or holds several metrics.
    """
    theme.require(runs, _COLUMNS, "runs with a rate and a CPU")
    looks, scale, shown = theme.of_one_metric(runs, unit, variants)
    table = runs.assign(
        panel=theme.panels(runs),
        shown=runs["value"].astype(float) / scale,
        percent=100 * runs["load"].astype(float),
    )
    names = list(looks)
    plot = (
        so.Plot(table, x="percent", y="shown", color="variant", marker="variant")
        .facet(col="panel", wrap=theme.columns(table), order=theme.panel_order(table))
        .share(x=False, y=False)
        .add(theme.OnPanel(draw=_Backdrop(looks), rows=table), legend=False)
        .add(so.Dot(pointsize=6, edgecolor="white", alpha=0.9), legend=False)
        .scale(
            color=so.Nominal([looks[one].color for one in names], order=names),
            marker=so.Nominal([looks[one].marker for one in names], order=names),
        )
        .label(x="Busiest CPU [%]", y=theme.quantity(label, shown))
    )
    return theme.dressed(plot, height=theme.height(table))


class _Backdrop:
    """The full CPU and the key of one panel."""

    def __init__(self, looks: Mapping[str, theme.Look]) -> None:
        self._looks = looks

    def __call__(self, axes: Axes, rows: pd.DataFrame) -> None:
        left = min(float(rows["percent"].min()), 95.0)
        axes.set_xlim(left - 0.04 * (100 - left) - 0.2, 100 + 0.04 * (100 - left) + 0.2)
        axes.set_ylim(*theme.limits(rows["shown"]))
        axes.axvline(100, color=theme.QUIET, linewidth=0.9, linestyle=(0, (1, 2)))
        axes.xaxis.set_major_locator(theme.ticks(6))
        axes.yaxis.set_major_locator(theme.ticks(5))
        entries = {name: theme.entry(look) for name, look in self._looks.items()}
        entries["full CPU"] = Line2D(
            [], [], color=theme.QUIET, linewidth=0.9, linestyle=(0, (1, 2))
        )
        theme.key(axes.figure, entries)
