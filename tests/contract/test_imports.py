"""What a user may rely on before calling anything: quick imports, types, one logger, names that resolve."""

import importlib
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import corrvae

PACKAGE = Path(corrvae.__file__).parent
HEAVY = {"torch", "numba", "sklearn", "scipy", "pyarrow", "rich", "matplotlib", "networkx", "pandas", "typer", "jinja2"}


def loaded_by(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after a statement."""
    script = f"import json, sys\n{statement}\nprint(json.dumps([*sys.modules]))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


def test_importing_the_package_and_listing_its_names_imports_nothing_heavy():
    loaded = loaded_by("import corrvae; dir(corrvae); corrvae.__version__")
    assert "corrvae" in loaded
    assert loaded & (HEAVY | {"numpy"}) == set()


def test_a_graph_needs_neither_torch_nor_numba():
    loaded = loaded_by("from corrvae import CorrelationGraph; CorrelationGraph.from_edges([(0, 1)])")
    assert "numpy" in loaded
    assert loaded & {"torch", "numba", "sklearn", "matplotlib", "rich", "networkx"} == set()


def test_spanning_weights_need_no_torch():
    imports = "from corrvae import CorrelationGraph, spanning_weights"
    loaded = loaded_by(f"{imports}; spanning_weights(CorrelationGraph.from_edges([(0, 1), (1, 2), (0, 2)]))")
    assert "scipy" in loaded
    assert loaded & {"torch", "sklearn", "matplotlib", "rich", "networkx", "pyarrow"} == set()


def test_a_fit_imports_neither_pictures_nor_the_command_line():
    imports = "import numpy as np; from corrvae import CorrelatedVAE, CorrelationGraph as Graph"
    fit = "CorrelatedVAE(2, hidden=(4,), max_steps=2).fit(np.eye(9), graph=Graph([[0, 1], [0, 2], [1, 2]], 9))"
    loaded = loaded_by(f"{imports}; {fit}.kneighbors(n_neighbors=2)")
    assert {"torch", "sklearn"} <= loaded
    assert loaded & {"matplotlib", "typer", "networkx", "jinja2", "pooch", "anndata"} == set()


def test_help_imports_nothing_heavy():
    loaded = loaded_by("import corrvae.cli")
    assert "typer" in loaded
    assert loaded & {"torch", "numba", "sklearn", "scipy", "pyarrow", "matplotlib", "numpy"} == set()


def test_types_are_shipped():
    assert (PACKAGE / "py.typed").is_file()


def test_one_logger_that_keeps_quiet():
    logger = logging.getLogger("corrvae")
    assert logging.NullHandler in [type(handler) for handler in logger.handlers]
    assert logger.level == logging.NOTSET
    assert logger.propagate


def test_the_version_is_that_of_the_project():
    project = (PACKAGE.parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{corrvae.__version__}"' in project


def test_public_names_are_sorted_and_resolve():
    assert corrvae.__all__ == sorted(corrvae.__all__) == dir(corrvae)
    for name in corrvae.__all__:
        assert getattr(corrvae, name).__name__ == name


def test_an_unknown_name_gets_pythons_own_sentence():
    with pytest.raises(AttributeError, match="module 'corrvae' has no attribute 'question'"):
        _ = corrvae.question
    with pytest.raises(ImportError, match="cannot import name 'question'"):
        exec("from corrvae import question")


@pytest.mark.parametrize("room", ["graphs", "io", "nn", "model", "training", "scoring"])
def test_a_room_exports_each_name_once(room):
    source = (PACKAGE / room / "__init__.py").read_text(encoding="utf-8")
    names = [line.split(" as ")[1] for line in source.splitlines() if line.startswith("from") and " as " in line]
    assert len(names) == len(set(names)) > 0
    assert set(names) <= vars(importlib.import_module(f"corrvae.{room}")).keys()
