"""Correlated variational auto-encoders: embeddings of data points whose correlations are known as a graph.

Everything public is named here and loaded when first used: ``import corrvae`` costs milliseconds.
"""

import logging as _logging
from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.estimator import CorrelatedVAE as CorrelatedVAE
    from corrvae.folders import load as load
    from corrvae.graphs import CorrelationGraph as CorrelationGraph
    from corrvae.graphs import spanning_weights as spanning_weights

__version__ = "0.1.0"
__all__ = ["CorrelatedVAE", "CorrelationGraph", "load", "spanning_weights"]

_logging.getLogger("corrvae").addHandler(_logging.NullHandler())

_HOMES = {
    "CorrelatedVAE": ".estimator",
    "CorrelationGraph": ".graphs",
    "load": ".folders",
    "spanning_weights": ".graphs",
}

__getattr__, __dir__ = _attach(__name__, _HOMES)
