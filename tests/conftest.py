"""Check shapes and types of every annotated function while testing, and set up hypothesis."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

# Two workers share two cores: each keeps to one, or they wait for each other at every small step.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

import support.offline
import support.typecheck
from nursery import Nursery

# numba compiles the functions of these rooms itself and cannot compile a wrapper around them
_COMPILED = "kernels"


def _checked_modules() -> list[str]:
    source = Path(__file__).parent.parent / "src"
    paths = [path.relative_to(source).with_suffix("") for path in (source / "corrvae").rglob("*.py")]
    return [".".join(p.parts) for p in paths if _COMPILED not in p.parts and p.name not in ("__init__", "__main__")]


install_import_hook(_checked_modules(), "support.typecheck.check")

# A shell that starts this in the background has it ignore Ctrl-C, which some tests send to themselves and wait for.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

support.offline.guard()
support.offline.guard_children()

# The first call of a kernel compiles it. Half of the usual examples: new ones are drawn each time, and all of the tests
# together have ten minutes; benchmarks/fuzz.py is the long form.
settings.register_profile("tests", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "tests")


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """A process that forks children which may be killed or starved; starting it takes a few seconds."""
    with Nursery("fuzz") as started:
        yield started
