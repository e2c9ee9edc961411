"""The recommendation task: the split, the scores, and the simple methods, against independent computations."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import ndcg_score

from corrvae.experiments.models import Run
from corrvae.experiments.recipes import find_recipe
from corrvae.experiments.recommend import (
    BASELINES,
    FoldedUsers,
    best_first,
    choose_setting,
    ease,
    fold,
    item_neighbours,
    judge,
    load,
    run,
)

RNG = np.random.default_rng(0)
ITEMS = sparse.csr_array((RNG.random((40, 12)) < 0.4).astype(np.float32))
QUICK = {"name": "small", "n_users": 120, "n_items": 150}


def test_held_out_users_are_not_trained_on_and_their_items_are_divided():
    _, train, parts = load(QUICK, 3)
    assert [len(part.hidden.indptr) - 1 for part in parts.values()] == [12, 12]
    assert train.shape[0] == 96
    assert (np.asarray(train.sum(0)) > 0).all()
    for users in parts.values():
        assert users.given.multiply(users.hidden).nnz == 0
        counts, hidden = (np.diff(part.indptr) for part in (users.given + users.hidden, users.hidden))
        np.testing.assert_array_equal(hidden, np.ceil(0.2 * counts))
    again = load(QUICK, 3)[2]["test"]
    np.testing.assert_array_equal(again.hidden.indices, parts["test"].hidden.indices)


def test_scores_of_rankings_are_those_of_scikit_learn():
    users = fold(ITEMS, np.random.default_rng(1), share=0.4)
    values = RNG.random(ITEMS.shape)
    ranked = best_first(lambda given: values)(users.given)
    found = judge(ranked, users)
    ndcg, recall = [], []
    for user in range(40):
        open_items = np.flatnonzero(users.given[[user]].toarray()[0] == 0)
        truth = users.hidden[[user]].toarray()[0][open_items]
        if not truth.any():
            continue
        ndcg.append(ndcg_score([truth], [values[user, open_items]]))
        order = open_items[np.argsort(-values[user, open_items])][:20]
        recall.append(users.hidden[[user]].toarray()[0][order].sum() / truth.sum())
    assert found["ndcg_100"] == pytest.approx(np.mean(ndcg))
    assert found["recall_20"] == pytest.approx(np.mean(recall))
    assert found["standard_error"] == pytest.approx(np.std(ndcg) / np.sqrt(len(ndcg)))


def test_given_items_are_not_ranked_before_others():
    users = fold(ITEMS, np.random.default_rng(1))
    ranked = best_first(BASELINES["popularity"](ITEMS, None))(users.given)
    counts = np.asarray(ITEMS.sum(0)).ravel()
    for user, row in enumerate(ranked.tolist()):
        given = set(users.given[[user]].indices.tolist())
        others = row[: 12 - len(given)]
        assert not given & set(others)
        assert (np.diff(counts[others]) <= 0).all()


def test_ease_is_a_ridge_regression_of_each_item_on_the_others():
    X = ITEMS.toarray().astype(float)
    found = ease(ITEMS, 2.0)(ITEMS)
    for item in (0, 7):
        others = np.delete(np.arange(12), item)
        model = Ridge(alpha=2.0, fit_intercept=False).fit(X[:, others], X[:, item])
        np.testing.assert_allclose(found[:, item], model.predict(X[:, others]), atol=1e-8)


def test_item_neighbours_are_the_nearest_by_cosine():
    X = ITEMS.toarray() * RNG.random(ITEMS.shape)  # without ties
    cosines = X.T @ X / np.linalg.norm(X, axis=0) / np.linalg.norm(X, axis=0)[:, None]
    np.fill_diagonal(cosines, 0)
    kept = np.zeros_like(cosines)
    for item in range(12):
        near = np.argsort(-cosines[:, item])[:3]
        kept[near, item] = cosines[near, item]
    np.testing.assert_allclose(item_neighbours(sparse.csr_array(X), 3)(sparse.csr_array(X)), X @ kept)


def test_the_setting_is_chosen_on_validation_users():
    (entry,) = find_recipe("recommend", "quick").choose(["ease"]).entries
    users = fold(ITEMS, np.random.default_rng(1))
    rank, chosen = choose_setting(entry, ITEMS, users)
    values = {
        setting: judge(best_first(ease(ITEMS, setting))(users.given), users)["ndcg_100"]
        for setting in entry.parameters["settings"]
    }
    assert values[chosen] == max(values.values()) == judge(rank(users.given), users)["ndcg_100"]


@pytest.mark.parametrize("model", ["vae", "neighbours"])
def test_a_run_leaves_its_scores(model):
    (entry,) = find_recipe("recommend", "quick").choose([model]).entries
    if entry.method == "vae":
        entry.parameters["max_steps"] = 5
    found = run(entry, QUICK, Run(0))
    assert {"ndcg_100", "recall_20", "recall_50", "standard_error", "validation_ndcg_100"} <= found.scores.keys()
    assert all(0 <= value <= 1 for value in found.scores.values())
    assert found.data["train_users"] == 96


def test_users_without_a_hidden_item_do_not_count():
    users = FoldedUsers(sparse.csr_array((2, 3)), sparse.csr_array(np.array([[0, 0, 0], [0, 1, 0]])))
    assert judge(np.array([[0, 1, 2], [1, 0, 2]]), users)["ndcg_100"] == 1.0
