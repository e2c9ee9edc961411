from types import SimpleNamespace

import networkx
import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from corrvae.graphs import CorrelationGraph, DroppedEdgesWarning
from support.graphs import graphs

FORMATS = ["coo", "csr", "csc", "lil", "dok", "dia", "bsr"]


@given(graphs(ids=True))
def test_scipy_there_and_back(graph):
    adjacency = graph.to_scipy()
    expected = np.zeros((len(graph), len(graph)))
    for k, (i, j) in enumerate(graph.edges.tolist()):
        expected[i, j] = expected[j, i] = 1.0 if graph.conductances is None else graph.conductances[k]
    assert np.array_equal(adjacency.toarray(), expected)
    assert adjacency.has_sorted_indices
    weighted = graph.conductances is not None
    assert CorrelationGraph.from_scipy(adjacency, vertices=graph.ids, weighted=weighted) == graph
    # the caller may change the matrix
    adjacency.data[:] = 7.0
    assert np.array_equal(graph.to_scipy().toarray(), expected)


@given(graphs(ids=True))
def test_networkx_there_and_back(graph):
    written = graph.to_networkx()
    assert list(written.nodes) == graph.ids.tolist()
    weighted = graph.conductances is not None
    assert CorrelationGraph.from_networkx(written, conductance="weight" if weighted else None) == graph
    if weighted:
        assert networkx.to_numpy_array(written) == pytest.approx(graph.to_scipy().toarray())


@given(graphs())
def test_pyg_stores_both_directions(graph):
    edge_index = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    weight = None if graph.conductances is None else np.tile(graph.conductances, 2)
    data = SimpleNamespace(edge_index=edge_index, num_nodes=graph.n_vertices, edge_weight=weight)
    assert CorrelationGraph.from_pyg(data) == (graph if graph.n_edges else CorrelationGraph([], graph.n_vertices))
    assert CorrelationGraph.from_pyg(edge_index, n_vertices=graph.n_vertices).edges.tolist() == graph.edges.tolist()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.coo_matrix])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, np.float64])
def test_every_sparse_format_and_type(form, kind, dtype):
    dense = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=dtype)
    adjacency = kind(dense).asformat(form)
    graph = CorrelationGraph.from_scipy(adjacency)
    assert graph == CorrelationGraph.from_edges([(0, 1), (1, 2)])
    assert np.array_equal(adjacency.toarray(), dense)


def test_sparse_values_are_conductances_unless_all_are_one():
    adjacency = sparse.csr_array([[0, 2.5], [2.5, 0]])
    assert CorrelationGraph.from_scipy(adjacency).conductances.tolist() == [2.5]
    assert CorrelationGraph.from_scipy(adjacency, weighted=False).conductances is None
    ones = sparse.csr_array([[0, 1.0], [1.0, 0]])
    assert CorrelationGraph.from_scipy(ones).conductances is None
    assert CorrelationGraph.from_scipy(ones, weighted=True).conductances.tolist() == [1.0]


def test_repeated_entries_add_up_stored_zeros_are_no_edges_and_the_diagonal_is_dropped():
    rows, columns = [0, 0, 1, 1, 2, 0, 2], [1, 1, 0, 2, 1, 2, 0]
    adjacency = sparse.coo_array(([1.0, 2.0, 3.0, 0.0, 0.0, 4.0, 4.0], (rows, columns)), shape=(4, 4))
    graph = CorrelationGraph.from_scipy(adjacency)
    assert graph.edges.tolist() == [[0, 1], [0, 2]]
    assert graph.conductances.tolist() == [3.0, 4.0]
    with pytest.warns(DroppedEdgesWarning, match="^dropped 2 self-loops$"):
        graph = CorrelationGraph.from_scipy(sparse.csr_array([[5.0, 1.0, 0], [1.0, -2.0, 0], [0, 0, 0]]))
    assert graph == CorrelationGraph.from_edges([(0, 1)], n_vertices=3)


def test_mutual_entries_of_an_asymmetric_adjacency():
    adjacency = sparse.csr_array([[0, 1, 1], [1, 0, 0], [0, 0, 0]])
    with pytest.warns(DroppedEdgesWarning, match="^dropped 1 one-way edge$"):
        graph = CorrelationGraph.from_scipy(adjacency, directed="mutual")
    assert graph.edges.tolist() == [[0, 1]]
    assert graph.n_vertices == 3


