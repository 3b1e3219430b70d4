"""The order in which variants took turns, and how far a drift leans on it."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from patchstudy.turns import ORDERS, PULL, SOME_PULL, order_of, pull


@pytest.mark.parametrize(
    ("variants", "blocks", "kind"),
    [
        ("AAABBB", "", "sequential"),
        ("BBBAAA", "", "sequential"),
        ("AAABBBCCC", "", "sequential"),
        ("AAABBBCBCBC", "", "sequential"),
        ("BAAAAABBBB", "", "sequential"),
        ("AAAAABABBBB", "", "sequential"),
        ("AABABB", "", "sequential"),
        ("BBBAAAAABBB", "", "sequential"),
        ("AAAAABBBBBA", "", "rechecked"),
        ("AAAABBBBBBAAA", "", "rechecked"),
        ("AAAAABABBBBA", "", "rechecked"),
        ("AABBAB", "", "unbalanced"),
        ("AABBABBA", "", "mixed"),
        ("ABBAAB", "112233", "mixed"),
        ("ABABAB", "", "ABAB"),
        ("ABABAB", "112233", "ABAB"),
        ("BABABA", "112233", "ABAB"),
        ("AABBAABB", "11112222", "AABB"),
        ("BBAABBAABBAA", "111122223333", "AABB"),
        ("ABBA", "", "ABBA"),
        ("ABBAABBA", "11112222", "ABBA"),
        ("ABBABAAB", "11112222", "ABBA"),
        ("ACBBCABCAACB", "111111222222", "ABBA"),
        ("AAABBB" * 10, "".join(f"{at}" * 6 for at in range(10)), "unbalanced"),
        ("AAABBB" * 3, "111111222222333333", "sequential"),
        ("AAAAABBBBB" * 4 + "ABBA", "1" * 10 + "2" * 10 + "3" * 10 + "4" * 10 + "5555",
         "sequential"),
        ("A", "", "mixed"),
    ],
)  # fmt: skip
def test_order(variants, blocks, kind):
    assert order_of(variants, blocks or "1" * len(variants), "A") == kind
    assert kind in ORDERS


@pytest.mark.parametrize("letters", ["AABABB", "AAAAABBBBBA", "ABBBAABAB"])
def test_the_pull_is_the_rank_correlation_times_the_root_of_the_number(letters):
    ranks = spearmanr(
        [letter == "B" for letter in letters], range(len(letters))
    ).statistic
    # the ranks of a variable with two values are those of a line through them
    assert pull([letters]) == pytest.approx(abs(ranks) * len(letters) ** 0.5)


@pytest.mark.parametrize("n", [3, 4, 5, 8, 20])
def test_runs_that_took_turns_are_never_capped(n):
    random = np.random.default_rng(n)
    assert pull(["AB" * n]) < SOME_PULL
    assert order_of("ABBA" * n, "1" * 4 * n, "A") == "ABBA"
    blocks = np.repeat(np.arange(n), 2).astype(str)
    for _ in range(200):
        pairs = "".join(random.choice(["AB", "BA"], size=n))
        assert order_of(pairs, blocks, "A") not in {"sequential", "unbalanced"}
        assert order_of(pairs, ["1"] * 2 * n, "A") in {"ABAB", "ABBA", "mixed"}


@pytest.mark.parametrize("n", [3, 5, 10, 20])
def test_one_variant_after_the_other_is_far_beyond_the_cap(n):
    assert pull(["A" * n + "B" * n]) > PULL
