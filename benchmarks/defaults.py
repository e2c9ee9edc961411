"""How good are the defaults? `CorrelatedVAE().fit(X, graph=graph)` beside simple methods, on real and generated data.

    CORRVAE_DATA=folder python benchmarks/defaults.py [citeseer ciao epinions halves likelihoods wide first]

Every part prints and keeps a row for each seed and method in benchmarks/results/defaults.json, and leaves out the rows
that are there already; --again measures them again. The VAE has the same defaults and no graph; PCA and LSA have as
many components as the defaults choose. "recipe" is CVAE_ind of ``corrvae reproduce links``: 30,000 steps.
"""

import argparse
import io
import json
import os
import sys
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.experiments import baselines, links, matching
from corrvae.experiments.models import point_posterior
from corrvae.experiments.recipes import find_recipe
from corrvae.graphs import EdgeSplit, split_edges
from corrvae.scoring import make_metric
from corrvae.training import Progress
from measure import merged, versions, write_results

Row = dict[str, object]


def _read(archive: str, member: str) -> pd.DataFrame:
    with zipfile.ZipFile(Path(os.environ["CORRVAE_DATA"]) / archive) as files:
        return pd.read_csv(io.BytesIO(files.read(member)))


def _lsa(X: sparse.csr_array, n_components: int, rows: sparse.csr_array | None = None) -> np.ndarray:
    return baselines.principal_components(X, n_components, weighting="idf", center=False, seed=0, project=rows)


def _fitted(seed: int, X: object, **arguments: object) -> tuple[CorrelatedVAE, float]:
    begun = time.perf_counter()
    model = CorrelatedVAE(random_state=seed).fit(X, **arguments)
    return model, round(time.perf_counter() - begun, 1)


# ---- citations: 3,327 papers, their words and links --------------------------------------------------------------


def citeseer(seed: int) -> Iterator[Row]:
    """Labels, clusters and held-out links of papers."""
    words, joined, labels = (_read("citeseer.zip", f"{name}.csv") for name in ("words", "links", "labels"))
    row_of = pd.Series(np.arange(len(labels)), index=labels.paper)
    n_papers, n_words = len(labels), words.word.nunique()
    entries = row_of[words.paper].to_numpy(), words.word.factorize()[0]
    X = sparse.csr_array((np.ones(len(words), np.float32), entries), shape=(n_papers, n_words))
    joined = joined[joined.isin(set(labels.paper)).all(axis=1)]  # some papers have neither words nor a label
    ends = np.column_stack([row_of[joined.source], row_of[joined.target]])
    ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    graph = CorrelationGraph(ends, n_papers)
    split = split_edges(graph, "random", validation=0.0, test=0.1, random_state=seed)
    others = np.random.default_rng(seed).integers(n_papers, size=(len(split.test), 2))

    def row(method: str, whole: np.ndarray, part: np.ndarray, seconds: float) -> Row:
        scores = _accuracy(whole, labels) | {"nmi": _nmi(whole, labels.label.to_numpy(), seed)}
        return {"method": method, **scores, "auc": _auc(part, split.test, others), "seconds": seconds}

    model, seconds = _fitted(seed, X, graph=graph)
    size = model.embedding_.shape[1]
    whole, part = model.transform(X), _fitted(seed, X, graph=split.train)[0].transform(X)
    yield row("defaults", whole, part, seconds)
    plain, seconds = _fitted(seed, X)
    yield row("VAE", plain.transform(X), plain.transform(X), seconds)
    yield row("PCA", *[PCA(size, random_state=seed).fit_transform(X.toarray())] * 2, 0.0)
    yield row("LSA", *[_lsa(X, size)] * 2, 0.0)
    yield row("LSA of words propagated twice", *(_lsa(_propagate(X, g), size) for g in (graph, split.train)), 0.0)


def _accuracy(points: np.ndarray, labels: pd.DataFrame) -> dict[str, float]:
    """Return the accuracy of logistic regression on test papers, C chosen on validation papers."""
    train, validation, test = (labels.index[labels.part == part] for part in ("train", "validation", "test"))
    found = []
    for C in np.logspace(-3, 3, 13):
        with warnings.catch_warnings(action="ignore"):  # a weak penalty ends before it converges
            model = LogisticRegression(C=C, max_iter=500).fit(points[train], labels.label[train])
        scores = [model.score(points[part], labels.label[part]) for part in (validation, test)]
        found.append(scores)
    best = max(found, key=lambda scores: scores[0])
    return {"validation_accuracy": best[0], "accuracy": best[1]}


