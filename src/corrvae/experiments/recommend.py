"""The recommendation task: what else do users want who were not trained on, and of whom some items are known.

Users are divided into training, validation and test. Of a held-out user a fifth of the items is hidden at random, the
others are given to the method, and the hidden ones are looked for among all items that are not given. Where users trust
each other, methods may know whom a held-out user trusts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from corrvae.datasets import ciao, split_users, watched
from corrvae.experiments.models import Run, Trained, describe_settings, train_estimator
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.records import Outcome
from corrvae.experiments.sources import data_files, small_world
from corrvae.graphs import CorrelationGraph
from corrvae.io import Features
from corrvae.model.families import make_family

# Users whose items are all scored at a time; items that a ranking is judged by.
_USERS, _DEPTH = 500, 100
# Held-out users by the number of items that are given: from, and below.
_GROUPS = {"none": (0, 1), "few": (1, 5), "more": (5, 10**9)}


@final
@dataclass(frozen=True, eq=False)
class FoldedUsers:
    """Held-out users: the items that are given, those that are hidden, and which vertices of the graph they are."""

    given: sparse.csr_array
    hidden: sparse.csr_array
    vertices: Int[np.ndarray, " users"] | None = None

    def __len__(self) -> int:
        return len(self.hidden.indptr) - 1

    def __getitem__(self, rows: Any) -> "FoldedUsers":
        vertices = None if self.vertices is None else self.vertices[rows]
        return FoldedUsers(sparse.csr_array(self.given[rows]), sparse.csr_array(self.hidden[rows]), vertices)


@final
@dataclass(frozen=True, eq=False)
class Users:
    """Items of the users of training, the held-out users, and who trusts whom: users of training come first."""

    name: str
    train: sparse.csr_array
    parts: dict[str, FoldedUsers]
    graph: CorrelationGraph | None = None


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Train a method on the training users, choose its setting on those of validation, score it on those of test."""
    users = load(settings, run.seed)
    data: dict[str, Any] = {
        "name": users.name,
        "items": int(users.train.shape[1]),  # pyright: ignore[reportOptionalSubscript]
        "train_users": len(users.train.indptr) - 1,
        **{f"{part}_users": len(held) for part, held in users.parts.items()},
        "files": data_files(settings["name"]),
        "settings": dict(settings),
    }
    if entry.method in BASELINES:
        rank, chosen = choose_setting(entry, users)
        history, made = None, {**describe_settings(entry), "chosen": chosen}
    else:
        rank, trained = train_recommender(entry, users, run)
        history, made = trained.history, trained.settings
    scores: dict[str, float] = {}
    for part, before in (("test", ""), ("validation", "validation_")):
        held = users.parts[part]
        ranked, counts = rank(held), np.diff(held.given.indptr)
        groups = {"": (0, 10**9)} | ({} if users.graph is None else _GROUPS)
        for group, (least, most) in groups.items():
            rows = np.flatnonzero((counts >= least) & (counts < most))
            found = judge(ranked[rows], held[rows]) if len(rows) else {}
            scores |= {before + name + (group and "_" + group): value for name, value in found.items()}
    return Outcome(scores, made, data, history)


def train_recommender(entry: Entry, users: Users, run: Run) -> tuple["Ranking", Trained]:
    """Train a model, and return its ranking of items for users whose items are given, and links if it reads them."""
    graph, reads_links = users.graph, make_family(entry.parameters.get("family", "independent")).conditions_on_graph
    if graph is not None and not reads_links:
        graph = graph[np.arange(len(users.train.indptr) - 1)]
    model, trained = train_estimator(entry, users.train, graph, run)

    def rank(held: FoldedUsers) -> Int[np.ndarray, "users depth"]:
        rows = Features(held.given, ids=held.vertices) if reads_links else held.given
        found = model.recommend(rows, graph=graph if reads_links else None, k=_DEPTH).ids
        return np.array(
            [[-1 if item is None else item for item in row] for row in found.tolist()]
        )  # there may be fewer

    return rank, trained


