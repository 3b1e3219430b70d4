"""Differential flame graph: the call stacks of both variants in one picture.

Written as SVG by hand, since names must stay text: a browser's own search finds them,
and each frame has a ``<title>`` that the browser shows as a tooltip. No script.
"""

from collections.abc import Collection
from typing import Final
from xml.etree import ElementTree as ET

import pandas as pd

from patchstudy.figures import theme

_COLUMNS: Final = ("depth", "start", "width", "symbol", "origin", "baseline",
                   "patched", "change")  # fmt: skip
_WIDTH: Final = 768.0
_ROW: Final = 15.0
_KEY: Final = 34.0
_LETTER: Final = 5.3
#: Change of the share, from which a frame is coloured and says by how much it changed.
_NOTABLE: Final = 0.005
#: Change of the share from which the colour is the darkest.
_FULL: Final = 0.10
_FELL: Final = (11, 110, 143)
_ROSE: Final = (193, 97, 26)
_SAME: Final = "#e8e8e8"
_MARK: Final = {"stroke": "#000000", "stroke-width": "2.4"}


def flame(table: pd.DataFrame, *, named: Collection[str] = ()) -> bytes:
    """Draw the merged call tree of one device and workload as SVG.

    Frames of which the patched variant has less are blue with a solid edge and a minus
    sign, those of which it has more are orange with a broken edge and a plus sign: the
    sign and the edge tell them apart in grey.

    Parameters
    ----------
    table
        As ``flames.flames`` returns it, of one device and workload.
    named
        Symbols whose frames get a thick black edge.

    Raises
    ------
    ValueError
        If the table is empty, or holds several graphs.
    """
    theme.require(table, _COLUMNS, "call stacks")
    if len(table[["device", "workload"]].drop_duplicates()) > 1:
        raise ValueError("one device and workload a flame graph")
    depths = int(table["depth"].max()) + 1
    height = _KEY + depths * _ROW + 4
    svg = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": "flame",
            "viewBox": f"0 0 {_WIDTH:g} {height:g}",
            "width": f"{_WIDTH:g}",
            "height": f"{height:g}",
            "font-family": "DejaVu Sans, Verdana, sans-serif",
            "font-size": "9",
        },
    )
    _rect(svg, (0.0, 0.0, _WIDTH, height), {"fill": "#ffffff"})
    _write_key(svg)
    for row in table.to_dict("records"):
        _frame(svg, row, height, marked=row["symbol"] in named)
    return ET.tostring(svg, encoding="utf-8") + b"\n"


def _frame(svg: ET.Element, row: dict, height: float, *, marked: bool) -> None:
    wide = float(row["width"]) * _WIDTH
    left = float(row["start"]) * _WIDTH
    top = height - (int(row["depth"]) + 1) * _ROW - 2
    group = ET.SubElement(svg, "g")
    title = ET.SubElement(group, "title")
    title.text = _tooltip(row)
    look = _look(float(row["change"])) | (_MARK if marked else {})
    _rect(group, (left, top, wide, _ROW - 1), look)
    # an inner svg cuts off what does not fit; the whole name stays findable
    box = ET.SubElement(group, "svg", _box((left, top, max(wide, 1.0), _ROW)))
    words = _label(row)
    fits = wide >= 3 * _LETTER
    text = ET.SubElement(box, "text", {"x": "2", "y": "10.5"})
    text.set("fill", _ink(float(row["change"])) if fits else "none")
    text.text = words


def _label(row: dict) -> str:
    change = float(row["change"])
    name = _text(row["symbol"])
    if abs(change) < _NOTABLE:
        return name
    return f"{_signed(change)} {name}"


def _tooltip(row: dict) -> str:
    return (
        f"{_text(row['symbol'])} ({row['origin']}): baseline "
        f"{100 * float(row['baseline']):.2f} %, patched "
        f"{100 * float(row['patched']):.2f} %, change {_signed(float(row['change']))} "
        "points"
    )


def _signed(change: float) -> str:
    return f"{100 * change:+.1f}".replace("-", "\u2212")


def _text(name: object) -> str:
    return theme.as_text(name).replace(r"\$", "$")


def _look(change: float) -> dict[str, str]:
    if abs(change) < _NOTABLE:
        return {"fill": _SAME, "stroke": "#ffffff", "stroke-width": "0.5"}
    target = _FELL if change < 0 else _ROSE
    edge = {"stroke": "#222222", "stroke-width": "0.8"}
    if change > 0:
        edge["stroke-dasharray"] = "2 1.5"
    return {"fill": _mixed(target, _depth(change)), **edge}


def _depth(change: float) -> float:
    """How dark a frame is, between a tint and the full colour."""
    return 0.25 + 0.75 * min(abs(change) / _FULL, 1.0)


def _mixed(target: tuple[int, int, int], part: float) -> str:
    red, green, blue = (round(255 + (one - 255) * part) for one in target)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _ink(change: float) -> str:
    dark = abs(change) >= _NOTABLE and _depth(change) > 0.6
    return "#ffffff" if dark else "#111111"


def _write_key(svg: ET.Element) -> None:
    entries = (
        (-_FULL, "less in the patched variant (points)"),
        (_FULL, "more in the patched variant (points)"),
        (0.0, "about the same"),
    )
    left = 2.0
    for change, words in entries:
        _rect(svg, (left, 4.0, 22.0, 11.0), _look(change))
        mark = _signed(change)[0] if change else ""
        sign = ET.SubElement(svg, "text", {"x": _px(left + 8), "y": "12.5"})
        sign.set("fill", _ink(change))
        sign.text = mark
        text = ET.SubElement(svg, "text", {"x": _px(left + 27), "y": "12.5"})
        text.set("fill", "#222222")
        text.text = words
        left += 40 + _LETTER * len(words)
    note = ET.SubElement(svg, "text", {"x": "2", "y": "27", "fill": "#444444"})
    note.text = (
        "Width: mean of both inclusive shares. Callers stand below what they call. "
        "Point at a frame for its numbers."
    )


def _rect(
    parent: ET.Element, box: tuple[float, float, float, float], look: dict[str, str]
) -> None:
    ET.SubElement(parent, "rect", {**_box(box), **look})


def _box(box: tuple[float, float, float, float]) -> dict[str, str]:
    return dict(zip(("x", "y", "width", "height"), map(_px, box), strict=True))


def _px(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"
