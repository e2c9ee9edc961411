"""Nothing but ``corrvae data get`` uses the network."""

import ast
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import corrvae
from support.offline import ReachesOutError, refuse_elsewhere

PACKAGE = Path(corrvae.__file__).parent
NETWORK = {"urllib.request", "http", "socket", "ssl", "ftplib", "smtplib", "requests", "httpx", "aiohttp", "xmlrpc"}
GETS = {"datasets/download.py"}


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def uses_network(path: Path) -> bool:
    return any(name == known or name.startswith(f"{known}.") for name in imported(path) for known in NETWORK)


def test_one_module_uses_the_network():
    assert {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if uses_network(path)} == GETS


def test_only_getting_data_imports_that_module():
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "corrvae.datasets.download" in imported(path)
    }
    assert users == {"datasets/getting.py"}
    getters = [path for path in PACKAGE.rglob("*.py") if "corrvae.datasets.getting.get" in imported(path)]
    callers = {path.relative_to(PACKAGE).as_posix() for path in getters}
    assert callers <= {"cli/experiments.py", "datasets/__init__.py"}


SCRIPT = """
import importlib, pkgutil, sys, tempfile
from support.offline import guard
guard()
import corrvae
for module in pkgutil.walk_packages(corrvae.__path__, "corrvae."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
import numpy as np
model = corrvae.CorrelatedVAE(2, hidden=(4,), max_steps=2, random_state=0).fit(np.eye(8))
with tempfile.TemporaryDirectory() as folder:
    model.save(folder + "/run")
    corrvae.load(folder + "/run").kneighbors(n_neighbors=1)
print("done")
"""


def test_importing_fitting_saving_and_loading_ask_for_no_other_machine():
    path = os.pathsep.join([str(PACKAGE.parent), str(Path(__file__).parents[1])])
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("done\n"), done.stderr


REACHES_OUT = """
import socket, subprocess, sys
try:
    socket.getaddrinfo("elsewhere.invalid", 80)
except RuntimeError as error:
    print(type(error).__name__)
if len(sys.argv) > 1:
    subprocess.run([sys.executable, "-c", sys.argv[1]])
"""


@pytest.mark.parametrize("environment", [None, {}, {"PYTHONPATH": str(PACKAGE.parent), "HOME": "/"}])
def test_programs_that_tests_start_are_stopped_too_and_those_that_they_start(environment):
    command = [sys.executable, "-c", REACHES_OUT, REACHES_OUT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ReachesOutError"] * 2, done.stderr
    with pytest.raises(ReachesOutError, match="PYTHONPATH"):
        subprocess.run([sys.executable, "-I", "-c", ""], env=environment, check=True)


def test_tests_are_stopped_before_anything_is_sent():
    # a worker of the tests is guarded from its start on, by the same words in another module
    with pytest.raises(RuntimeError, match=r"socket\.getaddrinfo to 'elsewhere\.invalid': only `corrvae data get` may"):
        socket.getaddrinfo("elsewhere.invalid", 80)
    for event, address in [("socket.connect", ("elsewhere.invalid", 80)), ("socket.sendto", ("2001:db8::1", 80, 0, 0))]:
        with pytest.raises(ReachesOutError):
            refuse_elsewhere(event, (None, address))
    for address in [("127.0.0.1", 80), ("::1", 80, 0, 0), "/run/some.socket", b"\0abstract"]:
        refuse_elsewhere("socket.connect", (None, address))
    refuse_elsewhere("open", ("elsewhere.invalid", 80))
