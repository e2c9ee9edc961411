"""The page of a run: map, course of training, linked against unlinked pairs, uncertainty, spanning weights, facts."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from corrvae.estimator import CorrelatedVAE
from corrvae.plots.facts import TERMS, LinkScores, as_words, describe, group_points, score_links, uncertainty
from corrvae.plots.figures import draw_calibration, draw_curves, draw_pairs, draw_uncertainty, draw_weights
from corrvae.plots.layout import project
from corrvae.plots.maps import draw_map
from corrvae.plots.style import svg_uri

# What a map shows at most: more points hide each other.
MAX_POINTS, MAX_EDGES = 20_000, 20_000
_MIN_CALIBRATED = 40  # links
_BINS, _LISTED, _LONGEST = 10, 10, 40
_WHEN = ("step", "epoch", "seconds")
_ENDS = {"finished": "as planned", "early": "early, without further improvement", "interrupted": "by an interruption"}

Color = str | Mapping[Any, Any]


def draw_embedding(
    model: CorrelatedVAE,
    *,
    color: Color = "cluster",
    color_name: str | None = None,
    n_clusters: int = 5,
    method: str = "pca",
    random_state: int = 0,
) -> Figure:
    """Draw the map of a fitted model's training points and its graph.

    They are coloured by "cluster" (k-means of the means), "degree", "uncertainty" (the standard deviation), or by
    values of your own by id, called `color_name`. The method is one of `project`.
    """
    figure, _ = _map(
        model, color=color, color_name=color_name, n_clusters=n_clusters, method=method, random_state=random_state
    )
    return figure


def write_page(
    model: CorrelatedVAE,
    path: str | os.PathLike[str],
    *,
    title: str = "A trained model",
    color: Color = "cluster",
    color_name: str | None = None,
    n_clusters: int = 5,
    method: str = "pca",
    random_state: int = 0,
) -> None:
    """Write a page on a fitted model: one HTML file that loads nothing from elsewhere."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from corrvae import __version__
    from corrvae.io import replace_file

    figure, caption = _map(
        model, color=color, color_name=color_name, n_clusters=n_clusters, method=method, random_state=random_state
    )
    links = score_links(model, np.random.default_rng(random_state))
    spread = uncertainty(model)
    sections = [
        _section("map", "Map of the embedding", caption, [(figure, "Map of the training points. " + caption)]),
        _training_section(model),
        _links_section(links),
        _uncertainty_section(model, spread),
        _weights_section(model),
    ]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["words"] = as_words
    page = environment.get_template("page.html.j2").render(
        title=title,
        summary=_summary(model),
        cards=_cards(model, spread, links),
        sections=[section for section in sections if section is not None],
        facts=describe(model),
        version=__version__,
    )
    with replace_file(path) as stream:
        stream.write(page.encode("utf-8"))


# Sections


def _section(
    name: str,
    title: str,
    text: str,
    figures: list[tuple[Figure, str]],
    tables: list[tuple[str, list[str], list[list[str]]]] | None = None,
) -> dict[str, Any]:
    images = [(svg_uri(figure), alt) for figure, alt in figures]
    return {"name": name, "title": title, "text": text, "images": images, "tables": tables or []}


def _map(
    model: CorrelatedVAE, *, color: Color, color_name: str | None, n_clusters: int, method: str, random_state: int
) -> tuple[Figure, str]:
    """Return the figure, and what it shows in a sentence or two."""
    generator = np.random.default_rng(random_state)
    n_points, graph = len(model.ids_), model.graph_
    shown = np.arange(n_points)
    if n_points > MAX_POINTS:
        shown = np.sort(generator.choice(n_points, MAX_POINTS, replace=False))
    values = np.array(_color_values(model, color, n_clusters, random_state), dtype=object)[shown]
    name = color_name or (color if isinstance(color, str) else "value")
    if method == "umap":
        places, share = project(model.embedding_[shown], method, random_state=random_state)
    else:
        places, share = project(model.embedding_, method)
        places = places[shown]
    edges = np.empty((0, 2), np.int64)
    if graph is not None:
        position = np.full(n_points, -1)
        position[shown] = np.arange(len(shown))
        edges = position[graph.edges]
        edges = edges[(edges >= 0).all(axis=1)]
        if len(edges) > MAX_EDGES:
            edges = edges[np.sort(generator.choice(len(edges), MAX_EDGES, replace=False))]
    how = "by UMAP" if share is None else "in the plane of their two principal components"
    held = "" if share is None else f", which holds {_percent(share)} of the variance"
    drawn = f"{len(shown):,} of {n_points:,} points" if len(shown) < n_points else f"All {n_points:,} points"
    with_edges = f" and {_count(len(edges), 'edge')}" if len(edges) else ""
    text = f"{drawn}{with_edges}, {how}{held}; coloured by {name}."
    if len(edges):
        text += " Linked points should be next to each other."
    return draw_map(places, values, edges=edges, title=name), text


