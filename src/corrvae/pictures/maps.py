"""A map of an embedding in two dimensions, with the graph's edges between its points.

All edges are one path and all points of a group are another, drawn as round dots of no length: a thousand elements
would make the page ten times as large.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from corrvae.pictures.theme import SERIES, SOFT
from corrvae.pictures.vector import bare_axes, inline_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIDE = 600  # a unit is half a pixel where maps are small, so that whole numbers will do
_MANY, _CROWD = 400, 2000  # points, which are drawn smaller, and smaller still the more there are
_MARGIN = 1.06
_FAR = 0.5  # percent of the points at each side that may lie outside of the frame's proportions


def group_series(groups: Float[np.ndarray, " points"]) -> dict[float, int | None]:
    """A colour for each group; of more groups than colours the largest have one, the others are quiet (``None``).

    Examples
    --------
    >>> group_series(np.array([2.0, 1.0, 2.0]))
    {1.0: 0, 2.0: 1}
    """
    values, counts = np.unique(groups, return_counts=True)
    largest = np.sort(values[np.argsort(-counts, kind="stable")][: len(SERIES)]).tolist()
    colours: dict[float, int | None] = {group: position for position, group in enumerate(largest)}
    return dict.fromkeys(values.tolist(), None) | colours


def draw_map(
    points: Float[np.ndarray, "points 2"],
    edges: Int[np.ndarray, "edges 2"],
    groups: Float[np.ndarray, " points"],
    colours: Mapping[float, int | None],
    *,
    name: str,
    label: str,
) -> str:
    """Draw a map, as SVG.

    Parameters
    ----------
    points, edges
        Where the points are, and which of them are linked.
    groups, colours
        The group of each point, and the colour of each group, as `group_series` gives it.
    name
        What identifiers begin with.
    label
        The model, for people.

    Examples
    --------
    >>> svg = draw_map(np.eye(2), np.array([[0, 1]]), np.zeros(2), {0.0: 1}, name="map", label="CVAE_ind")
    >>> "2 points, 1 edges between them" in svg
    True
    """
    places = _fit(points)

    def paint(figure: "Figure") -> None:
        axes = bare_axes(figure, 8, 8, 8, 8)
        axes.axis("off")
        axes.set(xlim=(-1, 1), ylim=(-1, 1))
        _strokes(axes, places[edges].reshape(-1, 2), color=SOFT, lw=1.2, alpha=0.4)
        size = 8.4 if len(points) < _MANY else 6.4 * min(1.0, (_CROWD / len(points)) ** 0.5)
        # quiet groups first: they must not lie over the others
        for group in sorted(np.unique(groups).tolist(), key=lambda group: colours[group] is not None):
            position = colours[group]
            style = {"color": SOFT if position is None else SERIES[position], "lw": size, "capstyle": "round"}
            _strokes(axes, places[groups == group].repeat(2, axis=0), alpha=0.9, **style)

    n_groups = len(np.unique(groups))
    among = "" if n_groups < 2 else f" in {n_groups:,} groups by colour"
    description = f"{len(points):,} points{among}, {len(edges):,} edges between them."
    title = f"Map of {label}"
    return inline_svg(paint, name=name, width=_SIDE, height=_SIDE, title=title, description=description, digits=0)


def _strokes(axes: "Axes", ends: np.ndarray, **style) -> None:
    """Draw lines, each from one row to the next, as one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not len(ends):
        return
    codes = np.tile(np.array([Path.MOVETO, Path.LINETO], dtype=Path.code_type), len(ends) // 2)
    path = Path(ends, codes)
    path.should_simplify = False  # it would take dots for nothing
    # the frame is set already: add_patch would look at every line to find it
    axes.add_artist(PathPatch(path, fill=False, **style))


def _fit(points: np.ndarray) -> np.ndarray:
    """Bring almost all points into the square from -1 to 1: one far away must not press the others together."""
    low, high = np.percentile(points, [_FAR, 100 - _FAR], axis=0)
    near = ((points >= low - (high - low)) & (points <= high + (high - low))).all(axis=1)
    shown = points[near] if near.any() else points
    low, high = shown.min(axis=0), shown.max(axis=0)
    reach = float((high - low).max()) / 2
    return (points - (low + high) / 2) / (_MARGIN * reach if reach > 0 else 1.0)
