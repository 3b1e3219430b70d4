"""Calls and their costs, by drivers' counters, probes and tracers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from patchstudy import calls
from patchstudy.records import Capture, Measurement
from patchstudy.study import Source, open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
"""
STATS = """\
variant {variant}
timer_pair_ns_x1000 180000
alloc_count {count}
alloc_ns {time}
{bins}"""


@pytest.fixture
def study(write_study):
    """Return a study: the driver's calls cost 3450 and 450 ns in two runs of each."""
    files = {}
    for variant, cost, edge in (("baseline", 3450, 2048), ("patched", 450, 256)):
        for run in (1, 2):
            folder = f"d/{variant}/boot-{run}/run-1"
            files[f"{folder}/t.tmi_stats.before.txt"] = STATS.format(
                variant=variant, count=0, time=0, bins=""
            )
            files[f"{folder}/t.tmi_stats.after.txt"] = STATS.format(
                variant=variant,
                count=1000,
                time=1000 * (cost + run),
                bins=f"hist_ns_{edge} pool 900 direct 100\n",
            )
        files[f"d/{variant}/boot-9/profile-1/t.folded.txt"] = "m;f 1\nm;g 1\n"
    return open_study(write_study(DESIGN, (), files))


def traced(study, **by_variant):
    """Return the study with measurements of a tracer in its profile runs."""
    runs = []
    for run in study.runs:
        found = () if run.measuring else by_variant.get(run.variant, ())
        made = tuple(
            Measurement(metric=name, value=value, labels=labels)
            for name, value, labels in found
        )
        capture = Capture(path=Path("x"), sha256="", tool="ftrace", measurements=made)
        more = (Source(place="", capture=capture),) if made else ()
        runs.append(replace(run, sources=(*run.sources, *more)))
    return replace(study, runs=tuple(runs))


def test_a_drivers_counters_give_calls_and_their_mean_time(study):
    (one,) = calls.costs(calls.calls(study), study).to_dict("records")
    assert (one["function"], one["tool"]) == ("alloc", "driver's counters")
    assert (one["runs_baseline"], one["calls_patched"]) == (2, 1000)
    assert one["cost_baseline"] == pytest.approx(3451.5e-9, rel=1e-6)
    assert one["ratio"] == pytest.approx(451.5 / 3451.5, rel=1e-4)
    assert one["ratio_low"] < one["ratio"] < one["ratio_high"]
    assert np.isnan(one["per_packet_baseline"])


def test_the_clock_has_its_part_in_every_call(study):
    assert calls.clocks(study) == {"d": pytest.approx(180e-9)}
    found = calls.costs(calls.calls(study), study)
    (note,) = calls.tracer_notes(found, calls.clocks(study))
    assert note == (
        "d, alloc: 180 ns of every call by the driver's counters are the two readings "
        "of its clock."
    )


def test_a_tracer_that_hides_the_ratio_is_named(study):
    study = traced(
        study,
        baseline=[("calls:tmi_alloc", 10, {}), ("call_time:tmi_alloc", 5.86e-6, {})],
        patched=[("calls:tmi_alloc", 10, {}), ("call_time:tmi_alloc", 2.93e-6, {})],
    )
    found = calls.costs(calls.calls(study), study)
    *_, note = calls.tracer_notes(found, {})
    assert note == (
        "tmi_alloc takes 5.86 us and 2.93 us a call by ftrace in the profile runs "
        "(ratio 0.50), 3.45 us and 451 ns by the driver's own counters in the measured "
        "runs (ratio 0.13): the tracer adds some 2.44 us to every call and hides the "
        "ratio."
    )


def test_who_calls_is_told_by_task(study):
    study = traced(
        study,
        baseline=[
            ("calls:tmi_direct", 90, {"thread": "ksoftirqd/0"}),
            ("calls:tmi_direct", 10, {"thread": "iperf3"}),
        ],
        patched=[("calls:tmi_direct", 50, {"thread": "kworker/u3:1"})],
    )
    table = calls.by_task(calls.calls(study), study).set_index("task")
    assert table["baseline"].to_dict() == {
        "iperf3": 0.1,
        "ksoftirqd": 0.9,
        "kworker": 0.0,
    }
    assert table["patched"].to_dict() == {"iperf3": 0, "ksoftirqd": 0, "kworker": 1}


