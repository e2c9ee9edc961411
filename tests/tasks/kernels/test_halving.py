import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from corrvae.tasks.kernels.halving import draw_halves
from support.rows import matrices


@given(matrices(), st.integers(0, 2**16))
def test_halves_are_disjoint_together_all_and_as_even_as_can_be(matrix, seed):
    generator = np.random.default_rng(seed)
    count = matrix.shape[0]
    users = generator.permutation(count)
    place, side = np.repeat(np.arange(count), 2), np.tile([1, 0], count)
    coins, draws = generator.random(count), generator.random(matrix.nnz)
    values, columns, offsets = draw_halves(matrix.indptr, matrix.indices, matrix.data, users, place, side, coins, draws)
    halves = sparse.csr_array((values, columns, offsets), shape=(2 * count, matrix.shape[1]))
    expected = matrix[users].toarray()
    np.testing.assert_array_equal((halves[::2] + halves[1::2]).toarray(), expected)
    sizes = np.diff(offsets)
    assert sizes.sum() == matrix.nnz
    assert (np.abs(sizes[::2] - sizes[1::2]) <= 1).all()
    assert all((np.diff(part) > 0).all() for part in np.split(columns, offsets[1:-1]))


def test_every_half_is_equally_likely():
    # one user with four items has six halves; one with three has six, three of each size
    generator, runs = np.random.default_rng(0), 6000
    indptr, indices = np.array([0, 4, 7]), np.array([0, 1, 2, 3, 0, 1, 2])
    seen = [{}, {}]
    for _ in range(runs):
        draws, coins = generator.random(7, dtype=np.float32), generator.random(2)
        users = np.array([0, 1])
        _, columns, offsets = draw_halves(indptr, indices, np.ones(7), users, users, np.array([0, 0]), coins, draws)
        for counts, half in zip(seen, np.split(columns, offsets[1:-1]), strict=True):
            counts[tuple(half)] = counts.get(tuple(half), 0) + 1
    for counts in seen:
        assert len(counts) == 6
        assert stats.chisquare(list(counts.values())).pvalue > 1e-3
