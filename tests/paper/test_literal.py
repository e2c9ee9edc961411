"""The fast path equals the literal one, in value and in gradient."""

import numpy as np
import pytest
import torch

from corrvae.model import Batch, CorrelatedModel, Population, VertexIndex
from corrvae.nn import Decoder, Encoder, FeatureTable, PairPerceptron, make_likelihood
from literal import LiteralModel, literal_terms
from support.forests import random_edges, weights_by_enumeration

N, D = 7, 11
EDGES = random_edges(N, 0.5, 1)
WEIGHTS = weights_by_enumeration(N, EDGES).astype(np.float32)
X = np.random.default_rng(0).poisson(0.6, (N, D)).astype(np.float32)


def both(correlated: bool, limit: float, drawn: np.ndarray, picked: np.ndarray, gamma: float = 0.7):
    torch.manual_seed(0)
    pair = PairPerceptron(D, 4, hidden=(30,)) if correlated else None
    networks = Encoder(D, 4, hidden=(20,)), Decoder(4, D, hidden=(20,)), make_likelihood("multinomial", D)
    model = CorrelatedModel(*networks, pair_network=pair, tau=0.9)
    literal = LiteralModel(D, 4, 20, 30)
    literal.copy_weights(model)
    noise = torch.randn(len(drawn), 4)
    found = VertexIndex(N).distinct(drawn, EDGES[picked])
    rows = FeatureTable(X, density_limit=limit).rows(found.vertices)
    weights = torch.from_numpy(WEIGHTS[picked])
    batch = Batch(rows, len(drawn), torch.from_numpy(found.positions), weights)
    fast = model.terms(batch, Population(N, len(EDGES)), gamma=gamma, noise=noise)
    vertices = torch.from_numpy(drawn)
    pairs = vertices[torch.triu_indices(len(drawn), len(drawn), 1)].T if correlated else None
    sizes = {"n_vertices": N, "n_edges": len(EDGES), "tau": 0.9, "gamma": gamma}
    edges = torch.from_numpy(EDGES[picked])
    slow = literal_terms(literal, torch.from_numpy(X), vertices, noise, edges, weights, pairs, **sizes)
    return model, literal, fast, slow


def gradients_as_literal(model: CorrelatedModel) -> LiteralModel:
    """Lay the model's gradients out as the literal model's parameters."""
    for parameter in model.parameters():
        parameter.data = parameter.grad
    laid_out = LiteralModel(D, 4, 20, 30)
    laid_out.copy_weights(model)
    return laid_out


@pytest.mark.parametrize("limit", [0.0, 1.0])
@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_values_and_gradients(correlated, limit, whole):
    drawn = np.arange(N) if whole else np.array([5, 0, 3])
    picked = np.arange(len(EDGES)) if whole else np.array([2, 2, 0, 5])
    model, literal, fast, slow = both(correlated, limit, drawn, picked)
    for name, value in fast.floats().items():
        assert value == pytest.approx(float(getattr(slow, name).detach()), rel=2e-5, abs=1e-6), name
    fast.total.backward()
    slow.total.backward()
    laid_out = dict(gradients_as_literal(model).named_parameters())
    for name, parameter in literal.named_parameters():
        if correlated or not name.startswith("pair"):
            torch.testing.assert_close(laid_out[name], parameter.grad, rtol=2e-4, atol=2e-5)
