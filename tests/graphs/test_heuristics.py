import networkx
import numpy as np
import pytest
from hypothesis import given

from corrvae.graphs import CorrelationGraph, heuristics
from support.graphs import graphs


@given(graphs(max_vertices=9, min_vertices=1))
def test_scores_are_those_of_paths_counted_one_by_one(graph):
    theirs = networkx.Graph(graph.edges.tolist())
    theirs.add_nodes_from(range(graph.n_vertices))
    d, every = dict(theirs.degree), np.arange(graph.n_vertices)
    found = {
        name: getattr(heuristics, name)(graph, every)
        for name in ("degree", "common_neighbors", "adamic_adar", "resource_allocation", "three_step_allocation")
    }
    for i in theirs:
        for j in set(theirs) - {i}:
            shared = list(networkx.common_neighbors(theirs, i, j))
            paths = [path for path in networkx.all_simple_paths(theirs, i, j, cutoff=3) if len(path) == 4]
            assert found["degree"][i, j] == d[j]
            assert found["common_neighbors"][i, j] == len(shared)
            assert found["adamic_adar"][i, j] == pytest.approx(sum(1 / np.log(d[k]) for k in shared))
            assert found["resource_allocation"][i, j] == pytest.approx(sum(1 / d[k] for k in shared))
            expected = sum(1 / (d[a] * d[b]) for _, a, b, _ in paths)
            assert found["three_step_allocation"][i, j] == pytest.approx(expected, abs=1e-12)


@given(graphs(max_vertices=9, min_vertices=1))
def test_walks_are_those_of_dense_matrices(graph):
    adjacency, every = (graph.to_scipy().toarray() > 0).astype(float), np.arange(graph.n_vertices)
    step = adjacency / np.maximum(graph.degrees, 1)[:, None]
    exact = 0.4 * np.linalg.inv(np.eye(graph.n_vertices) - 0.6 * step)
    assert heuristics.personalized_pagerank(graph, every, alpha=0.4) == pytest.approx(exact, abs=1e-3)
    largest = np.linalg.eigvalsh(adjacency)[-1]
    expected = sum(np.linalg.matrix_power(0.5 * adjacency / max(largest, 1e-9), k) for k in range(1, 11))
    assert heuristics.katz(graph, every, share=0.5) == pytest.approx(expected * (largest > 0), rel=0.02, abs=1e-9)


def test_rows_are_those_of_the_vertices_asked_for():
    graph = CorrelationGraph.from_networkx(networkx.karate_club_graph())
    some = np.array([5, 0, 33])
    for name in ("degree", "adamic_adar", "three_step_allocation", "personalized_pagerank", "katz"):
        function = getattr(heuristics, name)
        assert np.allclose(function(graph, some), function(graph, np.arange(34))[some])
