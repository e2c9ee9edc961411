"""Edge files for tests: two graphs to write, and the check that a file is rejected with the right sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest

from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph
from corrvae.io import read_graph

NUMBERS = CorrelationGraph.from_edges([(1, 2), (2, 30), (-4, 1)])
WORDS = CorrelationGraph.from_edges([("ann", "bob"), ("bob", "cem"), ("dee", "ann")])


def writer(folder: Path) -> Callable[..., Path]:
    """Return a function that writes a file into a folder."""

    def write(content: str | bytes, name: str = "edges.txt") -> Path:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def fails(path: Path, sentence: str, line: int | None = None, **kwargs) -> None:
    """Check that reading a graph fails with this sentence about this file and line."""
    with pytest.raises(DataFileError) as caught:
        read_graph(path, **kwargs)
    assert (caught.value.path, caught.value.problem, caught.value.line) == (Path(path), sentence, line)
