"""How fast is a training step, and what does it need? Against the literal implementation, on the paper's sizes.

    python benchmarks/training.py [--only NAME ...] [--steps N] [--write]

Both implementations start from the same weights and make their steps in turns, in one process with the same number of
threads and fused Adam; times are medians. Our steps include everything that training does: drawing, picking rows,
noise, and the history. The literal ones are then handed the vertices, edges, pairs and noise that ours just used, and
keep X dense in memory. `products` is the share of our step that its matrix products take when they are run by
themselves; `sparse` is the part of it that multiplies sparse rows. The bilinear pair network is compared with the
literal perceptron.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
import torch

import tables
from literal import LiteralModel, literal_terms
from measure import answer_if_child, in_child, versions, write_results
from products import record, replay

THREADS = 2
VERTICES, EDGES, DIMENSIONS = 64, 256, 100
PAIR_NETWORKS = {"ind": None, "corr": "perceptron", "corr, bilinear": "bilinear"}
TOYS = (
    ("independent", "tree", "real"),
    ("independent", "cycles", "real"),
    ("independent", "tree", "counts"),
    ("pairwise", "tree", "real"),
    ("pairwise", "cycles", "real"),
)  # posterior, graph, features: dense and Gaussian, or sparse and multinomial
TOY = str(Path(__file__).with_name("toy.py"))  # which imports nothing that its user would not import
# (data, model) to what its ratio must reach
WANTED = {("epinions", "ind"): 2.5, ("epinions", "corr"): 6.0, ("movielens", "ind"): 2.0, ("movielens", "corr"): 4.0}


def make_run(table: tables.Table, model: str):
    """Our training run, ready for its first step."""
    from corrvae.graphs import CorrelationGraph, spanning_weights
    from corrvae.model import CorrelatedModel
    from corrvae.nn import Decoder, Encoder, FeatureTable, PairBilinear, PairPerceptron, make_likelihood
    from corrvae.training import TrainingData, TrainingSettings
    from corrvae.training.run import Run

    n_rows, n_columns = table.X.shape
    graph = CorrelationGraph(table.edges, n_rows)
    torch.manual_seed(0)
    kinds = {None: lambda *_: None, "perceptron": PairPerceptron, "bilinear": PairBilinear}
    networks = Encoder(n_columns, DIMENSIONS), Decoder(DIMENSIONS, n_columns)
    pair_network = kinds[PAIR_NETWORKS[model]](n_columns, DIMENSIONS)
    ours = CorrelatedModel(*networks, make_likelihood("multinomial", n_columns), pair_network=pair_network)
    weights = spanning_weights(graph, random_state=0, progress=False).weights
    data = TrainingData(FeatureTable(table.X), graph.edges, weights, float(n_rows - graph.n_components))
    numbers = {"vertex_batch": VERTICES, "edge_batch": EDGES, "evaluate_every": 10**9, "device": "cpu"}
    ours.train()
    return Run(ours, data, TrainingSettings(max_steps=10**9, **numbers), None)


class Literal:
    """The literal implementation with the weights of ours, which repeats our steps with the draws that these made."""

    def __init__(self, run, X: np.ndarray) -> None:
        self.run, self.X = run, torch.from_numpy(X)
        self.model = LiteralModel(X.shape[1], DIMENSIONS)
        if hasattr(run.model.pair_network, "last") or run.model.pair_network is None:
            self.model.copy_weights(run.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.sizes = {"n_vertices": run.data.n_vertices, "n_edges": run.data.n_edges}
        self.made: deque = deque()
        self.draws: deque[dict] = deque()
        self._next, run.batches.next = run.batches.next, self._record

    def _record(self):
        """Draw for ours, and remember what was drawn and where the stream of noise stood."""
        drawn = self._next()
        self.made.append((drawn, self.run.generator.get_state()))
        return drawn

    def take_up(self) -> None:
        """Prepare steps with the draws that ours made since the last time, outside of what is timed."""
        while self.made:
            self.draws.append(self._draw(*self.made.popleft()))

    def _draw(self, drawn, state) -> dict:
        vertices = torch.from_numpy(drawn.vertices)
        chosen = vertices[: drawn.batch.n_drawn]
        pairs = None
        if self.run.model.pair_network is not None:
            pairs = chosen[torch.triu_indices(len(chosen), len(chosen), 1)].T.contiguous()
        generator = torch.Generator().set_state(state)
        return {
            "ours": drawn.batch,
            "vertices": chosen,
            "noise": torch.randn(len(chosen), DIMENSIONS, generator=generator),
            "edges": vertices[drawn.batch.edges],
            "weights": drawn.batch.edge_weights,
            "pairs": pairs,
        }

    def terms(self, draw: dict):
        """The objective's terms on one batch."""
        parts = (draw[name] for name in ("vertices", "noise", "edges", "weights", "pairs"))
        return literal_terms(self.model, self.X, *parts, **self.sizes)

    def disagreement(self) -> float:
        """Relative difference between the two objectives on one batch, before any step."""
        self._record()
        self.take_up()
        draw = self.draws.popleft()
        with torch.no_grad():
            ours = self.run.model.terms(draw["ours"], self.run.population, noise=draw["noise"]).total.item()
            return abs(self.terms(draw).total.item() / ours - 1.0)

    def step(self) -> None:
        """One step of Adam."""
        loss = -self.terms(self.draws.popleft()).total
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


