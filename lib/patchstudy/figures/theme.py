"""What all figures share: colours and markers of variants, type, sizes, safe text."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import pandas as pd
import seaborn.objects as so
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator

from patchstudy.metrics import Kind, metric
from patchstudy.units import prefix

VARIANT_COLORS: Final = {"baseline": "0.55", "patched": "#0b6e8f"}
#: Colours of variants after the first patched one.
MORE_COLORS: Final = ("#c1611a", "#6b4a93", "#4d7d2b", "#a8325e")
MARKERS: Final = ("o", "D", "^", "s", "v", "P")
DASHES: Final = ("--", "-", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)))
INK: Final = "0.15"
QUIET: Final = "0.45"
BAND: Final = "0.945"

#: Width of every figure in inches: the text width of an A4 page, a column on a screen.
WIDTH: Final = 8.0
#: Artists with more marks than this are drawn as pixels within a vector figure.
MANY: Final = 2000

#: Our name for the DejaVu Sans that matplotlib brings along: a system may have another
#: version of it under its own name, whose letters are numbered otherwise.
FAMILY: Final = "DejaVu Sans of matplotlib"
_FONTS: Final = Path(mpl.get_data_path()) / "fonts" / "ttf"
for _path in sorted(_FONTS.glob("DejaVuSans*.ttf")):
    _entry = font_manager.ttfFontProperty(font_manager.get_font(_path))
    if _entry.name == "DejaVu Sans":
        font_manager.fontManager.ttflist.append(replace(_entry, name=FAMILY))

RC: Final[dict[str, Any]] = {
    "font.family": "sans-serif",
    "font.sans-serif": [FAMILY],
    "font.size": 9.0,
    "text.color": INK,
    "axes.titlesize": 9.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.titlepad": 5.0,
    "axes.labelsize": 9.0,
    "axes.labelcolor": INK,
    "axes.facecolor": "white",
    "figure.facecolor": "white",
    "axes.edgecolor": "0.7",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "0.9",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.color": "0.7",
    "ytick.color": "0.7",
    "xtick.labelcolor": "0.3",
    "ytick.labelcolor": "0.3",
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "xtick.bottom": True,
    "ytick.left": True,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.constrained_layout.h_pad": 0.07,
    "figure.constrained_layout.w_pad": 0.06,
    "patch.linewidth": 0.8,
    "patch.force_edgecolor": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a variant is drawn; each of the three tells it apart alone."""

    color: str
    marker: str
    dashes: Any


@dataclass(kw_only=True)
class OnPanel(so.Mark):
    """Draw onto every panel what ``so.Plot`` has no mark for: bands, lines, words.

    The one hook from a plot to matplotlib. Add it with ``add(OnPanel(...),
    legend=False)``; its layer must give ``y`` in every panel.

    Attributes
    ----------
    draw
        Called once for each panel with its axes and its rows.
    rows
        Table with a column ``panel`` that holds the names of the facets.
    """

    draw: Callable[[Axes, pd.DataFrame], None]
    rows: pd.DataFrame

    def _plot(
        self, split_generator: Callable[..., Iterator], scales: object, orient: str
    ) -> None:
        for keys, _, axes in split_generator(keep_na=True):
            self.draw(axes, self.rows[self.rows["panel"] == keys["col"]])


def dressed(plot: so.Plot, *, height: float) -> so.Plot:
    """Return the plot with the type, grid and size of all figures."""
    return plot.theme(RC).layout(size=(WIDTH, height), engine="constrained")


def require_one_metric(table: pd.DataFrame) -> None:
    """Refuse a table whose values have no common axis.

    Raises
    ------
    ValueError
        If the table holds several metrics.
    """
    names = sorted(map(str, table["metric"].unique()))
    if len(names) > 1:
        raise ValueError(f"one metric a figure; the table holds {', '.join(names)}")


def require(table: pd.DataFrame, columns: Iterable[str], what: str) -> None:
    """Refuse a table that cannot be drawn.

    Raises
    ------
    ValueError
        If a column is missing or there is no row.
    """
    missing = [name for name in columns if name not in table]
    if missing:
        raise ValueError(f"{what}: the table has no column {', '.join(missing)}")
    if table.empty:
        raise ValueError(f"nothing to draw: the table of {what} has no rows")


def looks(found: Iterable[str], named: Sequence[str] = ()) -> dict[str, Look]:
    """Give each variant its look: the baseline grey, the patched one blue.

    Parameters
    ----------
    found
        Variants of the table.
    named
        Variants of the study, baseline first; where it is empty, ``baseline`` and
        ``patched`` come first and the others in order of appearance.
    """
    present = list(dict.fromkeys(map(str, found)))
    first = list(named) or [name for name in VARIANT_COLORS if name in present]
    if not named and "patched" in first and "baseline" not in first:
        first = ["baseline", *first]
    order = list(dict.fromkeys([*first, *present]))
    colors = [*VARIANT_COLORS.values(), *MORE_COLORS]
    return {
        name: Look(
            color=colors[number % len(colors)],
            marker=MARKERS[number % len(MARKERS)],
            dashes=DASHES[number % len(DASHES)],
        )
        for number, name in enumerate(order)
        if name in present
    }


def of_one_metric(
    table: pd.DataFrame, unit: str, variants: Sequence[str]
) -> tuple[dict[str, Look], float, str]:
    """Return the looks of the variants, and scale and unit of the axis.

    Raises
    ------
    ValueError
        If the table holds several metrics.
    """
    require_one_metric(table)
    return (looks(table["variant"], variants), *readable(table, unit))


