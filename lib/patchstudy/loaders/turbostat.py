"""Read the table of turbostat: frequencies, idle states and power.

What the values are (turbostat.8 and its source). Every column of the summary row (``-``
under Package, Core and CPU, or the only row with ``--Summary``) becomes
``event:<column>`` as printed, in the unit that turbostat gives the column: MHz, %, W,
degrees; counts such as ``IRQ`` are per interval. ``Busy%`` is the share of time in C0
by the processor's own counters; it is no ``cpu_busy``, as polling is C0 too.
``event:Busy%`` and ``event:Bzy_MHz`` come with the label ``cpu`` too.

Of several intervals the mean over them is the value of the whole run. The text does
not tell how long an interval took unless ``Time_Of_Day_Seconds`` is a column: then
intervals are given as well, and the start. Rows are shorter where a column belongs to a
core or package and stands in its first row only; that is never guessed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders.paste import plain, plain_head
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import line_end
from patchstudy.records import Capture, RawFile

_PLACES: Final = ("Package", "Die", "Node", "Core", "CPU", "APIC", "X2APIC")
#: Columns that no other tool has.
_COLUMNS: Final = re.compile(
    r"(?:Avg|Bzy|TSC|Unc|GFX|SAM)\w*MHz|%?Busy%?|(?:CPU|Pkg|Mod)%p?c\d+|(?:Core|CPU|Pkg)Tmp"
    r"|(?:Pkg|Cor|RAM|GFX|Sys)(?:Watt|_J)|(?:PKG|RAM)_%|GFX%rc6|SAM%mc6|Totl%C0|Any%C0"
    r"|GFX%C0|CPUGFX%|LLC%hit|LLCkRPS|CoreThr|CoreCnt|PkgCnt"
)
_COMMON: Final = re.compile(
    r"IRQ|NMI|SMI|IPC|usec|Time_Of_Day_Seconds|POLL[%+-]?|C\d\w*[%+-]?|Die%c6|CPU_LPI|SYS_LPI"
)
_CLOCK: Final = ("Time_Of_Day_Seconds", "usec")
_NUMBER: Final = re.compile(r"-?\d{1,18}(?:\.\d{1,6})?|0x[0-9a-f]+")
_PER_CPU: Final = ("Busy%", "Bzy_MHz")


def sniff(raw: RawFile) -> bool:
    """Say whether a line is turbostat's head."""
    return any(_is_head(line.split()) for line in plain_head(raw))


def load(raw: RawFile) -> Capture:
    """Read the summary of every interval.

    Raises
    ------
    CaptureError
        If there is no summary row, or a value is no number.
    """
    tables = _tables(raw)
    reading = Reading()
    summaries = [one.summary for one in tables]
    for column in summaries[0]:
        values = [one[column] for one in summaries if column in one]
        if column not in _CLOCK and len(values) == len(summaries):
            reading.whole(f"event:{column}", fmean(values))
    _cpus(tables, reading)
    times = [one["Time_Of_Day_Seconds"] for one in summaries if _CLOCK[0] in one]
    started = None
    if len(times) == len(summaries) > 1:
        started = 2 * times[0] - times[1]
        _intervals(summaries, [started, *times], reading)
    else:
        reading.note(
            "clock-unknown", "no column Time_Of_Day_Seconds: no time, no intervals"
        )
    reading.caveats.extend(line_end(raw))
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="turbostat",
        started_at=_moment(started),
        workload={"intervals": len(tables)},
        measurements=tuple(reading.measurements),
        facts={
            "columns": len(summaries[0]) + len(tables[0].places),
            "number_of_cpus": len(tables[0].cpus) or 1,
        },
        caveats=tuple(reading.caveats),
    )


@dataclass(slots=True, kw_only=True)
class _Table:
    """One interval: the summary row and the rows of the CPUs."""

    places: list[str]
    summary: dict[str, float] = field(default_factory=dict)
    cpus: dict[str, dict[str, float]] = field(default_factory=dict)


def _is_head(words: Sequence[str]) -> bool:
    """Say whether the words are columns, with one at least of turbostat alone."""
    own = sum(_COLUMNS.fullmatch(word) is not None for word in words)
    if own > 2:
        return True
    others = (word for word in words if not _COLUMNS.fullmatch(word))
    return bool(own) and all(
        one in _PLACES or _COMMON.fullmatch(one) is not None for one in others
    )


def _tables(raw: RawFile) -> list[_Table]:
    tables: list[_Table] = []
    columns: list[str] = []
    for number, line in plain(raw.text):
        words = line.split("\t") if "\t" in line else line.split()
        words = [word.strip() for word in words]
        if _is_head(words):
            columns = words
            tables.append(_Table(places=[one for one in words if one in _PLACES]))
        elif columns and line.strip() and _is_row(words):
            _row(raw, tables, dict(zip(columns, words, strict=False)), str(number))
        elif columns and line.strip():
            problem = f"{line.strip()!r} is no row of turbostat"
            raise CaptureError(raw.path, problem, where=str(number))
    told = [one for one in tables if one.summary]
    if not told:
        raise CaptureError(raw.path, "turbostat's summary row is missing; cut short?")
    return told


def _is_row(words: Sequence[str]) -> bool:
    return words[0] == "-" or bool(_NUMBER.fullmatch(words[0]))


def _row(
    raw: RawFile, tables: list[_Table], told: Mapping[str, str], where: str
) -> None:
    """Take in a row; one without a CPU, or the first with ``-``, is the summary."""
    table = tables[-1]
    place = [told.get(name, "-") for name in table.places]
    values: dict[str, float] = {}
    for column, text in told.items():
        if column in table.places or text in {"", "-"}:
            continue
        if not column:
            raise CaptureError(raw.path, f"{text!r} has no column name", where=where)
        if not _NUMBER.fullmatch(text):
            problem = f"{text!r} under {column} is not a number with a decimal point"
            raise CaptureError(raw.path, problem, where=where)
        values[column] = float(int(text, 16)) if text[:2] == "0x" else float(text)
    if all(one == "-" for one in place):
        if table.summary:  # intervals without their own head (--Summary)
            table = _Table(places=table.places)
            tables.append(table)
        table.summary = values
    else:
        table.cpus[told.get("CPU", place[-1])] = values


def _cpus(tables: Sequence[_Table], reading: Reading) -> None:
    for cpu in tables[0].cpus:
        for column in _PER_CPU:
            values = [
                one.cpus[cpu][column]
                for one in tables
                if column in one.cpus.get(cpu, {})
            ]
            if len(values) == len(tables):
                reading.whole(f"event:{column}", fmean(values), {"cpu": cpu})


def _intervals(
    summaries: Sequence[Mapping[str, float]], times: Sequence[float], reading: Reading
) -> None:
    spans = list(pairwise(one - times[0] for one in times))
    for summary, span in zip(summaries, spans, strict=True):
        for column, value in summary.items():
            if column not in _CLOCK:
                reading.interval(f"event:{column}", value, span)


def _moment(seconds: float | None) -> str | None:
    if seconds is None or not 1e9 < seconds < 2**36:
        return None
    return datetime.fromtimestamp(int(seconds), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
