"""Nearest candidates, ranks and scores against whole matrices in float64."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, eye_array

from corrvae.model.posterior import Posterior
from corrvae.scoring import METRICS, Metric, best_pairs, nearest, parts, rank, score, score_matrix, search
from support.literal_scores import (
    LARGER,
    NAMES,
    check_neighbors,
    correlated_points,
    literal_correlation,
    literal_costs,
    literal_ranks,
    literal_scores,
    random_pattern,
    random_points,
    searches,
    whole_points,
)

NETWORKS = ["perceptron", "bilinear", "metric"]


@contextmanager
def small_blocks(rows=7, tile=200):
    """Cut even few points into many blocks and tiles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_ROWS", rows)
        patch.setattr(search, "_TILE", tile)
        patch.setattr(search, "_FEW", 2)
        yield


@contextmanager
def torch_threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def tolerance(queries, candidates):
    """Float32 rounding of the terms that scores are summed from."""
    size = sum(float(np.square(part).sum(1).max(initial=0)) for part in (queries.mean, candidates.mean))
    return 1e-5 * (size / 0.02 + queries.n_components)


def oneself(n):
    return csr_array(eye_array(n))


@pytest.mark.parametrize("name", NAMES)
@given(given=searches())
@settings(max_examples=25)
def test_neighbors_are_the_least_of_whole_rows(name, given):
    queries, candidates, exclude, k = given
    with small_blocks():
        positions, scores = nearest(queries, candidates, name, k, exclude=exclude)
    costs = literal_costs(name, literal_scores(name, queries, candidates), exclude)
    assert positions.shape == scores.shape == (queries.n_vertices, k)
    check_neighbors(costs, positions, scores, METRICS[name].sign, tolerance(queries, candidates))


@pytest.mark.parametrize("name", NAMES)
@given(given=searches(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_ranks_count_along_whole_rows(name, given, seed):
    queries, candidates, exclude, _ = given
    n_pairs = 9 if min(queries.n_vertices, candidates.n_vertices) else 0
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, [max(1, queries.n_vertices), max(1, candidates.n_vertices)], size=(n_pairs, 2))
    with small_blocks():
        ranks, scores = rank(queries, candidates, name, pairs, exclude=exclude)
    literal = literal_scores(name, queries, candidates)
    slack = tolerance(queries, candidates)
    np.testing.assert_allclose(scores, literal[tuple(pairs.T)], rtol=1e-9, atol=1e-9)
    costs, whole = literal_costs(name, literal, exclude), literal_costs(name, literal)
    assert (ranks >= literal_ranks(costs, pairs, -slack, whole)).all()
    assert (ranks <= literal_ranks(costs, pairs, slack, whole)).all()


@pytest.mark.parametrize("name", ["expected_distance", "mean_distance", "inner_product"])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), dim=st.integers(1, 4), same=st.booleans())
def test_ties_count_against_the_target(name, seed, n, dim, same):
    queries = whole_points(n, dim, seed)
    candidates = queries if same else whole_points(25, dim, seed + 1)
    exclude = random_pattern(n, candidates.n_vertices, 0.2, seed)
    pairs = np.random.default_rng(seed).integers(0, [n, candidates.n_vertices], size=(20, 2))
    with small_blocks():
        ranks, _ = rank(queries, candidates, name, pairs, exclude=exclude)
    literal = literal_scores(name, queries, candidates)
    costs, whole = literal_costs(name, literal, exclude), literal_costs(name, literal)
    np.testing.assert_array_equal(ranks, literal_ranks(costs, pairs, target_costs=whole))


@pytest.mark.parametrize("name", NAMES)
def test_equal_rows_tie_whatever_the_rounding(name):
    one = random_points(1, 30, 0)
    points = one.take(np.zeros(50, np.int64))
    pairs = np.stack([np.arange(50), np.roll(np.arange(50), 1)], axis=1)
    ranks, scores = rank(points, points, name, pairs, exclude=oneself(50))
    assert (ranks == 49).all()
    assert len(set(scores)) == 1


