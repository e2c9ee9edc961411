"""The clustering experiment: points on a random tree, cut in two by the distances of their embeddings.

There is no held-out part: groups are found among the very points of training, whose labels no model sees.
"""

from dataclasses import asdict
from typing import Any

import numpy as np

from corrvae.datasets import TreeData, tree
from corrvae.experiments.comparing import pair_scores
from corrvae.experiments.distances import expected_distances
from corrvae.experiments.models import Embedded, describe_settings, embed, fit_estimator, history_of
from corrvae.experiments.outcomes import Outcome, Run
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.sketching import sketch
from corrvae.experiments.sources import fingerprint_all
from corrvae.tasks import embedding_distances, score_clustering
from corrvae.tasks.scorers import BlockDistances

# Residuals say whether an eigenvector stands out; without one they may be beyond what JSON can hold.
_LARGEST = 1e9


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Draw a tree, train a model on it, and score the cut.

    Parameters
    ----------
    entry
        The model.
    settings
        Sizes of the tree: `n_points`, `n_features`, and what else `corrvae.datasets.tree` takes.
    run
        Seed, checkpoint, and whom to report to.

    Examples
    --------
    >>> entry = Entry("truth", "true z", "latents", metric="mean_distance")
    >>> outcome = run(entry, {"name": "tree", "n_points": 60, "n_features": 8}, Run(seed=0))
    >>> sorted(outcome.scores)
    ['ari', 'nmi', 'residual', 'unit_ari', 'unit_nmi', 'unit_residual']
    """
    run.report("drawing the tree", 0, None)
    sizes = {name: value for name, value in settings.items() if name != "name"}
    data = tree(**sizes, random_state=run.seed)
    described = {
        "name": f"synthetic tree, {data.graph.n_vertices:,} points",
        "points": data.graph.n_vertices,
        "features": int(data.features.shape[1]),
        "edges": data.graph.n_edges,
        "fingerprint": fingerprint_all(data.features, data.graph.edges, data.labels),
        "settings": dict(settings),
    }
    if entry.method in ("vae", "cvae"):
        return _of_estimator(entry, data, described, run)
    return _of_embedding(entry, data, described, run)


def _of_estimator(entry: Entry, data: TreeData, described: dict[str, Any], run: Run) -> Outcome:
    model = fit_estimator(entry, data.features, data.graph, run)
    run.report("scoring", 0, None)
    if entry.metric == "expected_distance":
        distances = expected_distances(model)
    elif entry.metric == "mean_distance":
        distances = embedding_distances(model.embedding_)
    else:
        raise ValueError(f"clustering needs distances, which {entry.metric} does not give")
    drawn = sketch(
        model.embedding_,
        data.graph,
        data.graph.edges,
        lambda pairs: model.score_pairs(pairs, metric=entry.metric).scores,
        entry.metric,
        groups=data.labels,
        seed=run.seed,
    )
    scores = _scores(distances, data)
    return Outcome(scores, describe_settings(entry, run.seed, model), described, history_of(model), drawn)


def _of_embedding(entry: Entry, data: TreeData, described: dict[str, Any], run: Run) -> Outcome:
    if entry.method == "latents":
        found = Embedded(data.latents.astype(np.float32))
    else:
        found = embed(entry, data.features, data.graph, run)
    run.report("scoring", 0, None)
    drawn = sketch(
        found.embedding,
        data.graph,
        data.graph.edges,
        lambda pairs: pair_scores(found.embedding, pairs, "mean_distance"),
        "mean_distance",
        groups=data.labels,
        seed=run.seed,
    )
    scores = _scores(embedding_distances(found.embedding), data)
    return Outcome(scores, describe_settings(entry, run.seed), described, found.history, drawn)


def _scores(distances: BlockDistances, data: TreeData) -> dict[str, float]:
    found = asdict(score_clustering(distances, data.labels))
    return {name: min(float(value), _LARGEST) for name, value in found.items()}
