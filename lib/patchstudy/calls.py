"""How often functions were called, by whom, and what a call cost.

Three sorts of sources say so: counters that a driver keeps itself (``<name>_count`` and
``<name>_ns``), probes (``kprobe_profile``), and tracers (``calls:<function>``,
``call_time:<function>``). A tracer adds its own price to every call that it times: its
times are shown beside those of a driver's counters, never in place of them.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pandas as pd

from patchstudy import stats
from patchstudy.moved import moved
from patchstudy.records import Capture, Measurement
from patchstudy.study import Run, Source, Study

CALL_COLUMNS: Final = (
    "device", "workload", "variant", "purpose", "name", "tool", "function", "task",
    "calls", "time_s", "packets",
)  # fmt: skip
COST_COLUMNS: Final = (
    "device", "workload", "function", "tool", "purpose", "runs_baseline",
    "runs_patched", "calls_baseline", "calls_patched", "per_packet_baseline",
    "per_packet_patched", "cost_baseline", "cost_patched", "ratio", "ratio_low",
    "ratio_high",
)  # fmt: skip
#: Purpose of the runs that measure.
MEASURED: Final = "measured"
#: Functions of one source that are listed at most.
MOST: Final = 12
#: Tracers whose buffer holds a part of a run: their calls are not those of its packets.
_WINDOWS: Final = frozenset({"ftrace", "ftrace_graph", "trace-cmd"})
#: Traces that hold a line for each event, or a row for each kind of it.
_TRACES: Final = frozenset({"ftrace", "trace-cmd", "trace_hist", "dropwatch"})
#: Caveats of traces that lost some of what they count.
_HOLES: Final = frozenset({"events-lost", "rows-missing", "cut-short"})
#: Keys of a hist trigger that name the task.
_TASKS: Final = ("common_pid", "common_pid.execname", "pid", "comm", "common_comm")
_COUNT: Final = re.compile(r"event:(\w+)_count")


def calls(study: Study) -> pd.DataFrame:
    """One row per run, source, function and task.

    Returns
    -------
    pandas.DataFrame
        Columns ``CALL_COLUMNS``: ``purpose`` is ``MEASURED`` or that of the profile
        run, since each sort of probe slows in its own way; ``task`` is empty for all
        calls, else the thread that made them, without its number; ``time_s`` their
        total time, NaN where it is not told; ``packets`` what the run moved, NaN where
        not known. Counts of a trace of which only an excerpt is there are left out.
        Allocations by call site are ``"kmalloc in <function>"``; 0 where a whole trace
        has none of it.
    """
    judged = (study.design.baseline, study.design.patched[0])
    rows = [
        {
            "device": run.device,
            "workload": run.workload,
            "variant": run.variant,
            "purpose": MEASURED if run.measuring else run.purpose,
            "name": run.name,
            "packets": np.nan if row["tool"] in _WINDOWS else packets,
            **row,
        }
        for run in study.runs
        if run.variant in judged
        for found in [list(_of_run(run))]
        if found
        for packets in [moved(run).packet or np.nan]
        for row in found
    ]
    table = pd.DataFrame(rows, columns=[*CALL_COLUMNS, "kind"])
    return _with_none(table)[list(CALL_COLUMNS)]


def _with_none(table: pd.DataFrame) -> pd.DataFrame:
    """Add a count of 0 for what one whole trace tells and another does not.

    ``kind`` is what a trace tells everything of (``"kmalloc"``), NaN where it does not.
    """
    group = ["device", "workload", "purpose", "tool", "kind"]
    run = [*group, "variant", "name", "packets"]
    whole = table.dropna(subset=["kind"])
    runs = whole[run].drop_duplicates()
    every = runs.merge(whole[[*group, "function"]].drop_duplicates(), on=group)
    told = pd.MultiIndex.from_frame(whole[[*run, "function"]])
    missing = every[~pd.MultiIndex.from_frame(every[[*run, "function"]]).isin(told)]
    none = missing.assign(task="", calls=0.0, time_s=np.nan)
    return pd.concat([table, none], ignore_index=True) if len(none) else table


def _of_run(run: Run) -> Iterator[dict[str, object]]:
    probed = probed_functions(run)
    for source in run.sources:
        capture = source.capture
        if capture.tool == "counters":
            yield from _of_counters(capture)
        elif capture.tool == "kprobe_profile":
            yield from _of_probes(capture, probed)
        elif capture.tool == "trace_hist":
            yield from _of_trigger(source, probed)
        elif not _excerpt(capture):
            yield from _of_tracer(source)


def probed_functions(run: Run) -> Mapping[str, str]:
    """Which function each probe of a run watches, as far as a trace tells."""
    return {
        one.labels["probe"]: one.metric.removeprefix("calls:")
        for source in run.sources
        for one in source.capture.measurements
        if one.metric.startswith("calls:") and "probe" in one.labels
    }


def whole_trace(capture: Capture) -> bool:
    """Say whether a trace tells every event of the kinds that it was to record."""
    holes = {one.code for one in capture.caveats} & _HOLES
    whole = capture.tool in _TRACES and not capture.error and not holes
    return whole and not _excerpt(capture)


def _excerpt(capture: Capture) -> bool:
    """Say whether a trace holds fewer entries than its own header counts."""
    told, held = (capture.facts.get(key) for key in ("entries_in_buffer", "events"))
    return isinstance(told, int) and isinstance(held, int) and held < told


def _of_counters(capture: Capture) -> Iterator[dict[str, object]]:
    plain = {one.metric: one.value for one in capture.measurements if not one.labels}
    for name, count in plain.items():
        match = _COUNT.fullmatch(name)
        total = match and plain.get(f"event:{match[1]}_ns")
        if match and total is not None and count > 0:
            yield _row("driver's counters", match[1], "", count, total * 1e-9)


def _of_probes(
    capture: Capture, probed: Mapping[str, str]
) -> Iterator[dict[str, object]]:
    for one in capture.measurements:
        if one.metric == "event:kprobe_hits":
            probe = one.labels.get("probe", "")
            function = probed.get(probe, f"probe {probe}")
            yield _row("kprobe_profile", function, "", one.value, math.nan)


def _of_trigger(
    source: Source, probed: Mapping[str, str]
) -> Iterator[dict[str, object]]:
    """Hits of a hist trigger, all and by task; its place names what it watches."""
    function = probed.get(source.place, source.place or "hist trigger")
    for one in source.capture.measurements:
        task = [one.labels[key] for key in _TASKS if key in one.labels]
        if one.metric == "event:hist_hits" and len(one.labels) == len(task) <= 1:
            name = task[0].partition("/")[0] if task else ""
            yield _row("trace_hist", function, name, one.value, math.nan)


def _of_tracer(source: Source) -> Iterator[dict[str, object]]:
    found = source.capture.measurements
    times = {
        one.metric.removeprefix("call_time:"): one.value
        for one in found
        if one.metric.startswith("call_time:") and not one.labels
    }
    for one in found:
        if one.metric.startswith("calls:") and one.start_s is None:
            name = one.metric.removeprefix("calls:")
            task = _task(one)
            if task is not None:
                time = one.value * times.get(name, math.nan) if not task else math.nan
                yield _row(source.capture.tool, name, task, one.value, time)
        elif one.metric == "alloc_count" and one.labels.keys() == {
            "call_site",
            "event",
        }:
            kind = one.labels["event"]
            name = f"{kind} in {one.labels['call_site']}"
            told = kind if whole_trace(source.capture) else math.nan
            row = _row(source.capture.tool, name, "", one.value, math.nan)
            yield {**row, "kind": told}


def _task(one: Measurement) -> str | None:
    """Empty for all calls, the thread of those of one; None for any other part."""
    labels = {key: value for key, value in one.labels.items() if key != "probe"}
    thread = labels.pop("thread", "")
    return thread.partition("/")[0] if not labels else None


def _row(
    tool: str, function: str, task: str, count: float, time_s: float
) -> dict[str, object]:
    return {"tool": tool, "function": function, "task": task, "calls": float(count),
            "time_s": time_s}  # fmt: skip


# ---- both variants side by side -----------------------------------------------------


def costs(table: pd.DataFrame, study: Study) -> pd.DataFrame:
    """One row per function and source that both variants, or one of them, called.

    Parameters
    ----------
    table
        As ``calls`` returns it.

    Returns
    -------
    pandas.DataFrame
        Columns ``COST_COLUMNS``: calls as the mean of the runs, ``per_packet`` over all
        of them, costs in seconds as the mean of the runs, ``ratio`` patched / baseline
        of the costs with its t interval of logs (NaN below two runs of each). At most
        ``MOST`` functions of a source: those whose calls differ most; measured runs
        first, tracers that hold a part of a run last.
    """
    whole = table[table["task"] == ""]
    keys = ["device", "workload", "function", "tool", "purpose"]
    listed = _most_changed(whole, keys, study)
    rows = [
        {**dict(zip(keys, group, strict=True)), **_sides(part, study)}
        for group, part in whole.groupby(keys, sort=True)
        if group in listed
    ]
    found = pd.DataFrame(rows, columns=list(COST_COLUMNS))
    window = found["tool"].isin(_WINDOWS)
    found = found.assign(window=window, profiled=found["purpose"] != MEASURED)
    places = ["device", "workload", "profiled", "window", "purpose", "tool", "function"]
    return found.sort_values(places, ignore_index=True)[list(COST_COLUMNS)]


def _most_changed(
    whole: pd.DataFrame, keys: list[str], study: Study
) -> set[tuple[object, ...]]:
    """Keys of the functions whose mean number of calls a run differs most."""
    judged = (study.design.baseline, study.design.patched[0])
    means = whole.pivot_table(values="calls", index=keys, columns="variant")
    means = means.reindex(columns=judged).fillna(0.0)
    size = (means[judged[1]] - means[judged[0]]).abs()
    ranked = size.sort_values(ascending=False, kind="stable")
    places = [name for name in keys if name != "function"]
    return set(ranked.groupby(places).head(MOST).index)


def _sides(part: pd.DataFrame, study: Study) -> dict[str, object]:
    found: dict[str, object] = {}
    logs = []
    judged = {"baseline": study.design.baseline, "patched": study.design.patched[0]}
    for side, variant in judged.items():
        rows = part[part["variant"] == variant]
        each = (rows["time_s"] / rows["calls"]).dropna()
        each = each[each > 0]
        logs.append(np.log(each))
        known = rows.dropna(subset=["packets"])
        packets = known["packets"].sum()
        found |= {
            f"runs_{side}": len(rows),
            f"calls_{side}": rows["calls"].mean() if len(rows) else np.nan,
            f"per_packet_{side}": known["calls"].sum() / packets if packets else np.nan,
            f"cost_{side}": float(np.exp(logs[-1].mean())) if len(each) else np.nan,
        }
    return {**found, **_ratio(logs, 1 - study.design.alpha)}


def _ratio(logs: list[pd.Series], confidence: float) -> dict[str, float]:
    if not all(map(len, logs)):
        return {"ratio": np.nan, "ratio_low": np.nan, "ratio_high": np.nan}
    if min(map(len, logs)) < 2:
        value = float(np.exp(logs[1].mean() - logs[0].mean()))
        return {"ratio": value, "ratio_low": np.nan, "ratio_high": np.nan}
    one = stats.welch(*logs).interval(confidence)
    return {
        "ratio": math.exp(one.value),
        "ratio_low": math.exp(one.low),
        "ratio_high": math.exp(one.high),
    }


def tracer_notes(found: pd.DataFrame, clocks: Mapping[str, float]) -> Iterator[str]:
    """Yield what a tracer's times hide, where a driver counts the same calls itself.

    Parameters
    ----------
    found
        As ``costs`` returns it.
    clocks
        Device -> seconds that a driver needs to read its clock twice, of every call.
    """
    driver = found["tool"] == "driver's counters"
    own = found[(found["purpose"] == MEASURED) & driver]
    traced = found[(found["purpose"] != MEASURED) & ~driver]
    traced = traced.dropna(subset=["cost_baseline", "cost_patched"])
    for device, rows in own.groupby("device", sort=True):
        if clock := clocks.get(str(device)):
            names = ", ".join(rows["function"].unique())
            yield (
                f"{device}, {names}: {_ns(clock)} of every call by the driver's "
                "counters are the two readings of its clock."
            )
    for _, one in own.dropna(subset=["ratio"]).iterrows():
        here = traced[
            (traced["device"] == one["device"])
            & (traced["workload"] == one["workload"])
        ]
        names = here["function"].tolist()
        same = here[[_same(name, one["function"]) for name in names]]
        for _, other in same.iterrows():
            yield _tracer_note(one, other)


def _same(function: str, counted: str) -> bool:
    """Say whether a function is taken for the calls that a driver counts."""
    name = function.partition(" ")[0]
    return name == counted or name.endswith(f"_{counted}")


def _tracer_note(own: pd.Series, traced: pd.Series) -> str:
    added = [
        traced[f"cost_{side}"] - own[f"cost_{side}"] for side in ("baseline", "patched")
    ]
    words = (
        f"{traced['function']} takes {_ns(traced['cost_baseline'])} and "
        f"{_ns(traced['cost_patched'])} a call by {traced['tool']} in the profile runs "
        f"(ratio {traced['ratio']:.2f}), {_ns(own['cost_baseline'])} and "
        f"{_ns(own['cost_patched'])} by the driver's own counters in the measured runs "
        f"(ratio {own['ratio']:.2f})"
    )
    if min(added) <= 0:
        return f"{words}."
    return (
        f"{words}: the tracer adds some {_ns(sum(added) / 2)} to every call and hides "
        "the ratio."
    )


def clocks(study: Study) -> dict[str, float]:
    """Device -> seconds that its driver needs for two readings of its clock."""
    found: dict[str, float] = {}
    for run in study.runs:
        for source in run.sources:
            value = source.capture.facts.get("timer_pair_ns_x1000")
            if isinstance(value, int) and run.device not in found:
                found[run.device] = value * 1e-12
    return found


def by_task(table: pd.DataFrame, study: Study) -> pd.DataFrame:
    """One row per function, source and task that made calls.

    Parameters
    ----------
    table
        As ``calls`` returns it.

    Returns
    -------
    pandas.DataFrame
        Columns ``device``, ``workload``, ``function``, ``tool``, ``task``,
        ``baseline`` and ``patched``: the part of the calls between 0 and 1; NaN where
        the variant did not call at all.
    """
    names = ["device", "workload", "function", "tool", "task"]
    sides = {study.design.baseline: "baseline", study.design.patched[0]: "patched"}
    tasks = table[table["task"] != ""]
    if tasks.empty:
        return pd.DataFrame(columns=[*names, "baseline", "patched"])
    tasks = tasks.assign(side=tasks["variant"].map(sides))
    wide = tasks.pivot_table(
        values="calls", index=names, columns="side", aggfunc="sum", fill_value=0.0
    ).reindex(columns=["baseline", "patched"], fill_value=0.0)
    totals = wide.groupby(names[:-1]).transform("sum")
    return (wide / totals.where(totals > 0)).reset_index()


def _ns(seconds: float) -> str:
    if seconds >= 9.5e-7:
        return f"{seconds * 1e6:.2f} us"
    return f"{seconds * 1e9:.0f} ns"
