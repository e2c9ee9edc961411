"""The matching experiment: find the other half of a user's movies among the halves of users never seen in training."""

from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from corrvae import CorrelatedVAE
from corrvae.baselines import principal_components
from corrvae.datasets import movielens
from corrvae.experiments.comparing import block_scores, pair_scores
from corrvae.experiments.models import describe_settings, fit_estimator, history_of
from corrvae.experiments.outcomes import Outcome, Run
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.sketching import sketch
from corrvae.experiments.small import small_world
from corrvae.experiments.sources import data_files, fingerprint_all
from corrvae.tasks import (
    HalvedUsers,
    MatchingScores,
    halve_users,
    hits_at,
    reciprocal_rank,
    score_matching,
    split_users,
)


@final
@dataclass(frozen=True, eq=False)
class MatchingData:
    """Users in two halves, in parts that share no user.

    Attributes
    ----------
    name
        For people.
    train, validation, test
        The parts.
    """

    name: str
    train: HalvedUsers
    validation: HalvedUsers
    test: HalvedUsers


def load(settings: Settings, seed: int) -> MatchingData:
    """Read or draw the data.

    Parameters
    ----------
    settings
        `name` is that of a MovieLens data set, with `min_ratings`, or "small", with `n_users` and `n_items`.
    seed
        Of parts, halves and small data.

    Examples
    --------
    >>> load({"name": "small", "n_users": 40, "n_items": 30}, 0).test.n_users
    4
    """
    name = settings["name"]
    if name != "small":
        found = movielens(name, min_ratings=settings["min_ratings"], random_state=seed)
        title = f"MovieLens-{name.removeprefix('ml-').upper()}"
        return MatchingData(title, found.train, found.validation, found.test)
    generator = np.random.default_rng(seed)
    items = small_world(settings["n_users"], settings["n_items"], random_state=generator).items
    parts = split_users(settings["n_users"], random_state=generator)
    halves = (halve_users(items[part], random_state=generator) for part in (parts.train, parts.validation, parts.test))
    return MatchingData("small synthetic ratings", *halves)


def fingerprint(data: MatchingData) -> str:
    """Give a short code of all parts, whatever they were read from.

    Examples
    --------
    >>> small = {"name": "small", "n_users": 40, "n_items": 30}
    >>> fingerprint(load(small, 0)) == fingerprint(load(small, 1))
    False
    """
    return fingerprint_all(*(part.features for part in (data.train, data.validation, data.test)))


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Train a model on the training users, and match the halves of the others.

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
    >>> entry = Entry("lsa", "LSA", "principal_components", {"n_components": 4, "center": False}, "cosine")
    >>> outcome = run(entry, {"name": "small", "n_users": 60, "n_items": 30}, Run(seed=0))
    >>> outcome.scores["n_pairs"], outcome.scores["validation_n_pairs"]
    (6.0, 3.0)
    """
    run.report("reading the data", 0, None)
    return judge(entry, load(settings, run.seed), dict(settings), run)


def judge(entry: Entry, data: MatchingData, settings: dict[str, Any], run: Run) -> Outcome:
    """Train on ``data.train`` alone, then match the halves of the other parts."""
    described = {
        "name": data.name,
        "movies": int(data.train.features.shape[1]),  # pyright: ignore[reportOptionalSubscript]
        "train_users": data.train.n_users,
        "validation_users": data.validation.n_users,
        "test_users": data.test.n_users,
        "fingerprint": fingerprint(data),
        "files": data_files(settings["name"]),
        "settings": settings,
    }
    if entry.method in ("vae", "cvae"):
        return _of_estimator(entry, data, described, run)
    if entry.method == "principal_components":
        return _of_projection(entry, data, described, run)
    raise ValueError(f"{entry.method!r} cannot embed users that it was not trained on")


def _of_estimator(entry: Entry, data: MatchingData, described: dict[str, Any], run: Run) -> Outcome:
    model = fit_estimator(entry, data.train.features, data.train.graph, run, redraw=data.train.redraw)
    scores: dict[str, float] = {}
    for part, prefix in ((data.test, ""), (data.validation, "validation_")):
        run.report("ranking halves", 0, None)
        scores |= _named(match_by_model(model, entry.metric, part), prefix)
    test = data.test
    drawn = sketch(
        np.asarray(model.transform(test.features)),
        test.graph,
        test.graph.edges,
        lambda pairs: model.score_pairs(pairs, test.features, metric=entry.metric).scores,
        entry.metric,
        trained=data.train.graph,
        seed=run.seed,
    )
    return Outcome(scores, describe_settings(entry, run.seed, model), described, history_of(model), drawn)


def _of_projection(entry: Entry, data: MatchingData, described: dict[str, Any], run: Run) -> Outcome:
    run.report("projecting", 0, None)
    embeddings = [
        principal_components(data.train.features, **entry.parameters, seed=run.seed, project=part.features)
        for part in (data.test, data.validation)
    ]
    scores: dict[str, float] = {}
    for embedding, prefix in zip(embeddings, ("", "validation_"), strict=True):
        scores |= _named(score_matching(block_scores(embedding, entry.metric), len(embedding) // 2), prefix)
    drawn = sketch(
        embeddings[0],
        data.test.graph,
        data.test.graph.edges,
        lambda pairs: pair_scores(embeddings[0], pairs, entry.metric),
        entry.metric,
        trained=data.train.graph,
        seed=run.seed,
    )
    return Outcome(scores, describe_settings(entry, run.seed), described, None, drawn)


def match_by_model(model: CorrelatedVAE, metric: str, users: HalvedUsers) -> MatchingScores:
    """Match the halves of users that a model has not seen, by its own exact ranks.

    Parameters
    ----------
    model
        A fitted model.
    metric
        The score.
    users
        Their halves.
    """
    pairs = np.concatenate([users.graph.edges, users.graph.edges[:, ::-1]])
    ranks = model.rank_pairs(pairs, X=users.features, metric=metric, progress=False).ranks
    return MatchingScores(reciprocal_rank(ranks), hits_at(ranks, 1), hits_at(ranks, 10), n_pairs=users.n_users)


def _named(scores: MatchingScores, prefix: str) -> dict[str, float]:
    return {prefix + name: float(value) for name, value in asdict(scores).items()}
