"""One module a figure: a tidy table in, a ``seaborn.objects.Plot`` out.

``to_svg``, ``to_png`` and ``to_pdf`` draw any of them. Every figure refuses an empty
table with ``ValueError("nothing to draw: ...")``.
"""

from patchstudy.figures.against_cpu import against_cpu
from patchstudy.figures.cost_ecdf import cost_ecdf
from patchstudy.figures.course import course
from patchstudy.figures.cpu_strip import cpu_strip
from patchstudy.figures.ecdf import ecdf
from patchstudy.figures.flame import flame
from patchstudy.figures.forest import forest
from patchstudy.figures.interaction import interaction
from patchstudy.figures.power import power
from patchstudy.figures.profile import profile_costs, profile_difference
from patchstudy.figures.render import to_pdf, to_png, to_svg
from patchstudy.figures.runs import runs

__all__ = [
    "against_cpu",
    "cost_ecdf",
    "course",
    "cpu_strip",
    "ecdf",
    "flame",
    "forest",
    "interaction",
    "power",
    "profile_costs",
    "profile_difference",
    "runs",
    "to_pdf",
    "to_png",
    "to_svg",
]
