"""The explorer's page: what it knows of a model, as arrays inside of one HTML file."""

import os
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from corrvae.estimator import CorrelatedVAE
from corrvae.plots.explorer.guide import N_FEATURES, Guide, Near
from corrvae.plots.facts import group_points, uncertainty
from corrvae.plots.layout import METHODS, project, spring_layout

# What one file may hold: a browser reads about 300 bytes for each point.
MAX_POINTS = 200_000
_FOLDER = Path(__file__).parent
_MOST_GROUPS = 12
# Links whose conductance was adapted by a factor below this share of the median factor are drawn thin.
_DOUBTED = 0.1

Labels = Mapping[str, Sequence[Any]]


def write_explorer(
    model: CorrelatedVAE,
    path: str | os.PathLike[str],
    *,
    title: str = "A trained model",
    labels: Labels | None = None,
    n_clusters: int | None = None,
    layout: str = "neighbors",
    random_state: int = 0,
    progress: bool | None = None,
) -> None:
    """Write a page to explore a fitted model: one HTML file that loads nothing from elsewhere.

    The model has at most 200,000 points; `serve_explorer` shows more. `labels` are columns to show and to colour by: a
    value for each point, None if it is not known. Groups are by k-means of the means, by default from 2 to 12 with the
    best silhouette. The layout is a spring layout of the nearest "neighbors", "pca", or "umap" if it is there.
    """
    from corrvae.io import replace_file

    if len(model.ids_) > MAX_POINTS:
        raise ValueError(f"{len(model.ids_):,} points are too many for one file; serve them (corrvae explore --serve)")
    guide = Guide(model, random_state=random_state)
    near = guide.near(progress=progress)
    document, blocks = describe_points(
        guide, near.neighbors, layout, title=title, labels=labels, n_clusters=n_clusters, random_state=random_state
    )
    blocks |= near_blocks(guide, np.arange(len(model.ids_)), near)
    with replace_file(path) as stream:
        stream.write(render(document, blocks).encode("utf-8"))


