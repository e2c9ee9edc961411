"""Hold edges out of a graph, for link prediction."""

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Int

from corrvae.graphs.graph import CorrelationGraph
from corrvae.graphs.ids import frozen

# Shares such as 0.07 are not exact: 0.07 * 100 must hold out 7 edges, not 8.
ROUNDING = 1e-9


@final
@dataclass(frozen=True, eq=False)
class EdgeSplit:
    """A graph's edges in three disjoint parts.

    Attributes
    ----------
    train
        All vertices, and the edges that are not held out.
    validation, test
        The held-out edges as vertex indices, i < j, sorted; ``train.ids[test]`` are their ids.
    known
        All vertices, and the edges of `train` and `validation`. Once settings are chosen on the validation edges, these
        are given back: the chosen model is trained on `known`, and the test edges are ranked among what is not in it.
    """

    train: CorrelationGraph
    validation: Int[np.ndarray, "validation 2"]
    test: Int[np.ndarray, "test 2"]
    known: CorrelationGraph

    def __repr__(self) -> str:
        counts = f"train={self.train.n_edges:,}, validation={len(self.validation):,}, test={len(self.test):,}"
        return f"EdgeSplit({counts} edges)"


def split_edges(
    graph: CorrelationGraph,
    strategy: Literal["per_vertex", "random"] = "per_vertex",
    *,
    test: float = 0.05,
    validation: float = 0.05,
    random_state: int | np.random.Generator | None = None,
) -> EdgeSplit:
    """Split a graph's edges into train, validation and test.

    An edge is held out as a whole, whichever of its ends chose it, so that no direction of it is left in `train`.

    Parameters
    ----------
    graph
        The graph with all its edges.
    strategy
        "per_vertex": each vertex holds out ceil(share * degree) of its edges, at random, and the held-out edges are the
        union, so that every vertex with an edge has a held-out edge. With small degrees that is far more than the
        share. "random": a random share of the edges, rounded to the nearest number.
    test
        The share held out for testing, at least 0 and less than 1.
    validation
        The share, of the edges that remain, held out for validation in the same way. Edges that are drawn otherwise lie
        elsewhere in the graph, and reward other settings.
    random_state
        A seed or generator; the same seed gives the same split.

    Returns
    -------
    EdgeSplit
        The training graph and the held-out edges. Vertices that are left without an edge stay in `train`.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(i, i + 1) for i in range(100)])
    >>> split_edges(graph, "random", test=0.2, validation=0.1, random_state=0)
    EdgeSplit(train=72, validation=8, test=20 edges)
    """
    _check_share("test", test)
    _check_share("validation", validation)
    generator = np.random.default_rng(random_state)
    draw = {"per_vertex": _draw_per_vertex, "random": _draw_uniformly}.get(strategy)
    if draw is None:
        raise ValueError(f'strategy must be "per_vertex" or "random", not {strategy!r}')
    tested = draw(graph, test, generator)
    known = graph._with_edges(~tested)
    validated = draw(known, validation, generator) if validation else np.zeros(known.n_edges, bool)
    return EdgeSplit(known._with_edges(~validated), frozen(known.edges[validated]), frozen(graph.edges[tested]), known)


def _draw_per_vertex(graph: CorrelationGraph, share: float, generator: np.random.Generator) -> np.ndarray:
    # every edge stands at both of its ends; shuffle all ends, group them by vertex, and each takes its first few
    shuffled = generator.permutation(2 * graph.n_edges)
    order = shuffled[np.argsort(graph.edges.ravel()[shuffled], kind="stable")]
    degrees = graph.degrees
    place = np.arange(len(order)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    quota = np.ceil(share * degrees - ROUNDING)
    held = np.zeros(graph.n_edges, dtype=bool)
    held[order[place < np.repeat(quota, degrees)] // 2] = True
    return held


def _draw_uniformly(graph: CorrelationGraph, share: float, generator: np.random.Generator) -> np.ndarray:
    held = np.zeros(graph.n_edges, dtype=bool)
    held[generator.choice(graph.n_edges, round(share * graph.n_edges), replace=False)] = True
    return held


def _check_share(name: str, share: Any) -> None:
    if not isinstance(share, (int, float, np.number)) or not 0 <= share < 1:
        raise ValueError(f"{name} must be at least 0 and less than 1, but is {share!r}")
