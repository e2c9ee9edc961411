"""How much faster are the 20 nearest neighbours of all Epinions users than the literal evaluation? At least 20 times.

    CORRVAE_DATA=... python benchmarks/scoring.py [--network perceptron] [--points N] [--rows N] [--write]

The literal evaluation takes all unordered pairs, concatenates the dense features of both points and passes both orders
through the perceptron, a few thousand pairs at a time. It is timed on a few rows before and after ours, with the same
number of threads, and the faster time is scaled up to all unordered pairs. Ours includes preparing each point. Without
the original files the features are generated, a fifth of the rows as copies of others, as in the original.
`disagreement` compares the scores of both on these rows.
"""

import argparse
import time

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array

import tables
from literal import LiteralModel
from measure import answer_if_child, in_child, versions, write_results

THREADS, DIMENSIONS, NEIGHBORS = 2, 100, 20
# What the ratio must reach. Other networks are compared with the literal perceptron.
WANTED = {"perceptron": 20.0, "bilinear": 100.0, "metric": 100.0}


def features(n_points: int | None) -> tuple[csr_array, str]:
    """Return the features, and where they come from."""
    table = tables.epinions()
    if table is not None:
        return table.X[:n_points], "original"
    X, generator = tables.like_epinions().X, np.random.default_rng(0)
    rows = np.arange(X.shape[0])
    copies = generator.random(len(rows)) < 0.2
    rows[copies] = generator.choice(rows[~copies], copies.sum())
    return X[rows[:n_points]], "generated"


def literal_rows(model: LiteralModel, X: torch.Tensor, posterior, rows: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the microseconds for each pair, and the distances of some rows to all."""
    mean, stddev = torch.from_numpy(posterior.mean), torch.from_numpy(posterior.stddev)
    distances = np.empty((len(rows), len(X)), np.float32)
    begun = time.perf_counter()
    for place, i in enumerate(rows):
        pieces = []
        for j in torch.arange(len(X)).split(2048):
            rho = model.correlation(X[i].expand(len(j), -1), X[j])
            variance = stddev[i] ** 2 + stddev[j] ** 2 - 2 * rho * stddev[i] * stddev[j]
            pieces.append(((mean[i] - mean[j]) ** 2 + variance).sum(1))
        found = torch.cat(pieces)
        torch.topk(found, NEIGHBORS, largest=False)
        distances[place] = found.numpy()
    return 1e6 * (time.perf_counter() - begun) / distances.size, distances


def compare(*, threads: int, network: str, points: int | None, rows: int) -> dict:
    """Time both in one process."""
    torch.set_num_threads(threads)
    from corrvae import CorrelatedVAE, CorrelationGraph, Pairwise
    from corrvae.scoring import nearest

    X, origin = features(points)
    n_points = X.shape[0]
    ring = CorrelationGraph(np.stack([np.arange(n_points - 1), np.arange(1, n_points)], axis=1), n_points)
    settings = {"likelihood": "multinomial", "max_steps": 100, "device": "cpu", "random_state": 0}
    estimator = CorrelatedVAE(DIMENSIONS, family=Pairwise(network), normalize="none", **settings).fit(X, graph=ring)
    posterior = estimator.posterior()
    model = LiteralModel(X.shape[1], DIMENSIONS)
    if network == "perceptron":
        model.copy_weights(estimator.model_)
    dense = torch.from_numpy(np.asarray(X.todense(), np.float32))
    chosen = np.linspace(0, n_points - 1, rows).astype(int)
    few = posterior.take(np.arange(min(600, n_points)))
    nearest(few, few, "expected_distance", 2)  # compiles
    with torch.inference_mode():
        literal_rows(model, dense, posterior, chosen[:1])
        before, distances = literal_rows(model, dense, posterior, chosen)
        begun = time.perf_counter()
        oneself = csr_array(eye_array(n_points))
        _, scores = nearest(posterior, posterior, "expected_distance", NEIGHBORS, exclude=oneself)
        seconds = time.perf_counter() - begun
        after, _ = literal_rows(model, dense, posterior, chosen)
    distances[np.arange(rows), chosen] = np.inf
    wanted = np.sort(distances.astype(np.float64), axis=1)[:, :NEIGHBORS]
    literal_seconds = 1e-6 * min(before, after) * n_points * (n_points - 1) / 2
    return {
        "network": network,
        "origin": origin,
        "points": n_points,
        "distinct": len(np.unique(posterior.mean, axis=0)),
        "seconds": seconds,
        "literal_microseconds": [before, after],
        "literal_seconds": literal_seconds,
        "ratio": literal_seconds / seconds,
        "disagreement": float(abs(scores[chosen] / wanted - 1).max()) if network == "perceptron" else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=WANTED, default="perceptron")
    parser.add_argument("--points", type=int, help="only so many points, for a quick look")
    parser.add_argument("--rows", type=int, default=16, help="rows that the literal evaluation is timed on")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/scoring.json")
    chosen = parser.parse_args()
    settings = {"network": chosen.network, "points": chosen.points, "rows": chosen.rows}
    report = in_child(__file__, "compare", threads=THREADS, **settings)
    if "failed" in report:
        raise SystemExit(f"failed: {report['failed']}")
    print(report)
    print(
        f"{report['network']}: {report['seconds']:.1f} s, literal {report['literal_seconds']:.0f} s, ratio "
        f"{report['ratio']:.1f} (at least {WANTED[chosen.network]:.0f}), {report['peak_megabytes']} MB"
    )
    if chosen.write:
        about = {"command": "CORRVAE_DATA=... python benchmarks/scoring.py --write", "threads": THREADS, "seed": 0}
        print(write_results("scoring", [report], **about, versions=versions("numpy", "scipy", "numba", "torch")))


if __name__ == "__main__":
    answer_if_child({"compare": compare})
    main()
