"""How fast is a training step? Against the literal implementation, at the paper's sizes, in one run.

    CORRVAE_DATA=folder python benchmarks/training.py [--only epinions] [--steps N] [--write]

Both implementations start from the same weights and take their steps in turns, in one process with one thread and fused
Adam (`--threads`). A time is the median of the best of some blocks of steps: of one thread processor time, so that
other programs on the machine count little, of several the clock's. Our steps include everything that training does:
drawing, picking rows, noise, history. The literal ones get the vertices, edges and pairs that ours used, and keep X
dense in memory. The bilinear pair network is compared with the literal perceptron.
"""

import argparse
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from statistics import median

import numpy as np
import torch

import tables
from literal import LiteralModel, literal_terms
from measure import answer_if_child, in_child, versions, write_results

VERTICES, EDGES, DIMENSIONS = 64, 256, 100
MODELS = {"ind": None, "corr": "perceptron", "corr, bilinear": "bilinear"}
# (data, model) to the ratio asked for
WANTED = {("epinions", "ind"): 1.7, ("epinions", "corr"): 6.0, ("movielens", "ind"): 1.7, ("movielens", "corr"): 15.0}


def make_run(table: tables.Table, model: str):
    """Our training run, ready for its first step."""
    from corrvae.graphs import CorrelationGraph
    from corrvae.model import build_model
    from corrvae.model.families import Independent, Pairwise
    from corrvae.training import prepare_data
    from corrvae.training.distributed import Workers
    from corrvae.training.loop import Run

    n_rows, n_columns = table.X.shape
    family = Independent() if MODELS[model] is None else Pairwise(MODELS[model])
    ours = build_model(n_columns, DIMENSIONS, family=family, likelihood="multinomial")
    graph = CorrelationGraph.from_edges(table.edges, n_vertices=n_rows)
    data = prepare_data(table.X, graph, batch_size=VERTICES, edge_batch_size=EDGES)
    ours.train()
    options = {"learning_rate": 1e-3, "warmup_steps": 0, "validation": None, "patience": None, "identity": ""}
    return Run(ours, data.training, max_steps=10**9, workers=Workers(), **options)


