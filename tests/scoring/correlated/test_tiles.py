import numpy as np
import pytest

from corrvae.monitor import STOP
from corrvae.nn import PairPerceptron
from corrvae.scoring.correlated import tiles
from corrvae.scoring.correlated.distinct import Distinct
from corrvae.scoring.correlated.sides import SideReader
from corrvae.scoring.correlated.tiles import BilinearTiles, NetworkTiles, PerceptronTiles, pair_tiles
from support.correlated import DIM, NETWORKS, literal_distances, make_model, make_points, random_rows

KINDS = {"perceptron": PerceptronTiles, "bilinear": BilinearTiles, "bilinear, odd rank": BilinearTiles}


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
