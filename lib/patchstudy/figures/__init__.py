"""One module a figure: a tidy table in, a ``seaborn.objects.Plot`` out.

``render.to_svg`` draws any of them. Every figure refuses an empty table with
``ValueError("nothing to draw: ...")``.
"""

from patchstudy.figures.course import course
from patchstudy.figures.forest import forest
from patchstudy.figures.profile import profile_difference
from patchstudy.figures.render import to_svg
from patchstudy.figures.runs import runs

__all__ = ["course", "forest", "profile_difference", "runs", "to_svg"]
