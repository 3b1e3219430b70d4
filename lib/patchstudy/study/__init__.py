"""The declared ``Design`` of a study and the ``Run``s found under its folder."""

from patchstudy.study.design import (
    Claim,
    Controls,
    Design,
    Margin,
    Planned,
    Role,
    parse_margin,
    read_design,
)
from patchstudy.study.folder import (
    FactFile,
    Leftover,
    Run,
    Source,
    Study,
    of_files,
    open_study,
)
from patchstudy.study.stored import StoredPlan, declared_margins

__all__ = [
    "Claim",
    "Controls",
    "Design",
    "FactFile",
    "Leftover",
    "Margin",
    "Planned",
    "Role",
    "Run",
    "Source",
    "StoredPlan",
    "Study",
    "declared_margins",
    "of_files",
    "open_study",
    "parse_margin",
    "read_design",
]
