"""What the package offers: the names that its rooms export, the errors, and what a `CorrelatedVAE` can do."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import corrvae
from corrvae import CorrelatedVAE, errors


def exported() -> Iterator[tuple[str, Any]]:
    """Everything in the ``__all__`` of a package, by full name."""
    packages = ["corrvae", *(m.name for m in pkgutil.walk_packages(corrvae.__path__, "corrvae.") if m.ispkg)]
    for package in packages:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            yield f"{package}.{name}", getattr(module, name)


def public_things() -> dict[str, Any]:
    """Exported classes and functions, and the errors; an alias of a type and a dictionary have no docstring."""
    of_packages = {name: thing for name, thing in exported() if inspect.isclass(thing) or inspect.isfunction(thing)}
    of_errors = {f"{errors.__name__}.{name}": thing for name, thing in vars(errors).items() if inspect.isclass(thing)}
    return of_packages | {name: thing for name, thing in of_errors.items() if thing.__module__ == errors.__name__}


def public_methods() -> dict[str, Any]:
    """The methods of a `CorrelatedVAE` that are not scikit-learn's."""
    methods = inspect.getmembers(CorrelatedVAE, inspect.isfunction)
    ours = {name: method for name, method in methods if method.__module__.startswith("corrvae")}
    return {f"corrvae.CorrelatedVAE.{name}": method for name, method in ours.items() if not name.startswith("_")}
