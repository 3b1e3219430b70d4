"""How values are spread: the share of the units below each value."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
import seaborn.objects as so
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from patchstudy.figures import theme

_COLUMNS: Final = ("device", "workload", "metric", "variant", "value")


def ecdf(
    values: pd.DataFrame, *, label: str, unit: str, variants: Sequence[str] = ()
) -> so.Plot:
    """Draw the share of the values that are no larger, a line per variant.

    Parameters
    ----------
    values
        One row per unit, run or interval, of one metric: columns ``device``,
        ``workload``, ``metric``, ``variant``, ``value``.
    label, unit
        Label and base unit of the metric.
    variants
        Variants of the study, baseline first; needed where they have other names.

    Raises
    ------
    ValueError
        If the table is empty or holds several metrics.
    """
    theme.require(values, _COLUMNS, "values")
    looks, scale, shown = theme.of_one_metric(values, unit, variants)
    table = values.assign(
        panel=theme.panels(values), shown=values["value"].astype(float) / scale
    )
    plot = (
        so.Plot(table, x="shown", y="shown")
        .facet(col="panel", wrap=theme.columns(table), order=theme.panel_order(table))
        .share(x=False, y=False)
        .add(theme.OnPanel(draw=_Steps(looks), rows=table), legend=False)
        .label(x=theme.quantity(label, shown).replace("\n", " "), y="Share [%]")
    )
    return theme.dressed(plot, height=theme.height(table))


class _Steps:
    """The lines, the middle and the key of one panel."""

    def __init__(self, looks: Mapping[str, theme.Look]) -> None:
        self._looks = looks

    def __call__(self, axes: Axes, rows: pd.DataFrame) -> None:
        for name, look in self._looks.items():
            found = np.sort(rows.loc[rows["variant"] == name, "shown"].to_numpy())
            if found.size:
                share = 100 * np.arange(1, found.size + 1) / found.size
                axes.step(
                    np.concatenate([found[:1], found]),
                    np.concatenate([[0.0], share]),
                    where="post",
                    color=look.color,
                    linestyle=look.dashes,
                    linewidth=1.7,
                )
        axes.axhline(50, color=theme.QUIET, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.set_ylim(0, 101)
        axes.set_xlim(*theme.limits(rows["shown"]))
        axes.xaxis.set_major_locator(theme.ticks(6))
        axes.yaxis.set_major_locator(theme.ticks(4))
        entries = {
            name: Line2D([], [], color=look.color, linestyle=look.dashes, linewidth=1.7)
            for name, look in self._looks.items()
        }
        entries["half of the values"] = Line2D(
            [], [], color=theme.QUIET, linewidth=0.8, linestyle=(0, (1, 2))
        )
        theme.key(axes.figure, entries)
