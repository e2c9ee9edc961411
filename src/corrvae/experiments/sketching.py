"""Reduce a run to what a report draws of it."""

import numpy as np
from jaxtyping import Int, Shaped
from scipy.sparse.csgraph import breadth_first_order

from corrvae.experiments.records import Sketches
from corrvae.graphs import CorrelationGraph, spanning_weights
from corrvae.model import Posterior
from corrvae.scoring import Metric, score

MOST_POINTS, MOST_EDGES, MOST_PAIRS, BINS = 800, 1500, 400, 30
_METRIC_NAMES = {
    "expected_distance": "expected squared distance",
    "log_odds": "link log-odds",
    "mean_distance": "squared distance",
    "inner_product": "inner product",
}


def sketch(
    posterior: Posterior,
    metric: Metric,
    graph: CorrelationGraph,
    linked: Int[np.ndarray, "pairs 2"],
    *,
    trained: CorrelationGraph | None = None,
    groups: Shaped[np.ndarray, " vertices"] | None = None,
    seed: int = 0,
) -> Sketches:
    """Return a map of a piece of a graph, scores of linked and random pairs, and a histogram of spanning weights.

    The weights are those of the graph `trained`, if it is another one.
    """
    generator = np.random.default_rng(seed)
    chosen = _piece(graph)
    shown = _some(graph[chosen].edges, MOST_EDGES, generator)
    linked = _some(linked, MOST_PAIRS, generator)
    pairs = generator.integers(0, graph.n_vertices, (2 * MOST_PAIRS, 2))
    codes = np.sort(pairs, axis=1) @ [graph.n_vertices, 1]
    apart = (pairs[:, 0] != pairs[:, 1]) & ~np.isin(codes, graph.edges @ [graph.n_vertices, 1])
    centred = (posterior.mean[chosen] - posterior.mean[chosen].mean(axis=0)).astype(np.float64)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    plane = np.zeros((len(chosen), 2))
    plane[:, : min(2, len(s))] = (u * s)[:, :2]
    weights = spanning_weights(trained or graph, random_state=seed).weights
    counts, bounds = np.histogram(weights.clip(0.0, 1.0), BINS, (0.0, 1.0))
    return Sketches(
        points=_rounded(plane),
        groups=None if groups is None else groups[chosen].astype(int).tolist(),
        edges=shown.tolist(),
        linked=_rounded(score(posterior, posterior, metric, linked)),
        random=_rounded(score(posterior, posterior, metric, pairs[apart][:MOST_PAIRS])),
        metric=_METRIC_NAMES.get(metric.name, metric.name),
        weight_counts=counts.tolist(),
        weight_bounds=_rounded(bounds),
    )


def _piece(graph: CorrelationGraph) -> Int[np.ndarray, " chosen"]:
    """Choose vertices breadth first, from the one with most neighbours; then from the next that was not reached."""
    adjacency, reached, chosen = graph.to_scipy(), np.zeros(graph.n_vertices, dtype=bool), []
    for start in np.argsort(-graph.degrees, kind="stable"):
        if len(chosen) < MOST_POINTS and not reached[start]:
            piece = breadth_first_order(adjacency, start, directed=False, return_predecessors=False)
            reached[piece] = True
            chosen += piece.tolist()
    return np.sort(np.array(chosen[:MOST_POINTS], dtype=np.int64))


def _some(pairs: Int[np.ndarray, "pairs 2"], most: int, generator: np.random.Generator) -> Int[np.ndarray, "some 2"]:
    return pairs if len(pairs) <= most else pairs[np.sort(generator.choice(len(pairs), most, replace=False))]


def _rounded(values: np.ndarray) -> list:
    return np.round(np.asarray(values, dtype=np.float64), 5).tolist()
