"""What grows with the number of vertices? From 10,000 vertices to a million.

    python benchmarks/scale.py [--sizes 10k,100k,1M] [--inputs features,graph] [--steps N] [--write]

Each size is one process that does what a user does: fit CVAE_corr at the paper's sizes, with the bilinear pair network
or with graph inputs, embed all rows, and find the 20 nearest, or likeliest links, of 1,000 points. Ratings and graph
are generated with power laws: 20 items of 3,000 a row, 5 edges a vertex. Memory is the peak of that process.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import tables
from graphs import scale_free
from measure import answer_if_child, in_child, merged, versions, write_results

THREADS = 2
COLUMNS, RATINGS, EDGES = 3_000, 20, 5
QUERIES, NEIGHBORS = 1_000, 20
SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000}


def measure(*, threads: int, path: str, steps: int, inputs: str) -> dict:
    """Fit, embed and search, and time each."""
    import torch

    from corrvae import CorrelatedVAE, CorrelationGraph, Pairwise, spanning_weights

    torch.set_num_threads(threads)
    table = tables.Table.load(path)
    graph = CorrelationGraph.from_edges(table.edges, n_vertices=table.X.shape[0])
    begun = time.perf_counter()
    spanning_weights(graph, random_state=0, progress=False)
    weights_seconds = time.perf_counter() - begun
    seen: list[float] = []
    family = Pairwise("bilinear", inputs=inputs)
    model = CorrelatedVAE(likelihood="multinomial", family=family, max_steps=steps, random_state=0)
    begun = time.perf_counter()
    model.fit(table.X, graph=graph, callbacks=[lambda progress: seen.append(progress.seconds)])
    fit_seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    model.transform(table.X)
    embedding_seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    metric = "log_odds" if inputs == "graph" else "expected_distance"
    model.kneighbors(ids=np.arange(QUERIES), n_neighbors=NEIGHBORS, metric=metric, progress=False)
    return {
        "fit_seconds": fit_seconds,
        "weights_seconds": weights_seconds,
        "step_ms": 1e3 * float(np.median(np.diff(seen[steps // 10 :]))),
        "embedding_seconds": embedding_seconds,
        "neighbors_seconds": time.perf_counter() - begun,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="10k,100k,1M")
    parser.add_argument("--inputs", default="features,graph")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/scale.json")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in arguments.sizes.split(","):
            n = SIZES[size]
            table = tables.Table(tables.sparse_rows(n, COLUMNS, RATINGS), scale_free(n, EDGES, 0))
            path = table.save(Path(folder) / f"{size}.npz")
            for inputs in arguments.inputs.split(","):
                options = {"path": path, "steps": arguments.steps, "inputs": inputs}
                found = in_child(__file__, "measure", threads=THREADS, **options)
                rows.append({"key": f"{size} {inputs}", "vertices": n, "inputs": inputs} | found)
                print(rows[-1], flush=True)
    if arguments.write:
        about = {"command": "python benchmarks/scale.py --write", "threads": THREADS, "seed": 0}
        about["versions"] = versions("numpy", "scipy", "numba", "torch")
        print(write_results("scale", merged("scale", "key", rows), **about))


if __name__ == "__main__":
    answer_if_child({"measure": measure})
    main()
