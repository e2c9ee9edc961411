"""The facts of a fitted model, for its pages and for `corrvae info`."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from corrvae.data import shape_of
from corrvae.estimator import CorrelatedVAE
from corrvae.model.families import EvidencePosterior
from corrvae.scoring import METRICS, LinkCalibration, calibrate

# The terms of the objective, in the order they are shown, with their names for people.
TERMS = {
    "total": "Objective",
    "reconstruction": "Reconstruction",
    "singleton": "Singleton KL",
    "edge": "Edge term",
    "non_edge": "Non-edge term",
    "contrast": "Competing candidates",
    "forests": "Divergence of forests",
}
# Links kept from training that are worth looking at on their own, and pairs that are scored at most.
_MIN_HELD_OUT, _MAX_PAIRS = 30, 5_000
# Links from which on a probability is worth showing.
_MIN_LINKS = 40
# Numbers of groups that are tried, and points by which they are judged.
_MOST_GROUPS, _JUDGED = 12, 2_000
# Common neighbours that are named.
_MOST_NAMES = 10
_AS_JSON = bool | int | float | str | list | tuple | None


def describe(model: CorrelatedVAE) -> dict[str, dict[str, Any]]:
    """Return the facts of a fitted model by subject (model, data, training, choices, parameters), as JSON has them."""
    graph, ids, history = model.graph_, model.ids_, model.history_
    n_points = len(ids)
    tau = [_short(value) for value in np.unique(model.tau_)]
    training = {"stopped": model.stopped_, "steps": model.n_steps_, "best_step": model.best_step_}
    for name in ("epoch", "seconds", *TERMS, *(f"validation_{term}" for term in TERMS)):
        if name in history and len(history[name]) and np.isfinite(history[name][-1]):
            training[name] = _short(history[name][-1])
    return {
        "model": {
            "family": type(model.model_.family).__name__,
            "likelihood": model.likelihood_,
            "normalize": model.normalize_,
            "n_components": int(model.embedding_.shape[1]),
            "tau": tau[0] if len(tau) == 1 else [_short(value) for value in model.tau_],
            "trained_numbers": sum(parameter.numel() for parameter in model.model_.parameters()),
        },
        "data": {
            "points": n_points,
            "first_ids": ids[:3].tolist(),
            "features": int(model.n_features_in_),
            "features_stored": model.features_ is not None,
            "edges": 0 if graph is None else graph.n_edges,
            "points_without_edges": n_points if graph is None else int((graph.degrees == 0).sum()),
            "connected_parts": n_points if graph is None else graph.n_connected,
        },
        "training": training,
        "choices": {name: f"{as_words(value)}: {why}" for name, value, why in model.choices_},
        "parameters": {
            name: value if isinstance(value, _AS_JSON) else repr(value) for name, value in model.get_params().items()
        },
    }


def link_metric(model: CorrelatedVAE, *, features_given: bool = False) -> str:
    """Return the score to judge links by: expected distance where a pair network reads features, otherwise log-odds."""
    points, has_features = model.posterior().searchable, features_given or model.features_ is not None
    reads_features = has_features and points.is_correlated and not isinstance(points, EvidencePosterior)
    return "expected_distance" if reads_features else "log_odds"


def uncertainty(model: CorrelatedVAE) -> Float[np.ndarray, " points"]:
    """Return the root of each training point's mean variance; the prior has 1."""
    return np.sqrt(np.square(model.stddev_, dtype=np.float64).mean(axis=1))