def test_a_probe_is_named_by_the_function_that_it_watches(study):
    probe = [("event:kprobe_hits", 32965, {"probe": "lab_pe"})]
    study = traced(study, baseline=probe, patched=probe)
    runs = [
        replace(
            run,
            sources=tuple(
                replace(x, capture=replace(x.capture, tool="kprobe_profile"))
                if x.capture.tool == "ftrace"
                else x
                for x in run.sources
            ),
        )
        for run in study.runs
    ]
    watched = [("calls:pskb_expand_head", 24, {"probe": "lab_pe"})]
    study = traced(replace(study, runs=tuple(runs)), baseline=watched, patched=watched)
    table = calls.calls(study)
    found = table[table["tool"] == "kprobe_profile"]
    assert found["function"].unique().tolist() == ["pskb_expand_head"]
    assert found["calls"].unique().tolist() == [32965]


def test_counts_of_an_excerpt_are_left_out(study):
    study = traced(study, baseline=[("calls:f", 24, {})], patched=[("calls:f", 2, {})])
    runs = [
        replace(
            run,
            sources=tuple(
                replace(
                    x,
                    capture=replace(
                        x.capture, facts={"entries_in_buffer": 67087, "events": 48}
                    ),
                )
                if x.capture.tool == "ftrace"
                else x
                for x in run.sources
            ),
        )
        for run in study.runs
    ]
    table = calls.calls(replace(study, runs=tuple(runs)))
    assert set(table["function"]) == {"alloc"}


def test_allocations_by_call_site_are_calls_and_those_that_are_gone_are_none(study):
    labels = {"call_site": "copy", "event": "kmalloc"}
    other = {"call_site": "send", "event": "kmalloc"}
    study = traced(
        study,
        baseline=[("alloc_count", 101, labels), ("alloc_count", 100, other)],
        patched=[("alloc_count", 100, other)],
    )
    found = calls.costs(calls.calls(study), study).set_index("function")
    one = found.loc["kmalloc in copy"]
    assert (one["calls_baseline"], one["calls_patched"]) == (101, 0)
    assert found.loc["kmalloc in send", "calls_patched"] == 100


def test_without_calls_there_are_no_rows(made):
    study = open_study(made())
    table = calls.calls(study)
    assert table.empty
    assert calls.costs(table, study).empty
    assert calls.by_task(table, study).empty
    assert isinstance(table, pd.DataFrame)


def test_a_hist_trigger_tells_who_calls(study):
    found = (
        ("event:hist_hits", 42640, {}),
        ("event:hist_hits", 39344, {"common_pid": "ksoftirqd/0"}),
        ("event:hist_hits", 3296, {"common_pid": "iperf3"}),
    )
    moved = (
        ("event:hist_hits", 40114, {}),
        ("event:hist_hits", 40114, {"common_pid": "kworker/u3:1"}),
    )
    study = traced(study, baseline=found, patched=moved)
    runs = [
        replace(
            run,
            sources=tuple(
                replace(
                    x, place="lab_direct", capture=replace(x.capture, tool="trace_hist")
                )
                if x.capture.tool == "ftrace"
                else x
                for x in run.sources
            ),
        )
        for run in study.runs
    ]
    table = calls.calls(replace(study, runs=tuple(runs)))
    tasks = calls.by_task(table, study).set_index("task")
    assert tasks["function"].unique().tolist() == ["lab_direct"]
    assert tasks.loc["ksoftirqd", "baseline"] == pytest.approx(39344 / 42640)
    assert tasks["patched"].to_dict() == {"iperf3": 0, "ksoftirqd": 0, "kworker": 1}
