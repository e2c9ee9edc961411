import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph
from corrvae.reading import Features
from corrvae.reading.joining import are_first_line, join, name_some
from corrvae.reading.keys import as_ids

POINTS = [str(k) for k in range(12)]
PAIRS = st.lists(st.tuples(st.sampled_from(POINTS), st.sampled_from(POINTS)).filter(lambda p: p[0] != p[1]), min_size=1)


def table(ids):
    return Features(np.zeros((len(ids), 1), dtype=np.float32), as_ids(ids), None)


@given(st.lists(st.sampled_from(POINTS), unique=True, min_size=1), PAIRS, st.booleans(), st.booleans())
def test_edges_between_rows_stay_and_no_others(rows, pairs, word, weighted):
    rows = [*rows, "word"] if word else rows  # which makes strings of all of them, where the graph has integers
    distinct = sorted({tuple(sorted(map(int, pair))) for pair in pairs})
    weights = [1.0 + i + 100.0 * j for i, j in distinct] if weighted else None
    joined = join(table(rows), CorrelationGraph.from_edges(distinct, conductances=weights))
    found = {tuple(sorted(int(end) for end in pair)): k for k, pair in enumerate(joined.graph.id_pairs.tolist())}
    expected = {pair for pair in distinct if str(pair[0]) in rows and str(pair[1]) in rows}
    assert set(found) == expected
    assert joined.n_edges_lost == len(distinct) - len(expected)
    if weighted:
        assert all(joined.graph.conductances[k] == 1.0 + i + 100.0 * j for (i, j), k in found.items())
    assert [str(value) for value in joined.graph.ids.tolist()] == rows
    ends = {str(end) for pair in distinct for end in pair}
    assert [str(value) for value in joined.only_rows.tolist()] == [row for row in rows if row not in ends]
    assert {str(value) for value in joined.only_vertices.tolist()} == ends - set(rows)


def test_rows_without_ids_are_counted():
    features = Features(np.zeros((3, 1), dtype=np.float32), None, None)
    joined = join(features, CorrelationGraph.from_edges([(2, 0), (2, 7)]))
    assert joined.graph.edges.tolist() == [[0, 2]]
    assert (joined.only_rows.tolist(), joined.only_vertices.tolist()) == ([1], [7])


@pytest.mark.parametrize(
    ("ids", "text", "columns", "expected"),
    [
        (["he", "she"], "# ours\nhe,she\nann,bob\n", None, True),
        (["she", "he"], "he,w,she\nann,x,bob\n", [0, 2], True),
        (["he", "she"], "he,w,she\nann,x,bob\n", None, False),
        (["he"], "he,she\nann,bob\n", None, False),
        (["he", "she", "it"], "he,she\nann,it\n", None, False),
        ([8, 9], "8,9\n1,2\n", None, False),
        (["he", "she"], "source,target\nhe,she\nann,bob\n", None, False),
        ([], "ann,bob\n", None, False),
    ],
)
def test_the_ids_of_the_first_line_are_known_again(ids, text, columns, expected, tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(text)
    assert are_first_line(np.array(ids, dtype=object), path, columns, None) is expected


def test_parquet_has_no_first_line(tmp_path):
    import pandas as pd

    pd.DataFrame({"a": ["he"], "b": ["she"]}).to_parquet(tmp_path / "edges.parquet")
    assert not are_first_line(np.array(["he", "she"], dtype=object), tmp_path / "edges.parquet", None, None)


def test_a_few_ids_are_named():
    assert name_some(np.array(["a", "b"], dtype=object)) == "a, b"
    assert name_some(np.arange(6)) == "0, 1, 2, 3, 4, ..."
