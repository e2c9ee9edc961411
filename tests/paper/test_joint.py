"""The joint posterior: tight on trees, E_T log p_T(x) on graphs with cycles, blocks, and a tau that is learned."""

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from corrvae.graphs.forests import ForestPieces, OrderedForest
from corrvae.model import PairPrior
from corrvae.model.objectives import edge_term
from corrvae.model.propagation import propagate
from corrvae.nn import Marginals
from support.forests import log_evidence, prior_covariance, random_edges, random_forest, spanning_forests
from support.linear_gaussian import LinearGaussian

DECODERS = {1: np.array([[1.3], [-0.4], [0.8]]), 2: np.array([[1.0, 0.5], [0.5, -1.0], [0.0, 0.0]])}
NOISE = 0.6


def joint_bound(x, decoder, tau, edges, precision, information, block_size=10**6):
    """E log p(x | z) - KL along a forest cut into blocks, for any evidence; T of the edges cut at rho = 0."""
    forest = OrderedForest.of(len(x), edges)
    pieces = ForestPieces(forest, block_size)
    total = 0.0
    for number in range(pieces.n_pieces):
        piece = pieces.at(number)
        taus = torch.full((decoder.shape[1],), tau, dtype=torch.float64)
        chosen = torch.from_numpy(piece.vertices).long()
        inside = OrderedForest(np.arange(len(chosen)), piece.parents)
        found = propagate(precision[chosen], information[chosen], taus, inside)
        own = torch.from_numpy(piece.own)
        W = torch.from_numpy(decoder)
        rest = torch.from_numpy(x)[chosen] - found.mean @ W.T
        error = rest.square().sum(1) + found.variance @ W.square().sum(0)
        fit = -0.5 * error / NOISE**2 - 0.5 * x.shape[1] * np.log(2 * np.pi * NOISE**2)
        prior = PairPrior.of(tau, len(taus), torch.float64)
        cut = edge_term(Marginals.of(found.mean, found.variance.sqrt()), torch.from_numpy(piece.cut), prior)
        total = total + ((fit - found.kl) * own).sum() - cut.sum()
    return total


def exact_evidence(x, decoder):
    """What a linear Gaussian row says of its latent point, if W'W is diagonal."""
    precision = torch.from_numpy(np.diag(decoder.T @ decoder) / NOISE**2).expand(len(x), -1)
    return precision.contiguous(), torch.from_numpy(x @ decoder / NOISE**2)


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("tau", [0.5, 0.95, -0.8])
def test_on_a_tree_it_is_log_p_and_nothing_exceeds_it(n_components, tau):
    generator, decoder, edges = np.random.default_rng(0), DECODERS[n_components], random_forest(6, 1)
    x = generator.normal(size=(6, 3))
    evidence = exact_evidence(x, decoder)
    truth = log_evidence(x, decoder, NOISE, prior_covariance(6, edges, tau))
    assert float(joint_bound(x, decoder, tau, edges, *evidence)) == pytest.approx(truth, abs=1e-6)
    for seed in range(20):
        random = torch.Generator().manual_seed(seed)
        precision = evidence[0] * torch.rand(6, n_components, generator=random, dtype=torch.float64) * 2
        information = evidence[1] + torch.randn(6, n_components, generator=random, dtype=torch.float64)
        for block_size in (1, 2, 6):
            assert float(joint_bound(x, decoder, tau, edges, precision, information, block_size)) < truth


@pytest.mark.parametrize("tau", [0.6, 0.95])
def test_on_a_graph_with_cycles_it_is_the_mean_of_log_p_along_forests(tau):
    decoder, edges = DECODERS[1], random_edges(5, 0.8, 2)
    x = np.random.default_rng(1).normal(size=(5, 3))
    evidence, forests = exact_evidence(x, decoder), spanning_forests(5, edges)
    bounds = [float(joint_bound(x, decoder, tau, edges[list(forest)], *evidence)) for forest in forests]
    along = [log_evidence(x, decoder, NOISE, prior_covariance(5, edges[list(forest)], tau)) for forest in forests]
    assert np.mean(bounds) == pytest.approx(np.mean(along), abs=1e-6)
    assert np.mean(bounds) <= logsumexp(along) - np.log(len(along))
    weights = np.array([np.mean([e in forest for forest in forests]) for e in range(len(edges))])
    pairwise = LinearGaussian(x, decoder, NOISE, edges, weights, tau).maximum(correlated=True)
    assert pairwise <= np.mean(bounds) + 1e-6


def test_blocks_of_one_vertex_are_the_independent_posterior():
    decoder, edges, tau = DECODERS[2], random_forest(7, 3), 0.9
    x = np.random.default_rng(2).normal(size=(7, 3))
    precision, information = exact_evidence(x, decoder)
    model = LinearGaussian(x, decoder, NOISE, edges, np.ones(len(edges)), tau)
    mean, log_stddev = information / (1 + precision), -0.5 * torch.log1p(precision)
    expected = float(model.objective(mean, log_stddev, None))
    assert float(joint_bound(x, decoder, tau, edges, precision, information, 1)) == pytest.approx(expected, rel=1e-9)


def test_a_learned_tau_recovers_the_truth():
    """One latent dimension, known decoder and noise: the bound is log p(x), which is largest near the true tau."""
    generator, n, truth = np.random.default_rng(0), 3000, 0.8
    edges = np.stack([generator.integers(0, np.arange(1, n)), np.arange(1, n)], axis=1)
    z = generator.normal(size=(n, 1))
    for parent, child in edges:
        z[child] = truth * z[parent] + np.sqrt(1 - truth**2) * z[child]
    x = z @ DECODERS[1].T + NOISE * generator.normal(size=(n, 3))
    precision, information = exact_evidence(x, DECODERS[1])
    forest, W = OrderedForest.of(n, edges), torch.from_numpy(DECODERS[1])
    raw = torch.tensor([0.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([raw], max_iter=50, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        found = propagate(precision, information, raw.tanh(), forest)
        rest = torch.from_numpy(x) - found.mean @ W.T
        error = rest.square().sum() + (found.variance @ W.square().sum(0)).sum()
        value = 0.5 * error / NOISE**2 + found.kl.sum()
        value.backward()
        return value

    optimizer.step(loss)
    assert float(raw.detach().tanh()) == pytest.approx(truth, abs=0.03)
