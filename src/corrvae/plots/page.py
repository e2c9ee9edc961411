"""The page of a run: map, course of training, linked against unlinked pairs, uncertainty, spanning weights, facts."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from corrvae.estimator import CorrelatedVAE
from corrvae.plots import figures
from corrvae.plots.facts import TERMS, LinkScores, as_words, describe, group_points, score_links, uncertainty
from corrvae.plots.layout import project
from corrvae.plots.style import svg_uri

# What a map shows at most: more points hide each other.
MAX_POINTS, MAX_EDGES = 20_000, 20_000
_BINS = 10
_WHEN = ("step", "epoch", "seconds")


def draw_embedding(model: CorrelatedVAE, *, n_clusters: int = 5, random_state: int = 0) -> Figure:
    """Draw the map of a fitted model's training points and its graph, coloured by k-means of the means.

    `draw_map` colours places, such as those of `project`, by values of your own.
    """
    return _map(model, n_clusters, random_state)[0]


def write_page(
    model: CorrelatedVAE,
    path: str | os.PathLike[str],
    *,
    title: str = "A trained model",
    n_clusters: int = 5,
    random_state: int = 0,
) -> None:
    """Write a page on a fitted model: one HTML file that loads nothing from elsewhere."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from corrvae import __version__
    from corrvae.io import replace_file

    figure, shown = _map(model, n_clusters, random_state)
    links = score_links(model, np.random.default_rng(random_state))
    spread = uncertainty(model)
    weights = np.empty(0) if model.weights_ is None else np.asarray(model.weights_, np.float64)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"words": as_words, "svg": svg_uri, "percent": _percent, "number": "{:,}".format}
    page = environment.get_template("page.html.j2").render(
        title=title,
        model=model,
        facts=describe(model),
        map=figure,
        shown=shown,
        curves=_curves(model),
        links=links,
        before=None if links is None else _share_before(links),
        spread=spread,
        median=float(np.median(spread)) if len(spread) else None,
        order=np.argsort(spread, kind="stable"),
        degrees=np.zeros(len(spread), np.int64) if model.graph_ is None else model.graph_.degrees,
        weights=weights[weights > 0],
        figures=figures,
        version=__version__,
    )
    with replace_file(path) as stream:
        stream.write(page.encode("utf-8"))


def _map(model: CorrelatedVAE, n_clusters: int, random_state: int) -> tuple[Figure, dict[str, Any]]:
    """Return the figure, and what it shows."""
    generator = np.random.default_rng(random_state)
    n_points, graph = len(model.ids_), model.graph_
    shown = np.arange(n_points)
    if n_points > MAX_POINTS:
        shown = np.sort(generator.choice(n_points, MAX_POINTS, replace=False))
    groups = group_points(model.embedding_, n_clusters, random_state=random_state)
    places, share = project(model.embedding_)
    edges = np.empty((0, 2), np.int64)
    if graph is not None:
        position = np.full(n_points, -1)
        position[shown] = np.arange(len(shown))
        edges = position[graph.edges]
        edges = edges[(edges >= 0).all(axis=1)]
        if len(edges) > MAX_EDGES:
            edges = edges[np.sort(generator.choice(len(edges), MAX_EDGES, replace=False))]
    facts = {"n_points": len(shown), "n_edges": len(edges), "share": share}
    return figures.draw_map(places[shown], groups[shown], edges=edges, title="cluster"), facts


def _curves(model: CorrelatedVAE) -> list[tuple[str, Figure, np.ndarray]]:
    """Return the terms of the objective along the steps of training: heading, picture, values."""
    history = {name: np.asarray(values, dtype=np.float64) for name, values in model.history_.items()}
    named = [name for name in history if name not in _WHEN and not name.startswith("validation_")]
    drawn = []
    for term in sorted(named, key=lambda name: [*TERMS].index(name) if name in TERMS else len(TERMS)):
        if not np.nan_to_num(history[term]).any():  # a model that lacks a term has zeros there
            continue
        curves = {"training": (history["step"], history[term])}
        if f"validation_{term}" in history:  # which ends where training goes on with all rows
            values = history[f"validation_{term}"]
            curves["validation"] = (history["step"][: len(values)], values)
        heading = TERMS.get(term, term.replace("_", " "))
        drawn.append((heading, figures.draw_curves(curves, title=heading), history[term]))
    return drawn if len(history["step"]) > 1 else []


def _share_before(links: LinkScores) -> float:
    """Return how often a linked pair scores better than an unlinked one (the area under the ROC curve)."""
    from sklearn.metrics import roc_auc_score

    from corrvae.scoring import METRICS

    truth = np.repeat([1, 0], [len(links.linked), len(links.unlinked)])
    share = float(roc_auc_score(truth, np.concatenate([links.linked, links.unlinked])))
    return share if METRICS[links.metric].larger_is_better else 1.0 - share


def _percent(share: float) -> str:
    """Return whole percents; 0 and 100 stand only for none and all."""
    if 0.0 < share < 1.0 and round(100 * share) in (0, 100):
        return "over 99 %" if share > 0.5 else "under 1 %"
    return f"{100 * share:.0f} %"
