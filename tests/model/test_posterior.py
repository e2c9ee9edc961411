import numpy as np
import pandas as pd
import pytest

from corrvae.model import Posterior


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


def test_samples_are_the_seeds_and_marginals_those_given():
    posterior = make(3, 2, 0)
    first, again = (posterior.sample(30_000, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first.mean(0), posterior.mean, atol=0.06)
    np.testing.assert_allclose(first.std(0), posterior.stddev, rtol=0.03)
    assert abs(np.corrcoef(first[:, 0, 0], first[:, 1, 0])[0, 1]) < 0.03


def test_a_seed_stands_for_a_generator_and_none_draws_anew():
    posterior = make(3, 2, 0)
    draw = posterior.sample
    np.testing.assert_array_equal(draw(4, 7), draw(4, np.random.default_rng(7)))
    assert not np.array_equal(draw(4), draw(4))


def test_independent_posteriors_have_no_correlation():
    posterior = Posterior(np.zeros((3, 2)), np.ones((3, 2)))
    pairs = np.array([[0, 1], [1, 2]])
    assert not posterior.is_correlated
    np.testing.assert_array_equal(posterior.correlation(pairs), np.zeros((2, 2)))
    assert posterior.vectors(np.arange(3)) is None
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
