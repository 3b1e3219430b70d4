"""The text of ``perf stat``, in the numbers of any locale."""

import re
from dataclasses import dataclass
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import perf_row
from patchstudy.loaders.text import lines
from patchstudy.records import RawFile

TITLE: Final = re.compile(
    r"\s*Performance counter stats for (?P<target>.+?)(?: \((?P<runs>\d+) runs\))?:\s*"
)
INTERVALS: Final = re.compile(r"#\s+time\s.*\bcounts\s+(?:unit\s+)?events\s*")

#: Old French locales part groups of digits with a plain blank.
_DIGITS: Final = r"(?:\d{1,3}(?: \d{3}){1,6}(?:,\d+)?|\d[\d.,'’\u00a0\u202f]*+)"
_ROW = re.compile(
    rf"(?P<prefix>.*?)(?<!\S)(?P<value>{_DIGITS}|<not supported>|<not counted>)"
    r"(?: (?P<unit>[^\W\d]\S*))?\s+(?P<event>[^\W\d]\S*)"
    r"(?:\s+(?P<cgroup>[^\s#]\S*))?\s*"
)
_TIME = re.compile(r"\s*(\d+[.,]\d{9})(?!\S)(.*)")
_FOOTER = re.compile(
    rf"\s*(?P<value>{_DIGITS})(?:\s+\+-\s+(?P<spread>{_DIGITS}))?"
    r" seconds (?P<what>time elapsed|user|sys)\b.*"
)
_SPREAD = re.compile(r"\( ?\+-\s*([\d.,]+)%\s*\)")
_RUNNING = re.compile(r"[(\[]\s*(\d+[.,]\d+)%\s*[)\]]")
#: What stands behind a row; a run of blanks is looked at once, from its beginning.
_REST = re.compile(r"\s\(msec\).*|(?<!\s)\s++(?:#\s|\( ?\+-|[(\[]\s*+\d++[.,]\d++%).*")
_TABLE = re.compile(rf"\s*{_DIGITS} \([+-]{_DIGITS}\).*")
_NUMBERED = re.compile(r"\s*(?:\d|<not )")
#: Where the decimal mark is beyond doubt: numbers with more than three decimals, or
#: with three that perf never groups, milliseconds with two, a group before decimals.
#: The time in front of an interval has a point in every locale and tells nothing.
_MARKS = (
    re.compile(
        r"^[^\S\n]*+\d++([.,])\d{4,}+(?: \+- \S+)? seconds time elapsed", re.MULTILINE
    ),
    re.compile(r"\d([.,])\d\d msec "),
    re.compile(r"#\s+\d+([.,])\d{3}\s"),
    re.compile(r"(?<!\S)\d{1,3}[.,'’\u202f]\d{3}([.,])\d\d (?=[^\W\d])"),
    re.compile(r"[(\[] *\d+([.,])\d\d%[)\]]"),
)
#: Where a mark parts groups of digits: two of them in one number.
_GROUPED = re.compile(r"(?<!\S)\d{1,3}([.,])\d{3}\1\d{3}(?!\S)")
_FACTS: Final = {"time elapsed": "elapsed_s", "user": "user_s", "sys": "sys_s"}


@dataclass(slots=True)
class _State:
    """Where in the file the reader is; ``cut`` is a last line without its end."""

    output: perf_row.Output
    mark: str | None
    cut: int | None
    report: int = 0
    intervals: bool = False
    active: bool = False


def output(raw: RawFile) -> perf_row.Output:
    """Return the rows below each title; what a program printed above is left out.

    Raises
    ------
    CaptureError
        If a number can be read in two ways.
    """
    told = lines(raw)
    cut = None if raw.text.endswith("\n") else told[-1][0]
    state = _State(output=perf_row.Output(), mark=_mark(raw.text), cut=cut)
    for number, line in told:
        _line(raw, state, number, line)
    state.output.cut = state.active and not state.intervals
    return state.output


