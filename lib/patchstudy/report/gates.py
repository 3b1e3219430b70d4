"""What a batch amounts to: one line for a log, and whether it may pass."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from patchstudy.errors import printable
from patchstudy.report.batch import Outcome

_VETO = "veto"
_WORSE = "worse"


def in_one_line(outcomes: Sequence[Outcome], page: Path) -> str:
    """Return the summary of a batch, in one line."""
    done = [one for one in outcomes if not one.error]
    made = sum(one.made for one in done)
    decisions = Counter(one.decision for one in done)
    told = [f"{made} made, {len(done) - made} up to date"]
    told += [f"{count} {name}" for name, count in sorted(decisions.items())]
    told += [f"{len(outcomes) - len(done)} failed"] if len(done) < len(outcomes) else []
    shown = ", ".join(told)
    count = f"{len(done)} of {len(outcomes)} studies reported"
    return f"{count}: {printable(str(page))} ({shown})"


def shut(outcomes: Sequence[Outcome], gates: Sequence[str]) -> tuple[str, ...]:
    """Return the studies that do not pass the gates ``veto`` and ``worse``.

    ``worse`` is any metric whose verdict is worse, whatever its role.
    """
    return tuple(
        one.study
        for one in outcomes
        if (_VETO in gates and one.decision == _VETO) or (_WORSE in gates and one.worse)
    )
