"""Mixed-up data are found: each made-up study holds one mistake, and its twin none.

All numbers here are simulated or copied from one capture of our own.
"""

import itertools
import json
from pathlib import Path

import pytest

from patchstudy import checks
from patchstudy.findings import Decision, assess
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


def test_an_effect_of_seven_times_is_no_unit(mistakes, turns):
    rows = turns(BASE, [one * 7 for one in FASTER])
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


def test_no_shipped_study_is_taken_for_mixed_up(data):
    for path in sorted(data.glob("*/*/study.toml")):
        found = checks.check(checks.material(open_study(path.parent)))
        assert not MISTAKES & {one.caveat.code for one in found}, path
