"""How good are the defaults? `CorrelatedVAE().fit(X, graph=graph)` beside simple methods, on real and generated data.

    CORRVAE_DATA=folder python benchmarks/defaults.py [citeseer labels ciao epinions halves likelihoods wide first]

Every part prints and keeps a row for each seed and method in benchmarks/results/defaults.json, and leaves out the rows
that are there already; --again measures them again. The VAE has the same defaults and no graph; PCA and LSA have as
many components as the defaults choose. "recipe" is CVAE_ind of ``corrvae reproduce links``, 30,000 steps: its scores,
and 60 times the time of 500 steps. Seconds are of processor time on one thread, so that other programs do not matter.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score
from sklearn.preprocessing import normalize
from torch import nn
from torch.nn.functional import cross_entropy, dropout

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.choices import choose
from corrvae.data import Table
from corrvae.datasets import Citations, HalvedUsers
from corrvae.datasets import ciao as read_ciao
from corrvae.datasets import citeseer as read_citeseer
from corrvae.experiments import baselines, links, matching
from corrvae.experiments.models import point_posterior
from corrvae.experiments.recipes import find_recipe
from corrvae.experiments.robustness import label_accuracy
from corrvae.graphs import split_edges
from corrvae.model import Posterior
from corrvae.scoring import make_metric
from corrvae.training import Progress
from measure import merged, versions, write_results

Row = dict[str, object]
Methods = dict[str, Callable[[], Row]]


def _lsa(X: sparse.csr_array, n_components: int, rows: sparse.csr_array | None = None) -> np.ndarray:
    return baselines.principal_components(X, n_components, weighting="idf", center=False, seed=0, project=rows)


def _size(X: sparse.csr_array) -> int:
    return choose({"n_components": "auto"}, Table(X))[0].value


def _fitted(seed: int, X: object, graph: CorrelationGraph | None = None, **settings: object) -> tuple:
    begun = time.process_time()
    model = CorrelatedVAE(random_state=seed, **settings).fit(X, graph=graph)
    return model, round(time.process_time() - begun, 1)


# ---- citations: 3,327 papers, their words and links --------------------------------------------------------------


def citeseer(seed: int) -> Methods:
    """Labels, clusters and held-out links of papers."""
    papers = read_citeseer()
    X, graph, n_papers = papers.features, papers.graph, papers.graph.n_vertices
    split = split_edges(graph, "random", validation=0.0, test=0.1, random_state=seed)
    others = np.random.default_rng(seed).integers(n_papers, size=(len(split.test), 2))

    def row(whole: np.ndarray, part: np.ndarray, seconds: float | None = None) -> Row:
        scores = {
            "accuracy": label_accuracy(whole, papers.labels, papers.parts),
            "nmi": _nmi(whole, papers.labels, seed),
        }
        return scores | {"auc": _auc(part, split.test, others), "seconds": seconds}

    def correlated() -> Row:
        model, seconds = _fitted(seed, X, graph)
        return row(model.transform(X), _fitted(seed, X, split.train)[0].transform(X), seconds)

    def joint() -> Row:
        model, seconds = _fitted(seed, X, graph, family="joint")
        return row(model.embedding_, _fitted(seed, X, split.train, family="joint")[0].embedding_, seconds)

    def plain() -> Row:
        model, seconds = _fitted(seed, X)
        return row(model.transform(X), model.transform(X), seconds)

    size = _size(X)
    return {
        "defaults": correlated,
        "joint": joint,
        "VAE": plain,
        "PCA": lambda: row(*[PCA(size, random_state=seed).fit_transform(X.toarray())] * 2),
        "LSA": lambda: row(*[_lsa(X, size)] * 2),
        "LSA of words propagated twice": lambda: row(*(_lsa(_propagate(X, g), size) for g in (graph, split.train))),
        "SGC": lambda: {"accuracy": label_accuracy(_propagate(X, graph).toarray(), papers.labels, papers.parts)},
        "GCN": lambda: {"accuracy": _graph_convolution(papers, seed)},
    }


def labels(seed: int) -> Methods:
    """Accuracy on the test papers, on average over ten choices of other papers whose labels are known: 20 of each."""
    papers = read_citeseer()
    others = np.flatnonzero(papers.parts != "test")
    choices = []
    for number in range(10):
        order = np.random.default_rng(number).permutation(others)
        names = papers.labels[order]
        known = np.concatenate([order[names == name][:20] for name in np.unique(names)])
        parts = np.where(papers.parts == "test", "test", "rest").astype(object)
        parts[known], parts[order[~np.isin(order, known)][:500]] = "train", "validation"
        choices.append(parts)

    @cache
    def model() -> CorrelatedVAE:
        return _fitted(seed, papers.features, papers.graph)[0]

    def row(points: np.ndarray) -> Row:
        found = [label_accuracy(points, papers.labels, parts) for parts in choices]
        return {"accuracy": float(np.mean(found)), "least": min(found), "largest": max(found)}

    return {"defaults": lambda: row(model().embedding_), "propagated": lambda: row(model().propagate().embedding_)}


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


def _step(graph: CorrelationGraph) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2, where D holds the row sums of A + I."""
    adjacency = graph.to_scipy() + sparse.eye_array(graph.n_vertices)
    scale = sparse.diags_array(1 / np.sqrt(adjacency.sum(1)))
    return sparse.csr_array(scale @ adjacency @ scale)


