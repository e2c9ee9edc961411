"""Neighbours, scores, ranks, matches and probabilities, under the ids of users."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.exceptions import NotFittedError

from corrvae import CorrelatedVAE, CorrelationGraph, load
from corrvae.scoring import METRICS, Metric
from support.pairs import QUICK, paired_rows, quick_pairwise
from support.unchecked import unchecked

DATA = paired_rows()
X, GRAPH = DATA.X, DATA.graph
NEW = paired_rows(20, seed=5).X
NAMES = ["expected_distance", "log_odds", "mean_distance", "cosine", "inner_product"]
LARGER = {name: metric.larger_is_better for name, metric in METRICS.items()}
# Numbers that are a permutation of the positions, so that an id taken for a position is another row.
ORDER = np.random.default_rng(3).permutation(60)


@pytest.fixture(scope="module")
def independent():
    return CorrelatedVAE(**QUICK).fit(X, graph=GRAPH)


@pytest.fixture(scope="module")
def pairwise():
    settings = quick_pairwise(gamma_kl=0.1, gamma_mi=0.1)
    return CorrelatedVAE(**{**settings, "max_steps": 60, "learning_rate": 1e-2}).fit(X, graph=GRAPH)


@pytest.fixture(params=["independent", "pairwise"])
def model(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def permuted():
    """A model whose ids are positions of another order, and where each id is."""
    graph = CorrelationGraph(GRAPH.edges, 60).subgraph(ORDER)
    return CorrelatedVAE(**quick_pairwise()).fit(X[ORDER], graph=graph), np.argsort(ORDER)


def all_scores(model, name, queries=X, candidates=X):
    """Every score by the formulas, in float64."""
    both = model.posterior(np.concatenate([queries, candidates]))
    left, right = np.arange(len(queries)), len(queries) + np.arange(len(candidates))
    pairs = np.stack([np.repeat(left, len(right)), np.tile(right, len(left))], axis=1)
    rho = both.correlation(pairs).reshape(len(left), len(right), -1)
    mean, stddev = both.mean.astype(np.float64), both.stddev.astype(np.float64)
    m, s, n, t, tau = mean[left][:, None], stddev[left][:, None], mean[right], stddev[right], model.tau_
    if name == "log_odds":
        u, v = 1 - np.minimum(s, 1) ** 2, 1 - np.minimum(t, 1) ** 2
        D = 1 - tau**2 * u * v
        return -0.5 * (np.log(D) + (tau**2 * (v * m**2 + u * n**2) - 2 * tau * m * n) / D).sum(-1)
    product = (m * n).sum(-1)
    if name == "inner_product":
        return product
    if name == "cosine":
        return product / np.sqrt((m**2).sum(-1) * (n**2).sum(-1))
    distance = ((m - n) ** 2).sum(-1)
    return distance if name == "mean_distance" else distance + (s**2 + t**2 - 2 * rho * s * t).sum(-1)


SELF = np.eye(60, dtype=bool)
EDGES = SELF | GRAPH.to_scipy().toarray().astype(bool)
NOBODY = np.zeros((20, 60), dtype=bool)


def check_neighbors(found, scores, left_out, k, larger):
    """Check that the scores are the best of those that may be, and belong to the ids."""
    costs = np.where(left_out, np.inf, -scores if larger else scores)
    best = np.sort(costs, axis=1)[:, :k]
    positions = GRAPH.index_of(found.ids.ravel()).reshape(found.ids.shape)
    own = np.take_along_axis(costs, positions, axis=1)
    np.testing.assert_allclose(own, best, rtol=1e-4, atol=1e-4)  # float32 may order what is equal in it otherwise
    np.testing.assert_allclose(found.scores, -own if larger else own, rtol=1e-4, atol=1e-4)
    assert all(len(set(row)) == len(row) for row in positions.tolist())


# Neighbours


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("exclude", "left_out"), [(None, SELF), ("self", SELF), (GRAPH, EDGES)])
def test_neighbours_of_training_rows(model, name, exclude, left_out):
    found = model.kneighbors(n_neighbors=4, metric=name, exclude=exclude)
    check_neighbors(found, all_scores(model, name), left_out, 4, LARGER[name])
    np.testing.assert_allclose(found.parts.score, found.scores, rtol=1e-4, atol=1e-4)
    assert found.query_ids.tolist() == GRAPH.ids.tolist()
    order = np.diff(found.scores, axis=1)
    assert (order <= 0).all() if LARGER[name] else (order >= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_neighbours_of_new_rows(model, name):
    found = model.kneighbors(NEW, n_neighbors=5, metric=name)
    check_neighbors(found, all_scores(model, name, NEW), NOBODY, 5, LARGER[name])
    scores, ids = found
    assert ids is found.ids
    assert scores is found.scores


def test_correlations_change_who_is_near(pairwise):
    near = pairwise.kneighbors(n_neighbors=10)
    assert np.abs(near.parts.correlation).max() > 0.01
    assert near.ids.tolist() != pairwise.kneighbors(n_neighbors=10, metric="mean_distance").ids.tolist()


def test_the_kind_of_features_does_not_matter(model):
    whole = model.kneighbors(NEW, n_neighbors=3)
    for other in (sparse.csr_array(NEW), pd.DataFrame(NEW), NEW.tolist()):
        np.testing.assert_array_equal(model.kneighbors(other, n_neighbors=3).ids, whole.ids)


def test_one_id_gives_single_rows_and_many_give_many(model):
    everyone = model.kneighbors(n_neighbors=3)
    scores, ids = one = model.kneighbors(ids="v7", n_neighbors=3)
    assert ids.tolist() == everyone.ids[7].tolist()
    np.testing.assert_allclose(scores, everyone.scores[7], rtol=1e-5)
    assert one.query_ids.item() == "v7"
    some = model.kneighbors(ids=["v9", "v7"], n_neighbors=3)
    assert some.ids.tolist() == everyone.ids[[9, 7]].tolist()
    assert model.kneighbors(ids=[], n_neighbors=3).ids.shape[0] == 0


def test_ids_of_new_rows_are_those_of_their_table(model):
    frame = pd.DataFrame(NEW, index=[f"n{row}" for row in range(20)])
    everyone = model.kneighbors(NEW, n_neighbors=3)
    some = model.kneighbors(frame, ids=["n4", "n2"], n_neighbors=3)
    assert some.query_ids.tolist() == ["n4", "n2"]
    assert some.ids.tolist() == everyone.ids[[4, 2]].tolist()
    assert model.kneighbors(NEW, ids=[4, 2], n_neighbors=3).ids.tolist() == some.ids.tolist()
    with pytest.raises(ValueError, match="id 'v4' is not among the 20"):
        model.kneighbors(frame, ids=["v4"])


def test_candidates_can_be_chosen(model):
    chosen = ["v3", "v50", "v7"]
    found = model.kneighbors(ids=["v3", "v4"], n_neighbors=9, candidates=chosen)
    assert sorted(found.ids[1]) == sorted(chosen)
    assert sorted(found.ids[0, :2]) == ["v50", "v7"]
    assert found.ids[0, 2] is None
    assert np.isnan(found.scores[0, 2])
    assert np.isnan(found.parts.mean[0, 2])
    assert model.kneighbors(NEW, n_neighbors=2, candidates=["v5"]).ids.tolist() == [["v5"]] * 20


def test_rows_of_a_frame_leave_out_the_training_rows_of_their_ids(model):
    everyone = model.kneighbors(n_neighbors=3)
    frame = pd.DataFrame(X, index=GRAPH.ids).iloc[[5, 2]]
    assert model.kneighbors(frame, n_neighbors=3, exclude="self").ids.tolist() == everyone.ids[[5, 2]].tolist()
    assert model.kneighbors(frame, n_neighbors=1, metric="mean_distance").ids.tolist() == [["v5"], ["v2"]]


def test_nobody_may_be_left():
    small = CorrelatedVAE(**{**QUICK, "batch_size": 2}).fit(X[:2])
    scores, ids = small.kneighbors(exclude=CorrelationGraph.from_edges([(0, 1)]))
    assert scores.shape == ids.shape == (2, 0)


def manhattan(queries, candidates):
    return -torch.cdist(queries.mean, candidates.mean, p=1)


def test_a_metric_may_be_a_function_of_two_blocks_of_points(model):
    expected = -np.abs(model.embedding_[:, None] - model.embedding_).sum(2)
    found = model.kneighbors(n_neighbors=4, metric=manhattan)
    check_neighbors(found, expected, SELF, 4, larger=True)
    assert (found.metric, found.parts) == ("manhattan", None)
    pairs = np.array([[0, 1], [7, 3]])
    scores = model.score_pairs(GRAPH.ids[pairs], metric=manhattan)
    np.testing.assert_allclose(scores.scores, expected[pairs[:, 0], pairs[:, 1]], rtol=1e-5)
    nearer = (expected[0] >= expected[0, 1]).sum() - (expected[0, 0] >= expected[0, 1])
    assert model.rank_pairs([("v0", "v1")], metric=manhattan).ranks.tolist() == [nearer]
    assert len(model.match(["v0", "v1"], ["v2", "v3"], metric=manhattan)) == 2


def test_a_metric_of_correlations_says_so(pairwise):
    def correlation(queries, candidates):
        return queries.pre_activation(candidates).sum(2)

    with pytest.raises(ValueError, match="uses_correlation=True"):
        pairwise.kneighbors(metric=correlation)
    metric = Metric("correlation", correlation, larger_is_better=True, uses_correlation=True)
    found = pairwise.kneighbors(ids=["v4"], n_neighbors=2, metric=metric)
    others = GRAPH.ids[GRAPH.ids != "v4"]
    whole = np.arctanh(pairwise.posterior().correlation([("v4", other) for other in others])).sum(1)
    np.testing.assert_allclose(found.scores[0], np.sort(whole)[::-1][:2], rtol=1e-4)


# Ids are never positions


def test_numbers_are_ids_in_every_question(permuted):
    model, place = permuted
    by_position = CorrelatedVAE(**quick_pairwise())
    vars(by_position).update(vars(model))
    by_position.ids_ = np.arange(60)  # the same rows under their positions
    by_position._posterior = None
    assert model.ids_.tolist() == ORDER.tolist()
    pairs = np.array([[0, 1], [5, 19], [30, 7]])
    same = place[pairs]
    np.testing.assert_array_equal(model.score_pairs(pairs).scores, by_position.score_pairs(same).scores)
    np.testing.assert_array_equal(model.rank_pairs(pairs).ranks, by_position.rank_pairs(same).ranks)
    np.testing.assert_array_equal(model.posterior().correlation(pairs), by_position.posterior().correlation(same))
    assert model.score_pairs(pairs).id_pairs.tolist() == pairs.tolist()
    queries = np.array([8, 2])
    expected = by_position.kneighbors(ids=place[queries], n_neighbors=3)
    found = model.kneighbors(ids=queries, n_neighbors=3)
    assert found.ids.tolist() == ORDER[expected.ids].tolist()
    assert found.query_ids.tolist() == queries.tolist()
    expected = by_position.kneighbors(ids=place[8], n_neighbors=3, candidates=place[1:5])
    assert model.kneighbors(ids=8, n_neighbors=3, candidates=[1, 2, 3, 4]).ids.tolist() == ORDER[expected.ids].tolist()
    matched, expected = model.match([0, 1], [2, 3]), by_position.match(place[[0, 1]], place[[2, 3]])
    assert matched.id_pairs.tolist() == ORDER[expected.id_pairs].tolist()
    new = pd.DataFrame(NEW, index=np.random.default_rng(0).permutation(20))
    where = np.argsort(new.index.to_numpy())
    pairs = np.array([[0, 1], [5, 19]])
    np.testing.assert_allclose(
        model.score_pairs(pairs, new).scores, model.score_pairs(where[pairs], NEW).scores, rtol=1e-6
    )


@pytest.mark.parametrize("ids", [["v0", 60], [60, 61], [0, 1]])
def test_an_unknown_id_is_named(model, ids):
    unknown = next(one for one in ids if one not in GRAPH.ids.tolist())
    for ask in (
        lambda: model.kneighbors(ids=ids),
        lambda: model.kneighbors(candidates=ids),
        lambda: model.score_pairs([ids]),
        lambda: model.rank_pairs([ids]),
        lambda: model.match(ids, ["v1"]),
        lambda: model.posterior().correlation([ids]),
    ):
        with pytest.raises(ValueError, match=f"id {unknown} is not among the 60 vertices, whose ids are like 'v0'"):
            ask()


# Given pairs


@pytest.mark.parametrize("name", NAMES)
def test_pairs_of_training_ids_and_of_new_rows(model, name):
    pairs = np.array([[0, 1], [5, 6], [7, 3]])
    whole = all_scores(model, name)
    found = model.score_pairs(GRAPH.ids[pairs], metric=name)
    np.testing.assert_allclose(np.asarray(found), whole[pairs[:, 0], pairs[:, 1]], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.parts.score, found.scores, rtol=1e-5, atol=1e-5)
    assert found.id_pairs.tolist() == GRAPH.ids[pairs].tolist()
    new = model.score_pairs(pairs, NEW, metric=name)
    expected = all_scores(model, name, NEW, NEW)[pairs[:, 0], pairs[:, 1]]
    np.testing.assert_allclose(new.scores, expected, rtol=1e-4, atol=1e-4)
    framed = model.score_pairs([("b", "a")], pd.DataFrame(NEW[:2], index=["a", "b"]), metric=name)
    np.testing.assert_allclose(framed.scores, model.score_pairs([(1, 0)], NEW, metric=name).scores, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("exclude", "left_out"), [(None, SELF), (GRAPH, EDGES)])
def test_ranks(model, name, exclude, left_out):
    rng = np.random.default_rng(0)
    pairs = np.concatenate([GRAPH.edges, np.stack([rng.permutation(60), rng.permutation(60)], axis=1)])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    found = model.rank_pairs(GRAPH.ids[pairs], metric=name, exclude=exclude)
    costs = all_scores(model, name) * (-1 if LARGER[name] else 1)
    # Blocks are in float32: a candidate this near to the target may count or not.
    bounds = []
    for tolerance in (-1e-5, 1e-5):
        as_good = (costs[pairs[:, 0]] <= costs[pairs[:, 0], pairs[:, 1]][:, None] + tolerance) & ~left_out[pairs[:, 0]]
        as_good[np.arange(len(pairs)), pairs[:, 1]] = False
        bounds.append(1 + as_good.sum(1))
    assert ((bounds[0] <= found.ranks) & (found.ranks <= bounds[1])).all()
    assert (bounds[0] == bounds[1]).mean() > 0.9
    np.testing.assert_array_equal(found.scores, model.score_pairs(GRAPH.ids[pairs], metric=name).scores)


def test_new_rows_are_ranked_with_a_graph_of_their_own(independent):
    own = CorrelationGraph.from_edges([(0, 1), (0, 2), (0, 3)], n_vertices=20)
    whole = all_scores(independent, "expected_distance", NEW, NEW)
    for given in (NEW, pd.DataFrame(NEW)):
        found = independent.rank_pairs([(0, 1)], given, exclude=own)
        assert found.ranks[0] == 1 + (np.delete(whole[0], range(4)) <= whole[0, 1]).sum()


# Matching


def test_matching_finds_the_best_sum(model):
    from scipy.optimize import linear_sum_assignment

    left, right = GRAPH.ids[GRAPH.edges[:, 0]], GRAPH.ids[GRAPH.edges[:, 1]]
    shuffled = np.random.default_rng(0).permutation(right)
    found = model.match(left, shuffled, metric="mean_distance")
    assert (found.unmatched, found.exact) == ({}, True)
    assert sorted(found.id_pairs[:, 1]) == sorted(right)
    whole = all_scores(model, "mean_distance")
    where = GRAPH.index_of(found.id_pairs.ravel()).reshape(-1, 2)
    np.testing.assert_allclose(found.scores, whole[where[:, 0], where[:, 1]], rtol=1e-4, atol=1e-4)
    block = whole[np.ix_(GRAPH.index_of(left), GRAPH.index_of(shuffled))]
    assert found.scores.sum() == pytest.approx(block[linear_sum_assignment(block)].sum(), rel=1e-4)
    nearest = model.match(left, shuffled, replace=True)
    near = model.kneighbors(ids=left, n_neighbors=1, candidates=shuffled)
    assert nearest.id_pairs.tolist() == np.stack([left, near.ids[:, 0]], axis=1).tolist()


def test_new_rows_can_be_matched(model):
    found = model.match(range(0, 20, 2), range(1, 20, 2), NEW)
    assert sorted(found.id_pairs[:, 1].tolist()) == list(range(1, 20, 2))
    frame = pd.DataFrame(NEW, index=[f"n{row}" for row in range(20)])
    same = model.match([f"n{row}" for row in range(0, 20, 2)], [f"n{row}" for row in range(1, 20, 2)], frame)
    np.testing.assert_allclose(same.scores, found.scores, rtol=1e-6)
    assert len(model.match(range(18), [18, 19], NEW, n_candidates=5)) == 2


def test_sides_must_differ_and_have_points(independent, permuted):
    with pytest.raises(ValueError, match="id 'v1' is on both sides"):
        independent.match(["v0", "v1"], ["v1", "v2"])
    with pytest.raises(ValueError, match="id 1 is on both sides"):
        permuted[0].match([0, 1], [1, 2])
    with pytest.raises(ValueError, match="without points"):
        independent.match([], ["v1"])
    with pytest.raises(ValueError, match="left holds id 'v1' more than once"):
        independent.match(["v1", "v1"], ["v2", "v3"])
    with pytest.raises(ValueError, match="candidates holds id 2 more than once"):
        permuted[0].kneighbors(candidates=[2, 2])


# Probabilities


@pytest.mark.parametrize("metric", ["log_odds", "expected_distance"])
def test_probabilities_of_links_held_out(metric):
    data = paired_rows(300, seed=2)
    held_out = data.graph.id_pairs[::2]
    model = CorrelatedVAE(**{**QUICK, "max_steps": 300, "learning_rate": 1e-2})
    model.fit(data.X, graph=data.graph.without(held_out))
    calibration = model.calibrate_links(held_out, metric=metric, random_state=0)
    assert calibration.prior == pytest.approx(149 / (150 * 299))
    assert (calibration.n_linked, calibration.n_unlinked) == (len(held_out), 1000)
    balanced = calibration.with_prior(0.5)
    linked = model.score_pairs(held_out, metric=metric, probability=balanced)
    others = np.column_stack([held_out[:, 0], np.roll(held_out[:, 1], 9)])
    unlinked = model.score_pairs(others, metric=metric, probability=balanced)
    assert linked.probabilities.mean() > 0.7
    assert unlinked.probabilities.mean() < 0.4


def test_calibrations_that_would_mislead_are_errors(independent):
    with pytest.raises(ValueError, match=r"link 1.*'v2'.*'v3'.*training"):
        independent.calibrate_links([("v0", "v9"), ("v2", "v3")])
    calibration = independent.calibrate_links([("v0", "v9"), ("v2", "v8")], random_state=0)
    with pytest.raises(ValueError, match="calibration is of log_odds, but the metric is cosine"):
        independent.score_pairs([("v0", "v1")], metric="cosine", probability=calibration)
    with pytest.raises(ValueError, match="pass prior"):
        independent.calibrate_links([(0, 1), (2, 3)], NEW)
    with pytest.raises(ValueError, match="joins 'v2' with itself"):
        independent.calibrate_links([("v0", "v9"), ("v2", "v2")])
    assert independent.calibrate_links([(0, 1), (2, 3)], NEW, prior=0.1, n_unlinked=50).n_unlinked == 50


# What cannot be asked


def test_what_cannot_be_asked(independent):
    with unchecked():
        for n_neighbors in (0, 2.5, True):
            with pytest.raises(ValueError, match="n_neighbors must be a positive integer"):
                independent.kneighbors(n_neighbors=n_neighbors)
        for wrong, words in (("manhattan", "metric must be one of"), (3, "metric must be a name")):
            with pytest.raises((ValueError, TypeError), match=words):
                independent.kneighbors(metric=wrong)
        with pytest.raises(ValueError, match="there are no candidates"):
            independent.kneighbors(candidates=[])
        with pytest.raises(ValueError, match="5 features"):
            independent.kneighbors(X[:, :2])
        for exclude in ("others", ["v0"], GRAPH.edges):
            with pytest.raises(TypeError, match='exclude must be "self", a CorrelationGraph or None'):
                independent.kneighbors(exclude=exclude)
        for pairs, words in (
            ([("v0", "v1", "v2")], "two"),
            (("v0", "v1"), "two"),
            ([("v0", "v0")], "pair 0 joins 'v0' with itself"),
        ):
            with pytest.raises(ValueError, match=words):
                independent.score_pairs(pairs)
    for ask in (CorrelatedVAE().kneighbors, CorrelatedVAE().posterior, lambda: CorrelatedVAE().score_pairs([(0, 1)])):
        with pytest.raises(NotFittedError):
            ask()


def test_a_model_without_its_features_asks_for_them(pairwise, tmp_path):
    pairwise.save(tmp_path / "run", store_features=False)
    again = load(tmp_path / "run")
    for ask in (again.kneighbors, lambda: again.rank_pairs([("v0", "v1")]), lambda: again.match(["v0"], ["v1"])):
        with pytest.raises(ValueError, match=r"store_features=False\); pass the features"):
            ask()
    assert again.kneighbors(n_neighbors=3, metric="log_odds").ids.shape == (60, 3)
    pairs = [("v0", "v1"), ("v3", "v9")]
    frame = pd.DataFrame(X, index=GRAPH.ids)
    np.testing.assert_allclose(again.score_pairs(pairs, frame).scores, pairwise.score_pairs(pairs).scores, rtol=1e-5)
    assert again.rank_pairs(pairs, frame).ranks.tolist() == pairwise.rank_pairs(pairs).ranks.tolist()
