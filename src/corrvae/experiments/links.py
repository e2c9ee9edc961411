"""The link experiment: find held-out edges of mutual trust between users who have rated products."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Int
from scipy import sparse

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.datasets import epinions
from corrvae.experiments.comparing import block_scores, pair_scores
from corrvae.experiments.models import describe_settings, embed, fit_estimator, history_of
from corrvae.experiments.outcomes import Outcome, Run
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.sketching import sketch
from corrvae.experiments.small import small_world
from corrvae.experiments.sources import data_files, fingerprint_all
from corrvae.graphs import EdgeSplit, graph_features, split_edges
from corrvae.tasks import (
    PairRanks,
    adamic_adar_scores,
    common_neighbour_scores,
    degree_scores,
    rank_links,
    score_links,
)
from corrvae.tasks.ranks import BlockScores

Part = Literal["validation", "test"]

_OF_GRAPH = {
    "degree": degree_scores,
    "common_neighbours": common_neighbour_scores,
    "adamic_adar": adamic_adar_scores,
}


@final
@dataclass(frozen=True, eq=False)
class LinkData:
    """Users, what they rated, and their edges in three parts.

    Attributes
    ----------
    name
        For people.
    features
        One row for each user.
    split
        The training graph and the held-out edges.
    """

    name: str
    features: sparse.csr_array
    split: EdgeSplit


def load(settings: Settings, seed: int) -> LinkData:
    """Read or draw the data, and hold edges out.

    Parameters
    ----------
    settings
        `name` is "epinions", with `min_ratings`, or "small", with `n_users` and `n_items`.
    seed
        Of the split and of small data.

    Examples
    --------
    >>> load({"name": "small", "n_users": 40, "n_items": 30}, 0).features.shape
    (40, 30)
    """
    if settings["name"] == "small":
        world = small_world(settings["n_users"], settings["n_items"], random_state=seed)
        name, features, graph = "small synthetic trust", world.items, world.graph
    else:
        found = epinions(settings["name"], min_ratings=settings["min_ratings"])
        name, features = "Epinions", found.features
        # users are known by their rows, also to a model that is not shown the graph
        graph = CorrelationGraph(found.graph.edges, found.graph.n_vertices)
    return LinkData(name, features, split_edges(graph, random_state=seed))


def fingerprint(data: LinkData) -> str:
    """Give a short code of features and edges, whatever they were read from.

    Examples
    --------
    >>> small = {"name": "small", "n_users": 40, "n_items": 30}
    >>> fingerprint(load(small, 0)) == fingerprint(load(small, 1))
    False
    """
    return fingerprint_all(data.features, data.split.train.edges, data.split.validation, data.split.test)


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Train a model on the training graph, and rank the held-out edges.

    Parameters
    ----------
    entry
        The model.
    settings
        See `load`.
    run
        Seed, checkpoint, and whom to report to.

    Examples
    --------
    >>> entry = Entry("adamic", "Adamic-Adar", "adamic_adar")
    >>> outcome = run(entry, {"name": "small", "n_users": 40, "n_items": 30}, Run(seed=0))
    >>> 0 < outcome.scores["ncrr"] < 1, "validation_ncrr" in outcome.scores
    (True, True)
    """
    run.report("reading the data", 0, None)
    return judge(entry, load(settings, run.seed), dict(settings), run)


