import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from corrvae.experiments.comparing import block_scores, pair_scores

METRICS = ("mean_distance", "cosine", "inner_product")


@given(st.integers(2, 12), st.integers(1, 4), st.sampled_from(METRICS), st.integers(0, 2**16))
def test_scores_are_scipys(count, dim, metric, seed):
    generator = np.random.default_rng(seed)
    points = generator.standard_normal((count, dim))
    rows = generator.integers(0, count, 3)
    expected = {
        "mean_distance": cdist(points, points, "sqeuclidean"),
        "cosine": 1.0 - cdist(points, points, "cosine"),
        "inner_product": points @ points.T,
    }[metric]
    pairs = generator.integers(0, count, (7, 2))
    np.testing.assert_allclose(pair_scores(points, pairs, metric), expected[pairs[:, 0], pairs[:, 1]], atol=1e-6)
    # blocks may be scaled and shifted, but order every candidate alike, the better the larger
    block = block_scores(points, metric)(rows)
    better = -expected if metric == "mean_distance" else expected
    scale, shift = (2.0, -2.0) if metric == "cosine" else (1.0, 0.0)
    np.testing.assert_allclose(block, scale * better[rows] + shift, atol=1e-4)


def test_a_zero_vector_has_no_direction():
    points = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert pair_scores(points, np.array([[0, 1]]), "cosine").tolist() == [0.0]


@pytest.mark.parametrize("metric", ["expected_distance", "log_odds"])
def test_metrics_that_need_uncertainty_are_refused(metric):
    with pytest.raises(ValueError, match="an embedding is compared by"):
        block_scores(np.eye(2), metric)
