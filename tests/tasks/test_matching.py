import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae import CorrelatedVAE
from corrvae.tasks import embedding_scores, halve_users, score_matching, split_users


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
    with pytest.raises(ValueError, match="test must be at least 0 and less than 1"):
        split_users(10, test=1.0)


def test_what_test_users_have_touches_nothing_in_training():
    """Two worlds that differ in the test users alone train the same model, to the bit."""
    watched = (np.random.default_rng(0).random((40, 10)) < 0.5).astype(np.float32)
    parts = split_users(40, test=0.3, validation=0.2, random_state=0)
    other = watched.copy()
    other[parts.test] = 1.0 - other[parts.test]
    embeddings = []
    for world in (watched, other):
        train = halve_users(world[parts.train], random_state=0)
        model = CorrelatedVAE(2, likelihood="multinomial", max_steps=5, random_state=0)
        model.fit(train.features, graph=train.graph, redraw=train.redraw)
        embeddings.append(model.transform(train.features))
    assert np.array_equal(*embeddings)


def test_by_hand():
    found = score_matching(embedding_scores(np.array([[0.0], [1.0], [3.0], [8.0]])), 2)
    assert found.reciprocal_rank == pytest.approx(5 / 6)
    assert (found.hits_1, found.hits_10, found.n_pairs) == (0.75, 1.0, 2)


def test_ties_count_against_the_method():
    found = score_matching(lambda rows: np.zeros((len(rows), 20)), 10)
    assert found.reciprocal_rank == pytest.approx(1 / 19)
    assert found.hits_10 == 0.0


def test_raw_features_of_halves_match_nothing():
    users = halve_users((np.random.default_rng(1).random((50, 40)) < 0.5).astype(np.float32), random_state=0)
    features = users.features.toarray()
    # halves of a user share no item, so by the items in common the other half comes last
    found = score_matching(lambda rows: features[rows] @ features.T, 50)
    assert found.reciprocal_rank == pytest.approx(1 / 99)
