"""Small trained runs, and their features and graph in files."""

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from corrvae import CorrelatedVAE, CorrelationGraph, Pairwise

N_POINTS, N_FEATURES, DIM = 36, 5, 3
IDS = [f"p{k}" for k in range(N_POINTS)]


@dataclass(frozen=True)
class Files:
    """A folder with a run and the files it was trained on."""

    run: Path
    features: Path
    graph: Path
    folder: Path


def make_frame(n_points=N_POINTS, seed=0, prefix="p"):
    """Three groups of points around corners; the last two points are equal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_points, N_FEATURES)) + 4 * np.eye(N_FEATURES)[np.arange(n_points) % 3]
    X[-1] = X[-2]
    names = [f"f{k}" for k in range(N_FEATURES)]
    return pd.DataFrame(X.astype(np.float32), index=[f"{prefix}{k}" for k in range(n_points)], columns=names)


def make_graph(ids=IDS):
    """A ring within each of the three groups."""
    return CorrelationGraph.from_edges([(ids[k], ids[(k + 3) % len(ids)]) for k in range(len(ids))], vertices=ids)


@lru_cache
def trained(family="independent", *, graph=True, validation=0.0, named=True):
    """A model that has seen a little; `named`: with string ids and names of features."""
    frame, vertices = make_frame(), make_graph() if named else make_graph(list(range(N_POINTS)))
    model = CorrelatedVAE(
        DIM,
        family=Pairwise(hidden=(6,)) if family == "pairwise" else family,
        hidden=(8,),
        max_epochs=8,
        batch_size=12,
        validation_fraction=validation,
        random_state=0,
    )
    X = frame if named else frame.to_numpy()
    return model.fit(X, graph=vertices if graph else None)


def make_files(folder: Path, family="independent", *, store_features=True, **options) -> Files:
    """Save a run with its files."""
    files = Files(folder / "run", folder / "features.csv", folder / "edges.csv", folder)
    trained(family, **options).save(files.run, store_features=store_features)
    make_frame().rename_axis("id").to_csv(files.features)
    write_rows(files.graph, [("source", "target"), *make_graph().id_pairs.tolist()])
    return files


def write_rows(path: Path, rows) -> Path:
    """Write rows as CSV."""
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


def literal_scores(model, metric, pairs):
    """Scores of pairs of training rows by the formulas, in float64."""
    mean, stddev = (np.asarray(part, np.float64) for part in (model.embedding_, model.stddev_))
    (i, j), tau = np.asarray(pairs).T, model.tau_
    m, n, s, t = mean[i], mean[j], stddev[i], stddev[j]
    if metric == "cosine":
        return (m * n).sum(1) / np.linalg.norm(m, axis=1) / np.linalg.norm(n, axis=1)
    if metric == "log_odds":
        u, v = 1 - np.minimum(s, 1) ** 2, 1 - np.minimum(t, 1) ** 2
        D = 1 - tau**2 * u * v
        return -0.5 * ((tau**2 * (v * m**2 + u * n**2) - 2 * tau * m * n) / D + np.log(D)).sum(1)
    distance = ((m - n) ** 2).sum(1)
    if metric == "mean_distance":
        return distance
    rho = model.posterior().correlation(model.ids_[np.asarray(pairs)])
    return distance + (s**2 + t**2 - 2 * rho * s * t).sum(1)


def brute_links(model, metric, n_links):
    """The scores of the best pairs that are not linked, by looking at every pair."""
    n = len(model.ids_)
    linked = set() if model.graph_ is None else set(map(tuple, model.graph_.edges.tolist()))
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n) if (i, j) not in linked])
    scores = literal_scores(model, metric, pairs)
    return np.sort(-scores if metric in ("cosine", "log_odds") else scores)[:n_links] * (
        -1 if metric in ("cosine", "log_odds") else 1
    )