def _propagate(X: sparse.csr_array, graph: CorrelationGraph) -> sparse.csr_array:
    """Return rows propagated twice along the edges."""
    step = _step(graph)
    return sparse.csr_array(step @ (step @ X))


def _graph_convolution(papers: Citations, seed: int) -> float:
    """Return the accuracy of a graph convolutional network (Kipf and Welling, 2017) with the published settings.

    Two rounds with 16 units between them, dropout 0.5 of words and units, L2 penalty 5e-4 on the first weights, Adam at
    0.01 for 200 epochs, of which the one with the least loss on validation papers counts.
    """
    torch.manual_seed(seed)
    step, words = (matrix.tocoo() for matrix in (_step(papers.graph), normalize(papers.features, "l1")))
    step, words = (
        torch.sparse_coo_tensor(np.stack(each.coords), each.data, each.shape, dtype=torch.float32).coalesce()
        for each in (step, words)
    )
    classes, targets = np.unique(papers.labels, return_inverse=True)
    targets = torch.from_numpy(targets)
    train, validation, test = (
        torch.from_numpy(np.flatnonzero(papers.parts == part)) for part in ("train", "validation", "test")
    )
    first = nn.init.xavier_uniform_(torch.empty(words.shape[1], 16)).requires_grad_()
    second = nn.init.xavier_uniform_(torch.empty(16, len(classes))).requires_grad_()
    optimizer = torch.optim.Adam([{"params": [first], "weight_decay": 5e-4}, {"params": [second]}], lr=0.01)

    def scores(training: bool) -> torch.Tensor:
        kept = torch.sparse_coo_tensor(words.indices(), dropout(words.values(), 0.5, training), words.shape)
        units = dropout((step @ (kept @ first)).relu(), 0.5, training)
        return step @ (units @ second)

    found = []
    for _ in range(200):
        optimizer.zero_grad()
        cross_entropy(scores(training=True)[train], targets[train]).backward()
        optimizer.step()
        with torch.no_grad():
            now = scores(training=False)
        loss = float(cross_entropy(now[validation], targets[validation]))
        found.append((loss, float((now[test].argmax(1) == targets[test]).float().mean())))
    return min(found)[1]


# ---- trust: who trusts whom, from what they rated -----------------------------------------------------------------


def epinions(seed: int) -> Methods:
    """Held-out mutual trust of 16,101 users."""
    settings = {"name": "epinions", "min_ratings": 100, "protocol": "first edition"}
    _, features, parts = links.load(settings, seed)
    record = Path(__file__).parents[1] / f"results/links/old-protocol/ind/seed-{seed}.json"
    return _trust(features, parts["test"].held, parts["test"].known, seed, record)


