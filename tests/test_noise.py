"""What A/A studies say about the noise, and so about the margins of others."""

import math
from copy import deepcopy

import pytest

from patchstudy.report import listing, summary
from patchstudy.report.noise import aa_bank, margins_tested
from patchstudy.report.results import results
from patchstudy.report.summary import Summary


@pytest.fixture
def bank(assessed):
    """Return the results of three shipped studies, one of them A/A."""
    names = ("qmi_wwan/same-module", "qmi_wwan/rx-prefetch", "qmi_wwan/qmap-headroom")
    return {name: deepcopy(results(assessed(name))) for name in names}


def test_only_a_study_of_a_build_with_itself_tells_the_noise(bank):
    cost, one = aa_bank(bank)
    assert (one.study, one.series.metric) == ("qmi_wwan/same-module", "throughput")
    assert (cost.study, cost.series.metric) == ("qmi_wwan/same-module", "cpu_per_byte")
    (compared,) = (
        x["change"]
        for x in bank["qmi_wwan/same-module"]["comparisons"]
        if x["role"] == "primary"
    )
    width = math.log1p(compared["high"]) - math.log1p(compared["low"])
    assert one.half_width == pytest.approx(width / 2)
    assert one.least_margin == pytest.approx(width)


def test_a_copy_of_the_baseline_tells_the_noise_too(bank):
    report = bank["qmi_wwan/rx-prefetch"]
    assert aa_bank({"x": report}) == ()
    report["design"]["base2"] = "patched"
    assert {x.series.metric for x in aa_bank({"x": report})} >= {"throughput"}


def test_an_interval_without_ends_tells_nothing(bank):
    report = bank["qmi_wwan/same-module"]
    for one in report["comparisons"]:
        one["change"] = one["change"] and one["change"] | {"high": None}
    assert aa_bank({"x": report}) == ()


def test_margins_of_other_studies_on_the_same_device_are_judged(bank):
    said = list(margins_tested(aa_bank(bank), bank))
    assert said
    assert all(text.startswith(("qmi_wwan/rx", "qmi_wwan/qmap")) for text in said)
    assert all("an A/A study (qmi_wwan/same-module) shows noise" in x for x in said)
    assert not any("125mips" in text for text in said)
    for one in bank["qmi_wwan/rx-prefetch"]["comparisons"]:
        one["margin"]["value"] = 0.0001
    tight = list(margins_tested(aa_bank(bank), bank))
    assert "cannot be tested with as many runs" in " ".join(tight)


def test_the_summary_shows_the_noise_of_every_device(bank, tmp_path):
    found = Summary(folder=tmp_path, reports=bank, errors={})
    table, *notes = summary.noise(found)
    assert len(table.rows) == 2
    assert notes
    (note,) = summary.noise(Summary(folder=tmp_path, reports={}, errors={}))
    assert note.text.startswith("No study compares a build with itself")


AA_DESIGN = """\
question = "Does it differ?"
unit = "run"
[[metrics]]
name = "throughput"
role = "primary"
margin = "{margin}"
{more}
"""
STEADY = (
    [100.0, 100.2, 99.9, 100.1, 99.8, 100.0],
    [100.1, 99.9, 100.0, 100.2, 99.8, 100.0],
)


@pytest.fixture
def told(write_study, turns):
    """Return a function that says which margins a folder's A/A noise lets be tested."""

    def of(margin, rows=None):
        same = AA_DESIGN.format(margin="2 %", more='expect = "same"')
        one = write_study(same, rows or turns(*STEADY), name="a/same")
        judged = AA_DESIGN.format(margin=margin, more="")
        other = write_study(judged, turns(*STEADY), name="a/patch")
        return listing.testable_text([listing.checked(one), listing.checked(other)])

    return of


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        ("2 %", "the margin of 2 % can be tested: A/A noise is +-0.18 % with"),
        ("0.1 %", "the margin of 0.1 % is not testable with this n: A/A noise is"),
    ],
)
def test_check_says_which_margins_the_noise_lets_be_tested(told, margin, words):
    (line,) = told(margin).splitlines()
    assert line.startswith("a/patch: router throughput tcp: ")
    assert words in line
    assert "(a/same)" in line


def test_a_study_in_which_time_and_variant_are_one_tells_no_noise(told, turns):
    rows = sorted(turns(*STEADY), key=lambda row: row["variant"])
    rows = [row | {"position": place} for place, row in enumerate(rows, start=1)]
    assert told("2 %", rows) == ""


def test_a_copy_of_the_baseline_serves_its_own_study(write_study, turns):
    copies = [
        row | {"variant": "base2", "position": row["position"] + 0.5}
        for row in turns(*STEADY)
        if row["variant"] == "patched"
    ]
    design = 'base2 = "base2"\n' + AA_DESIGN.format(margin="2 %", more="")
    folder = write_study(design, [*turns(*STEADY), *copies])
    assert "can be tested" in listing.testable_text([listing.checked(folder)])
