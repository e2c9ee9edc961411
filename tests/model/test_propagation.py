"""Belief propagation on forests: values, gradients, extremes, draws and densities."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from corrvae.graphs.forests import OrderedForest
from corrvae.model.kernels import combine_upwards, descend, log_densities, pair_covariances, spread_downwards
from corrvae.model.propagation import propagate
from support.forests import random_forest
from support.gaussian import dense_posterior

DIM = 3


def case(n_vertices: int, seed: int, bare: float = 0.2):
    """Return a forest, and evidence of which some is none."""
    generator = torch.Generator().manual_seed(seed)
    edges = random_forest(n_vertices, seed)
    known = (torch.rand(n_vertices, 1, generator=generator) >= bare).double()
    precision = known * 5.0 * torch.rand(n_vertices, DIM, generator=generator, dtype=torch.float64)
    information = known * torch.randn(n_vertices, DIM, generator=generator, dtype=torch.float64)
    tau = 1.9 * torch.rand(DIM, generator=generator, dtype=torch.float64) - 0.95
    return edges, OrderedForest.of(n_vertices, edges), precision, information, tau


def along(forest, precision, information, tau):
    """Return evidence combined upwards, means and variances, in the order of the forest."""
    a, b = (part.numpy()[forest.order] for part in (precision, information))
    combine_upwards(a, b, forest.parents, tau.numpy())
    mean, variance, _ = spread_downwards(a, b, forest.parents, tau.numpy())
    return a, b, mean, variance


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(0, 2**16))
def test_marginals_divergence_and_log_z_are_those_of_a_dense_solve(n_vertices, seed):
    edges, forest, precision, information, tau = case(n_vertices, seed)
    found = propagate(precision, information, tau, forest)
    mean, covariance, kl, log_z = dense_posterior(precision, information, tau, edges)
    torch.testing.assert_close(found.mean, mean, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(found.variance, covariance.diagonal().T, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(found.kl.sum(), kl, rtol=1e-8, atol=1e-8)
    assert (found.kl >= -1e-12).all()
    inside = (information * found.mean - precision * (found.mean.square() + found.variance) / 2).sum()
    torch.testing.assert_close(inside - found.kl.sum(), log_z, rtol=1e-8, atol=1e-8)


@settings(max_examples=30)
@given(st.integers(2, 10), st.integers(0, 2**16))
def test_covariances_are_those_of_a_dense_solve(n_vertices, seed):
    edges, forest, precision, information, tau = case(n_vertices, seed)
    a, _, _, variance = along(forest, precision, information, tau)
    place = np.argsort(forest.order)
    i, j = np.triu_indices(n_vertices)
    found = pair_covariances(a, variance, forest.parents, tau.numpy(), np.stack([place[i], place[j]], axis=1))
    covariance = dense_posterior(precision, information, tau, edges)[1]
    np.testing.assert_allclose(found, covariance[i, j].numpy(), rtol=1e-8, atol=1e-8)


@settings(max_examples=15)
@given(st.integers(1, 8), st.integers(0, 2**16))
def test_gradients_are_those_of_the_dense_computation(n_vertices, seed):
    edges, forest, *inputs = case(n_vertices, seed)
    inputs = [part.requires_grad_() for part in inputs]
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randn(2, n_vertices, DIM, generator=generator, dtype=torch.float64)

    def loss(mean, variance, kl):
        return (first * mean).sum() + (second * variance).sum() - 1.7 * kl.sum()

    mean, covariance, kl, _ = dense_posterior(*inputs, edges)
    expected = torch.autograd.grad(loss(mean, torch.diagonal(covariance, dim1=0, dim2=1).T, kl), inputs)
    found = torch.autograd.grad(loss(*propagate(*inputs, forest)), inputs)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-8)


def test_gradients_are_those_of_finite_differences():
    _, forest, *inputs = case(7, 3)
    inputs = [part.requires_grad_() for part in inputs]
    assert torch.autograd.gradcheck(lambda *parts: tuple(propagate(*parts, forest)), inputs)


def test_without_evidence_the_posterior_is_the_prior():
    forest = OrderedForest.of(6, random_forest(6, 0))
    nothing = torch.zeros(6, 2)
    found = propagate(nothing, nothing, torch.tensor([0.9, -0.5], dtype=torch.float64), forest)
    assert torch.equal(found.mean, nothing)
    torch.testing.assert_close(found.variance, torch.ones(6, 2))
    torch.testing.assert_close(found.kl, torch.zeros(6))


def test_a_vertex_alone_combines_its_evidence_with_the_prior():
    known, tau = torch.full((1, 1), 3.0), torch.tensor([0.99], dtype=torch.float64)
    found = propagate(known, known, tau, OrderedForest.of(1, np.empty((0, 2), np.int64)))
    torch.testing.assert_close(found.mean, torch.tensor([[0.75]]))
    torch.testing.assert_close(found.variance, torch.tensor([[0.25]]))


SHAPES = {
    "two": np.array([[0, 1]]),
    "chain": np.stack([np.arange(2000), np.arange(1, 2001)], axis=1),
    "star": np.stack([np.zeros(100_000, np.int64), np.arange(1, 100_001)], axis=1),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tau", [-0.99, 0.0, 0.5, 0.999])
@pytest.mark.parametrize("strength", [0.0, 1e-8, 1.0, 1e8])
def test_extremes_are_finite(shape, tau, strength):
    n_vertices = len(SHAPES[shape]) + 1
    precision = torch.full((n_vertices, 1), strength, requires_grad=True)
    information = (strength * torch.linspace(-2, 2, n_vertices)[:, None]).requires_grad_()
    correlation = torch.tensor([tau], dtype=torch.float64, requires_grad=True)
    found = propagate(precision, information, correlation, OrderedForest.of(n_vertices, SHAPES[shape]))
    (found.mean.sum() + found.variance.sum() + found.kl.sum()).backward()
    for part in (*found, precision.grad, information.grad, correlation.grad):
        assert torch.isfinite(part).all()
    assert (found.variance > 0).all()
    assert (found.variance <= 1.001).all()
    if strength == 1e8 and shape != "star":  # the leaves of a star outvote its centre
        torch.testing.assert_close(found.mean, torch.linspace(-2, 2, n_vertices)[:, None], rtol=1e-3, atol=1e-3)


def test_a_star_is_right():
    """The centre sums what its leaves know; each leaf knows s from the centre besides its own evidence."""
    n_leaves, tau, strength = 100_000, 0.9, 2.0
    forest = OrderedForest.of(n_leaves + 1, SHAPES["star"])
    known = torch.full((n_leaves + 1, 1), strength, dtype=torch.float64)
    found = propagate(known, known, torch.tensor([tau], dtype=torch.float64), forest)
    rest = 1.0 - tau**2
    precision = 1.0 + strength + n_leaves * tau**2 * strength / (1.0 + rest * strength)
    information = strength + n_leaves * tau * strength / (1.0 + rest * strength)
    assert found.mean[0].item() == pytest.approx(information / precision, rel=1e-9)
    assert found.variance[0].item() == pytest.approx(1.0 / precision, rel=1e-9)
    leaf = (rest * strength + tau * information / precision) / (1.0 + rest * strength)
    assert found.mean[7].item() == pytest.approx(leaf, rel=1e-9)


def test_draws_and_densities_are_those_of_the_dense_posterior():
    edges, forest, precision, information, tau = case(5, 1)
    a, b, *_ = along(forest, precision, information, tau)
    mean, covariance, *_ = dense_posterior(precision, information, tau, edges)
    generator = np.random.default_rng(0)
    draws = generator.standard_normal((20_000, 5, DIM))
    for z in draws:
        descend(z, a, b, forest.parents, tau.numpy())
    in_order = draws[:, np.argsort(forest.order)]
    np.testing.assert_allclose(in_order.mean(0), mean, atol=0.05)
    for c in range(DIM):
        np.testing.assert_allclose(np.cov(in_order[:, :, c].T), covariance[:, :, c], atol=0.05)
    found = log_densities(draws[:4], a, b, forest.parents, tau.numpy())
    expected = sum(
        stats.multivariate_normal(mean[:, c], covariance[:, :, c]).logpdf(in_order[:4, :, c]) for c in range(DIM)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-8)
