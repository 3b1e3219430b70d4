"""Pass or fail, exact numbers and signed values, from study.toml to the report."""

import json

import numpy as np
import pytest

from patchstudy import outcomes, stats
from patchstudy.errors import StudyError
from patchstudy.findings import assess
from patchstudy.report import results, text
from patchstudy.study import open_study

TOP = 'question = "Is it as good?"\nunit = "run"\n'


def design(kind, *, role="primary", margin="", better="lower", name="event:outcome"):
    """Return a design whose one metric is of a declared kind."""
    declared = f'margin = "{margin}"\n' if margin else ""
    own = (
        f'[[metrics]]\nname = "{name}"\nrole = "{role}"\nkind = "{kind}"\n'
        f'better = "{better}"\n{declared}'
    )
    primary = '[[metrics]]\nname = "throughput"\nrole = "primary"\n'
    return TOP + own + ("" if role == "primary" else primary)


@pytest.fixture
def judged(write_study, turns):
    """Return a function that assesses two variants and gives the one finding."""

    def of(base, patched, toml, **factors):
        factors = {"metric": "event:outcome", "unit": "1", **factors}
        assessment = assess(
            open_study(write_study(toml, turns(base, patched, **factors)))
        )
        (one,) = [
            each
            for each in assessment.findings
            if each.planned.metric.name == factors["metric"]
        ]
        return assessment, one

    return of


def share(k, n):
    return [1.0] * k + [0.0] * (n - k)


# ---- pass or fail -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "patched", "better", "verdict"),
    [
        (share(8, 10), share(1, 10), "lower", "better"),
        (share(8, 10), share(1, 10), "higher", "worse"),
        (share(3, 10), share(1, 10), "lower", "inconclusive"),
        (share(0, 200), share(0, 200), "lower", "equivalent"),
        (share(1, 2), share(0, 2), "lower", "inconclusive"),
        (share(1, 1), share(0, 1), "lower", "inconclusive"),
    ],
)
def test_pass_or_fail_is_judged_by_fisher(judged, base, patched, better, verdict):
    _, one = judged(base, patched, design("passfail", better=better))
    assert one.verdict == verdict
    table = [[int(sum(x)), len(x) - int(sum(x))] for x in (base, patched)]
    assert one.comparison.p_value == pytest.approx(stats.fisher_p(table))


def test_the_sentence_counts_both_sides_with_their_intervals(judged):
    assessment, one = judged(share(8, 10), share(1, 10), design("passfail"))
    assert one.sentence == (
        "event:outcome on tcp: better by -70 pp [-87, -27] (1 of 10 [2, 40 %] "
        "against 8 of 10 [49, 94 %], Fisher's exact p 0.0055), more than the margin of "
        "10 pp, 10 runs each."
    )
    (stored,) = results.results(assessment)["comparisons"]
    assert (stored["verdict"], stored["method"]) == (
        "better",
        "Fisher's exact test, Newcombe interval of the difference",
    )
    assert "-70" in text.text(assessment)


@pytest.mark.parametrize(
    ("base", "patched", "guarded"),
    [
        (share(0, 20), share(19, 20), "broken"),
        (share(0, 200), share(0, 200), "safe"),
        (share(1, 6), share(2, 6), "unresolved"),
    ],
)
def test_a_guard_of_failures(judged, base, patched, guarded):
    _, one = judged(base, patched, design("passfail", role="guard"))
    assert one.guarded == guarded


def test_a_value_between_pass_and_fail_is_no_verdict(judged):
    _, one = judged([0, 1, 0.5], [1, 1, 1], design("passfail"))
    assert one.verdict == "not assessable"
    assert one.sentence == "event:outcome on tcp: not assessable, neither 0 nor 1."


def test_a_boot_fails_where_one_of_its_runs_does(write_study, turns):
    rows = turns([0, 0, 1, 0], [0, 0, 0, 0], metric="event:outcome", unit="1")
    for row in rows:
        row["boot"] = f"{row['variant']} {(int(row['run']) - 1) // 2}"
    toml = design("passfail").replace('unit = "run"', 'unit = "boot"')
    (one,) = assess(open_study(write_study(toml, rows))).findings
    base, new = one.comparison.baseline, one.comparison.patched
    assert (base.n, base.mean, new.n, new.mean) == (2, 0.5, 2, 0.0)


