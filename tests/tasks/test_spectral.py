import logging

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from corrvae.tasks import embedding_distances, spectral
from corrvae.tasks.spectral import cut, similarities
from support.unchecked import unchecked


def literal(points, diagonal):
    """The second eigenpair of the normalised Laplacian, written out as the paper has it."""
    similar = np.exp(-cdist(points, points, "sqeuclidean") / 2)
    np.fill_diagonal(similar, 1.0 if diagonal == "unit" else 0.0)
    root = np.sqrt(similar.sum(axis=1))
    values, vectors = eigh(np.eye(len(points)) - similar / root[:, None] / root)
    return values, vectors[:, 1]


def same_cut(side, vector):
    other = vector > np.median(vector)
    return max((side == other).mean(), (side != other).mean())


@given(st.integers(3, 30), st.sampled_from(["zero", "unit"]), st.integers(0, 2**16))
def test_the_cut_is_the_literal_one(count, diagonal, seed):
    points = np.random.default_rng(seed).standard_normal((2 * count, 3))
    values, vector = literal(points, diagonal)
    assume(values[2] - values[1] > 1e-3)
    found = cut(similarities(embedding_distances(points), 2 * count), diagonal)
    assert found.eigenvalue == pytest.approx(values[1], abs=1e-4)
    # points next to the median may fall on either side of it
    assert same_cut(found.side, vector) > 1 - 2.1 / count
    assert found.side.sum() == count
    assert found.residual < 0.01


@pytest.mark.parametrize("diagonal", ["zero", "unit"])
def test_iteration_finds_what_the_dense_solver_does(monkeypatch, diagonal):
    generator = np.random.default_rng(0)
    points = np.concatenate([generator.standard_normal((150, 5)), generator.standard_normal((150, 5)) + 0.8])
    similar = similarities(embedding_distances(points), 300)
    dense = cut(similar, diagonal)
    monkeypatch.setattr(spectral, "_DENSE", 0)
    iterated = cut(similar, diagonal)
    assert iterated.eigenvalue == pytest.approx(dense.eigenvalue, rel=1e-4)
    assert same_cut(iterated.side, dense.side.astype(float)) > 0.98
    assert iterated.residual < 0.01


@pytest.mark.parametrize("diagonal", ["zero", "unit"])
def test_iteration_goes_on_where_the_eigenvalue_is_small(monkeypatch, diagonal):
    """Points along a line hang together loosely: a residual that is small by itself is large beside the eigenvalue."""
    points = np.sort(np.random.default_rng(0).uniform(0.0, 300.0, (600, 1)), axis=0)
    similar = similarities(embedding_distances(points), 600)
    iterated = cut(similar, diagonal)
    monkeypatch.setattr(spectral, "_DENSE", 600)
    dense = cut(similar, diagonal)
    assert dense.eigenvalue < 1e-6
    assert iterated.eigenvalue == pytest.approx(dense.eigenvalue, rel=0.1)
    assert same_cut(iterated.side, dense.side.astype(float)) > 0.99


def test_large_distances_do_not_underflow_everywhere():
    # every similarity exp(-dis / 2) would be 0 in single precision, and most in double
    points = 40.0 * np.eye(6, dtype=np.float64) + 0.1 * np.random.default_rng(0).standard_normal((6, 6))
    points[3:, 0] += 4.0
    similar = similarities(embedding_distances(points), 6)
    assert similar.matrix.max() == 1.0
    assert np.diag(similar.matrix).tolist() == [0.0] * 6
    found = cut(similar)
    assert found.side.sum() == 3
    assert np.isfinite(cut(similar, "unit").residual)


def test_a_point_out_of_reach_does_no_harm():
    points = np.array([[0.0], [0.5], [3.0], [3.5], [1000.0], [-1000.0]])
    for diagonal in ("zero", "unit"):
        found = cut(similarities(embedding_distances(points), 6), diagonal)
        assert np.isfinite(found.eigenvalue)


def test_the_size_is_announced(caplog):
    with caplog.at_level(logging.INFO, logger="corrvae"):
        similarities(embedding_distances(np.random.default_rng(0).random((500, 2))), 500)
    assert caplog.messages == ["similarities of 500 points: 1.0 MB"]


def test_blocks_make_no_difference(monkeypatch):
    points = np.random.default_rng(0).random((50, 2))
    whole = similarities(embedding_distances(points), 50)
    monkeypatch.setattr(spectral, "_BLOCK", 150)
    parts = similarities(embedding_distances(points), 50)
    np.testing.assert_allclose(parts.matrix, whole.matrix, atol=1e-5)
    assert parts.least == pytest.approx(whole.least, abs=1e-5)


def test_what_are_no_distances_is_refused():
    with pytest.raises(ValueError, match="2 points or more"):
        similarities(embedding_distances(np.zeros((1, 1))), 1)
    with pytest.raises(
        ValueError, match=r"distances must be the same both ways, but that of points 0 and 1 is 1 and 3"
    ):
        similarities(lambda rows: np.array([[0.0, 1.0], [3.0, 0.0]])[rows], 2)
    with pytest.raises(ValueError, match="the distance of points 0 and 1 is not a number"):
        similarities(lambda rows: np.array([[0.0, np.nan], [np.nan, 0.0]])[rows], 2)
    similar = similarities(embedding_distances(np.eye(3)), 3)
    with unchecked(), pytest.raises(ValueError, match='diagonal must be "zero" or "unit"'):
        cut(similar, "half")
