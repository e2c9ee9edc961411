import numpy as np
import pytest

from corrvae.monitor import STOP
from corrvae.nn import PairPerceptron
from corrvae.scoring.correlated import tiles
from corrvae.scoring.correlated.distinct import Distinct
from corrvae.scoring.correlated.sides import SideReader
from corrvae.scoring.correlated.tiles import BilinearTiles, NetworkTiles, PerceptronTiles, pair_tiles
from support.correlated import DIM, NETWORKS, large_activations, literal_distances, make_model, make_points, random_rows

KINDS = {
    "perceptron": PerceptronTiles,
    "wide": PerceptronTiles,
    "bilinear": BilinearTiles,
    "bilinear, odd rank": BilinearTiles,
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


def test_tiles_of_wide_layers_are_small():
    assert PerceptronTiles(PairPerceptron(4, DIM, hidden=(1000,)))._tile == 256
    assert PerceptronTiles(PairPerceptron(4, DIM, hidden=(10**5,)))._tile == 32
    assert PerceptronTiles(PairPerceptron(4, DIM, hidden=(3,)))._tile == 512


@pytest.mark.parametrize("network", ["perceptron", "bilinear", "own"])
def test_nothing_is_evaluated_after_a_stop(network, monkeypatch):
    model = make_model(network)
    side = read(make_points(model, random_rows(5)))
    monkeypatch.setattr(np, "empty", np.zeros)  # where the result begins
    control = np.zeros(2, np.int64)
    control[STOP] = 1
    pairs = np.zeros(9, np.int32), np.ones(9, np.int32)
    assert not pair_tiles(model.pair_network).distances(side, side, *pairs, control).any()
    assert tiles.pair_tiles(model.pair_network).distances(side, side, *pairs, np.zeros(2, np.int64)).all()
