"""Every closed form against torch.distributions and against Monte Carlo."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from corrvae.model import PairPrior
from corrvae.model.objectives import edge_term, mutual_information, singleton_kl
from corrvae.nn import Marginals

EDGE = torch.tensor([[0, 1]])
numbers = st.floats(-3, 3)
scales = st.floats(0.05, 3)


def two(mean_i: float, stddev_i: float, mean_j: float, stddev_j: float, dtype=torch.float64) -> Marginals:
    return Marginals.of(
        torch.tensor([[mean_i], [mean_j]], dtype=dtype), torch.tensor([[stddev_i], [stddev_j]], dtype=dtype)
    )


def pair(marginals: Marginals, correlation: float) -> MultivariateNormal:
    stddev = marginals.stddev[:, 0].double()
    matrix = torch.tensor([[1.0, correlation], [correlation, 1.0]], dtype=torch.float64)
    return MultivariateNormal(marginals.mean[:, 0].double(), matrix * torch.outer(stddev, stddev))


@given(numbers, scales)
def test_singleton(mean, stddev):
    expected = kl_divergence(Normal(mean, stddev), Normal(0.0, 1.0))
    found = singleton_kl(two(mean, stddev, 0.0, 1.0))
    assert float(found[0]) == pytest.approx(float(expected), rel=1e-5, abs=1e-6)
    assert float(found[1]) == 0.0


@given(numbers, scales, numbers, scales, st.floats(-2.5, 2.5), st.floats(-0.99, 0.99))
def test_edge(mean_i, stddev_i, mean_j, stddev_j, a, tau):
    marginals = two(mean_i, stddev_i, mean_j, stddev_j)
    standard = Marginals.of(torch.zeros(2, 1), torch.ones(2, 1))
    for pre_activation in (torch.tensor([[a]], dtype=torch.float64), None):
        rho = 0.0 if pre_activation is None else float(pre_activation.tanh())
        expected = kl_divergence(pair(marginals, rho), pair(standard, tau)) - singleton_kl(marginals).sum()
        found = edge_term(marginals, EDGE, PairPrior.of(tau, 1, torch.float64), pre_activation)
        assert float(found) == pytest.approx(float(expected), rel=1e-7, abs=1e-7)


@given(st.floats(-2.5, 2.5))
def test_non_edge(a):
    marginals = two(0.3, 0.5, -1.0, 2.0)
    joint, apart = pair(marginals, float(torch.tensor(a, dtype=torch.float64).tanh())), pair(marginals, 0.0)
    found = mutual_information(torch.tensor([[a]], dtype=torch.float64))
    assert float(found) == pytest.approx(float(kl_divergence(joint, apart)), rel=1e-7, abs=1e-9)


def test_edge_and_non_edge_by_monte_carlo():
    torch.manual_seed(0)
    marginals, rho, tau = two(0.4, 0.7, -0.2, 1.1), 0.6, 0.8
    q, p = pair(marginals, rho), pair(Marginals.of(torch.zeros(2, 1), torch.ones(2, 1)), tau)
    z = q.sample((200_000,))
    apart = Normal(marginals.mean[:, 0], marginals.stddev[:, 0]).log_prob(z).sum(1)
    a = torch.tensor([[rho]], dtype=torch.float64).atanh()
    information = q.log_prob(z) - apart
    term = information - p.log_prob(z) + Normal(0.0, 1.0).log_prob(z).sum(1)
    for samples, exact in (
        (information, mutual_information(a)),
        (term, edge_term(marginals, EDGE, PairPrior.of(tau, 1, torch.float64), a)),
    ):
        error = float(samples.std()) / 200_000**0.5
        assert float(samples.mean()) == pytest.approx(float(exact), abs=4 * error)


@given(
    st.floats(-1, 1), scales, st.floats(-1, 1), scales, st.floats(-8, 8), st.sampled_from([0.5, 0.99, 0.9999, -0.9999])
)
def test_float32_loses_no_digits_when_correlations_are_close_to_one(mean_i, stddev_i, mean_j, stddev_j, a, tau):
    single = two(mean_i, stddev_i, mean_j, stddev_j, torch.float32)
    double = Marginals(single.joint.double())
    pre_activation = torch.tensor([[a]], dtype=torch.float32)
    for a32, a64 in ((pre_activation, pre_activation.double()), (None, None)):
        found = edge_term(single, EDGE, PairPrior.of(tau, 1), a32)
        exact = edge_term(double, EDGE, PairPrior.of(tau, 1, torch.float64), a64)
        # relative to the largest of the summands, whose own inputs are rounded to float32
        scale = max(1.0, float(exact.abs()))
        assert float(found) == pytest.approx(float(exact), abs=1e-5 * scale + 2e-7 / (1 - abs(tau)))


def test_dimensions_are_summed_each_with_its_own_tau():
    torch.manual_seed(0)
    marginals = Marginals.of(torch.randn(2, 3).double(), torch.rand(2, 3).double() + 0.1)
    a, taus = torch.randn(1, 3).double(), [0.9, -0.2, 0.0]
    for pre_activation in (a, None):
        apart = sum(
            float(
                edge_term(
                    Marginals.of(marginals.mean[:, k : k + 1], marginals.stddev[:, k : k + 1]),
                    EDGE,
                    PairPrior.of(tau, 1, torch.float64),
                    None if pre_activation is None else pre_activation[:, k : k + 1],
                )
            )
            for k, tau in enumerate(taus)
        )
        prior = PairPrior.of(torch.tensor(taus, dtype=torch.float64), 3, torch.float64)
        assert float(edge_term(marginals, EDGE, prior, pre_activation)) == pytest.approx(apart)
