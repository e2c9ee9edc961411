"""The robustness task: what wrong edges cost, and whether adaptive forests find them.

A tenth of the edges is held out. To the others, random edges are added that the graph does not have, in proportion to
their number. A model is trained on each of these graphs, with the same seed. The scores of each share of wrong edges
are the AUC of held-out edges against random pairs, by the entry's metric; the accuracy of labels, where there are
labelled parts; NMI of groups, by k-means with such labels, otherwise by the cut of the clustering task; and R^2 of a
linear map from the means to the latents, where these are known. For adaptive forests, "found" is the AUC at which small
conductances tell the edges that were added.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score

from corrvae.datasets import ciao, citeseer, tree
from corrvae.experiments.clustering import score_clustering
from corrvae.experiments.models import Run, point_posterior, train_estimator
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.records import Outcome
from corrvae.experiments.sources import data_files
from corrvae.graphs import CorrelationGraph, split_edges
from corrvae.model import Posterior
from corrvae.scoring import make_metric, score

SHARES = (0, 10, 30, 50)
"""Wrong edges, in percent of the others."""


@final
@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows, edges, and what is known of the rows: labels, their parts (for training and testing), and true latents."""

    name: str
    features: Any
    graph: CorrelationGraph
    labels: np.ndarray | None = None
    parts: np.ndarray | None = None
    latents: Float[np.ndarray, "rows dim"] | None = None


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Train a model for each share of wrong edges, and score its points."""
    data = load(settings, run.seed)
    split = split_edges(data.graph, "random", validation=0.0, test=0.1, random_state=run.seed)
    unlinked = np.random.default_rng((run.seed, 1)).integers(data.graph.n_vertices, size=split.test.shape)
    scores: dict[str, float] = {}
    made, history = {}, None
    for share in SHARES:
        graph, is_wrong = add_edges(split.train, round(share / 100 * split.train.n_edges), data.graph, seed=run.seed)
        checkpoint = None if run.checkpoint is None else run.checkpoint / str(share)
        model, trained = train_estimator(entry, data.features, graph, replace(run, checkpoint=checkpoint))
        auc = held_out_auc(model.posterior(), split.test, unlinked, entry.metric)
        found = {"auc": auc, **score_groups(model.embedding_, data)}
        if entry.parameters.get("forests") == "adaptive" and share:
            support, codes = model.edge_support_, [graph.n_vertices, 1]
            wrong = np.isin(np.sort(support.id_pairs, axis=1) @ codes, graph.edges[is_wrong] @ codes)
            found["found"] = float(roc_auc_score(wrong, -np.log(support.conductances)))
        scores |= {f"{name}_{share}": value for name, value in found.items()}
        made, history = trained.settings, trained.history
    known = {
        "name": data.name,
        "rows": data.graph.n_vertices,
        "edges": data.graph.n_edges,
        "files": data_files(settings["name"]),
        "settings": dict(settings),
    }
    return Outcome(scores, made, known, history)


def load(settings: Settings, seed: int) -> Labelled:
    """Read or draw the data."""
    if settings["name"] == "citeseer":
        papers = citeseer()
        return Labelled("Citeseer", papers.features, papers.graph, papers.labels, papers.parts)
    if settings["name"] == "ciao":
        users = ciao(min_ratings=settings["min_ratings"])
        return Labelled("Ciao", users.features, CorrelationGraph(users.graph.edges, users.graph.n_vertices))
    drawn = tree(settings["n_points"], settings["n_features"], random_state=seed)
    name = f"tree of {settings['n_points']:,} points"
    return Labelled(name, drawn.features, drawn.graph, drawn.labels, latents=drawn.latents)


def add_edges(
    graph: CorrelationGraph, n_edges: int, besides: CorrelationGraph, *, seed: int
) -> tuple[CorrelationGraph, Bool[np.ndarray, " edges"]]:
    """Add random edges that another graph of the same vertices does not have; return the graph and which are added."""
    n, generator = graph.n_vertices, np.random.default_rng((seed, 2))
    known, new = besides.edges @ [n, 1], np.empty(0, np.int64)
    while len(new) < n_edges:
        pairs = np.sort(generator.integers(n, size=(2 * n_edges, 2)), axis=1)
        codes = pairs[pairs[:, 0] < pairs[:, 1]] @ [n, 1]
        new = np.unique(np.concatenate([new, codes[~np.isin(codes, known)]]))
    new = generator.permutation(new)[:n_edges]
    every = np.sort(np.concatenate([graph.edges @ [n, 1], new]))
    return CorrelationGraph(np.stack(np.divmod(every, n), axis=1), n), np.isin(every, new)


def held_out_auc(
    posterior: Posterior, held: Int[np.ndarray, "edges 2"], unlinked: Int[np.ndarray, "pairs 2"], metric: str
) -> float:
    """Return how often a held-out edge is shorter than a random pair."""
    lengths = score(posterior, posterior, make_metric(metric), np.concatenate([held, unlinked]))
    return float(roc_auc_score(np.repeat([0, 1], [len(held), len(unlinked)]), lengths))


def score_groups(points: Float[np.ndarray, "rows dim"], data: Labelled) -> dict[str, float]:
    """Score embedded points by the labels, if there are any."""
    if data.labels is None:
        return {}
    if data.parts is None:
        nmi = score_clustering(point_posterior(points), make_metric("mean_distance"), data.labels)["nmi"]
        return {"nmi": nmi, "r2": float(LinearRegression().fit(points, data.latents).score(points, data.latents))}
    n_groups = len(np.unique(data.labels))
    groups = KMeans(n_groups, n_init=10, random_state=0).fit_predict(points)  # pyright: ignore[reportArgumentType]
    nmi = float(normalized_mutual_info_score(data.labels, groups))
    return {"accuracy": label_accuracy(points, data.labels, data.parts), "nmi": nmi}


def label_accuracy(points: Float[np.ndarray, "rows dim"], labels: np.ndarray, parts: np.ndarray) -> float:
    """Return the accuracy on the test rows of logistic regression on the training rows, C chosen on validation rows."""
    train, validation, test = (parts == part for part in ("train", "validation", "test"))
    tried = []
    for C in np.logspace(-3, 3, 13):
        with warnings.catch_warnings(action="ignore"):  # a weak penalty ends before it converges
            model = LogisticRegression(C=C, max_iter=500).fit(points[train], labels[train])
        tried.append([float(model.score(points[part], labels[part])) for part in (validation, test)])
    return max(tried, key=lambda scores: scores[0])[1]
