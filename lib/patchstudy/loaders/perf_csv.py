"""The fields of ``perf stat -x``, found from the name of the event.

A row is ``[time,] [part of the machine, [number of CPUs,]] value, unit, event,
[cgroup,] [spread%,] run time in ns, percent of time counted, metric, its unit``; so
neither the place of the value nor the number of fields is fixed. With a separator of
``,`` in a locale whose decimal mark is ``,`` a number takes two fields; the percent of
time, which always has two decimals, tells it.
"""

import re
from collections.abc import Sequence
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import perf_row
from patchstudy.loaders.text import head_lines, lines
from patchstudy.records import RawFile

_SEPARATORS: Final = (";", "\t", "|", "~", "@", ",")
#: Units of counts that perf scales, and so prints with two decimals.
_SCALED: Final = {"msec", "Joules", "MiB"}

_HEADER = re.compile(r"#.*|perf version .*|.*\bperf stat .*")
_VALUE = re.compile(r"-?\d+(?:[.,]\d+)?|<not supported>|<not counted>")
_UNIT = re.compile(r"|[^\W\d][\w/%^ -]*")
_EVENT = re.compile(r"[^\W\d]\S*")
_TIME = re.compile(r"\d+[.,]\d{9}")
_SHARE = re.compile(r"\d+[.,]\d\d")
_PERCENT = re.compile(r"\d+(?:[.,]\d+)?%")


def fits(raw: RawFile) -> bool:
    """Say whether most of the first lines are such rows.

    perf writes no line with the names of the columns; a table that has one is not its.
    """
    rows = _rows(head_lines(raw))[:10]
    separator = _separator(rows)
    if separator is None:
        return False
    return separator not in rows[0] or re.search(r"\d|<not", rows[0]) is not None


def output(raw: RawFile) -> perf_row.Output:
    """Return all rows.

    Raises
    ------
    CaptureError
        If a number can be read in two ways.
    """
    found = perf_row.Output()
    separator = _separator(_rows([line for _, line in lines(raw)])[:10])
    report = 1
    for number, line in lines(raw):
        if _HEADER.fullmatch(line):
            if line.startswith("perf version "):
                found.facts["version"] = line.split()[2]
            report += perf_row.STARTED.match(line) is not None and bool(found.rows)
            continue
        fields = [field.strip() for field in line.split(separator or ",")]
        fields = fields[1:] if fields[0] == "summary" else fields
        anchor = _anchor(fields)
        if anchor is None:
            if not _is_metric(fields):
                found.skipped.append(number)
        else:
            found.rows.append(_row(raw, number, fields, anchor))
            found.rows[-1].report = report
    return found


def _rows(told: Sequence[str]) -> list[str]:
    return [line for line in told if not _HEADER.fullmatch(line)]


def _separator(rows: Sequence[str]) -> str | None:
    """Return the one that makes most rows have an event; None where none does."""
    for separator in _SEPARATORS:
        split = [[one.strip() for one in row.split(separator)] for row in rows]
        anchors = [_anchor(fields) for fields in split if not _is_metric(fields)]
        if 2 * sum(anchor is not None for anchor in anchors) > len(anchors):
            return separator
    return None


def _is_metric(fields: Sequence[str]) -> bool:
    """Say whether value, unit and event are empty, as for a second metric of a row."""
    return any(not any(fields[place : place + 3]) for place in range(len(fields) - 4))


def _anchor(fields: Sequence[str]) -> int | None:
    """Return the place of the event: behind value and unit, before the run time."""
    for place in range(2, len(fields) - 1):
        value, unit, event = fields[place - 2 : place + 1]
        fits = _VALUE.fullmatch(value) and _UNIT.fullmatch(unit)
        if fits and _EVENT.fullmatch(event):
            following = fields[_end(fields, place) :]
            starts = (following[start:] for start in range(4))
            return place if any(map(_is_counted, starts)) else None
    return None


def _is_counted(fields: Sequence[str]) -> bool:
    """Say whether it begins with the run time and the percent of time counted."""
    if len(fields) < 2 or not fields[0].isdecimal():
        return False
    return _SHARE.fullmatch(fields[1]) is not None or _is_split(fields)


def _end(fields: Sequence[str], place: int) -> int:
    """Return the place behind the event, whose terms ``pmu/a=1,b=2/`` may be split."""
    end = place + 1
    while "".join(fields[place:end]).count("/") % 2 and end < len(fields):
        end += 1
    return end


