import hashlib

import numpy as np
import pytest

from corrvae.errors import DataFileError, MissingDataFileError
from corrvae.experiments.sources import data_files, fingerprint_all


def told(content):
    return f"{len(content)} bytes, {hashlib.sha256(content).hexdigest()}"


def test_an_archive_is_told_by_size_and_code(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    (tmp_path / "ml-1m.zip").write_bytes(b"one")
    assert data_files("ml-1m") == {"ml-1m.zip": told(b"one")}
    (tmp_path / "ml-1m.zip").write_bytes(b"another")
    assert data_files("ml-1m") == {"ml-1m.zip": told(b"another")}


def test_of_a_folder_only_the_files_that_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    (tmp_path / "epinions").mkdir()
    for name in ("ratings_data.txt.bz2", "trust_data.txt", "notes.txt"):
        (tmp_path / "epinions" / name).write_bytes(name.encode())
    expected = {name: told(name.encode()) for name in ("ratings_data.txt.bz2", "trust_data.txt")}
    assert data_files("epinions") == data_files(str(tmp_path / "epinions")) == expected


def test_drawn_data_have_no_files():
    assert data_files("tree") == data_files("small") == {}


def test_what_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    with pytest.raises(MissingDataFileError):
        data_files("ml-1m")
    with pytest.raises(DataFileError, match="cannot be read"):
        data_files(str(tmp_path / "ratings.csv"))


def test_every_part_counts_and_its_order():
    X, edges = np.eye(3), np.array([[0, 1], [1, 2]])
    codes = {
        fingerprint_all(X, edges),
        fingerprint_all(edges, X),
        fingerprint_all(2 * X, edges),
        fingerprint_all(X, edges[::-1]),
        fingerprint_all(X, edges.ravel()),
        fingerprint_all(X, edges + 2**40),
        fingerprint_all(X, edges[:1], edges[1:]),
    }
    assert len(codes) == 7
    assert fingerprint_all(X, edges.astype(np.int32)) == fingerprint_all(X, edges)
