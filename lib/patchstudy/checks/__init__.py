"""Doubts about the data, found before anything is compared.

A check is a function from the material of a study to the doubts it found. To add one,
write the function in the module of its subject and put it in ``CHECKS``.
"""

from typing import Final

from patchstudy.checks.ceilings import (
    CPU_SATURATED,
    NEAR_CEILING,
    above_offered,
    ceiling,
    impossible,
    saturation,
)
from patchstudy.checks.doubts import Check, Doubt, Material, material
from patchstudy.checks.files import (
    capture_caveats,
    failed_runs,
    leftovers,
    missing_files,
    profile_runs,
    unanswered,
    unasked,
    variants,
)
from patchstudy.checks.intervals import uneven_runs
from patchstudy.checks.kernel import kernel_warnings
from patchstudy.checks.layout import Floor, code_placement, layout_floor
from patchstudy.checks.mistakes import (
    copied_runs,
    misplaced_runs,
    mixed_machines,
    odd_clocks,
    rounded_values,
    same_build,
    sorted_values,
    wrong_units,
)
from patchstudy.checks.modes import modes_within_runs, two_modes
from patchstudy.checks.planning import planning
from patchstudy.checks.replication import (
    ENOUGH_UNITS,
    drift,
    order,
    orders,
    replication,
)
from patchstudy.checks.treatment import differences, fact_files
from patchstudy.checks.values import outliers, ties
from patchstudy.checks.work import calls_per_bit
from patchstudy.records import Severity

__all__ = [
    "CHECKS",
    "CPU_SATURATED",
    "ENOUGH_UNITS",
    "NEAR_CEILING",
    "Check",
    "Doubt",
    "Floor",
    "Material",
    "ceiling",
    "check",
    "impossible",
    "layout_floor",
    "material",
    "orders",
]

CHECKS: Final[tuple[Check, ...]] = (
    leftovers,
    failed_runs,
    missing_files,
    variants,
    unanswered,
    unasked,
    replication,
    code_placement,
    order,
    uneven_runs,
    planning,
    kernel_warnings,
    differences,
    fact_files,
    copied_runs,
    misplaced_runs,
    same_build,
    mixed_machines,
    odd_clocks,
    impossible,
    above_offered,
    wrong_units,
    sorted_values,
    rounded_values,
    saturation,
    two_modes,
    modes_within_runs,
    outliers,
    ties,
    calls_per_bit,
    drift,
    profile_runs,
    capture_caveats,
)


def check(found: Material) -> tuple[Doubt, ...]:
    """Apply every check; the gravest doubts first."""
    doubts = [doubt for function in CHECKS for doubt in function(found)]
    ranks = [Severity.UNUSABLE, Severity.CAP, Severity.DOUBT, Severity.NOTE]
    return tuple(sorted(doubts, key=lambda one: ranks.index(one.caveat.severity)))