def describe_points(
    guide: Guide,
    neighbors: Int[np.ndarray, "points k"] | None,
    layout: str,
    *,
    title: str,
    labels: Labels | None,
    n_clusters: int | None,
    random_state: int,
    served: bool = False,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what the page knows from the start: a JSON document, and arrays by name."""
    model = guide.model
    if layout not in METHODS:
        raise ValueError(f"layout must be one of {', '.join(map(repr, METHODS))}, not {layout!r}")
    method = "umap" if layout == "umap" else "pca"
    places, _ = project(model.embedding_, method, random_state=random_state)
    if layout == "neighbors" and neighbors is not None:
        places = spring_layout(neighbors, places, random_state=random_state)
    clusters = group_points(model.embedding_, n_clusters, random_state=random_state)
    members = [np.flatnonzero(clusters == number) for number in range(clusters.max(initial=-1) + 1)]
    averages = np.stack([guide.expected(_some(part)).mean(axis=0) for part in members])
    features, amounts = guide.strongest(averages)
    names = guide.feature_names
    edges = np.empty((0, 2), np.int64) if model.graph_ is None else model.graph_.edges
    blocks: dict[str, np.ndarray] = {
        "places": places.astype(np.float32),
        "spread": uncertainty(model).astype(np.float32),
        "clusters": clusters.astype(np.uint16),
        "edges": edges.astype(np.uint32),
    }
    if model.graph_ is not None and model.conductances_ is not None:
        given = model.graph_.conductances
        factors = model.conductances_ if given is None else model.conductances_ / given
        blocks["doubts"] = (factors < _DOUBTED * np.median(factors)).astype(np.uint8)
    columns = []
    for number, (name, values) in enumerate((labels or {}).items()):
        column, blocks[f"column{number}"] = _column(name, values)
        columns.append(column)
    document = {
        "title": title,
        "ids": [str(name) for name in model.ids_.tolist()],
        "features": names,
        "signed": not model.model_.likelihood.non_negative,
        "clusters": [
            {
                "name": _name(names, row, amount),
                "features": row.tolist(),
                "amounts": [float(f"{value:.4g}") for value in amount],
            }
            for row, amount in zip(features, amounts, strict=True)
        ],
        "columns": columns,
        "metric": guide.metric.replace("_", " "),
        "probabilities": None if guide.probability is None else "held out" if guide.held_out else "training",
        "correlated": guide.posterior.is_correlated,
        "expectation": "probability" if model.likelihood_ in ("bernoulli", "multinomial") else "expected value",
        "served": served,
    }
    return document, blocks


def near_blocks(guide: Guide, rows: Int[np.ndarray, " rows"], near: Near) -> dict[str, np.ndarray]:
    """Return what the page shows of some points when they are selected, as arrays with a row for each."""
    typical, amounts = guide.typical(rows)
    blocks = {
        "neighbors": near.neighbors.astype(np.int32),
        "scores": near.scores.astype(np.float32),
        "links": near.links.astype(np.int32),
        "typical": typical.astype(np.uint16 if len(guide.feature_names) < 2**16 else np.uint32),
        "amounts": amounts.astype(np.float32),
    }
    items = guide.recommended(rows)
    if items is not None:
        blocks |= {"items": items[0].astype(np.int32), "item_scores": items[1].astype(np.float32)}
    if guide.probability is not None:
        for name, scores in (("probabilities", near.scores), ("link_probabilities", near.link_scores)):
            blocks[name] = np.nan_to_num(guide.probability(scores)).astype(np.float32)
    if guide.posterior.is_correlated:
        blocks["correlations"] = np.zeros(near.neighbors.shape, np.float32)
        there = near.neighbors >= 0
        pairs = np.stack([np.broadcast_to(rows[:, None], there.shape)[there], near.neighbors[there]], axis=1)
        blocks["correlations"][there] = guide.correlation(pairs)
    return blocks


def render(document: Mapping[str, Any], blocks: Mapping[str, np.ndarray]) -> str:
    """Return the page of a document and its arrays."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from corrvae import __version__

    script = (_FOLDER / "explorer.js").read_text(encoding="utf-8")
    encoded = {
        name: {
            "kind": {"f": "Float", "i": "Int", "u": "Uint"}[array.dtype.kind] + f"{8 * array.dtype.itemsize}Array",
            "data": b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii"),
        }
        for name, array in blocks.items()
    }
    environment = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("explorer.html.j2").render(
        document=document,
        blocks=encoded,
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode("ascii"),
        style=(_FOLDER / "explorer.css").read_text(encoding="utf-8"),
        version=__version__,
    )


def _some(rows: Int[np.ndarray, " rows"], most: int = 2_000) -> Int[np.ndarray, " some"]:
    return rows[:: max(1, len(rows) // most)]


def _column(name: str, values: Sequence[Any]) -> tuple[dict[str, Any], np.ndarray]:
    """Return a column of labels: numbers with a scale, or kinds as places in a list of their names, largest first."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    known = [value for value in values if value is not None and value == value]
    if numbers and len(numbers) >= len(known) and len(set(known)) > _MOST_GROUPS:
        return {"name": name, "kinds": None}, np.array([np.nan if v is None else v for v in values], np.float32)
    texts = [None if value is None or value != value else str(value) for value in values]
    kinds = [text for text, _ in Counter(text for text in texts if text is not None).most_common()]
    place: dict[str | None, int] = {text: number for number, text in enumerate(kinds)}
    return {"name": name, "kinds": kinds}, np.array([place.get(text, -1) for text in texts], np.int32)


def _name(names: list[str], features: Int[np.ndarray, " shown"], amounts: Float[np.ndarray, " shown"]) -> str:
    """Return a group's name: its two most typical features."""
    return ", ".join(
        names[feature] if amount > 0 else f"little {names[feature]}"
        for feature, amount in zip(features[:2].tolist(), amounts[:2].tolist(), strict=True)
    )


def describe_group(guide: Guide, members: Int[np.ndarray, " members"]) -> dict[str, np.ndarray]:
    """Return a group's typical features, by how much they are, and its most central members."""
    embedding = guide.model.embedding_
    features, amounts = guide.strongest(guide.expected(_some(members)).mean(axis=0, keepdims=True))
    away = np.square(embedding[members] - embedding[members].mean(axis=0)).sum(axis=1)
    central = members[np.argsort(away, kind="stable")[:N_FEATURES]]
    return {"typical": features[0], "amounts": amounts[0], "central": central}
