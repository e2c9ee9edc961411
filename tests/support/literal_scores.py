"""Scores between all points as MATH has them, whole and in float64, and what follows from the whole matrix."""

import numpy as np
import torch
from hypothesis import strategies as st
from scipy.sparse import csr_array

from corrvae.model.families import Pairwise
from corrvae.model.network import CorrelatedModel
from corrvae.model.posterior import Posterior
from corrvae.nn import Decoder, Encoder, FeatureTable, make_likelihood

NAMES = ["expected_distance", "log_odds", "mean_distance", "cosine", "inner_product"]
LARGER = {"log_odds", "cosine", "inner_product"}


def literal_scores(name, queries, candidates, correlation=0.0):
    """All scores; `correlation` has a row and a column for each pair, and an entry for each dimension."""
    m, s = (np.asarray(part, np.float64)[:, None] for part in (queries.mean, queries.stddev))
    n, t = (np.asarray(part, np.float64)[None] for part in (candidates.mean, candidates.stddev))
    if name == "log_odds":
        tau = np.asarray(queries.tau, np.float64)
        u, v = 1 - np.minimum(s, 1) ** 2, 1 - np.minimum(t, 1) ** 2
        D = 1 - tau**2 * u * v
        return -0.5 * (np.log(D) + (tau**2 * (v * m**2 + u * n**2) - 2 * tau * m * n) / D).sum(-1)
    if name == "inner_product":
        return (m * n).sum(-1)
    if name == "cosine":
        lengths = np.sqrt((m**2).sum(-1) * (n**2).sum(-1))
        return np.where(lengths == 0, 0.0, (m * n).sum(-1) / np.where(lengths == 0, 1.0, lengths))
    distance = ((m - n) ** 2).sum(-1)
    if name == "mean_distance":
        return distance
    return distance + (s**2 + t**2 - 2 * correlation * s * t).sum(-1)


def literal_costs(name, scores, exclude=None):
    """Scores as costs, infinite where a query excludes a candidate."""
    costs = -scores if name in LARGER else scores
    return costs if exclude is None else np.where(exclude.toarray() != 0, np.inf, costs)


def literal_ranks(costs, pairs, tolerance=0.0, target_costs=None):
    """Ranks by counting along whole rows, where excluded candidates are those of infinite cost."""
    ranks = []
    for query, target in pairs:
        cost = costs[query, target] if target_costs is None else target_costs[query, target]
        as_good = costs[query] <= cost + tolerance
        as_good[target] = False
        ranks.append(1 + as_good.sum())
    return np.array(ranks, np.int64)


def check_neighbors(costs, positions, scores, sign, tolerance):
    """Check that each row has the k least costs, best first, of distinct candidates, within `tolerance`."""
    k = positions.shape[1]
    for row, places, own in zip(costs, positions, scores, strict=True):
        best = np.sort(row[np.isfinite(row)])[:k]
        there = places[: len(best)]
        assert (places[len(best) :] == -1).all()
        assert np.isnan(own[len(best) :]).all()
        assert len(set(there.tolist())) == len(there)
        assert (there >= 0).all()
        np.testing.assert_allclose(row[there], best, rtol=0, atol=tolerance)
        np.testing.assert_allclose(sign * own[: len(best)], row[there], rtol=0, atol=tolerance)
        assert (np.diff(sign * own[: len(best)]) >= 0).all()


def random_points(n, dim, seed, *, spread=1.0, repeats=0.0, zeros=0.0, tau=None):
    """Make points, a share of which are copies of others, and a share of which have mean 0."""
    rng = np.random.default_rng(seed)
    mean, stddev = spread * rng.normal(size=(n, dim)), rng.uniform(0.05, 1.3, size=(n, dim))
    for row in np.flatnonzero(rng.random(n) < repeats):
        source = rng.integers(n)
        mean[row], stddev[row] = mean[source], stddev[source]
    mean[rng.random(n) < zeros] = 0.0
    tau = np.full(dim, 0.9) if tau is None else tau
    return Posterior(mean.astype(np.float32), stddev.astype(np.float32), tau=tau)


def whole_points(n, dim, seed):
    """Make points whose scores are exact in float32, with many ties: small integers, and deviations of 1/2 and 1."""
    rng = np.random.default_rng(seed)
    mean, stddev = rng.integers(-2, 3, size=(n, dim)), rng.choice([0.5, 1.0], size=(n, dim))
    return Posterior(mean.astype(np.float32), stddev.astype(np.float32), tau=np.full(dim, 0.5))


def random_pattern(n_queries, n_candidates, share, seed):
    """Make a pattern of exclusions."""
    return csr_array(np.random.default_rng(seed).random((n_queries, n_candidates)) < share)


def correlated_points(network, n, *, dim=5, n_features=7, hidden=(16,), seed=0, repeats=0.3):
    """Make the posterior of random rows, some of them equal, under a pairwise model that was never trained.

    Weights are scaled up, so that correlations reach from -1 to 1.
    """
    torch.manual_seed(seed)
    family = Pairwise(network, hidden=None if network == "metric" else hidden)
    family.build(n_features, dim, normalize="none", dropout=0.0)
    encoder, decoder = Encoder(n_features, dim, hidden=(8,)), Decoder(dim, n_features, hidden=(8,))
    model = CorrelatedModel(encoder, decoder, make_likelihood("gaussian", n_features), family=family, tau=0.9)
    if network != "metric":
        with torch.no_grad():
            for parameter in family.pair_network.parameters():
                parameter *= 3.0
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    for row in np.flatnonzero(rng.random(n) < repeats):
        X[row] = X[rng.integers(n)]
    return family.infer(model, FeatureTable(X))


def literal_correlation(points, left, right):
    """Correlations of all pairs of some positions with others, as listed pairs."""
    pairs = np.stack([np.repeat(left, len(right)), np.tile(right, len(left))], axis=1)
    return np.tanh(points.pre_activation(pairs)).reshape(len(left), len(right), points.n_components)


@st.composite
def searches(draw):
    """Draw queries, candidates, exclusions and a number of neighbours; ties and empty rows are common."""
    n_queries, n_candidates, dim = draw(st.integers(0, 12)), draw(st.integers(0, 30)), draw(st.integers(1, 9))
    seed, share = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([0.0, 0.2, 0.9, 1.0]))
    spread = draw(st.sampled_from([1e-3, 1.0, 30.0]))
    tau = np.random.default_rng(seed).choice([0.99, -0.7, 0.0, 0.3], dim)
    queries, candidates = (
        random_points(n, dim, seed, spread=spread, repeats=0.4, zeros=0.1, tau=tau) for n in (n_queries, n_candidates)
    )
    exclude = random_pattern(n_queries, n_candidates, share, seed)
    return queries, candidates, exclude, draw(st.integers(1, 40))
