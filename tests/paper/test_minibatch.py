"""The average over every batch that could be drawn is the full objective."""

from itertools import combinations

import numpy as np
import pytest
import torch

from corrvae.model import CorrelatedModel, TrainingData
from corrvae.model.objectives import TERMS
from corrvae.nn import FeatureTable
from support.forests import random_edges, weights_by_enumeration
from support.training import NETWORKS, everything, fix_draws, given_noise, small_model

N = 6
EDGES = random_edges(N, 0.6, 0)
WEIGHTS = weights_by_enumeration(N, EDGES)
X = np.random.default_rng(0).poisson(1.0, (N, 7)).astype(np.float32)
NOISE = torch.randn(N, 3, generator=torch.Generator().manual_seed(0))
EVERY = np.arange(len(EDGES))


def make_data(**changes) -> TrainingData:
    return TrainingData(FeatureTable(X), EDGES, WEIGHTS, **changes)


def terms(model: CorrelatedModel, data: TrainingData, step: int = 0) -> np.ndarray:
    batch = model.family.draw(data, step)
    with torch.no_grad(), given_noise(NOISE[batch.vertices[: batch.n_drawn]]):
        values = model(batch).numbers()
    return np.array([values.get(name, 0.0) for name in TERMS])


@pytest.mark.parametrize("sample_weights", [None, np.linspace(0, 2, N)])
@pytest.mark.parametrize("network", NETWORKS)
def test_batches_average_to_the_whole(network, sample_weights):
    options = {} if network is None else {"gamma_kl": 0.3, "gamma_mi": 0.7}
    model = small_model(network, n_features=7, **options)
    full = terms(model, everything(make_data(sample_weights=sample_weights)))
    vertices = [np.array(subset) for subset in combinations(range(N), 3)]
    # two edges at a time: each edge is in two of these windows
    windows = [np.array([edge, (edge + 1) % len(EDGES)]) for edge in EVERY]
    found = [
        terms(model, fix_draws(make_data(sample_weights=sample_weights), drawn, picked))
        for drawn in vertices
        for picked in windows
    ]
    np.testing.assert_allclose(np.mean(found, axis=0), full, rtol=2e-5, atol=1e-6)
    # batches themselves differ, or the average would prove nothing
    assert np.ptp([values[TERMS.index("total")] for values in found]) > 1e-2


def test_the_steps_of_an_epoch_average_to_the_whole():
    """Through the draws as they are: an epoch of batches that leave nothing over meets everything once."""
    n_edges = len(EDGES) - len(EDGES) % 2
    data = TrainingData(FeatureTable(X), EDGES[:n_edges], WEIGHTS[:n_edges], batch_size=3, edge_batch_size=n_edges // 2)
    model = small_model(n_features=7)
    found = [terms(model, data, step) for step in range(4, 6)]
    whole = TrainingData(FeatureTable(X), EDGES[:n_edges], WEIGHTS[:n_edges])
    np.testing.assert_allclose(np.mean(found, axis=0), terms(model, everything(whole)), rtol=2e-5, atol=1e-6)


def test_the_full_objective_is_the_sum_over_vertices_edges_and_pairs():
    """E log p - (1 + gamma_kl) mean KL - (1/n) sum w T - gamma_mi (2/n^2) sum I, from the posterior's own numbers."""
    model = small_model("bilinear", n_features=7, gamma_kl=0.3, gamma_mi=0.7)
    found = dict(zip(TERMS, terms(model, everything(make_data())), strict=True))
    posterior = model.family.infer(model, FeatureTable(X))
    pairs = list(combinations(range(N), 2))
    information = -0.5 * np.log(1 - posterior.correlation(pairs) ** 2).sum()
    assert found["non_edge"] == pytest.approx(2 * information / N**2, rel=1e-4)
    kl = 0.5 * (posterior.mean**2 + posterior.stddev**2 - 1 - 2 * np.log(posterior.stddev)).sum() / N
    assert found["singleton"] == pytest.approx(kl, rel=1e-4)
    total = found["reconstruction"] - 1.3 * found["singleton"] - found["edge"] - 0.7 * found["non_edge"]
    assert found["total"] == pytest.approx(total, rel=1e-5)
