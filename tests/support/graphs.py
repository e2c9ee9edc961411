"""Random correlation graphs for property tests: disconnected, with isolated vertices, with and without conductances."""

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph


@st.composite
def graphs(
    draw: st.DrawFn,
    max_vertices: int = 8,
    min_vertices: int = 1,
    weighted: bool | None = None,
    ids: bool = False,
) -> CorrelationGraph:
    """Draw any simple graph, from a single vertex and no edges up to the complete graph.

    Parameters
    ----------
    draw
        Given by hypothesis.
    max_vertices, min_vertices
        The range of sizes.
    weighted
        Whether there are conductances, from 1e-3 to 1e3; None: either.
    ids
        Whether the ids may be other than 0, 1, ..., n - 1: shuffled integers, strings or tuples.
    """
    count = draw(st.integers(min_vertices, max_vertices))
    every = list(combinations(range(count), 2))
    # a density first: choosing edges one by one would make almost every graph connected
    density = draw(st.sampled_from([0.0, 0.15, 0.3, 0.6, 1.0]))
    seed = draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)
    edges = [edge for edge in every if generator.random() < density]
    conductances = None
    if draw(st.booleans()) if weighted is None else weighted:
        conductances = 10.0 ** generator.uniform(-3, 3, len(edges))
    vertices = draw(_ids(count)) if ids else None
    return CorrelationGraph(
        np.array(edges, dtype=np.int64).reshape(-1, 2), count, conductances=conductances, vertices=vertices
    )


@st.composite
def _ids(draw: st.DrawFn, count: int) -> list[object] | None:
    kind = draw(st.sampled_from(["rows", "integers", "strings", "tuples"]))
    if kind == "rows":
        return None
    values = draw(st.lists(st.integers(-(10**12), 10**12), min_size=count, max_size=count, unique=True))
    if kind == "strings":
        return [f"v{value}" for value in values]
    return [("v", value) for value in values] if kind == "tuples" else list(values)