def test_newcombe_is_that_of_the_paper():
    """Newcombe 1998, table II, example a, method 10: 56/70 and 48/80."""
    found = stats.newcombe((48, 80), (56, 70), 0.95)
    assert (found.value, found.low, found.high) == pytest.approx(
        (0.2, 0.0524, 0.3339), abs=5e-5
    )


# ---- exact --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "patched", "judgement", "words"),
    [
        ([40], [40], ("equivalent", ()), "exactly 40 in every run"),
        ([40, 40], [38, 38], ("better", ("material",)), "-2 (40 to 38, -5 %)"),
        ([1000], [1001], ("worse", ("at most small",)), "+1 (1000 to 1001, +0.1 %)"),
        ([0], [3], ("worse", ("size not judged",)), "+3 (0 to 3)"),
        ([0], [0], ("equivalent", ()), "exactly 0 in every run"),
    ],
)
def test_exact_numbers_need_no_test(judged, base, patched, judgement, words):
    assessment, one = judged(base, patched, design("exact"))
    assert (one.verdict, one.qualifiers) == judgement
    assert words in one.sentence
    assert one.comparison.p_value is None
    (stored,) = results.results(assessment)["comparisons"]
    assert stored["change"]["low"] == stored["change"]["high"]
    assert json.dumps(stored, allow_nan=False)
    text.text(assessment)


def test_numbers_that_differ_between_runs_are_not_exact(judged):
    _, one = judged([40, 41], [38, 38], design("exact"))
    assert one.verdict == "not assessable"
    assert one.sentence == "event:outcome on tcp: not assessable, not exact."
    assert "not-exact" in {caveat.code for caveat in one.comparison.caveats}


def test_what_a_sum_in_floating_point_leaves_is_no_difference():
    found = outcomes.exact(np.array([0.1 + 0.2]), np.array([0.3]), 0.95)
    assert found.value == 0


@pytest.mark.parametrize(
    ("patched", "guarded"),
    [([40], "safe"), ([39], "safe"), ([40.4], "harm, within margin"), ([44], "broken")],
)
def test_an_exact_guard(judged, patched, guarded):
    _, one = judged([40], patched, design("exact", role="guard"))
    assert one.guarded == guarded


# ---- signed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patched", "verdict"),
    [
        ([-5.1, -4.9, -5.0, -5.2, -4.8], "better"),
        ([2.1, 1.9, 2.0, 2.2, 1.8], "equivalent"),
        ([9.1, 8.9, 9.0, 9.2, 8.8], "worse"),
    ],
)
def test_signed_values_are_compared_as_they_are(judged, patched, verdict):
    base = [2.0, 2.1, 1.9, 2.2, 1.8]
    _, one = judged(base, patched, design("signed", margin="100 %"))
    assert one.verdict == verdict
    assert one.comparison.scale == "difference"
    assert one.comparison.change.value == pytest.approx(np.mean(patched) - 2.0)
    assert "no-ratio" not in {caveat.code for caveat in one.comparison.caveats}


def test_a_rate_that_is_declared_signed_has_no_ratio(judged):
    toml = design("signed", name="throughput", better="higher", margin="1 Mbit/s")
    factors = {"metric": "throughput", "unit": "Mbit/s"}
    _, one = judged([10.0, 10.1, 9.9], [20.0, 20.1, 19.9], toml, **factors)
    assert one.comparison.change.value == pytest.approx(1e7)


# ---- study.toml ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        (design("odd"), "must be one of 'signed', 'passfail', 'exact', is 'odd'"),
        (design("passfail", name="throughput", better="higher"), "is of 0 and 1"),
        (design("exact", name="throughput"), "higher is better"),
    ],
)
def test_what_cannot_be_declared(write_study, toml, words):
    with pytest.raises(StudyError, match=words):
        open_study(write_study(toml, []))
