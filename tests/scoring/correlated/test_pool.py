import numpy as np
import pytest

from corrvae.monitor import Monitor
from corrvae.scoring.correlated import pool as module
from corrvae.scoring.correlated.pool import NOWHERE, Pool
from corrvae.scoring.correlated.sweep import Sweep
from support.correlated import excluding, literal_distances, make_model, make_points, oneself, random_rows


def make(points, kept, exclusions):
    sweep = Sweep(points, points, same=True, memory=2**26, monitor=Monitor())
    reach = np.full(len(points), np.inf)
    return Pool(sweep, reach, kept, exclusions, len(points), 0), sweep, reach


def offer_all(pool, n_groups, seed=0):
    """Every pair, in random order, without a word on how far it is."""
    pairs = np.random.default_rng(seed).permutation(n_groups**2)
    for piece in np.array_split(pairs, 40):
        groups, others = np.divmod(piece, n_groups)
        pool.add(groups, others, np.full(len(piece), -np.inf))


@pytest.mark.parametrize("most", [1, 300, 2**20])
def test_the_best_of_all_pairs_whatever_the_room(most, monkeypatch):
    monkeypatch.setattr(module, "_FEWEST", most)
    points = make_points(make_model("perceptron"), random_rows(80, repeated=25))
    pool, sweep, reach = make(points, 4, oneself(80))
    assert len(sweep.left_groups) < 80
    offer_all(pool, len(sweep.left_groups))
    costs, positions = pool.best()
    wanted = literal_distances(points, points)
    wanted[np.arange(80), np.arange(80)] = np.inf
    np.testing.assert_allclose(costs, np.sort(wanted, axis=1)[:, :4], rtol=1e-12)
    np.testing.assert_array_equal(positions, np.argsort(wanted.round(10), axis=1, kind="stable")[:, :4])
    if most < 2**20:
        assert len(pool) < len(sweep.left_groups) ** 2 / 2
        assert (reach >= costs[:, -1]).all()
        assert np.isfinite(reach).all()


def test_what_is_out_of_reach_is_not_evaluated(monkeypatch):
    points = make_points(make_model("own"), random_rows(70))
    pool, sweep, reach = make(points, 2, excluding(70))
    reach[:] = 1.0
    monkeypatch.setattr(sweep, "exact", lambda left, right, rows, columns: np.full(len(rows), 0.5))
    pool.add(np.array([3, 3, 1]), np.array([9, 8, 7]), np.array([0.5, 1.5, 1.0]))
    costs, positions = pool.best()
    assert positions[3].tolist() == [9, NOWHERE]
    assert positions[1].tolist() == [7, NOWHERE]
    assert costs[1].tolist() == [0.5, np.inf]
    assert len(pool) == 2
