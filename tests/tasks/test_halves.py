import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae import CorrelatedVAE
from corrvae.tasks import halve_users

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


@pytest.mark.parametrize("posterior", ["independent", "pairwise"])
def test_a_model_trains_on_halves_drawn_anew(posterior):
    users = halve_users(WATCHED, random_state=0)
    seen = []

    def redraw(rows, generator):
        seen.append(len(rows))
        return users.redraw(rows, generator)

    model = CorrelatedVAE(2, posterior=posterior, likelihood="multinomial", max_steps=3, random_state=0)
    model.fit(users.features, graph=users.graph, redraw=redraw)
    assert len(seen) >= 3
    assert model.transform(users.features).shape == (60, 2)
