"""What intervals tell of a run: steady runs are silent, uneven ones are named."""

import json
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from patchstudy import checks, courses
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
GOLDEN = Path(__file__).parent / "golden/loaders/iperf3/lab-tcp-egress80.json"
CODES = {
    "drift-in-run", "level-shift", "modes-within-runs", "repeating-intervals", "stall",
    "warm-up",
}  # fmt: skip


def steady(rng, n=30):
    return 100 + rng.normal(size=n)


def warming(rng):
    return steady(rng) - np.repeat([15, 0], [3, 27])


def iperf3(values):
    """Return a golden file of a download with these intervals of a second, Mbit/s."""
    document = json.loads(GOLDEN.read_text())
    rows = []
    for at, value in enumerate(values):
        row = {"start": at, "end": at + 1, "seconds": 1.0, "bytes": value * 125_000}
        row |= {"bits_per_second": value * 1e6, "omitted": False, "sender": False}
        rows.append({"streams": [{"socket": 5, **row}], "sum": row})
    n = len(rows)
    whole = {"start": 0, "end": n, "seconds": n, "bytes": sum(values) * 125_000}
    whole["bits_per_second"] = np.mean(values) * 1e6
    end = document["end"]
    for part in (end["sum_sent"], end["sum_received"], *end["streams"][0].values()):
        part.update(whole)
    document["start"]["test_start"]["duration"] = n
    return json.dumps(document | {"intervals": rows})


@pytest.fixture
def found(write_study):
    """Return a function: six runs a variant with such intervals, the codes found."""

    def of(course, variants=("baseline", "patched"), runs=6):
        random = np.random.default_rng(1)
        files = {}
        for run in range(1, runs + 1):
            for turn, variant in enumerate(("baseline", "patched")):
                place = f"d/{variant}/boot-{run}/run-1/t."
                values = (course if variant in variants else steady)(random)
                files[place + "flow.iperf3.json"] = iperf3(values)
                position = 2 * run + (turn if run % 2 else 1 - turn)
                files[place + "run.json"] = f'{{"position": {position}}}'
        material = checks.material(open_study(write_study(DESIGN, (), files)))
        texts = {}
        for one in checks.check(material):
            texts.setdefault(one.caveat.code, []).append(one.caveat.text)
        return {code: texts[code] for code in CODES & texts.keys()}

    return of


def test_steady_runs_raise_no_doubt(found):
    assert found(steady) == {}


def test_a_warm_up_is_told(found):
    told = found(warming)
    assert "warm-up" in told
    assert told["warm-up"][0].startswith(
        "baseline: the first tenth of a run is off the rest by -15 %"
    )


def test_a_warm_up_of_one_variant_is_told_of_that_one_only(found):
    told = found(warming, variants=("patched",))["warm-up"]
    assert [text.partition(":")[0] for text in told] == ["patched"]


def test_a_drift_within_the_runs_is_told(found):
    told = found(lambda random: steady(random) - np.linspace(0, 8, 30))
    assert told["drift-in-run"][0].startswith("baseline: a run changes by -7")
    assert "more than the margin of 2 %" in told["drift-in-run"][0]


def test_a_stall_is_told_and_its_run_named(found):
    def stalling(random):
        values = steady(random)
        values[12] = 0
        return values

    told = found(stalling, variants=("patched",))
    assert told["stall"][0].startswith("6 times the rate within a run falls below")
    assert "patched boot-1 run-1" in told["stall"][0]


def test_one_stall_is_told_in_words(found):
    runs = count()

    def stalling(random):
        values = steady(random)
        values[12] = values[12] if next(runs) else 0
        return values

    told = found(stalling, variants=("patched",))
    assert told["stall"][0].startswith("once the rate within a run falls below a fifth")


def test_a_shift_of_the_level_is_told(found):
    told = found(lambda random: steady(random) + np.repeat([0, 20], 15))
    assert told["level-shift"][0].startswith("the level changes within 6 of 6 runs")


def test_two_modes_within_runs_are_counted_and_not_tested(found):
    def stuck(random):
        return steady(random, 8) + np.repeat([0, 90], [4, 4])

    (text,) = found(stuck, variants=("patched",), runs=2)["modes-within-runs"]
    assert text.startswith("two modes within runs, near 100.0 Mbit/s and 190.5")
    assert "0 of 60 baseline, 8 of 16 patched intervals in the upper one" in text
    assert "2 of 4 runs were in both (patched boot-1 run-1, patched boot-2" in text
    assert " p " not in text


@pytest.mark.parametrize(
    "course",
    [
        pytest.param(lambda random: steady(random, 8) * 1.3, id="one level"),
        pytest.param(
            lambda random: steady(random, 8) + np.repeat([60, 0], [1, 7]), id="warm-up"
        ),
        pytest.param(
            lambda random: random.choice([100, 150]) + random.normal(size=8),
            id="each run in one of them",
        ),
    ],
)
def test_one_mode_within_a_run_is_no_two_modes(found, course):
    assert "modes-within-runs" not in found(course)


def test_intervals_that_repeat_each_other_are_told(found):
    def slow(random):
        noise = random.normal(size=60)
        return 100 + np.convolve(noise, np.ones(20) / 20, mode="same")[10:50]

    told = found(slow)["repeating-intervals"]
    assert len(told) == 1
    assert "40 of them tell as much as" in told[0]


def test_one_uneven_run_of_many_is_not_a_property_of_the_variant():
    assert not courses.systematic(pd.Series([0.5, 0.01, -0.01, 0.0, 0.01]), 0.02)
    assert courses.systematic(pd.Series([0.10, 0.11, 0.09, 0.10]), 0.02)
    assert courses.systematic(pd.Series([0.1, 0.1, 0.1]), 0.02)
    assert not courses.systematic(pd.Series([0.1, 0.1]), 0.02)
    assert not courses.systematic(pd.Series([0.01, 0.011, 0.009]), 0.02)


def test_a_course_shorter_than_ten_intervals_tells_of_stalls_only(found):
    assert found(lambda random: [50, 100, 101, 99, 100]) == {}


def test_shifts_are_found_where_they_are():
    random = np.random.default_rng(3)
    level = np.repeat([0.0, 10.0, 3.0], 20)
    assert courses.shifts(level + random.normal(size=60)) == (20, 40)
    assert courses.shifts(level[:29]) == ()
    assert courses.shifts(np.ones(40)) == ()


def test_noise_is_not_called_a_shift():
    random = np.random.default_rng(4)
    assert not any(courses.shifts(random.normal(size=60)) for _ in range(500))
