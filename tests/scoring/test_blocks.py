from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corrvae.scoring.blocks import pieces
from corrvae.scoring.metrics import make_metric
from corrvae.scoring.points import Points
from support.literal_scores import NAMES, literal_scores, random_points


def whole(blocks, n_rows, n_columns):
    with ThreadPoolExecutor(2) as pool:
        return blocks.costs(slice(0, n_rows), slice(0, n_columns), pool).copy()


@given(
    st.sampled_from(NAMES),
    st.integers(0, 10**6),
    st.integers(1, 120),
    st.sampled_from([1e-25, 1e-3, 1.0, 100.0, 1e6]),
    st.sampled_from([1e-3, 0.3, 1.0]),
)
def test_costs_are_within_the_stated_error(name, seed, dim, spread, shrink):
    queries, candidates = (random_points(n, dim, seed + n, spread=spread, repeats=0.2, zeros=0.1) for n in (4, 9))
    queries, candidates = (Points(part.mean, np.float32(shrink) * part.stddev) for part in (queries, candidates))
    tau = np.random.default_rng(seed).choice([0.99, -0.7, 0.0, 0.999999], dim)
    metric = make_metric(name, tau)
    blocks = metric.blocks(queries, candidates)
    pairs = np.stack(np.divmod(np.arange(36), 9), axis=1)
    exact = metric.sign * metric.parts(queries, candidates, pairs).score.reshape(4, 9)
    assert (np.abs(whole(blocks, 4, 9) - exact) <= blocks.error(slice(0, 4), slice(0, 9))).all()
    expected = metric.sign * literal_scores(name, queries, candidates, tau)
    np.testing.assert_allclose(exact, expected, rtol=1e-6, atol=1e-6 * spread**2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_costs_do_not_depend_on_the_callers_default_type(name, default):
    points, metric = random_points(20, 5, 0), make_metric(name, np.full(5, 0.9))
    expected = whole(metric.blocks(points, points), 20, 20)
    torch.set_default_dtype(default)
    try:
        found = whole(metric.blocks(points, points), 20, 20)
    finally:
        torch.set_default_dtype(torch.float32)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_error_is_small_enough_to_be_of_use(name):
    points = random_points(500, 100, 0)
    metric = make_metric(name, np.full(100, 0.99))
    blocks = metric.blocks(points, points)
    costs = whole(blocks, 500, 500)
    assert (blocks.error(slice(0, 500), slice(0, 500)) < 0.01 * costs.std(1, keepdims=True)).all()


@pytest.mark.parametrize("name", NAMES)
def test_an_outlier_widens_the_error_of_its_own_stretch_alone(name):
    points = random_points(300, 20, 0)
    far = points.take(np.arange(300))
    far.mean[70] += 1e4
    metric = make_metric(name, np.full(20, 0.9))
    asked, rows = points.take(np.arange(5)), slice(0, 5)
    plain, widened = (metric.blocks(asked, part).error(rows, slice(0, 300)) for part in (points, far))
    assert plain.shape == (5, 5)
    np.testing.assert_array_equal(np.delete(widened, 1, axis=1), np.delete(plain, 1, axis=1))
    shifted = metric.blocks(asked, far).error(rows, slice(60, 300))
    np.testing.assert_array_equal(np.argmax(shifted, axis=1), 0)
    if name != "cosine":
        assert (widened[:, 1] > 100 * plain[:, 1]).all()


@pytest.mark.parametrize("name", NAMES)
def test_rectangles_are_parts_of_the_whole(name):
    points = random_points(700, 6, 0)
    blocks = make_metric(name, np.full(6, 0.9)).blocks(points, points)
    everything = whole(blocks, 700, 700)
    with ThreadPoolExecutor(2) as pool:
        part = blocks.costs(slice(30, 70), slice(100, 650), pool)
    np.testing.assert_allclose(part, everything[30:70, 100:650], rtol=1e-4, atol=1e-4)
    assert blocks.error(slice(30, 70), slice(100, 650)).shape == (40, 9)


def test_products_stay_in_float32_where_torch_may_round_more():
    points = random_points(50, 30, 0)
    blocks = make_metric("mean_distance", np.full(30, 0.9)).blocks(points, points)
    before, expected = torch.get_float32_matmul_precision(), whole(blocks, 50, 50)
    try:
        torch.set_float32_matmul_precision("medium")
        np.testing.assert_allclose(whole(blocks, 50, 50), expected, atol=1e-4)
    finally:
        torch.set_float32_matmul_precision(before)


@given(st.integers(0, 1000))
def test_pieces_cover_all_rows_once(n_rows):
    covered = [row for piece in pieces(n_rows) for row in range(piece.start, piece.stop)]
    assert covered == list(range(n_rows))
