"""X and graph as users bring them."""

from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator

from corrvae import data
from corrvae.data import Table, align, check_weights, digest, own_copy, read_table, row_totals
from corrvae.graphs import CorrelationGraph
from corrvae.io import Features, open_mapped, write_mapped
from support.graphs import graphs
from support.unchecked import unchecked


class Reader(BaseEstimator):
    """An estimator that has learned nothing yet."""


def read(X, **options):
    return read_table(Reader(), X, reset=True, **options)


def dense(table):
    matrix = table.matrix
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@st.composite
def matrices(draw):
    """Draw small matrices with many zeros, some of them stored, and some rows empty."""
    n_rows, n_columns = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    array = rng.normal(size=(n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < draw(st.sampled_from([0.2, 0.9])))
    matrix = sparse.csr_array(array)
    if matrix.nnz:
        matrix.data[rng.integers(matrix.nnz)] = 0.0
    return matrix


@pytest.fixture
def mapped(tmp_path):
    """Return a function that maps a sparse matrix."""

    def make(matrix):
        folder = tmp_path / f"mapped-{len(list(tmp_path.iterdir()))}"
        write_mapped(folder, sparse.csr_array(matrix))
        return open_mapped(folder)

    return make


# Reading


@given(matrices())
def test_every_kind_of_table_is_read_as_the_same_numbers(matrix):
    array = matrix.toarray()
    names = [f"c{column}" for column in range(array.shape[1])]
    kinds = [
        array,
        np.asfortranarray(array),
        matrix,
        sparse.csc_matrix(array),
        sparse.coo_array(array),
        pd.DataFrame(array, columns=names),
        pl.DataFrame(array, schema=names),
        array.tolist(),
        Features(matrix),
    ]
    for X in kinds:
        np.testing.assert_array_equal(dense(read(X)), array)


def test_whole_numbers_and_half_precision_are_numbers():
    for kind in (np.int64, np.uint8, bool, np.float16):
        np.testing.assert_array_equal(dense(read(np.eye(4, dtype=kind))), np.eye(4))


def test_what_is_mapped_stays_mapped(tmp_path, mapped):
    np.save(tmp_path / "x.npy", np.eye(30, dtype=np.float32))
    array, matrix = np.load(tmp_path / "x.npy", mmap_mode="r"), mapped(np.eye(30))
    assert isinstance(read(array).matrix, np.memmap)
    for X in (matrix, Features(matrix)):
        read_matrix = read(X).matrix
        for part in ("data", "indices", "indptr"):
            assert np.shares_memory(getattr(read_matrix, part), getattr(matrix, part))
        assert own_copy(read_matrix) is read_matrix
    assert own_copy(array) is array


def test_repeated_entries_are_summed_and_callers_keep_their_data():
    repeated = sparse.csr_array((np.ones(3), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    np.testing.assert_array_equal(dense(read(repeated)), [[2.0, 1.0]])
    assert repeated.nnz == 3


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, pd.DataFrame])
@pytest.mark.parametrize(
    ("value", "words"),
    [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf"), (1e39, "1e+39")],
)
def test_what_is_no_number_is_named_with_its_place(make, value, words):
    array = np.ones((6, 4))
    array[5, 3] = array[4, 2] = value
    with pytest.raises(ValueError, match="row 4, column 2") as caught:
        read(make(array))
    assert words in str(caught.value)


def test_nan_may_be_missing_and_infinity_may_not():
    array = np.array([[np.nan, 1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(dense(read(array, missing=True)), array)
    with pytest.raises(ValueError, match=r"row 1, column 0; features must be finite"):
        read(np.array([[np.nan, 1.0], [np.inf, 3.0]]), missing=True)


def test_a_place_far_down_a_mapped_table_is_named(tmp_path, mapped):
    array = np.ones((5000, 2), dtype=np.float32)
    array[4321, 1] = np.nan
    np.save(tmp_path / "x.npy", array)
    for X in (np.load(tmp_path / "x.npy", mmap_mode="r"), mapped(array)):
        with pytest.raises(ValueError, match="row 4321, column 1"):
            read(X)


@pytest.mark.parametrize("kind", ["pandas", "polars", "categories"])
def test_a_column_of_text_is_named(kind):
    columns = {"x": [1.0, 2.0], "who": ["ann", "bob"]}
    frame = pl.DataFrame(columns) if kind == "polars" else pd.DataFrame(columns)
    if kind == "categories":
        frame["who"] = frame["who"].astype("category")
    with pytest.raises(ValueError, match=r"column 'who' holds 'ann', which is not a number.*set_index"):
        read(frame)


def test_names_of_columns_are_learned_and_compared():
    frame = pd.DataFrame(np.ones((2, 2)), columns=["a", "b"])
    for first in (frame, Features(np.ones((2, 2)), names=["a", "b"])):
        reader = Reader()
        read_table(reader, first, reset=True)
        assert reader.feature_names_in_.tolist() == ["a", "b"]
        assert reader.n_features_in_ == 2
        read_table(reader, Features(np.ones((3, 2)), names=["a", "b"]), reset=False)
        read_table(reader, frame, reset=False)
        with pytest.raises(ValueError, match="column 1 is 'c', but the model was trained with 'b' there"):
            read_table(reader, Features(np.ones((3, 2)), names=["a", "c"]), reset=False)
        with pytest.raises(ValueError, match="3 features, but Reader is expecting 2"):
            read_table(reader, Features(np.ones((3, 3)), names=["a", "b", "c"]), reset=False)
    reader = Reader()
    read_table(reader, frame, reset=True)
    read_table(reader, Features(np.ones((2, 3))), reset=True)
    assert not hasattr(reader, "feature_names_in_")


# Ids


def test_ids_come_from_an_index_that_does_more_than_count():
    frame = pd.DataFrame(np.ones((3, 2)), columns=["a", "b"])
    assert read(frame).ids is None
    assert read(frame).row_ids.tolist() == [0, 1, 2]
    assert read(frame.iloc[[2, 0]]).ids.tolist() == [2, 0]
    frame.index = ["x", "y", "z"]
    assert read(frame).ids.tolist() == ["x", "y", "z"]
    assert read([[1.0, 2.0]]).ids is None
    assert read(pl.DataFrame({"a": [1.0]})).ids is None
    assert read(Features(np.eye(2), ids=objects("x", "y"))).ids.tolist() == ["x", "y"]


def test_ids_that_are_passed_come_before_those_of_the_table():
    frame = pd.DataFrame(np.ones((3, 2)), columns=["a", "b"], index=["x", "y", "z"])
    assert read(frame, ids=[7, 5, 3]).ids.tolist() == [7, 5, 3]
    assert read(frame, ids=range(3)).ids is None
    assert read(np.ones((3, 2)), ids=pd.Index(["x", "y", "z"])).ids.tolist() == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("ids", "words"), [(["x", "y"], "2 ids for 3 rows"), (["x", "y", "x"], "twice"), (["x", None, "y"], "missing")]
)
def test_ids_that_are_passed_must_name_every_row_once(ids, words):
    with pytest.raises(ValueError, match=words):
        read(np.ones((3, 2)), ids=ids)


@pytest.mark.parametrize("index", [["a", "a", "b"], ["a", None, "b"], [1.0, np.nan, 2.0]])
def test_an_index_that_names_no_rows_is_an_error_only_with_a_graph_that_has_ids(index):
    frame = pd.DataFrame(np.ones((3, 2)), columns=["a", "b"], index=pd.Index(index, dtype=object))
    table = read(frame)
    assert table.ids is None
    assert align(table, CorrelationGraph.from_edges([(0, 1)], n_vertices=3)).graph.edges.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="repeat or are missing in the index of X"):
        align(table, NAMED)


# The graph beside the rows

NAMED = CorrelationGraph.from_edges([("a", "b"), ("b", "c")])


def rows(ids=None, n_rows=3):
    return Table(np.ones((n_rows, 2)), ids)


@given(graphs(ids=True), st.randoms())
def test_edges_join_the_same_ids_whatever_the_order_of_the_rows(graph, random):
    order = random.sample(range(graph.n_vertices), graph.n_vertices)
    own = graph.ids[order]
    found = align(rows(own, graph.n_vertices), graph)
    joined = {frozenset(pair) for pair in found.graph.id_pairs.tolist()}
    assert joined == {frozenset(pair) for pair in graph.id_pairs.tolist()}
    assert found.graph.ids.tolist() == found.row_ids.tolist() == own.tolist()


def test_without_ids_vertex_i_is_row_i():
    assert align(rows(), None).row_ids.tolist() == [0, 1, 2]
    found = align(rows(), NAMED)
    assert found.row_ids.tolist() == ["a", "b", "c"]
    assert found.graph is NAMED


@pytest.mark.parametrize("ids", [objects("x", "y", "z"), np.array([7, 5, 3]), np.array([1, 2, 3])])
def test_a_graph_that_only_counts_takes_the_ids_of_the_rows(ids):
    found = align(rows(ids), CorrelationGraph.from_edges([(0, 1)], n_vertices=3))
    assert found.row_ids.tolist() == found.graph.ids.tolist() == ids.tolist()
    assert found.graph.edges.tolist() == [[0, 1]]


def test_a_permutation_of_the_graphs_numbers_is_matched_by_id():
    found = align(rows(np.array([2, 0, 1])), CorrelationGraph.from_edges([(0, 1)], n_vertices=3))
    assert found.row_ids.tolist() == found.graph.ids.tolist() == [2, 0, 1]
    assert found.graph.id_pairs.tolist() == [[0, 1]]
    assert found.graph.edges.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("ids", "graph"),
    [(objects("x", "y", "z"), CorrelationGraph.from_edges([(5, 7), (7, 9)])), (np.array([7, 5, 3]), NAMED)],
)
def test_ids_of_another_kind_cannot_be_matched(ids, graph):
    with pytest.raises(ValueError, match="the rows of X do not match the graph's vertices"):
        align(rows(ids), graph)


def test_vertices_without_a_row_are_left_out_and_rows_without_edges_stay():
    with pytest.warns(UserWarning, match=r"1 id in the graph but not in the features \(c\); 1 edge left out"):
        found = align(rows(objects("a", "q", "b", "r"), 4), NAMED)
    assert (found.graph.ids.tolist(), found.graph.edges.tolist()) == (["a", "q", "b", "r"], [[0, 2]])
    kept = align(rows(objects("b", "a")), NAMED, keep_bare=True).graph
    assert (kept.ids.tolist(), kept.edges.tolist()) == (["b", "a", "c"], [[0, 1], [0, 2]])


def test_the_cure_for_another_number_of_rows_is_the_one_that_helps():
    with pytest.raises(ValueError, match=r"3 vertices, but X has 2 rows without ids.*graph\.subgraph\(ids\)"):
        align(rows(n_rows=2), NAMED)
    with pytest.raises(ValueError, match=r"3 vertices, but X has 4 rows without ids.*with vertices= or n_vertices="):
        align(rows(n_rows=4), NAMED)
    assert align(rows(n_rows=2), NAMED.subgraph(["a", "c"])).graph.n_vertices == 2


@given(graphs())
def test_every_kind_of_graph_is_read_as_the_same_edges(graph):
    edges = graph.edges
    table = rows(n_rows=graph.n_vertices)
    for given_graph in (
        graph,
        graph.to_scipy(),
        graph.to_networkx(),
        pd.DataFrame(edges, columns=["source", "target"]),
        pl.DataFrame({"source": edges[:, 0], "target": edges[:, 1]}),
        [tuple(pair) for pair in edges.tolist()],
        torch.as_tensor(edges.T.copy()),
    ):
        if len(edges) and edges.min() > 0 and edges.max() == graph.n_vertices:
            continue
        assert align(table, given_graph).graph.edges.tolist() == edges.tolist()


def test_a_file_and_an_adjacency_of_annotated_data_are_graphs(tmp_path):
    (tmp_path / "friends.csv").write_text("source,target,strength\nann,bob,2\nbob,cem,3\n")
    found = align(rows(objects("bob", "ann", "dee", "cem"), 4), tmp_path / "friends.csv").graph
    assert (found.edges.tolist(), found.conductances.tolist()) == ([[0, 1], [0, 3]], [2.0, 3.0])
    anndata = pytest.importorskip("anndata")
    names = pd.DataFrame(index=pd.Index(["x", "y", "z"], dtype=object))
    data = anndata.AnnData(np.eye(3, 2, dtype=np.float32), obs=names, obsp={"near": NAMED.to_scipy()})
    table = read(data)
    assert (table.ids.tolist(), table.matrix.tolist()) == (["x", "y", "z"], np.eye(3, 2).tolist())
    assert align(table, "near").graph.id_pairs.tolist() == [["x", "y"], ["y", "z"]]
    with pytest.raises(ValueError, match=r"'far' is neither among the obsp of this AnnData \('near'\) nor a file"):
        align(table, "far")


def test_data_of_pytorch_geometric_brings_its_edges():
    data_class = pytest.importorskip("torch_geometric.data").Data
    data = data_class(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    table = read(data)
    assert table.matrix.tolist() == np.eye(3).tolist()
    assert align(table, None).graph.edges.tolist() == [[0, 1]]
    assert align(table, [(1, 2)]).graph.edges.tolist() == [[1, 2]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("people", [["ann", "bob", "ann"], [7, 9, 7]])
def test_a_long_frame_is_the_matrix_of_its_entries(make, people, tmp_path):
    frame = make({"userId": people, "artistID": [5, 5, 6], "plays": [1.0, 2.0, 3.0]})
    reader = Reader()
    table = read_table(reader, frame, reset=True)
    assert (table.ids.tolist(), table.matrix.toarray().tolist()) == (people[:2], [[1, 3], [2, 0]])
    assert reader.feature_names_in_.tolist() == ["5", "6"]
    again = make({"userId": [1, 1], "artistID": [6, 5], "plays": [4.0, 5.0]})
    assert read_table(reader, again, reset=False).matrix.toarray().tolist() == [[5, 4]]
    (tmp_path / "t.csv").write_text("".join(f"{u},{m},{v}\n" for u, m, v in frame.to_numpy().tolist()))
    rated = make({"user": [7, 7, 9], "product": [1, 2, 1], "rating": [5, 3, 4]})
    assert read(rated).matrix.toarray().tolist() == [[5, 3], [4, 0]]
    counts = make({"a": [1, 1, 2], "b": [0, 3, 4]})
    assert read(counts).matrix.tolist() == [[1, 0], [1, 3], [2, 4]]


def test_a_path_is_read(tmp_path):
    (tmp_path / "t.csv").write_text("id,a,b\nann,1,2\nbob,3,4\n")
    for path in (tmp_path / "t.csv", str(tmp_path / "t.csv")):
        table = read(path)
        assert (table.ids.tolist(), np.asarray(table.matrix).tolist()) == (["ann", "bob"], [[1, 2], [3, 4]])


def test_a_table_of_pyarrow_is_a_frame():
    wide, long = pa.table({"a": [1, 2], "b": [3, 4]}), pa.table({"user": ["x", "x", "y"], "item": ["a", "b", "a"]})
    assert read(wide).matrix.tolist() == [[1, 3], [2, 4]]
    table = read(long)
    assert (table.ids.tolist(), table.matrix.toarray().tolist()) == (["x", "y"], [[1, 1], [1, 0]])
    assert align(table, pa.table({"from": ["x"], "to": ["y"]})).graph.n_edges == 1


@pytest.mark.parametrize("wrong", [None, 7, {"a": [1]}, pl.LazyFrame({"a": [1]}), iter([[1]]), NAMED.to_networkx()])
def test_features_that_cannot_be_read_name_their_type(wrong):
    with pytest.raises(TypeError, match=rf"X is {type(wrong).__name__}, which is not read; pass an array"):
        read(wrong)


def test_graphs_that_cannot_be_read_name_their_type():
    for wrong in (np.eye(3), 7):
        with pytest.raises(TypeError, match=rf"graph is {type(wrong).__name__}.*which is not read; pass a Corr"):
            align(rows(), wrong)
    with pytest.raises(ValueError, match=r"ids such as 'ann', the rows of X have none; pass ids="):
        align(rows(), [("ann", "bob")])
    with pytest.raises(ValueError, match=r"numbered from 1 to 3, the 3 rows of X from 0; pass ids=range\(1, 4\)"):
        align(rows(), [(1, 2), (2, 3)])
    with pytest.warns(UserWarning, match="column 'w' of the edges is not of positive numbers that differ"):
        align(rows(), pd.DataFrame({"a": [0, 1], "b": [1, 2], "w": [1, 1]}))


@given(matrices())
def test_sums_and_counts_of_rows_are_those_of_the_whole(matrix):
    array = matrix.toarray()
    with patch.multiple(data, _ROWS=2, _ENTRIES=3):
        for X in (array, matrix):
            np.testing.assert_allclose(row_totals(X), array.sum(1), atol=1e-12)


def test_missing_entries_do_not_count():
    array = np.array([[np.nan, 1.0], [2.0, 3.0], [np.nan, 0.0]])
    for X in (array, sparse.csr_array(array)):
        assert row_totals(X).tolist() == [1.0, 5.0, 0.0]


@given(matrices(), matrices())
def test_a_digest_tells_matrices_apart(one, other):
    same = one.shape == other.shape and np.array_equal(one.toarray(), other.toarray())
    assert (digest(one.toarray()) == digest(other.toarray())) == same
    assert digest(one) == digest(one.copy())
    if not same:
        assert digest(one) != digest(other)


def test_a_digest_tells_mapped_rows_apart(mapped):
    matrix = sparse.csr_array(np.eye(9, dtype=np.float32))
    with patch.multiple(data, _ROWS=2, _ENTRIES=3):
        assert digest(mapped(matrix)) == digest(matrix)
        assert digest(mapped(matrix[::-1])) != digest(matrix)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_copy_is_nobody_elses(make):
    matrix = make(np.ones((3, 4), dtype=np.float32))
    copied = own_copy(matrix)
    (matrix if make is np.asarray else matrix.data)[:] = 7.0
    np.testing.assert_array_equal(dense(Table(copied)), np.ones((3, 4)))


def test_weights_are_one_for_each_row():
    assert check_weights(None, 3) is None
    assert check_weights([1, 2, 3], 3).tolist() == [1.0, 2.0, 3.0]
    assert check_weights(2.0, 3).tolist() == [2.0, 2.0, 2.0]
    for wrong in ([1, 2], [1, -1, 1], [0, 0, 0], [1, np.nan, 1], [1, np.inf, 1]):
        with (
            unchecked(),
            pytest.raises(ValueError, match="must be 3 numbers, finite and not negative"),
        ):
            check_weights(wrong, 3)


def test_groups_need_a_family_that_keeps_vertices_without_features():
    graph = CorrelationGraph.from_groups({"h": ["a", "b"]})
    with pytest.raises(ValueError, match="leave the groups out"):
        align(rows(objects("b", "a")), graph)
    kept = align(rows(objects("b", "a")), graph, keep_bare=True).graph
    assert (kept.ids.tolist(), kept.is_group.tolist()) == (["b", "a", "h"], [False, False, True])
