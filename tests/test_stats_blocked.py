"""Variants are exchanged within their block only."""

import itertools

import numpy as np
import pytest

from patchstudy import stats


def slow(blocks):
    """Enumerate every exchange within the blocks, one by one."""
    ways = []
    for base, new in blocks:
        pooled = [*base, *new]
        middle = sum(pooled) / len(pooled)
        picks = itertools.combinations(range(len(pooled)), len(new))
        ways.append([sum(pooled[at] - middle for at in pick) for pick in picks])
    observed = abs(
        sum(
            sum(new) - len(new) * sum([*base, *new]) / (len(base) + len(new))
            for base, new in blocks
        )
    )
    sums = [abs(sum(one)) for one in itertools.product(*ways)]
    return sum(one >= observed - 1e-9 for one in sums) / len(sums)


@pytest.mark.parametrize(
    "blocks",
    [
        pytest.param([([1, 2], [3, 4]), ([1, 2], [3, 4])], id="all of one sign"),
        pytest.param([([1, 5], [3, 2]), ([7, 2], [3, 9]), ([1], [4])], id="mixed"),
        pytest.param([([0, 0], [0, 1]), ([0, 0], [0, 0])], id="ties"),
        pytest.param([([1, 2, 3], [2, 9])], id="one block, unequal"),
    ],
)
def test_the_p_is_that_of_every_exchange(blocks):
    assert stats.blocked_permutation_p(blocks).p_value == pytest.approx(slow(blocks))


def test_what_differs_between_blocks_alone_is_no_change():
    blocks = [([100, 101], [100, 101]), ([5, 6], [5, 6]), ([50, 51], [50, 51])]
    assert stats.blocked_permutation_p(blocks).p_value == 1.0


def test_the_smallest_p_is_reached_when_all_agree():
    blocks = [([1, 2], [30, 40])] * 3
    smallest = stats.smallest_blocked_p([(2, 2)] * 3)
    assert smallest == pytest.approx(2 / 6**3)
    assert stats.blocked_permutation_p(blocks).p_value == pytest.approx(smallest)


def test_many_blocks_are_drawn_and_always_the_same():
    rng = np.random.default_rng(0)
    blocks = [(rng.normal(0, 1, 2), rng.normal(2, 1, 2)) for _ in range(12)]
    one, other = (stats.blocked_permutation_p(blocks) for _ in range(2))
    assert not one.exact
    assert one == other
    assert one.p_value < 0.001


def test_a_block_without_a_variant_is_refused():
    with pytest.raises(ValueError, match="patched"):
        stats.blocked_permutation_p([([1, 2], [])])
    with pytest.raises(ValueError, match="none given"):
        stats.blocked_permutation_p([])
