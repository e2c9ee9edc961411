import numpy as np
import pytest
import torch

from corrvae.building import Architecture, build_model
from corrvae.generation import draw_features, draw_latent, expected_features, sample_prior, tau_of
from corrvae.graphs import CorrelationGraph

COPIES = 4000
# Many cycles of four, each with an isolated vertex beside it.
CYCLES = CorrelationGraph.from_edges(
    [(5 * copy + i, 5 * copy + j) for copy in range(COPIES) for i, j in ((0, 1), (1, 2), (2, 3), (0, 3))],
    n_vertices=5 * COPIES,
)


def test_latent_points_have_the_priors_correlations():
    tau = np.array([0.9, -0.5])
    z = draw_latent(tau, 5 * COPIES, CYCLES, np.random.default_rng(0)).reshape(COPIES, 5, 2)
    for dimension in range(2):
        found = np.corrcoef(z[:, :, dimension].T)
        # Ends of an edge are joined by it in three of the four forests, and by the other three edges in the fourth.
        expected = 0.75 * tau[dimension] + 0.25 * tau[dimension] ** 3
        assert found[0, 1] == pytest.approx(expected, abs=0.06)
        assert found[0, 4] == pytest.approx(0.0, abs=0.06)
        assert z[:, :, dimension].std(0) == pytest.approx(np.ones(5), abs=0.06)


def test_without_a_graph_points_are_independent():
    z = draw_latent(np.full(1, 0.9), 5000, None, np.random.default_rng(0))
    assert np.corrcoef(z[:-1, 0], z[1:, 0])[0, 1] == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "poisson", "negative_binomial", "multinomial"])
def test_draws_have_the_expected_mean(likelihood):
    model = build_model(Architecture(3, 2, likelihood=likelihood, hidden=(4,)), 0)
    z, totals = np.repeat(np.random.default_rng(1).normal(size=(2, 2)), 3000, axis=0), np.full(6000, 7.0)
    drawn = draw_features(model, z, np.random.default_rng(2), totals)
    expected = expected_features(model, z, totals)
    for half in (slice(None, 3000), slice(3000, None)):
        np.testing.assert_allclose(drawn[half].mean(0), expected[half][0], atol=5 * drawn.std() / np.sqrt(3000))
    if likelihood == "multinomial":
        assert (drawn.sum(1) == 7).all()


def draw(n_samples=None, graph=None, totals=7.0):
    model = build_model(Architecture(3, 2, likelihood="multinomial", hidden=(4,)), 0)
    return sample_prior(model, np.full(2, 0.9), n_samples, graph, totals, np.random.default_rng(0))


def test_a_sample_has_the_rows_asked_for():
    triangle = CorrelationGraph.from_edges([(0, 1), (1, 2), (0, 2)])
    for n_samples, graph, n_rows in [(None, None, 1), (np.int64(4), None, 4), (None, triangle, 3), (3, triangle, 3)]:
        drawn = draw(n_samples, graph)
        assert drawn.features.shape == (n_rows, 3)
        assert drawn.latent.shape == (n_rows, 2)
    assert draw(3, totals=[1, 2, 3]).features.sum(1).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_samples": 2.5}, "n_samples must be a whole number, got 2.5"),
        ({"n_samples": 0}, "n_samples must be positive, got 0"),
        ({"graph": np.eye(3)}, r"graph must be a corrvae\.CorrelationGraph, .* got ndarray"),
        ({"graph": CYCLES, "n_samples": 3}, "a row for each of its 20000 vertices"),
        ({"n_samples": 3, "totals": [1, 2]}, r"totals must be a number, or 3 of them, .* got shape \(2,\)"),
    ],
)
def test_a_sample_that_cannot_be_is_said(wrong, words):
    with pytest.raises((ValueError, TypeError), match=words):
        draw(**wrong)


def test_tau_is_given_for_each_dimension():
    assert tau_of(build_model(Architecture(3, 2, tau=-0.5), 0), 2).tolist() == [-0.5, -0.5]
    model = build_model(Architecture(3, 2, tau="learned_per_dimension"), 0)
    with torch.no_grad():
        model.tau.raw[1] = 0.0
    np.testing.assert_allclose(tau_of(model, 2), [0.99, 0.0], atol=1e-6)
