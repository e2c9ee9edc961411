"""Small data for the estimator: rows that come in similar pairs, and the graph that joins these."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from corrvae import CorrelationGraph, Pairwise

# Small networks and few steps; batches that the data fills.
QUICK: dict[str, Any] = {
    "n_components": 2,
    "hidden": (8,),
    "max_steps": 20,
    "batch_size": 16,
    "device": "cpu",
    "random_state": 0,
}


def quick_pairwise(**options) -> dict[str, Any]:
    """Return the same with the pairwise family."""
    return {**QUICK, "family": Pairwise(**{"hidden": (8,), **options})}


@dataclass(frozen=True)
class Paired:
    """Features of every kind, and the graph."""

    X: np.ndarray
    graph: CorrelationGraph

    @property
    def counts(self) -> np.ndarray:
        return np.rint(np.exp(self.X)).clip(0, 20)

    @property
    def bits(self) -> np.ndarray:
        return (self.X > 0).astype(float)


def paired_rows(n_rows: int = 60, n_features: int = 5, seed: int = 0, prefix: str = "v") -> Paired:
    """Make pairs of rows that differ by little; the ids are strings, the last two rows have no edge."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n_rows // 2, n_features)), 2, axis=0) + 0.1 * rng.normal(size=(n_rows, n_features))
    names = [f"{prefix}{row}" for row in range(n_rows)]
    pairs = [(names[row], names[row + 1]) for row in range(0, n_rows - 2, 2)]
    return Paired(X, CorrelationGraph.from_edges(pairs, vertices=names))
