import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae import objectives
from corrvae.model import Batch
from corrvae.nn import FeatureTable, LearnedTau, Marginals, PairPrior
from corrvae.objectives import Terms, edge_term, mutual_information, singleton_kl
from support.training import small_data, small_matrix, small_model


def marginals(n_vertices: int, n_components: int, seed: int, dtype=torch.float64) -> Marginals:
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(n_vertices, n_components, generator=generator, dtype=dtype)
    return Marginals.of(mean, torch.rand(mean.shape, generator=generator, dtype=dtype) + 0.05)


@given(st.integers(0, 2**16), st.floats(-0.999, 0.999))
def test_swapping_a_pair_changes_no_bit(seed, tau):
    points, edges = marginals(6, 5, seed, torch.float32), torch.tensor([[0, 1], [2, 5], [4, 3]])
    a = torch.randn(3, 5, generator=torch.Generator().manual_seed(seed))
    for pre_activation in (a, None):
        there = edge_term(points, edges, PairPrior.of(tau, 5), pre_activation)
        assert there.equal(edge_term(points, edges.flip(1), PairPrior.of(tau, 5), pre_activation))


@given(st.integers(0, 2**16))
def test_relabelling_vertices_changes_nothing(seed):
    points, edges = marginals(6, 5, seed), torch.tensor([[0, 1], [2, 5], [4, 3]])
    order = torch.randperm(6, generator=torch.Generator().manual_seed(seed))
    moved, places = points.at(order), torch.argsort(order)
    prior = PairPrior.of(0.9, 5, torch.float64)
    assert edge_term(moved, places[edges], prior).equal(edge_term(points, edges, prior))
    assert singleton_kl(moved).equal(singleton_kl(points)[order])


