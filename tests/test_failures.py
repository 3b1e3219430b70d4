"""Runs that fail are counted, and weigh in the decision."""

import json

import pytest

from patchstudy import failures
from patchstudy.findings import assess
from patchstudy.report import sections
from patchstudy.report.results import results
from patchstudy.report.text import text
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""
FAST, SLOW = 110.0, 100.0


def run(variant, number, value, workload="tcp"):
    """Return the raw files of one run; without a value its tool failed."""
    turn = number % 2
    place = 2 * number + (turn if variant == "patched" else 1 - turn)
    path = f"router/{variant}/boot-01/run-{number:02}/{workload}."
    files = {path + "run.json": json.dumps({"position": place, "workload": workload})}
    if value is not None:
        rows = f"metric,unit,value\nthroughput,Mbit/s,{value + number / 10}\n"
        return files | {path + "x.csv": rows}
    return files | {path + "iperf3.json": json.dumps(BROKEN)}


BROKEN = {
    "start": {"version": "iperf 3.9"},
    "intervals": [],
    "end": {},
    "error": "the server has terminated",
}


@pytest.fixture
def failed(write_study):
    """Return a function that assesses runs of which so many failed."""

    def of(baseline, patched, *, runs=20, name="driver/patch", **more):
        files = {}
        for number in range(1, runs + 1):
            for variant, bad, rate in (
                ("baseline", baseline, SLOW),
                ("patched", patched, FAST),
            ):
                broken = number % 3 == 1 and number <= 3 * bad  # one in three
                files |= run(variant, number, None if broken else rate, **more)
        return assess(open_study(write_study(DESIGN, (), files, name)))

    return of


def guard(assessment):
    """Return the guard that no study declares."""
    (one,) = [
        one for one in assessment.findings if one.planned.metric.name == "failed_runs"
    ]
    return one


def test_without_a_failed_run_nothing_is_said(failed):
    found = failed(0, 0, runs=5)
    assert (found.failures, found.decision) == ((), "accept")
    assert results(found)["failed_runs"] == []


def test_patched_runs_that_fail_more_often_are_a_veto(failed):
    found = failed(0, 6)
    assert (guard(found).guarded, found.decision) == ("broken", "veto")
    assert found.failures[0].p_value == pytest.approx(0.0202, abs=1e-4)
    assert "failed runs: 6 of 20 (30 % [15, 52]) of patched and 0 of 20" in (
        guard(found).sentence
    )


def test_one_failed_run_in_twenty_is_a_qualifier(failed):
    found = failed(0, 1)
    (primary,) = [one for one in found.findings if one.role == "primary"]
    assert "runs failed" in primary.qualifiers
    assert "runs failed on this device" in primary.sentence
    assert (guard(found).guarded, found.decision) == ("unresolved", "accept")


def test_more_than_a_tenth_of_failed_runs_leave_it_open(failed):
    found = failed(0, 3)
    assert found.decision == "not yet"
    assert "too many for the others to speak for all (over 10 %)" in " ".join(
        found.devices[0].reasons
    )


def test_failed_runs_of_the_baseline_leave_it_open_too(failed):
    assert failed(3, 0).decision == "not yet"


def test_a_patch_that_mends_failing_runs_is_not_held_back_by_them(failed):
    found = failed(6, 0)
    assert found.failures[0].mended
    assert found.decision == "accept"


def test_a_run_without_a_number_that_the_others_have_failed(write_study, turns):
    base, new = [SLOW + n for n in range(20)], [FAST + n for n in range(20)]
    rows = turns(base, new)
    other = turns(base, new, metric="jitter", unit="us")
    kept = [row for row in rows if row["variant"] == "baseline" or row["run"] > "06"]
    found = assess(open_study(write_study(DESIGN, [*kept, *other])))
    assert [one.patched.failed for one in found.failures] == [6]
    assert found.decision == "veto"


def test_a_number_that_few_runs_have_is_not_missed(write_study, turns):
    rows = turns([SLOW + n for n in range(9)], [FAST + n for n in range(9)])
    few = turns([1.0, 2.0], [1.5, 2.5], metric="rtt_p50", unit="us")
    design = DESIGN + '[[metrics]]\nname = "rtt_p50"\nrole = "guard"\n'
    assert assess(open_study(write_study(design, [*rows, *few]))).failures == ()


def test_a_failed_run_of_the_baseline_qualifies_the_primary_metric(failed):
    (primary,) = [one for one in failed(1, 0).findings if one.role == "primary"]
    assert "runs failed" in primary.qualifiers


@pytest.mark.parametrize("having", [1, 12])
def test_a_number_that_most_of_the_workload_lacks_is_not_missed(
    write_study, turns, having
):
    base, new = [SLOW + n for n in range(12)], [FAST + n for n in range(12)]
    few = turns(base[:having], new[:1], metric="rtt_p50", unit="us")
    design = DESIGN + '[[metrics]]\nname = "rtt_p50"\nrole = "guard"\n'
    found = assess(open_study(write_study(design, [*turns(base, new), *few])))
    lacking = [(one.baseline.failed, one.patched.failed) for one in found.failures]
    assert lacking == {1: [], 12: [(0, 11)]}[having]


def test_the_counts_stand_in_json_sections_and_text(failed):
    found = failed(0, 6)
    (told,) = results(found)["failed_runs"]
    assert (told["patched"]["failed"], told["patched"]["runs"]) == (6, 20)
    assert told["broken"]
    assert told["patched"]["low"] == pytest.approx(0.1455, abs=1e-4)
    assert any("Failed runs" in row[0] for row in sections.guards(found).rows)
    assert "failed runs: 6 of 20" in " ".join(text(found).split())


def test_workloads_of_one_run_directory_count_once(write_study):
    files = {}
    for number in range(1, 11):
        for workload in ("tcp", "udp"):
            files |= run("baseline", number, SLOW, workload)
            bad = None if number == 1 else FAST
            files |= run("patched", number, bad, workload)
    (one,) = assess(open_study(write_study(DESIGN, (), files))).failures
    assert (one.patched.failed, one.patched.runs) == (1, 10)
    assert one.patched.worst == pytest.approx(0.1)
    assert failures.MOST_FAILED == 0.1