def ciao(seed: int) -> Methods:
    """Held-out mutual trust of users who rated one of the products with at least 20 ratings."""
    users = read_ciao(min_ratings=20)
    X, graph = users.features, CorrelationGraph(users.graph.edges, users.graph.n_vertices)
    generator = np.random.default_rng(seed)  # held out as in Epinions
    split = split_edges(graph, validation=0.0, random_state=generator)
    known = split_edges(split.known, "random", validation=0.0, test=0.05, random_state=generator).known
    return _trust(X, split.test, known, seed)


def _trust(
    X: sparse.csr_array, held: np.ndarray, known: CorrelationGraph, seed: int, record: Path | None = None
) -> Methods:
    def row(model: CorrelatedVAE, seconds: float | None = None) -> Row:
        return score(model.posterior(), "expected_distance") | {"seconds": seconds}

    def score(points: Posterior, metric: str) -> Row:
        scores = links.score_links(points, make_metric(metric), held, known)
        return {"ncrr": scores["ncrr"], "auc": scores["auc"]}

    def recipe() -> Row:
        entry = next(entry for entry in find_recipe("links", "old-protocol").entries if entry.model == "ind")
        _, seconds = _fitted(seed, X, known, **{**entry.parameters, "max_steps": 500})
        if record is None or not record.exists():
            return row(_fitted(seed, X, known, **entry.parameters)[0], 60 * seconds)
        scores = json.loads(record.read_text())["scores"]
        return {"ncrr": scores["ncrr"], "auc": scores["auc"], "seconds": 60 * seconds}

    fitted = cache(lambda forests: _fitted(seed, X, known, forests=forests))

    def joint(forests: str) -> Row:  # training is that of CVAE_ind, so the seconds are
        return row(fitted(forests)[0].propagate(), fitted(forests)[1])

    return {
        "defaults": lambda: row(*fitted("uniform")),
        "adaptive forests": lambda: row(*fitted("adaptive")),
        "joint": lambda: joint("uniform"),
        "joint, adaptive forests": lambda: joint("adaptive"),
        "VAE": lambda: row(*_fitted(seed, X)),
        "LSA": lambda: score(point_posterior(_lsa(X, _size(X))), "cosine"),
        "recipe": recipe,
    }


# ---- halves: the same user twice ----------------------------------------------------------------------------------


def halves(seed: int) -> Methods:
    """Halves of MovieLens-1M users; the model is fitted to other users than those matched."""
    parts = matching.load({"name": "ml-1m", "min_ratings": 50}, seed)[1]
    train, test = parts["train"], parts["test"]

    def fitted(graph: CorrelationGraph | None) -> Row:
        model, seconds = _fitted(seed, train.features, graph)
        return _matched(model.posterior(test.features), "expected_distance", test) | {"seconds": seconds}

    def lsa() -> Row:
        points = point_posterior(_lsa(train.features, _size(train.features), test.features))
        return _matched(points, "cosine", test)

    return {"defaults": lambda: fitted(train.graph), "VAE": lambda: fitted(None), "LSA": lsa}


def _matched(posterior: Posterior, metric: str, users: HalvedUsers) -> Row:
    return {"reciprocal_rank": matching.score_matching(posterior, make_metric(metric), users)["reciprocal_rank"]}


# ---- generated ----------------------------------------------------------------------------------------------------


def likelihoods(seed: int) -> Methods:
    """The bound on held-out rows under every likelihood that gives a row a probability, and under the one chosen.

    The multinomial is left out: it explains which columns a row has, not how much of them. The Gaussian explains whole
    numbers spread over the unit interval around them, so that its bound is one on their probability too.
    """
    return {kind: partial(_compare_likelihoods, kind, seed) for kind in ("gaussian", "counts", "binary")}


def _compare_likelihoods(kind: str, seed: int) -> Row:
    X = _draw_table(kind, seed)
    row: Row = {"chosen": choose({"likelihood": "auto"}, Table(X[:900]))[0].value}
    for name in ("gaussian", "poisson", "negative_binomial", "bernoulli"):
        spread = np.random.default_rng(seed).uniform(-0.5, 0.5, X.shape) * (name == "gaussian" != kind)
        try:
            row[name] = _fitted(seed, (X + spread)[:900], likelihood=name)[0].score((X + spread)[900:])
        except ValueError:  # cannot explain such numbers
            row[name] = None
    best = max((row[name], name) for name in row if isinstance(row[name], float))[1]
    return row | {"best": best, "right": best == row["chosen"]}


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


