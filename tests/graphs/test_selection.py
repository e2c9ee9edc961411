import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs.selection import edge_positions, pair_codes, vertex_indices
from support.graphs import graphs


@given(graphs(), st.data())
def test_positions_of_pairs_in_either_order(graph, data):
    vertex = st.integers(0, graph.n_vertices - 1)
    pairs = np.array(data.draw(st.lists(st.tuples(vertex, vertex))), dtype=np.int64).reshape(-1, 2)
    edges = graph.edges.tolist()
    expected = [edges.index(sorted(pair)) if sorted(pair) in edges else -1 for pair in pairs.tolist()]
    assert edge_positions(graph.edges, graph.n_vertices, pairs).tolist() == expected


@given(graphs())
def test_codes_increase_along_canonical_edges_and_forget_the_order(graph):
    codes = pair_codes(graph.edges, graph.n_vertices)
    assert (np.diff(codes) > 0).all()
    assert np.array_equal(codes, pair_codes(graph.edges[:, ::-1], graph.n_vertices))


def test_keys_of_many_kinds_are_indices():
    expected = [1, 3]
    for key in ([1, 3], (1, 3), np.array([1, 3], dtype=np.uint8), range(1, 5, 2), slice(1, None, 2), ([1, 3], ...)):
        assert vertex_indices(key, 5).tolist() == expected
    assert vertex_indices([False, True, False, True, False], 5).tolist() == expected
    assert vertex_indices([], 5).tolist() == []
