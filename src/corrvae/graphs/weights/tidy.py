"""What is known of spanning weights without computing them, used to mend estimates."""

import numpy as np
from jaxtyping import Float, Int


def shorted_weights(
    edges: Int[np.ndarray, "edges 2"], conductances: Float[np.ndarray, " edges"], n_vertices: int
) -> Float[np.ndarray, " edges"]:
    """Lower bound of every spanning weight.

    Joining all other vertices into one can only lower a resistance (Rayleigh). What remains between i and j is their
    edge beside the rest of i's conductance and the rest of j's in series.

    Examples
    --------
    >>> shorted_weights(np.array([[0, 1], [0, 2], [1, 2]]), np.ones(3), 3)  # exact for a triangle
    array([0.66666667, 0.66666667, 0.66666667])
    """
    tails, heads = edges[:, 0], edges[:, 1]
    sums = np.bincount(tails, conductances, n_vertices) + np.bincount(heads, conductances, n_vertices)
    rest_tail = np.maximum(sums[tails] - conductances, 0.0)
    rest_head = np.maximum(sums[heads] - conductances, 0.0)
    both = rest_tail + rest_head
    around = np.divide(rest_tail * rest_head, both, out=np.zeros_like(both), where=both > 0.0)
    return conductances / (conductances + around)


def restore_sum(
    weights: Float[np.ndarray, " edges"],
    standard_errors: Float[np.ndarray, " edges"],
    lower: Float[np.ndarray, " edges"],
    total: float,
) -> Float[np.ndarray, " edges"]:
    """Share out what the sum of estimates lacks or exceeds, in proportion to their standard errors, within [lower, 1].

    The errors of a sketch go together: what one edge contributes to the error of the sum is about proportional to its
    standard error, so that is its share.

    Examples
    --------
    >>> restore_sum(np.array([0.5, 0.6, 0.6]), np.array([0.0, 1.0, 1.0]), np.full(3, 0.1), 2.0)
    array([0.5 , 0.75, 0.75])
    """
    weights = np.clip(weights, lower, 1.0)
    for _ in range(50):
        gap = total - weights.sum()
        free = standard_errors * (weights < 1.0 if gap > 0.0 else weights > lower)
        if abs(gap) <= 1e-12 * max(total, 1.0) or not free.any():
            break
        weights = np.clip(weights + gap * free / free.sum(), lower, 1.0)
    return weights
