import numpy as np
import pytest
import torch

from corrvae.model import LearnedTau, PairPrior
from corrvae.model.prior import check_tau, sample_latent


@pytest.mark.parametrize("tau", [-0.9999, -0.3, 0.0, 0.5, 0.99, 0.999999])
def test_constants_are_those_of_the_quadratic_form(tau):
    prior = PairPrior.of(tau, 1, torch.float64)
    inverse = torch.linalg.inv(torch.tensor([[1.0, tau], [tau, 1.0]], dtype=torch.float64)) - torch.eye(2)
    x, y = 0.7, -1.3
    vector = torch.tensor([x, y], dtype=torch.float64)
    quadratic = prior.near[0] * (x - y) ** 2 + prior.far[0] * (x + y) ** 2
    assert float(quadratic) == pytest.approx(float(vector @ inverse @ vector) / 2, rel=1e-9, abs=1e-12)
    spread = prior.spread[0] * (x**2 + y**2)
    assert float(spread) == pytest.approx(float(inverse.diagonal() @ vector**2) / 2, rel=1e-9, abs=1e-12)
    cross = -prior.sign[0] * prior.product[0]
    assert float(cross) == pytest.approx(float(inverse[0, 1]), rel=1e-9, abs=1e-12)
    log_determinant = torch.logdet(torch.tensor([[1.0, tau], [tau, 1.0]], dtype=torch.float64))
    assert float(prior.constant) == pytest.approx(float(log_determinant) / 2, rel=1e-6, abs=1e-12)


def test_constants_keep_their_digits_in_float32():
    prior = PairPrior.of(0.9999, 4)
    assert prior.near.dtype == torch.float32
    assert float(prior.near[0]) == pytest.approx(0.9999 / 4e-4, rel=1e-7)
    assert float(prior.complement[0]) == pytest.approx(1e-4, rel=1e-6)
    assert float(prior.constant) == pytest.approx(2 * -8.517243191, rel=1e-7)


def test_a_tensor_has_the_same_constants_and_may_differ_by_dimension():
    fixed, learned = PairPrior.of(-0.4, 2), PairPrior.of(torch.tensor([-0.4, 0.7], dtype=torch.float64), 2)
    for name in ("near", "far", "spread", "product", "sign", "complement"):
        assert float(getattr(learned, name)[0]) == float(getattr(fixed, name)[0])
    assert float(learned.product[1]) == float(PairPrior.of(0.7, 1).product)
    total = PairPrior.of(-0.4, 1).constant + PairPrior.of(0.7, 1).constant
    assert float(learned.constant) == pytest.approx(float(total))


@pytest.mark.parametrize("tau", [-1.0, 1.0, 1.5, float("nan")])
def test_tau_lies_inside_its_interval(tau):
    with pytest.raises(ValueError, match="tau must lie strictly between -1 and 1"):
        check_tau(tau)


@pytest.mark.parametrize("n_components", [None, 3])
def test_a_learned_tau_begins_at_its_start_moves_and_stays_inside(n_components):
    tau = LearnedTau(-0.99, n_components=n_components)
    assert tau().shape == (() if n_components is None else (3,))
    assert tau().detach().numpy() == pytest.approx(-0.99, abs=1e-7)
    optimizer = torch.optim.SGD(tau.parameters(), lr=100.0)
    for _ in range(5):
        optimizer.zero_grad()
        (-PairPrior.of(tau(), 3).product.sum() - tau().sum()).backward()
        optimizer.step()
    assert bool((tau().abs() < 1).all())


COPIES = 4000
# Many paths of four vertices, each with an isolated vertex beside it; edges in any order and direction.
PATHS = np.array([(5 * copy + i, 5 * copy + j) for copy in range(COPIES) for i, j in ((2, 1), (0, 1), (2, 3))])


def test_latent_points_have_the_priors_correlations():
    tau = np.array([0.9, -0.5])
    z = sample_latent(tau, 5 * COPIES, PATHS, np.random.default_rng(0)).reshape(COPIES, 5, 2)
    for dimension in range(2):
        found = np.corrcoef(z[:, :, dimension].T)
        for i, j, distance in ((0, 1, 1), (1, 2, 1), (0, 2, 2), (0, 3, 3)):
            assert found[i, j] == pytest.approx(tau[dimension] ** distance, abs=0.06)
        assert found[:4, 4] == pytest.approx(np.zeros(4), abs=0.06)
        assert z[:, :, dimension].std(0) == pytest.approx(np.ones(5), abs=0.06)
    assert np.corrcoef(z[:, 0, 0], z[:, 0, 1])[0, 1] == pytest.approx(0.0, abs=0.06)


def test_without_a_forest_points_are_independent():
    z = sample_latent(np.full(1, 0.9), 5000, np.empty((0, 2), np.int64), np.random.default_rng(0))
    assert np.corrcoef(z[:-1, 0], z[1:, 0])[0, 1] == pytest.approx(0.0, abs=0.07)
