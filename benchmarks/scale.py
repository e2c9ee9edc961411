"""What grows with the number of vertices? From 10,000 vertices to a million.

    python benchmarks/scale.py [--sizes 10k,100k,1M] [--steps N] [--write]

Each size is one process that does what a user does: fit CVAE_corr with the bilinear pair network at the paper's sizes,
embed all rows, and find the 20 nearest of 1,000 points. Ratings and graph are generated with power laws: 20 items
of 3,000 a row, 5 edges a vertex. Memory is the peak of that process.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import tables
from graphs import scale_free
from measure import answer_if_child, in_child, versions, write_results

THREADS = 2
COLUMNS, RATINGS, EDGES = 3_000, 20, 5
QUERIES, NEIGHBORS = 1_000, 20
SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000}


def measure(*, threads: int, path: str, steps: int) -> dict:
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
    model = CorrelatedVAE(likelihood="multinomial", family=Pairwise("bilinear"), max_steps=steps, random_state=0)
    model.fit(table.X, graph=graph, callbacks=[lambda progress: seen.append(progress.seconds)])
    begun = time.perf_counter()
    model.transform(table.X)
    embedding_seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    model.kneighbors(ids=np.arange(QUERIES), n_neighbors=NEIGHBORS, progress=False)
    return {
        "weights_seconds": weights_seconds,
        "step_ms": 1e3 * float(np.median(np.diff(seen[steps // 10 :]))),
        "embedding_seconds": embedding_seconds,
        "neighbors_seconds": time.perf_counter() - begun,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="10k,100k,1M")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/scale.json")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in arguments.sizes.split(","):
            n = SIZES[size]
            table = tables.Table(tables.sparse_rows(n, COLUMNS, RATINGS), scale_free(n, EDGES, 0))
            path = table.save(Path(folder) / f"{size}.npz")
            rows.append(
                {"vertices": n} | in_child(__file__, "measure", threads=THREADS, path=path, steps=arguments.steps)
            )
            print(rows[-1], flush=True)
    if arguments.write:
        about = {"command": "python benchmarks/scale.py --write", "threads": THREADS, "seed": 0}
        print(write_results("scale", rows, **about, versions=versions("numpy", "scipy", "numba", "torch")))


if __name__ == "__main__":
    answer_if_child({"measure": measure})
    main()
