"""The section "why": profiles, calls and counters beside what was measured.

Profile runs are never pooled with measured runs; where both stand side by side the
words say which is which.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from patchstudy import calls, durations, figures, profiles, reported
from patchstudy.counters import FALSE_SHARE, Counted, Counter
from patchstudy.findings import Assessment
from patchstudy.origins import NOT_TOLD
from patchstudy.report.table import Column, Note, Table, Vector
from patchstudy.sentences import change_in_words as comparison_in_words
from patchstudy.sentences import shared_unit, values_in_words
from patchstudy.study import Role
from patchstudy.units import for_people, significant, with_interval
from patchstudy.verdicts import Finding
from patchstudy.weighing import Explained, change_in_words, part_in_words

Part = Table | Note | Vector

_TOP: Final = 15
#: Counters of one device and workload that the report lists; report.json has all.
_MOST_COUNTERS: Final = 15
_NO_PROFILE: Final = "There is no profile of both variants."


def mechanism(assessment: Assessment) -> tuple[Part, ...]:
    """What is said of the symbols and events that the study names."""
    notes = [
        Note("text", f"{one.device}, {one.workload}: {one.sentence}")
        for one in assessment.explanations
    ]
    measured = [
        one
        for one in assessment.findings
        if one.role is Role.MECHANISM and one.comparison.change is not None
    ]
    rows = tuple(
        (
            _quantity(one),
            f"{one.comparison.question.device}, {one.comparison.question.workload}",
            *values_in_words(one.comparison),
            comparison_in_words(one.comparison),
            one.planned.expect or "-",
        )
        for one in measured
    )
    names = ("Baseline", "Patched", "Change")
    table = Table(
        (*_columns("Metric", "Where"), *_numbers(*names), Column("Expected")),
        rows,
        "The mechanism in the measured runs",
    )
    found = (*notes, *([table] if rows else []))
    return found or (
        Note("empty", "The study names no mechanism that was profiled or measured."),
    )


def _quantity(one: Finding) -> str:
    """The metric with the unit of its values: ``Allocation time [us]``."""
    unit = shared_unit(one.comparison)[1]
    return one.planned.metric.label + (f" [{unit}]" if unit else "")


def explained(assessment: Assessment) -> tuple[Part, ...]:
    """How much of the change the removed cost explains: predicted beside found."""
    if not assessment.explained:
        text = "No symbol is named and no profile was taken: nothing can be predicted."
        return (Note("empty", text),)
    rows = tuple(_explained_row(one) for one in assessment.explained)
    table = Table(
        (
            *_columns("Where", "From"),
            *_numbers("Removed", "Predicted", "Found", "Part"),
            Column("Answer"),
            Column("Rate while profiled"),
        ),
        rows,
        "Predicted beside found. Removed: share of the busy CPU time per packet. Part: "
        "of what had to be removed for the change that was found",
    ).without_blanks()
    notes = [
        Note("text", f"{one.device}, {one.workload}: {one.sentence}")
        for one in assessment.explained
        if one.removed is not None
    ]
    return (*notes, table)


def _explained_row(one: Explained) -> tuple[str, ...]:
    removed = "-"
    if one.removed is not None:
        removed = change_in_words(one.removed).replace("+", "")
    return (
        f"{one.device}, {one.workload}",
        {"profile": "profiles", "calls": "counted calls"}[one.basis],
        removed,
        "-" if one.predicted is None else change_in_words(one.predicted),
        "-" if one.found is None else change_in_words(one.found),
        "-" if one.part is None else part_in_words(one.part),
        str(one.word) + (f" ({'; '.join(one.reasons)})" if one.reasons else ""),
        ", ".join(f"{name} {100 * x:+.0f} %" for name, x in one.slowed.items()) or "-",
    )


# ---- profiles -----------------------------------------------------------------------


def profile(assessment: Assessment) -> tuple[Part, ...]:
    """The symbols whose share changes most, as a figure and as a table."""
    every, alone = assessment.profiled, _reported(assessment)
    if every.empty:
        return alone or (Note("empty", _NO_PROFILE),)
    named = [one.symbol for one in assessment.explanations]
    table = profiles.telling(every, named, _TOP)
    first = table.iloc[0]
    return (
        Vector(
            figures.to_svg(figures.profile_difference(table, top=_TOP)),
            f"Inclusive share of the profile by symbol; {first['symbol']}: "
            f"{100 * first['inclusive_baseline']:.2f} % to "
            f"{100 * first['inclusive_patched']:.2f} %.",
            "Inclusive share of the profile samples of the symbols that the study "
            "names, that are gone or new, or whose self time changes most. Profile "
            "runs are never pooled with measured runs.",
        ),
        _profile_table(table),
        *_new_and_gone(every),
        *alone,
    )


def _reported(assessment: Assessment) -> tuple[Part, ...]:
    """Self shares of perf report, where there are no stacks."""
    named = [
        one.metric.name.partition(":")[2] for one in assessment.study.design.metrics
    ]
    table = reported.telling(assessment.reported, named, _TOP)
    if table.empty:
        return ()
    rows = tuple(
        (
            str(row["symbol"]),
            f"{row['device']}, {row['workload']}",
            _self_share(row, "baseline"),
            _self_share(row, "patched"),
            _self_change(row),
            f"{row['reports_baseline']} and {row['reports_patched']}",
        )
        for row in table.to_dict("records")
    )
    numbers = ("Self, baseline", "patched", "Change", "Reports")
    return (
        Table(
            (*_columns("Symbol", "Where"), *_numbers(*numbers)),
            rows,
            "Self shares by perf report, in percent, without stacks: what a symbol "
            "costs without what it calls; change in points, with its t interval where "
            "there are two reports of each. Not to be held against inclusive shares",
        ),
        Note(
            "text",
            "A symbol that a report does not print may be below its --percent-limit: "
            "its share is then a bound (<), and the change lies between two values. "
            "Print with --percent-limit 0 --sort sym -n, or give perf script.",
        ),
    )


def _self_share(row: Mapping[Any, Any], side: str) -> str:
    if math.isnan(row[side]):
        return f"<{100 * row[f'bound_{side}']:.2f}"
    return f"{100 * row[side]:.2f}"


def _self_change(row: Mapping[Any, Any]) -> str:
    if math.isnan(row["change"]):
        return f"{100 * row['change_low']:+.2f} to {100 * row['change_high']:+.2f}"
    return _points(row)


def _profile_table(table: pd.DataFrame) -> Table:
    shares = ("inclusive_baseline", "inclusive_patched", "self_baseline",
              "self_patched")  # fmt: skip
    rows = tuple(
        (
            str(row["symbol"]),
            f"{row['device']}, {row['workload']}",
            "-" if row["origin"] == NOT_TOLD else str(row["origin"]),
            *(f"{100 * row[name]:.2f}" for name in shares),
            _points(row),
            f"{row['profiles_baseline']} and {row['profiles_patched']}",
        )
        for row in table.to_dict("records")
    )
    names = ("Inclusive, baseline", "patched", "Self, baseline", "patched", "Change")
    return Table(
        (*_columns("Symbol", "Where", "Lies in"), *_numbers(*names, "Profiles")),
        rows,
        "Share of the profile samples in percent; change of the inclusive share in "
        "points, with its t interval where there are two profiles of each",
    ).without_blanks()


def _points(row: Mapping[Any, Any]) -> str:
    value = f"{100 * row['change']:+.2f}"
    if math.isnan(row["change_low"]):
        return value
    return f"{value} [{100 * row['change_low']:+.2f}, {100 * row['change_high']:+.2f}]"


def _new_and_gone(every: pd.DataFrame) -> Iterator[Note]:
    new, gone = profiles.appeared(every)
    for words, names in (("New", new), ("Gone", gone)):
        if names:
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            text = f"{words} in the patched profile, at least 1 % in one of them: "
            yield Note("text", f"{text}{', '.join(names[:8])}{more}.")


def costs(assessment: Assessment) -> tuple[Part, ...]:
    """What the dearest symbols cost in ns per packet, or why that is not known."""
    table = profiles.dearest(assessment.profiled, _TOP)
    notes = tuple(_cost_notes(assessment))
    if table.empty:
        return notes or (Note("empty", _NO_PROFILE),)
    first = table.iloc[0]
    drawn = Vector(
        figures.to_svg(figures.profile_costs(table, top=_TOP)),
        f"Own CPU time per packet by symbol; {first['symbol']}: "
        f"{1e9 * first['self_cost_baseline']:.0f} ns in the baseline, "
        f"{1e9 * first['self_cost_patched']:.0f} ns in the patched variant.",
        "Own (self) CPU time in ns per packet of the symbols that take most of it, in "
        "the profile runs.",
    )
    return (drawn, *notes)


def _cost_notes(assessment: Assessment) -> Iterator[Note]:
    """Say where packets and CPU time come from, or what is missing."""
    said: dict[str, list[str]] = {}
    for cell in profiles.cells(assessment.study):
        for variant, found in cell.profiles.items():
            for one in found:
                cost, words = one.cost
                known = "CPU time per packet: " if cost else "Cost per packet absent: "
                place = f"{cell.device}, {cell.workload}, {variant}"
                said.setdefault(f"{known}{words}", []).append(place)
        if cell.left_out:
            names = ", ".join(cell.left_out)
            text = f"Profiled too, and not added to it: {names}"
            said.setdefault(text, []).append(f"{cell.device}, {cell.workload}")
    for words, places in said.items():
        yield Note("text", f"{words} ({'; '.join(dict.fromkeys(places))}).")


def flame(assessment: Assessment) -> tuple[Part, ...]:
    """The call stacks of both variants in one picture for each device and workload."""
    table = assessment.flamed
    if table.empty:
        return (Note("empty", _NO_PROFILE),)
    named = [one.symbol for one in assessment.explanations]
    return tuple(
        Vector(
            figures.flame(rows, named=named),
            _flame_words(rows, named),
            f"{device}, {workload}: call stacks of both profiles, one above the other. "
            "A frame is as wide as the mean of its two shares; a black frame marks a "
            "symbol that the study names.",
        )
        for (device, workload), rows in table.groupby(["device", "workload"], sort=True)
    )


def _flame_words(rows: pd.DataFrame, named: Sequence[str]) -> str:
    """Say what the picture shows: the named symbols, else the largest change."""
    found = rows[rows["symbol"].isin(named)]
    if found.empty:
        largest = rows["change"].abs().sort_values(ascending=False, kind="stable")
        found = rows.loc[largest.index[:1]]
    sums = found.groupby("symbol", sort=True)[["baseline", "patched"]].sum()
    parts = [
        f"{symbol} {100 * row['baseline']:.1f} % to {100 * row['patched']:.1f} %"
        for symbol, row in sums.iterrows()
    ]
    return f"Differential flame graph; {'; '.join(parts)}."


# ---- calls --------------------------------------------------------------------------


def function_calls(assessment: Assessment) -> tuple[Part, ...]:
    """How often functions were called, by whom, and what a call cost."""
    study = assessment.study
    found = assessment.call_costs
    if found.empty:
        return (Note("empty", "No calls were counted."),)
    notes = [Note("text", x) for x in calls.tracer_notes(found, calls.clocks(study))]
    tasks = calls.by_task(assessment.called, study)
    return (_call_table(found), *notes, *([_task_table(tasks)] if len(tasks) else []))


def _call_table(found: pd.DataFrame) -> Table:
    rows = tuple(
        (
            str(row["function"]),
            f"{row['device']}, {row['workload']}",
            f"{row['tool']}, {row['purpose']} runs",
            _pair(row, "calls", _count),
            _pair(row, "per_packet", lambda x: significant(x, digits=3)),
            _pair(row, "cost", lambda x: for_people(x, "s", digits=3)),
            _ratio(row),
            f"{row['runs_baseline']} and {row['runs_patched']}",
        )
        for row in found.to_dict("records")
    )
    numbers = ("Calls a run", "A packet", "Time of a call", "Ratio", "Runs")
    return Table(
        (*_columns("Function", "Where", "Counted by"), *_numbers(*numbers)),
        rows,
        "Calls and what they cost, baseline and patched; the ratio of the times with "
        "its t interval where there are two runs of each. Runs with a tracer or probes "
        "are slower than measured ones",
    ).without_blanks()


def _pair(row: Mapping[Any, Any], name: str, words: Callable[[float], str]) -> str:
    sides = [row[f"{name}_{side}"] for side in ("baseline", "patched")]
    if all(map(math.isnan, sides)):
        return "-"
    return " to ".join("-" if math.isnan(x) else words(x) for x in sides)


def _ratio(row: Mapping[Any, Any]) -> str:
    if math.isnan(row["ratio"]):
        return "-"
    if math.isnan(row["ratio_low"]):
        return f"{row['ratio']:.3g}"
    ends = with_interval(row["ratio"], row["ratio_low"], row["ratio_high"])
    value, low, high = (one.removeprefix("+") for one in ends)
    return f"{value} [{low}, {high}]"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _task_table(tasks: pd.DataFrame) -> Table:
    rows = tuple(
        (
            str(row["function"]),
            f"{row['device']}, {row['workload']}",
            str(row["tool"]),
            str(row["task"]),
            *(
                "-" if math.isnan(row[side]) else f"{100 * row[side]:.1f} %"
                for side in ("baseline", "patched")
            ),
        )
        for row in tasks.to_dict("records")
    )
    return Table(
        (*_columns("Function", "Where", "Counted by", "Task"),
         *_numbers("Baseline", "Patched")),
        rows,
        "Who calls: share of the calls in the profile runs by task (numbers of threads "
        "left out). ksoftirqd runs what softirqs left over, kworker what was queued",
    )  # fmt: skip


def call_costs(assessment: Assessment) -> tuple[Part, ...]:
    """How the cost of a call is spread."""
    table = assessment.durations
    if table.empty:
        text = "No function has durations of single calls, or a histogram of them."
        return (Note("empty", text),)
    drawn = Vector(
        figures.to_svg(figures.cost_ecdf(table)),
        _spread_words(table),
        "Share of the calls that cost no more than so much. Steps stand at the upper "
        "ends of the bins of a histogram, or at single durations.",
    )
    return (drawn, *(Note("text", one) for one in durations.hidden(table["tool"])))


def _spread_words(table: pd.DataFrame) -> str:
    first = table.iloc[0]
    same = ["device", "workload", "function", "tool", "runs"]
    rows = table[(table[same] == first[same]).all(axis=1)]
    parts = [
        f"half of the {variant} calls cost {_at_most(durations.median(one))}"
        for variant, one in rows.groupby("variant", sort=True)
    ]
    return f"Cost of {first['function']} on {first['workload']}: {'; '.join(parts)}."


def _at_most(seconds: float) -> str:
    if math.isinf(seconds):
        return "more than the last bin but one tells"
    return f"at most {for_people(seconds, 's', digits=3)}"


# ---- counters and CPUs --------------------------------------------------------------


def counters(assessment: Assessment) -> tuple[Part, ...]:
    """Every counter that changed beyond noise; nobody had to declare it."""
    found = assessment.counted
    rows = tuple(
        _counter_row(cell, one) for cell in found for one in _most_telling(cell)
    )
    notes = tuple(_counted_notes(found))
    if not rows:
        return notes or (Note("empty", "No counter was read in both variants."),)
    numbers = ("Baseline", "Patched", "Change of the rate", "p (BH)")
    table = Table(
        (*_columns("Counter", "Where", "From"), *_numbers(*numbers), Column("Sort")),
        rows,
        "Exploratory: counters that differ between the variants, mean of a run; the "
        f"change is per byte or packet moved; p after Benjamini-Hochberg below "
        f"{FALSE_SHARE:g}",
    ).without_blanks()
    return (table, *notes)


def _most_telling(cell: Counted) -> list[Counter]:
    """Costs first, then the largest changes."""
    return sorted(
        cell.changed,
        key=lambda one: (not one.costs, -abs(_log_ratio(one)), one.shown),
    )[:_MOST_COUNTERS]


def _change(ratio: float) -> str:
    """Write a ratio as a change in percent; a large one as it is."""
    percent = 100 * (ratio - 1)
    if percent >= 1000:
        return f"x {ratio:.3g}"
    return f"{percent:+.2f} %" if abs(percent) >= 0.01 else "less than 0.01 %"


def _log_ratio(one: Counter) -> float:
    ratio = one.ratio
    return math.inf if not ratio else math.log(ratio)


def _counter_row(cell: Counted, one: Counter) -> tuple[str, ...]:
    ratio = one.ratio
    return (
        one.shown + (f" (also {len(one.same)} more)" if one.same else ""),
        f"{cell.device}, {cell.workload}",
        " ".join(filter(None, (one.tool, one.place))),
        _reading(one.baseline),
        _reading(one.patched),
        "new" if ratio is None else f"{_change(ratio)} per {one.per}",
        "<0.001" if one.p_adjusted < 0.001 else f"{one.p_adjusted:.3f}",
        "cost, rises" if one.costs else "-",
    )


def _reading(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else significant(value, digits=3)


def _counted_notes(found: Sequence[Counted]) -> Iterator[Note]:
    for cell in found:
        where = f"{cell.device}, {cell.workload}"
        base, new = cell.units
        blocks = f" in {cell.blocks} blocks" if cell.blocks > 1 else ""
        told = (
            f"{where}: {len(cell.changed)} of {cell.looked_at} counters that vary "
            f"differ between the variants ({base} and {new} units{blocks})."
        )
        if not cell.changed and cell.least_p >= FALSE_SHARE:
            told += " So few units cannot show that any of them does."
        left = len(cell.changed) - _MOST_COUNTERS
        if left > 0:
            told += f" {left} more stand in report.json."
        yield Note("text", told)


def cpus(assessment: Assessment) -> Part:
    """The busy share of every CPU in every measured run."""
    runs = assessment.material.runs
    named = [dict(labels).get("cpu", "") for labels in runs["labels"]]
    rows = runs.assign(cpu=named)
    rows = rows[(rows["metric"] == "cpu_busy") & (rows["cpu"] != "")]
    rows = rows.drop_duplicates(["device", "workload", "variant", "name", "cpu"])
    if rows.empty:
        return Note("empty", "No tool tells the load of single CPUs.")
    busiest = rows.groupby(["device", "workload", "cpu"])["value"].median()
    return Vector(
        figures.to_svg(figures.cpu_strip(rows)),
        "Load of every CPU in every run; the busiest is at "
        f"{100 * busiest.max():.0f} % (median).",
        "Busy share of each CPU: a cell is a run, the darker the busier (white is 0 %, "
        "black 100 %); the number is the median.",
    )


def _columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


def _numbers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "right") for name in names)