def _row(raw: RawFile, number: int, fields: list[str], place: int) -> perf_row.Row:
    """Return the row whose event stands at this place."""
    value, unit = fields[place - 2 : place]
    end = _event_end(fields, place)
    event, rest = ",".join(fields[place:end]), fields[end:]
    labels = {}
    if rest and not rest[0].isdecimal() and not _is_spread(rest):
        labels["cgroup"] = rest.pop(0)
    spread = _take_spread(rest)
    if not _is_counted(rest):
        problem = f"no run time and percent behind the event {event!r}; is it cut?"
        raise CaptureError(raw.path, problem, where=str(number))
    split = _is_split(rest)
    prefix = fields[: place - 2]
    if split:
        prefix, value = _joined(raw, number, fields[:place])
        rest = [rest[0], f"{rest[1]}.{rest[2]}"]
    time_s, part = _prefix(prefix)
    row = perf_row.Row(
        line=number,
        event=event,
        unit=unit,
        value=None if value in perf_row.ABSENT else _number(value),
        absent=value if value in perf_row.ABSENT else "",
        labels={**part, **labels},
        time_s=time_s,
        running=_number(rest[1]),
        spread=spread,
    )
    if split:
        _check_clock(raw, row, int(rest[0]))
    return row


def _event_end(fields: Sequence[str], place: int) -> int:
    """Return the place behind an event with balanced slashes, else behind one field."""
    end = _end(fields, place)
    balanced = "".join(fields[place:end]).count("/") % 2 == 0
    return end if balanced and end < len(fields) else place + 1


def _is_spread(rest: Sequence[str]) -> bool:
    """Say whether a spread stands there, in one field or in two."""
    return any(one.endswith("%") for one in rest[:2])


def _take_spread(rest: list[str]) -> float | None:
    """Remove the spread from the front and return it."""
    if rest and _PERCENT.fullmatch(rest[0]):
        return _number(rest.pop(0).removesuffix("%"))
    if len(rest) > 1 and rest[1].endswith("%") and rest[0].isdecimal():
        whole, decimals = rest.pop(0), rest.pop(0).removesuffix("%")
        return _number(f"{whole}.{decimals}")
    return None


def _is_split(rest: Sequence[str]) -> bool:
    """Say whether the percent of time counted takes two fields."""
    return (
        len(rest) > 2
        and rest[1].isdecimal()
        and rest[2].isdecimal()
        and len(rest[2]) == 2
    )


def _joined(raw: RawFile, number: int, fields: Sequence[str]) -> tuple[list[str], str]:
    """Return prefix and value where the decimals of each are a field of their own."""
    *prefix, value, unit = fields
    if len(prefix) > 1 and len(prefix[1]) == 9 and prefix[1].isdecimal():
        prefix = [f"{prefix[0]}.{prefix[1]}", *prefix[2:]]
    if value in perf_row.ABSENT or unit in {"", "ns"}:
        return prefix, value
    halves = (*prefix[-1:], value)
    if unit not in _SCALED or not (prefix and all(map(str.isdecimal, halves))):
        problem = f"the decimals of {value!r} {unit} cannot be told from another field"
        todo = "call perf with LC_ALL=C or with another separator"
        raise CaptureError(raw.path, f"{problem}; {todo}", where=str(number))
    return prefix[:-1], f"{prefix[-1]}.{value}"


def _check_clock(raw: RawFile, row: perf_row.Row, run_time_ns: int) -> None:
    """Refuse a clock that does not agree with the run time beside it."""
    if row.value is None or row.unit != "msec":
        return
    if abs(row.value * 1e6 - run_time_ns) > 0.01 * run_time_ns + 1e4:
        problem = f"{row.value} msec is not the run time of {run_time_ns} ns"
        raise CaptureError(raw.path, problem, where=str(row.line))


def _prefix(fields: Sequence[str]) -> tuple[float | None, dict[str, str]]:
    """Return the end of the interval, and the part of the machine."""
    told = [field for field in fields if field]
    time_s = _number(told.pop(0)) if told and _TIME.fullmatch(told[0]) else None
    return time_s, perf_row.aggregate(told[0]) if told else {}


def _number(text: str) -> float:
    return float(text.replace(",", "."))
