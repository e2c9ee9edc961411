"""Learning curves: each term of the objective in a small panel of its own, one colour a model, one line a seed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float

from corrvae.pictures.theme import SERIES
from corrvae.pictures.vector import bare_axes, inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 180, 128
_MOST_KNOTS = 100
_SETTLING = 0.05  # share of the steps in which a term may be far from where it stays
_DASHES = ("-", (0, (6, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
_WHEN = ("step", "epoch", "seconds")
_TERMS = {
    "total": "Total bound",
    "reconstruction": "Reconstruction",
    "singleton": "Singleton KL",
    "edge": "Edge KL",
    "non_edge": "Non-edge",
    "loss": "Loss of baselines",
}


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """A term of one run, along its steps."""

    label: str
    series: int
    steps: Float[np.ndarray, " steps"]
    values: Float[np.ndarray, " steps"]


def term_names(histories: Iterable[dict[str, Float[np.ndarray, " steps"]]]) -> dict[str, str]:
    """Terms that some history has, each with its name for people, the known ones first.

    Examples
    --------
    >>> term_names([{"step": np.ones(1), "edge": np.ones(1), "total": np.ones(1)}])
    {'total': 'Total bound', 'edge': 'Edge KL'}
    """
    found = {name for history in histories for name, values in history.items() if _says_something(values)}
    found = {name for name in found if name not in _WHEN and not name.startswith("validation_")}
    others = sorted(found.difference(_TERMS))
    return {name: title for name, title in _TERMS.items() if name in found} | {name: name for name in others}


def draw_curves(curves: list[Curve], *, name: str, term: str) -> str:
    """Draw the curves of one term, as SVG.

    Examples
    --------
    >>> curve = Curve("CVAE_ind", 0, np.arange(5.0), np.arange(5.0) ** 2)
    >>> "CVAE_ind from 0 to 16" in draw_curves([curve], name="curves", term="Edge KL")
    True
    """
    kept = [
        Curve(curve.label, curve.series, *_thin(curve.steps, curve.values))
        for curve in curves
        if _says_something(curve.values)
    ]

    def paint(figure: "Figure") -> None:
        axes = bare_axes(figure, 34, 20, 8, 6)
        for curve in kept:
            dashes = _DASHES[curve.series % len(_DASHES)]
            axes.plot(curve.steps, curve.values, color=SERIES[curve.series], lw=1.4, alpha=0.85, ls=dashes)
        axes.set_ylim(*_heights(kept))
        axes.margins(x=0.02)
        axes.locator_params(axis="both", nbins=4)
        axes.xaxis.set_major_formatter(_short)
        axes.yaxis.set_major_formatter(_short)
        axes.tick_params(labelsize=10)
        axes.grid(axis="y")

    ends = [f"{curve.label} from {curve.values[0]:.4g} to {curve.values[-1]:.4g}" for curve in kept]
    description = f"{term} along the steps of training: {'; '.join(ends) or 'no values'}."
    return inline_svg(paint, name=name, width=_WIDTH, height=_HEIGHT, title=term, description=description)


def _says_something(values: np.ndarray) -> bool:
    """A model that lacks a term has zeros there."""
    return bool((np.isfinite(values) & (values != 0)).any())


def _thin(steps: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finite values, as means of blocks where there are more than an eye can tell apart."""
    finite = np.isfinite(values)
    steps, values = steps[finite], values[finite]
    if len(steps) <= _MOST_KNOTS:
        return steps, values
    starts = np.linspace(0, len(steps), _MOST_KNOTS, endpoint=False).astype(int)
    sizes = np.diff(np.append(starts, len(steps)))
    return np.add.reduceat(steps, starts) / sizes, np.add.reduceat(values, starts) / sizes


def _heights(curves: list[Curve]) -> tuple[float, float]:
    """Room for every value after the first steps, which would press the others flat."""
    late = [curve.values[int(_SETTLING * len(curve.values)) :] for curve in curves]
    values = np.concatenate(late) if late else np.zeros(1)
    low, high = float(values.min()), float(values.max())
    margin = 0.08 * (high - low) or 0.08 * abs(high) or 1.0
    return low - margin, high + margin


def _short(value: float, _position: object) -> str:
    """Three digits that fit beside a small panel: 30k, 1.5M, -120."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}".replace("-", "\N{MINUS SIGN}")
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")
