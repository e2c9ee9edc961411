"""A small model and small data to train it on."""

import numpy as np
import torch

from corrvae.model import CorrelatedModel
from corrvae.nn import (
    Decoder,
    Encoder,
    FeatureTable,
    InputTransform,
    PairBilinear,
    PairMetric,
    PairPerceptron,
    make_likelihood,
)
from corrvae.nn.prior import LearnedTau
from corrvae.training import TrainingData, TrainingSettings

N, D = 60, 9


def small_model(pair: str | None = None, *, dropout: float = 0.0, tau: float | LearnedTau = 0.9) -> CorrelatedModel:
    """Give a model whose weights are the same every time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        pairs = {"perceptron": PairPerceptron(D, 3, hidden=(8,)), "bilinear": PairBilinear(D, 3)}
        network = None if pair is None else PairMetric(D, 3) if pair == "metric" else pairs[pair]
        networks = Encoder(D, 3, hidden=(7,)), Decoder(3, D, hidden=(7,)), make_likelihood("multinomial", D)
    return CorrelatedModel(*networks, pair_network=network, tau=tau, inputs=InputTransform(dropout=dropout))


def small_matrix(n_rows: int = N, seed: int = 0) -> np.ndarray:
    """Give counts, none of the rows empty."""
    counts = np.random.default_rng(seed).poisson(0.4, (n_rows, D)).astype(np.float32)
    counts[:, 0] += 1
    return counts


def small_data(n_rows: int = N, seed: int = 0, **changes) -> TrainingData:
    """Give features, and a ring with weights that are not all equal."""
    i = np.arange(n_rows)
    edges = np.stack([i, (i + 1) % n_rows], axis=1)
    weights = np.linspace(0.5, 1.0, n_rows)
    parts = {"table": FeatureTable(small_matrix(n_rows, seed)), "edges": edges, "weights": weights, **changes}
    return TrainingData(**parts)


def small_settings(**changes) -> TrainingSettings:
    """Give settings of a short run."""
    numbers = {"max_steps": 30, "vertex_batch": 8, "edge_batch": 10, "evaluate_every": 7, "device": "cpu"}
    return TrainingSettings(**{**numbers, **changes})
