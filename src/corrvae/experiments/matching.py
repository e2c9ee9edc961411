"""The matching task: given one half of a user's movies, find the other among the halves of users not trained on.

Two protocols. "random-halves", the paper's: each user's items are split at random into two halves, and a half is ranked
among all other halves of the same part. Two halves of a user share no item and differ in size by one at most, which
gives much away: a candidate that shares an item with the query, or has another size, is never the one.
"two-catalogues": the list of items is cut in two, and a user has a half in each; the half in one is ranked among all
users' halves in the other, of which none shares an item with it. Ties count against the method.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy import sparse
from scipy.special import logsumexp
from torch import Tensor

from corrvae.datasets import HalvedUsers, halve_users, movielens, rated_products, split_users
from corrvae.experiments.baselines import halves_plda
from corrvae.experiments.models import Run, Trained, describe_settings, point_posterior, train_entry
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.records import Outcome
from corrvae.experiments.sources import data_files, small_world
from corrvae.model import Posterior
from corrvae.scoring import Metric, assign, make_metric, rank, score_matrix
from corrvae.scoring.metrics import Points

Parts = dict[str, HalvedUsers]
# Rounds of scaling rows and columns.
_SCALINGS = 50


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Train a model on the training users, and match the halves of the others."""
    name, parts = load(settings, run.seed)
    train, test = parts["train"], parts["test"]
    data: dict[str, Any] = {
        "name": name,
        "movies": int(train.features.shape[1]),  # pyright: ignore[reportOptionalSubscript]
        **{f"{part}_users": users.n_users for part, users in parts.items()},
        "files": data_files(settings["name"]),
        "settings": dict(settings),
    }
    if entry.method == "halves_plda":
        trained = _linear_model(entry, train)
    elif entry.method == "size_and_overlap":
        trained = Trained(lambda rows: point_posterior(rows.toarray()), describe_settings(entry))
    else:
        trained = train_entry(entry, train.features, train.graph, run, augment=train.redraw)
    metric = SIZE_AND_OVERLAP if entry.method == "size_and_overlap" else make_metric(entry.metric)
    tested, validated = (trained.posterior(parts[part].features) for part in ("test", "validation"))
    scores = score_matching(tested, metric, test)
    scores |= {
        f"validation_{name}": value for name, value in score_matching(validated, metric, parts["validation"]).items()
    }
    return Outcome(scores, trained.settings, data, trained.history)


def load(settings: Settings, seed: int) -> tuple[str, Parts]:
    """Read or draw the data: name, and users in three parts, "train", "validation" and "test", each in two halves."""
    name, protocol = settings["name"], settings.get("protocol", "random-halves")
    if name != "small":
        read = movielens if name.startswith("ml-") else rated_products
        options = {option: settings[option] for option in ("min_ratings", "min_items") if option in settings}
        found = read(name, **options, protocol=protocol, random_state=seed)
        title = f"MovieLens-{name.removeprefix('ml-').upper()}" if read is movielens else name.capitalize()
        return title, {"train": found.train, "validation": found.validation, "test": found.test}
    generator = np.random.default_rng(seed)
    items, _ = small_world(settings["n_users"], settings["n_items"], random_state=generator)
    users = split_users(settings["n_users"], random_state=generator)
    parts = {"train": users.train, "validation": users.validation, "test": users.test}
    halves = {part: halve_users(items[rows], protocol=protocol, random_state=generator) for part, rows in parts.items()}
    return "small synthetic ratings", halves


def score_matching(posterior: Posterior, metric: Metric, users: HalvedUsers) -> dict[str, float]:
    """Score a matching of halves, points 2u and 2u + 1 being those of user u.

    Of random halves the score ``overlap_refused`` is the reciprocal rank when candidates that share an item with the
    query are left out: a rule that any method can follow, and that uses how the task was made.

    Two scores know that everybody has one half on either side: ``assigned`` is the share of users found by the best
    one-to-one matching of the first halves with the second; ``sinkhorn`` is the reciprocal rank among the N halves of
    the other side after their scores are scaled so that those of each half are probabilities, in both directions.
    """
    halves = np.arange(posterior.n_vertices)
    pairs = np.column_stack([halves, halves ^ 1])
    refused = {"": sparse.csr_array(sparse.eye_array(len(halves)))}
    if users.protocol == "two-catalogues":
        refused[""] = sparse.csr_array((halves[:, None] - halves) % 2 == 0)  # those of one's own catalogue
    else:
        refused["overlap_refused"] = sparse.csr_array(refused[""] + users.features @ users.features.T)
    ranks = {name: rank(posterior, posterior, metric, pairs, exclude=found)[0] for name, found in refused.items()}
    own = ranks.pop("")
    left, right = posterior.take(halves[::2]), posterior.take(halves[1::2])
    shared = sinkhorn(metric.sign * -score_matrix(left, right, metric))
    truth = shared.diagonal()
    partners = assign(left, right, metric, n_candidates=len(left))[0][:, 1]
    both = np.concatenate([(shared >= truth[:, None]).sum(axis=1), (shared >= truth).sum(axis=0)])
    return {
        "reciprocal_rank": float(np.mean(1.0 / own)),
        "hits_1": float(np.mean(own <= 1)),
        "hits_10": float(np.mean(own <= 10)),
        **{name: float(np.mean(1.0 / found)) for name, found in ranks.items()},
        "assigned": float(np.mean(partners == np.arange(len(left)))),
        "sinkhorn": float(np.mean(1.0 / both)),
        "n_pairs": float(posterior.n_vertices // 2),
    }


def sinkhorn(scores: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, "rows columns"]:
    """Return the logarithm of exp(scores / T) scaled so that all rows and all columns sum to 1 (Sinkhorn).

    T is a hundredth of the scores' standard deviation: about 1 for log-odds.
    """
    found = 100.0 * scores.astype(np.float64) / max(float(scores.std()), 1e-30)
    for _ in range(_SCALINGS):
        found = found - logsumexp(found, axis=1, keepdims=True)
        found = found - logsumexp(found, axis=0)
    return found


def _linear_model(entry: Entry, train: HalvedUsers) -> Trained:
    """Solve the linear model of the training users' halves, which reads rows of length 1."""
    solution = halves_plda(train.items, **entry.parameters)
    scale, stddev, tau = solution.marginals()

    def posterior(rows: sparse.csr_array) -> Posterior:
        lengths = np.sqrt(np.maximum(rows.multiply(rows).sum(axis=1), 1e-30))
        mean = ((rows @ solution.directions) / lengths[:, None] - solution.mean @ solution.directions) * scale
        return Posterior(mean.astype(np.float32), np.tile(stddev.astype(np.float32), (len(mean), 1)), tau=tau)

    return Trained(posterior, describe_settings(entry))


def _size_and_overlap(queries: Points, candidates: Points) -> Tensor:
    """Return 1 for candidates that share no item with the query and have its size, within one; else 0."""
    sizes = queries.mean.count_nonzero(1)[:, None] - candidates.mean.count_nonzero(1)
    return ((queries.mean @ candidates.mean.T == 0) & (sizes.abs() <= 1)).to(torch.float32)


# What the making of random halves gives away, of the halves' items themselves: nothing is learned.
SIZE_AND_OVERLAP = Metric(
    "size_and_overlap", _size_and_overlap, larger_is_better=True, is_product=True, is_symmetric=True
)
