"""A change with its interval, as every output writes it."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from patchstudy.units import with_interval

NUMBERS = st.floats(-1e9, 1e9, allow_nan=False)


@pytest.mark.parametrize(
    ("numbers", "floor", "words"),
    [
        pytest.param((5.93, 5.61, 6.25), -100, "+5.93 [+5.61, +6.25]", id="two digits"),
        pytest.param((13.2, -5.1, 34.9), -100, "+13 [-5, +35]", id="wide"),
        pytest.param((32, -97.6, 5535), -100, "+32 [-98, +5500]", id="absurd"),
        pytest.param((0, -99.97, 3e6), -100, "0 [-99.97, +3000000]", id="near nothing"),
        pytest.param(
            (1206.5, 1206.07, 1206.97), -100, "+1206.5 [+1206.1, +1207.0]", id="large"
        ),
        pytest.param(
            (91.2694, 91.2662, 91.2731), -100, "+91.269 [+91.266, +91.273]", id="narrow"
        ),
        pytest.param((-4e-5, -9e-5, 1e-5), -100, "0 [-0.001, +0.001]", id="no minus 0"),
        pytest.param((-0.0, -0.0, 0.0), -100, "0 [0, 0]", id="nothing"),
        pytest.param((2.0, 2.0, 2.0), -100, "+2.00 [+2.00, +2.00]", id="no width"),
        pytest.param(
            (1.0, -math.inf, math.inf), -100, "+1.00 [-inf, +inf]", id="unbounded"
        ),
        pytest.param((-3, -250, 240), -math.inf, "-3 [-250, +240]", id="a difference"),
    ],
)
def test_words(numbers, floor, words):
    value, low, high = with_interval(*numbers, floor=floor)
    assert f"{value} [{low}, {high}]" == words


@given(NUMBERS, NUMBERS, NUMBERS)
def test_what_is_written_is_near_and_tells_both_ends_apart(one, other, third):
    low, value, high = sorted((one, other, third))
    assume(high - low > 1e-6 * max(abs(low), abs(high), 1e-9))
    words = with_interval(value, low, high)
    for written, number in zip(words, (value, low, high), strict=True):
        assert float(written) == pytest.approx(number, abs=max(high - low, 1e-3))
        assert not written.startswith(("-0 ", "+0 "))
        assert float(written) != 0 or written == "0"
    assert words[1] != words[2]


@given(st.floats(-99.999, 1e6), st.floats(0, 1e6))
def test_no_ratio_is_written_as_nothing_left(low, width):
    _, end, _ = with_interval(low + width / 2, low, low + width, floor=-100)
    assert float(end) > -100
