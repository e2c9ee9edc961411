"""Runs of `corrvae fit` on small files."""

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from corrvae.cli import app

SMALL = ("--n-components", "2", "--hidden", "8", "--max-steps", "40", "--batch-size", "16", "--random-state", "0")


def write_points(folder: Path, n_points: int = 60) -> tuple[Path, Path]:
    """Write features of points p0, p1, ... and a path between all but the last two."""
    rows = np.random.default_rng(0).normal(size=(n_points, 4))
    lines = ["id,a,b,c,d", *(f"p{k}," + ",".join(f"{value:.4f}" for value in row) for k, row in enumerate(rows))]
    features, graph = folder / "features.csv", folder / "edges.csv"
    features.write_text("\n".join(lines) + "\n")
    graph.write_text("\n".join(["source,target", *(f"p{k},p{k + 1}" for k in range(n_points - 3))]) + "\n")
    return features, graph


def fit(*arguments):
    """Run the command in this process."""
    return CliRunner().invoke(app, ["fit", *map(str, arguments)])