def alternate(works: dict, steps: int, block: int = 25, between: Callable[[], None] = lambda: None) -> dict[str, float]:
    """Median seconds of each work, done in turns by blocks, after a block each to warm up.

    A block is long enough that most steps find in the caches what the same work left there, as they do in training.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    block = min(block, steps)
    for number in range(1 + -(-steps // block)):
        for name, work in works.items():
            between()
            for _ in range(block):
                begun = time.perf_counter()
                work()
                if number:
                    seconds[name].append(time.perf_counter() - begun)
    return {name: median(values) for name, values in seconds.items()}


def compare(*, threads: int, path: str, model: str, steps: int) -> dict:
    """Steps of ours and of the literal implementation, and what our matrix products take."""
    torch.set_num_threads(threads)
    table = tables.Table.load(path)
    run = make_run(table, model)
    literal = Literal(run, table.X.toarray())
    report = {}
    if model != "corr, bilinear":
        report["disagreement"] = literal.disagreement()
        if not report["disagreement"] < 1e-3:
            raise SystemExit(f"the implementations disagree by {report['disagreement']:.1e}: no comparison")
    run.advance()
    recorded = record(run.advance)
    literal.made.clear()
    works = {"ours": run.advance, "literal": literal.step}
    works |= {kind: lambda calls=calls: replay(calls) for kind, calls in recorded.calls.items()}
    found = alternate(works, steps, between=literal.take_up)
    products = found["dense"] + found["sparse"]
    return report | {
        "ours_ms": 1e3 * found["ours"],
        "literal_ms": 1e3 * found["literal"],
        "ratio": found["literal"] / found["ours"],
        "products": products / found["ours"],
        "sparse": found["sparse"] / found["ours"],
    }


def growth(*, threads: int, small: str, large: str, model: str, steps: int) -> dict:
    """Steps on few rows and on many, in turns."""
    torch.set_num_threads(threads)
    runs = {"small": make_run(tables.Table.load(small), model), "large": make_run(tables.Table.load(large), model)}
    found = alternate({name: run.advance for name, run in runs.items()}, steps)
    return {f"{name}_ms": 1e3 * seconds for name, seconds in found.items()} | {"ratio": found["large"] / found["small"]}


def fit(*, threads: int, path: str, model: str, steps: int) -> dict:
    """A whole fit through the estimator, for its memory."""
    torch.set_num_threads(threads)
    from corrvae import CorrelatedVAE, CorrelationGraph

    table = tables.Table.load(path)
    kinds = {None: {}, "perceptron": {"posterior": "pairwise"}}
    estimator = CorrelatedVAE(likelihood="multinomial", max_steps=steps, random_state=0, **kinds[PAIR_NETWORKS[model]])
    estimator.fit(table.X, graph=CorrelationGraph(table.edges, table.X.shape[0]))
    return {"steps": estimator.n_steps_}


@contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """Have other programs keep so many cores busy."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def time_toy(posterior: str, graph: str, features: str, compiled: str, folder: Path, beside: int = 0) -> dict:
    """A fresh process until its fit has ended, with an empty cache of compiled kernels or a full one.

    What it takes to leave Python is told too. `beside` other programs compute meanwhile.
    """
    before = os.environ.get("NUMBA_CACHE_DIR")
    os.environ["NUMBA_CACHE_DIR"] = str(folder / f"numba-{posterior}-{graph}-{features}")
    try:
        kind = {"posterior": posterior, "graph": graph, "features": features}
        with busy_cores(beside):
            begun = time.monotonic()
            report = in_child(TOY, "toy", threads=THREADS, **kind, begun=begun)
            report["process_seconds"] = time.monotonic() - begun
    finally:
        if before is None:
            del os.environ["NUMBA_CACHE_DIR"]
        else:
            os.environ["NUMBA_CACHE_DIR"] = before
    where = {"graph": graph, "features": features, "kernels": compiled, "beside": beside}
    return {"question": "toy", "model": posterior, **where, **report}


