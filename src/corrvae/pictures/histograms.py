"""Histograms: the spanning weights of a graph, and scores of linked against random pairs."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from corrvae.pictures.theme import INK, SERIES, SOFT, SURFACE
from corrvae.pictures.vector import bare_axes, inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WEIGHTS_SIZE, _PAIRS_SIZE = (340, 215), (300, 160)
_BINS = 40
_FAR = 0.5  # percent of the pairs at each end that may lie outside of the frame


def draw_weights_histogram(
    counts: Float[np.ndarray, " bars"], bounds: Float[np.ndarray, " bounds"], *, name: str
) -> str:
    """Draw how many edges have which spanning weight, as SVG.

    Examples
    --------
    >>> svg = draw_weights_histogram(np.array([3.0, 1.0]), np.array([0.0, 0.5, 1.0]), name="weights")
    >>> "4 edges, the fullest bar (3) from 0 to 0.5" in svg
    True
    """

    def paint(figure: "Figure") -> None:
        axes = bare_axes(figure, 46, 40, 10, 8)
        axes.bar(bounds[:-1], counts, np.diff(bounds), align="edge", color=SERIES[0], edgecolor=SURFACE, linewidth=0.6)
        axes.set(xlabel="spanning weight of an edge", ylim=(0, 1.05 * max(counts.max(), 1.0)))
        axes.locator_params(axis="y", nbins=5)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.grid(axis="y")

    fullest = int(np.argmax(counts))
    description = (
        f"{counts.sum():,.0f} edges, the fullest bar ({counts[fullest]:,.0f}) from {bounds[fullest]:.3g} to "
        f"{bounds[fullest + 1]:.3g}."
    )
    width, height = _WEIGHTS_SIZE
    title = "Histogram of spanning weights"
    return inline_svg(paint, name=name, width=width, height=height, title=title, description=description)


def share_lower(linked: Float[np.ndarray, " linked"], random: Float[np.ndarray, " random"]) -> float:
    """How often a linked pair scores lower than a random one; a tie counts half.

    Examples
    --------
    >>> share_lower(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    ordered = np.sort(random)
    below = np.searchsorted(ordered, linked, "left") + np.searchsorted(ordered, linked, "right")
    return 1.0 - float(below.mean()) / (2 * len(random))


def describe_separation(linked: Float[np.ndarray, " linked"], random: Float[np.ndarray, " random"], metric: str) -> str:
    """A sentence on how far linked pairs stand apart from random ones.

    Examples
    --------
    >>> describe_separation(np.array([1.0, 2.0]), np.array([2.0, 3.0]), "expected squared distance")
    'A linked pair is nearer than a random one in 88 % of cases.'
    """
    lower = share_lower(linked, random)
    if "distance" in metric.lower():
        return f"A linked pair is nearer than a random one in {_percent(lower)} of cases."
    return f"A linked pair scores higher than a random one in {_percent(1 - lower)} of cases."


def _percent(share: float) -> str:
    """Whole percents; all and none are said only of what is all and none."""
    if 0.0 < share < 1.0 and round(100 * share) in (0, 100):
        return "over 99 %" if share > 0.5 else "under 1 %"
    return f"{100 * share:.0f} %"


def draw_pairs(
    linked: Float[np.ndarray, " linked"],
    random: Float[np.ndarray, " random"],
    *,
    name: str,
    label: str,
    metric: str,
    series: int | None,
) -> str:
    """Draw scores of linked pairs over those of random ones, as SVG.

    Parameters
    ----------
    linked, random
        Their scores.
    name
        What identifiers begin with.
    label, metric
        The model and what was measured, for people.
    series
        Colour of the linked pairs; ``None`` for ink.

    Examples
    --------
    >>> svg = draw_pairs(np.ones(3), np.zeros(4), name="pairs", label="CVAE_ind", metric="log-odds", series=0)
    >>> "scores higher than a random one in 100 % of cases" in svg
    True
    """
    both = np.concatenate([linked, random])
    low, high = np.percentile(both, [_FAR, 100 - _FAR]).tolist()
    if not high - low > 1e-9 * max(abs(low), abs(high), 1e-9):
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    bounds = np.linspace(low, high, _BINS + 1)

    def paint(figure: "Figure") -> None:
        axes = bare_axes(figure, 8, 24, 8, 6)
        colour = INK if series is None else SERIES[series]
        for scores, shade, filled in ((random, SOFT, 0.25), (linked, colour, 0.45)):
            shares = np.histogram(scores, bounds)[0] / len(scores)
            axes.stairs(shares, bounds, fill=True, color=shade, alpha=filled, lw=0)
            axes.stairs(shares, bounds, color=shade, lw=1.5)
        axes.set(xlim=(low, high), ylim=(0, None), yticks=[])
        axes.locator_params(axis="x", nbins=5)

    width, height = _PAIRS_SIZE
    description = f"{metric}: {len(linked):,} linked and {len(random):,} random pairs. " + describe_separation(
        linked, random, metric
    )
    title = f"Linked against random pairs, {label}"
    return inline_svg(paint, name=name, width=width, height=height, title=title, description=description)