def _color_values(model: CorrelatedVAE, color: Color, n_clusters: int, random_state: int) -> list[Any]:
    if isinstance(color, Mapping):
        values = [color.get(name) for name in model.ids_.tolist()]
        if all(value is None for value in values):
            known = f"whose ids are like {model.ids_[:1].tolist()[0]!r}" if values else "of which there are none"
            raise ValueError(f"no value to colour by belongs to a point of the model, {known}")
        return values
    if color == "cluster":
        return group_points(model.embedding_, n_clusters, random_state=random_state).tolist()
    if color == "degree":
        return [0] * len(model.ids_) if model.graph_ is None else model.graph_.degrees.tolist()
    if color == "uncertainty":
        return uncertainty(model).tolist()
    raise ValueError(f'color must be "cluster", "degree", "uncertainty" or a mapping from ids, not {color!r}')


def _training_section(model: CorrelatedVAE) -> dict[str, Any] | None:
    history = {name: np.asarray(values, dtype=np.float64) for name, values in model.history_.items()}
    named = [name for name in history if name not in _WHEN and not name.startswith("validation_")]
    terms = sorted(named, key=lambda name: [*TERMS].index(name) if name in TERMS else len(TERMS))
    figures = []
    for term in terms:
        if not np.nan_to_num(history[term]).any():  # a model that lacks a term has zeros there
            continue
        curves = {"training": (history["step"], history[term])}
        if f"validation_{term}" in history:  # which ends where training goes on with all rows
            values = history[f"validation_{term}"]
            curves["validation"] = (history["step"][: len(values)], values)
        heading = TERMS.get(term, term.replace("_", " "))
        ends = f"{heading} along the steps of training, from {history[term][0]:.4g} to {history[term][-1]:.4g}."
        figures.append((draw_curves(curves, title=heading), ends))
    if not figures or len(history["step"]) < 2:
        return None
    text = "Each panel is a term of the objective, per point in nats, along the steps. Lines should have levelled off."
    if "validation_total" in history:
        text += " Where validation turns away from training, the model overfits."
    return _section("training", "Course of training", text, figures)


def _share_before(links: LinkScores) -> float:
    """Return how often a linked pair scores better than an unlinked one (the area under the ROC curve)."""
    from sklearn.metrics import roc_auc_score

    from corrvae.scoring import METRICS

    truth = np.repeat([1, 0], [len(links.linked), len(links.unlinked)])
    share = float(roc_auc_score(truth, np.concatenate([links.linked, links.unlinked])))
    return share if METRICS[links.metric].larger_is_better else 1.0 - share


def _links_section(links: LinkScores | None) -> dict[str, Any] | None:
    if links is None:
        return None
    caption = f"A linked pair scores better than a random one in {_percent(_share_before(links))} of cases."
    figures = [(draw_pairs(links.linked, links.unlinked, metric=links.metric), f"Scores of pairs. {caption}")]
    if min(len(links.linked), len(links.unlinked)) >= _MIN_CALIBRATED:
        predicted, observed, counts = _calibration_bins(links)
        off = float(np.abs(predicted - observed) @ counts / counts.sum())
        alt = f"Predicted probabilities of a link against shares observed, {_percent(off)} apart on average."
        figures.append((draw_calibration(predicted, observed, counts), alt))
    if links.held_out:
        caption += f" These are {_count(len(links.linked), 'link')} that training has not seen."
    else:
        caption += " These are links of training, which flatter the model: new ones score worse."
    if len(figures) > 1:
        caption += " The second picture: probabilities learned from half of the pairs, against the other half."
    return _section("links", "Linked against unlinked pairs", caption, figures)


