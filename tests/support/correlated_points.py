"""Points of a small model with a pair network, and all their correlations by the network's own module."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch

from corrvae.inference import infer_posterior
from corrvae.nn import DenseRows, FeatureTable
from corrvae.scoring.pair_vectors import PairVectors
from corrvae.scoring.points import Points
from support.training import small_matrix, small_model


@dataclass(frozen=True)
class CorrelatedPoints:
    """The points, and the correlation of every pair in every dimension, in float64."""

    points: Points
    correlation: np.ndarray


def correlated_points(n_points: int, kind: str, seed: int = 0, strength: float = 3.0) -> CorrelatedPoints:
    """Make points whose correlations are large enough to change who is near."""
    model, X = small_model(kind), small_matrix(n_points, seed)
    with torch.no_grad():
        for parameter in model.pair_network.parameters():
            parameter *= strength
        exact = deepcopy(model).double()
        double, rows = exact.pair_network, DenseRows(torch.from_numpy(X).double())
        prepared = double.prepare(DenseRows(exact.encoder(rows).mean) if kind == "metric" else rows)
        first, second = torch.arange(n_points).repeat_interleave(n_points), torch.arange(n_points).repeat(n_points)
        a = double.pre_activation(prepared, first, second).view(n_points, n_points, -1)
    table = FeatureTable(X)
    posterior = infer_posterior(model, table)
    points = Points.of(posterior.mean, posterior.stddev, PairVectors(model, table))
    return CorrelatedPoints(points, np.tanh(a.numpy()))
