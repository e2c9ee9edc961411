"""The joint family: pieces of forests, terms, and posteriors that are mixtures over forests."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.forests import ForestPieces, ForestSampler, OrderedForest
from corrvae.model import build_model
from corrvae.model.families import Independent, Joint
from corrvae.model.families.joint import JointPosterior, Mixture
from corrvae.model.objectives import bound
from corrvae.nn import FeatureTable
from corrvae.training.data import exhaustive
from corrvae.training.validation import evaluate
from support.forests import random_edges, random_forest, spanning_forests
from support.gaussian import dense_posterior
from support.training import D, small_data, small_matrix

N = 30


def joint_model(**options):
    model = build_model(D, 3, family=Joint(**options), likelihood="multinomial", tau=0.9, hidden=(7,), seed=0)
    model.decoder.layers[0].weight.data.zero_()  # what a row is like does not depend on the noise
    return model


def joint_data(n_bare: int = 4, **changes):
    edges = np.unique(np.sort(random_edges(N + n_bare, 0.15, 1), axis=1), axis=0)
    return small_data(N, edges=edges, weights=np.full(len(edges), 0.5), n_bare=n_bare, **changes)


# ---- pieces


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**16))
def test_pieces_hold_every_vertex_and_every_edge_once(n_vertices, block_size, seed):
    edges = random_forest(n_vertices, seed)
    forest = OrderedForest.of(n_vertices, edges)
    pieces = ForestPieces(forest, block_size)
    own, joined, n_cut = [], [], 0
    for number in range(pieces.n_pieces):
        piece = pieces.at(number)
        own += piece.vertices[piece.own].tolist()
        inside = np.flatnonzero(piece.own & (piece.parents >= 0))
        joined += [{*piece.vertices[[k, piece.parents[k]]].tolist()} for k in inside]
        joined += [{*piece.vertices[ends].tolist()} for ends in piece.cut]
        n_cut += len(piece.cut)
        assert piece.own.sum() <= block_size
        assert (~piece.own).sum() <= block_size
        assert (piece.parents < np.arange(len(piece.parents))).all()
    assert sorted(own) == list(range(n_vertices))
    assert sorted(map(sorted, joined)) == sorted(map(sorted, edges.tolist()))
    assert n_cut == pieces.n_cut


def test_vertices_that_stay_are_in_the_block_of_their_parent():
    chain = OrderedForest.of(4, np.array([[0, 1], [1, 2], [2, 3]]))
    pieces = ForestPieces(chain, 1, stays=np.array([False, True, True, False]))
    assert pieces.n_cut == 1
    assert [pieces.at(k).vertices[pieces.at(k).own].tolist() for k in range(2)] == [[0, 1, 2], [3]]


def test_forests_are_drawn_in_proportion_to_their_conductances():
    edges = np.array([[0, 1], [0, 2], [1, 2]])
    sampler = ForestSampler(CorrelationGraph(edges, 3, conductances=[1.0, 2.0, 4.0]))

    def missing(forest: OrderedForest) -> int:
        ends = [sorted(forest.order[[k, p]].tolist()) for k, p in enumerate(forest.parents) if p >= 0]
        return next(e for e, pair in enumerate(edges.tolist()) if pair not in ends)

    counts = np.bincount([missing(sampler.draw((7, k))) for k in range(4000)], minlength=3) / 4000
    np.testing.assert_allclose(counts, np.array([8.0, 4.0, 2.0]) / 14.0, atol=0.03)
    np.testing.assert_array_equal(sampler.draw((7, 3)).order, sampler.draw((7, 3)).order)


# ---- terms


@pytest.mark.parametrize("block_size", [1, 4, 7, None])
def test_the_pieces_of_a_forest_average_to_the_bound_of_its_blocks(block_size):
    model, data = joint_model(block_size=block_size), joint_data(batch_size=4, edge_batch_size=2)
    pieces = model.family._pieces(data, 0)
    found = []
    with torch.no_grad():
        for number in range(pieces.n_pieces):
            batch = data.draw_piece(0, pieces.at(number), pieces.n_pieces)
            found.append(list(model(batch, torch.Generator().manual_seed(0)).numbers().values()))
    reconstruction, kl, edge, _ = np.mean(found, axis=0)
    # the whole forest at once, with the edges between blocks taken out
    everyone = [pieces.at(number) for number in range(pieces.n_pieces)]
    inside = [
        piece.vertices[[k, piece.parents[k]]]
        for piece in everyone
        for k in np.flatnonzero(piece.own & (piece.parents >= 0))
    ]
    cut = [piece.vertices[ends] for piece in everyone for ends in piece.cut]
    mean, stddev = (torch.from_numpy(part).double() for part in model.encode(data.table))
    bare = torch.zeros(data.n_bare, 3)
    precision = torch.cat([(1.0 / stddev**2 - 1.0).clamp(min=0.0), bare])
    information = torch.cat([(1.0 + precision[:N]) * mean, bare])
    tau = torch.full((3,), 0.9, dtype=torch.float64)
    m, V, expected_kl, _ = dense_posterior(precision, information, tau, np.array(inside))
    v = V.diagonal().T
    assert kl == pytest.approx(float(expected_kl) / N, rel=1e-4)
    T = [
        0.5 * (v[i] + m[i] ** 2 + v[j] + m[j] ** 2) * 0.81 / 0.19 - 0.9 * m[i] * m[j] / 0.19 + 0.5 * np.log(0.19)
        for i, j in cut
    ]
    assert edge == pytest.approx(float(sum(part.sum() for part in T)) / N, rel=1e-3, abs=1e-6)
    with torch.no_grad():
        log_prob = model.likelihood.log_prob(model.decoder(torch.zeros(N, 3)), data.table.rows(np.arange(N)))
    assert reconstruction == pytest.approx(float(log_prob.mean()), rel=1e-5)


def test_a_block_of_one_row_is_trained_as_an_independent_posterior():
    data = small_data()
    joint, independent = (
        build_model(D, 3, family=family, likelihood="multinomial", hidden=(7,), seed=0)
        for family in (Joint(), Independent())
    )
    found, expected = (
        model(model.family.draw(data, 3), torch.Generator().manual_seed(1)).numbers() for model in (joint, independent)
    )
    assert found == expected


def test_steps_are_the_same_for_the_same_seed():
    first, second = joint_model(block_size=9), joint_model(block_size=9)
    for step in (5, 0, 5):
        one, other = first.family.draw(joint_data(), step), second.family.draw(joint_data(), step)
        np.testing.assert_array_equal(one.vertices, other.vertices)
        np.testing.assert_array_equal(one.forest.parents, other.forest.parents)


def test_the_bound_that_is_reported_is_that_of_whole_forests():
    """On a forest: KL of the posterior that is inferred."""
    model, edges = joint_model(), random_forest(N, 2)
    data = small_data(N, edges=np.unique(np.sort(edges, axis=1), axis=0), weights=np.ones(len(edges)))
    model.family.observe(data)
    found = evaluate(model, exhaustive(data, as_inferred=True))
    posterior = model.family.infer(model, data.table, CorrelationGraph(data.edges, N))
    evidence = (
        torch.from_numpy(part).double() for part in (posterior._mixture.precision, posterior._mixture.information)
    )
    kl = dense_posterior(*evidence, torch.full((3,), 0.9, dtype=torch.float64), edges)[2]
    assert found["singleton"] == pytest.approx(float(kl) / N, rel=1e-4)
    assert bound(found) == pytest.approx(found["reconstruction"] - found["singleton"])


@pytest.mark.parametrize(("options", "strength"), [({}, 0.3), ({"block_size": None}, 1.0), ({"strength": 2.0}, 2.0)])
def test_evidence_has_a_strength(options, strength):
    model, mean, stddev = joint_model(**options), np.full((1, 3), 0.7, np.float32), np.full((1, 3), 0.5, np.float32)
    model.family.observe(joint_data())
    posterior = model.family.posterior(model, mean, stddev, None)
    np.testing.assert_allclose(posterior.mean, strength * 4.0 * 0.7 / (1.0 + strength * 3.0), rtol=1e-5)
    np.testing.assert_allclose(posterior.stddev, (1.0 + strength * 3.0) ** -0.5, rtol=1e-5)


def test_many_outputs_are_decoded_piece_by_piece(monkeypatch):
    model, data = joint_model(block_size=None), joint_data()
    batch = model.family.draw(data, 0)
    whole = model(batch, torch.Generator().manual_seed(0)).total()
    expected = torch.autograd.grad(whole, list(model.parameters()), allow_unused=True)
    monkeypatch.setattr("corrvae.model.families.joint._OUTPUTS", 4 * D)
    pieces = model(batch, torch.Generator().manual_seed(0)).total()
    found = torch.autograd.grad(pieces, list(model.parameters()), allow_unused=True)
    torch.testing.assert_close(pieces, whole)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


# ---- posteriors


def mixture_case(n_forests: int, edges: np.ndarray, n_vertices: int = 5) -> Mixture:
    generator = np.random.default_rng(0)
    precision = 4.0 * generator.random((n_vertices, 2)).astype(np.float32)
    precision[-1] = 0.0
    information = precision * generator.normal(size=(n_vertices, 2)).astype(np.float32)
    return Mixture(
        precision, information, np.array([0.9, -0.6]), ForestSampler(CorrelationGraph(edges, n_vertices)), n_forests
    )


def moments(mixture: Mixture, edges: np.ndarray):
    evidence = (torch.from_numpy(part).double() for part in (mixture.precision, mixture.information))
    mean, covariance, *_ = dense_posterior(*evidence, torch.from_numpy(mixture.tau), edges)
    return mean.numpy(), covariance.numpy()


def test_on_a_forest_the_posterior_is_exact():
    edges = np.array([[0, 1], [1, 2], [1, 4]])
    mixture = mixture_case(7, edges)
    posterior = JointPosterior.of(mixture, list("abcde"))
    mean, covariance = moments(mixture, edges)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-6)
    np.testing.assert_allclose(posterior.stddev, np.sqrt(np.diagonal(covariance).T), atol=1e-6)
    assert not posterior.standard_error.any()
    expected = covariance[0, 4] / np.sqrt(covariance[0, 0] * covariance[4, 4])
    np.testing.assert_allclose(posterior.correlation([("a", "e"), ("a", "d")]), [expected, np.zeros(2)], atol=1e-7)
    some = posterior.take(np.array([4, 0]))
    np.testing.assert_allclose(some.correlation([("a", "e")]), expected[None], atol=1e-7)
    assert some.ids.tolist() == ["e", "a"]
    assert not some.searchable.is_correlated


def test_on_a_graph_with_cycles_it_is_the_mixture_over_forests():
    edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]])
    mixture = mixture_case(3000, edges)
    posterior = JointPosterior.of(mixture)
    each = [moments(mixture, edges[list(forest)]) for forest in spanning_forests(5, edges)]
    mean = np.mean([m for m, _ in each], axis=0)
    second = np.mean([V + m[:, None] * m[None] for m, V in each], axis=0)
    covariance = second - mean[:, None] * mean[None]
    error = np.abs(posterior.mean - mean)
    assert (error <= 5.0 * posterior.standard_error + 1e-6).all()
    assert 0 < posterior.standard_error.max() < 0.02
    np.testing.assert_allclose(posterior.stddev, np.sqrt(np.diagonal(covariance).T), atol=0.01)
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    np.testing.assert_allclose(posterior.correlation([(0, 1)])[0], expected, atol=0.02)


def test_draws_are_of_the_mixture_and_have_its_density():
    edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]])
    posterior = JointPosterior.of(mixture_case(4, edges))
    draws = posterior.sample(20_000, random_state=0)
    np.testing.assert_allclose(draws.mean(0), posterior.mean, atol=0.04)
    np.testing.assert_allclose(draws.std(0), posterior.stddev, atol=0.04)
    found = np.corrcoef(draws[:, 0, 0], draws[:, 1, 0])[0, 1]
    assert found == pytest.approx(posterior.correlation([(0, 1)])[0, 0], abs=0.03)
    density = []
    for member in posterior._mixture:
        forest = member.forest
        ends = [forest.order[[k, p]] for k, p in enumerate(forest.parents) if p >= 0]
        mean, covariance = moments(posterior._mixture, np.array(ends))
        along = (stats.multivariate_normal(mean[:, c], covariance[:, :, c]).logpdf(draws[0, :, c]) for c in range(2))
        density.append(sum(along))
    assert posterior.log_density(draws[0]) == pytest.approx(np.logaddexp.reduce(density) - np.log(4), rel=1e-6)
    with pytest.raises(ValueError, match="all vertices of the graph together"):
        posterior.take(np.arange(3)).log_density(draws[0, :3])


@pytest.mark.parametrize("options", [{"n_forests": 0}, {"block_size": 0}, {"strength": 0.0}])
def test_options_are_checked(options):
    with pytest.raises(ValueError, match=r"must be (a positive integer|positive)"):
        joint_model(**options)


def test_rows_without_a_graph_are_embedded_by_themselves():
    model, table = joint_model(), FeatureTable(small_matrix())
    mean, _ = model.encode(table)
    np.testing.assert_allclose(model.family.infer(model, table).mean, mean, atol=1e-6)
