"""A small model and small data to train it on."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import torch

from corrvae.model import CorrelatedModel, TrainingData, build_model
from corrvae.model.families import Independent, Pairwise
from corrvae.nn import FeatureTable

N, D = 60, 9
HIDDEN = {"perceptron": (8,), "bilinear": (8,), "metric": ()}
NETWORKS = (None, *HIDDEN)


def small_model(
    network: str | None = None,
    *,
    n_features: int = D,
    likelihood: str = "multinomial",
    tau: float | str = 0.9,
    normalize: str = "none",
    dropout: float = 0.0,
    seed: int = 0,
    **options,
) -> CorrelatedModel:
    """Build an independent model, or a pairwise one with a pair network and options of its family."""
    family = Independent() if network is None else Pairwise(network, hidden=HIDDEN[network], **options)
    return build_model(
        n_features,
        3,
        family=family,
        likelihood=likelihood,
        tau=tau,
        hidden=(7,),
        normalize=normalize,
        dropout=dropout,
        seed=seed,
    )


def small_matrix(n_rows: int = N, features: int = 0) -> np.ndarray:
    """Draw counts from a seed; no row is empty."""
    counts = np.random.default_rng(features).poisson(0.4, (n_rows, D)).astype(np.float32)
    counts[:, 0] += 1
    return counts


def small_data(n_rows: int = N, features: int = 0, **changes) -> TrainingData:
    """Return features, and a ring with weights that are not all equal."""
    i = np.arange(n_rows)
    edges = np.stack([i, (i + 1) % n_rows], axis=1)
    parts = {
        "table": FeatureTable(small_matrix(n_rows, features)),
        "edges": edges,
        "weights": np.linspace(0.5, 1.0, n_rows),
        "batch_size": 8,
        "edge_batch_size": 10,
    }
    return TrainingData(**{**parts, **changes})


def sparse_table(matrix: np.ndarray, *, as_sparse: bool = True) -> FeatureTable:
    """Return a table whose batches are sparse, or dense, whatever its density."""
    table = FeatureTable(matrix)
    table.sparse_batches = as_sparse
    return table


@dataclass
class FixedDraws:
    """Stands for `Shuffled`: every step draws these indices."""

    drawn: np.ndarray

    @property
    def scale(self) -> float:
        """As that of a uniform draw without replacement."""
        return 1.0 / len(self.drawn)

    def at(self, step: int) -> np.ndarray:
        """Return the indices."""
        return self.drawn


def fix_draws(data: TrainingData, vertices: np.ndarray, edges: np.ndarray | None = None) -> TrainingData:
    """Make every step draw these vertices and edges."""
    vars(data)["vertex_draws"] = FixedDraws(vertices)
    if edges is not None:
        vars(data)["edge_draws"] = FixedDraws(edges)
    return data


def everything(data: TrainingData) -> TrainingData:
    """Make every step draw all vertices and edges."""
    return fix_draws(data, np.arange(data.n_vertices), np.arange(data.n_edges))


@contextmanager
def given_noise(noise: torch.Tensor) -> Iterator[None]:
    """Make the latent noise of the drawn vertices these numbers."""

    def give(shape, **_):
        assert tuple(shape) == tuple(noise.shape)
        return noise

    with patch.object(torch, "randn", give):
        yield


def same_weights(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    """Return whether two models have the same weights to the bit."""
    return all(x.equal(y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))
