"""How long calls took, by histograms and by single durations."""

import pytest

from patchstudy import durations
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
[[metrics]]
name = "call_time:named"
role = "mechanism"
"""
RATE = "metric,unit,value\nthroughput,Mbit/s,100\n"
STATS = "timer_pair_ns_x1000 180000\nalloc_count {count}\nalloc_ns {time}\n{bins}"
GRAPH = "# tracer: function_graph\n"
CALL = " 0)   {us:.3f} us    |  {name}();\n"
HIST = """\
@ns:
[512, 1K)             {few} |@@@@                                                |
[1K, 2K)              {many} |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
"""


def trace(**calls):
    """Return a trace of function_graph with so many calls of such a duration."""
    rows = (
        CALL.format(us=us, name=name) * times for name, (us, times) in calls.items()
    )
    return GRAPH + "".join(rows)


@pytest.fixture
def told(write_study):
    """Return the durations of a study with these files in each variant."""

    def of(baseline, patched):
        files = {
            f"d/{variant}/boot-1/{name}": text
            for variant, found in (("baseline", baseline), ("patched", patched))
            for name, text in found.items()
        }
        files["d/baseline/boot-1/run-1/t.x.csv"] = RATE
        return durations.durations(open_study(write_study(DESIGN, (), files)))

    return of


def test_bins_of_a_driver_are_told_by_their_upper_end(told):
    before = STATS.format(count=0, time=0, bins="")
    sides = []
    for edge in (2048, 256):
        bins = f"hist_ns_{edge} pool 900 direct 100\n"
        after = STATS.format(count=1000, time=edge * 1000, bins=bins)
        sides.append(
            {
                f"run-{run}/t.tmi_stats.{when}.txt": text
                for run in (1, 2)
                for when, text in (("before", before), ("after", after))
            }
        )
    table = told(*sides)
    found = table.groupby("variant")[["cost_s", "calls"]].first()
    assert found.loc["baseline"].tolist() == [pytest.approx(4096e-9), 2000]
    assert found.loc["patched"].tolist() == [pytest.approx(512e-9), 2000]
    assert set(table["tool"] + ", " + table["runs"]) == {"driver's counters, measured"}


def test_single_durations_of_function_graph_are_told(told):
    name = "profile-1/t.graph.txt"
    table = told({name: trace(f=(4.1, 12))}, {name: trace(f=(2.9, 11))})
    assert table["function"].unique().tolist() == ["f"]
    assert table["cost_s"].tolist() == pytest.approx([4.1e-6, 2.9e-6])
    assert table["calls"].tolist() == [12, 11]
    assert table["runs"].unique().tolist() == ["profile"]


def test_a_histogram_without_a_name_has_that_of_its_file(told):
    name = "profile-1/t.bpftrace.alloc.txt"
    table = told(
        {name: HIST.format(few=1, many=19)}, {name: HIST.format(few=19, many=1)}
    )
    assert table["function"].unique().tolist() == ["alloc"]
    medians = {name: durations.median(one) for name, one in table.groupby("variant")}
    assert medians == {
        "baseline": pytest.approx(2048e-9), "patched": pytest.approx(1024e-9),
    }  # fmt: skip


def test_functions_that_the_study_names_come_first_then_those_that_change(told):
    name = "profile-1/t.graph.txt"
    base = {f"f{at}": (10.0, 20) for at in range(6)}
    new = {f"f{at}": (10.0 - at, 20) for at in range(6)}
    few = {"named": (1.0, 2), "unnamed": (100.0, 2)}
    table = told({name: trace(**base, **few)}, {name: trace(**new, **few)})
    assert table["function"].unique().tolist() == ["f3", "f4", "f5", "named"]


def test_a_function_of_one_variant_is_not_drawn(told):
    name = "profile-1/t.graph.txt"
    assert told({name: trace(f=(4.1, 12))}, {name: trace(g=(2.9, 11))}).empty


def test_each_source_says_what_it_hides():
    said = list(durations.hidden(["bpftrace", "ftrace_graph", "bpftrace"]))
    assert len(said) == 2
    assert said[0].startswith("bpftrace: a cost is known to its bucket only")
    assert "short functions look more alike than they are" in said[1]
