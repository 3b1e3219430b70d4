"""The plan that a study keeps: read, and told in the results beside what was done."""

import json

import pytest

from patchstudy.cli import main
from patchstudy.findings import assess
from patchstudy.report.results import results
from patchstudy.study import StoredPlan, declared_margins, open_study
from patchstudy.study.stored import read_plan


@pytest.fixture
def planned(made):
    """Return a study folder with a stored plan of four blocks."""
    folder = made()
    store = str(folder / "plan.json")
    told = ["--sd", "1 %", "--blocks", "4", "--seed", "1", "--store", store]
    assert main(["plan", str(folder), *told]) == 0
    return folder


def test_a_study_without_a_plan_has_none(made):
    study = open_study(made())
    assert study.plan is None
    assert results(assess(study))["design"]["planned"] is None


def test_the_plan_is_read_as_it_was_stored(planned):
    plan = read_plan(planned)
    study = open_study(planned)
    content = json.loads((planned / "plan.json").read_text())
    assert plan == study.plan
    assert plan.study_sha256 == study.design.digest
    assert plan.pilot == ""
    assert plan.margins == tuple(declared_margins(study.design))
    slots = content["plans"][0]["slots"]
    assert plan.order_on("router") == tuple(slot["variant"] for slot in slots)


def test_planned_and_measured_numbers_stand_in_the_results(planned):
    told = results(assess(open_study(planned)))["design"]["planned"]
    (runs,) = told["runs"].values()
    assert runs["baseline"] == runs["patched"] > 0
    assert told["measured"] == {"router": {"tcp": {"baseline": 6, "patched": 6}}}


def test_a_plan_of_named_devices_holds_for_these_only():
    plan = StoredPlan(
        digest="", study_sha256="", pilot="", margins=(), orders={"a": ("x",)}
    )
    assert plan.order_on("a") == ("x",)
    assert plan.order_on("b") == ()
