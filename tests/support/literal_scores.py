"""Scores between all points as MATH has them, whole and in float64, and what follows from the whole matrix."""

import numpy as np
from hypothesis import strategies as st

from corrvae.scoring.points import Exclusions, Points

NAMES = ["expected_distance", "log_odds", "mean_distance", "cosine"]


def literal_scores(name, queries, candidates, tau=None, correlation=None):
    """All scores; `correlation` has a row and a column for each pair, and a dimension for each component."""
    m, s, n, t = (
        np.asarray(part, np.float64)[:, None] if side == 0 else np.asarray(part, np.float64)[None]
        for side, points in enumerate((queries, candidates))
        for part in (points.mean, points.stddev)
    )
    if name == "log_odds":
        u, v = 1 - np.minimum(s, 1) ** 2, 1 - np.minimum(t, 1) ** 2
        D = 1 - tau**2 * u * v
        return -0.5 * (np.log(D) + (tau**2 * (v * m**2 + u * n**2) - 2 * tau * m * n) / D).sum(-1)
    if name == "cosine":
        lengths = np.sqrt((m**2).sum(-1) * (n**2).sum(-1))
        return np.where(lengths == 0, 0.0, (m * n).sum(-1) / np.where(lengths == 0, 1.0, lengths))
    distance = ((m - n) ** 2).sum(-1)
    if name == "mean_distance":
        return distance
    rho = 0.0 if correlation is None else correlation
    return distance + (s**2 + t**2 - 2 * rho * s * t).sum(-1)


def is_excluded(exclusions, n_candidates):
    """The exclusions as a matrix."""
    matrix = np.zeros((len(exclusions.counts), n_candidates), bool)
    matrix[exclusions.queries, exclusions.candidates] = True
    return matrix


def literal_neighbors(scores, exclusions, n_neighbors, larger_is_better):
    """Positions of the best by a stable sort of whole rows, padded with -1."""
    costs = np.where(is_excluded(exclusions, scores.shape[1]), np.inf, -scores if larger_is_better else scores)
    order = np.argsort(costs, axis=1, kind="stable")
    order = np.where(np.isinf(np.take_along_axis(costs, order, axis=1)), -1, order)
    padding = np.full((len(order), max(0, n_neighbors - order.shape[1])), -1)
    return np.concatenate([order, padding], axis=1)[:, :n_neighbors]


def literal_ranks(scores, pairs, exclusions, larger_is_better, tolerance=0.0):
    """Ranks by counting along whole rows."""
    costs, excluded = -scores if larger_is_better else scores, is_excluded(exclusions, scores.shape[1])
    ranks = []
    for query, target in pairs:
        as_good = (costs[query] <= costs[query, target] + tolerance) & ~excluded[query]
        as_good[target] = False
        ranks.append(1 + as_good.sum())
    return np.array(ranks, np.int64)


def random_points(n, dim, seed, *, spread=1.0, repeats=0.0, zeros=0.0):
    """Make points, a share of which are copies of others, and a share of which have mean 0."""
    rng = np.random.default_rng(seed)
    mean, stddev = spread * rng.normal(size=(n, dim)), rng.uniform(0.05, 1.3, size=(n, dim))
    for row in np.flatnonzero(rng.random(n) < repeats):
        source = rng.integers(n)
        mean[row], stddev[row] = mean[source], stddev[source]
    mean[rng.random(n) < zeros] = 0.0
    return Points.of(mean, stddev)


def random_exclusions(n_queries, n_candidates, share, seed):
    rng = np.random.default_rng(seed)
    return Exclusions.of(n_queries, *np.nonzero(rng.random((n_queries, n_candidates)) < share))


@st.composite
def searches(draw):
    """Draw queries, candidates, exclusions, tau and a number of neighbours; ties and empty rows are common."""
    n_queries, n_candidates, dim = draw(st.integers(1, 12)), draw(st.integers(1, 30)), draw(st.integers(1, 9))
    seed, share = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([0.0, 0.2, 0.9, 1.0]))
    looks = {"spread": draw(st.sampled_from([1e-3, 1.0, 30.0])), "repeats": 0.4, "zeros": 0.1}
    candidates = random_points(n_candidates, dim, seed, **looks)
    queries = random_points(n_queries, dim, seed, **looks)
    tau = np.random.default_rng(seed).choice([0.99, -0.7, 0.0, 0.999999, 0.3], dim)
    exclusions = random_exclusions(n_queries, n_candidates, share, seed)
    return queries, candidates, exclusions, tau, draw(st.integers(1, 40))
