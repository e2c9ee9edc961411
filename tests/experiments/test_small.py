import numpy as np
import pytest

from corrvae.experiments.small import small_world


def test_the_same_seed_gives_the_same_world():
    first, again, other = (small_world(80, 40, random_state=seed) for seed in (0, 0, 1))
    assert (first.items != again.items).nnz == 0
    assert first.graph == again.graph
    assert (first.items != other.items).nnz > 0


def test_everybody_has_items_and_a_friend():
    world = small_world(300, 60, random_state=0)
    assert set(world.items.data.tolist()) == {1.0}
    counts = np.diff(world.items.indptr)
    assert counts.min() >= 12
    assert counts.max() <= 30
    assert world.graph.degrees.min() > 0


def test_friends_like_the_same_and_popularity_falls():
    world = small_world(400, 200, random_state=0)
    common = (world.items @ world.items.T).toarray()
    first, second = world.graph.edges.T
    assert common[first, second].mean() > 1.3 * common.mean()
    popularity = np.asarray(world.items.sum(axis=0))
    assert popularity[:10].mean() > 2 * popularity[-10:].mean()
    assert world.graph.degrees.max() > 3 * np.median(world.graph.degrees)


def test_too_small_a_world_is_refused():
    with pytest.raises(ValueError, match="needs 10 users and 24 items"):
        small_world(5, 40)


def test_friends_are_alike_in_some_tastes_and_not_in_the_others():
    world = small_world(400, 60, random_state=0)
    tastes = np.random.default_rng(0).standard_normal((400, 6))  # the first that is drawn
    first, second = world.graph.edges.T
    apart = np.square(tastes[first] - tastes[second]).mean(axis=0)
    # two independent standard normals are 2 apart
    assert (apart[:2] < 0.7).all()
    np.testing.assert_allclose(apart[2:], 2.0, rtol=0.25)
