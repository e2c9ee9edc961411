"""What is the joint posterior worth, and what does it cost? Latents of a tree, newcomers, epochs, a million vertices.

    CORRVAE_DATA=folder python benchmarks/joint.py [tree cold epoch million] [--seeds 0 1 2] [--again]

A row for each seed and method is printed and kept in benchmarks/results/joint.json; rows that are there are left out.

- tree: R^2 of a linear map from the means to the latents that the paper's tree was drawn with, and NMI.
- cold: users of Ciao whose ratings are all hidden, found from mutual trust alone. 15 % of the users are for choosing
  (the weights of the simple methods, samples or mean for ours), 15 % are scored.
- epoch: Epinions, 100 dimensions. One forest with every vertex, against the steps that draw each row once. Seconds are
  of processor time on one thread.
- million: 1,000,000 vertices, 3,000,000 edges and 32 dimensions, and a tenth of all.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from scipy import sparse
from sklearn.linear_model import LinearRegression

import tables
from corrvae import CorrelatedVAE, CorrelationGraph, Joint
from corrvae.datasets import ciao, epinions
from corrvae.datasets import tree as draw_tree
from corrvae.experiments.clustering import score_clustering
from corrvae.experiments.models import point_posterior
from corrvae.experiments.recommend import FoldedUsers, judge
from corrvae.graphs.forests import ForestSampler
from corrvae.model.propagation import propagate
from corrvae.scoring import make_metric
from graphs import scale_free
from measure import answer_if_child, in_child, merged, versions, write_results

Row = dict[str, object]


def tree(seed: int) -> dict[str, Callable[[], Row]]:
    """Latents recovered, of the paper's tree, by default settings."""
    drawn = draw_tree(10_000, 1000, random_state=seed)

    def row(points: np.ndarray) -> Row:
        found = LinearRegression().fit(points, drawn.latents).score(points, drawn.latents)
        nmi = score_clustering(point_posterior(points), make_metric("mean_distance"), drawn.labels)["nmi"]
        return {"r2": float(found), "nmi": nmi}

    def fitted(family: str) -> Row:
        return row(CorrelatedVAE(family=family, random_state=seed).fit(drawn.features, graph=drawn.graph).embedding_)

    return {
        "CVAE_ind": lambda: fitted("independent"),
        "joint": lambda: fitted("joint"),
        "true latents": lambda: row(drawn.latents),
    }


