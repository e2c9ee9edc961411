import gzip
import logging

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph, DroppedEdgesWarning
from corrvae.io import Features, find_ids, join, read_graph, read_groups, read_ids, read_pairs
from corrvae.io.columns import as_ids
from support.files import NUMBERS, WORDS, fails, writer


@pytest.fixture
def write(tmp_path):
    return writer(tmp_path)


# Text that is right


@pytest.mark.parametrize("between", [",", "\t", ";", "|", " ", "   ", " \t ", ", "])
@pytest.mark.parametrize("around", ["", " "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_delimiters_blanks_and_line_ends(write, between, around, end):
    for graph in (NUMBERS, WORDS):
        text = end.join(f"{around}{first}{between}{second}{around}" for first, second in graph.id_pairs.tolist())
        for content in (text, text + end, gzip.compress(text.encode())):
            assert read_graph(write(content)) == graph


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n# from to\n1 2\n2 30\n-4 1\n",
        "% a comment\n%\n\n1 2\n\n   \n2 30\n-4 1\n\n\n",
        "\ufeff#7,8\n1,2\n2,30\n-4,1\n",
        "\ufeff1 2\n2 30\n-4 1\n",
        "\ufefffrom,to\n1,2\n2,30\n-4,1\n",
        "x,y\n1,2\n2,30\n-4,1\n",
        "source\ttarget\n1\t2\n2\t30\n-4\t1\n",
        "1,2,0.5,x\n2,30,7,y\n-4,1,0,\n",
        '"1","2"\n"2","30"\n"-4","1"\n',
        "1,2,\n2,30,\n-4,1,\n",
    ],
)
def test_comments_blank_lines_headers_quotes_and_further_columns(write, text):
    assert read_graph(write(text)) == NUMBERS


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("Source,Target\nann,bob\nbob,cem\ndee,ann\n", None),
        ("x,y,z\nann,bob,1\nbob,cem,2\ndee,ann,3\n", None),
        ("x,y\nann,bob\nbob,cem\ndee,ann\n", True),
        ("ann,bob\nbob,cem\ndee,ann\n", None),
        ("ann,bob\nbob,cem\ndee,ann\n", False),
    ],
)
def test_headers_above_words(write, text, header):
    assert read_graph(write(text), header=header, conductance=None) == WORDS


@pytest.mark.parametrize(
    "names", ["person,friend", "id1,id_2", "from,to", "SOURCE,Target", "user,user_2", "user_id,friend_id", "src,dst"]
)
def test_usual_names_are_a_header_unless_they_are_ids_below(write, names):
    assert read_pairs(write(f"{names}\nann,bob\nbob,cem\n")).ids.tolist() == [["ann", "bob"], ["bob", "cem"]]
    below = f"{names}\nann,bob\nbob,{names.split(',')[1]}\n"
    assert len(read_pairs(write(below)).ids) == 3


@pytest.mark.parametrize(
    "text",
    ["a,b\n", "person,ann\nbob,cem\n", "from,to\nto,away\n", "user1,user2\nuser3,user4\n", "p1,p2\nann,bob\n"],
)
def test_names_that_could_be_ids_are_no_header(write, text):
    pairs = read_pairs(write(text))
    assert pairs.ids.tolist() == [line.split(",") for line in text.split()]
    assert pairs.names is None


def test_ids_in_quotes(write):
    graph = read_graph(write('"Smith, Ann","Say ""hi"""\n"Smith, Ann","two\nlines"\n'))
    assert graph.ids.tolist() == ['Say "hi"', "Smith, Ann", "two\nlines"]
    assert read_graph(write("Smith, Ann\tJones, Bob\n")).ids.tolist() == ["Jones, Bob", "Smith, Ann"]


def test_columns_by_name_and_by_position(write):
    path = write("kind,a,b,w\nx,1,2,0.5\ny,2,30,1.5\nz,-4,1,2.5\n")
    by_name = read_graph(path, columns=("a", "b"), conductance="w")
    assert by_name == CorrelationGraph.from_edges([(1, 2), (2, 30), (-4, 1)], conductances=[0.5, 1.5, 2.5])
    assert read_graph(path, columns=(1, 2), conductance=3) == by_name
    assert read_graph(path, columns=["b", "a"]) == NUMBERS  # the third column is none of conductances
    assert read_graph(path, columns=("kind", "a"), header=True).ids.tolist() == ["-4", "1", "2", "x", "y", "z"]
    assert read_graph(write("1 2 5e-1\n2 30 1.5\n-4 1 2.5\n"), conductance=2) == by_name