def _mark(text: str) -> str | None:
    """Return the decimal mark; None where nothing tells it."""
    found = (pattern.search(text) for pattern in _MARKS)
    mark = next((match[1] for match in found if match), None)
    if mark is None and (grouped := _GROUPED.search(text)):
        return "," if grouped[1] == "." else "."
    return mark


def _line(raw: RawFile, state: _State, number: int, line: str) -> None:
    """Read one line into the state."""
    title, footer = TITLE.fullmatch(line), _FOOTER.fullmatch(line)
    if title:
        _begin(state, title)
    elif INTERVALS.fullmatch(line):
        state.intervals, state.active = True, True
        state.report = 1
    elif footer:
        state.active = False
        _footer(raw, state, number, footer)
    elif state.active:
        _counted(raw, state, number, line)


def _begin(state: _State, title: re.Match[str]) -> None:
    """Start a report; one behind intervals is their summary."""
    state.report += 0 if state.intervals else 1
    state.intervals, state.active = False, True
    state.output.facts.setdefault("target", title["target"].strip())
    if title["runs"]:
        state.output.facts["runs"] = int(title["runs"])


def _footer(raw: RawFile, state: _State, number: int, match: re.Match[str]) -> None:
    """Read a time below the rows; of several reports only the rows are told."""
    name = _FACTS[match["what"]]
    if state.report > 1:
        state.output.facts.pop(name, None)
        return
    place = (raw, str(number), state.mark)
    state.output.facts[name] = _number(match["value"], *place)
    if match["spread"]:
        spread = _number(match["spread"], *place)
        state.output.facts[name.replace("_s", "_spread_s")] = spread


def _counted(raw: RawFile, state: _State, number: int, line: str) -> None:
    """Read a row; remember one that looks like a row and is none."""
    time = _TIME.fullmatch(line) if state.intervals else None
    if state.intervals and time is None:
        return
    told = _REST.sub("", time[2] if time else line)
    match = _ROW.fullmatch(told)
    if match is None or number == state.cut:
        if _NUMBERED.match(told) and not _TABLE.fullmatch(line):
            state.output.skipped.append(number)
        return
    place = (raw, str(number), state.mark)
    value, absent = match["value"], match["value"] in perf_row.ABSENT
    spread, running = _SPREAD.search(line), _RUNNING.search(line)
    row = perf_row.Row(
        line=number,
        event=match["event"],
        unit=match["unit"] or "",
        value=None if absent else _number(value, *place),
        absent=value if absent else "",
        labels=_labels(match),
        time_s=float(time[1].replace(",", ".")) if time else None,
        running=_number(running[1], *place) if running else None,
        spread=_number(spread[1], *place) if spread else None,
        report=state.report,
    )
    state.output.rows.append(row)


def _labels(match: re.Match[str]) -> dict[str, str]:
    """Return the part of the machine, without the number of CPUs behind it."""
    words = match["prefix"].split()
    if len(words) > 1 and words[-1].isdecimal():
        words = words[:-1]
    cgroup = {"cgroup": match["cgroup"]} if match["cgroup"] else {}
    return {**perf_row.aggregate(" ".join(words)), **cgroup}


def _number(text: str, raw: RawFile, where: str, mark: str | None) -> float:
    """Return a number; digits in groups are joined, the decimal mark is a point."""
    if text.isdecimal():
        return float(text)
    if mark is None and ("." in text or "," in text):
        problem = f"{text!r} can be read in two ways; call perf with LC_ALL=C"
        raise CaptureError(raw.path, problem, where=where)
    whole, point, decimals = text.partition(mark or "\0")
    groups = re.split(r"[^\d]", whole)
    grouped = all(2 <= len(group) <= 3 for group in groups[1:])
    if not grouped or not 1 <= len(groups[0]) <= (3 if len(groups) > 1 else 20):
        raise CaptureError(raw.path, f"{text!r} is not a number", where=where)
    if point and not decimals.isdecimal():
        raise CaptureError(raw.path, f"{text!r} is not a number", where=where)
    return float(f"{''.join(groups)}.{decimals or 0}")