def cold(seed: int) -> dict[str, Callable[[], Row]]:
    """Items of newcomers, from the people they trust."""
    data = ciao(min_ratings=20)
    n_users = data.graph.n_vertices
    order = np.random.default_rng(seed).permutation(n_users)
    parts = {
        "validation": np.sort(order[: 3 * n_users // 20]),
        "test": np.sort(order[3 * n_users // 20 :][: 3 * n_users // 20]),
    }
    new = np.sort(np.concatenate(list(parts.values())))
    known = np.setdiff1d(np.arange(n_users), new)
    kept = sparse.diags_array(np.isin(np.arange(n_users), known).astype(np.float32))
    seen = sparse.csr_array(kept @ data.features)
    adjacency = sparse.csr_array(data.graph.to_scipy(), dtype=np.float64)
    adjacency.data[:] = 1.0
    steps = sparse.diags_array(1.0 / np.maximum(adjacency.sum(axis=1), 1.0)) @ adjacency
    popular = np.asarray(seen.sum(axis=0)).ravel() / len(known)

    def judged(top: np.ndarray, users: np.ndarray) -> dict[str, float]:
        hidden = sparse.csr_array(data.features[users])
        found = judge(top, FoldedUsers(sparse.csr_array(hidden.shape), hidden))
        return {name: found[name] for name in ("ndcg_100", "recall_20")}

    def best_of(tried: list[tuple[str, Callable[[np.ndarray], np.ndarray]]]) -> Row:
        """Choose on the validation users, score on the others."""
        scores = [judged(top(parts["validation"]), parts["validation"])["ndcg_100"] for _, top in tried]
        chosen, top = tried[int(np.argmax(scores))]
        return {"chosen": chosen, "validation_ndcg_100": max(scores), **judged(top(parts["test"]), parts["test"])}

    def scored(score: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda users: np.argsort(-score[users], axis=1, kind="stable")[:, :100]

    def simple(first: sparse.csr_array, second: Callable[[float], np.ndarray] | None = None) -> Row:
        one = (first @ seen).toarray()
        tried = []
        for weight in (0.0,) if second is None else (0.1, 0.3, 1.0, 3.0, 10.0):
            for share in (1e-3, 0.1, 0.3, 1.0):
                both = one if second is None else one + second(weight)
                tried.append((f"two steps {weight}, popularity {share}", scored(both + share * popular)))
        return best_of(tried)

    def ours(family: str) -> Row:
        begun = time.process_time()
        links = CorrelationGraph.from_edges(data.graph.edges.tolist(), vertices=range(n_users))
        if family == "independent":
            model = CorrelatedVAE(random_state=seed).fit(seen[known], graph=links[known], ids=known)
            rows = sparse.csr_array((1, seen.shape[1]), dtype=np.float32)
            top = model.recommend(rows, k=100).ids
            return best_of([("zero row", lambda users: np.repeat(top, len(users), axis=0))])
        model = CorrelatedVAE(family=family, random_state=seed).fit(seen[known], graph=links, ids=known)
        seconds = round(time.process_time() - begun, 1)
        found = best_of(
            [
                (f"{n} samples", lambda users, n=n: model.recommend(ids=users, k=100, n_samples=n).ids.astype(int))
                for n in (0, 16)
            ]
        )
        return found | {"seconds": seconds}

    def friends_and_theirs(walk: sparse.csr_array) -> Row:
        two = (walk @ (walk @ seen)).toarray()
        return simple(walk, lambda weight: weight * two)

    return {
        "popularity": lambda: best_of([("", scored(np.tile(popular, (n_users, 1))))]),
        "friends": lambda: simple(adjacency),
        "mean of friends": lambda: simple(steps),
        "two hops": lambda: friends_and_theirs(adjacency),
        "mean of two hops": lambda: friends_and_theirs(steps),
        "zero row, CVAE_ind": lambda: ours("independent"),
        "joint": lambda: ours("joint"),
    }


def epoch(seed: int) -> dict[str, Callable[[], Row]]:
    """An epoch, and the part of it that forests and belief propagation take."""
    data = epinions()
    graph = CorrelationGraph(data.graph.edges, data.graph.n_vertices)

    def seconds(n_epochs: int, **settings: object) -> float:
        times: list[float] = []
        model = CorrelatedVAE(100, random_state=seed, max_epochs=n_epochs, **settings)
        model.fit(data.features, graph=graph, callbacks=[lambda progress: times.append(time.process_time())])
        per_epoch = len(times) // n_epochs
        return float(np.median(np.diff(times[per_epoch - 1 :: per_epoch])))

    def propagation() -> Row:
        sampler, tau = ForestSampler(graph), torch.full((100,), 0.9, dtype=torch.float64)
        evidence = torch.rand(2, graph.n_vertices, 100, requires_grad=True)
        times = []
        for number in range(6):
            begun = time.process_time()
            found = propagate(evidence[0], evidence[1], tau, sampler.draw(number))
            (found.mean.sum() + found.variance.sum() + found.kl.sum()).backward()
            times.append(time.process_time() - begun)
        return {"seconds": float(np.median(times[1:]))}

    return {
        "CVAE_ind": lambda: {"seconds": seconds(4)},
        "joint, whole forests": lambda: {"seconds": seconds(6, family=Joint(block_size=None))},
        "forest and propagation": propagation,
    }


def fit_large(*, threads: int, n_vertices: int) -> Row:
    """Fit one epoch and infer, in this process."""
    torch.set_num_threads(threads)
    X = tables.sparse_rows(n_vertices, 1000, 10)
    graph = CorrelationGraph.from_edges(scale_free(n_vertices, 3, 0), n_vertices=n_vertices)
    begun = time.perf_counter()
    model = CorrelatedVAE(32, family="joint", max_epochs=1, likelihood="multinomial", random_state=0).fit(
        X, graph=graph
    )
    fitted = time.perf_counter()
    model.posterior(graph=[(0, n_vertices)])  # propagates once more, with a newcomer
    return {
        "edges": graph.n_edges,
        "fit_microseconds": 1e6 * (fitted - begun) / n_vertices,
        "infer_microseconds": 1e6 * (time.perf_counter() - fitted) / n_vertices,
    }


def million(seed: int) -> dict[str, Callable[[], Row]]:
    """Memory, and time of each vertex."""
    return {
        f"{n:,} vertices": lambda n=n: in_child(__file__, "fit_large", threads=2, n_vertices=n)
        for n in (100_000, 1_000_000)
    }


PARTS = {"tree": tree, "cold": cold, "epoch": epoch, "million": million}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=" ".join(PARTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for part in options.parts:
        for seed in options.seeds if part in ("tree", "cold") else [0]:
            for method, measure in PARTS[part](seed).items():
                key = f"{part} {seed} {method}"
                if not options.again and any(row["key"] == key for row in merged("joint", "key", [])):
                    continue
                with warnings.catch_warnings(action="ignore"):  # a few epochs are too few to level off
                    row = {"key": key, "seed": seed, "command": " ".join(sys.argv), "method": method, **measure()}
                row = {name: round(v, 4) if isinstance(v, float) else v for name, v in row.items()}
                print(json.dumps(row), flush=True)
                write_results("joint", merged("joint", "key", [row]), versions=versions("corrvae", "torch", "numba"))


if __name__ == "__main__":
    answer_if_child({"fit_large": fit_large})
    main()
