import gzip
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph
from corrvae.graphs.files import text as module
from corrvae.graphs.files.reading import FileLayout
from corrvae.graphs.files.sniff import sniff
from support.files import NUMBERS, WORDS, fails, writer
from support.graphs import graphs


@pytest.fixture
def write(tmp_path):
    return writer(tmp_path)


@pytest.mark.parametrize("between", [",", "\t", ";", "|", " ", "   ", " \t ", ", "])
@pytest.mark.parametrize("around", ["", " ", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last_end", [True, False])
def test_delimiters_blanks_and_line_ends(write, between, around, end, last_end):
    for graph in (NUMBERS, WORDS):
        lines = [f"{around}{first}{between}{second}{around}" for first, second in graph.id_pairs.tolist()]
        text = end.join(lines) + (end if last_end else "")
        if "\t" in around and "\t" not in between and between.strip():
            text = text.replace("\t", "  ")
        for content in (text, gzip.compress(text.encode())):
            assert CorrelationGraph.from_file(write(content)) == graph


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n# from to\n1 2\n2 30\n-4 1\n",
        "% a comment\n%\n\n1 2\n\n   \n2 30\n-4 1\n\n\n",
        "#a comment\n1 2\n#7 8\n2 30\n  % 9 9\n-4 1\n#the end",
        '%7,8\n1,2\n#7,8\n# "quoted\n2,30\n-4,1\n',
        "from,to\n#7,8\n1,2\n2,30\n-4,1\n# 7, 8\n",
        "\ufeff#7,8\n1,2\n2,30\n-4,1\n",
        "\ufeff1 2\n2 30\n-4 1\n",
        "\ufefffrom,to\n1,2\n2,30\n-4,1\n",
        "x,y\n1,2\n2,30\n-4,1\n",
        "source\ttarget\n1\t2\n2\t30\n-4\t1\n",
        "1,2,0.5,x\n2,30,7,y\n-4,1,0,\n",
        '"1","2"\n"2","30"\n"-4","1"\n',
        "1,2,\n2,30,\n-4,1,\n",
        "1,2\n  \n2,30\n-4,1\n",
    ],
)
def test_comments_blank_lines_headers_quotes_and_further_columns(write, text):
    assert CorrelationGraph.from_file(write(text)) == NUMBERS


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
    assert CorrelationGraph.from_file(write(text), header=header) == WORDS


def test_a_first_line_of_ids_is_not_taken_for_a_header(write):
    graph = CorrelationGraph.from_file(write("u,v\nv,w\n"))
    assert graph.ids.tolist() == ["u", "v", "w"]
    graph = CorrelationGraph.from_file(write("from,to\nto,away\n"))
    assert graph.ids.tolist() == ["away", "from", "to"]


def test_quotes_make_an_id_of_what_would_be_a_comment(write):
    for ids, text in ((["#a", "#b", "c"], '"#a",#b\nc,#b\n'), (["#a", "1"], '"#a",1\n')):
        assert CorrelationGraph.from_file(write(text)).ids.tolist() == ids


def test_columns_by_name_and_by_position(write):
    path = write("kind,a,b,w\nx,1,2,0.5\ny,2,30,1.5\nz,-4,1,2.5\n")
    by_name = CorrelationGraph.from_file(path, columns=("a", "b"), conductance="w")
    assert by_name == CorrelationGraph.from_edges([(1, 2), (2, 30), (-4, 1)], conductances=[0.5, 1.5, 2.5])
    assert CorrelationGraph.from_file(path, columns=(1, 2), conductance=3) == by_name
    assert CorrelationGraph.from_file(path, columns=["b", "a"]) == NUMBERS
    assert CorrelationGraph.from_file(path, columns=("kind", "a"), header=True).ids.tolist() == sorted(
        ["x", "y", "z", "1", "2", "-4"]
    )
    assert CorrelationGraph.from_file(write("1 2 5e-1\n2 30 1.5\n-4 1 2.5\n"), conductance=2) == by_name


def test_ids_are_integers_when_all_are(write):
    assert CorrelationGraph.from_file(write("1,2\n2,x\n")).ids.tolist() == ["1", "2", "x"]
    assert CorrelationGraph.from_file(write("007,8\n")).ids.tolist() == [7, 8]
    assert CorrelationGraph.from_file(write("007,8\n"), id_kind="string").ids.tolist() == ["007", "8"]
    assert CorrelationGraph.from_file(write("1,99999999999999999999\n")).ids.tolist() == ["1", "99999999999999999999"]
    assert CorrelationGraph.from_file(write("NA,null\nnan,\u00e9t\u00e9\n")).ids.tolist() == [
        "NA",
        "nan",
        "null",
        "\u00e9t\u00e9",
    ]