def _calibration_bins(links: LinkScores) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Learn probabilities from half of the pairs, as many linked as not, and compare with the other half."""
    from corrvae.scoring import METRICS, calibrate

    generator = np.random.default_rng(0)
    count = min(len(links.linked), len(links.unlinked))
    linked, unlinked = (generator.permutation(scores)[:count] for scores in (links.linked, links.unlinked))
    half = count // 2
    probability = calibrate(
        linked[:half],
        unlinked[:half],
        metric=links.metric,
        larger_is_better=METRICS[links.metric].larger_is_better,
        prior=0.5,
    )
    predicted = probability(np.concatenate([linked[half:], unlinked[half:]]))
    is_link = np.repeat([1.0, 0.0], count - half)
    bins = np.array_split(np.argsort(predicted, kind="stable"), min(_BINS, len(predicted) // 8))
    means = [np.array([values[part].mean() for part in bins]) for values in (predicted, is_link)]
    return means[0], means[1], np.array([len(part) for part in bins])


def _uncertainty_section(model: CorrelatedVAE, spread: Float[np.ndarray, " points"]) -> dict[str, Any]:
    order = np.argsort(spread, kind="stable")
    listed = min(_LISTED, len(order) // 2)
    head = ["Point", "Deviation", "Links"]
    tables = [
        (caption, head, [_point_row(model, point, spread) for point in points.tolist()])
        for caption, points in (
            ("The most certain points", order[:listed]),
            ("The least certain points", order[::-1][:listed]),
        )
        if listed
    ]
    text = "The standard deviation of a point is the root of its mean variance; the prior has 1."
    typical = f"{text} The median is {np.median(spread):.3g}." if len(spread) else text
    return _section("uncertainty", "Uncertainty", typical, [(draw_uncertainty(spread), typical)], tables)


def _point_row(model: CorrelatedVAE, point: int, spread: np.ndarray) -> list[str]:
    name = str(model.ids_[point])
    links = 0 if model.graph_ is None else int(model.graph_.degrees[point])
    return [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…", f"{spread[point]:.3g}", f"{links:,}"]


def _weights_section(model: CorrelatedVAE) -> dict[str, Any] | None:
    weights = model.weights_
    if weights is None or not (weights > 0).any():
        return None
    used = np.asarray(weights[weights > 0], dtype=np.float64)
    text = (
        "The spanning weight of an edge is how often it is in a random maximal acyclic subgraph, and what it weighs in "
        f"training. Of {_count(len(used), 'edge')}, {(used > 1 - 1e-9).sum():,} are bridges, which weigh 1."
    )
    return _section("weights", "Spanning weights", text, [(draw_weights(used), text)])


def _summary(model: CorrelatedVAE) -> str:
    graph = "no graph" if model.graph_ is None else f"{_count(model.graph_.n_edges, 'link')} between them"
    return (
        f"{_count(len(model.ids_), 'point')} of {_count(int(model.n_features_in_), 'feature')}, {graph}. "
        f"Training ended {_ENDS.get(model.stopped_, model.stopped_)} after {_count(model.n_steps_, 'step')}."
    )


def _cards(model: CorrelatedVAE, spread: np.ndarray, links: LinkScores | None) -> list[tuple[str, str, str]]:
    history = model.history_
    cards = [("Points", f"{len(model.ids_):,}", f"in {_count(model.embedding_.shape[1], 'dimension')}")]
    name = "validation_total" if "validation_total" in history else "total"
    if name in history and len(history[name]):
        of = "on validation data" if name == "validation_total" else "in training"
        cards.append(("Objective", f"{history[name][-1]:,.2f}", f"nats per point, {of}"))
    if links is not None:
        note = "links kept from training" if links.held_out else "links of training"
        cards.append(("Linked before unlinked", _percent(_share_before(links)), note))
    if len(spread):
        cards.append(("Median deviation", f"{np.median(spread):.3g}", "the prior has 1"))
    return cards


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def _percent(share: float) -> str:
    """Return whole percents; 0 and 100 stand only for none and all."""
    if 0.0 < share < 1.0 and round(100 * share) in (0, 100):
        return "over 99 %" if share > 0.5 else "under 1 %"
    return f"{100 * share:.0f} %"
