import bz2

import numpy as np
import pytest

from corrvae.datasets import epinions
from corrvae.errors import DataFileError, MissingDataFileError
from support.published import archive, at_hand

# products 10 and 20 are rated three times, 30 once; user 5 has rated only 30
RATINGS = "1 10 4\n2 10 5\n3 10 1\n1 20 3\n4 20 2\n6 20 2\n5 30 5\n"
# mutual: 1-2, 3-4, 1-5; one way: 6 to 1; a loop; and mistrust between 2 and 3
TRUST = " 1 2 1\n 2 1 1\n 3 4 1\n 4 3 1\n 1 5 1\n 5 1 1\n 6 1 1\n 2 2 1\n 2 3 -1\n 3 2 -1\n"


def written(folder, form):
    if form == "zip":
        return archive(folder / "epinions.zip", {"ratings_data.txt": RATINGS, "trust_data.txt": TRUST})
    for name, content in (("ratings_data.txt", RATINGS), ("trust_data.txt", TRUST)):
        if form == "bz2":
            (folder / f"{name}.bz2").write_bytes(bz2.compress(content.encode()))
        else:
            (folder / name).write_text(content)
    return folder / "trust_data.txt" if form == "file" else folder


@pytest.mark.parametrize("form", ["zip", "folder", "bz2", "file"])
def test_every_form_is_read_alike(tmp_path, form):
    data = epinions(written(tmp_path, form), min_ratings=3)
    assert data.graph.ids.tolist() == [1, 2, 3, 4]
    assert data.graph.id_pairs.tolist() == [[1, 2], [3, 4]]
    assert data.products.tolist() == [10, 20]
    assert data.features.toarray().tolist() == [[1, 1], [1, 0], [1, 0], [0, 1]]
    assert data.features.dtype == np.float32


def test_the_name_is_looked_up_in_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    with pytest.raises(MissingDataFileError, match="corrvae data get epinions"):
        epinions()
    written(tmp_path, "zip")
    assert epinions(min_ratings=3).graph.n_edges == 2


def test_data_in_which_nothing_is_left_are_refused(tmp_path):
    with pytest.raises(DataFileError, match="no two users trust each other and have a product with 4 ratings"):
        epinions(written(tmp_path, "folder"), min_ratings=4)


def test_the_published_files():
    data = epinions(at_hand("epinions"))
    assert data.features.shape == (16_101, 679)
    assert data.graph.n_vertices == 16_101
    assert data.graph.n_edges == 76_315
    assert data.graph.degrees.min() >= 1
    assert np.diff(data.features.indptr).min() >= 1
    assert len(data.products) == 679
