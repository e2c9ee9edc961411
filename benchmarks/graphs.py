"""The graphs that the benchmarks run on, as arrays of edges."""

import io
import os
import warnings
import zipfile
from pathlib import Path

import numba
import numpy as np

from corrvae.graphs import CorrelationGraph, DroppedEdgesWarning


def grid(side: int) -> np.ndarray:
    label = np.arange(side * side).reshape(side, side)
    return np.vstack([
        np.c_[label[:, :-1].ravel(), label[:, 1:].ravel()],
        np.c_[label[:-1].ravel(), label[1:].ravel()],
    ])  # fmt: skip


def cycle(n_vertices: int) -> np.ndarray:
    label = np.arange(n_vertices)
    return np.c_[label, (label + 1) % n_vertices]


def recursive_tree(n_vertices: int) -> np.ndarray:
    """The parent of each vertex is uniform among those before it."""
    children = np.arange(1, n_vertices)
    return np.c_[children, np.random.default_rng(0).integers(0, children)]


def pairs(n_pairs: int) -> np.ndarray:
    return np.arange(2 * n_pairs).reshape(-1, 2)


def complete(n_vertices: int) -> np.ndarray:
    return np.stack(np.triu_indices(n_vertices, 1), axis=1)


@numba.njit(cache=True)
def scale_free(n_vertices: int, per_vertex: int, seed: int) -> np.ndarray:
    """Preferential attachment (Barabasi and Albert): a new vertex joins ends of edges drawn at random."""
    np.random.seed(seed)  # noqa: NPY002  (numba's own generator)
    edges = np.empty(((n_vertices - per_vertex) * per_vertex, 2), np.int64)
    ends = np.empty(2 * edges.shape[0] + per_vertex, np.int64)
    ends[:per_vertex] = np.arange(per_vertex)
    n_ends, n_edges = per_vertex, 0
    chosen = np.empty(per_vertex, np.int64)
    for v in range(per_vertex, n_vertices):
        count = 0
        while count < per_vertex:
            candidate = ends[np.random.randint(0, n_ends)]  # noqa: NPY002
            if not np.any(chosen[:count] == candidate):
                chosen[count] = candidate
                count += 1
        for u in chosen:
            edges[n_edges] = (v, u)
            n_edges += 1
            ends[n_ends] = v
            ends[n_ends + 1] = u
            n_ends += 2
    return edges


def power_law_cluster(n_vertices: int, per_vertex: int) -> np.ndarray:
    """Holme and Kim's graph: scale-free with many triangles."""
    import networkx as nx

    return np.array(nx.powerlaw_cluster_graph(n_vertices, per_vertex, 0.3, seed=1).edges())


def epinions() -> np.ndarray | None:
    """Mutual trust among all users of the original file, when the folder CORRVAE_DATA has it."""
    archive = Path(os.environ.get("CORRVAE_DATA", "")) / "epinions.zip"
    if not archive.is_file():
        return None
    with zipfile.ZipFile(archive) as members, members.open("trust_data.txt") as lines:
        trust = np.loadtxt(io.TextIOWrapper(lines), dtype=np.int64, usecols=(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedEdgesWarning)
        return CorrelationGraph.from_edges(trust, directed="mutual").edges