@pytest.mark.parametrize(("n", "repeats"), [(60, 0.4), (50, 0.0)])  # 50: the last block has one column
@pytest.mark.parametrize("name", ["log_odds", "expected_distance"])
def test_queries_that_are_the_candidates(name, n, repeats):
    points = random_points(n, 4, 1, repeats=repeats)
    exclude = random_pattern(n, n, 0.1, 2)  # not symmetric
    costs = literal_costs(name, literal_scores(name, points, points), exclude)
    with small_blocks():
        positions, scores = nearest(points, points, name, 11, exclude=exclude)
    check_neighbors(costs, positions, scores, METRICS[name].sign, 1e-4)


@pytest.mark.parametrize("network", NETWORKS)
def test_correlated_neighbors(network):
    points = correlated_points(network, 60)
    everyone = np.arange(60)
    rho = literal_correlation(points, everyone, everyone)
    assert rho.min() < 0 or network == "metric"
    assert rho.max() > 0.3
    exclude = random_pattern(60, 60, 0.1, 3)
    costs = literal_costs("expected_distance", literal_scores("expected_distance", points, points, rho), exclude)
    with small_blocks():
        positions, scores = nearest(points, points, "expected_distance", 9, exclude=exclude)
    check_neighbors(costs, positions, scores, 1.0, 1e-4)


@pytest.mark.parametrize("network", NETWORKS)
def test_correlated_ranks(network):
    points = correlated_points(network, 60)
    everyone, rng = np.arange(60), np.random.default_rng(0)
    literal = literal_scores("expected_distance", points, points, literal_correlation(points, everyone, everyone))
    for asked in (everyone, everyone[:20], everyone[50:53]):
        pairs = np.stack([rng.choice(asked, 70), rng.integers(0, 60, 70)], axis=1)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        with small_blocks():
            ranks, scores = rank(points, points, "expected_distance", pairs, exclude=oneself(60))
        np.testing.assert_allclose(scores, literal[tuple(pairs.T)], rtol=1e-6)
        costs = literal_costs("expected_distance", literal, oneself(60))
        assert (ranks >= literal_ranks(costs, pairs, -1e-4)).all()
        assert (ranks <= literal_ranks(costs, pairs, 1e-4)).all()


@pytest.mark.parametrize("network", NETWORKS)
def test_two_posteriors_of_one_model_are_correlated_with_each_other(network):
    points = correlated_points(network, 50)
    left, right = np.arange(13), np.arange(10, 50)
    queries, candidates = points.take(left), points.take(right)
    literal = literal_scores("expected_distance", queries, candidates, literal_correlation(points, left, right))
    with small_blocks():
        positions, scores = nearest(queries, candidates, "expected_distance", 6)
        pairs = np.stack([np.repeat(np.arange(13), 6), positions.ravel()], axis=1)
        listed = score(queries, candidates, "expected_distance", pairs)
        ranks, _ = rank(queries, candidates, "expected_distance", pairs)
    check_neighbors(literal, positions, scores, 1.0, 1e-4)
    np.testing.assert_allclose(listed, literal[tuple(pairs.T)], rtol=1e-5)
    assert (ranks >= literal_ranks(literal, pairs, -1e-4)).all()
    assert (ranks <= literal_ranks(literal, pairs, 1e-4)).all()


def test_correlation_is_that_of_the_paper():
    """Both points' features side by side through the perceptron, in both orders, in float64."""
    points = correlated_points("perceptron", 12, repeats=0.0)
    network, X = points._family.pair_network.double(), points._table.rows(np.arange(12)).values.double()
    first = torch.cat(network.weight.chunk(2, dim=1)).T  # of [x_i; x_j]

    def a(x, y):
        return network.last(torch.relu(first @ torch.cat([x, y]) + network.bias))

    with torch.no_grad():
        rho = np.array([[torch.tanh((a(x, y) + a(y, x)) / 2).numpy() for y in X] for x in X])
    network.float()
    literal = literal_scores("expected_distance", points, points, rho)
    np.testing.assert_allclose(score_matrix(points, points, "expected_distance"), literal, rtol=1e-5)


