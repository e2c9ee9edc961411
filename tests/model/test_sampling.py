import numpy as np
import pytest

from corrvae.model.sampling import sample_latent

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


def test_a_cycle_has_no_prior():
    with pytest.raises(ValueError, match="closes a cycle"):
        sample_latent(np.full(1, 0.9), 3, np.array([[0, 1], [1, 2], [0, 2]]), np.random.default_rng(0))