def test_ids_are_integers_if_all_are_written_so(write):
    assert read_graph(write("1,2\n2,x\n")).ids.tolist() == ["1", "2", "x"]
    assert read_graph(write("007,8\n")).ids.tolist() == ["007", "8"]
    assert read_graph(write("1,99999999999999999999\n")).ids.tolist() == ["1", "99999999999999999999"]
    assert read_graph(write("NA,null\nnan,été\n")).ids.tolist() == ["NA", "nan", "null", "été"]


@given(
    pairs=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)).filter(lambda pair: pair[0] != pair[1])),
    words=st.booleans(),
)
def test_whatever_is_written_is_read(tmp_path_factory, pairs, words):
    distinct = sorted({tuple(sorted(pair)) for pair in pairs})
    distinct = [(f"v {i}", f"v {j}") for i, j in distinct] if words else distinct
    values = [1.0 / (k + 3) for k in range(len(distinct))]
    graph = CorrelationGraph.from_edges(distinct, conductances=values)
    folder = tmp_path_factory.mktemp("edges")
    rows = [f"{i},{j},{value!r}" for (i, j), value in zip(distinct, values, strict=True)]
    (folder / "edges.csv").write_text("\n".join(["first,second,conductance", *rows]))
    columns = {"first": [i for i, _ in distinct], "second": [j for _, j in distinct], "conductance": values}
    kind = pa.string() if words else pa.int64()
    types = pa.schema({"first": kind, "second": kind, "conductance": pa.float64()})
    pq.write_table(pa.table(columns, schema=types), folder / "edges.parquet")
    for name in ("edges.csv", "edges.parquet"):
        assert read_graph(folder / name, conductance="conductance", header=True) == graph


def test_a_header_alone_has_no_edges(write):
    assert read_graph(write("source,target\n")) == CorrelationGraph.from_edges([])


def test_direction(write):
    path = write("1 2\n2 1\n2 3\n3 3\n2 3\n")
    with pytest.warns(DroppedEdgesWarning, match="1 repeated edge, 1 self-loop, 1 one-way edge and 1 vertex left"):
        assert read_graph(path, directed="mutual").ids.tolist() == [1, 2]


# Text that is wrong


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("text", "kwargs", "line", "sentence"),
    [
        ("1,2\n2,3\n3\n4,5\n", {}, 3, "Expected 2 columns, got 1: 3"),
        ("1 2\n2 3\n\n3 4 5\n", {}, 4, "Expected 2 columns, got 3: 3 4 5"),
        ("# c\nfrom,to\n1,2,3\n", {}, 3, "Expected 2 columns, got 3: 1,2,3"),
        ("word\nword\n", {}, None, "there is one column; two are needed"),
        ("1,2\n2,\n", {}, 2, "column 1 (from 0) is empty, where an id is needed"),
        ("source,target\nann,bob\n,cem\n", {}, 3, "column 'source' is empty, where an id is needed"),
        ("a,b,w\n1,2,1\n2,3,much\n", {"conductance": "w"}, 3, "column 'w': invalid value 'much'"),
        ("a;b;1,5\nb;c;2,5\n", {"conductance": 2}, 1, "column 2 (from 0): invalid value '1,5'"),
        (
            "# x\n1 2 1\n\n \n2 3 0\n",
            {"conductance": 2},
            5,
            "(2, 3) has conductance 0.0; it must be a finite and positive number",
        ),
        ("a,b,w\n1,2,1\n2,3,\n", {"conductance": "w"}, 3, "column 'w' is empty"),
        (
            "1 2 1\n2 3 1\n2 1 5\n",
            {"conductance": 2},
            3,
            "(1, 2) has conductance 1.0 in one direction and 5.0 in the other; the two must agree",
        ),
        (
            ",source,target\n0,ann,bob\n1,bob,cem\n",
            {},
            None,
            "the first column has no name; choose columns among ['source', 'target']",
        ),
        ("", {}, None, "the file is empty"),
        ("\n  \n", {}, None, "the file is empty: it has no line but blank ones and comments"),
        ("a,b\n1,2\n", {"columns": ("a", "z")}, None, "there is no column named 'z'; there are 'a', 'b'"),
        ("a,a\n1,2\n", {"columns": ("a", "b")}, None, "there is more than one column named 'a'; there are 'a', 'a'"),
        ("1,2\n", {"columns": ("a", "b"), "header": False}, None, "there is no column named 'a'; there are no names"),
        ("1,2\n", {"columns": (0, 2)}, None, "there is no column 2; columns are 0 to 1"),
    ],
)
def test_errors_name_the_line(write, pack, text, kwargs, line, sentence):
    fails(write(pack(text.encode())), sentence, line, **kwargs)


