"""Cut a run down to what a report draws of it."""

from collections import deque
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int, Shaped

from corrvae.experiments.comparing import METRIC_NAMES
from corrvae.experiments.records import Sketches
from corrvae.graphs import CorrelationGraph, spanning_weights

MOST_POINTS, MOST_EDGES, MOST_PAIRS, BINS = 800, 1500, 400, 30

# Scores of pairs of vertices.
PairScorer = Callable[[np.ndarray], np.ndarray]


def sketch(
    embedding: Float[np.ndarray, "vertices dim"],
    graph: CorrelationGraph,
    linked: Int[np.ndarray, "pairs 2"],
    score: PairScorer,
    metric: str,
    *,
    trained: CorrelationGraph | None = None,
    groups: Shaped[np.ndarray, " vertices"] | None = None,
    seed: int = 0,
) -> Sketches:
    """Sketch an embedding and the scores of its pairs.

    Parameters
    ----------
    embedding
        One row for each vertex.
    graph
        Whose edges are drawn, and whose connected piece is chosen.
    linked
        Pairs that are linked, for comparison with random ones.
    score
        Scores pairs of vertices.
    metric
        The name of that score.
    trained
        The graph that was trained on, whose spanning weights are counted; ``None``: `graph`.
    groups
        The group of each vertex.
    seed
        Of what is chosen.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(0, 1), (1, 2)])
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> found = sketch(points, graph, graph.edges, lambda pairs: np.ptp(points[pairs, 0], axis=1), "mean_distance")
    >>> len(found.points), sorted(found.linked), found.metric
    (3, [1.0, 2.0], 'squared distance')
    """
    generator = np.random.default_rng(seed)
    chosen = connected_piece(graph, MOST_POINTS)
    shown = graph[chosen].edges
    if len(shown) > MOST_EDGES:
        shown = shown[np.sort(generator.choice(len(shown), MOST_EDGES, replace=False))]
    if len(linked) > MOST_PAIRS:
        linked = linked[np.sort(generator.choice(len(linked), MOST_PAIRS, replace=False))]
    counts, bounds = np.histogram(
        spanning_weights(trained or graph, random_state=seed).weights.clip(0.0, 1.0), BINS, (0.0, 1.0)
    )
    return Sketches(
        points=_rounded(_flat(embedding[chosen])),
        groups=None if groups is None else groups[chosen].astype(int).tolist(),
        edges=shown.tolist(),
        linked=_rounded(score(linked)) if len(linked) else [],
        random=_rounded(score(_random_pairs(graph, generator))),
        metric=METRIC_NAMES[metric],
        weight_counts=counts.tolist(),
        weight_bounds=_rounded(bounds),
    )


def connected_piece(graph: CorrelationGraph, most: int) -> Int[np.ndarray, " chosen"]:
    """Choose vertices breadth first, from the one with most neighbours; then from the next that was not met.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(0, 1), (2, 3), (3, 4), (4, 5)])
    >>> connected_piece(graph, 4).tolist(), connected_piece(graph, 5).tolist()
    ([2, 3, 4, 5], [0, 2, 3, 4, 5])
    """
    adjacency = graph.to_scipy()
    met = np.zeros(graph.n_vertices, dtype=bool)
    chosen: list[int] = []
    for start in np.argsort(-graph.degrees, kind="stable").tolist():
        if len(chosen) >= most:
            break
        waiting = deque([] if met[start] else [start])
        met[start] = True
        while waiting and len(chosen) < most:
            vertex = waiting.popleft()
            chosen.append(vertex)
            for neighbour in adjacency.indices[adjacency.indptr[vertex] : adjacency.indptr[vertex + 1]].tolist():
                if not met[neighbour]:
                    met[neighbour] = True
                    waiting.append(neighbour)
    return np.sort(np.array(chosen, dtype=np.int64))


def _flat(embedding: Float[np.ndarray, "points dim"]) -> Float[np.ndarray, "points 2"]:
    """Give the two principal components, or what there is of them."""
    centred = embedding - embedding.mean(axis=0)
    u, s, _ = np.linalg.svd(centred.astype(np.float64), full_matrices=False)
    flat = np.zeros((len(embedding), 2))
    width = min(2, u.shape[1])
    flat[:, :width] = u[:, :width] * s[:width]
    return flat


def _random_pairs(graph: CorrelationGraph, generator: np.random.Generator) -> Int[np.ndarray, "pairs 2"]:
    """Draw pairs without an edge."""
    pairs = generator.integers(0, graph.n_vertices, (2 * MOST_PAIRS, 2))
    codes = np.sort(pairs, axis=1) @ [graph.n_vertices, 1]
    apart = (pairs[:, 0] != pairs[:, 1]) & ~np.isin(codes, graph.edges @ [graph.n_vertices, 1])
    return pairs[apart][:MOST_PAIRS]


def _rounded(values: np.ndarray) -> list:
    return np.round(np.asarray(values, dtype=np.float64), 5).tolist()
