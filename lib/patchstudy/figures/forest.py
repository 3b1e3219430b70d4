"""Every change with its interval against its margin."""

from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
import seaborn.objects as so
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter

from patchstudy.figures import theme
from patchstudy.units import with_interval

_COLUMNS: Final = (
    "name", "device", "role", "change", "low", "high", "margin", "axis", "verdict",
)  # fmt: skip
#: A change beyond this many percent is drawn in a panel of its own.
LARGE: Final = 100.0
#: Widest name of a row, in points.
_ROOM: Final = 190.0
_NOISE: Final[dict[str, Any]] = {
    "color": "0.35", "linewidth": 1.2, "linestyle": (0, (2, 1.5)),
}  # fmt: skip
_MINUS: Final = "\N{MINUS SIGN}"
_AXIS: Final = {"%": "change [%]", "pp": "difference [percentage points]"}


def forest(rows: pd.DataFrame) -> so.Plot:
    """Draw every change with its interval, its margin and its verdict, a row each.

    Changes in percent and differences in points have panels of their own, and so have
    changes above ``LARGE`` percent, which would flatten all others. An interval that
    leaves its panel ends in an arrow. A row without a change has its verdict only.

    Parameters
    ----------
    rows
        Columns ``name``, ``device``, ``role``, ``change``, ``low``, ``high``,
        ``margin`` (both directions; may be NaN), ``axis`` (``"%"`` or ``"pp"``, the
        unit of the numbers) and ``verdict``; it may have ``noise`` as well: what builds
        that differ in code placement only may show, in both directions. Drawn in this
        order, first on top, the rows of one device together.

    Raises
    ------
    ValueError
        If the table is empty.
    """
    theme.require(rows, _COLUMNS, "changes")
    known = rows if "noise" in rows else rows.assign(noise=np.nan)
    table = _clipped(_placed(known))
    order = list(dict.fromkeys(table["panel"]))
    plot = (
        so.Plot(table, x="change", y="at", xmin="from", xmax="to")
        .facet(col="panel", wrap=1, order=order)
        .share(x=False, y=False)
        .add(
            theme.OnPanel(draw=partial(_backdrop, entries=_key(table)), rows=table),
            x=None, xmin=None, xmax=None, legend=False,
        )
        .add(so.Range(color=theme.INK, linewidth=1.6), orient="y", legend=False)
        .add(so.Dot(color=theme.INK, pointsize=6.5), legend=False)
        .label(x="", y="")
    )  # fmt: skip
    return theme.dressed(plot, height=_height(table))


# ---- places -------------------------------------------------------------------------


def _placed(rows: pd.DataFrame) -> pd.DataFrame:
    """Give each row its panel, and its place below the heading of its device."""
    numbers = ["change", "low", "high", "margin", "noise"]
    table = rows.astype(dict.fromkeys(numbers, float))
    table = pd.concat(
        [group for _, group in table.groupby("device", sort=False)], ignore_index=True
    )
    table["panel"] = [_panel(axis, change) for axis, change in _pairs(table)]
    table["panel"] = _filled(table)
    first = table.groupby("panel")["device"].transform(lambda x: x != x.shift())
    headed = len(table["device"].unique()) > 1
    table["heads"] = first & headed
    steps = 1 + table["heads"].astype(int)
    return table.assign(at=steps.groupby(table["panel"]).cumsum() - 1.0)


def _pairs(table: pd.DataFrame) -> zip:
    return zip(table["axis"], table["change"], strict=True)


def _panel(axis: object, change: float) -> str:
    words = _AXIS.get(str(axis), f"difference [{theme.as_text(axis)}]")
    large = axis == "%" and abs(change) > LARGE
    return f"Large {words}" if large else words[0].upper() + words[1:]


def _filled(table: pd.DataFrame) -> pd.Series:
    """Put rows without a change beside large ones where no other panel is."""
    panels = set(table.loc[table["change"].notna(), "panel"])
    plain, large = _panel("%", 0.0), _panel("%", 2 * LARGE)
    if large in panels and plain not in panels:
        return table["panel"].replace(plain, large)
    return table["panel"]


def _clipped(table: pd.DataFrame) -> pd.DataFrame:
    """Add the limits of each panel, and the part of each interval within them."""
    parts = []
    for _, rows in table.groupby("panel", sort=False):
        left, right = _limits(rows)
        parts.append(
            rows.assign(
                left=left,
                right=right,
                **{
                    "from": rows["low"].clip(left, right).fillna(rows["change"]),
                    "to": rows["high"].clip(left, right).fillna(rows["change"]),
                },
            )
        )
    return pd.concat(parts).sort_index()


def _limits(rows: pd.DataFrame) -> tuple[float, float]:
    """Limits with zero, margins and noise in sight; no interval may flatten the rest.

    Ends of intervals count as far as three times the largest change or margin; an
    interval that is alone, twenty times.
    """
    both = [sign * rows[name] for name in ("margin", "noise") for sign in (1, -1)]
    points = np.concatenate([rows["change"], *both, [0.0]])
    points = points[np.isfinite(points)]
    reach = 3 if len(rows) > 1 else 20
    far = reach * float(np.abs(points).max()) or np.inf
    ends = rows[["low", "high"]].to_numpy().ravel()
    ends = np.clip(ends[np.isfinite(ends)], -far, far)
    known = np.concatenate([points, ends])
    low, high = float(known.min()), float(known.max())
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _height(table: pd.DataFrame) -> float:
    return 0.45 + 0.62 * table["panel"].nunique() + 0.27 * _lines(table)


