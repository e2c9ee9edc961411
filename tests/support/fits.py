"""Runs of `corrvae fit` on small files."""

import contextlib
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from corrvae.cli import app, running

SMALL = ("--components", "2", "--hidden", "8", "--steps", "40", "--vertex-batch", "16", "--threads", "1")


def write_points(folder: Path, n_points: int = 60) -> tuple[Path, Path]:
    """Write features of points p0, p1, ... and a path between all but the last two, with an edge to a ghost."""
    rows = np.random.default_rng(0).normal(size=(n_points, 4))
    lines = ["id,a,b,c,d", *(f"p{k}," + ",".join(f"{value:.4f}" for value in row) for k, row in enumerate(rows))]
    features, graph = folder / "features.csv", folder / "edges.csv"
    features.write_text("\n".join(lines) + "\n")
    edges = [f"p{k},p{k + 1}" for k in range(n_points - 3)]
    graph.write_text("\n".join(["source,target", *edges, "p0,ghost"]) + "\n")
    return features, graph


def fit(*arguments):
    """Run the command in this process."""
    return CliRunner().invoke(app, ["fit", *map(str, arguments)])


def contents(folder: Path) -> dict[str, bytes]:
    """Give every file below a folder."""
    return {place.relative_to(folder).as_posix(): place.read_bytes() for place in folder.rglob("*") if place.is_file()}


@contextlib.contextmanager
def acting_at(step: int, act: Callable[[], object]):
    """Make something happen after a step of training."""
    shown = running.choose_progress

    def choose(stream, *, quiet):
        def look(progress):
            if progress.step == step:
                act()

        return [*shown(stream, quiet=quiet), look]

    running.choose_progress = choose
    try:
        yield
    finally:
        running.choose_progress = shown


def signals_at(step: int, *numbers: signal.Signals):
    """Make training receive signals after a step."""
    return acting_at(step, lambda: [signal.raise_signal(number) for number in numbers])
