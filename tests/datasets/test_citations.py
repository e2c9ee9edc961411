import numpy as np
import pytest

from corrvae.datasets import citeseer
from corrvae.errors import DataFileError

WORDS = "paper,word\nb,7\na,3\na,7\n"
LINKS = "source,target\na,b\nb,a\nb,b\nc,a\nx,a\n"
LABELS = "paper,label,part\na,0,train\nb,1,test\nc,0,rest\n"


def write(folder, **texts):
    for name, text in {"words": WORDS, "links": LINKS, "labels": LABELS, **texts}.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_papers_are_in_the_order_of_their_labels(tmp_path):
    found = citeseer(write(tmp_path))
    assert found.features.toarray().tolist() == [[1, 1], [0, 1], [0, 0]]
    assert found.graph.edges.tolist() == [[0, 1], [0, 2]]  # both ways once, no loop, no paper without a label
    assert found.labels.tolist() == [0, 1, 0]
    assert np.array_equal(found.parts, ["train", "test", "rest"])


def test_a_file_without_its_columns_is_named(tmp_path):
    with pytest.raises(DataFileError, match=r"words\.csv"):
        citeseer(write(tmp_path, words="a,b\n1,2\n"))
