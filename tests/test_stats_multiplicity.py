"""Adjusted p-values: R's numbers, then what has no p."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from patchstudy.stats import benjamini_hochberg, holm

ORACLES = Path(__file__).parent / "oracles"


def oracle(number):
    (path,) = ORACLES.glob(f"{number}_*.json")
    return json.loads(path.read_text(encoding="utf-8"))


BH_1995 = oracle("14")
SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=20)
LAWS = settings(deadline=None, derandomize=True, max_examples=60)


@pytest.mark.parametrize(
    ("adjust", "key"), [(holm, "holm"), (benjamini_hochberg, "BH")]
)
def test_adjusted_p_agrees_with_r(adjust, key):
    assert adjust(BH_1995["p"]) == pytest.approx(BH_1995[key])
    assert adjust(BH_1995["p"][::-1]) == pytest.approx(BH_1995[key][::-1])


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_what_has_no_p_passes_through_and_is_not_counted(adjust):
    assert adjust([None, 0.01, None, 0.04]) == (None, 0.02, None, pytest.approx(0.04))
    assert adjust([None]) == (None,)
    assert adjust([]) == ()


@pytest.mark.parametrize("wrong", [float("nan"), -0.1, 1.5])
def test_a_wrong_p_is_named(wrong):
    with pytest.raises(ValueError, match=f"p-value: {wrong} given"):
        holm([0.5, wrong])


@settings(LAWS, max_examples=15)
@given(SHARES)
def test_holm_agrees_with_statsmodels(p_values):
    want = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(want)


@LAWS
@given(SHARES)
def test_adjusting_never_lowers_a_p(p_values):
    for adjust in (holm, benjamini_hochberg):
        pairs = zip(p_values, adjust(p_values), strict=True)
        assert all(raw <= adjusted + 1e-12 for raw, adjusted in pairs)
