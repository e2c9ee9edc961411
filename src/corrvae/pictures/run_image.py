"""The map of a run as a picture file, in the colours of a light page."""

from pathlib import Path

import numpy as np

from corrvae.drafts import draft_of_file
from corrvae.errors import FolderError
from corrvae.pictures.maps import group_series
from corrvae.pictures.run_view import RunView
from corrvae.pictures.theme import css_values

_INCHES, _DOTS = (8.0, 8.0), 150
_MOST_KEYS = 9


def write_map(view: RunView, path: Path) -> Path:
    """Draw the map of a run into a PNG file.

    Parameters
    ----------
    view
        What is to be seen.
    path
        The file.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    shades = colours()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        figure = Figure(figsize=_INCHES, facecolor=shades["surface"])
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.03, 0.03, 0.94, 0.9))
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_title(
            f"{view.run.path.resolve().name}, by {view.colouring.title}", color=shades["ink"], parse_math=False
        )
        axes.add_collection(LineCollection(list(view.places[view.edges]), colors=shades["soft"], lw=0.5, alpha=0.35))
        size = float(np.clip(4e4 / max(len(view.places), 1), 2.0, 40.0))
        groups = view.colouring.groups
        series = group_series(groups)
        # quiet groups first: they must not lie over the others
        for group, colour in sorted(series.items(), key=lambda item: item[1] is not None):
            here = view.places[groups == group]
            shade = shades["soft"] if colour is None else shades[f"series-{colour}"]
            label = None if colour is None else view.colouring.names[group].replace("$", r"\$")
            axes.scatter(*here.T, s=size, color=shade, label=label, lw=0, zorder=2, alpha=0.9)
        if 1 < len(series) <= _MOST_KEYS:
            axes.legend(frameon=False, labelcolor=shades["ink"], loc="best")
        axes.autoscale_view()
        try:
            with draft_of_file(path) as draft:
                figure.savefig(draft, format="png", dpi=_DOTS, metadata={"Software": None})
        except OSError as error:
            raise FolderError(path, f"cannot be written ({error.strerror or error})") from error
    return path


def colours() -> dict[str, str]:
    """Give the colours of a light page by name.

    Examples
    --------
    >>> colours()["surface"]
    '#ffffff'
    """
    declared = (part.removeprefix("--").split(":") for part in css_values(dark=False).split(";"))
    return dict(declared)
