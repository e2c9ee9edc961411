import copy
import csv
import io
import json

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from corrvae.cli import app
from support.runs import make_files, make_frame, trained, write_rows
from support.shards import sharded


def ask(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def graph(tmp_path):
    return write_rows(
        tmp_path / "g.csv", [("source", "target"), ("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("c", "d")]
    )


def test_weights_are_a_table_of_edges(graph):
    result = ask("weights", graph)
    assert result.exit_code == 0
    found = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["weight"] for row in found] == ["0.666666667"] * 3 + ["1"]
    assert result.stderr.splitlines()[-1].startswith("exact: ")
    assert "dropped 1 repeated edge" in result.stderr
    assert ask("weights", graph, "--quiet").stderr == ""


def test_weights_go_to_a_file_or_a_document(graph, tmp_path):
    assert ask("weights", graph, "--out", tmp_path / "w.csv").stdout == ""
    assert (tmp_path / "w.csv").read_text().startswith("source,target,weight\na,b,0.666666667\n")
    document = json.loads(ask("weights", graph, "--json").stdout)
    assert (document["method"], len(document["rows"])) == ("exact", 4)


def test_weights_refuse_in_one_sentence(graph, tmp_path):
    for arguments in (["weights", tmp_path / "none.csv"], ["weights", graph, "--method", "quick"]):
        result = ask(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert len(result.stderr.splitlines()) == 1


def test_info_tells_people_and_programs(tmp_path):
    files = make_files(tmp_path)
    told = ask("info", files.run).stdout
    assert "  name: CVAE_ind\n" in told
    assert "  points: 36\n" in told
    assert "  stopped: finished\n" in told
    facts = json.loads(ask("info", files.run, "--json").stdout)
    assert facts["data"]["links"] == 36
    assert facts["versions"]["corrvae"]


def test_info_compares_shards_with_their_checksums_if_asked(tmp_path):
    model = copy.copy(trained("pairwise"))
    model.features_ = sharded(tmp_path, sparse.csr_array(make_frame().to_numpy(np.float32)))
    model.save(tmp_path / "run")
    assert ask("info", tmp_path / "run", "--check").exit_code == 0
    place = tmp_path / "run" / "features" / "shards" / "000000.values.npy"
    data = bytearray(place.read_bytes())
    data[-3] ^= 1
    place.write_bytes(data)
    assert ask("info", tmp_path / "run").exit_code == 0
    result = ask("info", tmp_path / "run", "--check")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "000000.values.npy: damaged: its contents do not match its checksum" in result.stderr
