"""Figures: maps of embeddings, training, uncertainty, spanning weights, scores of pairs, balance."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Real
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from corrvae.plots.style import COLOURS, LINE, SOFT, styled
from corrvae.scoring import Balance

_PANEL, _WIDE, _MAP = (2.7, 1.9), (4.4, 2.8), (4.8, 5.5)
_CROWD = 2000  # points or edges beyond which a vector picture takes more bytes than one of pixels
_BINS = 40
_FIRST_STEPS = 0.05  # share of the evaluations that may lie outside of the frame: they are far from where a term stays
_TAILS = 0.5  # percent of the values at each end that may lie outside of the frame


@styled
def draw_map(
    places: Float[np.ndarray, "points 2"],
    groups: Sequence[Any] | np.ndarray | None = None,
    *,
    edges: Int[np.ndarray, "edges 2"] | None = None,
    title: str = "",
) -> Figure:
    """Draw points, and lines between those that are linked; the eight largest groups have colours, the rest is grey."""
    figure = Figure(figsize=_MAP)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_title(title, parse_math=False)
    if edges is not None and len(edges):
        crowd = len(edges) > _CROWD
        lines = LineCollection(list(places[edges]), colors=SOFT, lw=0.5, alpha=0.35, zorder=1, rasterized=crowd)
        axes.add_collection(lines, autolim=False)
    size = float(np.clip(1.5e4 / max(len(places), 1), 1.5, 26.0))
    dots: dict[str, Any] = {"s": size, "lw": 0, "alpha": 0.9, "zorder": 2, "rasterized": len(places) > _CROWD}
    if groups is None:
        axes.scatter(*places.T, color=COLOURS[0], **dots)
    else:
        names, place, counts = np.unique(list(map(str, groups)), return_inverse=True, return_counts=True)
        largest = np.argsort(-counts, kind="stable")[: len(COLOURS)]
        rest = ~np.isin(place, largest)
        if rest.any():  # first: grey must not lie over the others
            axes.scatter(*places[rest].T, color=SOFT, label=f"{len(names) - len(largest):,} others", **dots)
        for k, colour in zip(largest, COLOURS, strict=False):
            axes.scatter(*places[place == k].T, color=colour, label=f"{names[k]} ({counts[k]:,})", **dots)
        keys = figure.legend(loc="outside lower center", ncols=3, fontsize=8, markerscale=(20 / size) ** 0.5)
        for text in keys.get_texts():
            text.set_parse_math(False)
    low, high = np.percentile(places, [_TAILS, 100 - _TAILS], axis=0)
    near = places[((places >= 2 * low - high) & (places <= 2 * high - low)).all(axis=1)]  # others are far away
    margin = 0.03 * np.ptp(near, axis=0).max() or 0.5
    (left, bottom), (right, top) = near.min(axis=0) - margin, near.max(axis=0) + margin
    axes.set(xlim=(left, right), ylim=(bottom, top))
    return figure


@styled
def draw_curves(
    curves: Mapping[str, tuple[Real[np.ndarray, " steps"], Real[np.ndarray, " steps"]]], *, title: str = ""
) -> Figure:
    """Draw one quantity along the steps of training, a line for each name; values that are not finite are left out."""
    figure = Figure(figsize=_PANEL)
    axes = figure.add_subplot()
    late = []
    for name, (steps, values) in curves.items():
        finite = np.isfinite(values)
        axes.plot(steps[finite], values[finite], lw=1.3, label=name, marker="o" if finite.sum() == 1 else None, ms=3)
        late.append(values[finite][int(_FIRST_STEPS * finite.sum()) :])
    shown = np.concatenate([np.empty(0), *late])
    if len(shown):
        low, high = float(shown.min()), float(shown.max())
        margin = 0.08 * (high - low) or 0.08 * abs(high) or 1.0
        axes.set_ylim(low - margin, high + margin)
    axes.locator_params(axis="both", nbins=4)
    axes.xaxis.set_major_formatter(FuncFormatter(short_number))
    axes.yaxis.set_major_formatter(FuncFormatter(short_number))
    axes.grid(axis="y")
    axes.set_title(title)
    if len(curves) > 1:
        axes.legend(fontsize=7)
    return figure


@styled
def draw_uncertainty(spread: Float[np.ndarray, " points"]) -> Figure:
    """Draw how uncertain points are: a histogram of the root of each point's mean variance (the prior has 1)."""
    figure = Figure(figsize=_WIDE)
    axes = _histogram(figure, spread, *_frame(spread), colour=COLOURS[0])
    axes.set(xlabel="standard deviation of a point (the prior has 1)", ylabel="points")
    return figure