def wide(seed: int) -> Methods:
    """Time to the same objective on held-out rows, 1,892 of 17,632 columns, against the first edition's defaults."""
    X, graph = _draw_topics(1892, 17632, 60, 13000, seed)
    old = {"n_components": 100, "tau": 0.99, "batch_size": 64, "edge_batch_size": 256, "learning_rate": 1e-3}
    old |= {"hidden": (300,), "dropout": 0.0, "max_steps": 900, "validation_fraction": 0.1, "patience": None}

    @cache
    def curve(**settings: object) -> np.ndarray:
        begun, found = time.process_time(), []

        def keep(progress: Progress) -> None:
            if progress.evaluation and "validation_total" in progress.evaluation:
                found.append((time.process_time() - begun, progress.evaluation["validation_total"]))

        CorrelatedVAE(random_state=seed, **settings).fit(X, graph=graph, callbacks=[keep])
        return np.array(found)

    def row(found: np.ndarray) -> Row:
        reached = found[found[:, 1] >= curve(**old)[:, 1].max()]
        return {"objective": float(found[:, 1].max()), "seconds": float(reached[0, 0]) if len(reached) else None}

    return {"first edition": lambda: row(curve(**old)), "defaults": lambda: row(curve())}


def first(seed: int) -> Methods:
    """The time of a first fit, with all that is compiled or imported for it: 2,700 rows, 1,400 columns, 5,300 edges."""
    X, graph = _draw_topics(2700, 1400, 20, 5300, seed)
    return {"defaults": lambda: {"seconds": _fitted(seed, X, graph)[1]}}


PARTS: dict[str, Callable[[int], Methods]] = {
    "citeseer": citeseer,
    "labels": labels,
    "ciao": ciao,
    "epinions": epinions,
    "halves": halves,
    "likelihoods": likelihoods,
    "wide": wide,
    "first": first,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=" ".join(PARTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--methods", nargs="+", help="only these")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for part in options.parts:
        for seed in options.seeds:
            for method, measure in PARTS[part](seed).items():
                key = f"{part} {seed} {method}"
                known = any(row["key"] == key for row in merged("defaults", "key", []))
                if (known and not options.again) or method not in (options.methods or [method]):
                    continue
                row = {"key": key, "seed": seed, "command": " ".join(sys.argv), "method": method, **measure()}
                row = {name: round(v, 4) if isinstance(v, float) else v for name, v in row.items()}
                print(json.dumps(row), flush=True)
                rows = merged("defaults", "key", [row])
                write_results("defaults", rows, versions=versions("corrvae", "torch", "scikit-learn"))
    _summarise(merged("defaults", "key", []))


def _summarise(rows: list[dict]) -> None:
    """Print mean and standard error over the seeds of every number, as a table for each part."""
    table = pd.DataFrame(rows)
    table["part"] = table.key.str.split().str[0]
    numbers = list(table.drop(columns="seed").select_dtypes("number").columns)
    for part, own in table.groupby("part", sort=False):
        groups = own.groupby("method", sort=False)[numbers]
        mean, error, count = groups.mean(), groups.sem().fillna(0.0), own.method.value_counts()
        shown = [name for name in numbers if mean[name].notna().any()]
        print("|", " | ".join([f"{part} (seeds)", *(name.replace("_", " ") for name in shown)]), "|")
        print("|---" * (len(shown) + 1) + "|")
        for method, means in mean.iterrows():
            known = [f"{means[n]:.4g} ± {error[n][method]:.2g}" if means[n] == means[n] else "" for n in shown]
            print("|", " | ".join([f"{method} ({count[method]})", *known]), "|")
        right = own.get("right", pd.Series(dtype=object)).dropna()
        print(f"\nright in {right.sum()} of {len(right)} cases\n" if len(right) else "")


if __name__ == "__main__":
    main()
