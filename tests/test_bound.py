import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from corrvae.bound import evidence_bound
from corrvae.building import Architecture, build_model
from corrvae.graphs import spanning_weights
from corrvae.inference import infer_posterior
from corrvae.nn import FeatureTable
from support.graphs import graphs


def edge_term(posterior, i, j, tau):
    """KL(q_ij || p0_ij) - KL_i - KL_j from torch's own normals."""
    total = 0.0
    correlation = posterior.correlation(np.array([[i, j]]))[0]
    for k in range(posterior.n_components):
        means, stddevs = (
            torch.tensor(part[[i, j], k], dtype=torch.float64) for part in (posterior.mean, posterior.stddev)
        )
        joint = torch.eye(2, dtype=torch.float64)
        joint[0, 1] = joint[1, 0] = float(correlation[k])
        prior = torch.eye(2, dtype=torch.float64)
        prior[0, 1] = prior[1, 0] = tau
        q = MultivariateNormal(means, joint * stddevs[:, None] * stddevs)
        total += kl_divergence(q, MultivariateNormal(torch.zeros(2, dtype=torch.float64), prior)).item()
        total -= kl_divergence(Normal(means, stddevs), Normal(0.0, 1.0)).sum().item()
    return total


@settings(max_examples=10)
@given(graphs(min_vertices=2), st.sampled_from([None, "perceptron", "bilinear"]), st.integers(0, 100))
def test_terms_are_those_of_torch_distributions(graph, pair_network, seed):
    X = np.random.default_rng(seed).normal(size=(graph.n_vertices, 4))
    model = build_model(Architecture(4, 2, pair_network=pair_network, hidden=(5,), pair_hidden=(5,), tau=0.8), seed)
    table, weights = FeatureTable(X), spanning_weights(graph).weights
    bound = evidence_bound(model, table, graph.edges, weights)
    posterior = infer_posterior(model, table)
    marginals = Normal(torch.from_numpy(posterior.mean), torch.from_numpy(posterior.stddev))
    singleton = kl_divergence(marginals, Normal(0.0, 1.0)).sum().item() / graph.n_vertices
    assert bound.singleton == pytest.approx(singleton, rel=1e-4)
    terms = [w * edge_term(posterior, i, j, 0.8) for w, (i, j) in zip(weights, graph.edges.tolist(), strict=True)]
    assert bound.edge == pytest.approx(sum(terms) / graph.n_vertices, rel=1e-4, abs=1e-5)
    assert bound.total == bound.reconstruction - bound.singleton - bound.edge


def test_the_reconstruction_is_an_expectation():
    X = np.random.default_rng(0).normal(size=(40, 4))
    model = build_model(Architecture(4, 2, hidden=(5,)), 0)
    few, many = (evidence_bound(model, FeatureTable(X), n_draws=n).reconstruction for n in (4, 400))
    assert few == pytest.approx(many, rel=0.02)


def test_noise_is_fixed_and_the_mode_of_the_model_left_alone():
    table = FeatureTable(np.random.default_rng(0).normal(size=(5, 4)))
    model = build_model(Architecture(4, 2, hidden=(5,), dropout=0.5), 0).train()
    assert evidence_bound(model, table) == evidence_bound(model, table)
    assert model.training
