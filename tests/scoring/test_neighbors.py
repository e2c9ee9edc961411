import numpy as np
import pytest
import torch

from corrvae.ranks import current_ranks
from corrvae.scoring.metrics import make_metric
from corrvae.scoring.neighbors import is_correlated, nearest
from corrvae.scoring.points import Exclusions
from corrvae.scoring.ranks import rank
from support.correlated import make_model, make_points, random_rows
from support.correlated_points import correlated_points
from support.literal_scores import NAMES, literal_neighbors, literal_scores, random_exclusions, random_points
from support.several import run_ranks


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["perceptron", "bilinear", "metric"])
def test_correlations_enter_where_the_metric_uses_them(name, kind):
    made = correlated_points(40, kind)
    metric = make_metric(name, np.full(3, 0.9))
    exclusions = random_exclusions(40, 40, 0.2, 0)
    assert is_correlated(made.points, made.points, metric) == (name == "expected_distance")
    correlation = made.correlation if name == "expected_distance" else None
    scores = literal_scores(name, made.points, made.points, np.full(3, 0.9), correlation)
    expected = literal_neighbors(scores, exclusions, 4, metric.larger_is_better)
    for same in (True, False):
        found = nearest(made.points, made.points, metric, 4, exclusions, same=same)
        np.testing.assert_array_equal(found.positions, expected)
        np.testing.assert_allclose(found.scores, np.take_along_axis(scores, expected, 1), rtol=1e-5, atol=1e-5)


def test_points_without_vectors_are_independent():
    made, plain = correlated_points(20, "bilinear"), random_points(20, 3, 0)
    metric = make_metric("expected_distance", np.full(3, 0.9))
    assert not is_correlated(made.points, plain, metric)
    nobody = Exclusions.of(20, np.empty(0, np.int64), np.empty(0, np.int64))
    found = nearest(made.points, plain, metric, 3, nobody)
    scores = literal_scores("expected_distance", made.points, plain)
    np.testing.assert_array_equal(found.positions, literal_neighbors(scores, nobody, 3, False))


def test_a_neighbour_at_least():
    points = random_points(3, 2, 0)
    with pytest.raises(ValueError, match="n_neighbors must be positive, got 0"):
        nearest(points, points, make_metric("cosine", np.ones(2) / 2), 0, random_exclusions(3, 3, 0.0, 0))


def every_search():
    """Neighbours and ranks by every search: with correlations and without, among the same points and others."""
    found = {}
    tau = np.full(3, 0.9)
    for spread in (1.0, 0.02):  # bounds decide nothing, or nearly all
        points = make_points(make_model("bilinear"), random_rows(160, repeated=20), spread=spread)
        few = points.take(np.arange(9))
        for name in ("expected_distance", "cosine"):
            metric = make_metric(name, tau)
            for queries, same in ((points, True), (points, False), (few, False)):
                n = len(queries)
                exclusions = random_exclusions(n, 160, 0.05, 0)
                pairs = np.random.default_rng(1).integers(0, n, (n // 2, 2))
                pairs = pairs[pairs[:, 0] != pairs[:, 1]]
                near = nearest(queries, points, metric, 4, exclusions, same=same, memory=2**17, progress=False)
                ranked = rank(queries, points, metric, pairs, exclusions, same=same, memory=2**17, progress=False)
                about = near.n_pairs, ranked.n_pairs, near.n_evaluated <= near.n_pairs
                found[spread, name, n, same] = near.scores, near.positions, ranked.ranks, ranked.scores, about
    return found


def search_as_ranks():
    ranks, points = current_ranks(), random_points(5, 3, 0)
    torch.set_num_threads(1 + 3 * ranks.index)  # machines need not be alike
    found = every_search()
    nobody, cosine = Exclusions.none(5), make_metric("cosine", np.full(3, 0.9))
    alone = nearest(points.take(np.arange(1)), points, cosine, 2, Exclusions.none(1), progress=False)
    with pytest.raises(ValueError, match="takes vectors"):  # one rank meets it, and the others do not wait for it
        nearest(points, points, _BrokenOnOne() if ranks.index else cosine, 2, nobody, progress=False)
    assert nearest(points, points, cosine, 2, nobody, progress=False).positions.shape == (5, 2)
    return found, alone.positions


class _BrokenOnOne:
    uses_correlation = False

    def blocks(self, *_):
        raise ValueError("takes vectors")


def test_ranks_find_what_one_finds():
    wanted = every_search()
    for found, alone in run_ranks(2, search_as_ranks):
        assert alone.shape == (1, 2)
        for asked, parts in wanted.items():
            for part, of_ranks in zip(parts, found[asked], strict=True):
                np.testing.assert_array_equal(of_ranks, part, err_msg=str(asked))
