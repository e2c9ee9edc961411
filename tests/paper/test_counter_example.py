"""On K4 with tau > 1/2 the unweighted objective has no bound; the weighted one has."""

import numpy as np
import pytest
import torch

from corrvae.model import PairPrior
from corrvae.model.objectives import edge_term, singleton_kl
from corrvae.nn import Marginals
from support.forests import weights_by_enumeration

EDGES = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])


def objective(mu: float, tau: float, weights: np.ndarray) -> float:
    """With a decoder that ignores z, up to the constant it contributes."""
    marginals = Marginals.of(torch.full((4, 1), mu).double(), torch.ones(4, 1).double())
    terms = edge_term(marginals, torch.from_numpy(EDGES), PairPrior.of(tau, 1, torch.float64))
    return -float(singleton_kl(marginals).sum() + (torch.from_numpy(weights) * terms).sum())


@pytest.mark.parametrize("tau", [0.6, 0.9, 0.99])
def test_unweighted_grows_with_the_square_of_mu(tau):
    unweighted = [objective(mu, tau, np.ones(6)) for mu in (0.0, 1.0, 10.0, 1000.0)]
    for mu, value in zip((1.0, 10.0, 1000.0), unweighted[1:], strict=True):
        assert value - unweighted[0] == pytest.approx(4 * mu**2 - 6 * mu**2 / (1 + tau), rel=1e-6)
    assert unweighted == sorted(unweighted)


@pytest.mark.parametrize("tau", [0.6, 0.9, 0.99])
def test_weighted_falls(tau):
    weights = weights_by_enumeration(4, EDGES)
    weighted = [objective(mu, tau, weights) for mu in (0.0, 1.0, 10.0, 1000.0)]
    assert weighted == sorted(weighted, reverse=True)


def test_below_one_half_both_fall():
    assert objective(10.0, 0.4, np.ones(6)) < objective(0.0, 0.4, np.ones(6))