@styled
def draw_weights(weights: Float[np.ndarray, " edges"]) -> Figure:
    """Draw a histogram of the spanning weights of a graph's edges, from 0 to 1 (a bridge)."""
    figure = Figure(figsize=_WIDE)
    axes = _histogram(figure, weights, 0.0, 1.0, colour=COLOURS[2])
    axes.set(xlabel="spanning weight of an edge", ylabel="edges", xlim=(-0.02, 1.02))
    return figure


@styled
def draw_pairs(
    linked: Float[np.ndarray, " linked"], unlinked: Float[np.ndarray, " unlinked"], *, metric: str = "score"
) -> Figure:
    """Draw the scores of linked pairs over those of unlinked ones, as shares of each."""
    figure = Figure(figsize=_WIDE)
    axes = figure.add_subplot()
    low, high = _frame(np.concatenate([linked, unlinked]))
    bounds = np.linspace(low, high, _BINS + 1)
    for scores, colour, name in ((unlinked, SOFT, "random unlinked pairs"), (linked, COLOURS[0], "linked pairs")):
        shares = np.histogram(scores, bounds)[0] / max(len(scores), 1)
        axes.stairs(shares, bounds, fill=True, color=colour, alpha=0.3, lw=0)
        axes.stairs(shares, bounds, color=colour, lw=1.3, label=name)
    axes.set(xlim=(low, high), yticks=[], xlabel=metric.replace("_", " "))
    axes.locator_params(axis="x", nbins=5)
    axes.legend(fontsize=8)
    return figure


@styled
def draw_balance(balance: Balance, *, n_covariates: int = 30) -> Figure:
    """Draw how far two sides differ in each covariate before and after matching: a love plot.

    The `n_covariates` that differed most before matching are shown; dotted lines are at differences of 0.1.
    """
    size = np.nan_to_num(np.abs(balance.before), posinf=np.inf)
    shown = np.argsort(-size, kind="stable")[:n_covariates][::-1]
    figure = Figure(figsize=(_WIDE[0], 1.0 + 0.17 * len(shown)))
    axes = figure.add_subplot()
    places = np.arange(len(shown))
    for limit in (-0.1, 0.1):
        axes.axvline(limit, color=LINE, lw=1, ls=":")
    axes.axvline(0.0, color=LINE, lw=1)
    axes.hlines(places, balance.before[shown], balance.after[shown], color=LINE, lw=1)
    for name, colour in (("before", SOFT), ("after", COLOURS[0])):
        axes.scatter(getattr(balance, name)[shown], places, s=18, color=colour, label=f"{name} matching", lw=0)
    axes.set_yticks(places, [balance.names[k] for k in shown])
    axes.set(xlabel="standardised mean difference", ylim=(-0.7, len(shown) - 0.3))
    axes.legend(fontsize=7, loc="best")
    return figure


def short_number(value: float, _position: object = None) -> str:
    """Return three digits that fit beside a small panel: 30k, 1.5M, -120."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}".replace("-", "\N{MINUS SIGN}")
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")


def _histogram(figure: Figure, values: np.ndarray, low: float, high: float, *, colour: str) -> Axes:
    axes = figure.add_subplot()
    axes.hist(values, bins=_BINS, range=(low, high), color=colour, edgecolor="white", lw=0.4)
    axes.locator_params(axis="y", nbins=5)
    axes.yaxis.set_major_formatter(FuncFormatter(short_number))
    axes.grid(axis="y")
    return axes


def _frame(values: np.ndarray) -> tuple[float, float]:
    """Return bounds that hold almost all values, and are apart."""
    low, high = np.percentile(values, [_TAILS, 100 - _TAILS]).tolist() if len(values) else (0.0, 1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-9):
        return low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    return low, high
