"""Read ``perf report --stdio``: the share of every symbol, alone and with its callees.

``profile_share:<symbol>`` with the label ``share``: ``self`` (columns Self, or Overhead
where there is no Children) or ``inclusive`` (Children), as printed, with two digits,
summed over threads and objects, and the label ``event``. A table
without symbols is named by its other columns. Exposure is the number of samples, where
a column has it: ``Samples: 2K`` is rounded and not used.

What a report hides is a caveat: rows below ``--percent-limit`` are not there, so a
symbol that is absent may have any share below it; percentages may be of a part only.
Call graphs are not read; ``perf script`` has the stacks. ``-q`` leaves out the names
of the columns, ``--stats``, ``--tasks`` and ``--mmaps`` have other tables: refused.
"""

import re
from collections.abc import Iterator
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import perf_table
from patchstudy.loaders.perf_table import Section, percents, symbol
from patchstudy.loaders.reading import Reading
from patchstudy.loaders.text import head_lines, line_end
from patchstudy.records import Capture, RawFile

_NUMBERS: Final = frozenset(
    {"Overhead", "Children", "Self", "Samples", "Period", "sys", "usr", "Pid:Command"}
)
_PLACES: Final = frozenset({"Command", "Shared Object", "CPU", "Tid"})
_RESOLUTION: Final = 1e-4
#: More samples than any kernel counts (u64).
_MOST_SAMPLES: Final = 2**64
_QUIET: Final = re.compile(r"\s+\d+\.\d\d%  (?:\s*\d+\.\d\d%  )?.*\[[.kguH]\] \S.*")
_OTHERS: Final = re.compile(r"\s*(?:Aggregated stats:|# +pid +tid +ppid +comm)\s*\n")
#: Rounded shares of all rows may add up to a little less than 1.
_ALL: Final = 0.985


def sniff(raw: RawFile) -> bool:
    """Say whether a line names the columns of a report, or it is one without them."""
    if _quiet(raw) or _OTHERS.match(raw.head):
        return True
    told = "# Samples: " in raw.text[:65536]
    return told and perf_table.named(raw, ("Overhead", "Children", "Samples", "Self"))


def load(raw: RawFile) -> Capture:
    """Read the shares of every event."""
    if _OTHERS.match(raw.head):
        problem = "no shares of symbols; call perf report without --stats or --tasks"
        raise CaptureError(raw.path, problem)
    if _quiet(raw):
        problem = (
            "a table without the names of its columns; call perf report without -q"
        )
        raise CaptureError(raw.path, problem)
    out = Reading()
    found = list(perf_table.sections(raw))
    if not any(one.columns for one in found):
        raise CaptureError(raw.path, "a report without a table; was it cut short?")
    for section in found:
        _section(out, section)
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="perf_report",
        measurements=tuple(out.measurements),
        facts={
            "events": [
                {"event": one.event, "count": one.count, "rows": len(one.rows)}
                for one in found
            ],
            "columns": list(next(one.columns for one in found if one.columns)),
        },
        caveats=(*out.caveats, *line_end(raw)),
    )


def _quiet(raw: RawFile) -> bool:
    return _QUIET.fullmatch(next(iter(head_lines(raw)), "")) is not None


def _section(out: Reading, section: Section) -> None:
    """Add the shares of one event, or of each event of a group."""
    events = [section.event]
    if section.event.endswith("}"):
        inner = section.event.partition("{")[2].rstrip(" }")
        events = [one.strip() for one in inner.split(",")]
    own = "Self" if "Self" in section.columns else "Overhead"
    for at, event in enumerate(events):
        for column, kind in ((own, "self"), ("Children", "inclusive")):
            shares: dict[str, float] = {}
            for name, cell in _cells(section, column):
                values = percents(cell)
                if len(values) > at:
                    shares[name] = shares.get(name, 0.0) + values[at]
            samples = _samples(section) if len(events) == 1 else None
            _shares(out, shares, {"share": kind, "event": event}, samples)
    _doubts(out, section, own)


def _cells(section: Section, column: str) -> Iterator[tuple[str, str]]:
    """Yield the name of every row and its cell of a column."""
    nested = next((one for one in section.columns if " / " in one), "")
    others = [one for one in section.columns if one not in _NUMBERS]
    for row in section.rows:
        name = section.cell(row, nested or "Symbol")
        if nested and not name.startswith(("[k] ", "[.] ")):
            continue
        if not name:
            name = " ".join(section.cell(row, one) for one in others)
        if column in section.columns:
            yield symbol(name), section.cell(row, column)


def _samples(section: Section) -> int | None:
    counts = [section.cell(row, "Samples") for row in section.rows]
    if not counts or not all(one.isdigit() for one in counts):
        return None
    total = sum(map(int, counts))
    if total > _MOST_SAMPLES:
        raise OverflowError(f"{len(str(total))} digits of samples")
    return total or None


def _shares(
    out: Reading,
    shares: dict[str, float],
    labels: dict[str, str],
    samples: int | None,
) -> None:
    for name, share in shares.items():
        if not name:
            out.note("no-symbol", "rows without a symbol are left out")
            continue
        out.whole(
            f"profile_share:{name}",
            min(share, 1.0),
            labels,
            exposure=samples,
            resolution=_RESOLUTION,
        )


def _doubts(out: Reading, section: Section, own: str) -> None:
    """Add what the report hides."""
    total = sum((percents(cell) or [0.0])[0] for _name, cell in _cells(section, own))
    if section.rows and total < _ALL:
        text = (
            f"{section.event}: the rows add up to {100 * total:.1f} %; the rest is"
            " below a limit, filtered, or cut, and an absent symbol may be in it"
        )
        todo = "Print without --percent-limit, or give perf script."
        out.doubt("rows-missing", text, todo)
    if section.lost:
        text = f"perf lost {section.lost} samples; shares are of those that are left"
        out.doubt("samples-lost", text, "Record with a lower frequency.")
    if section.rows and _samples(section) is None:
        text = "the number of samples is rounded or absent; print it with -n"
        out.note("samples-rounded", text)
