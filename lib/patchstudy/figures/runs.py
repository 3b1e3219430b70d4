"""Every experimental unit as a dot, in order of time."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
import seaborn.objects as so
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from patchstudy.figures import theme

_COLUMNS: Final = (
    "device", "workload", "metric", "variant", "unit", "block", "order", "timed",
    "value",
)  # fmt: skip


def runs(
    units: pd.DataFrame, *, label: str, unit: str, variants: Sequence[str] = ()
) -> so.Plot:
    """Draw one dot per experimental unit over time, a panel per device and workload.

    The line is the median of a variant. Units of one block stand on one band, white
    and grey by turns. The value axis of each panel is its own.

    Parameters
    ----------
    units
        As ``tables.per_unit`` returns them, the rows of one metric. Where ``timed`` is
        not true of all, the axis says that their order in time is not known.
    label, unit
        Label and base unit of the metric.
    variants
        Variants of the study, baseline first; needed where they have other names.

    Raises
    ------
    ValueError
        If the table is empty or holds several metrics, or one unit twice.
    """
    theme.require(units, _COLUMNS, "experimental units")
    looks, scale, shown = theme.of_one_metric(units, unit, variants)
    _require_once(units)
    table = units.assign(
        panel=theme.panels(units), shown=units["value"].astype(float) / scale
    ).sort_values("order", kind="stable", ignore_index=True)
    table["order"] = table["order"].astype(float)
    wide = theme.columns(table)
    names = list(looks)
    plot = (
        so.Plot(table, x="order", y="shown", color="variant", marker="variant")
        .facet(col="panel", wrap=wide, order=theme.panel_order(table))
        .share(x=False, y=False)
        .add(theme.OnPanel(draw=_Backdrop(looks), rows=table), legend=False)
        .add(
            so.Dot(
                pointsize=_size(table),
                edgecolor="white",
                artist_kws={"clip_on": False, "zorder": 3},
            ),
            legend=False,
        )
        .scale(
            color=so.Nominal([looks[one].color for one in names], order=names),
            marker=so.Nominal([looks[one].marker for one in names], order=names),
        )
        .label(x=_order_label(table), y=theme.quantity(label, shown))
    )
    return theme.dressed(plot, height=_height(table, wide))


def _order_label(units: pd.DataFrame) -> str:
    """Say what the order of the units is: that in time, where every file tells it."""
    if units["timed"].all():
        return "Order in time"
    return "Order of the files; that in time is not known"


def _require_once(units: pd.DataFrame) -> None:
    twice = units.duplicated(["device", "workload", "variant", "unit"])
    if twice.any():
        name = units.loc[twice, "unit"].iloc[0]
        raise ValueError(f"unit {name!r} stands twice; draw one question a figure")


def _size(table: pd.DataFrame) -> float:
    """Dots shrink with the number that share the width of a panel."""
    most = table.groupby("panel").size().max() * theme.columns(table)
    return float(np.clip(7.2 - most / 55, 3.8, 6.6))


def _height(table: pd.DataFrame, wide: int) -> float:
    count = -(-table["panel"].nunique() // wide)
    return 0.75 + (2.6 if count == 1 else 2.0) * count


class _Backdrop:
    """Bands of the blocks, medians and the key of one panel."""

    def __init__(self, looks: Mapping[str, theme.Look]) -> None:
        self._looks = looks

    def __call__(self, axes: Axes, rows: pd.DataFrame) -> None:
        edges = _edges(rows)
        banded = len(edges) > 2
        for start, end in zip(edges[1::2], edges[2::2], strict=False):
            axes.axvspan(start, end, color=theme.BAND, zorder=0, linewidth=0)
        for name, look in reversed(list(self._looks.items())):
            values = rows.loc[rows["variant"] == name, "shown"]
            if len(values):
                axes.plot(
                    [edges[0], edges[-1]],
                    [values.median()] * 2,
                    color=look.color,
                    linestyle=look.dashes,
                    linewidth=1.4,
                    zorder=2,
                )
        axes.grid(visible=False, axis="x")
        axes.xaxis.set_major_locator(theme.ticks(8, whole=True))
        axes.yaxis.set_major_locator(theme.ticks(5))
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(*theme.limits(rows["shown"]))
        theme.key(axes.figure, self._key(banded=banded))

    def _key(self, *, banded: bool) -> dict[str, Artist]:
        entries: dict[str, Artist] = {
            name: Line2D(
                [],
                [],
                color=look.color,
                marker=look.marker,
                linestyle=look.dashes,
                markeredgecolor="white",
                markersize=7,
            )
            for name, look in self._looks.items()
        }
        entries["one unit"] = Line2D([], [], color=theme.INK, marker=".", linestyle="")
        entries["median"] = Line2D([], [], color=theme.INK, linewidth=1.4)
        if banded:
            entries["block"] = Patch(color="0.9")
        return entries


def _edges(rows: pd.DataFrame) -> list[float]:
    """Positions between the blocks, with both ends; none inside where no block is."""
    ordered = rows.sort_values("order", kind="stable")
    at = ordered["order"].to_numpy(dtype=float)
    block = ordered["block"].astype(str).to_numpy()
    step = float(np.median(np.diff(at))) if len(at) > 1 else 1.0
    half = max(step, 1.0) / 2
    changes = np.flatnonzero(block[1:] != block[:-1])
    inner = [] if len(changes) == len(at) - 1 else (at[changes] + at[changes + 1]) / 2
    return [at[0] - half, *map(float, inner), at[-1] + half]
