import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.training import hold_out


@given(st.integers(2, 60), st.integers(0, 80), st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_parts_share_nothing_and_leave_nothing_out(n_vertices, n_edges, share, seed):
    generator = np.random.default_rng(seed)
    edges = generator.integers(0, n_vertices, (n_edges, 2))
    parts = hold_out(n_vertices, edges, share, seed)
    assert sorted([*parts.train, *parts.validation]) == list(range(n_vertices))
    assert len(parts.train) > 0
    wanted = min(max(1, round(share * n_vertices)), n_vertices - 1)
    # Components that are held out whole may not fill the last places.
    assert wanted - max(1, wanted // 4) <= len(parts.validation) <= wanted
    assert len(parts.validation) > 0
    again = hold_out(n_vertices, edges, share, seed)
    np.testing.assert_array_equal(again.validation, parts.validation)


def test_pairs_stay_together():
    edges = np.arange(2000).reshape(-1, 2)
    parts = hold_out(2000, edges, 0.1, 0)
    assert len(parts.validation) == 200
    inside = np.isin(edges, parts.validation)
    assert (inside[:, 0] == inside[:, 1]).all()


def test_of_a_large_component_single_vertices_are_held_out():
    ring = np.stack([np.arange(1000), (np.arange(1000) + 1) % 1000], axis=1)
    parts = hold_out(1000, ring, 0.1, 0)
    assert len(parts.validation) == 100
    assert (np.diff(parts.validation) > 1).sum() > 50


def test_every_vertex_has_about_the_same_chance():
    """A ring of 40 vertices, 15 pairs, 30 vertices alone."""
    ring = np.stack([np.arange(40), (np.arange(40) + 1) % 40], axis=1)
    edges = np.concatenate([ring, np.arange(40, 70).reshape(-1, 2)])
    held = np.zeros(100)
    for seed in range(1500):
        held[hold_out(100, edges, 0.2, seed).validation] += 1
    np.testing.assert_allclose(held / 1500, 0.2, atol=0.06)


def test_without_a_graph_any_vertex():
    assert len(hold_out(50, None, 0.3, 1).validation) == 15


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_the_share_must_make_sense(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        hold_out(10, None, share, 0)


def test_one_row_cannot_be_split():
    with pytest.raises(ValueError, match="too few"):
        hold_out(1, None, 0.5, 0)
