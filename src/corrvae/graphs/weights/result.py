"""What `spanning_weights` returns."""

from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Float

Method = Literal["exact", "sketch", "sample"]
Bound = Literal["rounding", "Hoeffding", "standard error"]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SpanningWeights:
    """Spanning weights in edge order, with what was done to get them.

    ``numpy.asarray(result)`` gives the weights.

    Attributes
    ----------
    weights : numpy.ndarray
        Share of the maximal acyclic subgraphs that contain each edge, in (0, 1].
    method : {"exact", "sketch", "sample"}
        The way taken.
    core_size : int
        Vertices left after elimination: the largest dense core, or the core that was sketched.
    route : str
        The way in a sentence.
    error : float
        Bound on the error of one weight, for each edge with probability `confidence`: 0.0 when exact, 1.0 when a
        sketch could not be solved.
    bound : {"rounding", "Hoeffding", "standard error"}
        What the bound rests on: rounding alone; an inequality without assumptions; or the largest estimated standard
        error times the normal quantile.
    confidence : float
        1 - delta. With ``simultaneous=True`` it holds for all edges at once.
    standard_errors : numpy.ndarray or None
        Estimated, of each weight, when sketched; zero where exact.
    n_draws : int
        Random projections or forests used.
    seconds : float
        Wall-clock time, analysis included.

    Examples
    --------
    >>> from corrvae import CorrelationGraph, spanning_weights
    >>> result = spanning_weights(CorrelationGraph.from_edges([(0, 1), (0, 2), (1, 2), (2, 3)]))
    >>> result.weights.round(3).tolist(), result.method, result.bound
    ([0.667, 0.667, 0.667, 1.0], 'exact', 'rounding')
    """

    weights: Float[np.ndarray, " edges"]
    method: Method
    core_size: int
    route: str
    error: float = 0.0
    bound: Bound = "rounding"
    confidence: float = 1.0
    n_draws: int = 0
    seconds: float = 0.0
    standard_errors: Float[np.ndarray, " edges"] | None = field(default=None, repr=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.weights, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return self.weights.size

    def __repr__(self) -> str:
        return f"SpanningWeights({self.weights.size:,} edges, {self.route}, {self.seconds:.2f} s)"
