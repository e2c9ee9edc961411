"""Re-export names without importing their modules until they are used (PEP 562)."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attach(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Give a package its ``__getattr__`` and ``__dir__``.

    Parameters
    ----------
    package
        The package's ``__name__``.
    homes
        Public name to the module it lives in, relative to the package (``".graph"``).
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], package), name)

    def __dir__() -> list[str]:  # noqa: N807
        return sorted(homes)

    return __getattr__, __dir__
