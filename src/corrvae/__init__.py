"""Correlated variational auto-encoders: embeddings of data points whose correlations are known as a graph.

Public names are imported when first used, so ``import corrvae`` takes milliseconds.
"""

import logging as _logging
from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from corrvae.estimator import CorrelatedVAE as CorrelatedVAE
    from corrvae.estimator import load as load
    from corrvae.graphs import CorrelationGraph as CorrelationGraph
    from corrvae.graphs import spanning_weights as spanning_weights
    from corrvae.model.adaptive import AdaptiveForests as AdaptiveForests
    from corrvae.model.families import Independent as Independent
    from corrvae.model.families import Joint as Joint
    from corrvae.model.families import Pairwise as Pairwise

__version__ = "0.2.0"

_HOMES = {
    "AdaptiveForests": "corrvae.model.adaptive",
    "CorrelatedVAE": "corrvae.estimator",
    "CorrelationGraph": "corrvae.graphs",
    "Independent": "corrvae.model.families",
    "Joint": "corrvae.model.families",
    "Pairwise": "corrvae.model.families",
    "load": "corrvae.estimator",
    "spanning_weights": "corrvae.graphs",
}
__all__ = [
    "AdaptiveForests",
    "CorrelatedVAE",
    "CorrelationGraph",
    "Independent",
    "Joint",
    "Pairwise",
    "load",
    "spanning_weights",
]

_logging.getLogger("corrvae").addHandler(_logging.NullHandler())


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'corrvae' has no attribute {name!r}")
    return getattr(_import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
