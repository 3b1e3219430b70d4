"""Changes that need no spread: of runs that pass or fail, and of exact numbers.

``compare`` puts them into a comparison in place of a t interval (STATISTICS 3.5, 3.6,
3.10); ``verdicts`` judges them.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from patchstudy import stats
from patchstudy.metrics import Kind

Values = npt.NDArray[np.float64]

#: Kinds that are compared here, whatever the number of units.
KINDS: Final = frozenset({Kind.PASSFAIL, Kind.EXACT})
#: Relative difference that is no difference: what a sum in floating point may leave.
SAME: Final = 1e-12


def exact(base: Values, new: Values, confidence: float) -> stats.Estimate | None:
    """Difference of two numbers that every run repeats; None where one does not."""
    if not (_repeated(base) and _repeated(new)):
        return None
    old, patched = float(base[0]), float(new[0])
    same = abs(patched - old) <= SAME * max(abs(old), abs(patched))
    value = 0.0 if same else patched - old
    return stats.Estimate(
        value=value, low=value, high=value, confidence=confidence, method="exact"
    )


def _repeated(values: Values) -> bool:
    return bool(values.size) and np.ptp(values) <= SAME * np.abs(values).max()


def counted(values: Values) -> tuple[int, int] | None:
    """Units with the outcome, of all; None where a value is neither 0 nor 1."""
    if not values.size or not np.isin(values, (0.0, 1.0)).all():
        return None
    return int(values.sum()), int(values.size)


def passed(
    base: Values, new: Values, confidence: float
) -> tuple[stats.Estimate, float] | None:
    """Difference of the shares of units with the outcome, and Fisher's exact p."""
    old, patched = counted(base), counted(new)
    if old is None or patched is None:
        return None
    table = [[k, n - k] for k, n in (old, patched)]
    return stats.newcombe(old, patched, confidence), stats.fisher_p(table)
