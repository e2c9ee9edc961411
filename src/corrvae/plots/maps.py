"""Maps: embeddings in two dimensions, coloured by groups or by numbers, with the edges between the points."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from corrvae.plots.style import COLOURS, INK, SOFT, styled

_WIDTH, _ROOM_FOR_KEYS = 4.8, 0.7
_CROWD = 2000  # points or edges beyond which a vector picture takes more bytes than one of pixels
_FEW = 8  # different numbers that may be kinds rather than amounts
_LONGEST = 24
_TAILS, _MARGIN = 0.5, 0.03


@styled
def draw_map(
    places: Float[np.ndarray, "points 2"],
    values: Sequence[Any] | np.ndarray | None = None,
    *,
    edges: Int[np.ndarray, "edges 2"] | None = None,
    title: str = "",
) -> Figure:
    """Draw points, and lines between those that are linked.

    They are coloured by `values`, None where one is not known. Numbers of more than eight different values get a scale.
    All else are groups: the eight largest get a colour, the others are grey.
    """
    low, high = _frame(places)
    height = _WIDTH * float(np.clip((high[1] - low[1]) / (high[0] - low[0]), 0.5, 1.1))
    figure = Figure(figsize=(_WIDTH, height + _ROOM_FOR_KEYS))
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_title(_shorten(title, 60), parse_math=False)
    if edges is not None and len(edges):
        lines = LineCollection(
            list(places[edges]), colors=SOFT, lw=0.5, alpha=0.35, zorder=1, rasterized=len(edges) > _CROWD
        )
        axes.add_collection(lines, autolim=False)
    dots: dict[str, Any] = {"s": float(np.clip(1.5e4 / max(len(places), 1), 1.5, 26.0)), "lw": 0, "zorder": 2}
    dots |= {"alpha": 0.9, "rasterized": len(places) > _CROWD}
    known = [] if values is None else [None if _is_missing(value) else value for value in np.asarray(values).tolist()]
    if values is None:
        axes.scatter(places[:, 0], places[:, 1], color=COLOURS[0], **dots)
    elif _are_amounts(known):
        _scatter_amounts(figure, axes, places, known, dots)
    else:
        _scatter_groups(figure, axes, places, known, dots)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return figure


def _scatter_amounts(figure: Figure, axes: Axes, places: np.ndarray, values: list[Any], dots: dict[str, Any]) -> None:
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    given = np.isfinite(numbers)
    axes.scatter(places[~given, 0], places[~given, 1], color=SOFT, **dots)
    low, high = np.percentile(numbers[given], [_TAILS, 100 - _TAILS])
    low, high = (low, high) if high > low else (numbers[given].min(), numbers[given].max())
    drawn = axes.scatter(
        places[given, 0], places[given, 1], c=numbers[given], cmap="viridis", vmin=low, vmax=high, **dots
    )
    figure.colorbar(drawn, ax=axes, orientation="horizontal", shrink=0.6, aspect=30, pad=0.02)


def _scatter_groups(figure: Figure, axes: Axes, places: np.ndarray, values: list[Any], dots: dict[str, Any]) -> None:
    groups = np.array(["" if value is None else str(value) for value in values], dtype=object)
    names, counts = np.unique(groups[groups != ""], return_counts=True)
    largest = sorted(names[np.argsort(-counts, kind="stable")][: len(COLOURS)].tolist(), key=_natural)
    others = ~np.isin(groups, largest)
    # grey first: it must not lie over the others
    handles = [axes.scatter(places[others, 0], places[others, 1], color=SOFT, **dots)] if others.any() else []
    for name, colour in zip(largest, COLOURS, strict=False):
        chosen = groups == name
        handles.append(axes.scatter(places[chosen, 0], places[chosen, 1], color=colour, **dots))
    rest = ["not given" if len(names) == len(largest) else f"{len(names) - len(largest):,} others"]
    labels = rest * bool(others.any()) + [f"{_shorten(name)} ({(groups == name).sum():,})" for name in largest]
    if len(labels) > 1:
        width = max(map(len, labels))
        columns = 3 if width <= 16 else 2 if width <= 26 else 1
        legend = figure.legend(handles, ["-"] * len(handles), loc="outside lower center", ncols=columns, fontsize=8)
        for text, label, key in zip(legend.get_texts(), labels, legend.legend_handles, strict=True):
            text.set(text=label, parse_math=False, color=INK)
            if key is not None:
                key.set(sizes=[20.0])


def _frame(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of a frame around almost all points: one far away must not press the others together."""
    if not len(places):
        return np.zeros(2), np.ones(2)
    low, high = np.percentile(places, [_TAILS, 100 - _TAILS], axis=0)
    near = ((places >= low - (high - low)) & (places <= high + (high - low))).all(axis=1)
    shown = places[near] if near.any() else places
    low, high = shown.min(axis=0), shown.max(axis=0)
    margin = _MARGIN * float((high - low).max()) or 0.5
    return low - margin, high + margin


def _are_amounts(values: list[Any]) -> bool:
    given = [value for value in values if value is not None]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in given)
    return numeric and len(set(given)) > _FEW


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or value != value


def _natural(name: str) -> tuple[bool, float, str]:
    """Sort key: numbers by size, before words."""
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name


def _shorten(text: str, longest: int = _LONGEST) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
