"""What A/A studies say about the noise, and so about the margins of others."""

import math

import pytest

from patchstudy.report import summary
from patchstudy.report.noise import aa_bank, margins_tested
from patchstudy.report.results import results
from patchstudy.report.summary import Summary


@pytest.fixture
def bank(assessed):
    """Return the results of three shipped studies, one of them A/A."""
    names = ("qmi_wwan/same-module", "qmi_wwan/rx-prefetch", "qmi_wwan/qmap-headroom")
    return {name: results(assessed(name)) for name in names}


def test_only_a_study_of_a_build_with_itself_tells_the_noise(bank):
    (one,) = aa_bank(bank)
    assert (one.study, one.metric) == ("qmi_wwan/same-module", "throughput")
    (compared,) = (
        x["change"]
        for x in bank["qmi_wwan/same-module"]["comparisons"]
        if x["role"] == "primary"
    )
    width = math.log1p(compared["high"]) - math.log1p(compared["low"])
    assert math.log1p(one.half_width) == pytest.approx(width / 2)
    assert math.log1p(one.least_margin) == pytest.approx(width)


def test_a_copy_of_the_baseline_tells_the_noise_too(bank):
    report = bank["qmi_wwan/rx-prefetch"]
    assert aa_bank({"x": report}) == ()
    report["design"]["base2"] = "patched"
    assert {one.metric for one in aa_bank({"x": report})} >= {"throughput"}


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
    assert len(table.rows) == 1
    assert notes
    (note,) = summary.noise(Summary(folder=tmp_path, reports={}, errors={}))
    assert note.text.startswith("No study compares a build with itself")
