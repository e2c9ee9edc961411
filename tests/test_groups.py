"""Groups of points in a model: kept, embedded, saved, and returned only when asked for."""

import numpy as np
import pytest

from corrvae import CorrelatedVAE, CorrelationGraph, load
from corrvae.data import Table, join_known

HOMES = {f"home {k}": list(range(4 * k, 4 * k + 4)) for k in range(5)}
GRAPH = CorrelationGraph.from_groups(HOMES)
TASTE = np.repeat(np.random.default_rng(1).normal(size=(5, 6)), 4, axis=0)
X = TASTE + 0.3 * np.random.default_rng(2).normal(size=(20, 6))
SETTINGS = {"hidden": (8,), "max_steps": 150, "learning_rate": 1e-2, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return CorrelatedVAE(3, family="joint", **SETTINGS).fit(X, graph=GRAPH)


def test_groups_have_posteriors_near_their_members(model):
    assert model.ids_.tolist() == [*range(20), *HOMES]
    assert model.graph_.ids[model.graph_.is_group].tolist() == list(HOMES)
    assert model.embedding_.shape == (25, 3)
    for name, members in HOMES.items():
        found = model.kneighbors(ids=name, n_neighbors=4, metric="mean_distance").ids
        assert set(found) == set(members)
    groups = model.stddev_[model.graph_.is_group]
    assert (groups < 1).all()  # known better than by the prior


def test_groups_are_no_neighbours_unless_asked_for(model):
    found = model.kneighbors(n_neighbors=19)
    assert found.query_ids.tolist() == list(range(20))
    assert set(found.ids.ravel().tolist()) == set(range(20))
    near = model.kneighbors(ids=[0, 19], n_neighbors=1, candidates=list(HOMES), metric="mean_distance")
    assert near.ids.ravel().tolist() == ["home 0", "home 4"]
    among = model.rank_pairs([(0, 1), (0, 19)]).ranks
    assert among.max() <= 19


def test_members_correlate_through_their_group(model):
    rho = model.posterior().correlation([(0, 1), (0, "home 0"), (0, 7)])
    assert (rho[0] > 0).all()
    assert (rho[1] > rho[0]).all()
    np.testing.assert_allclose(rho[2], 0.0, atol=1e-6)


def test_a_saved_model_knows_its_groups(model, tmp_path):
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.ids_.tolist() == model.ids_.tolist()
    assert again.graph_ == model.graph_
    np.testing.assert_array_equal(again.kneighbors(n_neighbors=3).ids, model.kneighbors(n_neighbors=3).ids)


def test_a_group_is_recommended_to(model):
    ids, _ = model.recommend(ids="home 2", k=6)
    assert set(ids.tolist()) == set(range(6))


def test_new_members_and_new_groups(model):
    near = model.posterior(graph=[("zoe", "home 3")])
    place = near.positions(["zoe"])[0]
    distances = np.linalg.norm(model.embedding_[:20] - near.mean[place], axis=1)
    assert set(np.argsort(distances)[:4]) == set(HOMES["home 3"])
    table = Table(X[:1], np.array(["new"], dtype=object))
    joined = join_known(table, CorrelationGraph.from_groups({"club": ["new", 3]}), model.graph_, model.ids_, 20).graph
    assert set(joined.ids[joined.is_group].tolist()) == {*HOMES, "club"}


def test_other_families_have_no_place_for_groups():
    for family in ("independent", "pairwise"):
        with pytest.raises(ValueError, match='only family="joint" keeps these'):
            CorrelatedVAE(2, family=family, max_steps=3).fit(X, graph=GRAPH)
    points = GRAPH[~GRAPH.is_group]
    assert CorrelatedVAE(2, max_steps=3).fit(X, graph=points).graph_.n_edges == 0
