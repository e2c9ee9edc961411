import networkx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corrvae.experiments.sketching import BINS, MOST_EDGES, MOST_PAIRS, MOST_POINTS, connected_piece, sketch
from corrvae.graphs import CorrelationGraph, spanning_weights
from support.graphs import graphs


@given(graphs(max_vertices=10), st.integers(1, 12))
def test_the_piece_is_as_connected_as_it_can_be(graph, most):
    chosen = connected_piece(graph, most)
    assert len(np.unique(chosen)) == len(chosen) == min(most, graph.n_vertices)
    theirs = networkx.Graph(graph.edges.tolist())
    theirs.add_nodes_from(range(graph.n_vertices))
    # every component but the last is whole, so that at most one is cut
    inside = set(chosen.tolist())
    cut = [part for part in networkx.connected_components(theirs) if part & inside and not part <= inside]
    assert len(cut) <= 1
    assert all(networkx.is_connected(theirs.subgraph(part & inside)) for part in cut)


def test_a_large_run_is_cut_down():
    generator = np.random.default_rng(0)
    pairs = np.unique(np.sort(generator.integers(0, 2000, (9000, 2)), axis=1), axis=0)
    graph = CorrelationGraph(pairs[pairs[:, 0] != pairs[:, 1]], 2000)
    places = generator.standard_normal((2000, 5))
    found = sketch(
        places, graph, graph.edges, lambda pairs: pairs[:, 0] / 3, "log_odds", groups=np.arange(2000) % 2, seed=1
    )
    chosen = connected_piece(graph, MOST_POINTS)
    assert len(found.points) == len(found.groups) == MOST_POINTS
    assert found.groups == (chosen % 2).tolist()
    assert len(found.edges) <= MOST_EDGES
    known = set(map(tuple, graph.edges.tolist()))
    assert all((chosen[i], chosen[j]) in known for i, j in found.edges)
    assert len(found.linked) == len(found.random) == MOST_PAIRS
    assert found.linked[0] == round(found.linked[0], 5)
    assert found.metric == "link log-odds"
    assert (sum(found.weight_counts), len(found.weight_counts), len(found.weight_bounds)) == (
        graph.n_edges,
        BINS,
        BINS + 1,
    )


def test_points_are_the_principal_components():
    generator = np.random.default_rng(0)
    graph = CorrelationGraph.from_edges([(i, i + 1) for i in range(29)])
    places = generator.standard_normal((30, 4)) * [5.0, 3.0, 0.1, 0.1]
    found = np.array(sketch(places, graph, graph.edges, lambda pairs: pairs[:, 0] * 1.0, "cosine").points)
    values, vectors = np.linalg.eigh(np.cov(places.T))
    expected = (places - places.mean(axis=0)) @ vectors[:, np.argsort(-values)[:2]]
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-4)


def test_random_pairs_are_not_linked_and_weights_are_those_of_training():
    graph = CorrelationGraph.from_edges([(i, j) for i in range(6) for j in range(i)], n_vertices=9)
    trained = CorrelationGraph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], n_vertices=9)
    seen = []

    def score(pairs):
        seen.append(pairs)
        return np.zeros(len(pairs))

    found = sketch(np.eye(9), graph, graph.edges[:2], score, "cosine", trained=trained)
    edges = set(map(tuple, graph.edges.tolist()))
    assert not {tuple(sorted(pair)) for pair in seen[1].tolist()} & edges
    assert (seen[1][:, 0] != seen[1][:, 1]).all()
    expected, _ = np.histogram(spanning_weights(trained).weights, BINS, (0, 1))
    assert found.weight_counts == expected.tolist()


def test_one_dimension_and_no_links_are_drawn_too():
    graph = CorrelationGraph.from_edges([(0, 1)], n_vertices=4)
    found = sketch(np.arange(4.0)[:, None], graph, np.empty((0, 2), int), lambda pairs: pairs[:, 0] * 1.0, "cosine")
    assert found.linked == []
    assert [point[1] for point in found.points] == [0.0] * 4