def readable(table: pd.DataFrame, unit: str) -> tuple[float, str]:
    """Return scale and unit for an axis: one prefix for all values of the table.

    A share is read in percent, a count with a known number of packets per 100 packets.
    """
    values = table["value"]
    if unit == "1":
        kinds = {metric(str(name)).kind for name in table["metric"].unique()}
        if kinds <= {Kind.SHARE, Kind.PROPORTION}:
            return 0.01, "%"
        known = "exposure" in table and table["exposure"].notna().all()
        if kinds == {Kind.COUNT} and known and values.max() <= 1:
            return 0.01, "per 100 packets"
        return 1.0, ""
    scale, shown = prefix(float(values.abs().median()), unit)
    return scale, f"µ{shown[1:]}" if shown.startswith("us") else shown


def quantity(label: str, shown: str) -> str:
    """Words for an axis, in lines that fit a panel: the quantity and [its unit]."""
    words = f"{label} [{shown}]" if shown else label
    return "\n".join(as_text(line) for line in textwrap.wrap(words, 26))


def panels(table: pd.DataFrame) -> pd.Series:
    """Name the panel of each row: device and workload, in two lines where long."""
    pairs = table[["device", "workload"]].drop_duplicates()
    room = 210.0 if len(pairs) > 1 else 460.0
    names: dict[tuple[object, object], str] = {}
    for device, workload in pairs.itertuples(index=False):
        parts = [as_text(shortened(one, room)) for one in (device, workload)]
        together = ", ".join(filter(None, parts))
        fits = width(together) <= room
        name = together if fits else "\n".join(parts)
        # names that differ where they were cut must not share a panel
        twin = f" ({len(names) + 1})" if name in names.values() else ""
        names[device, workload] = name + twin
    keys = zip(table["device"], table["workload"], strict=True)
    return pd.Series([names[key] for key in keys], index=table.index, dtype=object)


def panel_order(table: pd.DataFrame) -> list[str]:
    """Order of the panels: two devices of one workload side by side.

    Where a device lacks a workload, each device has its panels together instead.
    """
    devices, workloads = table["device"].nunique(), table["workload"].nunique()
    beside = devices == 2 and table["panel"].nunique() == devices * workloads
    keys = ["workload", "device"] if beside else ["device", "workload"]
    return list(table.drop_duplicates("panel").sort_values(keys)["panel"])


def columns(table: pd.DataFrame) -> int:
    """Return how many panels stand side by side."""
    return min(2, table["panel"].nunique())


def height(table: pd.DataFrame) -> float:
    """Return the height of a figure of panels, in inches."""
    count = -(-table["panel"].nunique() // columns(table))
    return 0.75 + (2.6 if count == 1 else 2.0) * count


def entry(look: Look) -> Line2D:
    """Return the marker of a variant, for the key."""
    return Line2D(
        [], [], color=look.color, marker=look.marker, linestyle="",
        markeredgecolor="white", markersize=7,
    )  # fmt: skip


def ticks(most: int, *, whole: bool = False) -> MaxNLocator:
    """Place ticks at round steps that people count in."""
    return MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10], integer=whole)


def key(figure: FigureBase, entries: Mapping[str, Artist]) -> None:
    """Write the key above the panels, once a figure."""
    if figure.legends:
        return
    blank = [f"entry {number}" for number, _ in enumerate(entries)]
    legend = figure.legend(
        list(entries.values()),
        blank,
        loc="outside upper left",
        ncols=len(entries),
        handlelength=2.6,
        handletextpad=0.6,
        columnspacing=2.0,
        borderaxespad=0.2,
    )
    # set afterwards: as a label, a name with a leading underscore would be dropped
    for text, name in zip(legend.get_texts(), entries, strict=True):
        text.set_text(as_text(name))


_FONT: Final = font_manager.get_font(_FONTS / "DejaVuSans.ttf")


def as_text(value: object) -> str:
    """Make a name safe to draw: no markup, no control characters, no missing glyph.

    Line feeds count as control characters too.
    """
    return _printable(value).replace("$", r"\$")


def _printable(value: object) -> str:
    return "".join(
        one if one.isprintable() and _FONT.get_char_index(ord(one)) else "\ufffd"
        for one in str(value)
    )


def shortened(name: object, room: float) -> str:
    """Cut a name that is wider than so many points, in its middle."""
    text = whole = _printable(name)
    kept = len(whole)
    while (wide := width(text)) > room and kept > 2:
        kept = max(2, min(kept - 1, int(kept * room / wide)))
        tail = kept // 2
        text = f"{whole[: kept - tail]}…{whole[-tail:]}"
    return text


def width(text: str) -> float:
    """Width of a line in points, as panel names and row names are written."""
    size = font_manager.FontProperties(family=FAMILY, size=9)
    return text_to_path.get_text_width_height_descent(text, size, ismath=False)[0]


def limits(values: pd.Series) -> tuple[float, float]:
    """Limits of an axis of dots: a little air, and no tick below a zero."""
    low, high = float(values.min()), float(values.max())
    room = (high - low) * 0.08 or abs(high) * 0.02 or 1.0
    if low >= 0 and low - room < 0:
        return -0.05 * (high + room), high + room
    return low - room, high + room
