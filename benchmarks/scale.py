"""What grows with the number of vertices, and what do two processes gain? From 10,000 vertices to a million.

    python benchmarks/scale.py [--sizes 10k,100k,1M] [--steps N] [--quick] [--write]

Each size is one process that does what a user does: fit CVAE_corr with the bilinear pair network at the paper's sizes
(spanning weights, steps, the embedding of all rows), embed all rows again, and look for the 20 nearest of 1,000 points.
Ratings and graph are generated, both with a power law: 20 items of 3,000 a row, 5 edges a vertex. Memory is the peak of
that process. Then one process and two, of one thread and core each, do the same work through PyTorch's launcher: with
one saved model for embeddings and neighbours, and with the fit that each makes for steps and spanning weights.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

import tables
from graphs import scale_free
from measure import THREAD_VARIABLES, answer_if_child, in_child, versions, write_results

THREADS = 2
COLUMNS, RATINGS, EDGES = 3_000, 20, 5
QUERIES, NEIGHBORS = 1_000, 20
SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000}
WARM_UP = 50
PICTURE = Path(__file__).parent.parent / "docs" / "scale.svg"
# what a figure is of, and how it is written
MEASURED = {
    "weights_seconds": "spanning weights, s",
    "step_ms": "a step, ms",
    "embedding_seconds": "embedding of all, s",
    "neighbors_seconds": "20 nearest of 1,000, s",
    "peak_gigabytes": "peak memory, GB",
}
SHARED = ("weights", "step", "embedding", "neighbors")
WANTED = {"step_ratio": 1.3, "peak_gigabytes": 8.0}
# By how much one process and two may differ. With one model they give the same numbers. Training sums gradients in
# another order, and Adam makes the last digits of float32 grow from step to step: latents have a spread of about 1.
TOLERANCES = {"weights": 0.0, "step": 1e-2, "embedding": 0.0, "neighbors": 0.0}


def make_table(n_vertices: int) -> tables.Table:
    edges = np.sort(scale_free(n_vertices, EDGES, 0), axis=1)
    return tables.Table(tables.sparse_rows(n_vertices, COLUMNS, RATINGS), edges[np.lexsort(edges.T[::-1])])


def table_at(folder: Path, size: str) -> str:
    """Give the file of a size's table, made where it is not there."""
    path = folder / f"{size}.npz"
    return str(path) if path.exists() else make_table(SIZES[size]).save(path)


def fit(table: tables.Table, steps: int):
    """Fit the model; give it, what its spanning weights were, and the seconds of each step after a warm-up."""
    from corrvae import CorrelatedVAE, CorrelationGraph, fitting

    found, seconds = [], []
    solve = fitting.spanning_weights

    def remember(*given, **options):
        found.append(solve(*given, **options))
        return found[-1]

    fitting.spanning_weights = remember
    try:
        model = CorrelatedVAE(
            posterior="pairwise",
            pair_network="bilinear",
            likelihood="multinomial",
            max_steps=steps,
            evaluate_every=10**9,
            random_state=0,
        )
        graph = CorrelationGraph(table.edges, table.X.shape[0])
        model.fit(table.X, graph=graph, callbacks=[lambda progress: seconds.append(progress.seconds)])
    finally:
        fitting.spanning_weights = solve
    return model, found[0], np.diff(seconds)[min(WARM_UP, steps // 2) :]


def warm_up() -> None:
    """Compile what will be measured, on a small table."""
    small = make_table(2_000)
    model, *_ = fit(small, 3)
    from corrvae import CorrelationGraph, spanning_weights

    spanning_weights(CorrelationGraph(small.edges, 2_000), "sketch", epsilon=0.2, random_state=0, progress=False)
    model.kneighbors(np.arange(100), n_neighbors=NEIGHBORS, progress=False)


def whole(*, threads: int, path: str, steps: int, queries: int) -> dict:
    """Everything that is done for one size."""
    import torch

    torch.set_num_threads(threads)
    warm_up()
    table = tables.Table.load(path)
    n_rows = table.X.shape[0]
    begun = time.perf_counter()
    model, weights, steps_seconds = fit(table, steps)
    fitted = time.perf_counter()
    model.transform(table.X)
    embedded = time.perf_counter()
    asked = np.linspace(0, n_rows - 1, queries).astype(np.int64)
    model.kneighbors(asked, n_neighbors=NEIGHBORS, exclude="self", progress=False)
    ended = time.perf_counter()
    return {
        "n_edges": len(table.edges),
        "weights_seconds": weights.seconds,
        "weights_method": weights.method,
        "weights_route": weights.route,
        "step_ms": 1e3 * median(steps_seconds),
        "steps": steps,
        "fit_seconds": fitted - begun,
        "embedding_seconds": embedded - fitted,
        "rows_a_second": n_rows / (embedded - fitted),
        "neighbors_seconds": ended - embedded,
        "in_all_seconds": ended - begun,
    }


def shared(*, threads: int, path: str, folder: str, steps: int, queries: int) -> dict:
    """The same work in one process or in several, which divide it; the first of one saves the model that all ask."""
    import torch

    from corrvae import load
    from corrvae.inference import infer_posterior
    from corrvae.nn import FeatureTable
    from corrvae.ranks import alone, join_ranks

    torch.set_num_threads(threads)
    if hasattr(os, "sched_setaffinity"):  # spanning weights take as many threads as there are cores to run on
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ.get("LOCAL_RANK", "0")) % len(cores)]})
    with join_ranks() as ranks:
        with alone():
            warm_up()
        table = tables.Table.load(path)
        ranks.wait()
        model, weights, step_seconds = fit(table, steps)
        trained = model.embedding_
        if ranks.count == 1:
            model.save(folder)
        model = load(folder)
        asked = np.linspace(0, table.X.shape[0] - 1, queries).astype(np.int64)
        ranks.wait()
        begun = time.perf_counter()
        posterior = infer_posterior(model.model_, FeatureTable(table.X), ranks=ranks)
        embedded = time.perf_counter()
        near = model.kneighbors(asked, n_neighbors=NEIGHBORS, exclude="self", progress=False)
        ended = time.perf_counter()
        if not ranks.is_first:  # callbacks, and so the seconds of steps, are those of the first
            return {"rank": ranks.index}
        results = dict(zip(SHARED, (weights.weights, trained, posterior.mean, near.scores), strict=True))
        np.savez(Path(folder).parent / f"of-{ranks.count}.npz", **results, ids=near.ids)
        seconds = weights.seconds, median(step_seconds), embedded - begun, ended - embedded
        return {"rank": 0, **dict(zip(SHARED, seconds, strict=True))}


