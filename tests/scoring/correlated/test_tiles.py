import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corrvae.monitor import STOP
from corrvae.nn import PairMetric, PairPerceptron
from corrvae.scoring.correlated import tiles
from corrvae.scoring.correlated.distinct import Distinct
from corrvae.scoring.correlated.sides import Side, SideReader
from corrvae.scoring.correlated.tiles import BilinearTiles, MetricTiles, NetworkTiles, PerceptronTiles, pair_tiles
from support.correlated import DIM, NETWORKS, large_activations, literal_distances, make_model, make_points, random_rows

KINDS = {
    "perceptron": PerceptronTiles,
    "wide": PerceptronTiles,
    "bilinear": BilinearTiles,
    "bilinear, odd rank": BilinearTiles,
    "metric": MetricTiles,
    "metric, hidden": MetricTiles,
}


def read(points):
    return SideReader(points, Distinct.each(len(points))).read(np.arange(len(points)))


@pytest.mark.parametrize("n_pairs", [0, 1, 37, 1500])
@pytest.mark.parametrize("network", NETWORKS)
def test_distances_are_the_literal_ones(network, n_pairs):
    model = make_model(network)
    left, right = make_points(model, random_rows(13)), make_points(model, random_rows(17, seed=1))
    rows, columns = np.random.default_rng(0).integers(0, [[13], [17]], (2, n_pairs)).astype(np.int32)
    ways = pair_tiles(model.pair_network), NetworkTiles(model.pair_network)
    assert type(ways[0]) is KINDS.get(network, NetworkTiles)
    wanted = literal_distances(left, right)[rows, columns]
    for way in ways:
        found = way.distances(read(left), read(right), rows, columns, np.zeros(2, np.int64))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("network", NETWORKS)
def test_errors_are_within_their_bounds_and_these_are_of_use(network):
    worst, typical = 0.0, []
    for seed in range(4):
        model = make_model(network, seed)
        left, right = make_points(model, random_rows(90, seed)), make_points(model, random_rows(90, seed + 9))
        ends = read(left), read(right)
        pairs = tuple(part.reshape(-1).astype(np.int32) for part in np.mgrid[:90, :90])
        tiles_of = pair_tiles(model.pair_network)
        found = tiles_of.distances(*ends, *pairs, np.zeros(2, np.int64))
        errors = tiles_of.errors(*ends, *pairs, found)
        worst = max(worst, (abs(found - literal_distances(left, right)[pairs]) / errors).max())
        typical.append(np.median(errors / found))
    assert worst < 1.0
    assert np.median(typical) < 2e-4


@pytest.mark.parametrize("offset", [0.0, 20.0, 2000.0, 2e5])
def test_errors_grow_with_activations_as_their_bounds_do(offset):
    points = large_activations(150, offset)
    side = read(points)
    pairs = tuple(part.reshape(-1).astype(np.int32) for part in np.mgrid[:150, :150])
    tiles_of = pair_tiles(points.vectors.network)
    found = tiles_of.distances(side, side, *pairs, np.zeros(2, np.int64))
    shares = abs(found - literal_distances(points, points)[pairs]) / tiles_of.errors(side, side, *pairs, found)
    assert shares.max() < 1.0
    if offset >= 2000.0:
        assert shares.max() > 1e-3


def metric_of(start, slope):
    """A metric network of these weights."""
    network = PairMetric(1, len(start))
    with torch.no_grad():
        network.start.copy_(torch.from_numpy(start))
        network.slope.copy_(torch.from_numpy(slope).log())
    return network