@pytest.mark.parametrize(
    ("adjacency", "kind", "sentence"),
    [
        (sparse.csr_array(np.ones((2, 3))), ValueError, r"square; this one has shape \(2, 3\)"),
        (sparse.coo_array(np.ones(3)), ValueError, r"square; this one has shape \(3,\)"),
        (np.ones((2, 2)), TypeError, "not ndarray; scipy.sparse.csr_array"),
        (sparse.csr_array([[0, 0, 0], [0, 0, 1], [0, 0, 0]]), ValueError, r"entry at \(1, 2\) and none at \(2, 1\)"),
        (sparse.csr_array([[0, 0, 0], [0, 0, 0], [0, 1, 0]]), ValueError, r"entry at \(2, 1\) and none at \(1, 2\)"),
        (sparse.csr_array([[0, 2.0], [3.0, 0]]), ValueError, r"adjacency: \(0, 1\) has conductance 2.0 in one .* 3.0"),
        (sparse.csr_array([[0, -2.0], [-2.0, 0]]), ValueError, r"adjacency: \(0, 1\) has conductance -2.0; it must be"),
        (
            sparse.csr_array([[0, np.nan], [np.nan, 0]]),
            ValueError,
            r"adjacency: \(0, 1\) has conductance nan; it must be",
        ),
    ],
)
def test_wrong_adjacencies_raise_with_their_place(adjacency, kind, sentence):
    with pytest.raises(kind, match=sentence):
        CorrelationGraph.from_scipy(adjacency)


def test_the_ids_of_rows_must_fit():
    with pytest.raises(ValueError, match="vertices lists 3 ids for a graph of 2 vertices"):
        CorrelationGraph.from_scipy(sparse.csr_array([[0, 1], [1, 0]]), vertices=["a", "b", "c"])


def test_networkx_nodes_of_any_kind_directed_and_parallel_edges():
    graph = networkx.Graph([((0, 1), "x"), ("x", 7)])
    graph.add_node("alone")
    read = CorrelationGraph.from_networkx(graph)
    assert read.ids.tolist() == [(0, 1), "x", 7, "alone"]
    assert read.id_pairs.tolist() == [[(0, 1), "x"], ["x", 7]]
    arrows = networkx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")])
    assert CorrelationGraph.from_networkx(arrows).n_edges == 2
    with pytest.warns(DroppedEdgesWarning, match="^dropped 1 one-way edge$"):
        mutual = CorrelationGraph.from_networkx(arrows, directed="mutual")
    assert mutual.id_pairs.tolist() == [["a", "b"]]
    assert mutual.n_vertices == 3
    assert CorrelationGraph.from_networkx(networkx.path_graph(3), directed="mutual").n_edges == 2
    parallel = networkx.MultiGraph()
    parallel.add_weighted_edges_from([("a", "b", 1.0), ("a", "b", 2.0)])
    with pytest.warns(DroppedEdgesWarning, match="1 repeated edge"):
        CorrelationGraph.from_networkx(parallel)
    assert CorrelationGraph.from_networkx(parallel, conductance="weight").conductances.tolist() == [3.0]


def test_networkx_in_the_order_of_vertices():
    graph = networkx.path_graph(["a", "b", "c"])
    read = CorrelationGraph.from_networkx(graph, vertices=["c", "extra", "a", "b"])
    assert read.edges.tolist() == [[0, 3], [2, 3]]
    with pytest.raises(ValueError, match="node 2 of the graph: id 'c' is not among the 2 vertices"):
        CorrelationGraph.from_networkx(graph, vertices=["a", "b"])


def test_networkx_conductances_are_checked():
    graph = networkx.Graph()
    graph.add_edge("a", "b", weight=1.0)
    graph.add_edge("b", "c", strength=2.0)
    with pytest.raises(ValueError, match=r"^edge 1: \('b', 'c'\) has conductance nan; it must be a finite"):
        CorrelationGraph.from_networkx(graph, conductance="weight")
    graph["b"]["c"]["weight"] = -1.0
    with pytest.raises(ValueError, match=r"edge 1: \('b', 'c'\) has conductance -1.0; it must be a finite"):
        CorrelationGraph.from_networkx(graph, conductance="weight")


