"""What a report shows, section by section: tables, notes and figures of an assessment.

A notebook cell shows one section: ``show(sections.guards(assessment))``. A section
that has nothing to show says so in a note.
"""

from IPython.display import display

from patchstudy.report.sections.cells import Part
from patchstudy.report.sections.methods import sensitivity
from patchstudy.report.sections.opening import (
    answer,
    changes,
    devices,
    guards,
    sentences,
    study,
    verdict,
)
from patchstudy.report.sections.pictures import all_runs, course, forest, guard_runs
from patchstudy.report.sections.record import behind, claims, exploratory, provenance
from patchstudy.report.sections.scatter import devices_together, spread
from patchstudy.report.sections.trust import bottleneck, doubts, notes, treatment

__all__ = [
    "Part",
    "all_runs",
    "answer",
    "behind",
    "bottleneck",
    "changes",
    "claims",
    "course",
    "devices",
    "devices_together",
    "doubts",
    "exploratory",
    "forest",
    "guard_runs",
    "guards",
    "notes",
    "provenance",
    "sensitivity",
    "sentences",
    "show",
    "spread",
    "study",
    "treatment",
    "verdict",
]


def show(parts: object) -> None:
    """Show one part, or a tuple of several, below a notebook cell."""
    for part in parts if isinstance(parts, tuple) else (parts,):
        display(part)
