"""Check shapes and types of every annotated function while testing, and set up hypothesis."""

import os
import signal
from pathlib import Path

# Two workers share two cores: each keeps to one thread, or they wait for each other at every small step.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The same bits are promised on a CPU, and device="auto" would take a GPU.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch
from hypothesis import settings
from jaxtyping import install_import_hook

import support.typecheck  # noqa: F401, which the hook below finds by its name

torch.backends.mps.is_available = lambda: False

SOURCE = Path(__file__).parent.parent / "src"


def _checked_modules() -> list[str]:
    """Return all modules but numba kernels, which cannot be compiled behind a wrapper."""
    paths = [path.relative_to(SOURCE).with_suffix("") for path in (SOURCE / "corrvae").rglob("*.py")]
    names = [".".join(path.parts) for path in paths if path.name not in ("__init__", "__main__")]
    return [name for name in names if "kernels" not in name]


install_import_hook(_checked_modules(), "support.typecheck.check")

# A shell that starts the tests in the background has them ignore Ctrl-C, which some tests send to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The first call of a kernel compiles it, which no deadline allows for.
settings.register_profile("tests", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "tests")