def counting(metric, calls):
    def function(queries, candidates):
        calls.append((len(queries), len(candidates)))
        return metric.function(queries, candidates)

    fields = {"uses_correlation": metric.uses_correlation, "is_product": metric.is_product, "parts": metric.parts}
    return Metric("counted", function, metric.larger_is_better, is_symmetric=metric.is_symmetric, **fields)


@pytest.mark.parametrize("kind", ["log_odds", "correlated"])
def test_each_unordered_pair_of_distinct_points_is_evaluated_once(kind):
    points = random_points(80, 3, 0, repeats=0.5) if kind == "log_odds" else correlated_points("bilinear", 80)
    n_distinct = len(np.unique(np.concatenate([points.mean, points.stddev], axis=1), axis=0))
    assert n_distinct < 70
    calls = []
    metric = counting(METRICS["log_odds" if kind == "log_odds" else "expected_distance"], calls)
    with small_blocks():
        nearest(points, points, metric, 3)
    # the blocks along the diagonal are squares of at most 7 points
    assert sum(rows * columns for rows, columns in calls) <= n_distinct * (n_distinct + 1) / 2 + 3 * n_distinct


@pytest.mark.parametrize("name", ["log_odds", "expected_distance"])
def test_only_rows_that_are_asked_about_are_evaluated(name):
    points, calls = random_points(200, 3, 0), []
    pairs = np.array([[7, 3], [150, 2], [7, 9]])
    rank(points, points, counting(METRICS[name], calls), pairs)
    assert sum(rows * columns for rows, columns in calls) == 2 * 200


@pytest.mark.parametrize("n_queries", [1, 700])
def test_memory_is_bounded(n_queries):
    points, calls = random_points(1500, 6, 0), []
    nearest(points.take(np.arange(n_queries)), points, counting(METRICS["log_odds"], calls), 3)
    assert max(rows * columns for rows, columns in calls) * 6 <= search._TILE
    calls.clear()
    nearest(points.take(np.arange(n_queries)), points, counting(METRICS["cosine"], calls), 3)
    assert max(rows * columns for rows, columns in calls) <= 8 * search._ROWS**2


def test_a_metric_of_ones_own():
    points, others = random_points(20, 4, 0), random_points(30, 4, 1)

    def asymmetric(queries, candidates):
        return (queries.mean[:, None] - 2 * candidates.mean).abs().sum(2) + candidates.stddev[:, 0]

    literal = np.abs(points.mean[:, None] - 2 * others.mean).sum(2) + others.stddev[:, 0]
    with small_blocks():
        positions, scores = nearest(points, others, asymmetric, 5)
        check_neighbors(-literal, positions, scores, -1.0, 1e-5)
        pairs = np.array([[3, 4], [3, 20], [0, 0]])
        ranks, listed = rank(points, others, asymmetric, pairs)
    np.testing.assert_allclose(listed, literal[tuple(pairs.T)], rtol=1e-6)
    np.testing.assert_array_equal(ranks, literal_ranks(-literal, pairs))
    assert parts(points, others, asymmetric, pairs) is None
    square = np.abs(points.mean[:, None] - 2 * points.mean).sum(2) + points.stddev[:, 0]
    with small_blocks():
        positions, scores = nearest(points, points, asymmetric, 5)
    check_neighbors(-square, positions, scores, -1.0, 1e-5)


