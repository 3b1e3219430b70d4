"""What the patch changed in the profile: shares and costs of symbols, paired bars."""

from typing import Final, NamedTuple

import pandas as pd
import seaborn.objects as so
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from patchstudy.figures import theme

_COLUMNS: Final = (
    "device", "workload", "symbol", "inclusive_baseline", "inclusive_patched", "change",
)  # fmt: skip
#: Widest name of a symbol, in points.
_ROOM: Final = 330.0
#: Thickness of a bar; two of them stand in a row of height 1.
_BAR: Final = 0.38
#: The baseline is pale with an edge, so that both can be told apart in grey.
_ALPHA: Final = {"baseline": 0.3, "patched": 1.0}


def profile_difference(difference: pd.DataFrame, *, top: int = 12) -> so.Plot:
    """Draw the inclusive share of the first symbols, a bar per variant.

    Parameters
    ----------
    difference
        As ``profiles.difference`` or ``profiles.telling`` return it; drawn in this
        order, first on top.
    top
        Symbols in each panel.

    Raises
    ------
    ValueError
        If the table is empty.
    """
    theme.require(difference, _COLUMNS, "profile differences")
    measure = _Measure("inclusive", 100.0, "Inclusive share of the profile [%]", ".1f")
    return _paired(difference, top, measure)


def profile_costs(difference: pd.DataFrame, *, top: int = 12) -> so.Plot:
    """Draw the own cost of the first symbols in ns per packet, a bar per variant.

    Parameters
    ----------
    difference
        As ``profiles.dearest`` returns it; drawn in this order, first on top.
    top
        Symbols in each panel.

    Raises
    ------
    ValueError
        If the table is empty.
    """
    columns = ("self_cost_baseline", "self_cost_patched")
    theme.require(difference, (*_COLUMNS[:3], *columns), "costs of symbols")
    label = "Own CPU time (self) [ns per packet]"
    return _paired(difference, top, _Measure("self_cost", 1e9, label, ".0f"))


class _Measure(NamedTuple):
    """Columns ``<name>_<variant>``, times this, are drawn under this label."""

    name: str
    scale: float
    label: str
    form: str

    def of(self, symbols: pd.DataFrame, variant: str) -> pd.Series:
        """Values of a variant as they are drawn."""
        return self.scale * symbols[f"{self.name}_{variant}"].astype(float)


def _paired(difference: pd.DataFrame, top: int, measure: _Measure) -> so.Plot:
    symbols = _first(difference, top)
    bars = _bars(symbols, measure)
    looks = theme.looks(theme.VARIANT_COLORS)
    plot = (
        so.Plot(bars, x="shown", y="at", color="variant", alpha="variant")
        .facet(col="panel", wrap=1, order=theme.panel_order(symbols))
        .share(x=True, y=False)
        .add(theme.OnPanel(draw=_dress, rows=bars), legend=False)
        .add(so.Bar(width=1.0), orient="y", legend=False)
        .scale(
            color=so.Nominal({name: look.color for name, look in looks.items()}),
            alpha=so.Nominal(_ALPHA),
        )
        .label(x=measure.label, y="")
    )
    return theme.dressed(plot, height=_height(symbols))


def _first(difference: pd.DataFrame, top: int) -> pd.DataFrame:
    """The first rows of each panel in the order given, with their row number."""
    table = difference.groupby(["device", "workload"], sort=False).head(top)
    table = table.assign(panel=theme.panels(table)).reset_index(drop=True)
    return table.assign(row=table.groupby("panel").cumcount())


def _bars(symbols: pd.DataFrame, measure: _Measure) -> pd.DataFrame:
    """One row per symbol and variant; ``at`` is the middle of its bar."""
    return pd.concat(
        [
            symbols.assign(
                variant=variant,
                shown=values,
                words=[format(one, measure.form) for one in values],
                at=symbols["row"] + offset,
            )
            for variant, offset in (("baseline", -_BAR / 2), ("patched", _BAR / 2))
            for values in [measure.of(symbols, variant)]
        ],
        ignore_index=True,
    )


def _dress(axes: Axes, rows: pd.DataFrame) -> None:
    """Write symbols and numbers, and the key."""
    symbols = rows.drop_duplicates("row")
    axes.set_yticks(
        symbols["row"], [_name(one) for one in symbols["symbol"]], color=theme.INK
    )
    axes.set_ylim(len(symbols) - 0.45, -0.55)
    axes.grid(visible=False, axis="y")
    for at, shown, words in zip(rows["at"], rows["shown"], rows["words"], strict=True):
        axes.annotate(
            words,
            (shown, at),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color="0.3",
        )
    entries = {
        name: Patch(
            facecolor=(look.color, _ALPHA[name]), edgecolor=look.color, linewidth=0.8
        )
        for name, look in theme.looks(theme.VARIANT_COLORS).items()
    }
    theme.key(axes.figure, entries)


def _name(symbol: object) -> str:
    return theme.as_text(theme.shortened(symbol, _ROOM))


def _height(symbols: pd.DataFrame) -> float:
    return 0.9 + 0.45 * symbols["panel"].nunique() + 0.3 * len(symbols)