def measure(name: str, folder: Path, steps: int, shrink: int) -> list[dict]:
    """All rows of one part of the table."""
    if name == "toy":
        rows = [time_toy(*kind, compiled, folder) for kind in TOYS for compiled in ("new", "cached")]
        return rows + [time_toy(*TOYS[0], "cached", folder, beside) for beside in (1, THREADS)]
    if name == "epinions":
        table = tables.epinions()
        origin = "original" if table is not None else "generated"
        path = (table or tables.like_epinions()).save(folder / "epinions.npz")
    else:
        origin, n_rows = "generated", tables.MOVIELENS_SHAPE[0] // shrink
        path = tables.like_movielens(n_rows).save(folder / "movielens.npz")
    rows = []
    for model in PAIR_NETWORKS:
        fewer = steps if name == "epinions" else max(5, steps // 5)
        report = in_child(__file__, "compare", threads=THREADS, path=path, model=model, steps=fewer)
        rows.append({"question": "speed", "data": name, "origin": origin, "model": model, **report})
        rows[-1]["wanted"] = WANTED.get((name, model))
        print("  ", rows[-1], flush=True)
    if name == "movielens":
        small = tables.like_movielens(n_rows // 10).save(folder / "movielens-small.npz")
        for model in ("ind", "corr"):
            numbers = {"model": model, "steps": steps}
            report = in_child(__file__, "growth", threads=THREADS, small=small, large=path, **numbers)
            rows.append({"question": "growth", "data": name, "model": model, **report, "wanted": 1.3})
            report = in_child(__file__, "fit", threads=THREADS, path=path, **numbers)
            rows.append({"question": "memory", "data": name, "model": model, **report, "wanted": 2000})
            print("  ", *rows[-2:], flush=True)
    return rows


def print_table(rows: list[dict]) -> None:
    for row in rows:
        name = f"{row.get('data', '1,000 rows'):12}{row['model']:16}"
        if "failed" in row:
            print(f"{row['question']:8}{name}failed: {row['failed']}")
        elif row["question"] == "speed":
            wanted = f"{row['wanted']:.1f}" if row["wanted"] else "-"
            print(
                f"speed   {name}ours {row['ours_ms']:8.2f} ms  literal {row['literal_ms']:9.2f} ms  ratio "
                f"{row['ratio']:6.1f} (wanted {wanted})  products {row['products']:.0%}, sparse {row['sparse']:.0%}"
            )
        elif row["question"] == "growth":
            print(
                f"growth  {name}{row['small_ms']:8.2f} ms, ten times the rows {row['large_ms']:8.2f} ms, ratio "
                f"{row['ratio']:.2f} (at most {row['wanted']})"
            )
        elif row["question"] == "memory":
            print(f"memory  {name}{row['peak_megabytes']} MB at most, {row['steps']} steps (under {row['wanted']})")
        else:
            how = f"{row['features']}, {row['graph']}, {row['steps']} steps, kernels {row['kernels']}"
            how += f", busy programs beside: {row['beside']}" if row["beside"] else ""
            left = f"{row['process_seconds']:.2f} s with the end of the process"
            print(f"toy     {name}{row['seconds']:8.2f} s until it is fitted, {how} (under 10; {left})")


def main() -> None:
    names = ("epinions", "movielens", "toy")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--steps", type=int, default=400, help="steps of each implementation that are timed")
    parser.add_argument("--shrink", type=int, default=1, help="divide the rows of the large data, for a quick look")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/training.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for name in arguments.only:
            rows += measure(name, Path(folder), arguments.steps, arguments.shrink)
    print_table(rows)
    if arguments.write:
        about = {"command": "CORRVAE_DATA=... python benchmarks/training.py --write", "threads": THREADS, "seed": 0}
        print(write_results("training", rows, **about, versions=versions("numpy", "scipy", "numba", "torch")))


if __name__ == "__main__":
    answer_if_child({"compare": compare, "growth": growth, "fit": fit})
    os.environ.setdefault("CORRVAE_DATA", "data")
    main()
