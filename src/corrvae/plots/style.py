"""The look of all figures, and the two ways out: a picture file, or a data URI inside a page."""

import os
import warnings
from base64 import b64encode
from io import BytesIO
from typing import Any

import matplotlib.style
from cycler import cycler
from matplotlib.figure import Figure

# Eight hues that colour-blind readers can tell apart, each at least 4.5 times as dark as white.
COLOURS = ("#0068b0", "#c2410c", "#007d5a", "#a0447f", "#8a6200", "#2b7ba8", "#5b4bb5", "#6e5a4b")
INK, SOFT, LINE = "#1b1f24", "#5f6873", "#d9dde2"

_STYLE: dict[str, Any] = {
    "font.size": 9,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "grid.color": LINE,
    "legend.frameon": False,
    "xtick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.color": LINE,
    "ytick.labelcolor": SOFT,
    # text stays text (a browser has letters that matplotlib's font lacks), and the same figure gives the same bytes
    "svg.fonttype": "none",
    "svg.hashsalt": "corrvae",
}
_DPI = 160

# The style of this room around a function that draws, whatever is in the user's own matplotlibrc.
styled = matplotlib.style.context(["default", _STYLE])


@styled
def save_figure(figure: Figure, path: str | os.PathLike[str] | BytesIO, **options: Any) -> None:
    """Write a figure to a file; its suffix (png, svg, pdf) is the format. `options` are those of ``Figure.savefig``."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(path, dpi=_DPI, **options)


def svg_uri(figure: Figure) -> str:
    """Return a figure as an SVG data URI, for the ``src`` of an ``<img>``; the same figure gives the same text."""
    file = BytesIO()
    save_figure(figure, file, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + b64encode(file.getvalue()).decode("ascii")
