import re

import numpy as np
import pytest

from corrvae.demo import run_demo, small_example, village
from corrvae.errors import CorrvaeError
from corrvae.graphs import enumerate_forests, spanning_weights
from support.resistance import pinv_weights


def test_the_small_example_has_the_papers_48_forests():
    assert len(enumerate_forests(small_example().graph)) == 48


def test_every_vertex_has_a_place():
    for example in (small_example(), village()):
        assert example.positions.shape == (example.graph.n_vertices, 2)
        assert np.allclose(spanning_weights(example.graph).weights, pinv_weights(example.graph))


def test_the_demo_prints_its_table_and_draws_its_picture(tmp_path, capsys):
    run_demo(tmp_path / "new" / "folder")
    printed = capsys.readouterr().out
    assert "48 maximal acyclic subgraphs" in printed
    assert "the same weights" in printed
    picture = tmp_path / "new" / "folder" / "spanning_weights.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_names_its_path(tmp_path):
    picture = tmp_path / "spanning_weights.png"
    picture.mkdir()
    with pytest.raises(CorrvaeError, match=re.escape(f"{picture}: cannot be written (Is a directory)")):
        run_demo(tmp_path)
