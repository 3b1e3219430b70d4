"""Values that say nothing never give a verdict (a law of the statistics)."""

import json

import numpy as np
import pytest

from patchstudy import checks
from patchstudy.compare import compare
from patchstudy.errors import StudyError
from patchstudy.findings import assess
from patchstudy.report import results
from patchstudy.study import open_study

DESIGN = """\
question = "Is it faster?"
unit = "run"
[[metrics]]
name = "rtt_p50"
role = "primary"
margin = "2 %"
"""
FINE = [1.0, 1.01, 0.99, 1.0, 1.02]
DECIDED = {"better", "worse"}


@pytest.fixture
def study(write_study, turns):
    """Return a function that makes a study of round-trip times in seconds."""

    def of(base, patched):
        rows = turns(base, patched, metric="rtt_p50", unit="s")
        return open_study(write_study(DESIGN, rows))

    return of


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_none_is_refused_by_its_file(study, value):
    with pytest.raises(StudyError, match="is not"):
        study(FINE, [*FINE[1:], value])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_and_by_the_comparison(study, value):
    found = checks.material(study(FINE, FINE))
    found.units.loc[found.units.index[0], "value"] = value
    with pytest.raises(ValueError, match="finite"):
        compare(found.units, found.asked, found.study.design)


@pytest.mark.parametrize(
    ("base", "patched", "verdict"),
    [
        pytest.param([0.0] * 5, [0.0] * 5, "inconclusive", id="zeros"),
        pytest.param([1.0] * 5, [1.0] * 5, "equivalent", id="equal"),
        pytest.param(FINE, FINE, "equivalent", id="the same"),
        pytest.param([0.0, 1, 0, 0, 0], [0.0, 0, 1, 0, 0], "inconclusive", id="rare"),
        pytest.param([-1.0, 1, -2, 2, 0], [1.0, -1, 2, -2, 0], "inconclusive",
                     id="negative"),
        pytest.param([1e300 * x for x in FINE], [1e300 * x for x in FINE], "equivalent",
                     id="huge"),
        pytest.param([1e-300 * x for x in FINE], [1e-300 * x for x in FINE],
                     "equivalent", id="tiny"),
        pytest.param([1e-300, 1e300], [1e300, 1e-300], "inconclusive", id="both"),
        pytest.param([1.0], [2.0], "not assessable", id="one each"),
    ],
)  # fmt: skip
def test_nothing_gives_no_change(study, base, patched, verdict):
    found = assess(study(base, patched))
    (one,) = found.findings
    assert one.verdict == verdict
    assert one.verdict not in DECIDED
    json.loads(results.written(found))
