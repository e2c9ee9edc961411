import numpy as np
import pytest

from corrvae.scoring.kernels import exact
from corrvae.scoring.metrics import side
from support.literal_scores import literal_scores, random_points


@pytest.mark.parametrize("dim", range(1, 10))
def test_distances_of_every_length(dim):
    points = random_points(2, dim, 0)
    found = exact.mean_distance(*points.mean)
    assert found == pytest.approx(literal_scores("mean_distance", points, points)[0, 1], rel=1e-14)


def test_a_cosine_is_never_beyond_one():
    rng = np.random.default_rng(0)
    for row in rng.normal(size=(200, 7)).astype(np.float32):
        assert exact.cosine(row, row) <= 1.0
        assert exact.cosine(row, -row) >= -1.0
        assert exact.cosine(row, row) == pytest.approx(1.0)
    assert exact.cosine(np.zeros(3, np.float32), np.ones(3, np.float32)) == 0.0


def test_log_odds_of_many_dimensions_do_not_underflow():
    dim, tau = 4000, 1.0 - 1e-9
    mean, stddev = np.ones(dim, np.float32), np.full(dim, 1e-6, np.float32)
    of_means, of_variances = exact.log_odds(mean, stddev, mean, stddev, np.full(dim, tau))
    determinant = (1 - tau) * (1 + tau) + tau**2 * 2e-12
    assert of_variances == pytest.approx(-0.5 * dim * np.log(determinant), rel=1e-6)
    assert of_means == pytest.approx(0.5 * dim, rel=1e-3)  # points that agree, at one standard deviation of the prior


def test_pairs_are_looked_up_on_their_sides():
    left, right = random_points(3, 4, 0), random_points(5, 4, 1)
    pairs = np.array([[2, 4], [0, 1]])
    of_means, of_variances = np.empty((2, 2))
    sides = side(left), side(right)
    exact.fill_parts(exact.EXPECTED_DISTANCE, *sides, np.empty(0), pairs, of_means, of_variances)
    expected = literal_scores("expected_distance", left, right)[pairs[:, 0], pairs[:, 1]]
    np.testing.assert_allclose(of_means + of_variances, expected, rtol=1e-13)
