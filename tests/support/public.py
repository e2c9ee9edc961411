"""What the package offers: the names that its rooms export, the errors, and what a `CorrelatedVAE` can do."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import corrvae
from corrvae import CorrelatedVAE, errors

# Rooms that users call from Python; the others serve the command line and the experiments.
ROOMS = ("graphs", "io", "nn", "model", "training", "scoring", "data", "datasets", "plots")


def exported() -> Iterator[tuple[str, Any]]:
    """Everything public in the ``__init__`` of the package and of its rooms, by full name."""
    for name in corrvae.__all__:
        yield f"corrvae.{name}", getattr(corrvae, name)
    for module in pkgutil.walk_packages(corrvae.__path__, "corrvae."):
        if module.ispkg and module.name.split(".")[1] in ROOMS:
            room = importlib.import_module(module.name)
            for name, thing in vars(room).items():
                if not name.startswith("_") and getattr(thing, "__module__", "").startswith("corrvae"):
                    yield f"{module.name}.{name}", thing


def public_things() -> dict[str, Any]:
    """Exported classes and functions, and the errors."""
    of_rooms = {name: thing for name, thing in exported() if inspect.isclass(thing) or inspect.isfunction(thing)}
    of_errors = {f"{errors.__name__}.{name}": thing for name, thing in vars(errors).items() if inspect.isclass(thing)}
    return of_rooms | {name: thing for name, thing in of_errors.items() if thing.__module__ == errors.__name__}


def public_methods() -> dict[str, Any]:
    """The methods of a `CorrelatedVAE` that are not scikit-learn's."""
    methods = inspect.getmembers(CorrelatedVAE, inspect.isfunction)
    ours = {name: method for name, method in methods if method.__module__.startswith("corrvae")}
    return {f"corrvae.CorrelatedVAE.{name}": method for name, method in ours.items() if not name.startswith("_")}
