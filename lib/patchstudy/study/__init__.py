"""The declared ``Design`` of a study and the ``Run``s found under its folder."""

from patchstudy.study.claimed import Claim, ClaimKind, Stated, parse_change
from patchstudy.study.design import (
    Controls,
    Design,
    Margin,
    Planned,
    Role,
    parse_margin,
    read_design,
)
from patchstudy.study.folder import (
    PUBLISHED,
    FactFile,
    Leftover,
    Run,
    Source,
    Study,
    is_published,
    of_files,
    open_study,
)
from patchstudy.study.hidden import hide
from patchstudy.study.stored import StoredPlan, declared_margins

__all__ = [
    "PUBLISHED",
    "Claim",
    "ClaimKind",
    "Controls",
    "Design",
    "FactFile",
    "Leftover",
    "Margin",
    "Planned",
    "Role",
    "Run",
    "Source",
    "Stated",
    "StoredPlan",
    "Study",
    "declared_margins",
    "hide",
    "is_published",
    "of_files",
    "open_study",
    "parse_change",
    "parse_margin",
    "read_design",
]
