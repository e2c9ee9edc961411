import gzip
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph
from corrvae.graphs.canonical import DroppedEdgesWarning
from support.files import NUMBERS, fails, writer
from support.unchecked import unchecked


@pytest.fixture
def write(tmp_path):
    return writer(tmp_path)


@pytest.mark.parametrize("name", ["edges.csv", "edges.gz", "edges", "edges.parquet"])
def test_content_decides_and_not_the_name(write, name):
    assert CorrelationGraph.from_file(write("1\t2\n2\t30\n-4\t1\n", name)) == NUMBERS
    assert CorrelationGraph.from_file(write(gzip.compress(b"1,2\n2,30\n-4,1\n"), name)) == NUMBERS


def test_missing_files_folders_and_damaged_gzip(tmp_path, write):
    missing = tmp_path / "nothing.csv"
    fails(missing, "there is no such file")
    fails(tmp_path, "this is a folder, not a file")
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv: there is no such file"):
        CorrelationGraph.from_file(str(missing))
    packed = gzip.compress(b"".join(b"%d,%d\n" % (k, k + 1) for k in range(10_000)))
    for damaged in (packed[: len(packed) // 2], packed[:-1], packed[:200] + b"\0" * 50 + packed[250:]):
        with pytest.raises(DataFileError, match="the gzip data is damaged or ends early"):
            CorrelationGraph.from_file(write(damaged, "edges.gz"))


def test_layouts_that_cannot_be_are_refused(write):
    path = write("1,2\n")
    for kwargs in ({"columns": "ab"}, {"columns": (0, 0)}, {"id_kind": "float"}, {"delimiter": "::"}):
        with unchecked(), pytest.raises(ValueError, match=next(iter(kwargs))) as caught:
            CorrelationGraph.from_file(path, **kwargs)
        assert not isinstance(caught.value, DataFileError)


def test_vertices_direction_and_one_warning_naming_the_file(write):
    path = write("1 2\n2 1\n2 3\n3 3\n2 3\n")
    with pytest.warns(DroppedEdgesWarning) as caught:
        graph = CorrelationGraph.from_file(path, directed="mutual")
    assert graph.ids.tolist() == [1, 2]
    assert [str(warning.message) for warning in caught] == [
        f"{path}: dropped 1 repeated edge, 1 self-loop, 1 one-way edge and 1 vertex left without an edge;"
        " keep_isolated=True or vertices= keeps such vertices"
    ]
    with pytest.warns(DroppedEdgesWarning):
        kept = CorrelationGraph.from_file(path, directed="mutual", keep_isolated=True)
    assert kept.ids.tolist() == [1, 2, 3]
    with pytest.warns(DroppedEdgesWarning):
        ordered = CorrelationGraph.from_file(path, vertices=iter([3, 9, 2, 1]))
    assert ordered.id_pairs.tolist() == [[3, 2], [2, 1]]


@pytest.mark.parametrize("line", [b"1,2\n", b"ann bob\n"])
def test_text_that_unpacks_to_far_more_is_refused(write, line):
    path = write(gzip.compress(line * (2_000_000 // len(line))), "edges.gz")
    with pytest.raises(DataFileError, match=r"edges\.gz: unpacks to more than [\d,]+ bytes, 200 times its size"):
        CorrelationGraph.from_file(path)


def test_several_gzip_members_are_one_file(write):
    assert CorrelationGraph.from_file(write(gzip.compress(b"1,2\n2,30\n") + gzip.compress(b"-4,1\n"))) == NUMBERS


@pytest.fixture(scope="session")
def trust_data(tmp_path_factory):
    folder = os.environ.get("CORRVAE_DATA")
    if folder:
        if Path(folder, "trust_data.txt").exists():
            return Path(folder, "trust_data.txt")
        for name in ("epinions.zip", "trust_data.zip"):
            if Path(folder, name).exists():
                with zipfile.ZipFile(Path(folder, name)) as archive:
                    member = next(entry for entry in archive.namelist() if entry.endswith("trust_data.txt"))
                    return Path(archive.extract(member, tmp_path_factory.mktemp("epinions")))
    pytest.skip("the original Epinions files are not in the folder CORRVAE_DATA")


def test_epinions_reads_as_it_is(trust_data):
    with pytest.warns(DroppedEdgesWarning, match="dropped 181 self-loops, 275,070 one-way edges and 19,790 vertices"):
        graph = CorrelationGraph.from_file(trust_data, directed="mutual")
    assert (graph.n_vertices, graph.n_edges) == (29_498, 105_966)
    assert graph.ids.dtype == np.int64
    assert graph.degrees.min() >= 1


def test_a_small_file_like_epinions_reads_as_it_is(write):
    with pytest.warns(DroppedEdgesWarning, match="dropped 1 one-way edge and 1 vertex left"):
        graph = CorrelationGraph.from_file(write(" 22605 42915 1\n 42915 22605 1\n 22605 5052 1\n"), directed="mutual")
    assert graph.id_pairs.tolist() == [[22605, 42915]]