def _lines(table: pd.DataFrame) -> int:
    return int(len(table) + table["heads"].sum())


# ---- what stands around the intervals -----------------------------------------------


def _backdrop(axes: Axes, rows: pd.DataFrame, entries: dict[str, Artist]) -> None:
    """Draw zero, margins, arrows and words of one panel."""
    left, right = rows["left"].iloc[0], rows["right"].iloc[0]
    count = _lines(rows)
    axes.set_xlim(left, right)
    axes.set_ylim(count - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.axvline(0, color="0.35", linewidth=1.0, zorder=1)
    axes.xaxis.set_major_locator(theme.ticks(5))
    axes.xaxis.set_major_formatter(FuncFormatter(_signed))
    for row in rows.to_dict("records"):
        _margin(axes, row)
        _noise(axes, row)
        _arrows(axes, row)
        _words(axes, row)
    _names(axes, rows)
    _proportion(axes, count)
    theme.key(axes.figure, entries)


def _signed(value: float, _: object = None) -> str:
    return "0" if value == 0 else f"{value:+.10g}".replace("-", _MINUS)


def _margin(axes: Axes, row: dict) -> None:
    if np.isfinite(row["margin"]):
        corner, width = (-row["margin"], row["at"] - 0.36), 2 * row["margin"]
        axes.add_patch(Rectangle(corner, width, 0.72, color="0.88", zorder=0.5, lw=0))


def _noise(axes: Axes, row: dict) -> None:
    if np.isfinite(row["noise"]):
        ends, at = (-row["noise"], row["noise"]), row["at"]
        axes.vlines(ends, at - 0.36, at + 0.36, **_NOISE)


def _arrows(axes: Axes, row: dict) -> None:
    """Mark an end beyond the panel with an arrow on its edge."""
    for end, edge, marker in (
        ("low", row["left"], "<"),
        ("high", row["right"], ">"),
    ):
        if (row[end] < edge) if end == "low" else (row[end] > edge):
            axes.plot(edge, row["at"], marker, color=theme.INK, ms=6, clip_on=False)


def _words(axes: Axes, row: dict) -> None:
    """Write the verdict at the right of the row, and behind it the numbers."""
    verdict = theme.as_text(row["verdict"])
    weight = "bold" if row["role"] == "primary" else "normal"
    for points, text, color, chosen in (
        (12, verdict, theme.INK, weight),
        (98, _numbers(row), theme.QUIET, "normal"),
    ):
        axes.annotate(
            text,
            (1.0, row["at"]),
            xycoords=axes.get_yaxis_transform(),
            xytext=(points, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.0,
            color=color,
            fontweight=chosen,
        )


def _numbers(row: dict) -> str:
    """Change and interval, as all other outputs write them."""
    if not np.isfinite(row["change"]):
        return ""
    floor = -100.0 if row["axis"] == "%" else -np.inf
    value, low, high = (
        one.replace("-", _MINUS).replace("inf", "∞")
        for one in with_interval(row["change"], row["low"], row["high"], floor=floor)
    )
    known = not (np.isnan(row["low"]) or np.isnan(row["high"]))
    return f"{value} [{low}, {high}]" if known else value


def _names(axes: Axes, rows: pd.DataFrame) -> None:
    """Write the rows' names and roles at the left, the devices as headings."""
    heads = rows[rows["heads"]]
    shown = [_name(row) for row in rows.to_dict("records")]
    devices = [theme.as_text(theme.shortened(one, _ROOM)) for one in heads["device"]]
    places = np.concatenate([rows["at"].to_numpy(), heads["at"].to_numpy() - 1])
    axes.set_yticks(places, shown + devices)
    axes.tick_params(axis="y", pad=8)
    for number, label in enumerate(axes.get_yticklabels()):
        label.set_color(theme.INK)
        label.set_fontsize(8.0)
        if number >= len(rows):
            label.set_fontweight("bold")


def _name(row: dict) -> str:
    name = theme.as_text(theme.shortened(row["name"], _ROOM))
    return f"{name} ({theme.as_text(row['role'])})" if row["role"] else name


def _proportion(axes: Axes, count: int) -> None:
    """Make panels as high as their number of rows."""
    place = axes.get_subplotspec()
    if place is not None:
        grid = place.get_gridspec()
        ratios = np.atleast_1d(grid.get_height_ratios()).tolist()
        ratios[place.rowspan.start] = count + 0.2
        grid.set_height_ratios(ratios)


def _key(table: pd.DataFrame) -> dict[str, Artist]:
    line = Line2D([], [], color=theme.INK, marker="o", markersize=6, linewidth=1.6)
    entries: dict[str, Artist] = {"change with its interval": line}
    if table["margin"].notna().any():
        entries["within the margin"] = Patch(color="0.88")
    if table["noise"].notna().any():
        entries["code placement alone"] = Line2D([], [], **_NOISE)
    if ((table["low"] < table["left"]) | (table["high"] > table["right"])).any():
        entries["goes on beyond the panel"] = Line2D(
            [], [], color=theme.INK, marker=">", markersize=6, linestyle=""
        )
    return entries
