import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.datasets import halve_users, split_users

WATCHED = (np.random.default_rng(0).random((30, 12)) < 0.6).astype(np.float32)


def test_rows_are_halves_and_edges_join_them():
    users = halve_users(WATCHED, random_state=0)
    np.testing.assert_array_equal((users.features[::2] + users.features[1::2]).toarray(), WATCHED)
    assert users.graph.edges.tolist() == [[2 * u, 2 * u + 1] for u in range(30)]
    assert users.n_users == 30
    assert (users.features[::2].multiply(users.features[1::2])).nnz == 0


@given(st.lists(st.integers(0, 59), unique=True, max_size=40), st.integers(0, 99))
def test_halves_drawn_anew_belong_to_their_users_and_share_nothing(rows, seed):
    users = halve_users(WATCHED, random_state=0)
    rows = np.array(rows, dtype=np.int64)
    drawn = users.redraw(rows, np.random.default_rng(seed)).toarray()
    assert drawn.shape == (len(rows), 12)
    assert (drawn <= WATCHED[rows // 2]).all()
    sizes = WATCHED[rows // 2].sum(axis=1)
    assert (np.abs(drawn.sum(axis=1) - sizes / 2) <= 0.5).all()
    for user in set((rows[rows % 2 == 0] // 2).tolist()) & set((rows[rows % 2 == 1] // 2).tolist()):
        together = drawn[rows == 2 * user][0] + drawn[rows == 2 * user + 1][0]
        np.testing.assert_array_equal(together, WATCHED[user])


@given(st.lists(st.integers(0, 59), max_size=40), st.integers(0, 99))
def test_of_two_catalogues_all_rows_of_a_draw_have_one_cut(rows, seed):
    users = halve_users(WATCHED, protocol="two-catalogues", random_state=0)
    rows = np.array(rows, dtype=np.int64)
    drawn = users.redraw(rows, np.random.default_rng(seed))
    assert drawn.shape == (len(rows), 12)
    assert drawn.has_canonical_format
    first, second = (drawn.toarray()[rows % 2 == side].any(axis=0) for side in (0, 1))
    assert not (first & second).any()
    everything = users.redraw(np.arange(60), np.random.default_rng(seed)).toarray()
    np.testing.assert_array_equal(drawn.toarray(), everything[rows])
    np.testing.assert_array_equal(everything[::2] + everything[1::2], WATCHED)
    assert everything[::2].any(axis=0).sum() == 6


def test_every_half_is_as_likely_as_any_other():
    users = halve_users(np.ones((1, 3)), random_state=0)
    generator = np.random.default_rng(0)
    drawn = [tuple(users.redraw(np.array([0]), generator).toarray()[0].astype(int)) for _ in range(6000)]
    counts = np.array([drawn.count(half) for half in sorted(set(drawn))])
    assert len(counts) == 6  # one of three items, or two of three
    assert np.square((counts - 1000) / np.sqrt(1000)).sum() < 25  # chi square with 5 degrees of freedom


def test_every_call_draws_anew_and_one_seed_draws_alike():
    users = halve_users(WATCHED, random_state=0)
    rows, generator = np.arange(60), np.random.default_rng(1)
    first, second = users.redraw(rows, generator), users.redraw(rows, generator)
    assert (first != second).nnz > 0
    assert (first != users.redraw(rows, np.random.default_rng(1))).nnz == 0


def test_values_stay_with_their_items():
    counts = sparse.csr_array([[3.0, 0.0, 5.0, 7.0], [0.0, 2.0, 4.0, 0.0]])
    users = halve_users(counts, random_state=0)
    np.testing.assert_array_equal((users.features[::2] + users.features[1::2]).toarray(), counts.toarray())


@given(st.integers(0, 200), st.floats(0, 0.9), st.floats(0, 0.9), st.integers(0, 50), st.integers(0, 99))
def test_no_user_is_in_two_parts(n_users, test, validation, most, seed):
    parts = split_users(n_users, test=test, validation=validation, most_pairs=most, random_state=seed)
    together = np.concatenate([parts.train, parts.validation, parts.test])
    assert len(np.unique(together)) == len(together)
    assert set(together.tolist()) <= set(range(n_users))
    assert len(parts.test) == min(most, int(np.ceil(test * n_users - 1e-9)))
    if most >= n_users:
        assert len(together) == n_users


def test_split_is_by_its_seed():
    first, second, other = (split_users(50, random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.test, second.test)
    assert not np.array_equal(first.test, other.test)