def test_a_metric_of_ones_own_with_correlations():
    points = correlated_points("bilinear", 30)
    literal = literal_correlation(points, np.arange(30), np.arange(30)).mean(2)

    def correlation(queries, candidates):
        return torch.tanh(queries.pre_activation(candidates)).mean(2)

    metric = Metric("correlation", correlation, larger_is_better=True, uses_correlation=True, is_symmetric=True)
    with small_blocks():
        positions, scores = nearest(points, points, metric, 4)
    check_neighbors(-literal, positions, scores, -1.0, 1e-5)
    np.testing.assert_allclose(score(points, points, metric, np.array([[2, 5]])), literal[[2], [5]], rtol=1e-5)
    with pytest.raises(ValueError, match="uses_correlation=True"):
        nearest(points, points, correlation, 4)


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda queries, candidates: candidates.mean @ queries.mean.T, r"shape \(4, 6\).*got shape \(6, 4\)"),
        (lambda queries, candidates: 1.0, r"must return a tensor.*got float"),
        (lambda queries, candidates: queries.mean @ candidates.mean.T * torch.nan, "is not a number for some pair"),
    ],
)
def test_a_function_that_returns_something_else(function, match):
    with pytest.raises(ValueError, match=match):
        nearest(random_points(4, 2, 0), random_points(6, 2, 0), function, 2)


def test_a_pair_network_of_not_a_numbers():
    points = correlated_points("perceptron", 70)
    points._family.pair_network.weight.data.fill_(torch.nan)
    with pytest.raises(ValueError, match="expected_distance is not a number"):
        nearest(points, points, "expected_distance", 2)


def test_a_target_without_a_score_has_no_rank():
    points = random_points(4, 2, 0)
    with pytest.raises(ValueError, match="query 1 and target 2 is not finite"):
        rank(points, points, lambda q, c: q.mean @ c.mean.T + torch.inf, np.array([[1, 2]]))


@pytest.mark.parametrize("kind", ["log_odds", "correlated", "cosine"])
def test_threads_change_neither_results_nor_the_number_of_threads(kind):
    points = correlated_points("perceptron", 60) if kind == "correlated" else random_points(60, 4, 0, repeats=0.3)
    name = "expected_distance" if kind == "correlated" else kind
    found = []
    for count in (1, 3):
        with torch_threads(count), small_blocks():
            found.append(nearest(points, points, name, 5))
            assert torch.get_num_threads() == count
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("count", [1, 3])
def test_an_interruption_ends_the_search(count):
    def interrupted(queries, candidates):
        raise KeyboardInterrupt

    with torch_threads(count), pytest.raises(KeyboardInterrupt):
        nearest(random_points(4, 2, 0), random_points(6, 2, 0), interrupted, 2)
    with torch_threads(count):
        with pytest.raises(KeyboardInterrupt):
            nearest(random_points(4, 2, 0), random_points(6, 2, 0), interrupted, 2)
        assert torch.get_num_threads() == count


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_matrix(name):
    queries, candidates = random_points(23, 5, 0, repeats=0.3), random_points(31, 5, 1, zeros=0.2)
    for left, right in ((queries, candidates), (candidates, candidates)):
        with small_blocks():
            found = score_matrix(left, right, name)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, literal_scores(name, left, right), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_pairs", [1, 17, 10_000])
