import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from corrvae.model import Posterior
from support.forests import random_forest


class TablePosterior(Posterior):
    """Correlations from a symmetric table of pre-activations."""

    is_correlated = True

    def __init__(self, mean, stddev, table, **options):
        super().__init__(mean, stddev, **options)
        self.table = table

    def pre_activation(self, positions):
        return self.table[positions[:, 0], positions[:, 1]]


def make(n_vertices: int, n_components: int, seed: int, spread: float = 1.0, **options) -> TablePosterior:
    generator = np.random.default_rng(seed)
    table = generator.normal(size=(n_vertices, n_vertices, n_components)) * spread
    mean = generator.normal(size=(n_vertices, n_components))
    stddev = generator.uniform(0.3, 2.0, (n_vertices, n_components))
    return TablePosterior(mean, stddev, table + table.transpose(1, 0, 2), **options)


def joint_normal(posterior: Posterior, edges: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance along a forest: correlations multiply along paths."""
    n_vertices = posterior.n_vertices
    correlation = np.eye(n_vertices)
    rho = posterior.correlation(edges)[:, dimension]
    for _ in range(n_vertices):  # paths grow by one edge at a time
        for (i, j), r in zip(edges, rho, strict=True):
            for a, b in ((i, j), (j, i)):
                reached = (correlation[:, b] == 0) & (correlation[:, a] != 0)
                correlation[reached, b] = correlation[reached, a] * r
    stddev = posterior.stddev[:, dimension]
    return posterior.mean[:, dimension], correlation * np.outer(stddev, stddev)


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(0, 2**16))
def test_log_density_is_the_multivariate_normals(n_vertices, seed):
    posterior = make(n_vertices, 2, seed, 0.5)
    edges = random_forest(n_vertices, seed)
    z = np.random.default_rng(seed).normal(size=(3, n_vertices, 2))
    expected = sum(stats.multivariate_normal(*joint_normal(posterior, edges, k)).logpdf(z[..., k]) for k in range(2))
    np.testing.assert_allclose(posterior.log_density(z, edges), expected, rtol=1e-8)
    np.testing.assert_allclose(posterior.log_density(z[0], edges), np.ravel(expected)[0], rtol=1e-8)


def test_joint_samples_have_the_joint_distribution():
    posterior = make(5, 2, 3, 0.7)
    edges = np.array([[0, 3], [3, 1], [1, 4]])
    drawn = posterior.sample_forest(40_000, edges, np.random.default_rng(0))
    assert drawn.shape == (40_000, 5, 2)
    for k in range(2):
        mean, covariance = joint_normal(posterior, edges, k)
        np.testing.assert_allclose(drawn[..., k].mean(0), mean, atol=0.04)
        np.testing.assert_allclose(np.cov(drawn[..., k].T), covariance, atol=0.07)
        white = np.linalg.solve(np.linalg.cholesky(covariance), (drawn[:4000, :, k] - mean).T)
        assert stats.kstest(white.ravel(), "norm").pvalue > 1e-3
    # the two latent dimensions are independent
    assert abs(np.corrcoef(drawn[:, 0, 0], drawn[:, 3, 1])[0, 1]) < 0.02


def test_samples_are_the_seeds_and_marginals_those_given():
    posterior = make(3, 2, 0)
    first, again = (posterior.sample(30_000, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first.mean(0), posterior.mean, atol=0.06)
    np.testing.assert_allclose(first.std(0), posterior.stddev, rtol=0.03)
    assert abs(np.corrcoef(first[:, 0, 0], first[:, 1, 0])[0, 1]) < 0.03


def test_a_seed_stands_for_a_generator_and_none_draws_anew():
    posterior = make(3, 2, 0)
    for draw in (posterior.sample, lambda n, *seed: posterior.sample_forest(n, [(0, 1), (1, 2)], *seed)):
        np.testing.assert_array_equal(draw(4, 7), draw(4, np.random.default_rng(7)))
        assert not np.array_equal(draw(4), draw(4))


def test_correlations_close_to_one_keep_the_density_exact():
    a = 15.0  # tanh(15) is 1 in float32; 1 - rho^2 is 3.7e-13
    posterior = TablePosterior(np.zeros((2, 1)), np.ones((2, 1)), np.full((2, 2, 1), a))
    z = np.array([[0.5], [0.5 + 1e-6]])
    # in the coordinates (x + y) / sqrt 2 and (x - y) / sqrt 2 the variances are 1 + rho and 1 - rho
    along, across = 2.0, 2 / (1 + np.exp(2 * a))
    expected = stats.norm(0, np.sqrt(along)).logpdf((z.sum()) / 2**0.5)
    expected += stats.norm(0, np.sqrt(across)).logpdf((z[0, 0] - z[1, 0]) / 2**0.5)
    assert posterior.log_density(z, [(0, 1)]) == pytest.approx(expected, rel=1e-9)
    drawn = posterior.sample_forest(2_000, [(0, 1)], np.random.default_rng(0))
    assert np.std(drawn[:, 0] - drawn[:, 1]) == pytest.approx((2 * across) ** 0.5, rel=0.1)


def test_independent_posteriors_have_no_correlation():
    posterior = Posterior(np.zeros((3, 2)), np.ones((3, 2)))
    pairs = np.array([[0, 1], [1, 2]])
    assert not posterior.is_correlated
    np.testing.assert_array_equal(posterior.correlation(pairs), np.zeros((2, 2)))
    assert posterior.vectors(np.arange(3)) is None
    z = np.random.default_rng(0).normal(size=(3, 2))
    assert posterior.log_density(z, pairs) == pytest.approx(stats.norm.logpdf(z).sum())
    assert "independent" in repr(posterior)
    assert "correlated" in repr(make(3, 2, 0))


def test_pairs_are_ids_in_lists_arrays_and_data_frames():
    named, rows = make(3, 2, 0, ids=["a", "b", "c"]), make(3, 2, 0)
    expected = np.tanh(named.table[[0, 1], [2, 2]])
    listed = [("a", "c"), ("b", "c")]
    for pairs in (listed, np.array(listed), pd.DataFrame(listed), iter(listed), [list(pair) for pair in listed]):
        np.testing.assert_allclose(named.correlation(pairs), expected)
    for pairs in ([(0, 2), (1, 2)], np.array([[0.0, 2.0], [1.0, 2.0]]), np.array([[0, 2], [1, 2]], dtype=np.uint8)):
        np.testing.assert_allclose(rows.correlation(pairs), expected)
    for nothing in ([], np.empty((0, 2)), np.empty(0)):
        assert named.correlation(nothing).shape == (0, 2)
    z = np.zeros((3, 2))
    assert named.log_density(z, [("a", "b")]) == rows.log_density(z, [(0, 1)])
    np.testing.assert_array_equal(named.sample_forest(2, [("a", "b")], 0), rows.sample_forest(2, [(0, 1)], 0))


def test_numbers_are_ids_too_and_never_positions():
    posterior = make(3, 1, 0, ids=np.array([2, 0, 7]))
    assert posterior.pair_positions([(2, 0)]).tolist() == [[0, 1]]
    assert posterior.positions([7, 2]).tolist() == [2, 0]
    with pytest.raises(ValueError, match="id 1 is not among the 3 vertices"):
        posterior.correlation([(2, 1)])


def test_some_vertices_in_another_order():
    posterior = make(4, 2, 0, ids=["a", "b", "c", "d"], tau=np.array([0.9, 0.8]))
    taken = Posterior.take(posterior, np.array([3, 1]))
    assert taken.ids.tolist() == ["d", "b"]
    np.testing.assert_array_equal(taken.mean, posterior.mean[[3, 1]])
    np.testing.assert_array_equal(taken.stddev, posterior.stddev[[3, 1]])
    np.testing.assert_array_equal(taken.tau, posterior.tau)
    assert (len(taken), taken.n_components) == (2, 2)
    twice = Posterior.take(posterior, np.array([1, 1]))  # as a query may be asked twice
    assert twice.ids.tolist() == ["b", "b"]
    with pytest.raises(ValueError, match="'b' twice"):
        twice.positions(["b"])


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="vertex 1, dimension 0"):
        Posterior(np.zeros((2, 1)), np.array([[1.0], [0.0]]))
    posterior = make(3, 2, 0)
    for single in ([0, 1], np.array([0, 1])):
        with pytest.raises(ValueError, match=r"\[\(i, j\)\]"):
            posterior.correlation(single)
    with pytest.raises(ValueError, match="pair 1 is 'ab'"):
        posterior.correlation([(0, 1), "ab"])
    with pytest.raises(ValueError, match="two columns"):
        posterior.correlation(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="id 5 is not among the 3 vertices"):
        posterior.correlation(np.array([[0, 5]]))
    with pytest.raises(ValueError, match="pair 1 joins 2 with itself"):
        posterior.correlation([(0, 1), (2, 2)])
    cycle = np.array([[0, 1], [1, 2], [2, 0]])
    with pytest.raises(ValueError, match="closes a cycle"):
        posterior.sample_forest(1, cycle, 0)
    with pytest.raises(ValueError, match="closes a cycle"):
        posterior.log_density(posterior.mean, cycle)
