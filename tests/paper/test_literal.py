"""The fast path equals the literal one, in value and in gradient, for dense and sparse rows and for shared batches."""

import numpy as np
import pytest
import torch

from corrvae.model import Batch, CorrelatedModel, TrainingData, build_model
from corrvae.model.families import Independent, Pairwise
from literal import LiteralModel, literal_terms
from support.forests import random_edges, weights_by_enumeration
from support.training import NETWORKS, fix_draws, given_noise, small_model, sparse_table

N, D = 7, 11
EDGES = random_edges(N, 0.5, 1)
WEIGHTS = weights_by_enumeration(N, EDGES)
X = np.random.default_rng(0).poisson(0.6, (N, D)).astype(np.float32)
DRAWN = {False: np.array([5, 0, 3]), True: np.arange(N)}
PICKED = {False: np.array([2, 4, 0, 5]), True: np.arange(len(EDGES))}


def draw(model: CorrelatedModel, whole: bool, as_sparse: bool) -> Batch:
    data = TrainingData(sparse_table(X, as_sparse=as_sparse), EDGES, WEIGHTS)
    return model.family.draw(fix_draws(data, DRAWN[whole], PICKED[whole]), 0)


def both(correlated: bool, as_sparse: bool, whole: bool, gamma: float = 0.7):
    family = Pairwise(hidden=(30,), gamma_kl=gamma, gamma_mi=gamma) if correlated else Independent()
    model = build_model(D, 4, family=family, likelihood="multinomial", tau=0.9, hidden=(20,))
    literal = LiteralModel(D, 4, 20, 30)
    literal.copy_weights(model)
    noise = torch.randn(len(DRAWN[whole]), 4, generator=torch.Generator().manual_seed(0))
    with given_noise(noise):
        fast = model(draw(model, whole, as_sparse))
    vertices = torch.from_numpy(DRAWN[whole])
    edges, weights = torch.from_numpy(EDGES[PICKED[whole]]), torch.from_numpy(WEIGHTS[PICKED[whole]]).float()
    pairs = vertices[torch.triu_indices(len(vertices), len(vertices), 1)].T if correlated else None
    sizes = {"n_vertices": N, "n_edges": len(EDGES), "tau": 0.9, "gamma": gamma}
    slow = literal_terms(literal, torch.from_numpy(X), vertices, noise, edges, weights, pairs, **sizes)
    return model, literal, fast, slow


def gradients_as_literal(model: CorrelatedModel) -> LiteralModel:
    """Lay the model's gradients out as the literal model's parameters."""
    for parameter in model.parameters():
        parameter.data = parameter.grad
    laid_out = LiteralModel(D, 4, 20, 30)
    laid_out.copy_weights(model)
    return laid_out


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_values_and_gradients(correlated, as_sparse, whole):
    model, literal, fast, slow = both(correlated, as_sparse, whole)
    for name, value in fast.numbers().items():
        assert value == pytest.approx(float(getattr(slow, name).detach()), rel=2e-5, abs=1e-6), name
    fast.total().backward()
    slow.total.backward()
    laid_out = dict(gradients_as_literal(model).named_parameters())
    for name, parameter in literal.named_parameters():
        if correlated or not name.startswith("pair"):
            torch.testing.assert_close(laid_out[name], parameter.grad, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("n_workers", [2, 3, 5])
@pytest.mark.parametrize("network", NETWORKS)
def test_the_mean_over_shares_is_the_whole(network, n_workers, as_sparse):
    """In value and gradient, with dropout; of five workers some have no vertex, and one no pair."""
    model = small_model(network, n_features=D, dropout=0.3, tau="learned").train()
    batch = draw(model, False, as_sparse)

    def values_and_gradients(share: Batch) -> tuple[dict[str, float], list[torch.Tensor]]:
        model.zero_grad()
        terms = model(share, torch.Generator().manual_seed(5))
        terms.total(0.6).backward()
        return terms.numbers(0.6), [parameter.grad.clone() for parameter in model.parameters()]

    values, gradients = values_and_gradients(batch)
    shares = [values_and_gradients(batch.share(worker, n_workers)) for worker in range(n_workers)]
    assert len({share["total"] for share, _ in shares}) > 1
    for name, value in values.items():
        assert np.mean([share[name] for share, _ in shares]) == pytest.approx(value, rel=1e-5, abs=1e-6)
    for number, gradient in enumerate(gradients):
        mean = torch.stack([of_share[number] for _, of_share in shares]).mean(0)
        torch.testing.assert_close(mean, gradient, rtol=1e-4, atol=1e-6)
