"""How long do exact neighbours and ranks take, and what do they need? Against the literal evaluation of all pairs.

    python benchmarks/scoring.py [--only NAME ...] [--model FOLDER] [--steps N] [--points N] [--write]

The models are trained on Epinions without the test edges, in a process before; with --model FOLDER they are kept there
and found again, and each row says how many steps and edges its model was trained with. The literal evaluation takes all
unordered pairs, concatenates both points' features, and passes both orders through the perceptron, in blocks of a few
thousand pairs with the same number of threads; it is timed on a few rows, before and after ours, and the faster time is
scaled up. Ours includes preparing what the pair network needs of each point. `by_equality` is the share of pairs spared
because their points equal others, which the literal evaluation does not look for; `by_bounds` the share of the
remaining pairs that the bounds decided. `disagreement` compares scores with the literal ones on these rows.
`factorised` compares with a plain blocked matrix product and top-k of the same numbers.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import tables
from literal import LiteralModel
from measure import answer_if_child, in_child, versions, write_results

THREADS = 2
DIMENSIONS, NEIGHBORS, TEST_EDGES = 100, 20, 18_000
FACTORISED_POINTS = 50_000
MEMORY = 512 * 2**20
# Pair network and gamma. The paper's gamma for links leaves standard deviations near 1, where bounds decide nothing;
# without it on the singletons they shrink.
MODELS = {
    "perceptron": ("perceptron", 1000.0),
    "perceptron, small deviations": ("perceptron", (0.0, 30.0)),
    "bilinear": ("bilinear", 1000.0),
}
# What each ratio must reach; the factorised one is a factor that it may take longer.
WANTED = {
    ("nearest", "perceptron"): 20.0,
    ("ranks", "perceptron"): 10.0,
    ("nearest", "perceptron, small deviations"): 20.0,
    ("ranks", "perceptron, small deviations"): 10.0,
    ("nearest", "bilinear"): 100.0,
    ("factorised", "independent"): 1.5,
}
WANTED_MEGABYTES = 1500


def split_edges(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Training edges, and test edges."""
    order = np.random.default_rng(0).permutation(len(edges))
    n_test = min(TEST_EDGES, len(edges) // 4)
    return edges[np.sort(order[n_test:])], edges[np.sort(order[:n_test])]


def train(*, threads: int, path: str, folder: str, model: str, steps: int) -> dict:
    """Fit and save a model."""
    torch.set_num_threads(threads)
    from corrvae import CorrelatedVAE, CorrelationGraph

    table = tables.Table.load(path)
    pair_network, gamma = MODELS[model]
    settings = {"likelihood": "multinomial", "posterior": "pairwise", "gamma": gamma, "device": "cpu"}
    length = {"max_steps": steps, "evaluate_every": steps, "random_state": 0}
    estimator = CorrelatedVAE(DIMENSIONS, pair_network=pair_network, **settings, **length)
    estimator.fit(table.X, graph=CorrelationGraph(split_edges(table.edges)[0], table.X.shape[0]))
    estimator.save(folder)
    return {"steps": estimator.n_steps_}


def read_points(folder: str, n_points: int | None):
    """The estimator, and its first points."""
    from corrvae import load
    from corrvae.nn import FeatureTable
    from corrvae.scoring.pair_vectors import PairVectors
    from corrvae.scoring.points import Points

    estimator = load(folder)
    rows = slice(n_points)
    vectors = PairVectors(estimator.model_, FeatureTable(estimator.features_[rows]))
    return estimator, Points.of(estimator.embedding_[rows], estimator.stddev_[rows], vectors)


def literal(*, threads: int, folder: str, rows: int, points: int | None) -> dict:
    """The literal evaluation of a few rows: its time for each pair, and its distances for comparison."""
    torch.set_num_threads(threads)
    estimator, ours = read_points(folder, points)
    X = torch.from_numpy(np.asarray(estimator.features_[: len(ours)].todense(), np.float32))
    model = LiteralModel(X.shape[1], DIMENSIONS)
    model.copy_weights(estimator.model_)
    mean, stddev = torch.from_numpy(ours.mean), torch.from_numpy(ours.stddev)
    chosen = np.linspace(0, len(ours) - 1, rows).astype(int)
    distances = np.empty((rows, len(ours)), np.float32)

    def evaluate(i: int) -> np.ndarray:
        pieces = []
        for j in torch.arange(len(X)).split(2048):
            correlation = model.correlation(X[i].expand(len(j), -1), X[j])
            variance = stddev[i] ** 2 + stddev[j] ** 2 - 2 * correlation * stddev[i] * stddev[j]
            pieces.append(((mean[i] - mean[j]) ** 2 + variance).sum(1))
        found = torch.cat(pieces)
        torch.topk(found, min(NEIGHBORS, len(found)), largest=False)
        return found.numpy()

    with torch.no_grad():
        evaluate(0)
        begun = time.perf_counter()
        for place, i in enumerate(chosen):
            distances[place] = evaluate(int(i))
        seconds = time.perf_counter() - begun
    np.savez(f"{folder}-literal.npz", rows=chosen, distances=distances)
    return {"microseconds": 1e6 * seconds / distances.size, "rows": rows}


def nearest(*, threads: int, folder: str, points: int | None, compare: bool) -> dict:
    """All points' nearest neighbours."""
    torch.set_num_threads(threads)
    from corrvae.monitor import watch
    from corrvae.scoring import correlated
    from corrvae.scoring.points import Exclusions

    estimator, ours = read_points(folder, points)
    everyone = np.arange(len(ours))
    oneself = Exclusions.of(len(ours), everyone, everyone)
    compile_kernels(ours)
    settings = {"same": True, "memory": MEMORY}
    begun = time.perf_counter()
    found = watch(lambda monitor: correlated.nearest(ours, ours, NEIGHBORS, oneself, monitor=monitor, **settings))
    report = {"seconds": time.perf_counter() - begun, **account(estimator, ours, found, everyone)}
    if compare:
        with np.load(f"{folder}-literal.npz") as parts:
            rows, distances = parts["rows"], parts["distances"].astype(np.float64)
        distances[np.arange(len(rows)), rows] = np.inf
        wanted = np.sort(distances, axis=1)[:, :NEIGHBORS]
        report["disagreement"] = float(abs(found.scores[rows] / wanted - 1.0).max())
    return report


def ranks(*, threads: int, path: str, folder: str, points: int | None, compare: bool) -> dict:
    """Ranks of both ends of all test edges among all points but oneself and one's training neighbours."""
    torch.set_num_threads(threads)
    from corrvae.monitor import watch
    from corrvae.scoring import correlated
    from corrvae.scoring.points import Exclusions

    estimator, ours = read_points(folder, points)
    training, test = (
        np.concatenate([edges, edges[:, ::-1]])
        for edges in (part[(part < len(ours)).all(1)] for part in split_edges(tables.Table.load(path).edges))
    )
    everyone = np.arange(len(ours))
    pairs = np.concatenate([np.stack([everyone, everyone], axis=1), training])
    exclusions = Exclusions.of(len(ours), *pairs.T)
    compile_kernels(ours)
    settings = {"same": True, "memory": MEMORY}
    begun = time.perf_counter()
    found = watch(lambda monitor: correlated.rank(ours, ours, test, exclusions, monitor=monitor, **settings))
    report = {
        "seconds": time.perf_counter() - begun,
        "pairs_ranked": len(test),
        **account(estimator, ours, found, test[:, 0]),
    }
    if compare:
        with np.load(f"{folder}-literal.npz") as parts:
            rows, distances = parts["rows"], parts["distances"]
        wrong = total = 0
        for row, of_row in zip(rows, distances, strict=True):
            of_row[exclusions.candidates[exclusions.offsets[row] : exclusions.offsets[row + 1]]] = np.inf
            for place in np.flatnonzero(test[:, 0] == row):
                target = of_row[test[place, 1]]
                least, most = ((of_row <= target * factor).sum() for factor in (1 - 1e-5, 1 + 1e-5))
                wrong += not max(1, least) <= found.ranks[place] <= most
                total += 1
        report |= {"ranks_compared": total, "ranks_wrong": int(wrong)}
    return report


def compile_kernels(points) -> None:
    """A small search beforehand, so that compilation is not timed."""
    from corrvae.monitor import Monitor
    from corrvae.scoring import correlated
    from corrvae.scoring.points import Exclusions

    few = points.take(np.arange(min(200, len(points))))
    nobody = Exclusions.of(len(few), np.empty(0, np.int64), np.empty(0, np.int64))
    settings = {"same": True, "memory": MEMORY, "monitor": Monitor()}
    correlated.nearest(few, few, 2, nobody, **settings)
    correlated.rank(few, few, np.stack([np.arange(len(few))] * 2, axis=1), nobody, **settings)


def account(estimator, points, found, asking: np.ndarray) -> dict:
    """What was evaluated, of which model: its own word on its training, since a kept one may be of another run.

    Pairs of distinct points with an end that asks are what is left for the bounds to decide.
    """
    from corrvae.scoring.correlated.distinct import Distinct

    groups = Distinct.of(points)
    asks = np.zeros(len(points), bool)
    asks[asking] = True
    n_silent = int((~np.logical_or.reduceat(asks[groups.members], groups.offsets[:-1])).sum())
    left = (len(groups) * (len(groups) + 1) - n_silent * (n_silent + 1)) // 2
    return {
        "steps": int(estimator.n_steps_),
        "gamma": estimator.gamma,
        "training_edges": int(estimator.graph_.n_edges),
        "points": len(points),
        "distinct": len(groups),
        "pairs": found.n_pairs,
        "distinct_pairs": left,
        "evaluated": found.n_evaluated,
        "by_equality": max(0.0, 1.0 - left / found.n_pairs),
        "by_bounds": max(0.0, 1.0 - found.n_evaluated / left),
        "median_stddev": float(np.median(points.stddev)),
    }


def factorised(*, threads: int, points: int) -> dict:
    """Independent posteriors: our neighbours, and a plain blocked product with top-k, in turns."""
    torch.set_num_threads(threads)
    from corrvae.scoring.metrics import ExpectedDistance
    from corrvae.scoring.neighbors import nearest as search
    from corrvae.scoring.points import Exclusions, Points

    generator = np.random.default_rng(0)
    mean = generator.normal(size=(points, DIMENSIONS)).astype(np.float32)
    ours = Points.of(mean, np.exp(0.3 * generator.normal(size=mean.shape) - 1.0))
    everyone = np.arange(points)
    oneself = Exclusions.of(points, everyone, everyone)

    def plain() -> None:
        left = torch.from_numpy(mean)
        # the sizes as one more column, so that the product is all there is
        right = torch.cat([-2.0 * left, (left**2).sum(1, keepdim=True)], dim=1).T.contiguous()
        left = torch.cat([left, torch.ones(points, 1)], dim=1)
        for rows in torch.arange(points).split(1024):
            torch.topk(torch.mm(left[rows], right), NEIGHBORS, largest=False)

    works = {"ours": lambda: search(ours, ours, ExpectedDistance(), NEIGHBORS, oneself, same=True), "plain": plain}
    seconds = dict.fromkeys(works, float("inf"))
    for _ in range(3):
        for name, work in works.items():
            begun = time.perf_counter()
            work()
            seconds[name] = min(seconds[name], time.perf_counter() - begun)
    return {"seconds": seconds["ours"], "plain": seconds["plain"], "ratio": seconds["ours"] / seconds["plain"]}


def measure(arguments: argparse.Namespace, home: Path) -> list[dict]:
    """All rows of the table."""
    rows = []
    if "factorised" in arguments.only:
        shrunk = arguments.points or FACTORISED_POINTS
        report = in_child(__file__, "factorised", threads=THREADS, points=min(FACTORISED_POINTS, shrunk))
        rows.append({"question": "factorised", "model": "independent", **report})
        print("  ", rows[-1], flush=True)
    asked = [key for key in WANTED if key[0] in ("nearest", "ranks") and key[1] in arguments.only]
    if not asked:
        return rows
    table = tables.epinions()
    origin = "original" if table is not None else "generated"
    path = (table or tables.like_epinions()).save(home / "epinions.npz")
    for model in dict.fromkeys(("perceptron", *(model for _, model in asked))):
        if not (home / model).exists():
            numbers = {"path": path, "folder": str(home / model), "model": model, "steps": arguments.steps}
            print("  ", "train", model, in_child(__file__, "train", threads=THREADS, **numbers))
    numbers = {"threads": THREADS, "points": arguments.points}
    perceptrons = [
        model for model, (network, _) in MODELS.items() if network == "perceptron" and (home / model).exists()
    ]
    bases = [{"folder": str(home / model), "rows": arguments.rows, **numbers} for model in perceptrons]
    literal_times = [in_child(__file__, "literal", **base) for base in bases]
    found = []
    for question, model in asked:
        more = {"folder": str(home / model), "compare": model in perceptrons, **numbers}
        more |= {"path": path} if question == "ranks" else {}
        report = in_child(__file__, question, **more)
        found.append({"question": question, "model": model, "origin": origin, **report})
        print("  ", found[-1], flush=True)
    # once more at the end, and the faster counts: a machine that was busy for a while must not flatter us
    literal_times.append(in_child(__file__, "literal", **bases[0]))
    print("  ", "literal", literal_times, flush=True)
    if any("failed" in times for times in literal_times):
        return rows + found
    microseconds = [times["microseconds"] for times in literal_times]
    for row in found:
        if "failed" not in row:
            row["literal_microseconds"] = microseconds
            row["literal_seconds"] = 1e-6 * min(microseconds) * row["points"] * (row["points"] - 1) / 2
            row["ratio"] = row["literal_seconds"] / row["seconds"]
    return rows + found


def print_table(rows: list[dict]) -> None:
    for row in rows:
        name = f"{row['question']:12}{row['model']:30}"
        wanted = WANTED[row["question"], row["model"]]
        if "failed" in row or "ratio" not in row:
            print(f"{name}failed: {row.get('failed', 'the literal evaluation')}")
        elif row["question"] == "factorised":
            numbers = (
                f"{row['seconds']:8.1f} s, plain {row['plain']:.1f} s, ratio {row['ratio']:.2f} (at most {wanted})"
            )
            print(f"{name}{numbers}, {row['peak_megabytes']} MB")
        else:
            numbers = f"{row['seconds']:8.1f} s, literal {row['literal_seconds']:.0f} s, ratio {row['ratio']:.1f}"
            share = f"spared {row['by_equality']:.1%} by equality, {row['by_bounds']:.1%} of the rest by bounds"
            memory = f"{row['peak_megabytes']} MB (under {WANTED_MEGABYTES})"
            print(f"{name}{numbers} (at least {wanted:.0f}), {share}, {memory}")


def main() -> None:
    names = (*MODELS, "factorised")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--model", type=Path, help="folder that keeps the trained models")
    parser.add_argument("--steps", type=int, default=1500, help="steps that the models are trained for")
    parser.add_argument("--rows", type=int, default=16, help="rows that the literal evaluation is timed on")
    parser.add_argument("--points", type=int, help="only so many points, for a quick look")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/scoring.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = arguments.model or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        rows = measure(arguments, home)
    print_table(rows)
    if arguments.write:
        about = {"command": "CORRVAE_DATA=... python benchmarks/scoring.py --write", "threads": THREADS, "seed": 0}
        print(write_results("scoring", rows, **about, versions=versions("numpy", "scipy", "numba", "torch")))


if __name__ == "__main__":
    answer_if_child({"train": train, "literal": literal, "nearest": nearest, "ranks": ranks, "factorised": factorised})
    os.environ.setdefault("CORRVAE_DATA", "data")
    main()
