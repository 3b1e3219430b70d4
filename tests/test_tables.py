"""Tidy tables: one row is what the function's name says."""

import json
import math

import pytest

from patchstudy.errors import StudyError
from patchstudy.study import open_study
from patchstudy.tables import (
    INTERVAL_COLUMNS,
    RUN_COLUMNS,
    UNIT_COLUMNS,
    per_interval,
    per_run,
    per_unit,
    questions,
    series,
)

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
"""
RUN = "d/{}/boot-{}/run-{}/"


@pytest.fixture
def tables(write_study):
    """Return a function that writes a study and makes its tables."""

    def make(design, rows=(), files=None, name="driver/patch"):
        study = open_study(write_study(design, rows, files, name))
        runs = per_run(study)
        asked = questions(runs, study.design)
        return runs, asked, per_unit(runs, asked)

    return make


def value(runs, metric, **where):
    """Return the values of a metric in the rows that fit."""
    rows = runs[runs["metric"] == metric]
    for column, wanted in where.items():
        rows = rows[rows[column] == wanted]
    return rows["value"].to_list()


def mpstat(idle, cpus=2):
    """Return what mpstat -o JSON prints of one interval."""
    share = {"cpu": "all", "usr": 0.0, "nice": 0.0, "sys": 100 - idle, "iowait": 0.0}
    share |= {"irq": 0.0, "soft": 0.0, "steal": 0.0, "guest": 0.0, "gnice": 0.0}
    statistics = [{"timestamp": "10:00:00", "cpu-load": [share | {"idle": idle}]}]
    host = {"nodename": "n", "sysname": "Linux", "release": "6.1", "machine": "x"}
    host |= {"number-of-cpus": cpus, "date": "11/30/26", "statistics": statistics}
    return json.dumps({"sysstat": {"hosts": [host]}})


def net_dev(packets):
    """Return /proc/net/dev with so many packets received and twice as many sent."""
    counts = f"{packets * 100} {packets} 0 0 0 0 0 0 {packets * 200} {2 * packets} 0 0"
    return (
        "Inter-|   Receive                            |  Transmit\n"
        " face |bytes packets errs drop fifo frame compressed multicast"
        "|bytes packets errs drop fifo colls carrier compressed\n"
        f"  eth0: {counts} 0 0 0 0\n"
    )


def rate(mbit):
    return f"metric,unit,value\nthroughput,Mbit/s,{mbit}\n"


def stamped(path, before, after):
    return {path.format("before"): before, path.format("after"): after}


# ---- grain --------------------------------------------------------------------------


def test_one_row_is_a_run_and_metric(tables, turns):
    rows = [
        *turns([100.0, 101.0], [110.0, 111.0]),
        *turns([2.0, 2.1], [1.9, 2.0], metric="rtt_p50", unit="ms"),
    ]
    runs, _, units = tables(DESIGN, rows)
    assert list(runs) == list(RUN_COLUMNS)
    assert len(runs) == 8
    assert list(units) == list(UNIT_COLUMNS)
    assert len(units) == 8
    assert units.attrs["grain"] == "experimental unit"


def test_values_are_in_base_units(tables, turns):
    rows = turns([100.0], [110.0], exposure="1000", resolution="0.1")
    runs, _, _ = tables(DESIGN, rows)
    assert value(runs, "throughput", variant="baseline") == [100e6]
    assert runs["resolution"].to_list() == pytest.approx([1e5, 1e5])
    assert runs["exposure"].to_list() == [1000, 1000]


def test_runs_are_numbered_in_time(tables, turns):
    runs, _, _ = tables(DESIGN, turns([1.0, 2.0], [3.0, 4.0]))
    ordered = runs.sort_values("order")
    assert ordered["value"].to_list() == [1e6, 3e6, 4e6, 2e6]
    assert ordered["timed"].all()


def test_profile_runs_are_in_no_table(tables):
    files = {RUN.format("baseline", 1, 1) + "t.x.csv": rate(1)}
    files["d/baseline/boot-1/profile-1/t.x.csv"] = rate(99)
    runs, _, _ = tables(DESIGN, (), files)
    assert runs["value"].to_list() == [1e6]


def test_intervals_have_their_own_table(write_study, data):
    raw = next(data.glob("qmi_wwan/same-module/*/baseline/boot-01/*/*.iperf3.json"))
    files = {RUN.format("baseline", 1, 1) + "t.iperf3.json": raw.read_bytes()}
    study = open_study(write_study(DESIGN, (), files))
    intervals, runs = per_interval(study), per_run(study)
    assert list(intervals) == list(INTERVAL_COLUMNS)
    assert len(intervals[intervals["metric"] == "throughput"]) > 1
    assert len(value(runs, "throughput")) == 1


def test_a_run_without_any_number_makes_no_row(tables):
    facts = json.dumps({"workload": "t", "run": 1})
    files = {RUN.format("baseline", 1, 1) + "t.run.json": facts}
    runs, asked, units = tables(DESIGN, (), files)
    assert runs.empty
    assert units.empty
    assert [one.problem for one in asked] == []


# ---- joined within the run ----------------------------------------------------------


def test_packet_rate_is_packets_over_the_elapsed_time(tables):
    path = RUN.format("baseline", 1, 1)
    files = stamped(path + "t.dev.router.{}.txt", net_dev(1000), net_dev(3000))
    files |= stamped(path + "t.uptime.{}.txt", "10.00 0.00\n", "14.00 0.00\n")
    runs, _, _ = tables(DESIGN, (), files)
    rows = runs[runs["metric"] == "packet_rate"]
    pairs = zip(rows["labels"], rows["value"], strict=True)
    found = {dict(labels)["direction"]: number for labels, number in pairs}
    assert found == {"rx": 500.0, "tx": 1000.0}


def test_of_two_clocks_that_of_the_same_machine_counts(tables):
    path = RUN.format("baseline", 1, 1)
    files = stamped(path + "t.dev.router.{}.txt", net_dev(1000), net_dev(3000))
    files |= stamped(path + "t.uptime.client.{}.txt", "10.00 0.00\n", "12.00 0.00\n")
    files |= stamped(path + "t.uptime.router.{}.txt", "10.00 0.00\n", "14.00 0.00\n")
    runs, _, _ = tables(DESIGN, (), files)
    assert sorted(value(runs, "packet_rate")) == [500.0, 1000.0]


def test_cpu_per_byte_is_busy_cpu_seconds_over_payload(tables):
    path = RUN.format("baseline", 1, 1)
    files = {path + "t.x.csv": rate(80), path + "t.mpstat.json": mpstat(idle=75.0)}
    runs, _, _ = tables(DESIGN, (), files)
    # a quarter of two CPUs is half a CPU second a second; 80 Mbit/s are 10 MB/s
    assert value(runs, "cpu_per_byte") == pytest.approx([0.5 / 10e6])


def test_cpu_per_packet_joins_every_interface_and_direction(tables):
    path = RUN.format("baseline", 1, 1)
    files = stamped(path + "t.dev.{}.txt", net_dev(1000), net_dev(3000))
    files |= stamped(path + "t.uptime.{}.txt", "10.00 0.00\n", "14.00 0.00\n")
    files[path + "t.mpstat.json"] = mpstat(idle=50.0)
    runs, _, _ = tables(DESIGN, (), files)
    assert sorted(value(runs, "cpu_per_packet")) == pytest.approx([1 / 1000, 1 / 500])


def test_two_tools_that_watch_one_cpu_give_one_cost(tables):
    path = RUN.format("baseline", 1, 1)
    files = {path + "t.x.csv": rate(80), path + "t.mpstat.json": mpstat(idle=75.0)}
    rows = "cpu  {0} 0 0 {1}\ncpu0 {0} 0 0 {1}\nintr 1\nctxt 1\nbtime 1\nprocesses 1\n"
    files |= stamped(path + "t.stat.{}.txt", rows.format(0, 0), rows.format(50, 50))
    runs, _, _ = tables(DESIGN, (), files)
    assert len(value(runs, "cpu_busy")) >= 2
    assert value(runs, "cpu_per_byte") == pytest.approx([0.5 / 10e6])


def test_cpus_of_two_machines_give_two_costs_that_must_be_chosen(tables):
    files = {}
    for variant in ("baseline", "patched"):
        path = RUN.format(variant, 1, 1)
        files[path + "t.x.csv"] = rate(80)
        files[path + "t.mpstat.router.json"] = mpstat(idle=75.0)
        files[path + "t.mpstat.client.json"] = mpstat(idle=50.0, cpus=8)
    metric = '[[metrics]]\nname = "cpu_per_byte"\nrole = "guard"\n'
    runs, asked, _ = tables(DESIGN + metric, (), files, "a/one")
    router = value(runs, "cpu_per_byte", place="router", variant="baseline")
    assert router == pytest.approx([0.5 / 10e6])
    (cost,) = [one for one in asked if one.planned.metric.name == "cpu_per_byte"]
    assert cost.problem.startswith("ambiguous; choose one with where")
    assert "place=client" in cost.problem
    chosen = metric + 'where = { place = "router" }\n'
    _, asked, _ = tables(DESIGN + chosen, (), files, "a/two")
    assert [one.place for one in asked if one.planned.where] == ["router"]


# ---- which numbers answer -----------------------------------------------------------


def test_the_number_with_the_fewest_labels_answers(tables, turns):
    rows = [
        *turns([1.0, 2.0], [3.0, 4.0], stream=""),
        *turns([0.5, 1.0], [1.5, 2.0], stream="5"),
    ]
    runs, asked, units = tables(DESIGN, rows)
    assert [one.labels for one in asked] == [()]
    assert sorted(units["value"]) == [1e6, 2e6, 3e6, 4e6]
    assert len(series(runs, asked[0])) == 4


def test_numbers_with_different_labels_are_ambiguous(tables, turns):
    rows = [*turns([1.0], [3.0], stream="5"), *turns([0.5], [1.5], stream="7")]
    _, asked, units = tables(DESIGN, rows)
    assert asked[0].problem == (
        "ambiguous; choose one with where = {...}: "
        "stream=5 tool=measurements; stream=7 tool=measurements"
    )
    assert units.empty


def test_where_chooses_and_names_what_there_is(tables, turns):
    rows = [*turns([1.0], [3.0], stream="5"), *turns([0.5], [1.5], stream="7")]
    _, asked, _ = tables(DESIGN + 'where = { stream = "7" }', rows, name="a/one")
    assert asked[0].key == "router/tcp/throughput[stream=7]"
    _, asked, _ = tables(DESIGN + 'where = { stream = "9" }', rows, name="a/two")
    assert asked[0].problem.startswith("no number has stream=9; there are stream=5 to")


def test_declared_questions_come_first_then_diagnostics(tables, turns):
    rows = [
        *turns([1.0], [1.0], metric="jitter", unit="ms"),
        *turns([1.0], [2.0]),
        *turns([1.0], [2.0], metric="rtt_p99", unit="ms"),
    ]
    design = DESIGN + '[[metrics]]\nname = "rtt_p99"\nrole = "guard"\n'
    _, asked, _ = tables(design, rows)
    found = [(one.planned.metric.name, one.role.value) for one in asked]
    assert found == [
        ("throughput", "primary"),
        ("rtt_p99", "guard"),
        ("jitter", "diagnostic"),
    ]


def test_a_primary_metric_on_a_control_workload_is_a_control(tables, turns):
    rows = [*turns([1.0], [2.0]), *turns([1.0], [1.0], workload="idle")]
    design = DESIGN + 'workload = "tcp"\n[controls]\nworkload = "idle"\n'
    _, asked, _ = tables(design, rows)
    assert {one.workload: one.role.value for one in asked} == {
        "tcp": "primary",
        "idle": "control",
    }


@pytest.mark.parametrize(
    ("declared", "key"),
    [
        pytest.param("", "router/any workload/loss", id="nowhere measured"),
        pytest.param('workload = "udp"', "router/udp/loss", id="workload never run"),
        pytest.param('workload = "tcp"', "router/tcp/loss", id="workload without it"),
        pytest.param('device = "other"', "other/any workload/loss", id="other device"),
    ],
)
def test_a_guard_that_no_run_answers_is_still_asked(tables, turns, declared, key):
    guard = f'[[metrics]]\nname = "loss"\nrole = "guard"\n{declared}\n'
    _, asked, _ = tables(DESIGN + guard, turns([1.0], [2.0]))
    never = "no run has the workload 'udp'; there is tcp"
    assert {one.key: one.problem for one in asked} == {
        "router/tcp/throughput": "",
        key: never if "udp" in key else "not measured",
    }


def test_a_declared_device_without_a_run_is_asked(tables, turns):
    _, asked, _ = tables(DESIGN + "[devices.spare]\n", turns([1.0], [2.0]))
    assert [(one.device, one.problem) for one in asked] == [
        ("router", ""),
        ("spare", "not measured"),
    ]


def test_a_guard_need_not_be_measured_on_every_device(tables, turns):
    rows = [
        *turns([1.0], [2.0]),
        *turns([1.0], [2.0], device="b"),
        *turns([0.1], [0.1], metric="loss", unit="%"),
    ]
    guard = '[[metrics]]\nname = "loss"\nrole = "guard"\n'
    _, asked, _ = tables(DESIGN + guard, rows)
    assert [one.key for one in asked if one.problem] == []


# ---- units --------------------------------------------------------------------------


def boots(base, patched, **more):
    """Return rows of boots, each a list of runs."""
    shared = {"metric": "throughput", "unit": "bit/s", "device": "d", "workload": "t"}
    for variant, groups in (("baseline", base), ("patched", patched)):
        for boot, values in enumerate(groups):
            for run, number in enumerate(values):
                factors = {"variant": variant, "boot": f"{variant}{boot}", "run": run}
                yield shared | factors | {"value": repr(number)} | more


def test_boots_that_hold_one_variant_are_the_units(tables):
    rows = boots([[100, 400], [200, 200]], [[300, 300], [900, 100]])
    _, asked, units = tables(DESIGN, rows)
    assert asked[0].unit == "boot"
    assert sorted(units["value"]) == pytest.approx([200, 200, 300, 300])
    assert units["runs"].to_list() == [2, 2, 2, 2]


def test_a_declared_block_that_pairs_nothing_does_not_keep_runs_as_units(tables):
    rows = boots([[100, 400], [200, 200]], [[300, 300], [900, 100]])
    _, asked, _ = tables('block = "boot"\n' + DESIGN, rows)
    assert asked[0].unit == "boot"


def test_boots_of_both_variants_that_share_a_number_are_still_the_units(tables):
    rows = [
        row | {"boot": row["boot"][-1]} for row in boots([[1, 2]] * 3, [[2, 3]] * 3)
    ]
    _, asked, units = tables(DESIGN, rows)
    assert asked[0].unit == "boot"
    assert len(units) == 6


def test_boots_as_blocks_keep_the_runs_as_units(tables):
    rows = [
        row | {"boot": row["boot"][-1]} for row in boots([[1, 2]] * 3, [[2, 3]] * 3)
    ]
    _, asked, units = tables('block = "boot"\n' + DESIGN, rows)
    assert asked[0].unit == "run"
    assert len(units) == 12


def test_one_boot_of_a_variant_leaves_runs_as_units(tables):
    _, asked, _ = tables(DESIGN, boots([[1, 2, 3]], [[1, 2], [2, 3]]))
    assert asked[0].unit == "run"


def test_builds_stand_above_boots(tables):
    rows = []
    for build in "xy":
        for row in boots([[1, 2], [2, 3]], [[4, 5], [5, 6]]):
            name = f"{row['variant']}{build}"
            rows.append(row | {"build": name, "boot": f"{name}{row['boot']}"})
    _, asked, units = tables(DESIGN, rows)
    assert asked[0].unit == "build"
    assert len(units) == 4


def test_a_unit_that_reaches_over_blocks_lies_in_none(tables):
    rows = [row | {"block": row["run"]} for row in boots([[1, 2]] * 2, [[2, 3]] * 2)]
    design = 'block = "block"\n' + DESIGN.replace('unit = "run"', 'unit = "boot"')
    _, _, units = tables(design, rows)
    assert len(units) == 4
    assert set(units["block"]) == {""}


def test_runs_of_a_unit_are_averaged_on_the_scale_of_the_comparison(tables):
    shared = {"metric": "cpu_busy", "unit": "%"}
    rows = [*boots([[100, 400]] * 2, [[100, 100]] * 2)]
    rows += [row | shared | {"value": 10 * (row["run"] + 1)} for row in rows]
    _, _, units = tables(DESIGN, rows)
    base = units[units["variant"] == "baseline"]
    ratio = base.loc[base["metric"] == "throughput", "value"]
    share = base.loc[base["metric"] == "cpu_busy", "value"]
    assert ratio.to_list() == pytest.approx([math.sqrt(100 * 400)] * 2)
    assert share.to_list() == pytest.approx([0.15] * 2)


def test_counts_are_divided_by_their_exposure(tables, turns):
    rows = turns([2.0, 4.0], [6.0, 0.0], metric="drops", unit="1", exposure="1000")
    _, _, units = tables(DESIGN, [*rows, *turns([1.0], [1.0])])
    drops = units[units["metric"] == "drops"]
    assert sorted(drops["value"]) == [0.0, 0.002, 0.004, 0.006]
    assert set(drops["exposure"]) == {1000.0}


def test_counts_stay_whole_where_one_exposure_is_unknown(tables, turns):
    rows = turns([2.0, 4.0], [6.0, 0.0], metric="drops", unit="1", exposure="1000")
    rows[0]["exposure"] = ""
    _, _, units = tables(DESIGN, [*rows, *turns([1.0], [1.0])])
    drops = units[units["metric"] == "drops"]
    assert sorted(drops["value"]) == [0.0, 2.0, 4.0, 6.0]


def test_two_values_of_one_run_are_refused(tables, turns):
    rows = turns([1.0], [2.0])
    with pytest.raises(
        StudyError, match="two values for baseline run-01; are two runs"
    ):
        tables(DESIGN, [*rows, *rows])
