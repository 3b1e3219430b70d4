"""Which CPU is how busy: a strip of cells per CPU and variant, one cell a run."""

from typing import Final

import pandas as pd
import seaborn.objects as so
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from patchstudy.figures import theme

_COLUMNS: Final = ("device", "workload", "variant", "cpu", "order", "value")
#: Most CPUs of a panel; of more the busiest are drawn.
MOST_CPUS: Final = 16


def cpu_strip(table: pd.DataFrame) -> so.Plot:
    """Draw the busy share of every CPU in every run: the darker the busier.

    Parameters
    ----------
    table
        One row per measured run and CPU with the columns ``device``, ``workload``,
        ``variant``, ``cpu``, ``order`` and ``value`` (between 0 and 1). Rows of a panel
        stand in the order of the CPUs, baseline first; the cells from left to right in
        the order of the runs. The number at the right is the median.

    Raises
    ------
    ValueError
        If the table is empty.
    """
    theme.require(table, _COLUMNS, "CPU loads")
    cells = _cells(table.assign(panel=theme.panels(table)))
    plot = (
        so.Plot(cells, x="x", y="y")
        .facet(col="panel", wrap=1, order=theme.panel_order(cells))
        .share(x=False, y=False)
        .add(theme.OnPanel(draw=_dress, rows=cells), legend=False)
        .label(x="Runs of the variant, one after the other", y="")
    )
    height = 0.5 + 0.65 * cells["panel"].nunique()
    lines = cells.groupby("panel")["y"].nunique().sum()
    return theme.dressed(plot, height=height + 0.24 * lines)


def _cells(table: pd.DataFrame) -> pd.DataFrame:
    parts = []
    for _, panel in table.groupby("panel", sort=False):
        busiest = panel.groupby("cpu")["value"].mean().nlargest(MOST_CPUS)
        rows = panel[panel["cpu"].isin(busiest.index)]
        variants = list(theme.looks(rows["variant"]))
        lines = [
            (cpu, variant)
            for cpu in sorted(busiest.index, key=_number)
            for variant in variants
        ]
        at = {line: number for number, line in enumerate(lines)}
        y = [at[line] for line in zip(rows["cpu"], rows["variant"], strict=True)]
        lined = rows.assign(y=y).sort_values(["y", "order"], kind="stable")
        parts.append(lined.assign(x=lined.groupby("y").cumcount()))
    return pd.concat(parts, ignore_index=True)


def _number(cpu: object) -> tuple[int, str]:
    text = str(cpu)
    return (int(text) if text.isdecimal() else 1 << 30, text)


def _dress(axes: Axes, rows: pd.DataFrame) -> None:
    wide = int(rows["x"].max()) + 1
    for x, y, value in zip(rows["x"], rows["y"], rows["value"], strict=True):
        grey = str(round(1 - 0.9 * min(max(float(value), 0.0), 1.0), 3))
        axes.add_patch(
            Rectangle((x, y - 0.44), 0.94, 0.88, facecolor=grey, edgecolor="0.6",
                      linewidth=0.4)
        )  # fmt: skip
    lines = rows.drop_duplicates("y")
    names = [f"CPU {cpu}, {variant}" for cpu, variant in
             zip(lines["cpu"], lines["variant"], strict=True)]  # fmt: skip
    shown = [theme.as_text(theme.shortened(one, 160)) for one in names]
    axes.set_yticks(lines["y"], shown, color=theme.INK)
    for y, median in rows.groupby("y")["value"].median().items():
        axes.annotate(
            f"{100 * median:.0f} %",
            (wide, y),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=theme.INK,
            annotation_clip=False,
        )
    axes.set_xlim(-0.015 * wide, 1.015 * wide)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xticks([])
    axes.grid(visible=False)
