"""One module a figure: a tidy table in, a ``seaborn.objects.Plot`` out.

``render.to_svg`` draws any of them. Every figure refuses an empty table with
``ValueError("nothing to draw: ...")``.
"""

from patchstudy.figures.cost_ecdf import cost_ecdf
from patchstudy.figures.course import course
from patchstudy.figures.cpu_strip import cpu_strip
from patchstudy.figures.flame import flame
from patchstudy.figures.forest import forest
from patchstudy.figures.profile import profile_costs, profile_difference
from patchstudy.figures.render import to_svg
from patchstudy.figures.runs import runs

__all__ = [
    "cost_ecdf",
    "course",
    "cpu_strip",
    "flame",
    "forest",
    "profile_costs",
    "profile_difference",
    "runs",
    "to_svg",
]
