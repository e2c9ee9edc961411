"""The recommendation task: what else do users want who were not trained on, and of whom some items are known.

Users are divided into training, validation and test. Of a held-out user a fifth of the items is hidden at random, the
others are given to the method, and the hidden ones are looked for among all items that are not given.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from corrvae.datasets import split_users, watched
from corrvae.experiments.models import Run, describe_settings, train_estimator
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.records import Outcome
from corrvae.experiments.sources import data_files, small_world

# Users whose items are all scored at a time; items that a ranking is judged by.
_USERS, _DEPTH = 500, 100


@final
@dataclass(frozen=True, eq=False)
class FoldedUsers:
    """Held-out users: the items that are given, and those that are hidden."""

    given: sparse.csr_array
    hidden: sparse.csr_array


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Train a method on the training users, choose its setting on those of validation, score it on those of test."""
    name, train, parts = load(settings, run.seed)
    data: dict[str, Any] = {
        "name": name,
        "items": int(train.shape[1]),  # pyright: ignore[reportOptionalSubscript]
        "train_users": len(train.indptr) - 1,
        **{f"{part}_users": len(users.hidden.indptr) - 1 for part, users in parts.items()},
        "files": data_files(settings["name"]),
        "settings": dict(settings),
    }
    if entry.method in BASELINES:
        rank, chosen = choose_setting(entry, train, parts["validation"])
        history, made = None, {**describe_settings(entry), "chosen": chosen}
    else:
        model, trained = train_estimator(entry, train, None, run)
        rank, history, made = recommender(model), trained.history, trained.settings
    found = {part: judge(rank(users.given), users) for part, users in parts.items()}
    scores = found["test"] | {f"validation_{name}": value for name, value in found["validation"].items()}
    return Outcome(scores, made, data, history)


def recommender(model: Any) -> "Ranking":
    """Return a trained model's ranking of items for users whose items are given."""

    def rank(given: sparse.csr_array) -> Int[np.ndarray, "users depth"]:
        found = model.recommend(given, k=_DEPTH).ids
        return np.array(
            [[-1 if item is None else item for item in row] for row in found.tolist()]
        )  # there may be fewer

    return rank


def load(settings: Settings, seed: int) -> tuple[str, sparse.csr_array, dict[str, FoldedUsers]]:
    """Read or draw the data: name, items of the training users, and the held-out users of validation and test."""
    generator = np.random.default_rng(seed)
    if settings["name"] == "small":
        name = "small synthetic ratings"
        items, _ = small_world(settings["n_users"], settings["n_items"], random_state=seed)
    else:
        name = f"MovieLens-{settings['name'].removeprefix('ml-').upper()}"
        items = watched(settings["name"], min_rating=settings["min_rating"], min_items=5)
    users = split_users(len(items.indptr) - 1, test=0.1, validation=1 / 9, most_pairs=10_000, random_state=generator)
    train = items[users.train]
    kept = np.flatnonzero(np.bincount(train.indices, minlength=train.shape[1]))
    parts = {
        part: fold(sparse.csr_array(items[rows][:, kept]), generator)
        for part, rows in (("validation", users.validation), ("test", users.test))
    }
    return name, sparse.csr_array(train[:, kept]), parts


def fold(items: sparse.csr_array, generator: np.random.Generator, share: float = 0.2) -> FoldedUsers:
    """Hide a share of each user's items at random, rounded up; all that users with a single item have.

    Examples
    --------
    >>> users = fold(sparse.csr_array(np.ones((2, 10))), np.random.default_rng(0))
    >>> users.given.sum(1), users.hidden.sum(1)
    (array([8., 8.]), array([2., 2.]))
    """
    counts = np.diff(items.indptr)
    row_of = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((generator.random(items.nnz), row_of))
    place = np.empty(items.nnz, np.int64)
    place[order] = np.arange(items.nnz) - items.indptr[row_of]
    is_hidden = place < np.ceil(share * counts)[row_of]

    def part(kept: np.ndarray) -> sparse.csr_array:
        return sparse.csr_array((items.data[kept], (row_of[kept], items.indices[kept])), shape=items.shape)

    return FoldedUsers(part(~is_hidden), part(is_hidden))


