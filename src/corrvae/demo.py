"""What `corrvae demo` shows: spanning weights of two built-in graphs, in a table and a picture."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from corrvae.errors import CorrvaeError
from corrvae.graphs import CorrelationGraph, SpanningWeights, enumerate_forests, spanning_weights

if TYPE_CHECKING:
    from rich.table import Table

_VILLAGERS, _REACH = 220, 0.105


@dataclass(frozen=True)
class Example:
    """A graph with a place for each vertex."""

    title: str
    graph: CorrelationGraph
    positions: Float[np.ndarray, "vertices 2"]


def small_example() -> Example:
    """A complete graph on four vertices and a triangle, joined by a bridge: 16 x 3 = 48 maximal acyclic subgraphs."""
    edges = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]
    edges += [("d", "e"), ("e", "f"), ("e", "g"), ("f", "g")]
    positions = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [2.1, 0.0], [2.9, 0.6], [2.9, -0.6]])
    return Example("two groups and a bridge", CorrelationGraph.from_edges(edges), positions)


def village() -> Example:
    """Points in a square, correlated with those near them."""
    positions = np.random.default_rng(7).random((_VILLAGERS, 2))
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    edges = np.argwhere(np.triu(distances < _REACH, k=1))
    graph = CorrelationGraph.from_edges(edges, n_vertices=_VILLAGERS)
    return Example("neighbours in a village", graph, positions)


def run_demo(folder: Path) -> None:
    """Compute, print and draw the weights; the picture goes to `folder`."""
    from matplotlib.figure import Figure
    from rich.console import Console

    from corrvae.pictures.spanning import draw_weights

    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    examples = [small_example(), village()]
    results = [spanning_weights(example.graph) for example in examples]
    console = Console()
    console.print(_table(examples, results))
    small, exact = examples[0].graph, results[0]
    forests = enumerate_forests(small)
    difference = np.abs(forests.mean(axis=0) - exact.weights).max()
    agree = "the same weights" if difference < 1e-12 else f"weights that differ by {difference:.0e}"
    console.print(f"Counting all {len(forests)} maximal acyclic subgraphs of the first gives {agree}.", soft_wrap=True)

    figure = Figure(figsize=(11, 5), layout="constrained")
    for axes, example, result in zip(figure.subplots(1, 2), examples, results, strict=True):
        draw_weights(example.graph, result.weights, example.positions, axes, label_edges=len(result) < 20)
        axes.set_title(f"{example.title}: the share of forests through each edge", fontsize=10)
    picture = folder / "spanning_weights.png"
    with _writing(picture):
        figure.savefig(picture, dpi=150)
    console.print(f"The picture is in [bold]{picture}[/bold]", soft_wrap=True)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CorrvaeError(f"{path}: cannot be written ({error.strerror or error})") from error


def _table(examples: list[Example], results: list[SpanningWeights]) -> "Table":
    from rich.table import Table

    table = Table(title="Spanning weights", caption="the share of maximal acyclic subgraphs that contain an edge")
    table.add_column("graph")
    for example in examples:
        table.add_column(example.title, justify="right")
    graphs = [example.graph for example in examples]
    facts = {
        "vertices": [f"{graph.n_vertices}" for graph in graphs],
        "edges": [f"{graph.n_edges}" for graph in graphs],
        "components": [f"{graph.n_components}" for graph in graphs],
        "smallest weight": [f"{result.weights.min():.3f}" for result in results],
        "bridges (weight 1)": [f"{np.count_nonzero(result.weights == 1.0)}" for result in results],
        "sum of weights": [f"{result.weights.sum():.6f}" for result in results],
        "vertices - components": [f"{graph.n_vertices - graph.n_components}" for graph in graphs],
        "computed": [result.method for result in results],
    }
    for fact, values in facts.items():
        table.add_row(fact, *values)
    return table
