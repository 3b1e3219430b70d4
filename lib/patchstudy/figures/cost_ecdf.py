"""How the cost of a call is spread: cumulative share of the calls, by variant."""

from typing import Final

import numpy as np
import pandas as pd
import seaborn.objects as so
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from patchstudy.figures import theme

_COLUMNS: Final = ("device", "workload", "variant", "function", "tool", "runs",
                   "cost_s", "calls")  # fmt: skip

#: Span of the axis up to which 2 and 5 are named besides the powers of ten.
FEW_DECADES: Final = 1000


def cost_ecdf(table: pd.DataFrame) -> so.Plot:
    """Draw the share of the calls that cost no more than so much, a line per variant.

    Parameters
    ----------
    table
        One row per cost (or upper end of a bin of a histogram) with the columns
        ``device``, ``workload``, ``variant``, ``function``, ``tool``, ``runs``,
        ``cost_s`` (infinite in a bin without an end: the line ends below 100 %) and
        ``calls``.

    Raises
    ------
    ValueError
        If the table is empty.
    """
    theme.require(table, _COLUMNS, "costs of calls")
    table = table[table["cost_s"] > 0]
    theme.require(table, _COLUMNS, "costs of calls")
    places = table["device"].astype(str) + ", " + table["workload"].astype(str)
    counted = table["tool"].astype(str) + ", " + table["runs"].astype(str) + " runs"
    named = table.assign(
        device=places, workload=table["function"].astype(str) + " by " + counted
    )
    steps = _steps(named.assign(panel=theme.panels(named)))
    plot = (
        so.Plot(steps, x="cost", y="percent")
        .facet(col="panel", wrap=1, order=list(steps["panel"].drop_duplicates()))
        .share(x=False, y=True)
        .add(theme.OnPanel(draw=_dress, rows=steps), legend=False)
        .scale(x=so.Continuous(trans="log"))
        .label(x="Cost of a call [ns], log scale", y="Calls that cost\nno more [%]")
    )
    return theme.dressed(plot, height=0.7 + 1.9 * steps["panel"].nunique())


def _steps(table: pd.DataFrame) -> pd.DataFrame:
    """Cumulative share of the calls at each cost, in each panel and variant."""
    parts = []
    for (panel, variant), rows in table.groupby(["panel", "variant"], sort=False):
        summed = rows.groupby("cost_s", sort=True)["calls"].sum()
        percent = 100 * summed.cumsum() / summed.sum()
        percent = percent[np.isfinite(percent.index)]
        parts.append(
            pd.DataFrame(
                {
                    "panel": panel,
                    "variant": variant,
                    "cost": percent.index.to_numpy(dtype=float) * 1e9,
                    "percent": percent.to_numpy(dtype=float),
                }
            )
        )
    found = pd.concat(parts, ignore_index=True)
    # one axis for all panels: what a tracer adds shows beside what a driver counts
    return found.assign(left=found["cost"].min() / 1.6, right=found["cost"].max() * 1.6)


def _dress(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the steps from the left edge to the right, and the key."""
    left, right = rows[["left", "right"]].iloc[0]
    lines = {}
    for variant, look in theme.looks(rows["variant"]).items():
        here = rows[rows["variant"] == variant]
        cost = [left, *here["cost"], right]
        share = [0.0, *here["percent"], here["percent"].iloc[-1]]
        style = {"color": look.color, "linestyle": look.dashes, "linewidth": 1.8}
        axes.step(cost, share, where="post", **style)
        lines[variant] = Line2D([], [], **style)
    axes.set_xlim(left, right)
    axes.xaxis.set_major_locator(
        LogLocator(subs=(1, 2, 5) if right < FEW_DECADES * left else (1,))
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
    axes.set_ylim(-2, 102)
    theme.key(axes.figure, lines)
