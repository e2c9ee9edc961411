"""A calibration curve: how often pairs are linked that a score gives some probability."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from corrvae.pictures.theme import LINE, SERIES
from corrvae.pictures.vector import bare_axes, inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 300, 220


def draw_calibration(
    predicted: Float[np.ndarray, " bins"],
    observed: Float[np.ndarray, " bins"],
    counts: Int[np.ndarray, " bins"],
    *,
    name: str,
) -> str:
    """Draw predicted probabilities against the shares observed, as SVG.

    Parameters
    ----------
    predicted, observed, counts
        Of each bin: the mean probability, the share of links, the number of pairs.
    name
        What identifiers begin with.

    Examples
    --------
    >>> svg = draw_calibration(np.array([0.1, 0.9]), np.array([0.2, 0.8]), np.array([10, 10]), name="a")
    >>> "off by 10 % on average" in svg
    True
    """

    def paint(figure: "Figure") -> None:
        axes = bare_axes(figure, 44, 40, 10, 8)
        axes.plot([0, 1], [0, 1], color=LINE, lw=1.5)
        axes.plot(predicted, observed, color=SERIES[0], lw=1.4, marker="o", ms=5)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="predicted probability", ylabel="share linked")
        axes.set_xticks([0, 0.5, 1])
        axes.set_yticks([0, 0.5, 1])
        axes.grid(axis="y")

    off = float(np.abs(predicted - observed) @ counts / counts.sum())
    points = "; ".join(f"{p:.2f} to {o:.2f}" for p, o in zip(predicted, observed, strict=True))
    description = f"Predicted against observed, off by {off:.0%} on average: ".replace("%", " %") + f"{points}."
    title = "Calibration of the probability of a link"
    return inline_svg(paint, name=name, width=_WIDTH, height=_HEIGHT, title=title, description=description)
