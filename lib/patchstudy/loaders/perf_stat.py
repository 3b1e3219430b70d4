"""Read ``perf stat``: text, fields (``-x``) or JSON lines (``-j``), of any locale.

tools/perf/util/stat-display.c of Linux. A count is ``event:<name>``, the name as
printed with its modifiers, in the unit that perf prints (facts ``units``; none for a
plain count). Clocks are msec whatever the version: some print nanoseconds without a
unit. perf has already scaled a count that was
multiplexed to the whole time; a caveat tells that it is an estimate. ``<not counted>``
and ``<not supported>`` are absent, never 0.

- ``-I``: each row is an interval; the value of the whole run is that of ``--summary``,
  else their sum, absent where one of them is.
- ``-A``, ``--per-socket``, ``--per-thread`` and others: a value for each part, with the
  label ``cpu``, ``socket``, ``thread``; without labels, their sum.
- ``-r``: the mean over ``runs``; facts ``spread_percent`` have the ``+-`` of each.
- ``--append``: several reports, told apart by the label ``report``.

Metrics (the column behind ``#``) can be worked out from counts and are not read. The
date in the first line has no zone, so when perf started is not known in UTC.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from patchstudy.errors import CaptureError
from patchstudy.loaders import perf_csv, perf_json, perf_row, perf_text
from patchstudy.loaders.text import head_lines, line_end
from patchstudy.records import Capture, Caveat, Measurement, RawFile, Severity

#: Where in a file each metric comes from, as ``patchstudy load --explain`` prints it.
SOURCES: Final = {
    "event:*": (
        "the count of the row <name> (JSON: counter-value), already scaled by "
        "perf; the run with -I: the rows of --summary, else the sum of the "
        "intervals"
    ),
}
_FAILED = re.compile(
    r"event syntax error: .*|Workload failed: .*|Events (?:dis|en)abled"
    r"|perf_event_attr:"
)
_ADDED: Final = {"", "msec", "Joules", "MiB"}

_Key = tuple[str, tuple[tuple[str, str], ...]]


def sniff(raw: RawFile) -> bool:
    """Say whether it is one of the three forms, or what perf prints when it fails."""
    top = head_lines(raw)
    if not top:
        return False
    known = (perf_text.TITLE, perf_text.INTERVALS, perf_row.STARTED)
    if _FAILED.fullmatch(top[0]) or perf_row.STARTED.fullmatch(top[0]):
        return True
    if any(pattern.fullmatch(line) for line in top for pattern in known):
        return True
    return perf_json.fits(raw) or perf_csv.fits(raw)


def load(raw: RawFile) -> Capture:
    """Read every count."""
    output = _output(raw)
    if not output.rows:
        raise CaptureError(raw.path, _nothing(raw))
    rows = _told_apart(output.rows)
    version = output.facts.pop("version", None)
    elapsed = output.facts.get("elapsed_s")
    duration = {"duration_s": elapsed} if isinstance(elapsed, float) else {}
    return Capture(
        path=raw.path,
        sha256=raw.digest,
        tool="perf_stat",
        tool_version=version if isinstance(version, str) else None,
        workload=duration,
        measurements=(*_intervals(rows), *_whole_run(rows)),
        facts=_facts(raw, output),
        caveats=(*_caveats(output), *line_end(raw)),
    )


def _output(raw: RawFile) -> perf_row.Output:
    if perf_json.fits(raw):
        return perf_json.output(raw)
    return perf_csv.output(raw) if perf_csv.fits(raw) else perf_text.output(raw)


def _nothing(raw: RawFile) -> str:
    """Return what stands in a file without a count."""
    top = [line.strip() for line in head_lines(raw) if not line.startswith("#")]
    told = f"only {top[0][:60]!r}" if top else "nothing below the date"
    return f"holds no counter rows, {told}; did perf fail, or print metrics only?"


def _told_apart(rows: Sequence[perf_row.Row]) -> list[perf_row.Row]:
    """Label the reports of a file, and an event that stands twice in one of them."""
    several = max(row.report for row in rows) > 1
    seen: Counter[object] = Counter()
    for row in rows:
        key = (row.report, row.time_s, _key(row))
        seen[key] += 1
        report = {"report": str(row.report)} if several else {}
        repeat = {"repeat": str(seen[key])} if seen[key] > 1 else {}
        row.labels = {**row.labels, **report, **repeat}
    return list(rows)


def _key(row: perf_row.Row) -> _Key:
    return row.event, tuple(sorted(row.labels.items()))


def _intervals(rows: Sequence[perf_row.Row]) -> Iterator[Measurement]:
    """Yield the counts of each interval; it begins where the one before ended."""
    ends = sorted({row.time_s for row in rows if row.time_s is not None})
    starts = dict(zip(ends, [0.0, *ends], strict=False))
    for row in rows:
        if row.time_s is not None and row.value is not None:
            yield Measurement(
                metric=f"event:{row.event}",
                value=row.value,
                start_s=starts[row.time_s],
                end_s=row.time_s,
                labels=row.labels,
            )


def _whole_run(rows: Sequence[perf_row.Row]) -> Iterator[Measurement]:
    """Yield the count of every event in every part, then the sums over the parts."""
    sums = _sums([row for row in rows if row.time_s is None] or rows)
    parts: defaultdict[_Key, list[float | None]] = defaultdict(list)
    units = {row.event: row.unit for row in rows}
    for (event, labels), value in sums.items():
        kept = tuple(one for one in labels if one[0] in {"report", "cgroup"})
        if kept != labels and "repeat" not in dict(labels):
            parts[event, kept].append(value)
        if value is not None:
            yield Measurement(metric=f"event:{event}", value=value, labels=dict(labels))
    for (event, labels), values in parts.items():
        total = _sum(values) if units[event] in _ADDED else None
        if total is not None:
            yield Measurement(metric=f"event:{event}", value=total, labels=dict(labels))


def _sums(rows: Sequence[perf_row.Row]) -> dict[_Key, float | None]:
    """Return the sum over the intervals; None where a count is absent in one."""
    values: defaultdict[_Key, list[float | None]] = defaultdict(list)
    for row in rows:
        values[_key(row)].append(row.value)
    return {key: _sum(parts) for key, parts in values.items()}


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum; None where one of the values is."""
    told = [value for value in values if value is not None]
    return round(sum(told), 9) if len(told) == len(values) else None