def test_pyg_counts_its_vertices():
    edge_index = [[0, 1], [1, 2]]
    assert CorrelationGraph.from_pyg(edge_index).n_vertices == 3
    assert CorrelationGraph.from_pyg(edge_index, n_vertices=5).n_vertices == 5
    assert CorrelationGraph.from_pyg(SimpleNamespace(edge_index=edge_index, num_nodes=4)).n_vertices == 4
    named = CorrelationGraph.from_pyg(edge_index, vertices=["a", "b", "c", "d"])
    assert named.id_pairs.tolist() == [["a", "b"], ["b", "c"]]
    with pytest.warns(DroppedEdgesWarning, match="^dropped 2 one-way edges$"):
        assert CorrelationGraph.from_pyg(edge_index, directed="mutual").n_edges == 0


def test_pyg_edge_weights_are_conductances_unless_all_are_one():
    data = SimpleNamespace(edge_index=[[0, 1, 1], [1, 0, 2]], num_nodes=3, edge_weight=[2.0, 2.0, 5.0])
    assert CorrelationGraph.from_pyg(data).conductances.tolist() == [2.0, 5.0]
    assert CorrelationGraph.from_pyg(data, weighted=False).conductances is None
    data.edge_weight = [1.0, 1.0, 1.0]
    assert CorrelationGraph.from_pyg(data).conductances is None
    with pytest.raises(ValueError, match="no edge_weight"):
        CorrelationGraph.from_pyg([[0], [1]], weighted=True)


@pytest.mark.parametrize(
    ("edge_index", "count", "sentence"),
    [
        ([[0, 1]], None, r"edge_index has shape \(2, m\), not \(1, 2\)"),
        ([[0, 1, 2]] * 3, None, r"not \(3, 3\); from_edges takes pairs"),
        ([[0, 1], [1, 5]], 3, "edge 1: vertex index 5 is past the end of 3 vertices"),
        ([[0, -1], [1, 1]], None, "edge 1: vertex index -1 is negative"),
        ([[0, 0.5], [1, 1]], 3, "edge 1: 0.5 is not an integer"),
    ],
)
def test_wrong_edge_indices_raise_with_their_place(edge_index, count, sentence):
    with pytest.raises(ValueError, match=sentence):
        CorrelationGraph.from_pyg(edge_index, n_vertices=count)


def test_tensors_are_detached_and_moved_to_the_cpu():
    class Tensor:
        """A tensor on another device: it must be detached and moved before NumPy may see it."""

        def __init__(self, values, ready=False):
            self.values, self.ready = np.asarray(values), ready

        def detach(self):
            return self

        def cpu(self):
            return Tensor(self.values, ready=True)

        def __array__(self, dtype=None, copy=None):
            assert self.ready
            return self.values

    data = SimpleNamespace(edge_index=Tensor([[0, 1], [1, 2]]), num_nodes=3, edge_weight=Tensor([0.5, 2.0]))
    assert CorrelationGraph.from_pyg(data).conductances.tolist() == [0.5, 2.0]


def test_data_frames_are_pairs():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    columns = {"from": ["a", "b"], "to": ["b", "c"]}
    expected = CorrelationGraph.from_edges([("a", "b"), ("b", "c")])
    assert CorrelationGraph.from_edges(pandas.DataFrame(columns)) == expected
    assert CorrelationGraph.from_edges(polars.DataFrame(columns)) == expected
    mixed = pandas.DataFrame({"user": [1, 2], "item": ["x", "y"]})
    assert CorrelationGraph.from_edges(mixed).ids.tolist() == [1, "x", 2, "y"]
    series = pandas.Series([2.0, 3.0])
    assert CorrelationGraph.from_edges(pandas.DataFrame(columns), conductances=series).conductances.tolist() == [2, 3]
    assert CorrelationGraph.from_edges([("a", "b")], vertices=pandas.Index(["b", "a"])).edges.tolist() == [[0, 1]]


def test_real_pyg_data():
    torch = pytest.importorskip("torch")
    data_class = pytest.importorskip("torch_geometric.data").Data
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    expected = CorrelationGraph.from_edges([(0, 1), (1, 2)], n_vertices=4)
    assert CorrelationGraph.from_pyg(data_class(edge_index=edge_index, x=torch.zeros(4, 1))) == expected
    weighted = data_class(edge_index=edge_index, edge_weight=torch.tensor([1.0, 1.0, 2.0, 2.0]), num_nodes=4)
    assert CorrelationGraph.from_pyg(weighted).conductances.tolist() == [1.0, 2.0]
    assert CorrelationGraph.from_pyg(edge_index, n_vertices=4) == expected
    assert CorrelationGraph.from_edges(edge_index.T, n_vertices=4) == expected
