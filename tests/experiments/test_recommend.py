"""The recommendation task: the split, the scores, and the simple methods, against independent computations."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import ndcg_score

from corrvae import CorrelationGraph
from corrvae.experiments import recommend
from corrvae.experiments.models import Run
from corrvae.experiments.recipes import Entry, find_recipe
from corrvae.experiments.recommend import (
    BASELINES,
    FoldedUsers,
    Users,
    best_first,
    choose_setting,
    ease,
    fold,
    item_neighbours,
    items_of_friends,
    judge,
    load,
    run,
    train_recommender,
)

RNG = np.random.default_rng(0)
ITEMS = sparse.csr_array((RNG.random((40, 12)) < 0.4).astype(np.float32))
QUICK = {"name": "small", "n_users": 120, "n_items": 150}


def test_held_out_users_are_not_trained_on_and_their_items_are_divided():
    users = load(QUICK, 3)
    train, parts = users.train, users.parts
    assert [len(part.hidden.indptr) - 1 for part in parts.values()] == [12, 12]
    assert train.shape[0] == 96
    assert (np.asarray(train.sum(0)) > 0).all()
    for held in parts.values():
        assert held.given.multiply(held.hidden).nnz == 0
        counts, hidden = (np.diff(part.indptr) for part in (held.given + held.hidden, held.hidden))
        np.testing.assert_array_equal(hidden, np.ceil(0.2 * counts))
    again = load(QUICK, 3).parts["test"]
    np.testing.assert_array_equal(again.hidden.indices, parts["test"].hidden.indices)


def test_scores_of_rankings_are_those_of_scikit_learn():
    users = fold(ITEMS, np.random.default_rng(1), share=0.4)
    values = RNG.random(ITEMS.shape)
    ranked = best_first(lambda given: values)(users)
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
    ranked = best_first(BASELINES["popularity"](ITEMS, None))(users)
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
    held = fold(ITEMS, np.random.default_rng(1))
    rank, chosen = choose_setting(entry, Users("", ITEMS, {"validation": held}))
    values = {
        setting: judge(best_first(ease(ITEMS, setting))(held), held)["ndcg_100"]
        for setting in entry.parameters["settings"]
    }
    assert values[chosen[0]] == max(values.values()) == judge(rank(held), held)["ndcg_100"]


def trusting(settings=None, seed=0):
    """Users of Ciao made up: eight of training, then four held out, each of whom trusts one of training."""
    held = FoldedUsers(sparse.csr_array((4, 12)), ITEMS[8:12], np.arange(8, 12))
    graph = CorrelationGraph([[k, k + 8] for k in range(4)], 12)
    return Users("", ITEMS[:8], {"validation": held, "test": held}, graph)


def test_friends_and_popularity_are_settings_to_choose():
    users = trusting()
    held = users.parts["test"]
    np.testing.assert_array_equal(items_of_friends(users, 0.5)(held).toarray(), 0.5 * ITEMS[:4].toarray())
    settings = {"friends": (0.0, 1.0), "popularity": (0.0, 1e-6, 10.0)}
    rank, chosen = choose_setting(Entry("", "", "friends", settings), users)
    counts = np.asarray(ITEMS[:8].sum(0)).ravel() / 9
    values = {}
    for weight in settings["friends"]:
        for popular in settings["popularity"]:
            order = np.argsort(-(weight * ITEMS[:4].toarray() + popular * counts), axis=1, kind="stable")
            values[weight, popular] = judge(order, held)["ndcg_100"]
    assert values[tuple(chosen[1:])] == max(values.values()) == judge(rank(held), held)["ndcg_100"]


@pytest.mark.parametrize("family", ["joint", "independent"])
def test_users_of_whom_only_friends_are_known_are_ranked_for(family, monkeypatch):
    monkeypatch.setattr(recommend, "load", trusting)
    entry = Entry("", "", "cvae", {"family": family, "max_steps": 30, "n_components": 2})
    found = run(entry, {"name": "small"}, Run(0))
    assert found.scores["ndcg_100_none"] == found.scores["ndcg_100"] > 0
    assert "ndcg_100_few" not in found.scores
    # only joint posteriors tell users without items apart
    rank, _ = train_recommender(entry, trusting(), Run(0))
    ranked = rank(trusting().parts["test"])
    assert (len(np.unique(ranked, axis=0)) > 1) == (family == "joint")


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
