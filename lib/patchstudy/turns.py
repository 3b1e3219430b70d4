"""In which order the variants took turns, and how far time leans on their difference.

Plain sequences in, plain values out; ``checks.order`` makes caveats of them.
"""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Final

#: Pull from which time and patch cannot be told apart, where no blocks pair the
#: variants: below it, a linear drift of 4 sd makes false positives in at most 6 % of
#: studies of 3 to 20 units a variant (``benchmarks/error_rates.py``).
PULL: Final = 1.25
#: Pull from which this is mentioned, and from which long runs of one variant in every
#: block are no longer only mentioned; alternating runs stay below.
SOME_PULL: Final = 0.9
#: Places by which a variant may lead in all blocks and be no more than a fixed order:
#: AB leads by one, AABB by two.
SHORT_LEAD: Final = 2.0
#: Units in a row that a session A..AB..BA..A may have in its middle; ABBA has two.
SHORT_MIDDLE: Final = 2

#: The orders, the worst first.
ORDERS: Final = (
    "sequential", "rechecked", "unbalanced", "AABB", "ABAB", "mixed", "ABBA",
)  # fmt: skip


def order_of(variants: Sequence[str], blocks: Sequence[str], baseline: str) -> str:
    """Classify in which order the variants took turns; the worst over all variants.

    Parameters
    ----------
    variants, blocks
        One entry per run, in time. With two blocks or more that hold the baseline and
        another variant, these are judged within their blocks, else over the session.

    Returns
    -------
    str
        ``"sequential"`` where a variant comes so much earlier than the other that time
        cannot be told from the patch; ``"rechecked"`` where besides the baseline was
        measured again at the end; ``"unbalanced"`` where it comes somewhat earlier;
        ``"AABB"`` and ``"ABAB"`` where every block begins with the same variant;
        ``"ABBA"`` where each block is balanced in time, else ``"mixed"``.
    """
    others = [name for name in dict.fromkeys(variants) if name != baseline]
    found = [_order(*_pair(variants, blocks, (baseline, name))) for name in others]
    return min(found, key=ORDERS.index, default="mixed")


def pull(patterns: Sequence[str]) -> float:
    """How strongly a linear drift moves the difference, whatever the number of units.

    The absolute rank correlation of variant and place, times the root of the number of
    units; with several patterns (blocks) of the mean places within them.
    """
    first = sum(one.count("A") for one in patterns)
    second = sum(one.count("B") for one in patterns)
    n = first + second
    if not (first and second):
        return 0.0
    return abs(_lead(patterns)) * math.sqrt(12 * first * second / (n * (n * n - 1)))


def _pair(
    variants: Sequence[str], blocks: Sequence[str], names: tuple[str, str]
) -> tuple[list[str], bool]:
    """Letters A (baseline) and B of each block, or of the session; whether blocks."""
    by_block: dict[str, str] = {}
    session = ""
    for variant, block in zip(variants, blocks, strict=True):
        if variant in names:
            letter = "AB"[names.index(variant)]
            session += letter
            by_block[block] = by_block.get(block, "") + letter
    whole = [one for name, one in by_block.items() if name and set(one) == {"A", "B"}]
    return (whole, True) if len(whole) > 1 else ([session], False)


def _order(patterns: Sequence[str], blocked: bool) -> str:
    if found := _blocks(patterns) if blocked else _session(patterns[0]):
        return found
    if all(one == one[::-1] for one in patterns):
        return "ABBA"
    first = {one[0] for one in patterns}
    if len(first) == 1 and all("AA" not in one and "BB" not in one for one in patterns):
        return "ABAB"
    return "AABB" if blocked and _same_way(patterns) else "mixed"


def _blocks(patterns: Sequence[str]) -> str:
    """Say what is wrong with the order within blocks; empty where it is short."""
    if abs(_lead(patterns)) <= SHORT_LEAD:
        return ""
    return "sequential" if pull(patterns) > SOME_PULL else "unbalanced"


def _session(letters: str) -> str:
    """Say what is wrong with the order of a whole session; empty where nothing is."""
    groups = [(letter, len(list(same))) for letter, same in groupby(letters)]
    if len(groups) == 3 and groups[1][1] > SHORT_MIDDLE:
        return "rechecked" if letters[0] == "A" else "sequential"
    found = pull([letters])
    if len(groups) < 3 or found > PULL:
        again = len(groups) >= 3 and letters[0] == letters[-1] == "A"
        return "rechecked" if again else "sequential"
    return "unbalanced" if found > SOME_PULL else ""


def _lead(patterns: Sequence[str]) -> float:
    """By how many places B comes later than A, mean over the blocks."""
    leads = _leads(patterns)
    return sum(leads) / len(leads)


def _same_way(patterns: Sequence[str]) -> bool:
    leads = _leads(patterns)
    return min(leads) > 0 or max(leads) < 0


def _leads(patterns: Sequence[str]) -> list[float]:
    return [_mean_place(one, "B") - _mean_place(one, "A") for one in patterns]


def _mean_place(letters: str, letter: str) -> float:
    places = [at for at, one in enumerate(letters) if one == letter]
    return sum(places) / len(places)
