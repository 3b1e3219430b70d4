"""How our types show themselves in a notebook and on a terminal: a title, some rows.

Every word may come from a raw file: markup is shown as text, control characters as
escapes.
"""

from abc import ABC, abstractmethod
from html import escape

from patchstudy.errors import printable

Rows = tuple[tuple[str, str], ...]


class Carded(ABC):
    """A type that says in a few rows what it holds; make it with ``repr=False``."""

    __slots__ = ()

    @abstractmethod
    def card(self) -> tuple[str, Rows]:
        """Return the title, and a name and words for each row."""

    def _repr_html_(self) -> str:
        title, rows = self.card()
        lines = "".join(
            f'<tr><th style="text-align:left">{_shown(name)}</th>'
            f'<td style="text-align:left">{_shown(words)}</td></tr>\n'
            for name, words in rows
        )
        caption = f'<caption style="text-align:left">{_shown(title)}</caption>'
        return f"<table>\n{caption}\n<tbody>\n{lines}</tbody>\n</table>"

    def __repr__(self) -> str:
        title, rows = self.card()
        names = [printable(name) for name, _ in rows]
        width = max(map(len, names), default=0)
        lines = [
            f"  {name:<{width}}  {printable(words)}"
            for name, (_, words) in zip(names, rows, strict=True)
        ]
        return "\n".join([printable(title), *lines])


def _shown(words: str) -> str:
    return escape(printable(words))
