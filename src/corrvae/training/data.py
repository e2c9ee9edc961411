"""From a table and a graph to what is trained on and what is held out for validation."""

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from corrvae.graphs import CorrelationGraph, spanning_weights
from corrvae.model.batch import Augment, TrainingData
from corrvae.nn import FeatureTable, Scaling

# Vertices and edges of a piece of validation data, and pairs in all: there are too many pairs to evaluate all.
_VERTICES, _EDGES, _PAIRS = 2048, 4096, 8192


@final
@dataclass(frozen=True, eq=False)
class PreparedData:
    """What a fit trains on.

    `validation` is ``None`` if nothing is held out; `weights` are those of the edges of the whole graph in training:
    spanning weights, and 0 at a row held out. `everything` is for a last part of training, if there is one.
    """

    training: TrainingData
    validation: TrainingData | None
    weights: Float[np.ndarray, " edges"] | None
    rows: Int[np.ndarray, " rows"]
    held_out: Int[np.ndarray, " held"]
    everything: TrainingData | None = None


def prepare_data(
    matrix: Any,
    graph: CorrelationGraph | None = None,
    *,
    missing: bool = False,
    scaling: Scaling | None = None,
    sample_weight: Float[np.ndarray, " rows"] | None = None,
    augment: Augment | None = None,
    validation_fraction: float = 0.0,
    finish_on_everything: bool = False,
    batch_size: int = 64,
    edge_batch_size: int = 256,
    seed: int = 0,
    hold_out_seed: int = 0,
) -> PreparedData:
    """Hold out rows for validation if asked to, and compute the spanning weights of each part's graph.

    `graph` has the rows and, after them, vertices without one. `finish_on_everything`: the last part of training has
    the rows held out, too.
    """
    n_rows = matrix.shape[0]
    everyone, bare = np.arange(n_rows), np.arange(n_rows, n_rows if graph is None else graph.n_vertices)
    weights = None if graph is None else np.zeros(graph.n_edges)

    def part(rows: np.ndarray, record: np.ndarray | None) -> TrainingData:
        whole = len(rows) == n_rows
        table = FeatureTable(matrix, missing=missing, rows=None if whole else rows, scaling=scaling)
        own_weights = None if sample_weight is None else sample_weight[rows]
        if own_weights is not None:
            if not own_weights.any():
                raise ValueError("all rows of a part of the data have sample weight 0; change validation_fraction")
            own_weights = own_weights / own_weights.mean()
        own_augment = augment if augment is None or whole else _renumber(augment, rows)
        data = TrainingData(
            table,
            sample_weights=own_weights,
            augment=own_augment,
            batch_size=batch_size,
            edge_batch_size=edge_batch_size,
            seed=seed,
        )
        vertices = np.concatenate([rows, bare])
        inner = graph if graph is None or whole else graph[vertices]
        if inner is None or inner.n_edges == 0:
            return data
        found = spanning_weights(inner, random_state=seed).weights
        if record is not None and graph is not None:
            record[np.isin(graph.edges, vertices).all(1)] = found  # these ascend: the edges are in the graph's order
        return replace(data, edges=inner.edges, weights=found, conductances=inner.conductances, n_bare=len(bare))

    if validation_fraction == 0.0:
        return PreparedData(part(everyone, weights), None, weights, everyone, everyone[:0])
    held = hold_out(n_rows, None if graph is None else graph.edges, validation_fraction, hold_out_seed)
    rows, held_out = everyone[~held], everyone[held]
    everything = part(everyone, weights) if finish_on_everything else None
    training = part(rows, None if finish_on_everything else weights)
    validation = exhaustive(part(held_out, None))
    if training.weights is not None and validation.weights is not None:
        # Fewer of a graph's edges lie within the rows held out. Their weights are scaled so that the edge term counts
        # as much, per vertex, as it does in training.
        per_vertex = training.weights.sum() / training.n_vertices
        factor = per_vertex * validation.n_vertices / validation.weights.sum()
        validation = replace(validation, weights=factor * validation.weights)
    elif training.edges is not None:  # the terms of pairs count as in training, though no edge is held out
        validation = replace(validation, edges=np.empty((0, 2), np.int64))
    else:
        validation = replace(validation, edges=None, weights=None)
    return PreparedData(training, validation, weights, rows, held_out, everything)


def exhaustive(data: TrainingData, *, as_inferred: bool = False) -> TrainingData:
    """Return the same data, gone through in pieces: all vertices and edges, and a fixed sample of pairs.

    The objective is then that of training or, if `as_inferred`, the bound of posteriors as the family infers them.
    """
    pieces = max(1, ceil(data.n_vertices / _VERTICES), ceil(data.n_edges / _EDGES))
    pieces = min(pieces, max(1, data.n_vertices // 2))  # a piece has at least two vertices, which make a pair
    return replace(data, n_pieces=pieces, max_pairs=ceil(_PAIRS / pieces), as_inferred=as_inferred)


def _renumber(augment: Augment, rows: np.ndarray) -> Augment:
    return lambda chosen, generator: augment(rows[chosen], generator)


def hold_out(n_vertices: int, edges: Int[np.ndarray, "edges 2"] | None, share: float, seed: int) -> np.ndarray:
    """Return a mask of vertices to hold out, a share of all at random; at least one is held out, and one is not.

    Small connected components (pairs, for instance) are held out whole, so that their edges are not lost. Of large ones
    single vertices are held out. Every vertex has about the same chance.
    """
    if n_vertices < 2:
        raise ValueError(f"validation_fraction={share} needs at least two rows, got n_samples = {n_vertices}")
    quota = min(max(1, round(share * n_vertices)), n_vertices - 1)
    unit = _units(n_vertices, edges, quota)
    sizes = np.bincount(unit)
    order = np.random.default_rng(seed).permutation(len(sizes))
    chosen, room = np.zeros(len(sizes), dtype=bool), quota
    for candidate in order:
        if sizes[candidate] <= room:
            chosen[candidate] = True
            room -= int(sizes[candidate])
            if room == 0:
                break
    return chosen[unit]


def _units(n_vertices: int, edges: np.ndarray | None, quota: int) -> np.ndarray:
    """Number what is held out together: a small component, or a single vertex of a large one."""
    if edges is None or len(edges) == 0:
        return np.arange(n_vertices)
    ones, size = np.ones(len(edges), dtype=np.int8), max(n_vertices, int(edges.max()) + 1)
    adjacency = sparse.coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(size, size))
    component = connected_components(adjacency, directed=False)[1][:n_vertices]
    # Components of up to a quarter of what is wanted: a few larger ones would dominate.
    largest = max(quota // 4, min(2, quota))
    single = np.bincount(component)[component] > largest
    named = np.where(single, len(component) + np.arange(n_vertices), component)
    return np.unique(named, return_inverse=True)[1]