def test_best_pairs_are_the_best_of_the_upper_triangle(name, n_pairs):
    points = random_points(40, 3, 0, repeats=0.2)
    exclude = random_pattern(40, 40, 0.1, 1)
    exclude = csr_array(exclude + exclude.T)
    costs = literal_costs(name, literal_scores(name, points, points), exclude)
    i, j = np.triu_indices(40, 1)
    wanted = np.sort(costs[i, j][np.isfinite(costs[i, j])])[:n_pairs]
    with small_blocks():
        pairs, scores = best_pairs(points, name, n_pairs, exclude=exclude)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs) == len(wanted)
    np.testing.assert_allclose(METRICS[name].sign * scores, wanted, atol=1e-4)
    np.testing.assert_allclose(costs[tuple(pairs.T)], wanted, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_parts_sum_to_the_score(name):
    queries, candidates = random_points(9, 4, 0), random_points(8, 4, 1)
    pairs = np.stack(np.divmod(np.arange(72), 8), axis=1)
    found = parts(queries, candidates, name, pairs)
    np.testing.assert_allclose(found.score, literal_scores(name, queries, candidates).ravel(), rtol=1e-9)
    assert (found.correlation == 0).all()
    if name in ("expected_distance", "log_odds"):
        still = Posterior(np.zeros((9, 4)), queries.stddev.astype(float), tau=queries.tau)
        moved = Posterior(np.zeros((8, 4)), candidates.stddev.astype(float), tau=queries.tau)
        np.testing.assert_allclose(found.variance, literal_scores(name, still, moved).ravel(), rtol=1e-9)
    else:
        assert (found.variance == 0).all()


def test_parts_of_a_correlated_pair():
    points = correlated_points("perceptron", 10)
    pairs = np.array([[0, 1], [4, 2]])
    found = parts(points, points, "expected_distance", pairs)
    rho, s, t = np.tanh(points.pre_activation(pairs)), points.stddev[pairs[:, 0]], points.stddev[pairs[:, 1]]
    np.testing.assert_allclose(found.correlation, -2 * (rho * s * t).sum(1), rtol=1e-5)
    known = parts(points, points, "expected_distance", pairs, found.score + 1.0)
    np.testing.assert_allclose(known.correlation, found.correlation + 1.0)
    np.testing.assert_array_equal(known.mean, found.mean)


def test_small_distances_keep_their_digits():
    """Which the product of float32 numbers, 101.2 + 100 - 2 x 100.6, does not."""
    points = Posterior(np.array([[10.0], [10.06], [10.2]], np.float32), np.ones((3, 1), np.float32))
    positions, scores = nearest(points, points, "mean_distance", 2)
    exact = np.square(points.mean.astype(np.float64) - points.mean[positions, 0])
    assert positions.tolist() == [[0, 1], [1, 0], [2, 1]]
    np.testing.assert_array_equal(scores, exact)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_pair_with_correlation_1_is_no_nearer_than_its_means(network):
    points = correlated_points(network, 20)
    distances = score_matrix(points, points, "expected_distance")
    apart = np.square(points.mean[:, None] - points.mean).sum(2) + np.square(
        points.stddev[:, None] - points.stddev
    ).sum(2)
    assert (distances >= apart * (1 - 1e-5)).all()


def test_candidates_run_out():
    points = random_points(3, 2, 0)
    positions, scores = nearest(points, points, "cosine", 5, exclude=oneself(3))
    assert (positions[:, 2:] == -1).all()
    assert np.isnan(scores[:, 2:]).all()
    positions, scores = nearest(points, points, "cosine", 2, exclude=csr_array(np.ones((3, 3))))
    assert (positions == -1).all()
    assert np.isnan(scores).all()


def test_stored_entries_exclude_whatever_their_values():
    points = random_points(4, 2, 0)
    pattern = csr_array((np.zeros(4), (np.arange(4), np.arange(4))), shape=(4, 4))
    positions, _ = nearest(points, points, "mean_distance", 1, exclude=pattern)
    assert (positions[:, 0] != np.arange(4)).all()
    pairs = np.stack([np.arange(4)] * 2, axis=1)
    np.testing.assert_array_equal(
        rank(points, points, "mean_distance", pairs, exclude=pattern)[0],
        rank(points, points, "mean_distance", pairs)[0],
    )


def test_wrong_arguments():
    points = random_points(4, 2, 0)
    with pytest.raises(ValueError, match="must be positive, got 0"):
        nearest(points, points, "cosine", 0)
    with pytest.raises(ValueError, match="must be positive, got 0"):
        best_pairs(points, "cosine", 0)
    with pytest.raises(ValueError, match="2 dimensions, but candidates have 3"):
        nearest(points, random_points(4, 3, 0), "cosine", 1)
    with pytest.raises(ValueError, match="2 dimensions, but candidates have 3"):
        score(points, random_points(4, 3, 0), "cosine", np.array([[0, 1]]))


def test_a_bar_on_standard_error(capsys):
    points = random_points(30, 2, 0)
    with small_blocks():
        nearest(points, points, "cosine", 1, progress=True)
        assert "neighbours" in capsys.readouterr().err
        nearest(points, points, "cosine", 1)
    assert capsys.readouterr().err == ""  # standard error is no terminal here


def test_larger_scores_of_some_metrics_are_better():
    assert {name for name, metric in METRICS.items() if metric.larger_is_better} == LARGER
    assert list(METRICS) == NAMES
