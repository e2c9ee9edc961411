import numpy as np
import pytest

from corrvae.cli.inputs import check_unchanged, read_inputs, settle_likelihood
from corrvae.cli.settings import resolve
from corrvae.errors import DataFileError
from corrvae.reading import Features


def inputs(folder, features, graph=None, **options):
    """Write the two files and read them; gives what was said too."""
    (folder / "features.csv").write_text(features)
    options["features"] = str(folder / "features.csv")
    if graph is not None:
        (folder / "edges.csv").write_text(graph)
        options["graph"] = str(folder / "edges.csv")
    said = []
    return read_inputs(resolve(options, {}), said.append), said


FEATURES = "id,a,b,c,d\nann,1,2,3,4\nbob,5,6,7,8\ncem,1,1,1,1\n"


def test_ids_of_one_file_only_are_counted_and_named(tmp_path):
    read, said = inputs(tmp_path, FEATURES, "ann,bob\nbob,dee\nann,eve\n")
    assert read.graph.id_pairs.tolist() == [["ann", "bob"]]
    assert read.graph.n_vertices == 3
    assert said[0].endswith("features.csv: 3 rows of 4 features")
    assert said[2:] == [
        "2 ids of the graph without features left out, with 2 edges: dee, eve",
        "1 id of the features not in the graph, kept as points without edges: cem",
    ]
    assert (read.found["only_in_features"], read.found["only_in_graph"], read.found["edges"]) == (1, 2, 1)


def test_ids_of_one_file_only_are_refused_if_asked_to(tmp_path):
    with pytest.raises(DataFileError) as caught:
        inputs(tmp_path, FEATURES, "ann,bob\nbob,dee\n", missing="error")
    sentence = "there are 1 id only in the graph (dee) and 1 id only in the features (cem); --missing drop goes on"
    assert caught.value.problem == sentence
    read, said = inputs(tmp_path, FEATURES, "ann,bob\nbob,cem\n", missing="error")
    assert (read.graph.n_edges, len(said)) == (2, 2)


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ("ann,bob\nbob,cem\ncem,dee\n", "is 1 id only in the graph (dee)"),
        ("ann,bob\nbob,cem\ncem,dee\ndee,eve\n", "are 2 ids only in the graph (dee, eve)"),
        ("ann,bob\n", "is 1 id only in the features (cem)"),
        ("ann,dee\nann,eve\n", "are 2 ids only in the graph (dee, eve) and 2 ids only in the features (bob, cem)"),
        ("he,she\nann,bob\nbob,cem\n", "are 2 ids only in the graph (he, she, perhaps the header of the graph file)"),
    ],
)
def test_what_is_in_one_file_only_is_said_in_its_number(graph, found, tmp_path):
    with pytest.raises(DataFileError) as caught:
        inputs(tmp_path, FEATURES, graph, missing="error")
    assert caught.value.problem == f"there {found}; --missing drop goes on"


def test_a_header_taken_for_an_edge_is_suspected(tmp_path):
    _, said = inputs(tmp_path, FEATURES, "he,she\nann,bob\nbob,cem\n")
    left_out = "2 ids of the graph without features left out, with 1 edge: he, she"
    assert said[2:] == [f"{left_out}, perhaps the header of the graph file"]
    _, said = inputs(tmp_path, FEATURES, "ann,bob\nbob,cem\nhe,she\n")
    assert said[2:] == [left_out]
    read, said = inputs(tmp_path, FEATURES, "Person,Friend\nann,bob\nbob,cem\n")
    assert (read.graph.n_edges, len(said)) == (2, 2)


@pytest.mark.parametrize("header", ["person,friend\n", "source,target,weight\n"])
def test_a_graph_of_a_header_only_is_refused(header, tmp_path):
    with pytest.raises(DataFileError) as caught:
        inputs(tmp_path, FEATURES, header)
    assert caught.value.problem == "there are no edges in it; leave the graph out for a plain VAE"


def test_files_without_an_id_in_common_are_refused(tmp_path):
    with pytest.raises(DataFileError, match=r"none of its ids \(1, 2\) is an id of the features \(ann, bob, cem\)"):
        inputs(tmp_path, FEATURES, "1,2\n")


def test_a_graph_of_which_no_edge_is_left_is_refused(tmp_path):
    with pytest.raises(DataFileError, match=r"none of its 2 edges has both ends among the features.*swapped"):
        inputs(tmp_path, FEATURES, "ann,1\nbob,2\n", missing="drop")


