"""One-to-one matching: the pairs whose scores are best in sum, where no point is in two pairs."""

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching

from corrvae.model.posterior import Posterior
from corrvae.scoring.metrics import BlockFunction, Metric, make_metric
from corrvae.scoring.search import nearest, score, score_matrix

# Up to here all pairs are scored (the assignment of 2,000 x 2,000 takes about a second); beyond, nearest candidates.
_MOST_PAIRS, _CANDIDATES = 4_000_000, 50


def assign(
    left: Posterior,
    right: Posterior,
    metric: str | Metric | BlockFunction,
    *,
    n_candidates: int | None = None,
    progress: bool | None = None,
    device: str | torch.device | None = None,
) -> tuple[Int[np.ndarray, "pairs 2"], Float[np.ndarray, " pairs"], bool]:
    """Match every point of the smaller side with one of the other, so that the sum of scores is best.

    With few pairs all of them are compared. With many, or if `n_candidates` is given, only the best candidates of each
    point are, from either side, and points for which these leave no partner are compared among each other.

    Parameters
    ----------
    left, right
        The points.
    metric
        The score.
    n_candidates
        Candidates of each point; ``None``: all, up to four million pairs, and else 50.
    progress, device
        As in `corrvae.scoring.nearest`.

    Returns
    -------
    pairs, scores, exact
        Positions of left and right points in the order of the left ones, their scores, and whether no other one-to-one
        matching has a better sum (up to float32 rounding). That is so if all pairs were compared, or if there are as
        many candidates as points on the smaller side.

    Examples
    --------
    >>> left, right = (Posterior(np.array([[x] for x in row]), np.ones((2, 1))) for row in ([0.0, 1.0], [1.1, 3.0]))
    >>> assign(left, right, "mean_distance")[0].tolist()  # the nearest neighbour of both is the first
    [[0, 0], [1, 1]]
    """
    metric = make_metric(metric)
    if n_candidates is not None and n_candidates < 1:
        raise ValueError(f"n_candidates must be positive, got {n_candidates}")
    shape = left.n_vertices, right.n_vertices
    if n_candidates is None and shape[0] * shape[1] > _MOST_PAIRS:
        n_candidates = _CANDIDATES
    if n_candidates is None or n_candidates >= max(shape):
        scores = score_matrix(left, right, metric, progress=progress, device=device)
        pairs = np.stack(linear_sum_assignment(scores, maximize=metric.larger_is_better), axis=1)
        return pairs, score(left, right, metric, pairs), True
    # A point whose partner is none of its `min(shape)` best could take one of those instead: not all of them are taken.
    exact = n_candidates >= min(shape)
    costs = _candidate_costs(left, right, metric, n_candidates, progress, device)
    pairs = np.stack(min_weight_full_bipartite_matching(costs), axis=1).astype(np.int64)
    pairs = pairs[np.argsort(pairs[:, 0])]
    return pairs, score(left, right, metric, pairs), exact


def _candidate_costs(
    left: Posterior,
    right: Posterior,
    metric: Metric,
    n_candidates: int,
    progress: bool | None,
    device: str | torch.device | None,
) -> csr_array:
    """Return the costs of each point's best candidates, and of so many more pairs that a full matching exists."""
    shape = left.n_vertices, right.n_vertices
    found = []
    for one, other, turned in ((left, right, False), (right, left, True)):
        # The larger side brings about as many pairs as the smaller one.
        k = -(-n_candidates * min(shape) // one.n_vertices)
        positions, scores = nearest(one, other, metric, min(k, other.n_vertices), progress=progress, device=device)
        rows = np.repeat(np.arange(len(positions)), positions.shape[1])
        places = positions.ravel(), rows
        found.append((*(places if turned else places[::-1]), metric.sign * scores.ravel()))
    costs = _sparse(found, shape)
    partner = maximum_bipartite_matching(costs, perm_type="column")  # of each left point
    taken = partner[partner >= 0]
    if len(taken) == min(shape):
        return costs
    alone, free = np.flatnonzero(partner < 0), np.setdiff1d(np.arange(shape[1]), taken)
    if len(alone) * len(free) > _MOST_PAIRS:
        return _candidate_costs(left, right, metric, min(2 * n_candidates, min(shape)), progress, device)
    scores = score_matrix(left.take(alone), right.take(free), metric, device=device)
    rows, columns = np.repeat(alone, len(free)), np.tile(free, len(alone))
    return _sparse([*found, (rows, columns, metric.sign * scores.ravel().astype(np.float64))], shape)


def _sparse(found: list[tuple[np.ndarray, np.ndarray, np.ndarray]], shape: tuple[int, int]) -> csr_array:
    rows, columns, costs = (np.concatenate(part) for part in zip(*found, strict=True))
    _, first = np.unique(rows * shape[1] + columns, return_index=True)
    # A stored cost must not be 0. Those of a full matching may all be shifted alike.
    shifted = costs[first] - costs.min(initial=0.0) + 1.0
    return csr_array((shifted, (rows[first], columns[first])), shape=shape)
