import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from corrvae import CorrelatedVAE, CorrelationGraph, load
from corrvae.scoring.points import Exclusions, Points
from support.literal_scores import NAMES, literal_neighbors, literal_ranks, literal_scores
from support.pairs import QUICK, QUICK_PAIRWISE, paired_rows
from support.unchecked import unchecked

DATA = paired_rows()
X, GRAPH = DATA.X, DATA.graph
NEW = paired_rows(20, seed=5).X
LARGER = {"expected_distance": False, "log_odds": True, "mean_distance": False, "cosine": True}


@pytest.fixture(scope="module")
def independent():
    return CorrelatedVAE(**QUICK).fit(X, graph=GRAPH)


@pytest.fixture(scope="module")
def pairwise():
    return CorrelatedVAE(**{**QUICK_PAIRWISE, "max_steps": 60, "gamma": 0.1, "learning_rate": 1e-2}).fit(X, graph=GRAPH)


@pytest.fixture(params=["independent", "pairwise"])
def model(request):
    return request.getfixturevalue(request.param)


def all_scores(model, name, queries=X, candidates=X):
    """Every score by the formulas, from posteriors of features; those of training rows are as training left them."""
    both = model.infer_posterior(np.concatenate([queries, candidates]))
    left, right = np.arange(len(queries)), len(queries) + np.arange(len(candidates))
    pairs = np.stack([np.repeat(left, len(right)), np.tile(right, len(left))], axis=1)
    correlation = both.correlation(pairs).reshape(len(left), len(right), -1)
    known = Points.of(model.embedding_, model.stddev_)
    sides = (
        known if features is X else Points.of(both.mean[part], both.stddev[part])
        for features, part in ((queries, left), (candidates, right))
    )
    return literal_scores(name, *sides, model.tau_, correlation)


def excluded(pairs):
    return Exclusions.of(60, *np.asarray(pairs).T)


SELF = excluded(np.repeat(np.arange(60), 2).reshape(-1, 2))
EDGES = Exclusions.union(60, [SELF, excluded(GRAPH.edges), excluded(GRAPH.edges[:, ::-1])])


