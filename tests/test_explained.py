"""What the removed cost predicts stands beside what was found."""

import math
from dataclasses import replace

import pytest

from patchstudy import checks, explained
from patchstudy.compare import compare
from patchstudy.stats import Estimate
from patchstudy.study import open_study
from patchstudy.weighing import Explained, Word, weighed


def estimate(value, low=-math.inf, high=math.inf):
    return Estimate(value=value, low=low, high=high, confidence=0.95, method="t")


def case(removed, found, *, reasons=(), response="throughput"):
    return weighed(
        Explained(
            device="d", workload="w", variant="patched", response=response,
            limit="cpu", basis="profile", symbols=("copy",), removed=removed,
            predicted=None, found=found, part=None, word=Word.UNKNOWN,
            reasons=reasons, assumption="", slowed={}, sentence="",
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("removed", "found", "word"),
    [
        pytest.param((0.33, 0.30, 0.36), (0.5, 0.45, 0.55), Word.EXPLAINS, id="all"),
        pytest.param((0.11, 0.10, 0.12), (0.5, 0.45, 0.55), Word.PART, id="a third"),
        pytest.param((0.01, 0.0, 0.02), (0.5, 0.45, 0.55), Word.NOT, id="next to none"),
        pytest.param((0.04, 0.03, 0.05), (-0.07, -0.08, -0.06), Word.NOT, id="a loss"),
        pytest.param((0.2, 0.01, 0.4), (0.5, 0.3, 0.7), Word.UNKNOWN, id="too wide"),
        pytest.param((0.2, 0.1, 0.3), (0.0, -0.1, 0.1), Word.UNKNOWN, id="no change"),
        pytest.param((0.2,), (0.5, 0.4, 0.6), Word.UNKNOWN, id="one profile each"),
    ],
)
def test_the_word_follows_from_both_intervals(removed, found, word):
    assert case(estimate(*removed), estimate(*found)).word is word


def test_the_share_needed_is_that_of_the_cpu_time():
    """200 to 300 Mbit/s on a full CPU takes a third off the time per packet."""
    one = case(estimate(1 / 3), estimate(0.5, 0.4, 0.6))
    assert one.part.value == pytest.approx(1)


def test_on_a_full_link_the_cpu_time_falls_by_the_share():
    one = case(
        estimate(0.2, 0.18, 0.22),
        estimate(-0.2, -0.21, -0.19),
        response="cpu_per_byte",
    )
    assert one.part.value == pytest.approx(1)
    assert one.word is Word.EXPLAINS


def test_any_reason_leaves_the_value_and_takes_the_word():
    one = case(
        estimate(0.3, 0.29, 0.31), estimate(0.5, 0.45, 0.55), reasons=("slowed",)
    )
    assert one.word is Word.UNKNOWN
    assert one.part.value == pytest.approx(0.9)


DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
[[metrics]]
name = "profile_share:copy"
role = "mechanism"
expect = "lower"
"""


def study_of(write_study, baseline, patched, *, busy=1.0, rates=(100.0, 150.0)):
    """Write a study with these profiles; two runs a boot, three boots of each."""
    rows, files = [], {}
    for variant, rate, profiles in zip(
        ("baseline", "patched"), rates, (baseline, patched), strict=True
    ):
        for boot in range(3):
            shared = {"device": "d", "workload": "t", "variant": variant,
                      "boot": f"{boot}{variant}", "run": 1}  # fmt: skip
            rows.append({**shared, "metric": "throughput", "unit": "Mbit/s",
                         "value": rate + boot / 100})  # fmt: skip
            rows.append({**shared, "metric": "cpu_busy_max", "unit": "1",
                         "value": busy})  # fmt: skip
        for number, text in enumerate(profiles):
            files[f"d/{variant}/boot-9/profile-{number}/t.folded.txt"] = text
    return open_study(write_study(DESIGN, rows, files))


def told(study):
    found = checks.material(study)
    compared = compare(found.units, found.asked, study.design, ())
    return explained.explained(study, found.runs, compared)


def folded(copy):
    return f"main;copy {copy}\nmain;send {1000 - copy}\n"


def test_a_third_of_a_full_cpu_explains_a_gain_by_half(write_study):
    before = [folded(333), folded(334), folded(332)]
    after = [folded(0), folded(1), folded(0)]
    (one,) = told(study_of(write_study, before, after))
    assert one.limit == "cpu"
    assert one.removed.value == pytest.approx(1 / 3, abs=0.002)
    assert one.predicted.value == pytest.approx(0.5, abs=0.005)
    assert one.word is Word.EXPLAINS
    assert "explains the change" in one.sentence


def test_one_profile_each_tells_nothing_but_its_value(write_study):
    (one,) = told(study_of(write_study, [folded(37)], [folded(0)]))
    assert one.word is Word.UNKNOWN
    assert one.reasons == ("one profile each",)
    assert one.predicted.value == pytest.approx(1 / (1 - 0.037) - 1)
    assert "At face value it is 11 % (no interval)" in one.sentence


def test_a_cpu_with_room_tells_nothing(write_study):
    before, after = [folded(333), folded(334)], [folded(0), folded(1)]
    (one,) = told(study_of(write_study, before, after, busy=0.6))
    assert one.word is Word.UNKNOWN
    assert "not saturated" in one.sentence


def test_without_a_profile_it_says_so(write_study):
    (one,) = told(study_of(write_study, [folded(333)], []))
    assert (one.removed, one.word) == (None, Word.UNKNOWN)
    assert one.reasons == ("no profile of both variants that samples time",)


def test_a_profile_run_is_held_against_the_measured_ones(write_study):
    study = study_of(write_study, [folded(333)] * 2, [folded(0)] * 2)
    runs = [
        one if one.measuring else replace(one, sources=(*one.sources, _slow(study)))
        for one in study.runs
    ]
    (one,) = told(replace(study, runs=tuple(runs)))
    assert one.slowed["baseline"] == pytest.approx(-0.2, abs=0.001)
    assert any("profiling slows the run by up to" in text for text in one.reasons)


def _slow(study):
    """The source of a measured run, at 80 Mbit/s."""
    run = next(one for one in study.runs if one.measuring)
    source = next(
        one
        for one in run.sources
        if any(x.metric == "throughput" for x in one.capture.measurements)
    )
    slow = tuple(
        one._replace(value=80e6) if one.metric == "throughput" else one
        for one in source.capture.measurements
    )
    return replace(source, capture=replace(source.capture, measurements=slow))


PUBLISHED = """\
question = "Does the buffer pool raise throughput?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
[[metrics]]
name = "alloc_time"
role = "mechanism"
expect = "lower"
"""


def test_published_totals_explain_about_a_third(write_study):
    """tmi: 428.8 against 704.9 ns a buffer beside 4.7 and 7 Gbit/s, one run each."""
    rows = [
        {"metric": name, "unit": unit, "value": value, "variant": variant,
         "device": "t", "workload": "tcp", "boot": variant, "run": 1}
        for name, unit, values in (
            ("throughput", "Gbit/s", (4.7, 7.0)), ("alloc_time", "ns", (704.9, 428.8)),
        )
        for variant, value in zip(("baseline", "patched"), values, strict=True)
    ]  # fmt: skip
    (one,) = told(open_study(write_study(PUBLISHED, rows)))
    assert one.basis == "calls"
    assert one.part.value == pytest.approx(0.329, abs=0.001)
    assert one.word is Word.UNKNOWN
    assert "33 % (no interval)" in one.sentence
    assert "one full CPU, and one call for every packet of 1500 bytes" in one.sentence
    assert "no CPU load is known" in one.sentence
