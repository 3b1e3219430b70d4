"""Mixed-up data are found: each made-up study holds one mistake, and its twin none.

All numbers here are simulated or copied from one capture of our own.
"""

import gzip
import itertools
import json
from pathlib import Path

import pytest

from patchstudy import checks
from patchstudy.cli import main
from patchstudy.findings import Decision, assess
from patchstudy.report.results import written
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
block = "boot"
[[metrics]]
name = "throughput"
role = "primary"
margin = "2 %"
"""
FREE = DESIGN.replace('block = "boot"\n', "")
BASE = [100.21, 99.82, 100.53, 99.94, 100.15, 100.06, 100.37, 99.78]
FASTER = [110.22, 109.83, 110.54, 109.95, 110.16, 110.07, 110.38, 109.79]
IPERF3 = Path(__file__).parent / "golden/loaders/iperf3"
MISTAKES = {
    "copied-run", "misplaced-run", "same-build", "mixed-machines", "odd-clock",
    "wrong-unit", "wrong-unit-between", "sorted-values", "rounded-values",
}  # fmt: skip


def files_of(*, say=lambda *_: {}, rates=None, runs=4):
    """Return raw files of runs that took turns; ``say(variant, run)`` adds facts."""
    files = {}
    for run in range(1, runs + 1):
        for turn, variant in enumerate(("baseline", "patched")):
            stem = f"d/{variant}/boot-{run:02}/run-{run:02}/t."
            position = 2 * run - 1 + (turn if run % 2 else 1 - turn)
            told = {
                "workload": "t",
                "run": run,
                "position": position,
                "started_at": f"2026-01-01T10:{position:02}:00Z",
                "ended_at": f"2026-01-01T10:{position:02}:30Z",
                "build_id": f"id-{variant}",
                "module": f"driver.{variant}.ko",
            }
            rate = (rates or {"baseline": BASE, "patched": FASTER})[variant][run - 1]
            files[stem + "run.json"] = json.dumps(told | say(variant, run))
            files[stem + "x.csv"] = f"metric,unit,value\nthroughput,Mbit/s,{rate}\n"
    return files


@pytest.fixture
def mistakes(write_study):
    """Return a function that writes a study and returns its mix-ups by code."""
    count = itertools.count()

    def of(files=None, design=DESIGN, rows=()):
        folder = write_study(design, rows, files, f"driver/patch-{next(count)}")
        found = checks.check(checks.material(open_study(folder)))
        codes = {one.caveat.code: one.caveat for one in found}
        return {code: one for code, one in codes.items() if code in MISTAKES}

    return of


def test_a_study_in_order_raises_none(mistakes):
    assert mistakes(files_of()) == {}


def iperf3(factor):
    """Return one capture of our own, its rates moved so that no two are alike."""

    def moved(key, value):
        if isinstance(value, dict):
            return {name: moved(name, one) for name, one in value.items()}
        if isinstance(value, list):
            return [moved("", one) for one in value]
        if key in {"bytes", "bits_per_second"}:
            return type(value)(value * factor)
        return value

    text = (IPERF3 / "lab-tcp-egress80.json").read_text(encoding="utf-8")
    return json.dumps(moved("", json.loads(text)))


@pytest.mark.parametrize(
    ("of", "to", "words"),
    [
        ("baseline/boot-01", "baseline/boot-02", "stands under two names"),
        ("baseline/boot-01", "patched/boot-03", "stands in two variants"),
    ],
)
def test_a_copied_run_is_found_even_if_it_was_reformatted(mistakes, of, to, words):
    files = files_of()
    for number, path in enumerate(sorted(one for one in files if "x.csv" in one)):
        files.pop(path)
        files[path.replace("x.csv", "iperf3.json")] = iperf3(1 + number / 1000)
    assert mistakes(dict(files)) == {}
    source = f"d/{of}/run-{of[-2:]}/t.iperf3.json"
    target = f"d/{to}/run-{to[-2:]}/t.iperf3.json"
    files[target] = json.dumps(json.loads(files[source]), indent=3)
    found = mistakes(files)
    assert list(found) == ["copied-run"]
    assert words in found["copied-run"].text
    assert f"{source} (baseline)" in found["copied-run"].text
    assert found["copied-run"].severity == "cap"


def counters(files, *, of_run):
    """Add a pair of snapshots of four counters to each run."""
    for number, path in enumerate(sorted(one for one in files if "x.csv" in one)):
        for when, by in (("before", 0), ("after", 1)):
            rows = [
                f"     rx_{at}: {7_000 + by * x}" for at, x in enumerate(of_run(number))
            ]
            text = "\n".join(["NIC statistics:", *rows, ""])
            files[path.replace("x.csv", f"ethtool_s.{when}.txt")] = text
    return files


def test_a_copied_pair_of_snapshots_is_found(mistakes):
    def of_run(number):
        return [
            91_234 + 7 * number,
            5_812_301 + number,
            48_217 - number,
            3_001 + number,
        ]

    files = counters(files_of(), of_run=of_run)
    assert mistakes(dict(files)) == {}
    for when in ("before", "after"):
        of = f"d/baseline/boot-01/run-01/t.ethtool_s.{when}.txt"
        files[of.replace("01", "02")] = files[of]
    assert "under two names" in mistakes(files)["copied-run"].text


def test_the_same_packets_in_each_run_are_no_copy(mistakes):
    files = counters(files_of(), of_run=lambda _: [10**6, 60_123_456, 3, 5121, 12_007])
    for number, path in enumerate(one for one in files if "ethtool" in one):
        files[path] += f"     since_boot: {number // 2}\n"
    assert mistakes(files) == {}


def test_one_printed_number_twice_is_no_copy(mistakes):
    same = {"baseline": [941.48] * 4, "patched": [941.48] * 4}
    assert "copied-run" not in mistakes(files_of(rates=same))


def test_swapped_variants_are_found_by_what_the_runs_say(mistakes):
    other = {"baseline": "patched", "patched": "baseline"}
    files = files_of(say=lambda variant, _: {"module": f"driver.{other[variant]}.ko"})
    text = mistakes(files)["misplaced-run"].text
    assert "module = driver" in text
    assert "baseline boot-01 run-01" in text or "patched boot-01 run-01" in text


def test_one_run_in_the_wrong_folder_is_found(mistakes):
    files = files_of(
        say=lambda variant, run: {"variant": "patched" if run == 2 else variant}
    )
    text = mistakes(files)["misplaced-run"].text
    assert text == "variant = patched is what the facts say of baseline boot-02 run-02"


@pytest.mark.parametrize("name", ["build_id", "srcversion", "module_build_id"])
def test_two_runs_that_changed_places_are_found_by_what_they_loaded(mistakes, name):
    other = {"baseline": "patched", "patched": "baseline"}

    def say(variant, run):
        loaded = other[variant] if run == 3 else variant
        return {"module": "driver.ko", "build_id": None, name: f"id-{loaded}"}

    files = files_of(say=say)
    for path in [one for one in files if "run.json" in one]:
        told = json.loads(files[path])
        files[path] = json.dumps({x: y for x, y in told.items() if y is not None})
    found = mistakes(files)
    assert set(found) == {"misplaced-run", "same-build"}
    text = found["misplaced-run"].text
    assert "boot-03 run-03" in text
    assert "boot-02" not in text


def test_one_run_that_loaded_the_other_build_is_found(mistakes):
    files = files_of(
        say=lambda variant, run: {
            "module": "driver.ko",
            "build_id": "id-patched" if run == 2 else f"id-{variant}",
        }
    )
    found = mistakes(files)
    assert list(found) == ["misplaced-run"]
    text = "build_id = id-patched is what the facts say of baseline boot-02 run-02"
    assert found["misplaced-run"].text == text


def test_of_kernel_and_module_one_that_differs_is_enough(mistakes):
    files = files_of(
        say=lambda variant, _: {
            "module": "driver.ko",
            "build_id": "kernel",
            "srcversion": f"id-{variant}",
        }
    )
    assert mistakes(files) == {}


def test_the_same_build_is_told_whatever_the_kernel_is_called(mistakes):
    files = files_of(
        say=lambda variant, _: {
            "module": "driver.ko",
            "build_id": "id-1",
            "kernel": f"6.1.0-{variant}",
        }
    )
    assert list(mistakes(files)) == ["same-build"]


def test_a_copy_with_other_blanks_inside_gzip_is_found(mistakes):
    files = files_of()
    for number, path in enumerate(sorted(one for one in files if "x.csv" in one)):
        files.pop(path)
        files[path.replace("x.csv", "iperf3.json")] = iperf3(1 + number / 1000)
    source = "d/baseline/boot-01/run-01/t.iperf3.json"
    target = "d/patched/boot-02/run-02/t.iperf3.json"
    again = json.dumps(json.loads(files.pop(target) and files[source]), indent=5)
    files[f"{target}.gz"] = gzip.compress(again.encode())
    assert "t.iperf3.json.gz (patched)" in mistakes(files)["copied-run"].text


def test_a_baseline_that_is_called_like_an_earlier_patch_is_no_swap(mistakes):
    names = {"baseline": "driver.patched.ko", "patched": "driver.second.ko"}
    files = files_of(say=lambda variant, _: {"module": names[variant]})
    assert mistakes(files) == {}


def test_a_patched_kernel_that_was_not_patched_cannot_decide(write_study):
    files = files_of(say=lambda *_: {"build_id": "id-1", "module": "driver.ko"})
    found = assess(open_study(write_study(DESIGN, files=files)))
    codes = {one.caveat.code for one in found.doubts}
    assert "same-build" in codes
    assert found.decision is Decision.NOT_YET


def test_the_same_build_is_right_where_another_treatment_is_declared(mistakes):
    files = files_of(
        say=lambda variant, _: {
            "build_id": "id-1",
            "module": "driver.ko",
            "knob": f"gro {variant}",
        }
    )
    assert mistakes(files, 'treatment = ["knob"]\n' + DESIGN) == {}


def test_the_same_build_is_right_in_a_study_of_the_noise(mistakes):
    files = files_of(say=lambda *_: {"build_id": "id-1", "module": "driver.patched.ko"})
    assert mistakes(files, DESIGN + 'expect = "same"\n') == {}


def test_files_of_two_machines_under_one_device_are_found(mistakes):
    files = files_of()
    for path in [one for one in files if one.endswith("run.json")]:
        host = "router-a" if "boot-01" not in path else "router-b"
        files[path.replace("run.json", "mpstat.txt")] = (
            f"Linux 6.1.0 ({host}) \t01/01/2026 \t_x86_64_\t(4 CPU)\n\n"
            "10:00:00 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal"
            "  %guest  %gnice   %idle\n"
            "10:00:01 AM  all    1.00    0.00    2.00    0.00    0.00    3.00    0.00"
            "    0.00    0.00   94.00\n"
        )
    text = mistakes(files)["mixed-machines"].text
    assert "nodename differs within one device" in text
    assert "router-b (baseline boot-01 run-01, patched boot-01 run-01)" in text


@pytest.mark.parametrize("factor", [8, 1000, 1024, 1 / 8, 1e-6, 8192])
def test_one_run_in_another_unit_is_found(mistakes, turns, factor):
    rows = turns([*BASE[:5], BASE[5] * factor], FASTER[:6])
    found = mistakes(rows=rows, design=FREE)
    named = factor if factor > 1 else 1 / factor
    assert f"run-06: {named:.0f} times off" in found["wrong-unit"].text
    assert found["wrong-unit"].severity == "cap"


def test_variants_in_two_units_are_doubted(mistakes, turns):
    rows = turns(BASE, [one * 8 for one in BASE])
    found = mistakes(rows=rows, design=FREE)
    assert list(found) == ["wrong-unit-between"]
    text = found["wrong-unit-between"].text
    assert "differ 8 times (100.1 Mbit/s, 800.8 Mbit/s)" in text


@pytest.mark.parametrize("factor", [8, 1 / 8, 1000, 1024])
def test_a_unit_of_one_variant_is_doubted_beside_a_true_effect(mistakes, turns, factor):
    rows = turns(BASE, [one * factor for one in FASTER])
    found = mistakes(rows=rows, design=FREE)
    assert list(found) == ["wrong-unit-between"]


def test_a_run_in_another_unit_is_found_among_runs_that_scatter(mistakes, turns):
    scattered = [70.3, 131.2, 95.8, 80.4, 119.7, 8 * 88.1]
    found = mistakes(rows=turns(scattered, FASTER[:6]), design=FREE)
    assert "run-06: 8 times off" in found["wrong-unit"].text


@pytest.mark.parametrize("factor", [0.4, 2, 5, 13])
def test_a_large_effect_is_no_unit(mistakes, turns, factor):
    rows = turns(BASE, [one * factor for one in FASTER])
    assert mistakes(rows=rows, design=FREE) == {}


def test_a_run_that_ends_before_it_begins_is_found(mistakes):
    early = {"ended_at": "2026-01-01T09:00:00Z"}
    files = files_of(say=lambda variant, run: early if run == 3 else {})
    assert "ended before it began" in mistakes(files)["odd-clock"].text


def test_a_clock_that_jumped_back_is_found(mistakes):
    late = {"started_at": "2026-01-01T08:00:00Z", "ended_at": "2026-01-01T08:00:30Z"}
    files = files_of(
        say=lambda variant, run: late if (variant, run) == ("patched", 3) else {}
    )
    text = mistakes(files)["odd-clock"].text
    assert text.startswith("patched boot-03 run-03: began before the run")


def test_a_clock_that_was_never_set_is_found(write_study):
    old = {"started_at": "1970-01-01T00:03:00Z", "ended_at": "1970-01-01T00:03:30Z"}
    files = files_of(say=lambda variant, run: old if run == 1 else {})
    found = checks.check(checks.material(open_study(write_study(DESIGN, files=files))))
    texts = [one.caveat.text for one in found if one.caveat.code == "odd-clock"]
    assert any("began before 2000: its clock was not set" in one for one in texts)


def test_runs_at_the_same_time_are_found(mistakes):
    late = {"ended_at": "2026-01-01T10:59:00Z"}
    files = files_of(
        say=lambda variant, run: late if (variant, run) == ("patched", 4) else {}
    )
    assert mistakes(files_of()) == {}
    assert "before the one before it ended" in mistakes(files)["odd-clock"].text


def test_a_sorted_list_of_values_is_found(mistakes, turns):
    found = mistakes(rows=turns(sorted(BASE), FASTER), design=FREE)
    assert "the 8 values of baseline are in ascending" in found["sorted-values"].text
    assert mistakes(rows=turns(BASE, FASTER), design=FREE) == {}


def test_values_of_two_digits_are_found(mistakes, turns):
    rounded = [94, 95, 93, 94, 96, 95]
    found = mistakes(rows=turns(rounded, [one + 2 for one in rounded]), design=FREE)
    assert found["rounded-values"].text == (
        "no value has more than 2 digits: one more in the last is 1.1 %"
    )


def test_values_of_two_digits_on_one_side_are_found(mistakes, turns):
    rounded = [94, 95, 93, 94, 96, 95]
    found = mistakes(rows=turns(BASE[:6], rounded), design=FREE)
    assert found["rounded-values"].text.startswith("no value of one variant has more")


def test_small_values_of_a_tool_with_few_decimals_are_not_rounded(mistakes, turns):
    few, more = [54, 55, 53, 51, 56, 55], [101, 113, 99, 107, 115, 104]
    rows = turns([one / 1000 for one in few], [one / 1000 for one in more])
    assert mistakes(rows=rows, design=FREE) == {}


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        pytest.param((), "same-build", id="not patched"),
        pytest.param((BASE, [8 * x for x in BASE]), "wrong-unit", id="unit"),
        pytest.param((sorted(BASE), FASTER), "sorted-values", id="sorted"),
    ],
)
def test_people_see_it_in_check_and_in_the_report(
    write_study, turns, capsys, rows, code
):
    same = files_of(say=lambda *_: {"build_id": "id-1", "module": "driver.ko"})
    if rows:
        folder = write_study(FREE, turns(*rows))
    else:
        folder = write_study(DESIGN, files=same)
    assert main(["check", str(folder), "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    (doubt,) = [one for one in told["doubts"] if one["code"].startswith(code)][:1]
    content = json.loads(written(assess(open_study(folder))))
    assert doubt["text"] in {one["text"] for one in content["checks"]}


def test_no_shipped_study_is_taken_for_mixed_up(data):
    for path in sorted(data.glob("*/*/study.toml")):
        found = checks.check(checks.material(open_study(path.parent)))
        assert not MISTAKES & {one.caveat.code for one in found}, path