def _facts(raw: RawFile, output: perf_row.Output) -> dict[str, object]:
    """Return what the file says beside the counts."""
    started = perf_row.STARTED.match(raw.head)
    when = {"started_local": started[1].strip()} if started else {}
    units = {row.event: row.unit for row in output.rows if row.unit}
    spread = {
        " ".join([row.event, *row.labels.values()]): row.spread
        for row in output.rows
        if row.spread is not None
    }
    return {
        **when,
        **output.facts,
        **({"units": units} if units else {}),
        **({"spread_percent": spread} if spread else {}),
    }


def _caveats(output: perf_row.Output) -> Iterator[Caveat]:
    """Yield what is absent or estimated."""
    rows = output.rows
    for told in sorted(perf_row.ABSENT):
        events = dict.fromkeys(row.event for row in rows if row.absent == told)
        if events:
            code = told.strip("<>").replace(" ", "-")
            yield _note(code, f"perf printed {told} for: {', '.join(events)}")
    shared = [row for row in rows if row.running is not None and row.running < 100]
    counted = [row for row in shared if row.value is not None]
    if counted:
        least = min(counted, key=lambda row: row.running or 0.0)
        yield Caveat(
            code="multiplexed",
            severity=Severity.DOUBT,
            text=f"counters were shared: {least.event} was counted {least.running:g} %"
            " of the time and scaled up; such counts are estimates",
            todo="Count fewer events at a time.",
        )
    if output.cut or _last_is_short(rows):
        yield Caveat(
            code="cut-short",
            severity=Severity.DOUBT,
            text="the end of the report or of its last interval is missing",
            todo="Compare the file with the original.",
        )
    if max(row.report for row in rows) > 1:
        yield _note("several-reports", "several reports in one file; see label report")
    if output.skipped:
        where = ", ".join(map(str, output.skipped[:5]))
        yield _note("unread-lines", f"lines that are no counts were left out: {where}")


def _last_is_short(rows: Sequence[perf_row.Row]) -> bool:
    """Say whether the last interval lacks counts that the first one has."""
    times = [row.time_s for row in rows if row.time_s is not None] or [None]
    first, last = (
        {_key(row) for row in rows if row.time_s == time}
        for time in (times[0], times[-1])
    )
    return not first <= last


def _note(code: str, text: str) -> Caveat:
    return Caveat(code=code, severity=Severity.NOTE, text=text)
