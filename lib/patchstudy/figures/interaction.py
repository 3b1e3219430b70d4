"""Device and variant together: whether the patch acts alike everywhere."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import pandas as pd
import seaborn.objects as so
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from patchstudy.figures import theme

_COLUMNS: Final = ("device", "workload", "metric", "variant", "value")
_INKS: Final = ("#0b6e8f", "#c1611a", "#6b4a93", "#4d7d2b", "#a8325e", "0.35")


def interaction(
    units: pd.DataFrame, *, label: str, unit: str, variants: Sequence[str] = ()
) -> so.Plot:
    """Draw each device's units by variant and a line through their medians.

    A panel per workload, in percent of the median of the device's first variant, where
    none of these is 0. Equal slopes: the patch acts alike on all devices; a line that
    falls where others rise: it helps some and harms others.

    Parameters
    ----------
    units
        As ``tables.per_unit`` returns them, the rows of one metric.
    label, unit
        Label and base unit of the metric.
    variants
        Variants of the study, baseline first, which is their order from the left.

    Raises
    ------
    ValueError
        If the table is empty or holds several metrics.
    """
    theme.require(units, _COLUMNS, "experimental units")
    theme.require_one_metric(units)
    order = [name for name in variants if name in set(units["variant"])]
    order = order or list(dict.fromkeys(units["variant"]))
    places = {name: float(at) for at, name in enumerate(order)}
    kept = units[units["variant"].isin(order)]
    values, shown = _relative(kept, order[0], unit)
    table = kept.assign(
        panel=theme.panels(kept.assign(device="")),
        shown=values,
        at=kept["variant"].map(places),
    )
    devices = sorted(map(str, table["device"].unique()))
    plot = (
        so.Plot(table, x="at", y="shown")
        .facet(
            col="panel",
            wrap=theme.columns(table),
            order=sorted(table["panel"].unique()),
        )
        .share(x=False, y=False)
        .add(
            theme.OnPanel(
                draw=partial(_lines, devices=devices, order=order), rows=table
            ),
            legend=False,
        )
        .label(x="", y=theme.quantity(label, shown))
    )
    return theme.dressed(plot, height=theme.height(table))


def _relative(table: pd.DataFrame, first: str, unit: str) -> tuple[pd.Series, str]:
    """Values in percent of each device's first variant, or in their unit."""
    values = table["value"].astype(float)
    own = table[table["variant"] == first].groupby(["device", "workload"])["value"]
    medians = own.median().rename("own").reset_index()
    joined = table[["device", "workload"]].merge(medians, how="left")["own"]
    if joined.notna().all() and (joined > 0).all():
        return 100 * values / joined.to_numpy(), f"% of {theme.as_text(first)}"
    scale, shown = theme.readable(table, unit)
    return values / scale, shown


def _lines(
    axes: Axes, rows: pd.DataFrame, *, devices: Sequence[str], order: Sequence[str]
) -> None:
    """Every unit as a dot, beside the line of its device."""
    entries = {}
    for number, device in enumerate(devices):
        color = _INKS[number % len(_INKS)]
        marker = theme.MARKERS[number % len(theme.MARKERS)]
        here = rows[rows["device"].astype(str) == device]
        medians = here.groupby("at")["shown"].median()
        beside = 0.07 * (number - (len(devices) - 1) / 2)
        axes.plot(
            here["at"] + beside, here["shown"], color=color, marker=marker,
            linestyle="", markersize=4.5, alpha=0.45, markeredgecolor="none",
        )  # fmt: skip
        axes.plot(
            medians.index + beside, medians, color=color, marker=marker,
            markersize=7, markeredgecolor="white", linewidth=1.5,
        )  # fmt: skip
        entries[device] = Line2D(
            [], [], color=color, marker=marker, markersize=7, markeredgecolor="white"
        )
    axes.set_xlim(-0.4, len(order) - 0.6)
    axes.set_ylim(*theme.limits(rows["shown"]))
    axes.set_xticks(range(len(order)), [theme.as_text(name) for name in order])
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_locator(theme.ticks(5))
    theme.key(axes.figure, entries)