def launch(count: int, **arguments: object) -> dict:
    """Call `shared` in several processes, as PyTorch's launcher starts them; give what the first reports."""
    call = json.dumps({"name": "shared", "threads": 1, "arguments": arguments})
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    done = subprocess.run(
        [*launcher, __file__, "--child", call], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith("[rank")]
        return {"failed": (said or done.stderr.splitlines() or ["no message"])[-1]}
    reports = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return next(report for report in reports if report["rank"] == 0)


def compare(path: str, folder: Path, n_vertices: int, steps: int, queries: int) -> list[dict]:
    """One process against two: seconds of each kind of work, and by how much results differ."""
    arguments = {"path": path, "folder": str(folder / "model"), "steps": steps, "queries": queries}
    one, two = (launch(count, **arguments) for count in (1, 2))
    for report in (one, two):
        if "failed" in report:
            return [{"question": "processes", "n_vertices": n_vertices, **report}]
    with np.load(folder / "of-1.npz") as of_one, np.load(folder / "of-2.npz") as of_two:
        differences = {name: float(abs(of_one[name] - of_two[name]).max()) for name in SHARED}
        differences["ids"] = float((of_one["ids"] != of_two["ids"]).sum())
    rows = []
    for name in SHARED:
        times = {"one_seconds": one[name], "two_seconds": two[name], "ratio": one[name] / two[name]}
        row = {"question": "processes", "n_vertices": n_vertices, "work": name, **times}
        rows.append(row | {"difference": differences[name]})
    rows[-1]["different_ids"] = differences["ids"]
    return rows


def slope(sizes: list[int], values: list[float]) -> float:
    """Power of the number of vertices that values grow by."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def draw(rows: list[dict], path: Path) -> None:
    """Draw how figures grow, on scales where a power law is a line."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    sizes = [row["n_vertices"] for row in rows]
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "corrvae", "font.size": 11}):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        axes = figure.subplots()
        for name, label in MEASURED.items():
            values = [row[name] for row in rows]
            axes.loglog(sizes, values, "o-", label=f"{label}: slope {slope(sizes, values):.2f}")
        axes.set_xlabel("vertices")
        axes.grid(True, which="major", alpha=0.4)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside right upper", frameon=False, fontsize=9)
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def print_table(rows: list[dict]) -> None:
    for row in rows:
        size = f"{row['n_vertices']:>9,} vertices  "
        if "failed" in row:
            print(f"{size}{row['question']} failed: {row['failed']}")
        elif row["question"] == "size":
            print(
                f"{size}weights {row['weights_seconds']:7.2f} s ({row['weights_method']})  step {row['step_ms']:6.2f}"
                f" ms  embedding {row['rows_a_second']:9,.0f} rows/s  neighbours {row['neighbors_seconds']:7.2f} s"
                f"  peak {row['peak_gigabytes']:.2f} GB  in all {row['in_all_seconds']:.0f} s"
            )
        else:
            print(
                f"{size}{row['work']:10} one process {row['one_seconds']:8.3f} s  two {row['two_seconds']:8.3f} s"
                f"  ratio {row['ratio']:.2f}  largest difference {row['difference']:.1e}"
            )


