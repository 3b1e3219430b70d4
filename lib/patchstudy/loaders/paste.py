"""Lines as a tool printed them, of files that people pasted, mailed or logged."""

import re
from collections.abc import Iterator
from typing import Final

from patchstudy.records import RawFile

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])")
_QUOTES: Final = re.compile(r"^(?:> ?)+")


def plain(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, without quote marks and escape codes.

    Of a line that the tool wrote over itself (carriage returns) every part is yielded,
    under the same number.
    """
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        for part in line.split("\r"):
            yield number, _QUOTES.sub("", _ESCAPES.sub("", part)).rstrip()


def plain_head(raw: RawFile) -> list[str]:
    """Return the lines of the first 4096 bytes that are not blank."""
    return [line for _number, line in plain(raw.head) if line.strip()]