# Neighbours


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("exclude", "left_out"), [(None, SELF), ("self", SELF), (GRAPH, EDGES)])
def test_neighbours_of_training_rows(model, name, exclude, left_out):
    result = model.kneighbors(n_neighbors=4, metric=name, exclude=exclude)
    scores = all_scores(model, name)
    expected = literal_neighbors(scores, left_out, 4, LARGER[name])
    assert result.ids.tolist() == GRAPH.ids[expected].tolist()
    np.testing.assert_allclose(result.scores, np.take_along_axis(scores, expected, 1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(result.parts.score, result.scores)
    assert result.query_ids.tolist() == GRAPH.ids.tolist()
    assert result.n_evaluated <= result.n_pairs <= 3600
    order = np.diff(result.scores, axis=1)
    assert (order <= 0).all() if LARGER[name] else (order >= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_neighbours_of_new_rows(model, name):
    scores, ids = model.kneighbors(NEW, n_neighbors=5, metric=name)
    expected = all_scores(model, name, NEW, X)
    nobody = Exclusions.of(20, np.empty(0, np.int64), np.empty(0, np.int64))
    positions = literal_neighbors(expected, nobody, 5, LARGER[name])
    assert ids.tolist() == GRAPH.ids[positions].tolist()
    np.testing.assert_allclose(scores, np.take_along_axis(expected, positions, 1), rtol=1e-4, atol=1e-4)


def test_correlations_change_who_is_near(pairwise):
    near = pairwise.kneighbors(n_neighbors=10)
    assert np.abs(near.parts.correlation).max() > 0.01
    assert near.n_evaluated > 0


def test_the_kinds_of_features_do_not_matter(model):
    whole = model.kneighbors(NEW, n_neighbors=3)
    for other in (sparse.csr_array(NEW), pd.DataFrame(NEW), NEW.tolist()):
        np.testing.assert_array_equal(model.kneighbors(other, n_neighbors=3).ids, whole.ids)


def test_one_id_gives_single_rows_and_many_give_many(model):
    everyone = model.kneighbors(n_neighbors=3)
    scores, ids = one = model.kneighbors("v7", n_neighbors=3, exclude="self")
    assert ids.tolist() == everyone.ids[7].tolist()
    np.testing.assert_allclose(scores, everyone.scores[7], rtol=1e-5)
    assert one.query_ids.item() == "v7"
    some = model.kneighbors(["v9", "v7"], n_neighbors=3, exclude="self")
    assert some.ids.tolist() == everyone.ids[[9, 7]].tolist()
    assert model.kneighbors("v7", n_neighbors=1, metric="mean_distance").ids.tolist() == ["v7"]


def test_candidates_can_be_chosen(model):
    chosen = ["v3", "v50", "v7"]
    result = model.kneighbors(["v3", "v4"], n_neighbors=9, candidates=chosen, exclude="self")
    assert sorted(result.ids[1]) == sorted(chosen)
    assert result.ids[0, 2] is None
    assert np.isnan(result.scores[0, 2])
    assert np.isnan(result.parts.mean[0, 2])
    rows = model.kneighbors(["v3"], n_neighbors=1, candidates=NEW)
    assert rows.ids[0, 0] == np.argmin(all_scores(model, "expected_distance", X[3:4], NEW)[0])
    one = model.kneighbors(NEW, n_neighbors=2, candidates=["v5"])
    assert one.ids.tolist() == [["v5"]] * 20


def test_rows_recognise_themselves(model):
    everyone = model.kneighbors(n_neighbors=3)
    assert model.kneighbors(X, n_neighbors=3, exclude="self").ids.tolist() == everyone.ids.tolist()
    frame = pd.DataFrame(X, index=GRAPH.ids).iloc[[5, 2]]
    assert model.kneighbors(frame, n_neighbors=3, exclude="self").ids.tolist() == everyone.ids[[5, 2]].tolist()
    with pytest.raises(ValueError, match="recognised"):
        model.kneighbors(NEW, exclude="self")


def test_nobody_may_be_left():
    small = CorrelatedVAE(**{**QUICK, "vertex_batch": 2}).fit(X[:2])
    pair = CorrelationGraph.from_edges([(0, 1)])
    scores, ids = small.kneighbors(exclude=pair)
    assert scores.shape == ids.shape == (2, 0)


def test_approximate_neighbours_report_their_recall(model):
    exact = model.kneighbors(n_neighbors=3)
    result = model.kneighbors(n_neighbors=3, approximate=True)
    assert exact.recall is None
    same = np.mean([len(set(a) & set(b)) / 3 for a, b in zip(exact.ids, result.ids, strict=True)])
    assert result.recall == pytest.approx(same)
    # The index does not know correlations.
    assert result.recall > (0.6 if model.posterior == "pairwise" else 0.95)


def test_what_cannot_be_asked(independent):
    with unchecked():
        with pytest.raises(TypeError, match="n_neighbors must be an integer"):
            independent.kneighbors(n_neighbors=2.5)
        with pytest.raises(ValueError, match="n_neighbors must be positive, got 0"):
            independent.kneighbors(n_neighbors=0)
        with pytest.raises(ValueError, match="metric must be"):
            independent.kneighbors(metric="manhattan")
        with pytest.raises(ValueError, match="there are no candidates"):
            independent.kneighbors(candidates=[])
        with pytest.raises(ValueError, match="5 features"):
            independent.kneighbors(X[:, :2])
        with pytest.raises(ValueError, match="which are no ids"):
            independent.kneighbors(X[0].astype(float))
        with pytest.raises(TypeError, match="probability must be a LinkCalibration"):
            independent.score_pairs([("v0", "v1")], probability=True)
    with pytest.raises(NotFittedError):
        CorrelatedVAE().kneighbors()


def test_a_model_without_its_features_asks_for_them(pairwise, tmp_path):
    pairwise.save(tmp_path / "run", store_features=False)
    again = load(tmp_path / "run")
    with pytest.raises(ValueError, match="candidates="):
        again.kneighbors()
    with pytest.raises(ValueError, match="X="):
        again.rank_pairs([("v0", "v1")])
    everyone = pairwise.kneighbors(n_neighbors=3)
    assert again.kneighbors(n_neighbors=3, candidates=X).ids.tolist() == everyone.ids.tolist()
    assert again.kneighbors("v4", n_neighbors=3, candidates=X, exclude="self").ids.tolist() == everyone.ids[4].tolist()
    assert again.kneighbors(n_neighbors=3, metric="log_odds").ids.shape == (60, 3)
    for metric in ("expected_distance", "log_odds"):
        near = [part.kneighbors(n_neighbors=3, candidates=X, metric=metric).ids.tolist() for part in (pairwise, again)]
        assert near[0] == near[1] == pairwise.kneighbors(n_neighbors=3, metric=metric).ids.tolist()
    frame = pd.DataFrame(X, index=GRAPH.ids)
    some = [part.kneighbors(["v1", "v2"], candidates=frame[:20], n_neighbors=2) for part in (pairwise, again)]
    assert some[0].ids.tolist() == some[1].ids.tolist()
    with pytest.raises(ValueError, match="to match as left and right"):
        again.match(["v0"], ["v1"])
    assert len(again.match(frame[:5], frame[5:15])) == 5
    held_out, settings = [("v0", "v9"), ("v2", "v8")], {"metric": "expected_distance", "random_state": 0}
    expected = pairwise.calibrate_links(held_out, **settings)
    found = again.calibrate_links(held_out, X, **settings)
    assert found.prior == expected.prior
    np.testing.assert_allclose(found.log_ratios, expected.log_ratios, rtol=1e-4)
    for given in (X, frame[:10]):
        with pytest.raises(ValueError, match="training has seen"):
            again.calibrate_links([("v0", "v9"), ("v2", "v3")], given, prior=0.1, metric="expected_distance")
    pairs = [("v0", "v1"), ("v3", "v9")]
    np.testing.assert_allclose(again.score_pairs(pairs, X).scores, pairwise.score_pairs(pairs).scores, rtol=1e-5)
    assert again.rank_pairs(pairs, X=X).ranks.tolist() == pairwise.rank_pairs(pairs).ranks.tolist()


# Given pairs


@pytest.mark.parametrize("name", NAMES)
def test_pairs_of_training_ids_and_of_new_rows(model, name):
    pairs = np.array([[0, 1], [5, 5], [7, 3]])
    whole = all_scores(model, name)
    result = model.score_pairs(GRAPH.ids[pairs], metric=name)
    np.testing.assert_allclose(result, whole[pairs[:, 0], pairs[:, 1]], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(result.parts.score, result.scores)
    assert result.id_pairs.tolist() == GRAPH.ids[pairs].tolist()
    new = model.score_pairs(pairs, NEW, metric=name)
    np.testing.assert_allclose(new, all_scores(model, name, NEW, NEW)[pairs[:, 0], pairs[:, 1]], rtol=1e-4, atol=1e-4)
    framed = model.score_pairs([("b", "a")], pd.DataFrame(NEW[:2], index=["a", "b"]), metric=name)
    np.testing.assert_allclose(framed, model.score_pairs([(1, 0)], NEW, metric=name), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("exclude", "left_out"), [(None, SELF), (GRAPH, EDGES)])
def test_ranks(model, name, exclude, left_out):
    rng = np.random.default_rng(0)
    pairs = np.concatenate([GRAPH.edges, np.stack([rng.permutation(60), rng.permutation(60)], axis=1)])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    result = model.rank_pairs(GRAPH.ids[pairs], exclude, metric=name)
    scores = all_scores(model, name)
    if model.posterior == "pairwise" and name == "expected_distance":
        # The pair network works in float32: a candidate this near to the target may count or not.
        low, high = (literal_ranks(scores, pairs, left_out, False, tolerance) for tolerance in (-1e-5, 1e-5))
        assert ((low <= result.ranks) & (result.ranks <= high)).all()
        assert (low == high).mean() > 0.9
    else:
        np.testing.assert_array_equal(result.ranks, literal_ranks(scores, pairs, left_out, LARGER[name], 1e-12))
    np.testing.assert_allclose(result.scores, scores[pairs[:, 0], pairs[:, 1]], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(result.parts.score, result.scores)
    np.testing.assert_array_equal(result.parts.mean, model.score_pairs(GRAPH.ids[pairs], metric=name).parts.mean)


def test_new_rows_are_ranked_with_a_graph_of_their_own(independent):
    own = CorrelationGraph.from_edges([(0, 1), (0, 2), (0, 3)], n_vertices=20)
    whole = all_scores(independent, "expected_distance", NEW, NEW)
    for given in (NEW, pd.DataFrame(NEW)):
        found = independent.rank_pairs([(0, 1)], own, X=given)
        assert found.ranks[0] == 1 + (np.delete(whole[0], range(4)) <= whole[0, 1]).sum()


def test_nobody_is_ranked_among_its_own_candidates(independent):
    with pytest.raises(ValueError, match="pair 1 ranks 'v3'"):
        independent.rank_pairs([("v0", "v1"), ("v3", "v3")])


# Matching


def test_matching_finds_the_other_half(model):
    left, right = GRAPH.ids[GRAPH.edges[:, 0]], GRAPH.ids[GRAPH.edges[:, 1]]
    shuffled = np.random.default_rng(0).permutation(right)
    result = model.match(left, shuffled, metric="mean_distance")
    assert (result.one_to_one, result.exact) == (True, True)
    assert sorted(result.id_pairs[:, 1]) == sorted(right)
    whole = all_scores(model, "mean_distance")
    where = GRAPH.index_of(result.id_pairs.ravel()).reshape(-1, 2)
    np.testing.assert_allclose(result.scores, whole[where[:, 0], where[:, 1]], rtol=1e-4, atol=1e-4)
    assert result.scores.sum() <= whole[GRAPH.edges[:, 0], GRAPH.edges[:, 1]].sum() + 1e-4
    np.testing.assert_allclose(result.parts.score, result.scores)
    nearest = model.match(left, shuffled, one_to_one=False)
    np.testing.assert_allclose(nearest.parts.score, nearest.scores)
    assert (
        nearest.id_pairs[:, 1].tolist() == model.kneighbors(left, n_neighbors=1, candidates=shuffled).ids[:, 0].tolist()
    )


def test_new_rows_can_be_matched(model):
    result = model.match(NEW[::2], NEW[1::2])
    assert sorted(result.id_pairs[:, 1].tolist()) == list(range(10))
    assert len(model.match(NEW, ["v0", "v1"], n_candidates=5)) == 2


def test_sides_must_differ_and_have_points(independent):
    with pytest.raises(ValueError, match="id 'v1' is on both sides"):
        independent.match(["v0", "v1"], ["v1", "v2"])
    with pytest.raises(ValueError, match="without points"):
        independent.match([], ["v1"])
    with pytest.raises(ValueError, match="left holds id 'v1' twice, at positions 0 and 1"):
        independent.match(["v1", "v1"], ["v2", "v3"])
    with pytest.raises(ValueError, match="candidates holds id 'v2' twice"):
        independent.kneighbors("v0", candidates=["v2", "v2"])


# Probabilities


@pytest.mark.parametrize("metric", ["log_odds", "expected_distance"])
def test_probabilities_of_links_held_out(metric):
    data = paired_rows(300, seed=2)
    held_out = data.graph.id_pairs[::2]
    model = CorrelatedVAE(**{**QUICK, "max_steps": 150, "learning_rate": 1e-2})
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
    again = model.calibrate_links(held_out, metric=metric, random_state=0)
    np.testing.assert_array_equal(again.log_ratios, calibration.log_ratios)


def test_calibrations_that_would_mislead_are_refused(independent):
    with pytest.raises(ValueError, match="link 1, \\('v2', 'v3'\\), is an edge that training has seen"):
        independent.calibrate_links([("v0", "v9"), ("v2", "v3")])
    calibration = independent.calibrate_links([("v0", "v9"), ("v2", "v8")], random_state=0)
    with pytest.raises(ValueError, match="calibration is of log_odds"):
        independent.score_pairs([("v0", "v1")], metric="cosine", probability=calibration)
    with pytest.raises(ValueError, match=r"give prior.*X is not the training data"):
        independent.calibrate_links([(0, 1), (2, 3)], NEW)
    with pytest.raises(ValueError, match="joins a point with itself"):
        independent.calibrate_links([("v0", "v9"), ("v2", "v2")])
    repeated = independent.calibrate_links([("v0", "v9"), ("v2", "v8"), ("v9", "v0"), ("v0", "v9")], random_state=0)
    assert repeated.prior == calibration.prior
    assert independent.calibrate_links([(0, 1), (2, 3)], NEW, prior=0.1, n_unlinked=50).n_unlinked == 50