def _nmi(points: np.ndarray, labels: np.ndarray, seed: int) -> float:
    groups = KMeans(len(np.unique(labels)), n_init=10, random_state=seed).fit_predict(points)
    return float(normalized_mutual_info_score(labels, groups))


def _auc(points: np.ndarray, edges: np.ndarray, others: np.ndarray) -> float:
    """Return how often a held-out edge is shorter than a random pair; the better of distance and cosine."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    truth = np.repeat([1, 0], [len(edges), len(others)])
    pairs = np.concatenate([edges, others])
    scores = [
        -np.linalg.norm(each[pairs[:, 0]] - each[pairs[:, 1]], axis=1)
        for each in (points, points / np.maximum(lengths, 1e-30))
    ]
    return max(float(roc_auc_score(truth, score)) for score in scores)


def _propagate(X: sparse.csr_array, graph: CorrelationGraph) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2 applied twice."""
    adjacency = graph.to_scipy() + sparse.eye_array(graph.n_vertices)
    scale = sparse.diags_array(1 / np.sqrt(adjacency.sum(1)))
    step = scale @ adjacency @ scale
    return sparse.csr_array(step @ (step @ X))


# ---- trust: who trusts whom, from what they rated -----------------------------------------------------------------


def epinions(seed: int) -> Iterator[Row]:
    """Held-out mutual trust of 16,101 users."""
    _, features, split = links.load({"name": "epinions", "min_ratings": 100}, seed)
    yield from _trust(features, split, seed)


def epinions_recipe(seed: int) -> Iterator[Row]:
    """CVAE_ind of the recommended recipe: scores of results/links, and 60 times the time of 500 steps."""
    _, features, split = links.load({"name": "epinions", "min_ratings": 100}, seed)
    record = Path(__file__).parents[1] / f"results/links/old-protocol/ind/seed-{seed}.json"
    scores = json.loads(record.read_text())["scores"]
    seconds = 60 * _follow_recipe(features, split, seed, shorter=60)[1]
    yield {"method": "CVAE_ind", "ncrr": scores["ncrr"], "auc": scores["auc"], "seconds": seconds}


def ciao(seed: int) -> Iterator[Row]:
    """Held-out mutual trust of users who rated one of the products with at least 20 ratings."""
    yield from _trust(*_read_ciao(seed), seed)


def ciao_recipe(seed: int) -> Iterator[Row]:
    """CVAE_ind of the recommended recipe."""
    X, split = _read_ciao(seed)
    yield _trust_row("CVAE_ind", X, split, *_follow_recipe(X, split, seed))


def _read_ciao(seed: int) -> tuple[sparse.csr_array, EdgeSplit]:
    ratings, trust = _read("ciao.zip", "ratings.csv"), _read("ciao.zip", "trust.csv")
    ratings = ratings[ratings.groupby("product").user.transform("size") >= 20]
    pairs = set(map(tuple, trust[trust.isin(set(ratings.user)).all(axis=1)].to_numpy().tolist()))
    mutual = np.array([pair for pair in pairs if pair[0] < pair[1] and pair[::-1] in pairs])
    users, ends = np.unique(mutual, return_inverse=True)
    ratings = ratings[ratings.user.isin(users)].drop_duplicates(["user", "product"])
    entries = np.searchsorted(users, ratings.user), ratings["product"].factorize()[0]
    X = sparse.csr_array((np.ones(len(ratings), np.float32), entries))
    graph = CorrelationGraph(np.unique(ends.reshape(-1, 2), axis=0), len(users))
    return X, split_edges(graph, random_state=seed)


def _trust(X: sparse.csr_array, split: EdgeSplit, seed: int) -> Iterator[Row]:
    model, seconds = _fitted(seed, X, graph=split.train)
    yield _trust_row("defaults", X, split, model, seconds)
    yield _trust_row("VAE", X, split, *_fitted(seed, X))
    lsa = point_posterior(_lsa(X, model.embedding_.shape[1]))
    scores = links.score_links(lsa, make_metric("cosine"), split.test, split.train)
    yield {"method": "LSA", "ncrr": scores["ncrr"], "auc": scores["auc"]}