def judge(ranked: Int[np.ndarray, "users depth"], users: FoldedUsers) -> dict[str, float]:
    """Return recall and NDCG of rankings, means over the users with a hidden item, and the standard error of NDCG@100.

    Recall@k is the share found among the first k, of the hidden items or of k where more are hidden. NDCG@100 is the
    sum of 1 / log2(1 + place) over those found, relative to the best possible.

    Examples
    --------
    Of two hidden items one is first and the other third: (1 + 1/2) / (1 + 1/log2(3)).

    >>> users = FoldedUsers(sparse.csr_array((1, 4)), sparse.csr_array([[1, 0, 0, 1]]))
    >>> found = judge(np.array([[3, 1, 0, 2]]), users)
    >>> round(found["ndcg_100"], 4), found["recall_20"]
    (0.9197, 1.0)
    """
    counts = np.diff(users.hidden.indptr)
    hits = np.zeros(ranked.shape, dtype=bool)
    for user, row in enumerate(ranked):
        hits[user] = np.isin(row, users.hidden.indices[users.hidden.indptr[user] : users.hidden.indptr[user + 1]])
    hits, counts = hits[counts > 0], counts[counts > 0]
    gains = 1.0 / np.log2(np.arange(2, _DEPTH + 2))
    best = np.cumsum(gains)[np.minimum(counts, _DEPTH) - 1]
    ndcg = hits[:, :_DEPTH] @ gains[: hits.shape[1]] / best
    return {
        "ndcg_100": float(ndcg.mean()),
        **{f"recall_{k}": float((hits[:, :k].sum(1) / np.minimum(counts, k)).mean()) for k in (20, 50)},
        "standard_error": float(ndcg.std() / np.sqrt(len(ndcg))),
    }


# ---- baselines: functions of the training users and one number that make a function of given items to scores ---------

Scores = Callable[[sparse.csr_array], Float[np.ndarray, "users items"]]
Ranking = Callable[[sparse.csr_array], Int[np.ndarray, "users depth"]]


def choose_setting(entry: Entry, train: sparse.csr_array, validation: FoldedUsers) -> tuple[Ranking, Any]:
    """Return a baseline's ranking under the setting, of those in the entry, that is best on validation users."""
    best: tuple[float, Any, Ranking] | None = None
    for setting in entry.parameters.get("settings", (None,)):
        rank = best_first(BASELINES[entry.method](train, setting))
        value = judge(rank(validation.given), validation)["ndcg_100"]
        if best is None or value > best[0]:
            best = value, setting, rank
    assert best is not None
    return best[2], best[1]


def best_first(scores: Scores) -> Ranking:
    """Return the ranking that scores make of the items that are not given."""

    def rank(given: sparse.csr_array) -> np.ndarray:
        found = []
        for begin in range(0, len(given.indptr) - 1, _USERS):
            rows = given[begin : begin + _USERS]
            values = np.array(scores(rows), dtype=np.float64)
            values[rows.nonzero()] = -np.inf
            found.append(np.argsort(-values, axis=1, kind="stable")[:, :_DEPTH])
        return np.concatenate(found)

    return rank


def popularity(train: sparse.csr_array, setting: None = None) -> Scores:
    """Score an item by how many have it."""
    counts = np.asarray(train.sum(0)).ravel()
    return lambda given: np.tile(counts, (len(given.indptr) - 1, 1))


def item_neighbours(train: sparse.csr_array, n_neighbours: int) -> Scores:
    """Score an item by the sum of the cosines to it of the given ones that are among its nearest."""
    lengths = np.sqrt(np.maximum(np.asarray(train.power(2).sum(0)).ravel(), 1e-30))
    cosines = (train.T @ train).toarray() / lengths / lengths[:, None]
    np.fill_diagonal(cosines, 0.0)
    if n_neighbours < len(cosines):
        cosines[cosines < np.partition(cosines, -n_neighbours, axis=0)[-n_neighbours]] = 0.0
    return lambda given: given @ cosines


def ease(train: sparse.csr_array, ridge: float) -> Scores:
    """Score items by ridge regression of each on the others (Steck, 2019).

    The weights are I - P / diag(P) with P = (X'X + ridge)^-1.
    """
    gram = (train.T @ train).toarray().astype(np.float64)
    gram[np.diag_indices_from(gram)] += ridge
    weights = np.linalg.inv(gram)
    weights /= -np.diag(weights)
    np.fill_diagonal(weights, 0.0)
    return lambda given: given @ weights


BASELINES: dict[str, Callable[[sparse.csr_array, Any], Scores]] = {
    "popularity": popularity,
    "item_neighbours": item_neighbours,
    "ease": ease,
}
