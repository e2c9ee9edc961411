"""What a model is trained on: features, and the graph's edges with their weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from corrvae.model import Population
from corrvae.nn.features import FeatureTable
from corrvae.nn.rows import Rows

Redraw = Callable[[np.ndarray, np.random.Generator], np.ndarray | sparse.csr_array | sparse.csr_matrix]


@final
@dataclass(frozen=True, eq=False)
class TrainingData:
    """Features, edges and weights.

    Parameters
    ----------
    table
        Features of the vertices.
    edges
        Pairs of rows of the table. ``None``, or no edge at all, trains a VAE.
    weights
        The edges' spanning weights; ``None`` gives each the weight 1, which is right for a forest.
    total_weight
        Sum of the weights over the graph (vertices less connected components); ``None`` adds them up.
    sample_weights
        One for each vertex, with mean 1.
    redraw
        Draws the features of rows anew each time they are met: given row numbers and a generator, it returns a matrix
        with these rows. What the table holds is then not read.

    Examples
    --------
    >>> data = TrainingData(FeatureTable(np.eye(4)), np.array([[0, 1], [1, 2]]))
    >>> data.n_vertices, data.n_edges, data.population.total_weight
    (4, 2, 2.0)
    """

    table: FeatureTable
    edges: Int[np.ndarray, "edges 2"] | None = None
    weights: Float[np.ndarray, " edges"] | None = None
    total_weight: float | None = None
    sample_weights: Float[np.ndarray, " vertices"] | None = None
    redraw: Redraw | None = None

    def __post_init__(self) -> None:
        if self.edges is not None and len(self.edges):
            wrong = np.flatnonzero((self.edges < 0).any(axis=1) | (self.edges >= self.n_vertices).any(axis=1))
            if len(wrong):
                edge = tuple(self.edges[wrong[0]].tolist())
                raise ValueError(f"edge {wrong[0]} is {edge}, but there are rows 0 to {self.n_vertices - 1} only")
        if self.weights is not None and len(self.weights) != self.n_edges:
            raise ValueError(f"there are {len(self.weights):,} weights for {self.n_edges:,} edges")
        if self.sample_weights is not None and len(self.sample_weights) != self.n_vertices:
            raise ValueError(f"there are {len(self.sample_weights):,} sample weights for {self.n_vertices:,} rows")

    @property
    def n_vertices(self) -> int:
        """Number of rows."""
        return self.table.shape[0]

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return 0 if self.edges is None else len(self.edges)

    @property
    def population(self) -> Population:
        """The numbers that make means over draws estimates of the whole."""
        total = self.total_weight
        if total is None:
            total = float(self.n_edges if self.weights is None else self.weights.sum(dtype=np.float64))
        return Population(self.n_vertices, self.n_edges, total)

    def rows(self, vertices: Int[np.ndarray, " rows"], generator: np.random.Generator) -> Rows:
        """Give the features of some vertices, drawn anew if there is a `redraw`."""
        if self.redraw is None:
            return self.table.rows(vertices)
        features = self.redraw(vertices, generator)
        expected = (len(vertices), self.table.shape[1])
        if features.shape != expected:
            raise ValueError(f"redraw returned features of shape {features.shape} where {expected} was asked for")
        limit = 1.0 if self.table.sparse_batches else -1.0  # the same way through the networks as the table's rows
        drawn = FeatureTable(features, missing=self.table.missing, density_limit=limit)
        return drawn.rows(np.arange(len(vertices)))