@pytest.mark.parametrize(("ids", "edges"), [(("007", "8", "9"), "007,8\n8,9\n"), (("1", "2", "x"), "1,2\n")])
def test_numbers_and_strings_that_spell_them_match(ids, edges, tmp_path):
    rows = "".join(f"{value},1,2,3,4\n" for value in ids)
    read, _ = inputs(tmp_path, f"id,a,b,c,d\n{rows}", edges)
    assert read.graph.ids.tolist() == list(ids)
    assert read.found["only_in_graph"] == 0
    assert read.graph.n_edges == edges.count("\n")


def test_columns_of_the_graph_may_be_named(tmp_path):
    edges = "w,from,to\n2,ann,bob\n3,bob,cem\n"
    read, _ = inputs(tmp_path, FEATURES, edges, graph_columns=["from", "to"], conductance="w")
    assert read.graph.conductances.tolist() == [2, 3]


def test_empty_cells_are_refused_unless_masked(tmp_path):
    holes = FEATURES.replace("5", "")
    with pytest.raises(DataFileError, match="the row of bob has nothing in column 'a'; fill it, or leave"):
        inputs(tmp_path, holes)
    read, _ = inputs(tmp_path, holes, empty_cells="mask")
    assert np.isnan(read.features.matrix[1, 0])


def test_a_change_of_either_file_is_noticed(tmp_path):
    settings = {"features": "f.csv", "graph": "g.csv"}
    before = inputs(tmp_path, FEATURES, "ann,bob\nbob,cem\n")[0].found
    check_unchanged(settings, before, inputs(tmp_path, FEATURES, "cem,bob\nbob,ann\n")[0].found)
    for features in (FEATURES.replace("7", "9"), FEATURES.replace("cem", "ce"), FEATURES.replace("a,b", "e,b")):
        with pytest.raises(DataFileError, match=r"f\.csv: has changed since the run began, so the run cannot go on"):
            check_unchanged(settings, before, inputs(tmp_path, features, "ann,bob\nbob,cem\n")[0].found)
    with pytest.raises(DataFileError, match=r"g\.csv: has changed since the run began"):
        check_unchanged(settings, before, inputs(tmp_path, FEATURES, "ann,bob\nann,cem\n")[0].found)


COUNTS = Features(np.array([[0, 3], [5, 0]], dtype=np.float32), None, None)
REALS = Features(np.array([[0.5, -300], [5, 800]], dtype=np.float32), None, None)


def test_a_likelihood_that_cannot_be_is_refused():
    with pytest.raises(DataFileError, match=r"x: .*row 0, column 1 holds -300, but the Poisson likelihood needs"):
        settle(REALS, likelihood="poisson")


def settle(features, **options):
    said = []
    settled = settle_likelihood(resolve({"features": "x", **options}, {}), features, said.append)
    return settled["likelihood"], settled["normalize"], said


def test_what_is_left_open_is_chosen_and_told():
    likelihood, normalize, said = settle(COUNTS)
    assert (likelihood, normalize) == ("negative_binomial", "log1p")
    told = "likelihood negative_binomial, because all features are whole numbers from 0 up, as counts are"
    assert said == [f"{told} (--likelihood chooses another)"]
    assert settle(COUNTS, likelihood="multinomial") == ("multinomial", "l2", [])
    assert settle(COUNTS, normalize=["auto", "raw"])[1] == ["log1p", "raw"]
    assert settle(COUNTS, likelihood="gaussian", normalize="binary") == ("gaussian", "binary", [])
    assert settle(REALS)[:2] == ("gaussian", "raw")
    assert settle(REALS)[2][1].startswith("column 1 (from 0) has a spread of 550; ")


def test_a_wide_table_with_a_mistake_is_not_taken_for_a_long_one(tmp_path):
    people = "person,height,weight,age\nann,1,2,3\nbob,4,5,6\nann,7,8,9\n"
    with pytest.raises(DataFileError, match=r"--layout wide .*--layout long"):
        inputs(tmp_path, people)
    with pytest.raises(DataFileError, match="line 4 has the id 'ann', which line 2 has too"):
        inputs(tmp_path, people, layout="wide")
    read, said = inputs(tmp_path, people, layout="long")
    assert read.features.names == ("1", "4", "7")
    assert said[0].endswith("features.csv: read as a long table: id=person, item=height, value=weight; not read: age")
    assert inputs(tmp_path, people.replace("height", "item"))[1][0] == said[0].replace("height", "item")
