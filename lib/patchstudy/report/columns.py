"""Widths of the columns of a table on paper, from the widths of its letters."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from math import ceil
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.ft2font import FT2Font

#: Where matplotlib keeps the DejaVu fonts that the PDF is set in.
FONTS: Final = Path(mpl.get_data_path()) / "fonts" / "ttf"
PAGE_PT: Final = 493.0  # width of the text
CELL_PT: Final = 8.0  # left and right of the text in a cell
SIZES_PT: Final = (8.5, 8.0, 7.5)
_SHORT_EM: Final = (12.0, 8.0, 5.0, 0.0)  # a column up to this is not broken
_UNEVEN: Final = 1.15  # what words leave free at the end of a broken line
_MOST_EM: Final = 36.0  # a column that is wider asks for no more
_ROUND_EM: Final = 0.3  # for what a letter is wider beside another
_WORD: Final = re.compile("[^ \u200b-]+-?")
_PLAIN, _BOLD = "DejaVuSans.ttf", "DejaVuSans-Bold.ttf"


def widths(
    names: Sequence[str], rows: Sequence[Sequence[str]], aligns: Sequence[str]
) -> tuple[list[str], float]:
    """Return the widths for Typst, and the size of the largest letters that fit.

    Where no size lets every cell stand on one line, the names of the columns are broken
    first, then the columns whose breaking makes the fewest lines; numbers, which break
    badly, get more. None gets less than its longest word, which would stand on the next
    column.

    Parameters
    ----------
    names, rows
        Words as they are set; a zero-width space is where a word may be broken.
    """
    taken = [[_width(cell) for cell in row] for row in rows]
    nothing = [0.0] * len(names)
    within = [max(column) for column in zip(*taken, strict=True)] or nothing
    whole = list(map(max, (_width(name, _BOLD) for name in names), within))
    spaces = {size: (PAGE_PT - CELL_PT * len(names)) / size for size in SIZES_PT}
    for size, space in spaces.items():
        if sum(whole) <= space:
            return ["auto"] * len(names), size
    broken = [_longest_word(name, _BOLD) for name in names]
    needed = list(map(max, broken, within))
    for size, space in spaces.items():
        if sum(needed) <= space:
            shares = _shared(space, needed, whole)
            return _in_points(map(min, shares, whole), size), size
    size = SIZES_PT[-1]
    words = [max(map(_longest_word, column)) for column in zip(*rows, strict=True)]
    words = words or nothing
    least = list(map(max, broken, words))
    wanted = [
        min(need, _MOST_EM) * (1.3 if align == "right" else 1)
        for need, align in zip(needed, aligns, strict=True)
    ]
    tried = _tried(spaces[size], needed, least, wanted)
    return _in_points(min(tried, key=partial(_lines, taken)), size), size


def _tried(
    space: float,
    needed: Sequence[float],
    least: Sequence[float],
    wanted: Sequence[float],
) -> Iterator[list[float]]:
    """Yield ways to share a line: columns up to some width whole, the others broken."""
    for short in _SHORT_EM:
        kept = [
            need if need <= short else word
            for need, word in zip(needed, least, strict=True)
        ]
        if sum(kept) < space or not short:
            yield _shared(space, kept, wanted)
            lacks = [max(x - y, 0.0) for x, y in zip(wanted, kept, strict=True)]
            part = (space - sum(kept)) / (sum(lacks) or 1.0)
            yield [x + part * y for x, y in zip(kept, lacks, strict=True)]


def _lines(taken: Sequence[Sequence[float]], columns: Sequence[float]) -> float:
    """How many lines the rows take, about: a line is seldom full to its end."""
    return sum(
        max(
            1.0 if cell <= column else ceil(_UNEVEN * cell / column)
            for cell, column in zip(row, columns, strict=True)
        )
        for row in taken
    )


def _shared(
    space: float, least: Sequence[float], wanted: Sequence[float]
) -> list[float]:
    """Share by what is wanted; no column gets less than its least."""
    free = set(range(len(least)))
    while True:
        left = space - sum(one for at, one in enumerate(least) if at not in free)
        part = left / (sum(wanted[at] for at in free) or 1.0)
        tight = {at for at in free if wanted[at] * part < least[at]}
        if not tight:
            break
        free -= tight
    return [wanted[at] * part if at in free else one for at, one in enumerate(least)]


def _in_points(ems: Iterable[float], size: float) -> list[str]:
    return [f"{em * size + CELL_PT:.1f}pt" for em in ems]


def _longest_word(text: str, face: str = _PLAIN) -> float:
    return max((_width(word, face) for word in _WORD.findall(text)), default=0.0)


def _width(text: str, face: str = _PLAIN) -> float:
    """Width of a line in em."""
    return sum(_advance(letter, face) for letter in text) + _ROUND_EM


@cache
def _advance(letter: str, face: str) -> float:
    if letter == "\u200b":
        return 0.0
    font = _font(face)
    return font.load_char(ord(letter)).linearHoriAdvance / 65536 / 10


@cache
def _font(face: str) -> FT2Font:
    font = FT2Font(FONTS / face)
    font.set_size(10, 72)
    return font
