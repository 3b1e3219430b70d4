"""How a batch asks the kernel of a notebook for its results; made by ``handed``.

Apart from it, since whoever asks needs nothing of what works them out.
"""

from typing import Final

MIME: Final = "application/vnd.patchstudy.results+json"


def cell(study: str, *, variable: str, redact: bool) -> str:
    """Return the source of the cell that hands the results of a study over."""
    return (
        "from patchstudy.report.handed import hand_over as _hand_over\n"
        f"_hand_over({study!r}, {variable or None}, redact={redact})"
    )