def judge(entry: Entry, data: LinkData, settings: dict[str, Any], run: Run) -> Outcome:
    """Train on ``data.split.train`` alone, then rank what was held out."""
    train, test = data.split.train, data.split.test
    described = {
        "name": data.name,
        "users": train.n_vertices,
        "features": int(data.features.shape[1]),  # pyright: ignore[reportOptionalSubscript]
        "train_edges": train.n_edges,
        "validation_edges": len(data.split.validation),
        "test_edges": len(test),
        "fingerprint": fingerprint(data),
        "files": data_files(settings["name"]),
        "settings": settings,
    }
    if entry.method in _OF_GRAPH:
        scores = _OF_GRAPH[entry.method](train)
        return Outcome(_scores(scores, data.split, run), describe_settings(entry, run.seed), described, None, None)
    features = graph_features(data.features, train) if entry.graph_features else data.features
    if entry.method in ("vae", "cvae"):
        model = fit_estimator(entry, features, train, run)
        embedding, history, settled = model.embedding_, history_of(model), describe_settings(entry, run.seed, model)
        found = _scores_of_model(model, entry.metric, data.split, run)

        def score(pairs: np.ndarray) -> np.ndarray:
            return model.score_pairs(pairs, metric=entry.metric).scores

    else:
        embedded = embed(entry, features, train, run)
        embedding, history, settled = embedded.embedding, embedded.history, describe_settings(entry, run.seed)
        found = _scores(block_scores(embedding, entry.metric), data.split, run)

        def score(pairs: np.ndarray) -> np.ndarray:
            return pair_scores(embedding, pairs, entry.metric)

    drawn = sketch(embedding, train, test, score, entry.metric, seed=run.seed)
    return Outcome(found, settled, described, history, drawn)


def rank_by_model(model: CorrelatedVAE, metric: str, split: EdgeSplit, part: Part) -> PairRanks:
    """Rank held-out edges from both ends by a model's own exact ranks.

    Rows with equal features have equal scores, so that ties are counted by comparing the points.

    Parameters
    ----------
    model
        Trained on ``split.train``, whose vertex i is row i and has the id i.
    metric
        The score.
    split, part
        What was held out.
    """
    held, train = (split.validation if part == "validation" else split.test), split.train
    pairs = np.concatenate([held, held[:, ::-1]])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    ranks = model.rank_pairs(pairs, exclude=train, metric=metric, progress=False).ranks
    vertices, others = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    candidates = train.n_vertices - 1 - train.degrees[vertices]
    return PairRanks(vertices, others, ranks, ranks - _tied(model, train, vertices, others), candidates)


def _tied(
    model: CorrelatedVAE, train: CorrelationGraph, vertices: np.ndarray, others: np.ndarray
) -> Int[np.ndarray, " pairs"]:
    """Count the candidates of each vertex that are equal to the other end, itself included."""
    points = np.concatenate([model.embedding_, model.stddev_], axis=1)
    _, group = np.unique(points, axis=0, return_inverse=True)
    group = group.ravel()
    ends = np.concatenate([train.edges, train.edges[:, ::-1]])
    # how many neighbours of each vertex are in each group
    known = sparse.csr_array(
        (np.ones(len(ends), np.int64), (ends[:, 0], group[ends[:, 1]])), shape=(len(group), int(group.max()) + 1)
    )
    sizes = np.bincount(group)[group[others]]
    of_neighbours = np.asarray(known[vertices, group[others]]).ravel()
    return sizes - of_neighbours - (group[vertices] == group[others])


def _scores_of_model(model: CorrelatedVAE, metric: str, split: EdgeSplit, run: Run) -> dict[str, float]:
    found: dict[str, float] = {}
    for part, prefix in _parts(split):
        run.report(f"ranking {part} edges", 0, None)
        found |= _named(score_links(rank_by_model(model, metric, split, part)), prefix)
    return found


def _scores(scores: BlockScores, split: EdgeSplit, run: Run) -> dict[str, float]:
    found: dict[str, float] = {}
    for part, prefix in _parts(split):
        run.report(f"ranking {part} edges", 0, None)
        found |= _named(score_links(rank_links(scores, split, part)), prefix)
    return found


def _parts(split: EdgeSplit) -> list[tuple[Part, str]]:
    """Validation too, where something was held out for it."""
    parts: list[tuple[Part, str]] = [("test", "")]
    return [*parts, ("validation", "validation_")] if len(split.validation) else parts


def _named(scores: Any, prefix: str) -> dict[str, float]:
    return {prefix + name: float(value) for name, value in asdict(scores).items()}