def test_quoted_ids_hold_the_delimiter(write):
    graph = CorrelationGraph.from_file(write('"Smith, Ann","Say ""hi"""\n"Smith, Ann",Bob\n'))
    assert graph.ids.tolist() == ["Bob", 'Say "hi"', "Smith, Ann"]
    graph = CorrelationGraph.from_file(write("Smith, Ann\tJones, Bob\n"))
    assert graph.ids.tolist() == ["Jones, Bob", "Smith, Ann"]


def test_the_delimiter_can_be_said(write):
    assert CorrelationGraph.from_file(write("a:b\nb:c\n"), delimiter=":").ids.tolist() == ["a", "b", "c"]
    assert CorrelationGraph.from_file(write("a,x b,x\nc,x b,x\n"), delimiter=" ").ids.tolist() == ["a,x", "b,x", "c,x"]


@given(graph=graphs(max_vertices=7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_written_is_read(tmp_path, graph):
    path = tmp_path / "edges.csv"
    values = np.ones(graph.n_edges) if graph.conductances is None else graph.conductances
    rows = [f"{i},{j},{value!r}" for (i, j), value in zip(graph.edges.tolist(), values.tolist(), strict=True)]
    path.write_text("\n".join(["first,second,conductance", *rows]))
    read = CorrelationGraph.from_file(
        path, conductance=None if graph.conductances is None else "conductance", vertices=graph.ids, header=True
    )
    assert read == graph


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("text", "kwargs", "sentence"),
    [
        ("1,2\n2,3\n3\n4,5\n", {}, "line 3 has 1 field where line 1 has 2 fields"),
        ("1 2\n2 3\n\n3 4 5\n", {}, "line 4 has 3 fields where line 1 has 2 fields"),
        ("# c\nfrom,to\n1,2,3\n", {}, "line 3 has 3 fields where line 2 has 2 fields"),
        ("ann\tbob\nbob\n", {}, "line 2 has 1 field where line 1 has 2 fields"),
        ("word\nword\n", {}, "line 1 has 1 field where two ids are expected, parted by blanks"),
        ("1 2\n", {"delimiter": ","}, "line 1 has 1 field where two ids are expected, parted by ','"),
        ("1,2\n2,\n", {}, "line 2 has an empty id"),
        ("ann,bob\n,cem\n", {}, "line 2 has an empty id"),
        ("1,2\n2,x\n", {"id_kind": "integer"}, "line 2 has id 'x', which is not an integer of 64 bits"),
        ("1,2\n2,2.5\n", {"id_kind": "integer"}, "line 2 has id '2.5', which is not an integer of 64 bits"),
        ("a,b,w\n1,2,1\n2,3,much\n", {"conductance": "w"}, "line 3 has conductance 'much', which is not a number"),
        (
            "a;b;1,5\nb;c;2,5\n",
            {"conductance": 2},
            "line 1 has conductance '1,5', which is not a number; decimals are parted by a point",
        ),
        ("1,2\n#7,8\n2,3\n# x\n3,4,5\n", {}, "line 5 has 3 fields where line 1 has 2 fields"),
        (
            "1 2 1\n# x\n\n#y\n2 3 0\n",
            {"conductance": 2},
            "line 5: (2, 3) has conductance 0.0; it must be finite and positive",
        ),
        (
            ",source,target\n0,ann,bob\n1,bob,cem\n",
            {},
            'line 1 has no name for the first column; pass columns=("source", "target") to say which columns hold ids',
        ),
        (
            "#c\nUnnamed: 0,a,b,w\n0,5,6,1.5\n",
            {"conductance": "w"},
            'line 2 has no name for the first column; pass columns=("a", "b") to say which columns hold ids',
        ),
        (
            ",x\n0,1\n",
            {},
            "line 1 has no name for the first column; pass columns= to say which columns hold ids",
        ),
        ("a,b,w\n1,2,1\n2,3,\n", {"conductance": "w"}, "line 3 has conductance '', which is not a number"),
        (
            "\n1 2 1\n\n2 3 0\n",
            {"conductance": 2},
            "line 4: (2, 3) has conductance 0.0; it must be finite and positive",
        ),
        (
            "a,b,w\n1,2,1\n2,3,nan\n",
            {"conductance": "w"},
            "line 3: (2, 3) has conductance nan; it must be finite and positive",
        ),
        (
            "1 2 1\n2 3 1\n2 1 5\n",
            {"conductance": 2},
            "line 3: (1, 2) has conductance 1.0 in one direction and 5.0 in the other; the two must agree",
        ),
        ("# c\n\nann bob\n\nbob zed\n", {"vertices": ["ann", "bob"]}, "line 5: id 'zed' is not among the 2 vertices"),
        ("", {}, "the file is empty"),
        ("\n  \n", {}, "the file is empty: it holds no line but blank ones and comments"),
        ("# only\n% comments\n", {}, "the file is empty: it holds no line but blank ones and comments"),
        ("a,b\n1,2\n", {"columns": ("a", "z")}, "there is no column named 'z'; there are 'a', 'b'"),
        ("a,b\n1,2\n", {"conductance": "z"}, "there is no column named 'z'; there are 'a', 'b'"),
        ("a,a\n1,2\n", {"columns": ("a", "b")}, "there is more than one column named 'a'; there are 'a', 'a'"),
        ("1,2\n", {"columns": ("a", "b"), "header": False}, "column 'a' is asked for by name, but header=False"),
        ("1,2\n", {"columns": (0, 2)}, "there is no column at position 2; positions are 0 to 1"),
        ("1,2\n", {"conductance": -1}, "there is no column at position -1; positions are 0 to 1"),
        ("a,b\n1,2\n", {"columns": ("a", 0)}, "the same column is asked for twice, in ['a', 0]"),
        ("1,2\r3,4\r", {}, "line 1 holds carriage returns; lines must end in newlines"),
    ],
)
def test_wrong_text_is_refused_with_its_line(write, pack, text, kwargs, sentence):
    fails(write(pack(text.encode())), sentence, **kwargs)


def test_a_wrong_line_far_down_is_found(write):
    lines = [f"{k} {k + 1}" for k in range(300_000)]
    lines[250_000] += " 7"
    fails(write("\n".join(lines)), "line 250001 has 3 fields where line 1 has 2 fields")


def test_what_is_not_text_is_refused(write):
    fails(write(b"1,2\n\xff,3\n"), "line 2 is not UTF-8 text: byte 0xff, invalid start byte")
    fails(write(b"1,2\n3\x00,4\n"), "line 2 is not text: it holds a zero byte")
    late = b"".join(b"a%d,b\n" % k for k in range(100)) + b"\xff,3\n"
    with pytest.raises(DataFileError, match="is not UTF-8 text"):
        CorrelationGraph.from_file(write(late))


def test_a_file_with_a_header_alone_has_no_edges(write):
    assert CorrelationGraph.from_file(write("source,target\n")) == CorrelationGraph.from_edges([])
    assert CorrelationGraph.from_file(write("a,b\n"), header=True, vertices=[3, 4]).n_vertices == 2


@pytest.mark.parametrize("index", [[0, 1, 2], ["x", "y", "z"]])
@pytest.mark.parametrize("columns", [("source", "target"), (1, 2)])
def test_a_data_frame_with_its_index_is_read_by_its_columns(tmp_path, index, columns):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "edges.csv"
    pandas.DataFrame(WORDS.id_pairs, columns=["source", "target"], index=index).to_csv(path)
    assert CorrelationGraph.from_file(path, columns=columns) == WORDS
    fails(
        path,
        'line 1 has no name for the first column; pass columns=("source", "target") to say which columns hold ids',
    )


def test_a_comment_that_straddles_blocks_is_no_edge(write, monkeypatch):
    monkeypatch.setattr("corrvae.graphs.files.lines.READ_BYTES", 7)
    for text in ("1 2\n# 1 9 9 9 9\n2 30\n-4 1\n", "1,2\n# 1,9 9 9 9\n2,30\n-4,1\n"):
        assert CorrelationGraph.from_file(write(text)) == NUMBERS


def test_a_line_without_end_is_refused_wherever_it_is(tmp_path):
    write = writer(tmp_path)
    for parted in (" ", ","):
        head = "".join(f"1{parted}{k}\n" for k in range(2, 70))
        with pytest.raises(DataFileError, match=r"longer than 8,388,608 bytes|cannot be read as delimited text"):
            CorrelationGraph.from_file(write(f"{head}3{parted}{'4' * 2**24}"))


def test_ids_of_thousands_of_digits_are_strings(tmp_path):
    graph = CorrelationGraph.from_file(writer(tmp_path)(f"1 {'7' * 5000}\n"))
    assert graph.ids.tolist() == ["1", "7" * 5000]


@pytest.mark.parametrize("lines", ["3 01\n1 3\n-7 1\n", "b a\n3 b\na 3\n"], ids=["integers", "strings"])
@pytest.mark.parametrize("kind", [None, "string"])
def test_the_careful_pass_gives_what_the_fast_one_gives(write, lines, kind):
    path, layout = write(lines), FileLayout(id_kind=kind)
    form = sniff(path, layout)
    (fast, _), (careful, _) = (read(path, form, [0, 1], layout) for read in (module._read_fast, module._read_carefully))
    assert careful.codes.tolist() == fast.codes.tolist()
    assert careful.distinct.tolist() == fast.distinct.tolist()


def test_finding_a_wrong_line_takes_little_memory(write):
    path = write("long_name_a,long_name_b\n" * 8_000 + "wrong\n")
    form = sniff(path, FileLayout())
    tracemalloc.start()
    try:
        with pytest.raises(DataFileError, match="line 8001 has 1 field"):
            module._read_carefully(path, form, [0, 1], FileLayout())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * path.stat().st_size
