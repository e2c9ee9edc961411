"""The clustering task: points on a random tree, cut in two by the distances of their embeddings.

There is no held-out part: groups are found among the training points, whose labels no model sees. Similarities are
exp(-dis / 2) with a zero diagonal; the paper leaves the diagonal open, so scores with a unit diagonal come with it.
"""

import numpy as np
from jaxtyping import Shaped

from corrvae.datasets import tree
from corrvae.experiments.models import Run, Trained, describe_settings, point_posterior, train_entry
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.records import Outcome
from corrvae.experiments.spectral import cut, similarities
from corrvae.model import Posterior
from corrvae.scoring import Metric, make_metric, score_matrix

# JSON has no infinity: the residual of a vector whose eigenvalue is 0.
_LARGEST = 1e9


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Draw a tree, train a model on it, and score the cut."""
    drawn = tree(**{name: value for name, value in settings.items() if name != "name"}, random_state=run.seed)
    data = {
        "name": f"synthetic tree, {drawn.graph.n_vertices:,} points",
        "points": drawn.graph.n_vertices,
        "features": int(drawn.features.shape[1]),
        "edges": drawn.graph.n_edges,
        "settings": dict(settings),
    }
    if entry.method == "latents":
        trained = Trained(lambda rows: point_posterior(drawn.latents), describe_settings(entry))
    else:
        trained = train_entry(entry, drawn.features, drawn.graph, run)
    scores = score_clustering(trained.posterior(None), make_metric(entry.metric), drawn.labels)
    return Outcome(scores, trained.settings, data, trained.history)


def score_clustering(posterior: Posterior, metric: Metric, labels: Shaped[np.ndarray, " points"]) -> dict[str, float]:
    """Cut points in two by a squared distance, and compare with the true groups.

    The distances are one n-by-n matrix of 4-byte numbers, 400 MB for 10,000 points.
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    similar = similarities(score_matrix(posterior, posterior, metric))
    scores: dict[str, float] = {}
    for found, prefix in ((cut(similar, "zero"), ""), (cut(similar, "unit"), "unit_")):
        scores |= {
            f"{prefix}nmi": float(normalized_mutual_info_score(labels, found.side)),
            f"{prefix}ari": float(adjusted_rand_score(labels, found.side)),
            f"{prefix}residual": min(found.residual, _LARGEST),
        }
    return scores
