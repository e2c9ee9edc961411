"""Spanning weights of a correlation graph's edges: exact, sketched or sampled.

`plan` is the way in. `pattern` takes the graph apart, `cuts` decides how far to eliminate, `exact`, `sketch` and
`sample` solve, `tidy` mends estimates, and `kernels` holds the compiled loops.
"""

from corrvae.graphs.weights.plan import SpanningPlan, spanning_weights
from corrvae.graphs.weights.result import SpanningWeights

__all__ = ["SpanningPlan", "SpanningWeights", "spanning_weights"]
