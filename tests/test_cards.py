"""Our types in a notebook and on a terminal: short, and safe."""

import re

import pytest
from IPython.lib.pretty import pretty

from patchstudy.findings import assess
from patchstudy.records import Profile, Stack
from patchstudy.study import open_study

HOSTILE = "<b>x</b>\x1b[31m\u202e"


def shown(value):
    """Return what a notebook and what a terminal shows."""
    return value._repr_html_(), pretty(value)


def test_a_study_shows_its_question_and_its_runs(assessed):
    html, text = shown(assessed("qmi_wwan/tx-skb-orphan").study)
    for words in ("14 baseline runs, 14 patched runs", "raw files", "skb_orphan()"):
        assert words in html
        assert words in text
    assert text.count("\n") < 12


def test_an_assessment_shows_its_decision_and_why(assessed):
    html, text = shown(assessed("qmi_wwan/tx-skb-orphan"))
    assert re.match(r"qmi_wwan/tx-skb-orphan: veto\n  why  +A guard|qmi", text)
    assert re.search(r"\n  findings  ", text)
    assert "+91.269 pp" in html


def test_a_comparison_and_a_finding_show_the_change(assessed):
    finding = assessed("qmi_wwan/same-module").findings[0]
    html, text = shown(finding.comparison)
    assert re.search(r"change +-0\.0[45]\d* % \[", text)
    assert "95 % interval" in html
    html, text = shown(finding)
    assert text.splitlines()[1].split() == ["verdict", "equivalent"]


def test_a_profile_shows_the_functions_that_took_most():
    stacks = (
        Stack(frames=("a", "memcpy"), weight=3.0),
        Stack(frames=("b", "memcpy"), weight=1.0),
        Stack(frames=("a",), weight=1.0),
    )
    html, text = shown(Profile(event="cycles", unit="sample", stacks=stacks))
    assert "80.0 %" in text
    assert "self time of memcpy" in html


def test_a_profile_without_stacks_can_be_shown():
    assert "stacks" in pretty(Profile(event=None, unit=None, stacks=()))


@pytest.mark.parametrize("at", ["study", "assessment", "comparison", "finding"])
def test_markup_and_control_characters_are_shown_as_text(at, made):
    assessment = assess(open_study(made(device=HOSTILE, workload=HOSTILE)))
    finding = assessment.findings[0]
    values = {"study": assessment.study, "assessment": assessment, "finding": finding}
    value = values.get(at, finding.comparison)
    for words in shown(value):
        assert "\x1b" not in words
        assert "\u202e" not in words
        assert r"\x1b" in words
    assert "<b>" not in value._repr_html_()
