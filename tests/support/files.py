"""Edge files for tests: two graphs to write, and the check that a file is refused with the right sentence."""

from pathlib import Path

import pytest

from corrvae.errors import CorrvaeError, DataFileError
from corrvae.graphs import CorrelationGraph

NUMBERS = CorrelationGraph.from_edges([(1, 2), (2, 30), (-4, 1)])
WORDS = CorrelationGraph.from_edges([("ann", "bob"), ("bob", "cem"), ("dee", "ann")])


def writer(folder: Path):
    """Give a function that writes an edge file into a folder."""

    def write(content: str | bytes, name: str = "edges.txt") -> Path:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def fails(path, sentence, **kwargs):
    """Check that reading fails with this sentence about this file."""
    with pytest.raises(DataFileError) as caught:
        CorrelationGraph.from_file(path, **kwargs)
    assert caught.value.path == Path(path)
    assert isinstance(caught.value, CorrvaeError)
    assert str(caught.value) == f"{path}: {sentence}"
