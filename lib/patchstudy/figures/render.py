"""Any plot to a file: the same bytes on every call and in every process."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn.objects as so
from matplotlib.artist import Artist
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import BboxBase

from patchstudy.figures import theme

_SETTINGS: Final[dict[Any, Any]] = {
    **theme.RC,
    "svg.hashsalt": "patchstudy",
    "svg.fonttype": "path",
    "svg.image_inline": True,
    "pdf.fonttype": 42,
}
_PIXELS_PER_INCH: Final = 160
_BORDER: Final = 0.06  # inches around what is drawn
_CANVAS: Final[dict[str, type[FigureCanvasBase]]] = {
    "svg": FigureCanvasSVG,
    "pdf": FigureCanvasPdf,
    "png": FigureCanvasAgg,
}


def to_svg(plot: so.Plot) -> bytes:
    """Draw a plot as SVG without a date, a path or a trace of the machine.

    Letters are outlines, so that it looks the same everywhere. Nothing is clipped at
    the border. What has more than ``theme.MANY`` marks is drawn as pixels. Places have
    two digits, a tenth of what a screen shows, and no line is indented.
    """
    made = _drawn(plot, "svg", {"Date": None, "Creator": None})
    return _SHAPE.sub(_shortened, _INDENT.sub(b"\n", made))


_INDENT: Final = re.compile(rb"(?<! ) *+\n *")
_SHAPE: Final = re.compile(rb' (?:d|x|y)="[^"]*"')
_LONG: Final = re.compile(rb"-?\d{1,12}\.\d{3,}")


def _shortened(shape: re.Match[bytes]) -> bytes:
    """Round the numbers of a shape; scales and turns keep all their digits."""
    return _LONG.sub(lambda x: b"%r" % round(float(x[0]), 2), shape[0])


def to_pdf(plot: so.Plot) -> bytes:
    """Draw a plot as a PDF of one page with its letters embedded."""
    nothing = {"CreationDate": None, "Creator": None, "Producer": None}
    return _drawn(plot, "pdf", nothing)


def to_png(plot: so.Plot) -> bytes:
    """Draw a plot as pixels, 160 an inch."""
    return _drawn(plot, "png", {"Software": None})


def _drawn(plot: so.Plot, kind: str, metadata: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with _quiet(), mpl.rc_context(_SETTINGS):
        figure = _figure(plot)
        for artist in _artists(figure):
            if _marks(artist) > theme.MANY:
                artist.set_rasterized(True)
        figure.savefig(
            buffer,
            format=kind,
            dpi=_PIXELS_PER_INCH,
            bbox_inches=_laid_out(figure, _CANVAS[kind]),
            metadata=metadata,
        )
    return buffer.getvalue()


def _laid_out(figure: Figure, canvas: type[FigureCanvasBase]) -> BboxBase:
    """Give all parts their place; return what they take up, in inches.

    ``savefig`` would draw everything once more for this.
    """
    figure.set_dpi(canvas(figure).fixed_dpi or _PIXELS_PER_INCH)
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine(None)
    return figure.get_tightbbox().padded(_BORDER)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide what seaborn does to pandas; users can do nothing about it.

    Small tables are cut into many parts: Arrow's strings, also those of the names of
    columns, are slow at that.
    """
    plain = pd.option_context("mode.string_storage", "python")
    with plain, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The copy keyword is deprecated")
        yield


def _figure(plot: so.Plot) -> Figure:
    """Compile the plot; seaborn makes it without pyplot, so nobody has to close it."""
    return plot.plot()._figure  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue]


def _artists(figure: Figure) -> Iterator[Artist]:
    """Yield what may have many marks."""
    for axes in figure.axes:
        yield from (*axes.lines, *axes.collections)


def _marks(artist: Artist) -> int:
    """Count the dots or corners of an artist."""
    if isinstance(artist, Line2D):
        return np.size(artist.get_xdata(orig=True))
    if isinstance(artist, Collection):
        corners = sum(np.shape(path.vertices)[0] for path in artist.get_paths())
        return max(corners, np.shape(artist.get_offsets())[0])
    return 0
