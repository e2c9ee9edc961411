import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from corrvae.tasks import (
    adamic_adar_scores,
    common_neighbour_scores,
    degree_scores,
    embedding_distances,
    embedding_scores,
)
from support.graphs import graphs


@given(st.integers(1, 12), st.integers(1, 4), st.floats(-100, 100), st.integers(0, 2**16))
def test_distances_are_scipys(count, dim, shift, seed):
    generator = np.random.default_rng(seed)
    mean, stddev = shift + generator.standard_normal((count, dim)), generator.random((count, dim))
    rows = generator.integers(0, count, 3)
    plain = cdist(mean[rows], mean, "sqeuclidean")
    np.testing.assert_allclose(embedding_distances(mean)(rows), plain, atol=1e-4)
    variances = np.square(stddev).sum(axis=1)
    expected = (plain + variances[rows, None] + variances) * (rows[:, None] != np.arange(count))
    np.testing.assert_allclose(embedding_distances(mean, stddev)(rows), expected, atol=1e-4)
    np.testing.assert_allclose(embedding_scores(mean, stddev)(rows), -expected, atol=1e-4)


def test_expected_distances_are_those_of_draws():
    generator = np.random.default_rng(0)
    mean, stddev = generator.standard_normal((3, 2)), generator.random((3, 2))
    first, second = (mean + stddev * generator.standard_normal((200_000, 3, 2)) for _ in range(2))
    drawn = np.square(first[:, 0] - second[:, 1]).sum(axis=1).mean()
    assert embedding_distances(mean, stddev)(np.array([0]))[0, 1] == pytest.approx(drawn, rel=0.02)


@given(graphs(max_vertices=10))
def test_scores_of_graphs_are_networkxs(graph):
    count = graph.n_vertices
    theirs = networkx.Graph(graph.edges.tolist())
    theirs.add_nodes_from(range(count))
    rows = np.arange(count)
    degree, common, adamic = (
        make(graph)(rows) for make in (degree_scores, common_neighbour_scores, adamic_adar_scores)
    )
    assert degree.shape == common.shape == adamic.shape == (count, count)
    for i in range(count):
        for j in range(count):
            assert degree[i, j] == theirs.degree(j)
            if i != j:
                assert common[i, j] == len(list(networkx.common_neighbors(theirs, i, j)))
                ((_, _, index),) = networkx.adamic_adar_index(theirs, [(i, j)])
                assert adamic[i, j] == pytest.approx(index)
