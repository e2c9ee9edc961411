"""The link task: find held-out edges of mutual trust between users who have rated products.

Candidates of a vertex are all vertices but itself and its neighbours in training. A vertex i with k held-out edges of
ranks r_1, ..., r_k has CRR_i = 1/r_1 + ... + 1/r_k and NCRR_i = CRR_i / H(k), with H(k) = 1 + 1/2 + ... + 1/k the best
that k edges can reach. The score is the mean of NCRR_i over the vertices with a held-out edge. Ties count against the
method: a rank is 1 plus the number of other candidates that score at least as well.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import sparse
from torch import Tensor

from corrvae.datasets import epinions
from corrvae.experiments.models import Run, describe_settings, point_posterior, train_entry
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.records import Outcome
from corrvae.experiments.sketching import sketch
from corrvae.experiments.sources import data_files, small_world
from corrvae.graphs import CorrelationGraph, EdgeSplit, graph_features, split_edges
from corrvae.model import Posterior
from corrvae.scoring import METRICS, Metric, Points, make_metric, rank

Ranks = Int[np.ndarray, " pairs"]


@final
@dataclass(frozen=True, eq=False)
class EdgeRanks:
    """Ranks of held-out edges (vertex, other) among the candidates of the vertex; every edge is listed from both ends.

    `ranks` counts the candidates that score at least as well as the edge, itself included, `above` those that score
    better, `candidates` all.
    """

    vertices: Ranks
    others: Ranks
    ranks: Ranks
    above: Ranks
    candidates: Ranks


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Train a model on the training graph, and rank the held-out edges."""
    run.report("reading the data", 0, None)
    name, features, split = load(settings, run.seed)
    train = split.train
    data = {
        "name": name,
        "users": train.n_vertices,
        "features": int(features.shape[1]),  # pyright: ignore[reportOptionalSubscript]
        "train_edges": train.n_edges,
        "validation_edges": len(split.validation),
        "test_edges": len(split.test),
        "files": data_files(settings["name"]),
        "settings": dict(settings),
    }
    if entry.method in GRAPH_METRICS:
        posterior, metric = GRAPH_METRICS[entry.method](train)
        scores = score_links(posterior, metric, split)
        return Outcome(scores, describe_settings(entry), data)
    if entry.graph_features:
        features = graph_features(features, train)
    trained, metric = train_entry(entry, features, train, run), make_metric(entry.metric)
    posterior = trained.posterior(None)
    run.report("ranking", 0, None)
    scores = score_links(posterior, metric, split)
    drawn = sketch(posterior, metric, train, split.test, seed=run.seed)
    return Outcome(scores, trained.settings, data, trained.history, drawn)


def load(settings: Settings, seed: int) -> tuple[str, sparse.csr_array, EdgeSplit]:
    """Read or draw the data, and hold edges out: name, features, edges in three parts."""
    if settings["name"] == "small":
        features, graph = small_world(settings["n_users"], settings["n_items"], random_state=seed)
        return "small synthetic trust", features, split_edges(graph, random_state=seed)
    found = epinions(settings["name"], min_ratings=settings["min_ratings"])
    # vertex i is row i for every model, also for those that do not see the graph
    graph = CorrelationGraph(found.graph.edges, found.graph.n_vertices)
    return "Epinions", found.features, split_edges(graph, random_state=seed)


def score_links(posterior: Posterior, metric: Metric, split: EdgeSplit) -> dict[str, float]:
    """Rank the held-out edges of a split and return the scores of the task, those of validation edges too.

    Examples
    --------
    Points at 0, 1, 3 and 4 on a line, two held-out edges at the first. Its NCRR is (1 + 1/2) / (1 + 1/2) = 1; the
    others find it first, and third behind two nearer ones: (1 + 1 + 1/3) / 3.

    >>> empty = np.empty((0, 2), np.int64)
    >>> split = EdgeSplit(CorrelationGraph(empty, 4), empty, np.array([[0, 1], [0, 2]]))
    >>> points = point_posterior(np.array([[0.0], [1.0], [3.0], [4.0]]))
    >>> found = score_links(points, make_metric("mean_distance"), split)
    >>> round(found["ncrr"], 4), round(found["mrr"], 4), found["hits_1"], found["n_vertices"]
    (0.7778, 0.7083, 0.5, 3.0)
    """
    parts = {"": split.test, "validation_": split.validation}
    held = np.concatenate(list(parts.values()))
    found = rank_edges(posterior, metric, held, split.train)
    from_both_ends = np.concatenate([np.repeat(list(parts), [len(part) for part in parts.values()])] * 2)
    scores: dict[str, float] = {}
    for prefix, edges in parts.items():
        if len(edges):
            chosen = from_both_ends == prefix
            part = EdgeRanks(**{name: values[chosen] for name, values in vars(found).items()})
            scores |= {prefix + name: value for name, value in _summary(part).items()}
    return scores


def rank_edges(
    posterior: Posterior, metric: Metric, held: Int[np.ndarray, "edges 2"], train: CorrelationGraph
) -> EdgeRanks:
    """Rank held-out edges (positions) from both ends: first all from their first end, then all from their second.

    None of them may be an edge of the training graph.
    """
    adjacency = train.to_scipy()
    known = sparse.csr_array(adjacency.astype(bool) + sparse.eye_array(train.n_vertices, dtype=bool, format="csr"))
    leaked = np.flatnonzero(np.isin(held @ [train.n_vertices, 1], train.edges @ [train.n_vertices, 1]))
    if len(leaked):
        pair = tuple(held[leaked[0]].tolist())
        raise ValueError(f"held-out edge {leaked[0]}, {pair}, is a training edge: what was trained on is not ranked")
    pairs = np.concatenate([held, held[:, ::-1]])
    vertices, others = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    ranks = rank(posterior, posterior, metric, pairs, exclude=known)[0]
    candidates = train.n_vertices - np.diff(known.indptr)[vertices].astype(np.int64)
    if metric.name in METRICS:  # continuous scores are equal where points are; a second ranking would cost minutes
        above = ranks - _equal_points(posterior, known, vertices, others)
    else:
        flipped = replace(metric, larger_is_better=not metric.larger_is_better)
        above = candidates - rank(posterior, posterior, flipped, pairs, exclude=known)[0]
    return EdgeRanks(vertices, others, ranks, above, candidates)


