"""The lines of ``perf stat -j``: one JSON object a row, below comments.

In a locale whose decimal mark is ``,`` the lines are no JSON (``100,00``); as nothing
but a number has digits on both sides of a comma there, they are read all the same.
"""

import json
import re
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import perf_row
from patchstudy.loaders.text import head_lines, lines
from patchstudy.records import RawFile

_COMMA = re.compile(r'(?<=" : )("?-?\d+),(\d+"?)(?=\s*[,}])')
_PARTS: Final = ("cpu", "core", "cluster", "cache", "die", "socket", "node")
_KEYS: Final = (*_PARTS, "thread", "cgroup")
_ROW = re.compile(r'\s*\{[^{}]*"(?:counter-value|metric-value)"\s*:')


def fits(raw: RawFile) -> bool:
    """Say whether the first object is such; what a program printed stands above."""
    rows = (line for line in head_lines(raw) if line.lstrip().startswith("{"))
    return _ROW.match(next(rows, "")) is not None


def output(raw: RawFile) -> perf_row.Output:
    """Return the rows that have an event; those of metrics alone have none.

    Raises
    ------
    CaptureError
        If a line is not such an object.
    """
    found = perf_row.Output()
    report = 1
    for number, line in lines(raw):
        if line.startswith("#"):
            report += perf_row.STARTED.match(line) is not None and bool(found.rows)
            continue
        if not line.lstrip().startswith("{"):
            found.skipped.append(number)
            continue
        value = _object(raw, number, line)
        if "counter-value" in value and value.get("event"):
            found.rows.append(_row(raw, number, value))
            found.rows[-1].report = report
    return found


def _object(raw: RawFile, number: int, line: str) -> dict[str, object]:
    try:
        value = json.loads(_COMMA.sub(r"\1.\2", line))
    except (ValueError, RecursionError) as error:
        problem = f"not a JSON line ({error}); was it cut short?"
        raise CaptureError(raw.path, problem, where=str(number)) from error
    if not isinstance(value, dict):
        raise CaptureError(raw.path, "not a JSON object", where=str(number))
    return value


def _row(raw: RawFile, number: int, value: dict[str, object]) -> perf_row.Row:
    told = str(value["counter-value"])
    absent = told in perf_row.ABSENT
    labels = {key: str(value[key]) for key in _KEYS if key in value}
    return perf_row.Row(
        line=number,
        event=str(value["event"]),
        unit=str(value.get("unit", "")),
        value=None if absent else _number(raw, number, told),
        absent=told if absent else "",
        labels=labels,
        time_s=_optional(raw, number, value.get("interval")),
        running=_optional(raw, number, value.get("pcnt-running")),
        spread=_optional(raw, number, value.get("variance")),
    )


def _optional(raw: RawFile, number: int, value: object) -> float | None:
    return None if value is None else _number(raw, number, str(value))


def _number(raw: RawFile, number: int, text: str) -> float:
    if not re.fullmatch(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", text):
        raise CaptureError(raw.path, f"{text!r} is not a number", where=str(number))
    return float(text)
