"""Pictures that stand in the page itself, so that a browser finds the names in them.

A picture in an ``<img>`` is safe and silent: its text cannot be found. One in the page
could bring scripts, styles, links and foreign markup, so that only what is known to
draw is copied: a few elements, a few attributes, and text.
"""

import re
from typing import Final
from xml.etree import ElementTree as ET

from patchstudy.report.table import shown

#: Class of the pictures that are meant to stand in the page.
INLINE: Final = "flame"
_LARGEST: Final = 4_000_000
_NAMESPACE: Final = "{http://www.w3.org/2000/svg}"
_NUMBERS: Final = frozenset({"x", "y", "width", "height", "stroke-width", "font-size"})
_NUMBER: Final = re.compile(r"-?\d{1,7}(?:\.\d{1,6})?")
_VALUES: Final = {
    "viewBox": re.compile(r"[\d. -]{1,60}"),
    "fill": re.compile(r"#[0-9a-f]{6}|none"),
    "stroke": re.compile(r"#[0-9a-f]{6}|none"),
    "stroke-dasharray": re.compile(r"[\d. ]{1,20}"),
    "font-family": re.compile(r"[A-Za-z, -]{1,80}"),
    **dict.fromkeys(_NUMBERS, _NUMBER),
}
_ELEMENTS: Final = frozenset({"svg", "g", "rect", "text", "title"})


def inline(svg: bytes, *, alt: str) -> str | None:
    """Return the picture as safe markup for the page, or None where it is no such one.

    Elements and attributes that are not known, and values that are not plain numbers,
    colours or font names, are left out; text is escaped.
    """
    if len(svg) > _LARGEST or b"<!" in svg:
        return None
    try:
        root = ET.fromstring(svg)
    except ET.ParseError:
        return None
    if root.tag != f"{_NAMESPACE}svg" or root.get("class") != INLINE:
        return None
    return _element(root, f' class="{INLINE}" role="img" aria-label="{shown(alt)}"')


def _element(node: ET.Element, more: str = "") -> str:
    name = node.tag.removeprefix(_NAMESPACE)
    attributes = "".join(
        f' {key}="{value}"'
        for key, value in node.attrib.items()
        if key in _VALUES and _VALUES[key].fullmatch(value)
    )
    inner = "".join(
        _element(child)
        for child in node
        if child.tag in {_NAMESPACE + one for one in _ELEMENTS}
    )
    text = shown(node.text) if name in {"text", "title"} and node.text else ""
    return f"<{name}{more}{attributes}>{text}{inner}</{name}>"
