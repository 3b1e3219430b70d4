"""How long the calls of a function took, one by one or in the buckets of a histogram.

A driver's own counters tell it of the measured runs; bpftrace, hist triggers and the
function_graph tracer of the profile runs, each with what it adds to every call.
"""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pandas as pd

from patchstudy.records import Durations
from patchstudy.study import Design, Source, Study

COST_COLUMNS: Final = ("device", "workload", "variant", "function", "tool", "runs",
                       "cost_s", "calls")  # fmt: skip
#: What each source of durations hides.
HIDDEN: Final = {
    "driver's counters": (
        "a cost is known to its bin only, whose upper end is twice its lower one; the "
        "readings of the clock are in it"
    ),
    "bpftrace": (
        "a cost is known to its bucket only, so a smaller change than a bucket is wide "
        "does not show; what the probes at both ends of a call add is in it"
    ),
    "trace_hist": (
        "a cost is known to its bucket only, so a smaller change than a bucket is wide "
        "does not show; the two events that it spans are in it"
    ),
    "ftrace_graph": (
        "each duration holds what the tracer adds to the call and to all traced calls "
        "inside it, so short functions look more alike than they are; the calls are "
        "those that the trace holds, not those of the run"
    ),
}
#: Functions of one source that are drawn at most, and calls that each needs.
MOST: Final = 4
ENOUGH: Final = 10
_BIN: Final = re.compile(r"event:hist_ns_(\d{1,12})(?:\.\w+)?")
_PLACES: Final = ["device", "workload", "function", "tool", "runs"]


def durations(study: Study) -> pd.DataFrame:
    """Costs of calls as a histogram, or one by one: one row per bin and variant.

    Returns
    -------
    pandas.DataFrame
        Columns ``COST_COLUMNS``; ``cost_s`` is the upper end of a bin, infinite where
        the last one has none; ``tool`` counted, in the ``runs`` that are ``"measured"``
        or ``"profile"``. Bins of several runs are added up: they are of one function by
        one counter. Only functions of both variants; of a source with many at most
        ``MOST`` with ``ENOUGH`` calls in each variant: those that the study names, then
        those whose median changes most.
    """
    judged = (study.design.baseline, study.design.patched[0])
    rows = [
        {
            "device": run.device,
            "workload": run.workload,
            "variant": run.variant,
            "runs": "measured" if run.measuring else "profile",
            "tool": _tool(source),
            "function": one.function,
            "cost_s": upper_s,
            "calls": calls,
        }
        for run in study.runs
        if run.variant in judged
        for source in run.sources
        for one in _found(source)
        for upper_s, calls in zip(one.upper_s, one.calls, strict=True)
        if calls > 0
    ]
    table = pd.DataFrame(rows, columns=list(COST_COLUMNS)).astype({"cost_s": float})
    keys = [*_PLACES, "variant", "cost_s"]
    summed = table.groupby(keys, as_index=False, sort=True)["calls"].sum()
    ended = summed[np.isfinite(summed["cost_s"])]
    sides = ended.groupby(_PLACES)["variant"].nunique()
    both = sides[sides == 2].reset_index()[_PLACES]
    found = summed.merge(both, on=_PLACES)[list(COST_COLUMNS)]
    return _most_telling(found, study.design)


def _tool(source: Source) -> str:
    tool = source.capture.tool
    return "driver's counters" if tool == "counters" else tool


def _found(source: Source) -> Iterator[Durations]:
    capture = source.capture
    for one in capture.durations:
        # a histogram without a name is named by its file
        name = one.function or source.place or capture.tool
        yield Durations(function=name, upper_s=one.upper_s, calls=one.calls)
    if capture.tool == "counters":
        for one in capture.measurements:
            if match := _BIN.fullmatch(one.metric):
                upper_s = 2 * int(match[1]) * 1e-9
                yield Durations(
                    function="alloc", upper_s=(upper_s,), calls=(int(one.value),)
                )


def _most_telling(table: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Leave out what is too much to look at."""
    named = {one.metric.name.partition(":")[2] for one in design.metrics}
    ranks = [
        {
            **dict(zip(_PLACES, place, strict=True)),
            "named": place[2] in named,
            "change": _change(rows),
            "enough": rows.groupby("variant")["calls"].sum().min() >= ENOUGH,
        }
        for place, rows in table.groupby(_PLACES, sort=True)
    ]
    if not ranks:
        return table.reset_index(drop=True)
    ranked = pd.DataFrame(ranks)
    ranked = ranked[ranked["enough"] | ranked["named"]]
    ranked = ranked.sort_values(["named", "change"], ascending=False, kind="stable")
    source = ["device", "workload", "tool", "runs"]
    first = ranked.groupby(source, sort=False).head(MOST)
    kept = table.merge(first[_PLACES], on=_PLACES)
    order = ["device", "workload", "runs", "tool", "function", "variant", "cost_s"]
    return kept.sort_values(order, ignore_index=True)


def _change(rows: pd.DataFrame) -> float:
    """Size of the change of the median, on the log scale."""
    ends = [median(one) for _, one in rows.groupby("variant")]
    if not all(math.isfinite(end) and end > 0 for end in ends):
        return math.inf
    return float(abs(np.diff(np.log(ends))[0]))


def median(rows: pd.DataFrame) -> float:
    """Cost that half of the calls of one variant and function do not exceed."""
    ordered = rows.sort_values("cost_s", kind="stable")
    reached = ordered["calls"].cumsum() >= ordered["calls"].sum() / 2
    return float(ordered.loc[reached, "cost_s"].iloc[0])


def hidden(tools: Iterable[str]) -> Iterator[str]:
    """Yield what the durations of each of these tools do not show."""
    for tool in dict.fromkeys(tools):
        yield f"{tool}: {HIDDEN[tool]}."