def print_growth(rows: list[dict]) -> None:
    """Tell how figures grow from the smallest size to the largest."""
    sizes = [row["n_vertices"] for row in rows]
    for name, label in MEASURED.items():
        print(f"slope of {label}: {slope(sizes, [row[name] for row in rows]):.2f}")


def missed(rows: list[dict]) -> list[str]:
    """Say what failed, and which figures are not what they must be."""
    if not rows:
        return ["nothing was measured"]
    problems = [f"{row['question']} at {row['n_vertices']:,}: {row['failed']}" for row in rows if "failed" in row]
    done = [row for row in rows if "failed" not in row]
    sizes = [row for row in done if row["question"] == "size"]
    steps = [row["step_ms"] for row in sorted(sizes, key=lambda row: row["n_vertices"])]
    if steps and (ratio := max(steps) / steps[0]) > WANTED["step_ratio"]:
        problems.append(f"a step at a larger size takes {ratio:.2f} times as long (at most {WANTED['step_ratio']})")
    for row in done:
        if row.get("peak_gigabytes", 0.0) >= (allowed := WANTED["peak_gigabytes"]):
            problems += [f"{row['peak_gigabytes']:.2f} GB at {row['n_vertices']:,} vertices (under {allowed})"]
        if not row.get("difference", 0.0) <= (allowed := TOLERANCES.get(row.get("work"), 0.0)):  # also if it is none
            problems += [f"{row['work']}: two processes differ by {row['difference']:.1e} from one (at most {allowed})"]
        if row.get("different_ids"):
            problems += [f"two processes find {row['different_ids']:.0f} other neighbours than one"]
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=",".join(SIZES), help="numbers of vertices, such as 10k,100k; or none")
    parser.add_argument("--processes", default="100k", help="size that one process is compared with two on; or none")
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--quick", action="store_true", help="10k alone, few steps and queries: does it run?")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/scale.json and docs/scale.svg")
    arguments = parser.parse_args()
    asked = [name for name in (*arguments.sizes.split(","), arguments.processes) if name != "none"]
    if unknown := [name for name in asked if name not in SIZES]:
        parser.error(f"there is no size {unknown[0]}; there are {', '.join(SIZES)}, and none")
    if arguments.write and (arguments.quick or asked != [*parser.get_default("sizes").split(","), "100k"]):
        parser.error("--write is for the whole of it: all sizes, and the comparison of processes")
    names = ["10k"] if arguments.quick else [name for name in arguments.sizes.split(",") if name in SIZES]
    steps, queries = (60, 50) if arguments.quick else (arguments.steps, QUERIES)
    compared = "10k" if arguments.quick else arguments.processes
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in names:
            path = table_at(folder, size)
            report = in_child(
                __file__, "whole", threads=THREADS, timeout=7200.0, path=path, steps=steps, queries=queries
            )
            rows.append({"question": "size", "n_vertices": SIZES[size], **report})
            if "failed" not in report:
                rows[-1]["peak_gigabytes"] = report["peak_megabytes"] / 1024
            print_table(rows[-1:])
        if compared in SIZES:
            rows += compare(table_at(folder, compared), folder, SIZES[compared], min(steps, 300), queries)
            print_table([row for row in rows if row["question"] == "processes"])
    sizes = [row for row in rows if row["question"] == "size" and "failed" not in row]
    if len(sizes) > 1:
        print_growth(sizes)
    if arguments.write:
        about = {
            "command": "python benchmarks/scale.py --write",
            "threads": THREADS,
            "seed": 0,
            "wanted": {**WANTED, "difference": TOLERANCES},
        }
        print(write_results("scale", rows, **about, versions=versions("numpy", "scipy", "numba", "torch")))
        if len(sizes) > 1:
            draw(sizes, PICTURE)
            print(PICTURE)
    problems = missed(rows)
    print("\n".join(problems) if problems else "every figure is what it must be")
    sys.exit(bool(problems))


if __name__ == "__main__":
    answer_if_child({"whole": whole, "shared": shared})
    main()