@given(st.integers(0, 2**16))
def test_without_prior_correlation_an_edge_only_costs_its_information(seed):
    points, edges = marginals(4, 3, seed), torch.tensor([[0, 1], [2, 3]])
    a = torch.randn(2, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    prior = PairPrior.of(0.0, 3, torch.float64)
    torch.testing.assert_close(edge_term(points, edges, prior), torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(edge_term(points, edges, prior, a), mutual_information(a))


def test_an_isolated_vertex_changes_no_other_term():
    points, edges = marginals(4, 3, 0), torch.tensor([[0, 1], [2, 3]])
    larger = Marginals(torch.cat([points.joint, marginals(1, 3, 9).joint]))
    prior = PairPrior.of(0.7, 3, torch.float64)
    assert edge_term(larger, edges, prior).equal(edge_term(points, edges, prior))
    assert singleton_kl(larger)[:4].equal(singleton_kl(points))


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("tau", [0.9, -0.9, 0.0])
def test_gradients_by_finite_differences_tau_included(correlated, tau):
    edges = torch.tensor([[0, 1], [2, 1]])
    points = marginals(3, 2, 0).joint.requires_grad_()
    a = torch.randn(2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    held = torch.tensor(tau, dtype=torch.float64)

    def value(joint, pre_activation, correlation):
        prior = PairPrior.of(correlation, 2, torch.float64)
        return edge_term(Marginals(joint), edges, prior, pre_activation if correlated else None)

    if correlated:
        assert torch.autograd.gradcheck(lambda j, p: value(j, p, held), (points, a))
    else:
        assert torch.autograd.gradcheck(lambda j: value(j, a, held), (points,))
    # at tau = 0 the sign convention changes, but not the function: its derivative is the same on both sides
    assert torch.autograd.gradcheck(lambda t: value(points.detach(), a.detach(), t), (held.clone().requires_grad_(),))


def test_a_given_and_a_learned_tau_agree():
    points, edges = marginals(4, 3, 0, torch.float32), torch.tensor([[0, 1], [2, 3]])
    a = torch.randn(2, 3)
    for learned in (LearnedTau(0.99), LearnedTau(0.99, n_components=3)):
        for pre_activation in (a, None):
            found = edge_term(points, edges, PairPrior.of(learned(), 3), pre_activation)
            torch.testing.assert_close(
                found, edge_term(points, edges, PairPrior.of(0.99, 3), pre_activation), rtol=1e-4, atol=1e-4
            )
            found.sum().backward()
            assert learned.raw.grad is not None


def test_means_have_the_factors_that_make_them_sums_over_the_graph():
    values, weights = torch.tensor([1.0, 4.0]), torch.tensor([0.5, 0.25])
    sizes = {"n_vertices": 4}
    assert float(objectives.mean_over_vertices(values).value) == 2.5
    assert float(objectives.mean_over_vertices(values, weights).value) == 0.75
    assert float(objectives.mean_over_edges(values, weights, n_edges=2, **sizes).value) == pytest.approx(1.5 / 4)
    assert float(objectives.mean_over_weighted_edges(values, total_weight=3.0, **sizes).value) == pytest.approx(7.5 / 4)
    assert float(objectives.mean_over_pairs(values, **sizes).value) == pytest.approx(2.5 * 3 / 4)


def test_draws_are_means_plus_noise_with_their_divergences():
    points, noise = marginals(5, 3, 0), torch.randn(2, 3, dtype=torch.float64)
    edges, prior = torch.tensor([[0, 4], [2, 3]]), PairPrior.of(0.9, 3, torch.float64)
    draws = objectives.draw(points, noise, edges, prior, independent=True)
    torch.testing.assert_close(draws.z, points.mean[:2] + points.stddev[:2] * noise)
    torch.testing.assert_close(draws.kl, singleton_kl(points)[:2])
    torch.testing.assert_close(draws.quadratic, edge_term(points, edges, prior))
    a = torch.randn(2, 3, dtype=torch.float64)
    draws = objectives.draw(points, noise, edges, prior, independent=False)
    rest = objectives.correlation_term(points, edges, prior, a)
    torch.testing.assert_close(draws.quadratic + rest, edge_term(points, edges, prior, a))


# each term is the mean of two draws, one with weights
TERMS = tuple(
    objectives.Mean(torch.tensor([value, 3 * value]), 0.5, torch.tensor([1.0, 1.0 / 3]) if weighted else None)
    for value, weighted in ((-10.0, True), (1.0, False), (3.0, True), (2.5, False))
)


@pytest.mark.parametrize(
    ("terms", "total"),
    [
        (objectives.vae(*TERMS[:2]), -12.0),
        (objectives.vae(*TERMS[:2], warmup=0.5), -11.0),
        (objectives.cvae_ind(*TERMS[:3]), -15.0),
        (objectives.cvae_ind(*TERMS[:3], warmup=0.1), -10.5),
        (objectives.cvae_corr(*TERMS, gamma=0.0), -15.0),
        (objectives.cvae_corr(*TERMS, gamma=2.0), -29.0),
        (objectives.cvae_corr(*TERMS, gamma=(2.0, 0.0)), -19.0),
        (objectives.cvae_corr(*TERMS, gamma=(0.0, 2.0), warmup=0.5), -17.5),
    ],
)
def test_totals(terms, total):
    assert float(terms.total) == total
    assert terms.floats()["total"] == total
    assert float(terms.bound) == float(terms.reconstruction - terms.singleton - terms.edge)


def test_gamma_is_one_number_or_two_and_not_negative():
    assert objectives.gamma_pair(0.5) == (0.5, 0.5)
    assert objectives.gamma_pair((1.0, 1000.0)) == (1.0, 1000.0)
    for gamma in (-1.0, (0.0, -1.0), float("nan"), (float("inf"), 1.0)):
        with pytest.raises(ValueError, match="gamma must not be negative"):
            objectives.gamma_pair(gamma)


@pytest.mark.parametrize("pair", [None, "perceptron"])
def test_numbers_are_those_of_the_terms_with_or_without_a_shortcut(pair):
    data, model = small_data(), small_model(pair)
    edges, weights = torch.tensor([[0, 1], [2, 3]]), torch.tensor([0.5, 2.0])
    batch = Batch(data.table.rows(np.arange(6)), 5, edges, weights, vertex_weights=torch.linspace(0, 2, 5))
    terms = model.terms(batch, data.population, noise=torch.zeros(5, 3))
    values = terms.numbers()
    assert set(values) == {"total", "reconstruction", "singleton", "edge"} | ({"non_edge"} if pair else set())
    for name, value in values.items():
        assert value == pytest.approx(getattr(terms, name).item(), rel=1e-5)
    for name, value in terms._transferred().items():  # as from another device
        assert value == pytest.approx(values[name], rel=1e-5)


def test_an_objective_of_constants_cannot_be_climbed():
    with pytest.raises(ValueError, match="to be learned"):
        Terms({"reconstruction": objectives.Mean(torch.ones(2), 0.5)}, {"reconstruction": 1.0}).climb()


@pytest.mark.parametrize("gamma", [0.5, (0.0, 2.0)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["vae", "ind", "perceptron", "learned"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_short_way_up_is_the_gradient_of_the_total(kind, weighted, gamma, is_sparse):
    features = small_matrix()
    table = FeatureTable(sparse.csr_array(features) if is_sparse else features, density_limit=float(is_sparse))
    data = small_data(table=table)
    model = small_model(
        "perceptron" if kind == "perceptron" else None, tau=LearnedTau(0.7) if kind == "learned" else 0.7
    )
    edges = None if kind == "vae" else torch.tensor([[0, 1], [2, 3]])
    batch = Batch(
        data.table.rows(np.arange(6)),
        5,
        edges,
        torch.tensor([0.5, 2.0]) if weighted and edges is not None else None,
        vertex_weights=torch.linspace(0, 2, 5) if weighted else None,
    )
    gradients = []
    for climb, taped in ((lambda terms: terms.total.backward(), False), (Terms.climb, False), (Terms.climb, True)):
        model.zero_grad()
        terms = model.terms(batch, data.population, gamma=gamma, warmup=0.6, noise=torch.ones(5, 3), taped=taped)
        assert (terms.tape is not None) == (taped and kind in {"vae", "ind"} and is_sparse)
        climb(terms)
        gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})
    for name, gradient in gradients[0].items():
        for others in gradients[1:]:
            torch.testing.assert_close(others[name], gradient, msg=name)


def test_a_factor_of_numpys_keeps_the_type_of_the_values():
    values, weights = torch.ones(2), torch.tensor([1.0, 2.0])
    for own in (None, weights):
        slope = objectives.Mean(values, np.float64(0.5), own).slope(np.float64(2.0))
        assert slope.equal(torch.ones(2) if own is None else weights)
