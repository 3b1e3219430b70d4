"""Lines and JSON of a raw file, with the place where they break."""

import json
import re
from functools import lru_cache
from typing import Final, NoReturn

from patchstudy.errors import CaptureError
from patchstudy.records import Caveat, RawFile, Severity

try:
    import orjson
except ImportError:  # some systems have none; the standard library reads the same
    orjson = None

#: Longest line of a text; a tool of 4,096 CPUs prints some 130,000 letters.
LONGEST_LINE: Final = 2**18
#: What ``strict_json`` returns for bytes that are not JSON, or not quite.
NOT_STRICT: Final = object()
_PROMPT: Final = re.compile(
    r"\s*(?:\[?\w[\w.-]*@\w[\w.-]*[: ][^\s\]]*\]?|\w*sh-\d[\d.]*)?[#$%]"
    r"\s*+(?:(?:exit|logout)\s*+)?"
)


def strict_json(raw: RawFile) -> object:
    """Return the JSON value that the whole file is, or ``NOT_STRICT``.

    Fast where the file is UTF-8 and JSON to the letter; of a key that stands twice the
    last value is kept. Anything else is for the caller to look into.
    """
    if orjson is None:
        return NOT_STRICT
    try:
        return orjson.loads(raw.data)
    except orjson.JSONDecodeError:
        return NOT_STRICT


def json_value(raw: RawFile) -> object:
    """Return the JSON value that the whole file is.

    Raises
    ------
    CaptureError
        If it is not JSON, holds a number that JSON has not (``NaN``), or is nested
        too deeply; with the line number where it is known.
    """
    value = strict_json(raw)
    if value is not NOT_STRICT:
        return value
    try:
        return json.loads(raw.text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        problem = f"not JSON ({error.msg}); was it cut short?"
        raise CaptureError(raw.path, problem, where=str(error.lineno)) from error
    except (ValueError, RecursionError) as error:
        raise CaptureError(raw.path, f"not usable as JSON ({error})") from error


def mapping(value: object) -> dict[str, object]:
    """Return a JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[object]:
    """Return a JSON array; an empty one for anything else."""
    return value if isinstance(value, list) else []


def of_whole_letters(raw: RawFile) -> RawFile:
    r"""Return JSON without halves of a letter (``\ud800``), which no text can hold.

    Each is replaced as an undecodable byte is; a file without is returned as it is.
    """
    data = raw.data
    if data[:2] in _WIDE and r"\u" in raw.text:
        data = raw.text.encode()
    if b"\\" not in data or not _HALF.search(data):  # most files have no escape
        return raw
    data = _LETTER.sub(lambda found: found[1] or rb"\ufffd", data)
    return RawFile(path=raw.path, data=data, digest=raw.digest)


_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
#: A backslash that is one, two halves that are a letter; or half a letter.
_LETTER: Final = re.compile(
    rb"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|"
    + _HALF.pattern
)


def refuse_long_lines(raw: RawFile) -> None:
    """Refuse a text with a line that no tool prints: it would take minutes to read.

    JSON may be one line of any length.

    Raises
    ------
    CaptureError
        If a line is longer than ``LONGEST_LINE`` bytes and begins as no JSON does.
    """
    data, start = raw.data, 0
    while len(data) - start > LONGEST_LINE:
        end = data.rfind(b"\n", start, start + LONGEST_LINE + 1)
        if end < 0:
            begins = data[start : start + 80].lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r")
            if not begins.startswith((b"{", b"[")):
                problem = f"a line of over {LONGEST_LINE} bytes; is the file damaged?"
                where = str(data.count(b"\n", 0, start) + 1)
                raise CaptureError(raw.path, problem, where=where)
            end = data.find(b"\n", start)
            if end < 0:
                return
        start = end + 1


def lines(raw: RawFile) -> list[tuple[int, str]]:
    """Return the lines that are not blank, each with its number counted from 1.

    A shell's prompt at the end, as in what was copied from a terminal, is left out.
    """
    numbered = enumerate(raw.text.replace("\r\n", "\n").split("\n"), start=1)
    found = [(number, line) for number, line in numbered if line.strip()]
    if len(found) > 1 and _PROMPT.fullmatch(found[-1][1]):
        found.pop()
    return found


def head_lines(raw: RawFile) -> list[str]:
    """Return the lines that are not blank at the start of the file, none cut."""
    return list(_head_lines(raw.head, len(raw.data) > 4096))


@lru_cache(maxsize=16)  # every loader asks for the same head
def _head_lines(head: str, cut: bool) -> tuple[str, ...]:
    found = head.replace("\r\n", "\n").split("\n")
    return tuple(line for line in (found[:-1] if cut else found) if line.strip())


def line_end(raw: RawFile) -> tuple[Caveat, ...]:
    """Return a caveat where the last line has no line end: a number may be cut."""
    last = raw.text.rpartition("\n")[2]
    if not last or _PROMPT.fullmatch(last):
        return ()
    text = "the last line has no line end; its number may be cut short"
    todo = "Compare the last line with the original file."
    return (Caveat(code="no-line-end", severity=Severity.DOUBT, text=text, todo=todo),)


def counter(raw: RawFile, value: object, where: str) -> int:
    """Return a JSON value that must be a counter: an integer, not negative.

    Raises
    ------
    CaptureError
        If it is not; ``where`` is the JSON path that the error names.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CaptureError(raw.path, f"{value!r} is not a counter", where=where)
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number in JSON")
