"""Recommendations and similar features, under the names of users and items."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from corrvae import CorrelatedVAE, load
from corrvae.io import open_mapped, write_mapped

QUICK = {"likelihood": "multinomial", "hidden": (16,), "max_steps": 200, "learning_rate": 1e-2, "random_state": 0}
# two groups of users, each with items of its own; every user misses some
COUNTS = (np.random.default_rng(0).random((60, 12)) < 0.6) * np.kron(np.eye(2), np.ones((30, 6)))
FRAME = pd.DataFrame(COUNTS.astype(np.float32), [f"u{k}" for k in range(60)], [f"i{k}" for k in range(12)])


@pytest.fixture(scope="module")
def model():
    return CorrelatedVAE(2, **QUICK).fit(FRAME)


def own(user):
    return {f"i{k}" for k in range(6 * (int(user[1:]) // 30), 6 * (int(user[1:]) // 30) + 6)}


def test_users_get_the_items_of_their_group_that_they_do_not_have(model):
    ids, scores = model.recommend(k=3)
    assert ids.shape == (60, 3)
    assert (np.diff(scores, axis=1) <= 0).all()
    for user, found in zip(FRAME.index, ids.tolist(), strict=True):
        has = set(FRAME.columns[FRAME.loc[user] > 0])
        assert not has & set(found)
        missing = own(user) - has
        assert set(found[: len(missing)]) <= missing


def test_probabilities_sum_to_one(model):
    found = model.recommend(k=12, exclude_seen=False)
    np.testing.assert_allclose(found.scores.sum(1), 1.0, rtol=1e-4)
    assert all(set(row) == set(FRAME.columns) for row in found.ids.tolist())


def test_one_user_and_new_users(model):
    ids, scores = model.recommend(ids="u3", k=4)
    assert (ids.shape, scores.shape) == ((4,), (4,))
    batch = model.recommend(ids=["u3", "u40"], k=4)
    assert batch.query_ids.tolist() == ["u3", "u40"]
    np.testing.assert_array_equal(batch.ids[0], ids)
    renamed = FRAME.iloc[[3, 40]].set_axis(["x", "y"])
    fresh = model.recommend(renamed, k=4)
    assert fresh.ids.tolist() == batch.ids.tolist()
    np.testing.assert_allclose(fresh.scores, batch.scores, rtol=1e-5)
    assert model.recommend(renamed, ids="y", k=4).ids.tolist() == batch.ids[1].tolist()


def test_some_items(model):
    ids, _ = model.recommend(ids=["u0", "u59"], items=["i11", "i0", "i6"], exclude_seen=False)
    assert [set(row) for row in ids.tolist()] == [{"i0", "i6", "i11"}] * 2
    assert ids[0, 0] == "i0"
    assert ids[1, 2] == "i0"
    with pytest.raises(ValueError, match="feature 'tea' is not among the 12 that the model knows, such as 'i0'"):
        model.recommend(items=["tea"])
    with pytest.raises(ValueError, match="k must be a positive integer"):
        model.recommend(k=0)


def test_items_of_a_group_are_alike(model):
    ids, scores = model.similar_features("i2", k=5)
    assert set(ids) == {f"i{k}" for k in range(6)} - {"i2"}
    assert scores.min() > 0.5
    every = model.similar_features(k=5)
    assert every.query_ids.tolist() == list(FRAME.columns)
    np.testing.assert_array_equal(every.ids[2], ids)


def test_a_loaded_model_knows_what_users_have(model, tmp_path):
    model.save(tmp_path / "run")
    again = load(tmp_path / "run").recommend(k=3)
    np.testing.assert_array_equal(again.ids, model.recommend(k=3).ids)
    model.save(tmp_path / "run", store_features=False)
    without = load(tmp_path / "run")
    with pytest.raises(ValueError, match="what training rows have is not known"):
        without.recommend()
    expected = model.recommend(exclude_seen=False)
    np.testing.assert_array_equal(without.recommend(exclude_seen=False).ids, expected.ids)
    np.testing.assert_array_equal(without.recommend(FRAME).ids, model.recommend().ids)


def test_sparse_and_mapped_features(tmp_path):
    matrix = sparse.csr_array(COUNTS)
    write_mapped(tmp_path / "mapped", matrix)
    found = [
        CorrelatedVAE(2, **{**QUICK, "max_steps": 5}).fit(X).recommend(ids=[40, 7], k=3).ids
        for X in (matrix, open_mapped(tmp_path / "mapped"))
    ]
    np.testing.assert_array_equal(*found)
    assert not COUNTS[40][found[0][0]].any()


def test_missing_entries_are_what_can_be_recommended():
    ratings = np.where(COUNTS > 0, 3.0 + np.random.default_rng(1).random(COUNTS.shape), np.nan)
    model = CorrelatedVAE(2, likelihood="gaussian", missing="mask", max_steps=5, random_state=0).fit(ratings)
    ids, scores = model.recommend(k=2)
    assert np.isnan(ratings[np.arange(60)[:, None], ids.astype(int)]).all()
    assert 2.5 < scores.mean() < 4.5  # in the units of the ratings