def metric_shares(network, generator, size, *, equal, offset=0.0):
    """Errors of all pairs of 24 points as shares of their bounds, and the bounds relative to the distances.

    Images are of this size about the offset; `equal` entries of an image, so that all roundings of a pair conspire.
    """
    dim, pairs = network.n_components, tuple(part.reshape(-1).astype(np.int32) for part in np.mgrid[:24, :24])
    images = np.broadcast_to(generator.normal(size=(24, 1 if equal else dim)), (24, dim))
    mean, stddev = 0.1 * generator.normal(size=(24, dim)), np.exp(0.3 * generator.normal(size=(24, dim)))
    mean, stddev, images = (part.astype(np.float32) for part in (mean, stddev, size * images + offset))
    side, tiles_of = Side(np.arange(25), np.arange(24), mean, stddev, images), pair_tiles(network)
    found = tiles_of.distances(side, side, *pairs, np.zeros(2, np.int64))
    errors = tiles_of.errors(side, side, *pairs, found)
    (m_i, s_i, v_i), (m_j, s_j, v_j) = ([part[p].astype(float) for part in (mean, stddev, images)] for p in pairs)
    start, slope = (part.detach().double().numpy() for part in (network.start, network.slope))
    a = start - np.exp(slope) * ((v_i - v_j) ** 2).sum(1, keepdims=True)
    wanted = ((m_i - m_j) ** 2 + (s_i - s_j) ** 2 + 2 * (1 - np.tanh(a)) * s_i * s_j).sum(1)
    return abs(found - wanted) / errors, errors / found


@given(
    seed=st.integers(0, 10**6),
    dim=st.integers(1, 130),
    height=st.sampled_from([0.1, 3.0, 40.0, 1e4]),
    steep=st.sampled_from([1e-3, 1.0, 1e6]),
    reach=st.sampled_from([0.01, 1.0, 30.0, 1e12]),
    offset=st.sampled_from([0.0, 1.0, 1e3]),
    equal=st.booleans(),
)
def test_no_metric_error_is_beyond_its_bound(seed, dim, height, steep, reach, offset, equal):
    generator = np.random.default_rng(seed)
    start = (height * generator.normal(size=dim)).astype(np.float32)
    network = metric_of(start, (steep * np.exp(generator.normal(size=dim))).astype(np.float32))
    # slope times squared distance of the order of reach times the start
    size = np.sqrt(reach * height / (steep * dim))
    shares, _ = metric_shares(network, generator, size, equal=equal, offset=offset * size)
    assert (shares <= 1.0).all()


def test_metric_bounds_are_of_use_however_far_images_are():
    generator, worst = np.random.default_rng(0), 0.0
    for size in (0.01, 0.1, 1.0, 1e3, 1e15):
        network = metric_of(np.full(100, 2.0, np.float32), np.full(100, 0.05, np.float32))
        shares, relative = metric_shares(network, generator, size, equal=True)
        assert np.median(relative) < 2e-4
        worst = max(worst, shares.max())
    assert 1e-3 < worst < 1.0


@pytest.mark.parametrize("slope", [1e-60, 1e-25, 1e25, 1e43])
@pytest.mark.parametrize("far", [1e-22, 1.0, 1e16, 1e20])
def test_metric_slopes_beyond_float32_are_left_to_the_exact_evaluation(slope, far):
    network = metric_of(np.full(3, 1.0, np.float32), np.array([slope, 0.05, slope]))
    shares, relative = metric_shares(network, np.random.default_rng(0), far, equal=False)
    assert (shares <= 1.0).all()
    assert (relative > 0.1).all()


def test_tiles_of_wide_layers_are_small():
    assert PerceptronTiles(PairPerceptron(4, DIM, hidden=(1000,)))._tile == 256
    assert PerceptronTiles(PairPerceptron(4, DIM, hidden=(10**5,)))._tile == 32
    assert PerceptronTiles(PairPerceptron(4, DIM, hidden=(3,)))._tile == 512


@pytest.mark.parametrize("network", ["perceptron", "bilinear", "metric", "own"])
def test_nothing_is_evaluated_after_a_stop(network, monkeypatch):
    model = make_model(network)
    side = read(make_points(model, random_rows(5)))
    monkeypatch.setattr(np, "empty", np.zeros)  # where the result begins
    control = np.zeros(2, np.int64)
    control[STOP] = 1
    pairs = np.zeros(9, np.int32), np.ones(9, np.int32)
    assert not pair_tiles(model.pair_network).distances(side, side, *pairs, control).any()
    assert tiles.pair_tiles(model.pair_network).distances(side, side, *pairs, np.zeros(2, np.int64)).all()