def load(settings: Settings, seed: int) -> Users:
    """Read or draw the data, and hold out a tenth of the users each for validation and test; of Ciao, 15 % each."""
    generator, graph, share = np.random.default_rng(seed), None, 0.1
    if settings["name"] == "small":
        name = "small synthetic ratings"
        items, _ = small_world(settings["n_users"], settings["n_items"], random_state=seed)
    elif settings["name"] == "ciao":
        name, share, trust = "Ciao", 0.15, ciao(min_ratings=settings["min_ratings"])
        items, graph = trust.features, trust.graph
    else:
        name = f"MovieLens-{settings['name'].removeprefix('ml-').upper()}"
        items = watched(settings["name"], min_rating=settings["min_rating"], min_items=5)
    split = split_users(
        len(items.indptr) - 1, test=share, validation=share / (1 - share), most_pairs=10_000, random_state=generator
    )
    train = items[split.train]
    kept = np.flatnonzero(np.bincount(train.indices, minlength=train.shape[1]))
    parts = {
        part: fold(sparse.csr_array(items[rows][:, kept]), generator)
        for part, rows in (("validation", split.validation), ("test", split.test))
    }
    if graph is not None:
        order = np.concatenate([split.train, split.validation, split.test])
        place = np.argsort(order)
        graph = CorrelationGraph.from_edges(place[graph.edges], vertices=np.arange(len(order)))
        rows = {"validation": split.validation, "test": split.test}
        parts = {part: FoldedUsers(users.given, users.hidden, place[rows[part]]) for part, users in parts.items()}
    return Users(name, sparse.csr_array(train[:, kept]), parts, graph)


def fold(items: sparse.csr_array, generator: np.random.Generator, share: float = 0.2) -> FoldedUsers:
    """Hide a share of each user's items at random, rounded up; all that users with a single item have."""
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

Scores = Callable[[Any], Float[np.ndarray, "users items"]]
Ranking = Callable[[FoldedUsers], Int[np.ndarray, "users depth"]]


def choose_setting(entry: Entry, users: Users) -> tuple[Ranking, Any]:
    """Return a baseline's ranking under the setting, of those in the entry, that is best on validation users.

    With ``friends``, what a user is given is his items and so much times those of each friend; with ``popularity``,
    so much times the share of users who have an item is added to its score. Both are settings to choose, too.
    """
    best: tuple[float, Any, Ranking] | None = None
    validation = users.parts["validation"]
    counts = np.asarray(users.train.sum(0)).ravel() / len(users.train.indptr)
    for setting in entry.parameters.get("settings", (None,)):
        scores = BASELINES[entry.method](users.train, setting)
        for friends, popular in product(*(entry.parameters.get(name, (0.0,)) for name in ("friends", "popularity"))):
            rank = best_first(scores, popular * counts, items_of_friends(users, friends))
            value = judge(rank(validation), validation)["ndcg_100"]
            if best is None or value > best[0]:
                best = value, [setting, friends, popular], rank
    assert best is not None
    return best[2], best[1]


def items_of_friends(users: Users, weight: float) -> Callable[[FoldedUsers], Any]:
    """Return the function that adds to users' given items those of their friends, times a weight."""
    if users.graph is None or not weight:
        return lambda held: held.given
    linked = sparse.csr_array(users.graph.to_scipy(), dtype=np.float64)[:, : len(users.train.indptr) - 1]
    return lambda held: held.given + weight * (linked[held.vertices] @ users.train)


def best_first(
    scores: Scores,
    added: Float[np.ndarray, " items"] | float = 0.0,
    read: Callable[[FoldedUsers], Any] = lambda held: held.given,
) -> Ranking:
    """Return the ranking that scores of what is read of users make of the items that are not given."""

    def rank(users: FoldedUsers) -> np.ndarray:
        found = []
        for begin in range(0, len(users), _USERS):
            some = users[begin : begin + _USERS]
            values = np.asarray(scores(read(some)), dtype=np.float64) + added
            values[some.given.nonzero()] = -np.inf
            found.append(np.argsort(-values, axis=1, kind="stable")[:, :_DEPTH])
        return np.concatenate(found)

    return rank


def popularity(train: sparse.csr_array, setting: None = None) -> Scores:
    """Score an item by how many have it."""
    counts = np.asarray(train.sum(0)).ravel()
    return lambda given: np.tile(counts, (given.shape[0], 1))


def friends(train: sparse.csr_array, setting: None = None) -> Scores:
    """Score an item by how often it is among what is read of a user: with friends, by how many of them have it."""
    return lambda given: given.toarray()


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
    "friends": friends,
    "item_neighbours": item_neighbours,
    "ease": ease,
}