class Literal:
    """The literal implementation, which repeats our steps with the draws that these made."""

    def __init__(self, run, X: np.ndarray) -> None:
        self.run, self.X = run, torch.from_numpy(X)
        self.model = LiteralModel(X.shape[1], DIMENSIONS)
        if MODELS["corr, bilinear"] != getattr(run.model.family, "network", None):
            self.model.copy_weights(run.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.batches, self.draws = deque(), deque()
        family, draw = run.model.family, run.model.family.draw

        def record(data, step):
            batch = draw(data, step)
            self.batches.append(batch)
            return batch

        family.draw = record

    def prepare(self) -> None:
        """Prepare steps with the draws that ours made since the last time, outside of what is timed."""
        while self.batches:
            self.draws.append(self.arguments(self.batches.popleft()))

    def arguments(self, batch) -> dict:
        """What the literal implementation needs of a batch."""
        data = self.run.data
        vertices = torch.from_numpy(batch.vertices)
        scale = data.n_vertices * len(batch.edges) / data.n_edges
        return {
            "vertices": vertices[: batch.n_drawn],
            "noise": torch.randn(batch.n_drawn, DIMENSIONS),
            "edges": vertices[batch.edges],
            "weights": batch.edge_weights * scale,
            "pairs": None if batch.pairs is None else vertices[batch.pairs],
        }

    def terms(self, arguments: dict):
        """The objective's terms."""
        sizes = {"n_vertices": self.run.data.n_vertices, "n_edges": self.run.data.n_edges}
        return literal_terms(self.model, self.X, **arguments, **sizes)

    def disagreement(self) -> float:
        """Relative difference between the two objectives on one batch, before any step."""
        batch = self.run.model.family.draw(self.run.data, 0)
        self.batches.clear()
        given = self.arguments(batch)
        given["noise"] = torch.randn(given["noise"].shape, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            ours = self.run.model(batch, torch.Generator().manual_seed(0)).total().item()
            return abs(self.terms(given).total.item() / ours - 1.0)

    def step(self) -> None:
        """One step of Adam."""
        loss = -self.terms(self.draws.popleft()).total
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


def alternate(works: dict, steps: int, block: int = 10, between=lambda: None) -> dict[str, float]:
    """Seconds of each work, done in turns by blocks: the least median of a block, after one to warm up."""
    now = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    best = dict.fromkeys(works, float("inf"))
    block = min(block, steps)
    for number in range(1 + -(-steps // block)):
        for name, work in works.items():
            between()
            seconds = []
            for _ in range(block):
                begun = now()
                work()
                seconds.append(now() - begun)
            if number:
                best[name] = min(best[name], median(seconds))
    return best


def compare(*, threads: int, path: str, model: str, steps: int) -> dict:
    """Steps of ours and of the literal implementation."""
    torch.set_num_threads(threads)
    table = tables.Table.load(path)
    run = make_run(table, model)
    literal, report, quiet = Literal(run, table.X.toarray()), {}, threading.Event()
    if model != "corr, bilinear":
        report["disagreement"] = literal.disagreement()
        if not report["disagreement"] < 1e-3:
            raise SystemExit(f"the implementations disagree by {report['disagreement']:.1e}: no comparison")
    works = {"ours": lambda: run.advance(quiet), "literal": literal.step}
    found = alternate(works, steps, between=literal.prepare)
    ratio = found["literal"] / found["ours"]
    return report | {"ours_ms": 1e3 * found["ours"], "literal_ms": 1e3 * found["literal"], "ratio": ratio}


def growth(*, threads: int, small: str, large: str, model: str, steps: int) -> dict:
    """Steps on few rows and on many, in turns."""
    torch.set_num_threads(threads)
    quiet = threading.Event()
    runs = {name: make_run(tables.Table.load(path), model) for name, path in (("small", small), ("large", large))}
    found = alternate({name: lambda run=run: run.advance(quiet) for name, run in runs.items()}, steps)
    return {f"{name}_ms": 1e3 * seconds for name, seconds in found.items()} | {"ratio": found["large"] / found["small"]}


def fit(*, threads: int, path: str, model: str, steps: int) -> dict:
    """A whole fit through the estimator, for its memory."""
    torch.set_num_threads(threads)
    from corrvae import CorrelatedVAE, CorrelationGraph, Independent, Pairwise

    table = tables.Table.load(path)
    family = Independent() if MODELS[model] is None else Pairwise(MODELS[model])
    estimator = CorrelatedVAE(likelihood="multinomial", family=family, max_steps=steps, random_state=0)
    estimator.fit(table.X, graph=CorrelationGraph.from_edges(table.edges, n_vertices=table.X.shape[0]))
    return {"steps": estimator.n_steps_}


def measure(name: str, folder: Path, steps: int, shrink: int, threads: int) -> list[dict]:
    """All rows of one data set."""
    if name == "epinions":
        table = tables.epinions()
        origin = "original" if table is not None else "generated"
        path = (table or tables.like_epinions()).save(folder / "epinions.npz")
    else:
        origin, n_rows = "generated", tables.MOVIELENS_SHAPE[0] // shrink
        path = tables.like_movielens(n_rows).save(folder / "movielens.npz")
        steps = max(5, steps // 5)
    rows = []
    for model in MODELS:
        report = in_child(__file__, "compare", threads=threads, path=path, model=model, steps=steps)
        wanted = WANTED.get((name, model))
        rows.append({"question": "speed", "data": name, "origin": origin, "model": model, **report, "wanted": wanted})
        print(rows[-1], flush=True)
    if name == "movielens":
        small = tables.like_movielens(n_rows // 10).save(folder / "small.npz")
        for model in ("ind", "corr"):
            report = in_child(
                __file__, "growth", threads=threads, small=small, large=path, model=model, steps=5 * steps
            )
            rows.append({"question": "growth", "data": name, "model": model, **report, "wanted": 1.3})
            report = in_child(__file__, "fit", threads=threads, path=path, model=model, steps=5 * steps)
            rows.append({"question": "memory", "data": name, "model": model, **report, "wanted": 2000})
            print(*rows[-2:], sep="\n", flush=True)
    return rows


def print_table(rows: list[dict]) -> None:
    for row in rows:
        name = f"{row['question']:8}{row['data']:12}{row['model']:16}"
        if "failed" in row:
            print(f"{name}failed: {row['failed']}")
        elif row["question"] == "speed":
            print(
                f"{name}ours {row['ours_ms']:8.2f} ms  literal {row['literal_ms']:9.2f} ms  ratio {row['ratio']:6.1f} "
                f"(wanted {row['wanted'] or '-'})"
            )
        elif row["question"] == "growth":
            print(
                f"{name}{row['small_ms']:8.2f} ms, ten times the rows {row['large_ms']:8.2f} ms, ratio "
                f"{row['ratio']:.2f} (at most {row['wanted']})"
            )
        else:
            print(f"{name}{row['peak_megabytes']} MB, {row['steps']} steps (under {row['wanted']})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=("epinions", "movielens"), default=("epinions", "movielens"))
    parser.add_argument("--steps", type=int, default=400, help="steps of each implementation that are timed")
    parser.add_argument("--threads", type=int, default=1, help="of each implementation")
    parser.add_argument("--shrink", type=int, default=1, help="divide the rows of the large data, for a quick look")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/training.json")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only:
            rows += measure(name, Path(folder), arguments.steps, arguments.shrink, arguments.threads)
    print_table(rows)
    if arguments.write:
        about = {
            "command": f"CORRVAE_DATA=... python benchmarks/training.py --steps {arguments.steps} --write",
            "threads": arguments.threads,
            "seed": 0,
        }
        print(write_results("training", rows, **about, versions=versions("numpy", "scipy", "numba", "torch")))


if __name__ == "__main__":
    answer_if_child({"compare": compare, "growth": growth, "fit": fit})
    main()
