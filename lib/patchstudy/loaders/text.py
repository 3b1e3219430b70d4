"""Lines and JSON of a raw file, with the place where they break."""

import json
from typing import NoReturn

from patchstudy.errors import CaptureError
from patchstudy.records import Caveat, RawFile, Severity


def json_value(raw: RawFile) -> object:
    """Return the JSON value that the whole file is.

    Raises
    ------
    CaptureError
        If it is not JSON, holds a number that JSON has not (``NaN``), or is nested
        too deeply; with the line number where it is known.
    """
    try:
        return json.loads(raw.text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        problem = f"not JSON ({error.msg}); was it cut short?"
        raise CaptureError(raw.path, problem, where=str(error.lineno)) from error
    except (ValueError, RecursionError) as error:
        raise CaptureError(raw.path, f"not usable as JSON ({error})") from error


def lines(raw: RawFile) -> list[tuple[int, str]]:
    """Return the lines that are not blank, each with its number counted from 1."""
    numbered = enumerate(raw.text.replace("\r\n", "\n").split("\n"), start=1)
    return [(number, line) for number, line in numbered if line.strip()]


def head_lines(raw: RawFile) -> list[str]:
    """Return the lines that are not blank at the start of the file, none cut."""
    head = raw.head.replace("\r\n", "\n").split("\n")
    whole = head[:-1] if len(raw.data) > 4096 else head
    return [line for line in whole if line.strip()]


def line_end(raw: RawFile) -> tuple[Caveat, ...]:
    """Return a caveat where the last line has no line end: a number may be cut."""
    if raw.text.endswith("\n"):
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