def group_points(
    embedding: Float[np.ndarray, "points dim"], count: int | None = None, *, random_state: int = 0
) -> Int[np.ndarray, " points"]:
    """Return groups by k-means, numbered by size from 0: so many, or from 2 to 12 with the best silhouette."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import silhouette_score

    n_points = len(embedding)
    judged = np.random.default_rng(random_state).permutation(n_points)[:_JUDGED]
    n_distinct = len(np.unique(embedding[judged], axis=0))
    counts = range(2, min(_MOST_GROUPS + 1, n_distinct)) if count is None else [min(count, n_points)]
    n_starts: Any = 3 if count is None else 10
    best, groups = -np.inf, np.zeros(n_points, np.int64)
    for number in counts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than groups
            kmeans = KMeans(number, n_init=n_starts, random_state=random_state)
            found = kmeans.fit(embedding[judged] if count is None else embedding).predict(embedding)
        quality = silhouette_score(embedding[judged], found[judged]) if count is None else 0.0
        if quality > best:
            best, groups = quality, found
    return by_size(np.asarray(groups))


def by_size(groups: Int[np.ndarray, " points"]) -> Int[np.ndarray, " points"]:
    """Number groups by size from 0."""
    order = np.argsort(-np.bincount(groups), kind="stable")
    return np.argsort(order)[groups]


@final
@dataclass(frozen=True, eq=False)
class LinkScores:
    """Scores of linked pairs and of random unlinked ones; `held_out`: training has not seen the links."""

    linked: Float[np.ndarray, " linked"]
    unlinked: Float[np.ndarray, " unlinked"]
    metric: str
    held_out: bool


def score_links(model: CorrelatedVAE, generator: np.random.Generator) -> LinkScores | None:
    """Score some links, those held out if there are enough of them, and ten times as many pairs that are not linked."""
    from corrvae.scoring import random_unlinked

    graph, n_points = model.graph_, len(model.ids_)
    n_others = 0 if graph is None else n_points * (n_points - 1) // 2 - graph.n_edges
    if graph is None or not graph.n_edges or not n_others:
        return None
    unseen = np.empty((0, 2), np.int64) if model.weights_ is None else graph.edges[model.weights_ == 0]
    held_out = len(unseen) >= _MIN_HELD_OUT
    pairs = unseen if held_out else graph.edges
    if len(pairs) > _MAX_PAIRS:
        pairs = generator.choice(pairs, _MAX_PAIRS, replace=False)
    apart = random_unlinked(n_points, graph.edges, min(10 * len(pairs), n_others), generator)
    metric = link_metric(model)
    linked, unlinked = (model.score_pairs(model.ids_[part], metric=metric).scores for part in (pairs, apart))
    return LinkScores(linked, unlinked, metric, held_out)


def link_probability(model: CorrelatedVAE, generator: np.random.Generator) -> tuple[LinkCalibration | None, bool]:
    """Return the probability of a link by `link_metric`, if there are links enough, and whether they were held out."""
    graph, n_points, links = model.graph_, len(model.ids_), score_links(model, generator)
    if graph is None or links is None or graph.n_edges < _MIN_LINKS:
        return None, links is not None and links.held_out
    found = calibrate(
        links.linked,
        links.unlinked,
        metric=links.metric,
        larger_is_better=METRICS[links.metric].larger_is_better,
        prior=graph.n_edges / (n_points * (n_points - 1) / 2),
    )
    return found, links.held_out


def explain_pairs(
    model: CorrelatedVAE, positions: Int[np.ndarray, "pairs 2"]
) -> tuple[list[str], Float[np.ndarray, " pairs"], Float[np.ndarray, " pairs"]]:
    """Return what speaks for links of training points: common neighbours by name, cosines of rows, latent distances.

    The neighbours are at most ten, those with the fewest neighbours first, separated by semicolons. Distances are
    expected squared ones. Cosines count missing entries as 0, and are not-a-number where a point has no features, or
    these were not kept.
    """
    graph = model.graph_
    names = [""] * len(positions)
    if graph is not None:
        for k, (i, j) in enumerate(graph.ids[positions]):
            shared = graph.index_of(np.intersect1d(graph.neighbors(i), graph.neighbors(j)))
            rarest = shared[np.argsort(graph.degrees[shared], kind="stable")][:_MOST_NAMES]
            names[k] = "; ".join(map(str, graph.ids[rarest].tolist()))
    cosines = np.full(len(positions), np.nan)
    if model.features_ is not None:
        there = (positions < shape_of(model.features_)[0]).all(axis=1)  # vertices without features come last
        one, other = (sparse.csr_array(model.features_[ends], dtype=np.float64) for ends in positions[there].T)
        for rows in (one, other):
            rows.data = np.nan_to_num(rows.data)
        sizes = one.multiply(one).sum(axis=1) * other.multiply(other).sum(axis=1)
        cosines[there] = one.multiply(other).sum(axis=1) / np.sqrt(np.maximum(sizes, 1e-30))
    distances = model.score_pairs(model.posterior().ids[positions], metric="expected_distance").scores
    return names, cosines, distances


def as_words(value: Any) -> str:
    """Return a fact as people write it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {as_words(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(as_words, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)


def _short(value: float) -> float | None:
    number = float(value)
    return float(f"{number:.9g}") if np.isfinite(number) else None