def _trust_row(method: str, X: sparse.csr_array, split: EdgeSplit, model: CorrelatedVAE, seconds: float) -> Row:
    scores = links.score_links(model.posterior(X), make_metric("expected_distance"), split.test, split.train)
    return {"method": method, "ncrr": scores["ncrr"], "auc": scores["auc"], "seconds": seconds}


def _follow_recipe(X: sparse.csr_array, split: EdgeSplit, seed: int, shorter: int = 1) -> tuple[CorrelatedVAE, float]:
    entry = next(entry for entry in find_recipe("links", "recommended").entries if entry.model == "ind")
    settings = {**entry.parameters, "max_steps": entry.parameters["max_steps"] // shorter}
    begun = time.perf_counter()
    model = CorrelatedVAE(**settings, random_state=seed).fit(X, graph=split.train)
    return model, round(time.perf_counter() - begun, 1)


# ---- halves: the same user twice ----------------------------------------------------------------------------------


def halves(seed: int) -> Iterator[Row]:
    """Halves of MovieLens-1M users; the model is fitted to other users than those matched."""
    parts = matching.load({"name": "ml-1m", "min_ratings": 50}, seed)[1]
    train, test = parts["train"], parts["test"]
    model, seconds = _fitted(seed, train.features, graph=train.graph)
    distance = make_metric("expected_distance")
    yield {"method": "defaults", **_matched(model.posterior(test.features), distance), "seconds": seconds}
    plain, seconds = _fitted(seed, train.features)
    yield {"method": "VAE", **_matched(plain.posterior(test.features), distance), "seconds": seconds}
    points = point_posterior(_lsa(train.features, model.embedding_.shape[1], test.features))
    yield {"method": "LSA", **_matched(points, make_metric("cosine")), "seconds": 0.0}


def _matched(posterior: object, metric: object) -> Row:
    return {"reciprocal_rank": matching.score_matching(posterior, metric)["reciprocal_rank"]}


# ---- generated ----------------------------------------------------------------------------------------------------


def likelihoods(seed: int) -> Iterator[Row]:
    """The bound on held-out rows under every likelihood that gives a row a probability, and under the one chosen.

    The multinomial is left out: it explains which columns a row has, not how much of them. The Gaussian explains whole
    numbers spread over the unit interval around them, so that its bound is one on their probability too.
    """
    for kind in ("gaussian", "counts", "binary"):
        X = _draw_table(kind, seed)
        chosen = CorrelatedVAE(random_state=seed).fit(X[:900]).choices_
        row = {"method": kind, "chosen": next(choice.value for choice in chosen if choice.name == "likelihood")}
        for name in ("gaussian", "poisson", "negative_binomial", "bernoulli"):
            spread = np.random.default_rng(seed).uniform(-0.5, 0.5, X.shape) * (name == "gaussian" != kind)
            try:
                model = CorrelatedVAE(likelihood=name, random_state=seed).fit((X + spread)[:900])
                row[name] = model.score((X + spread)[900:])
            except ValueError:  # cannot explain such numbers
                row[name] = None
        best = max((row[name], name) for name in row if isinstance(row[name], float))[1]
        yield row | {"best": best, "right": best == row["chosen"]}


def _draw_table(kind: str, seed: int) -> np.ndarray:
    """Draw 1,200 rows of five latent dimensions in 20 to 60 columns."""
    generator = np.random.default_rng([seed, len(kind)])
    n_columns = int(generator.integers(20, 61))
    signal = generator.normal(size=(1200, 5)) @ generator.normal(size=(5, n_columns)) / 2
    if kind == "gaussian":
        spread = np.exp(generator.normal(size=n_columns))
        return 10 * generator.normal(size=n_columns) + spread * (signal + generator.normal(size=signal.shape))
    if kind == "counts":
        rates = np.exp(generator.normal(1.0, 1.0, n_columns) + signal / 2)
        return generator.poisson(rates * generator.gamma(1.5, 1 / 1.5, rates.shape)).astype(float)
    return (generator.random(signal.shape) < 1 / (1 + np.exp(generator.normal(size=n_columns) - 2 * signal))).astype(
        float
    )


def _draw_topics(n_rows: int, n_columns: int, per_row: int, n_edges: int, seed: int) -> tuple:
    """Draw rows of ten topics, some columns far more often than others, and edges, four in five within a topic."""
    generator = np.random.default_rng(seed)
    popularity = 1.0 / np.arange(10, 10 + n_columns)
    topics = popularity * generator.gamma(0.2, size=(10, n_columns))
    mixture = generator.dirichlet(np.full(10, 0.1), size=n_rows)
    rates = mixture @ (topics / topics.sum(axis=1, keepdims=True))
    X = sparse.csr_array(generator.poisson(per_row * rates) > 0, dtype=np.float32)
    alike = mixture.argmax(axis=1).argsort()  # neighbours in this order share their largest topic
    place = generator.integers(n_rows, size=2 * n_edges)
    others = np.where(generator.random(2 * n_edges) < 0.8, place + generator.integers(1, 30, 2 * n_edges), place[::-1])
    edges = np.unique(np.sort(alike[np.column_stack([place, others % n_rows])], axis=1), axis=0)
    edges = generator.permutation(edges[edges[:, 0] != edges[:, 1]])[:n_edges]
    return X, CorrelationGraph(edges[np.lexsort(edges.T[::-1])], n_rows)


def wide(seed: int) -> Iterator[Row]:
    """Time to the same objective on held-out rows, 1,892 of 17,632 columns, against the first edition's defaults."""
    X, graph = _draw_topics(1892, 17632, 60, 13000, seed)
    old = {"n_components": 100, "tau": 0.99, "batch_size": 64, "edge_batch_size": 256, "learning_rate": 1e-3}
    old |= {"max_steps": 900, "validation_fraction": 0.1, "patience": None}
    curves = {}
    for method, settings in {"first edition": old, "defaults": {}}.items():
        curve: list[tuple[float, float]] = []

        def keep(progress: Progress, curve: list[tuple[float, float]] = curve) -> None:
            if progress.evaluation and "validation_total" in progress.evaluation:
                curve.append((progress.seconds, progress.evaluation["validation_total"]))

        CorrelatedVAE(random_state=seed, **settings).fit(X, graph=graph, callbacks=[keep])
        curves[method] = np.array(curve)
    goal = curves["first edition"][:, 1].max()
    for method, curve in curves.items():
        reached = curve[curve[:, 1] >= goal]
        seconds = float(reached[0, 0]) if len(reached) else None
        yield {"method": method, "objective": float(curve[:, 1].max()), "seconds": seconds}


def first(seed: int) -> Iterator[Row]:
    """The time of a first fit: 2,700 rows, 1,400 columns, 5,300 edges."""
    X, graph = _draw_topics(2700, 1400, 20, 5300, seed)
    yield {"method": "defaults", "seconds": _fitted(seed, X, graph=graph)[1]}


PARTS: dict[str, Callable[[int], Iterator[Row]]] = {
    "citeseer": citeseer,
    "ciao": ciao,
    "ciao-recipe": ciao_recipe,
    "epinions": epinions,
    "epinions-recipe": epinions_recipe,
    "halves": halves,
    "likelihoods": likelihoods,
    "wide": wide,
    "first": first,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=" ".join(PARTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for part in options.parts:
        for seed in options.seeds:
            prefix = f"{part} {seed} "
            if not options.again and any(row["key"].startswith(prefix) for row in merged("defaults", "key", [])):
                continue
            about = {"seed": seed, "threads": options.threads, "command": " ".join(sys.argv)}
            rows = [{"key": prefix + str(row["method"]), **about, **row} for row in PARTS[part](seed)]
            rows = [{name: round(v, 4) if isinstance(v, float) else v for name, v in row.items()} for row in rows]
            for row in rows:
                print(json.dumps(row), flush=True)
            write_results(
                "defaults", merged("defaults", "key", rows), versions=versions("corrvae", "torch", "scikit-learn")
            )
    _summarise(merged("defaults", "key", []))


def _summarise(rows: list[dict]) -> None:
    """Print mean and standard error over the seeds of every number, by part and method."""
    table = pd.DataFrame(rows)
    table["part"] = table.key.str.split().str[0]
    numbers = table.drop(columns=["threads", "seed"]).select_dtypes("number").columns
    groups = table.groupby(["part", "method"], sort=False)[list(numbers)]
    mean, error = groups.mean(), groups.sem().fillna(0.0)
    text = mean.map("{:.4g}".format) + " ± " + error.map("{:.2g}".format)
    for part in table.part.unique():
        print(text.loc[[part]].loc[:, mean.loc[[part]].notna().any()].to_string(), end="\n\n")


if __name__ == "__main__":
    main()
