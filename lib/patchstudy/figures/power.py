"""How often a change is shown, by the number of units: false alarms and power."""

from typing import Final

import pandas as pd
import seaborn.objects as so
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from patchstudy.figures import theme

_COLUMNS: Final = ("change", "units", "shown")
_INKS: Final = ("0.45", "#56a0bd", "#0b6e8f", "#073f52", "#c1611a")


def power(rows: pd.DataFrame) -> so.Plot:
    """Draw the share of the draws in which a change is shown, a line per true change.

    Parameters
    ----------
    rows
        Columns ``change`` (0.01 is 1 %), ``units`` and ``shown`` (share of the draws).

    Raises
    ------
    ValueError
        If the table is empty.
    """
    theme.require(rows, _COLUMNS, "draws")
    table = rows.assign(panel="", percent=100 * rows["shown"].astype(float))
    plot = (
        so.Plot(table, x="units", y="percent")
        .facet(col="panel")
        .add(theme.OnPanel(draw=_lines, rows=table), legend=False)
        .label(x="Units of each variant, or blocks", y="Shown [%]", title="")
    )
    return theme.dressed(plot, height=3.2)


def _lines(axes: Axes, rows: pd.DataFrame) -> None:
    entries = {}
    for number, (change, here) in enumerate(rows.groupby("change")):
        look = {
            "color": _INKS[number % len(_INKS)],
            "marker": theme.MARKERS[number % len(theme.MARKERS)],
            "linestyle": theme.DASHES[number % len(theme.DASHES)],
            "linewidth": 1.5,
            "markersize": 5.5,
            "markeredgecolor": "white",
        }
        axes.plot(here["units"], here["percent"], **look)
        shown = 100 * float(str(change))
        name = f"{shown:+.3g} %" if shown else "no change"
        entries[name] = Line2D([], [], **look)
    for level in (5, 80):
        axes.axhline(level, color=theme.QUIET, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_ylim(0, 102)
    axes.set_yticks([5, 20, 40, 60, 80, 100])
    axes.xaxis.set_major_locator(theme.ticks(8, whole=True))
    theme.key(axes.figure, entries)
