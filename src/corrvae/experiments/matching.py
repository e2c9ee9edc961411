"""The matching task: given one half of a user's movies, find the other among the halves of users not trained on.

A user's items are split at random into two halves, two points that share no item. The rank of a half's other half is
counted among all other halves of the same part, ties against the method.
"""

from typing import Any

import numpy as np
from scipy import sparse

from corrvae.datasets import HalvedUsers, halve_users, movielens, split_users
from corrvae.experiments.models import Run, train_entry
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.records import Outcome
from corrvae.experiments.sketching import sketch
from corrvae.experiments.sources import data_files, small_world
from corrvae.model import Posterior
from corrvae.scoring import Metric, make_metric, rank

Parts = dict[str, HalvedUsers]


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Train a model on the training users, and match the halves of the others."""
    run.report("reading the data", 0, None)
    name, parts = load(settings, run.seed)
    train, test = parts["train"], parts["test"]
    data: dict[str, Any] = {
        "name": name,
        "movies": int(train.features.shape[1]),  # pyright: ignore[reportOptionalSubscript]
        **{f"{part}_users": users.n_users for part, users in parts.items()},
        "files": data_files(settings["name"]),
        "settings": dict(settings),
    }
    trained = train_entry(entry, train.features, train.graph, run, augment=train.redraw)
    metric = make_metric(entry.metric)
    run.report("ranking", 0, None)
    tested, validated = (trained.posterior(parts[part].features) for part in ("test", "validation"))
    scores = score_matching(tested, metric)
    scores |= {f"validation_{name}": value for name, value in score_matching(validated, metric).items()}
    drawn = sketch(tested, metric, test.graph, test.graph.edges, trained=train.graph, seed=run.seed)
    return Outcome(scores, trained.settings, data, trained.history, drawn)


def load(settings: Settings, seed: int) -> tuple[str, Parts]:
    """Read or draw the data: name, and users in three parts, "train", "validation" and "test", each in two halves."""
    name = settings["name"]
    if name != "small":
        found = movielens(name, min_ratings=settings["min_ratings"], random_state=seed)
        title = f"MovieLens-{name.removeprefix('ml-').upper()}"
        return title, {"train": found.train, "validation": found.validation, "test": found.test}
    generator = np.random.default_rng(seed)
    items, _ = small_world(settings["n_users"], settings["n_items"], random_state=generator)
    users = split_users(settings["n_users"], random_state=generator)
    parts = {"train": users.train, "validation": users.validation, "test": users.test}
    halves = {part: halve_users(items[rows], random_state=generator) for part, rows in parts.items()}
    return "small synthetic ratings", halves


def score_matching(posterior: Posterior, metric: Metric) -> dict[str, float]:
    """Score a matching of halves, points 2u and 2u + 1 being those of user u.

    Examples
    --------
    Halves at 0 and 1, and at 3 and 8 on a line. The first two find each other; 3 finds 1 and 0 before 8, and 8 finds 3
    first: (1 + 1 + 1/3 + 1) / 4 = 5/6.

    >>> places = np.array([[0.0], [1.0], [3.0], [8.0]])
    >>> found = score_matching(Posterior(places, np.ones((4, 1))), make_metric("mean_distance"))
    >>> round(found["reciprocal_rank"], 4), found["hits_1"], found["hits_10"]
    (0.8333, 0.75, 1.0)
    """
    halves = np.arange(posterior.n_vertices)
    pairs = np.column_stack([halves, halves ^ 1])
    ranks = rank(posterior, posterior, metric, pairs, exclude=sparse.csr_array(sparse.eye_array(len(halves))))[0]
    return {
        "reciprocal_rank": float(np.mean(1.0 / ranks)),
        "hits_1": float(np.mean(ranks <= 1)),
        "hits_10": float(np.mean(ranks <= 10)),
        "n_pairs": float(posterior.n_vertices // 2),
    }