def _equal_points(posterior: Posterior, known: sparse.csr_array, vertices: Ranks, others: Ranks) -> Ranks:
    """Count the candidates of each vertex that are equal to the other end, itself included."""
    points = np.concatenate([posterior.mean, posterior.stddev], axis=1)
    _, group = np.unique(points, axis=0, return_inverse=True)
    group = group.ravel()
    membership = sparse.csr_array((np.ones(len(group), np.int64), (np.arange(len(group)), group)))
    known_by_group = sparse.csr_array(known.astype(np.int64) @ membership)
    return np.bincount(group)[group[others]] - np.asarray(known_by_group[vertices, group[others]]).ravel()


def _summary(found: EdgeRanks) -> dict[str, float]:
    return {
        "ncrr": ncrr(found.ranks, found.vertices),
        "mrr": float(np.mean(1.0 / found.ranks)),
        "hits_1": float(np.mean(found.ranks <= 1)),
        "hits_10": float(np.mean(found.ranks <= 10)),
        "hits_100": float(np.mean(found.ranks <= 100)),
        "auc": area_under_curve(found),
        "n_vertices": float(len(np.unique(found.vertices))),
    }


def ncrr(ranks: Ranks, vertices: Ranks) -> float:
    """Compute the NCRR of held-out edges from their ranks at the vertex each is looked for from."""
    _, place, counts = np.unique(vertices, return_inverse=True, return_counts=True)
    cumulative = np.bincount(place, weights=1.0 / ranks)
    harmonic = np.cumsum(1.0 / np.arange(1, counts.max() + 1))
    return float(np.mean(cumulative / harmonic[counts - 1]))


def area_under_curve(found: EdgeRanks) -> float:
    """Compute the mean share of a vertex's unrelated candidates that score below its held-out edge, ties half (AUC).

    It is exact, not sampled. The unrelated candidates of a vertex are those it was ranked among, without its held-out
    edges. An edge all of whose candidates are held-out edges is left out.
    """
    order = np.lexsort((found.ranks, found.vertices))
    vertex, at_least, higher = found.vertices[order], found.ranks[order], found.above[order]
    _, begins, place, counts = np.unique(vertex, return_index=True, return_inverse=True, return_counts=True)
    # take back the vertex's own held-out edges; those of equal rank have equal scores
    ties_begin = np.flatnonzero(np.r_[True, (np.diff(at_least) != 0) | (np.diff(vertex) != 0)])
    ties_end = np.r_[ties_begin[1:], len(order)]
    group = np.repeat(np.arange(len(ties_begin)), ties_end - ties_begin)
    at_least = at_least - (ties_end[group] - begins[place])
    higher = higher - (ties_begin[group] - begins[place])
    unrelated = found.candidates[order] - counts[place]
    counted = unrelated > 0
    if not counted.any():
        raise ValueError("every candidate is a held-out edge, so there is nothing that one could score above")
    return float(np.mean(1.0 - (at_least + higher)[counted] / (2.0 * unrelated[counted])))


# ---- scores of the graph alone ---------------------------------------------------------------------------------------


def _degree(graph: CorrelationGraph) -> tuple[Posterior, Metric]:
    degrees = graph.degrees.astype(np.float32)

    def score(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.broadcast_to(degrees[columns], (len(rows), len(columns))).copy()

    return _by_number(graph, "degree", score)


def _common_neighbours(graph: CorrelationGraph, weights: np.ndarray | None = None) -> tuple[Posterior, Metric]:
    pattern = graph.to_scipy()
    pattern.data[:] = 1.0
    weighted = pattern if weights is None else sparse.csr_array(pattern @ sparse.diags_array(weights))

    def score(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return (pattern[rows] @ weighted[columns].T).toarray().astype(np.float32)

    return _by_number(graph, "common_neighbours" if weights is None else "adamic_adar", score)


def _adamic_adar(graph: CorrelationGraph) -> tuple[Posterior, Metric]:
    # a neighbour counts 1 / log(its degree); one that two vertices share has degree 2 or more
    return _common_neighbours(graph, 1.0 / np.log(np.maximum(graph.degrees, 2)))


def _by_number(
    graph: CorrelationGraph, name: str, score: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[Posterior, Metric]:
    """Return points whose one coordinate is the number of their vertex, and a metric that reads it."""
    if graph.n_vertices > 1 << 24:
        raise ValueError("vertices beyond 16,777,216 have no number in single precision")

    def function(queries: Points, candidates: Points) -> Float[Tensor, "queries candidates"]:
        rows, columns = (points.mean[:, 0].numpy().astype(np.int64) for points in (queries, candidates))
        return torch.from_numpy(score(rows, columns))

    numbers = np.arange(graph.n_vertices, dtype=np.float32)[:, None]
    return point_posterior(numbers), Metric(name, function, larger_is_better=True, is_product=True)


GRAPH_METRICS: dict[str, Any] = {
    "degree": _degree,
    "common_neighbours": _common_neighbours,
    "adamic_adar": _adamic_adar,
}