def test_an_error_far_down_is_found(write):
    lines = [f"{k} {k + 1}" for k in range(300_000)]
    lines[250_000] += " 7"
    fails(write("\n".join(lines)), "Expected 2 columns, got 3: 250000 250001 7", 250_001)


def test_what_is_not_text(write):
    fails(write(b"1,2\n\xff,3\n"), "this is not text in UTF-8 (invalid start byte)", 2)
    late = b"".join(b"a%d,b\n" % k for k in range(2000)) + b"\xff,3\n"
    fails(write(late), "column 0 (from 0): invalid UTF8 data", 2001)


def test_missing_files_folders_and_damaged_gzip(tmp_path, write):
    fails(tmp_path / "nothing.csv", "there is no such file")
    fails(tmp_path, "cannot be read (Is a directory)")
    packed = gzip.compress(b"".join(b"%d,%d\n" % (k, k + 1) for k in range(10_000)))
    for damaged in (packed[: len(packed) // 2], packed[:-1], packed[:200] + b"\0" * 50 + packed[250:]):
        with pytest.raises(DataFileError, match="the gzip data is damaged or ends early"):
            read_graph(write(damaged, "edges.gz"))


def test_columns_are_two(write):
    for wrong in ((0, 0), (0, 1, 2)):
        with pytest.raises(ValueError, match="columns must be two different names or positions"):
            read_graph(write("1,2,3\n"), columns=wrong)


# Parquet


@pytest.mark.parametrize("kind", [pa.int32(), pa.uint64(), pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_kinds_of_parquet_columns(tmp_path, kind):
    ids = [[5, 3], [3, 9]] if pa.types.is_integer(kind) else [["ann", "bob"], ["bob", "cem"]]
    first, second = (pa.array([pair[k] for pair in ids]).cast(kind) for k in (0, 1))
    pq.write_table(pa.table({"w": [0.5, 2.0], "a": first, "b": second}), tmp_path / "edges", row_group_size=1)
    graph = read_graph(tmp_path / "edges", columns=("a", "b"), conductance="w")
    assert graph == CorrelationGraph.from_edges(ids, conductances=[0.5, 2.0])


def test_errors_in_parquet_name_the_row(tmp_path):
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": [2, None], "c": [1.5, 2.5], "w": [1.0, -1.0], "s": ["x", "y"]}), path)
    fails(path, "row 1 (from 0): column 'b' is empty, where an id is needed")
    fails(path, "column 'c' holds double; ids and items are integers or strings", columns=("a", "c"))
    sentence = "row 1 (from 0): ('2', 'y') has conductance -1.0; it must be a finite and positive number"
    fails(path, sentence, columns=("a", "s"), conductance="w")
    pq.write_table(pa.table({"a": [1], "b": [2], "s": ["x"]}), path)
    with pytest.raises(DataFileError, match="Failed to parse string: 'x'"):
        read_graph(path, conductance="s")
    pq.write_table(pa.table({"a": [1]}), path)
    fails(path, "there is one column; two are needed")
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataFileError, match="cannot be read as Parquet"):
        read_graph(path)


# A third column, directions, and files that are no graph


@pytest.mark.parametrize(
    ("third", "used", "line"),
    [
        ("125", True, "the third column is used as conductances of the edges"),
        ("111", False, "the third column is the same everywhere and is not used"),
        ("10-", False, "the third column holds numbers that are not positive and is not used"),
        ("xyz", False, "column 2 (from 0) holds words and is not used"),
    ],
)
def test_a_third_column_is_used_or_named(write, caplog, third, used, line):
    caplog.set_level(logging.INFO, "corrvae.io")
    values = [value.replace("-", "-1") for value in third]
    graph = read_graph(write("".join(f"{k} {k + 1} {value}\n" for k, value in enumerate(values))))
    assert line in caplog.text
    assert (graph.conductances is not None) == used
    if used:
        assert graph.conductances.tolist() == [float(value) for value in values]


def test_times_and_numbers_that_differ_by_direction_are_no_conductances(write, caplog):
    caplog.set_level(logging.INFO, "corrvae.io")
    assert read_graph(write("1,2,978300760\n2,3,978300761\n")).conductances is None
    assert "column 2 (from 0) holds times and is not used" in caplog.text
    assert read_graph(write("1,2,3\n2,1,4\n2,3,1\n")).conductances is None
    assert "differs between the two directions of an edge and is not used" in caplog.text


def test_merged_directions_are_counted(write, caplog):
    caplog.set_level(logging.INFO, "corrvae.io")
    path = write("1 2\n2 1\n2 3\n4 3\n3 4\n")
    assert read_graph(path).n_edges == 3
    assert "3 edges from 5 pairs, 2 in both directions" in caplog.text
    with pytest.warns(UserWarning, match="1 one-way edge"):
        assert read_graph(path, directed="mutual").id_pairs.tolist() == [[1, 2], [3, 4]]


def test_a_table_of_items_is_no_graph(write):
    path = write("1 100 4\n1 101 5\n2 100 3\n")
    with pytest.raises(DataFileError, match=r"second column holds ids that are no rows.*\(100, 101\).*rather than a"):
        read_graph(path, rows=np.array([1, 2]))
    assert read_graph(path, rows=np.array([1, 2, 100])).n_edges == 3


# Lists of ids


def test_lists_of_ids(write):
    assert read_ids(write("id,note\n7,x\n9,y\n\n")).tolist() == [7, 9]
    assert read_ids(write("ann\n bob \n")).tolist() == ["ann", "bob"]
    for content, sentence in (("\n", "there are no ids in it"), (b"\xff", "this is not text in UTF-8")):
        with pytest.raises(DataFileError, match=sentence):
            read_ids(write(content))


def test_integers_match_the_strings_that_spell_them():
    known = np.array(["7", "007", "x"], dtype=object)
    assert find_ids(known, np.array([[7, 8], [0, 7]])).tolist() == [[0, -1], [-1, 0]]
    assert find_ids(np.array([7, 8]), np.array(["8", "x"], dtype=object)).tolist() == [1, -1]


# Joins

POINTS = [str(k) for k in range(12)]


def table(ids):
    return Features(np.zeros((len(ids), 1), dtype=np.float32), as_ids(ids))


@given(
    rows=st.lists(st.sampled_from(POINTS), unique=True, min_size=1),
    pairs=st.lists(
        st.tuples(st.sampled_from(POINTS), st.sampled_from(POINTS)).filter(lambda p: p[0] != p[1]), min_size=1
    ),
    word=st.booleans(),
    weighted=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:.* edges? left out")
def test_edges_between_rows_stay_and_no_others(rows, pairs, word, weighted):
    rows = [*rows, "word"] if word else rows  # makes strings of all rows, where the graph has integers
    distinct = sorted({tuple(sorted(map(int, pair))) for pair in pairs})
    weights = [1.0 + i + 100.0 * j for i, j in distinct] if weighted else None
    graph = CorrelationGraph.from_edges(distinct, conductances=weights)
    expected = {pair for pair in distinct if str(pair[0]) in rows and str(pair[1]) in rows}
    if not expected:
        with pytest.raises(ValueError, match="none of the graph's"):
            join(table(rows), graph)
        return
    joined = join(table(rows), graph)
    found = {tuple(sorted(int(end) for end in pair)): k for k, pair in enumerate(joined.id_pairs.tolist())}
    assert set(found) == expected
    if weighted:
        assert all(joined.conductances[k] == 1.0 + i + 100.0 * j for (i, j), k in found.items())
    assert [str(value) for value in joined.ids.tolist()] == rows


def test_ids_that_do_not_match_are_named_and_counted():
    graph = CorrelationGraph.from_edges([("ann", "bob"), ("ann", "cem"), ("cem", "zoe")])
    features = table(["cem", "ann", "dee"])
    with pytest.warns(UserWarning, match=r"2 ids in the graph but not in the features \(bob, zoe\); 2 edges left out"):
        joined = join(features, graph)
    assert (joined.ids.tolist(), joined.id_pairs.tolist()) == (["cem", "ann", "dee"], [["cem", "ann"]])
    kept = join(features, graph, keep_bare=True)
    assert kept.ids.tolist() == ["cem", "ann", "dee", "bob", "zoe"]
    assert {frozenset(pair) for pair in kept.id_pairs.tolist()} == {frozenset(p) for p in graph.id_pairs.tolist()}
    many = CorrelationGraph.from_edges([(k, k + 1) for k in range(100)])
    with pytest.warns(UserWarning, match=r"99 ids in the graph but not in the features \(0, 1, 2, 3, 4, \.\.\.\)"):
        join(table(["99", "100"]), many)
    with pytest.raises(
        ValueError, match=r"none of the graph's edges \(ids 0, 1, 2, 3, 4, \.\.\.\) has both ends among"
    ):
        join(table(["x"]), many)


def test_rows_without_ids_are_counted():
    with pytest.warns(UserWarning, match="1 edge left out"):
        joined = join(Features(np.zeros((3, 1))), CorrelationGraph.from_edges([(2, 0), (2, 7)]))
    assert (joined.edges.tolist(), joined.n_vertices) == ([[0, 2]], 3)


def test_a_second_column_of_items_is_noticed_by_its_name(write):
    path, rows = write("paper,word\n1,2\n2,3\n3,1\n"), np.arange(1, 4)
    with pytest.raises(DataFileError, match="its second column is named 'word', so this is a table of features"):
        read_graph(path, rows=rows)
    assert read_graph(path).n_edges == 3  # without rows nobody knows what it is a graph of
    assert read_graph(write("word,word2\n1,2\n2,3\n"), rows=rows).n_edges == 2


# Groups


def test_groups_are_read_from_a_long_table(write):
    path = write("person,household\nann,h1\nbob,h1\ncem,h2\nann,h2\n")
    assert read_groups(path) == {"h1": ["ann", "bob"], "h2": ["cem", "ann"]}
    assert read_groups(path, columns=("household", "person")) == {"ann": ["h1", "h2"], "bob": ["h1"], "cem": ["h2"]}


@pytest.mark.parametrize(("header", "word"), [("person,household\n", "household"), ("", "group")])
def test_groups_that_are_numbered_as_points_are_get_names(write, caplog, header, word):
    path = write(header + "10,1\n11,1\n1,2\n")
    with caplog.at_level("INFO", "corrvae"):
        assert read_groups(path) == {f"{word} 1": [10, 11], f"{word} 2": [1]}
    assert "groups have ids that points have too" in caplog.text
    apart = write(header + "10,100\n11,100\n")
    assert read_groups(apart) == {100: [10, 11]}
    assert read_groups(apart, rows=np.array([100, 10])) == {f"{word} 100": [10, 11]}


def test_members_are_spelled_as_the_points_are(write):
    path = write("id,group\n1,a\n2,a\n")
    assert read_groups(path, rows=np.array(["1", "2", "x"], object)) == {"a": ["1", "2"]}
    assert read_groups(path, rows=np.array([1, 7])) == {"a": [1, 2]}


def test_groups_are_joined_with_rows_and_stay_marked():
    graph = CorrelationGraph.from_groups({"h": [3, 1], "i": [2]}, edges=[(3, 2)])
    features = Features(np.zeros((3, 1)), np.array(["1", "2", "3"], object))
    joined = join(features, graph, keep_bare=True)
    assert joined.ids.tolist() == ["1", "2", "3", "h", "i"]
    assert joined.is_group.tolist() == [False] * 3 + [True] * 2
    assert set(joined.neighbors("h").tolist()) == {"1", "3"}


def test_integers_match_strings_among_ids_of_both_kinds():
    known = np.array([1, 2, "h"], dtype=object)
    assert find_ids(known, np.array(["2", "h", "3"], dtype=object)).tolist() == [1, 2, -1]
    assert find_ids(np.array(["2", "h"], dtype=object), known).tolist() == [-1, 0, 1]
