"""Lines as a tool printed them, of files that people pasted, mailed or logged."""

import re
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from patchstudy.records import RawFile

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])")
#: What stands in a text that is not as its tool printed it.
_MARKS: Final = ("\r", "\x1b", ">")
_QUOTES: Final = re.compile(r"^(?:> ?)+")
_FENCE: Final = re.compile(r"^\s*(?:```|~~~|</?(?:pre|code)>)")
_STAMP: Final = re.compile(
    r"^\[?(?:(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} +\d\d? )?\d\d:\d\d:\d\d)"
    r"(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:?(?: |$)"
)
_SHELL: Final = re.compile(
    r"^\[?[\w.-]+@[\w.-]+[: ][^#$%>]{0,80}[#$%>](?: .*)?$|^[$#] \S"
    r"|^Script (?:started|done) on "
)


def plain(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, without quote marks and escape codes.

    Of a line that the tool wrote over itself (carriage returns) every part is yielded,
    under the same number.
    """
    text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if not any(mark in text for mark in _MARKS):
        yield from enumerate(map(str.rstrip, lines), start=1)
        return
    for number, line in enumerate(lines, start=1):
        for part in line.split("\r"):
            clean = _ESCAPES.sub("", part) if "\x1b" in part else part
            bare = _QUOTES.sub("", clean) if clean.startswith(">") else clean
            yield number, bare.rstrip()


def unindented(text: str, first: re.Pattern[str]) -> str:
    """Return the text without the indent of the first line of which this is the start.

    People indent what they paste into a mail or a page; columns stay as they are.
    """
    found = first.search(text)
    line = text[text.rfind("\n", 0, found.start()) + 1 :] if found else ""
    depth = len(line) - len(line.lstrip(" \t"))
    if not depth:
        return text
    return re.sub(rf"^[ \t]{{1,{depth}}}", "", text, flags=re.MULTILINE)


def cleaned(text: str) -> str:
    """Return the text without what pages, mails, logs and shells put around it.

    Colours and other escape codes of a terminal go too.

    Lines outside of fences are emptied where there are any, and those of a shell;
    quote marks, time stamps and indent go where every line has them. A line keeps its
    number.
    """
    text = _ESCAPES.sub("", text) if "\x1b" in text else text
    lines = text.replace("\r\n", "\n").split("\n")
    if any(map(_FENCE.match, lines)):
        lines = list(_fenced(lines))
    lines = ["" if _SHELL.match(line) else line for line in lines]
    return textwrap.dedent("\n".join(_unmarked(lines)))


def unmarked(text: str) -> str:
    """Return the text without the quote marks or time stamps that every line has."""
    return "\n".join(_unmarked(text.replace("\r\n", "\n").split("\n")))


def _unmarked(lines: list[str]) -> list[str]:
    for mark in (_QUOTES, _STAMP):
        if all(mark.match(line) for line in lines if line.strip()):
            lines = [mark.sub("", line, count=1) for line in lines]
    return lines


def _fenced(lines: list[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        fence = _FENCE.match(line)
        inside = inside != bool(fence)
        yield line if inside and not fence else ""


def plain_head(raw: RawFile) -> list[str]:
    """Return the lines of the first 4096 bytes that are not blank."""
    return list(_plain_head(raw.head))


@lru_cache(maxsize=16)  # every loader asks for the same head
def _plain_head(head: str) -> tuple[str, ...]:
    return tuple(line for _number, line in plain(head) if line.strip())
