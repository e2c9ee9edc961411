"""What a user may rely on before calling anything: quick imports, types, one logger, documented names."""

import importlib
import inspect
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import corrvae

PACKAGE = Path(corrvae.__file__).parent
HEAVY = {"torch", "numba", "sklearn", "scipy", "pyarrow", "rich", "matplotlib", "networkx", "pandas", "typer"}
NAMES = [(module, name) for module in ("corrvae", "corrvae.graphs") for name in importlib.import_module(module).__all__]


def loaded_by(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after a statement."""
    script = f"import json, sys\n{statement}\nprint(json.dumps([*sys.modules]))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


def test_importing_the_package_imports_nothing_heavy():
    loaded = loaded_by("import corrvae")
    assert "corrvae" in loaded
    assert loaded & (HEAVY | {"numpy"}) == set()


def test_listing_names_imports_nothing_heavy():
    assert loaded_by("import corrvae, corrvae.graphs; dir(corrvae); dir(corrvae.graphs)") & HEAVY == set()


def test_a_graph_needs_neither_torch_nor_numba():
    loaded = loaded_by("from corrvae import CorrelationGraph; CorrelationGraph.from_edges([(0, 1)])")
    assert "numpy" in loaded
    assert loaded & {"torch", "numba", "sklearn", "matplotlib", "rich", "networkx"} == set()


def test_spanning_weights_need_no_torch():
    loaded = loaded_by("from corrvae import spanning_weights")
    assert "scipy" in loaded
    assert loaded & {"torch", "numba", "sklearn", "matplotlib", "rich", "networkx", "pyarrow"} == set()


def test_a_fit_of_few_rows_needs_no_numba():
    imports = "import numpy as np; from corrvae import CorrelatedVAE, CorrelationGraph as Graph"
    fit = "CorrelatedVAE(2, hidden=(4,), max_steps=2).fit(np.eye(9), graph=Graph([[0, 1], [0, 2], [1, 2]], 9))"
    loaded = loaded_by(f"{imports}; {fit}.transform(np.eye(9))")
    assert {"torch", "sklearn"} <= loaded
    assert loaded & {"numba", "matplotlib", "rich", "networkx"} == set()


def test_types_are_shipped():
    assert (PACKAGE / "py.typed").is_file()


def test_one_logger_that_keeps_quiet():
    logger = logging.getLogger("corrvae")
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
    assert logger.level == logging.NOTSET
    assert logger.propagate


def test_the_version_is_that_of_the_project():
    project = (PACKAGE.parent.parent / "pyproject.toml").read_text()
    assert f'version = "{corrvae.__version__}"' in project


@pytest.mark.parametrize("module", ["corrvae", "corrvae.graphs"])
def test_public_names_are_sorted_and_listed(module):
    package = importlib.import_module(module)
    assert package.__all__ == sorted(package.__all__)
    assert dir(package) == package.__all__
    assert package.__doc__


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_public_names_resolve_and_are_documented(module, name):
    thing = getattr(importlib.import_module(module), name)
    assert thing.__name__ == name
    documentation = inspect.getdoc(thing)
    assert documentation
    assert documentation.splitlines()[0].endswith(".")
    is_value = inspect.isclass(thing) and (issubclass(thing, Exception) or hasattr(thing, "__dataclass_fields__"))
    if not is_value:
        assert ">>>" in documentation, f"{module}.{name} has no example"


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_public_methods_are_documented(module, name):
    thing = getattr(importlib.import_module(module), name)
    if inspect.isclass(thing):
        for method, member in vars(thing).items():
            if not method.startswith("_") and (callable(member) or isinstance(member, property | classmethod)):
                assert inspect.getdoc(getattr(thing, method)), f"{name}.{method} has no docstring"
