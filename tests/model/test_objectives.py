import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corrvae.model import LearnedTau, PairPrior, Terms
from corrvae.model.objectives import bound, edge_term, log_cosh, mutual_information, singleton_kl
from corrvae.nn import Marginals


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
    moved, places = Marginals(points.joint[order]), torch.argsort(order)
    prior = PairPrior.of(0.9, 5, torch.float64)
    torch.testing.assert_close(edge_term(moved, places[edges], prior), edge_term(points, edges, prior))
    torch.testing.assert_close(singleton_kl(moved), singleton_kl(points)[order])


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
    torch.testing.assert_close(singleton_kl(larger)[:4], singleton_kl(points))


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("tau", [0.9, -0.9, 0.0])
def test_gradients_by_finite_differences_tau_included(correlated, tau):
    edges = torch.tensor([[0, 1], [2, 1]])
    points = marginals(3, 2, 0).joint.requires_grad_()
    a = torch.randn(2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    fixed = torch.tensor(tau, dtype=torch.float64)

    def value(joint, pre_activation, correlation):
        prior = PairPrior.of(correlation, 2, torch.float64)
        return edge_term(Marginals(joint), edges, prior, pre_activation if correlated else None)

    if correlated:
        assert torch.autograd.gradcheck(lambda j, p: value(j, p, fixed), (points, a))
    else:
        assert torch.autograd.gradcheck(lambda j: value(j, a, fixed), (points,))
    # at tau = 0 the sign convention changes, but not the function: its derivative is the same on both sides
    assert torch.autograd.gradcheck(lambda t: value(points.detach(), a.detach(), t), (fixed.clone().requires_grad_(),))


def test_a_fixed_and_a_learned_tau_agree():
    points, edges = marginals(4, 3, 0, torch.float32), torch.tensor([[0, 1], [2, 3]])
    a = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    for learned in (LearnedTau(0.99), LearnedTau(0.99, n_components=3)):
        for pre_activation in (a, None):
            found = edge_term(points, edges, PairPrior.of(learned(), 3), pre_activation)
            fixed = edge_term(points, edges, PairPrior.of(0.99, 3), pre_activation)
            torch.testing.assert_close(found, fixed, rtol=1e-4, atol=1e-4)
            found.sum().backward()
            assert learned.raw.grad is not None


@given(st.floats(-300, 300))
def test_log_cosh_and_its_derivative(a):
    x = torch.tensor(a, dtype=torch.float64, requires_grad=True)
    value = log_cosh(x)
    value.backward()
    exact = np.logaddexp(a, -a) - np.log(2.0)
    assert float(value.detach()) == pytest.approx(exact, rel=1e-9, abs=1e-15)
    assert float(x.grad) == pytest.approx(np.tanh(a), rel=1e-12)


@given(st.floats(1e-18, 1e-3))
def test_log_cosh_near_zero_is_half_the_square(a):
    assert float(log_cosh(torch.tensor(a))) == pytest.approx(a**2 / 2, rel=1e-5, abs=1e-45)


def test_a_term_is_its_weighted_sum_and_the_objective_the_sum_of_terms():
    values, weights = torch.tensor([1.0, 4.0]), torch.tensor([0.5, 0.25])
    terms = Terms().add("reconstruction", 1.0, -values, weights).add("singleton", -3.0, values, 2 * weights)
    terms.add("edge", -1.0, torch.tensor([2.0]), torch.tensor([0.5]))
    assert terms.estimates.tolist() == [-1.5, 3.0, 1.0]
    for warmup, total in ((1.0, -11.5), (0.5, -6.5), (0.0, -1.5)):  # the reconstruction has no warm-up
        assert float(terms.total(warmup)) == total
        numbers = terms.numbers(warmup)
        assert numbers == {"reconstruction": -1.5, "singleton": 3.0, "edge": 1.0, "total": total}
    assert bound(terms.numbers()) == -5.5  # without what gamma adds
