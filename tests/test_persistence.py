import json
import os
import tracemalloc
from errno import ENOSPC
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError

from corrvae import persistence
from corrvae.errors import FolderError
from corrvae.parquet import tables
from corrvae.persistence import read_folder, write_folder

TENSORS = {"encoder.weight": torch.arange(6.0).reshape(2, 3).T, "one": torch.tensor(2, dtype=torch.int64)}
ARRAYS = {"edges": np.array([[0, 1], [1, 2]])[:, ::-1], "none": np.empty((0, 2)), "flag": np.array(True)}
TABLE = pa.table({"id": ["a", "b", "c"], "mean": pa.array([[1.0], [2.0], [3.0]], pa.list_(pa.float32(), 1))})
DOCUMENT = {"parameters": {"tau": 0.99, "hidden": [300, None]}, "name": "é", "large": 2**127}


@pytest.fixture
def folder(tmp_path) -> Path:
    write_folder(tmp_path / "run", kind="k", document=DOCUMENT, tensors=TENSORS, arrays=ARRAYS, tables={"v": TABLE})
    return tmp_path / "run"


@pytest.mark.parametrize("part", ["tensors", "arrays"])
def test_a_full_disk_is_told_as_the_system_tells_it(part, tmp_path, monkeypatch):
    def full(*_):
        raise SafetensorError(f"Error while serializing: I/O error: No space left on device (os error {ENOSPC})")

    monkeypatch.setattr(persistence, f"_save_{part}", full)
    with pytest.raises(FolderError, match=r"run: cannot be written \(No space left on device\)") as caught:
        write_folder(tmp_path / "run", kind="k", document={}, tensors=TENSORS, arrays=ARRAYS)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == ENOSPC
    assert list(tmp_path.iterdir()) == []


def rewrite(folder: Path, change) -> None:
    """Change config.json, and its checksum with it."""
    document = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    del document["checksum"]
    change(document)
    document["checksum"] = persistence._document_checksum(document)
    (folder / "config.json").write_text(json.dumps(document), encoding="utf-8")


def test_what_is_written_is_read(folder):
    found = read_folder(folder, kind="k")
    assert found.document == DOCUMENT
    assert found.version == 1
    assert found.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        torch.testing.assert_close(found.tensors[name], tensor, rtol=0, atol=0)
    assert found.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found.arrays[name], array, strict=True)
    assert found.tables.keys() == {"v"}
    assert found.tables["v"].equals(TABLE)
    assert {place.name for place in folder.parent.iterdir()} == {"run"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text().filter(lambda name: name not in ("format", "files", "checksum")), JSON))
def test_documents_come_back_to_the_bit(tmp_path_factory, document):
    path = tmp_path_factory.mktemp("any") / "run"
    write_folder(path, kind="k", document=document)
    assert read_folder(path, kind="k").document == document


def test_tensors_that_share_memory(tmp_path):
    tied = torch.arange(4.0)
    write_folder(tmp_path / "run", kind="k", document={}, tensors={"a": tied, "b": tied, "part": tied[1:3]})
    found = read_folder(tmp_path / "run", kind="k").tensors
    assert found["a"].equal(tied)
    assert found["b"].equal(tied)
    assert found["part"].tolist() == [1.0, 2.0]


def test_files_are_readable_by_others(folder):
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["format"] == {"kind": "k", "version": 1}
    names = {place.name for place in folder.iterdir()}
    assert names == {"config.json", "model.safetensors", "arrays.safetensors", "v.parquet"}
    mask = os.umask(0)
    os.umask(mask)
    assert folder.stat().st_mode & 0o777 == 0o777 & ~mask


def test_a_folder_of_ours_is_replaced_whole(folder):
    write_folder(folder, kind="k", document={"again": True})
    found = read_folder(folder, kind="k")
    assert (found.document, found.tensors, found.arrays, found.tables) == ({"again": True}, {}, {}, {})
    assert [place.name for place in folder.iterdir()] == ["config.json"]
    assert [place.name for place in folder.parent.iterdir()] == ["run"]


def test_an_empty_folder_is_taken_and_a_link_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    write_folder(tmp_path / "link", kind="k", document={"n": 1})
    assert (tmp_path / "link").is_symlink()
    assert read_folder(tmp_path / "there", kind="k").document == {"n": 1}


def test_what_is_not_ours_is_left_alone(folder, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("x")
    (folder / "notes.txt").write_text("mine")
    for name, words in [("file", "file"), ("foreign", "other contents"), ("run", "notes.txt")]:
        with pytest.raises(FolderError, match=words):
            write_folder(tmp_path / name, kind="k", document={})
    with pytest.raises(FolderError, match="kind 'k'"):
        write_folder(folder, kind="other", document={})
    assert read_folder(folder, kind="k").document == DOCUMENT
    assert (tmp_path / "foreign" / "thesis.tex").read_text() == "x"


@pytest.mark.parametrize("moment", ["_save_tensors", "sync", "put_in_place"])
def test_a_write_that_fails_leaves_the_old_folder(folder, monkeypatch, moment):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(persistence, moment, fail)
    with pytest.raises(FolderError, match="No space left"):
        write_folder(folder, kind="k", document={"new": 1}, tensors=TENSORS)
    assert read_folder(folder, kind="k").document == DOCUMENT
    assert [place.name for place in folder.parent.iterdir()] == ["run"]


def test_a_crash_between_renames_is_explained(folder):
    folder.rename(folder.with_name(".run.0123abcd.old"))
    with pytest.raises(FolderError, match=r"interrupted.*\.run\.0123abcd\.old"):
        read_folder(folder, kind="k")


def test_missing_foreign_and_newer_folders(folder, tmp_path):
    with pytest.raises(FolderError, match="no such folder") as caught:
        read_folder(tmp_path / "nowhere", kind="k")
    assert caught.value.path == tmp_path / "nowhere"
    with pytest.raises(FolderError, match="a file"):
        read_folder(folder / "config.json", kind="k")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FolderError, match="corrvae did not write it"):
        read_folder(tmp_path / "empty", kind="k")
    with pytest.raises(FolderError, match="kind 'k', not 'm'"):
        read_folder(folder, kind="m")
    write_folder(folder, kind="k", document={}, version=3)
    assert read_folder(folder, kind="k", newest=3).version == 3
    with pytest.raises(FolderError, match=r"newer corrvae \(format 3; this one reads up to 2\)"):
        read_folder(folder, kind="k", newest=2)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "arrays.safetensors", "v.parquet"])
def test_damage_is_found(folder, name):
    place = folder / name
    whole = place.read_bytes()
    for damaged in (whole[:-3], whole + b"x", whole.replace(b"0", b"1", 1), b""):
        place.write_bytes(damaged)
        with pytest.raises(FolderError, match=r"damaged|truncated") as caught:
            read_folder(folder, kind="k")
        assert caught.value.path == place
    place.write_bytes(whole)
    assert read_folder(folder, kind="k").document == DOCUMENT
    place.unlink()
    with pytest.raises(FolderError, match=r"missing|no config\.json"):
        read_folder(folder, kind="k")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "v.parquet"])
def test_links_are_not_followed(folder, tmp_path, name):
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(FolderError, match="links are not followed"):
        read_folder(folder, kind="k")


def test_a_document_cannot_lead_out_of_the_folder(folder):
    rewrite(folder, lambda document: document["files"].update({"../x.parquet": {"bytes": 1, "sha256": ""}}))
    with pytest.raises(FolderError, match=r"'\.\./x\.parquet'"):
        read_folder(folder, kind="k")


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("files"),
        lambda document: document["files"]["v.parquet"].update(bytes=-1),
        lambda document: document["files"]["v.parquet"].update(bytes=True),
        lambda document: document["files"].update({"v.parquet": None}),
        lambda document: document["files"]["v.parquet"].pop("sha256"),
        lambda document: document.pop("format"),
        lambda document: document["format"].update(version="1"),
        lambda document: document["format"].update(version=0),
        lambda document: document["format"].update(kind=None),
    ],
)
def test_a_strange_document_is_refused(folder, change):
    rewrite(folder, change)
    with pytest.raises(FolderError, match=r"config\.json"):
        read_folder(folder, kind="k")


@pytest.mark.parametrize("text", ["[" * 100_000, "[1]", "NaN", '{"format": NaN}', "\xff", "1" * 5000])
def test_hostile_json_is_refused(folder, text):
    (folder / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(FolderError):
        read_folder(folder, kind="k")


def test_a_deep_document_is_refused(folder):
    deep = []
    for _ in range(100):
        deep = [deep]
    rewrite(folder, lambda document: document.update(deep=deep))
    with pytest.raises(FolderError, match="deep"):
        read_folder(folder, kind="k")


def test_a_large_document_is_refused_unread(folder, monkeypatch):
    monkeypatch.setattr(persistence, "MOST_DOCUMENT_BYTES", 10)
    with pytest.raises(FolderError, match="more than the 10 expected"):
        read_folder(folder, kind="k")


def test_a_large_document_is_not_written(tmp_path):
    """It would be refused when it is read."""
    with pytest.raises(FolderError, match=r"x: cannot be written: its config\.json would have [\d,]+ bytes"):
        write_folder(tmp_path / "x", kind="k", document={"text": "a" * persistence.MOST_DOCUMENT_BYTES})
    assert not list(tmp_path.iterdir())


def test_the_largest_document_is_read_within_limits(tmp_path):
    """Of the kind that takes the most: what it takes grows with its length, a sixteenth of which is tried."""
    tracemalloc.start()
    (tmp_path / "config.json").write_bytes(b"[" + b'{"":0},' * (persistence.MOST_DOCUMENT_BYTES // 16 // 7) + b"0]")
    with pytest.raises(FolderError, match="names no format"):
        read_folder(tmp_path, kind="k")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 16 * most < 2**30


def replace_file(folder: Path, name: str, data: bytes) -> None:
    import hashlib

    (folder / name).write_bytes(data)
    claim = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    rewrite(folder, lambda document: document["files"].update({name: claim}))


def test_a_tensor_cannot_claim_more_than_its_file_holds(folder):
    header = json.dumps({"w": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    for name in ("model.safetensors", "arrays.safetensors"):
        replace_file(folder, name, len(header).to_bytes(8, "little") + header + bytes(16))
        with pytest.raises(FolderError, match="not a safetensors file") as caught:
            read_folder(folder, kind="k")
        assert caught.value.path == folder / name
        if name == "model.safetensors":
            write_folder(folder, kind="k", document={}, arrays=ARRAYS)


def test_pickles_are_never_read(folder, tmp_path):
    import pickle

    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "exploded",)

    for name in ("model.safetensors", "arrays.safetensors", "v.parquet"):
        write_folder(folder, kind="k", document=DOCUMENT, tensors=TENSORS, arrays=ARRAYS, tables={"v": TABLE})
        replace_file(folder, name, pickle.dumps(Bomb()))
        with pytest.raises(FolderError, match="not a"):
            read_folder(folder, kind="k")
    assert not (tmp_path / "exploded").exists()


def test_a_table_cannot_claim_far_more_than_its_file_holds(folder, monkeypatch):
    monkeypatch.setattr(tables, "MOST_TIMES", 0)
    monkeypatch.setattr(tables, "ALWAYS_BYTES", 10)
    with pytest.raises(FolderError, match=r"v\.parquet: damaged.*it claims [\d,]+ bytes of values"):
        read_folder(folder, kind="k")


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(folder, monkeypatch):
    once, read = [], persistence._read_document

    def replace_after_reading(place):
        document = read(place)
        if not once:
            once.append(place)
            write_folder(folder, kind="k", document={"n": 2}, tensors={"other": torch.zeros(9)})
        return document

    monkeypatch.setattr(persistence, "_read_document", replace_after_reading)
    found = read_folder(folder, kind="k")
    assert found.document == {"n": 2}
    assert found.tensors["other"].shape == (9,)


def test_a_file_that_becomes_a_link_meanwhile_is_not_followed(folder, tmp_path, monkeypatch):
    class Regular:
        st_mode = 0o100644

    place = folder / "model.safetensors"
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    lstat = Path.lstat
    monkeypatch.setattr(Path, "lstat", lambda path: Regular if path == place else lstat(path))
    with pytest.raises(FolderError, match=r"model\.safetensors: cannot be read"):
        read_folder(folder, kind="k")


@pytest.mark.parametrize("document", [{"x": float("nan")}, {"x": float("inf")}, {"x": np.zeros(2)}, {"x": {1}}])
def test_documents_that_are_not_json_are_refused_before_writing(tmp_path, document):
    with pytest.raises(TypeError, match="JSON"):
        write_folder(tmp_path / "run", kind="k", document=document)
    assert not any(tmp_path.iterdir())


def test_names_are_checked_before_writing(tmp_path):
    with pytest.raises(ValueError, match="format"):
        write_folder(tmp_path / "run", kind="k", document={"format": 1})
    with pytest.raises(ValueError, match="table"):
        write_folder(tmp_path / "run", kind="k", document={}, tables={"../v": TABLE})
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="files have no modes there")
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_all_files_have_the_mode_that_the_user_wants(mask, tmp_path):
    before = os.umask(mask)
    try:
        tables = {"t": pa.table({"a": [1]})}
        tensors, arrays = {"w": torch.ones(2)}, {"a": np.ones(2)}
        write_folder(tmp_path / "run", kind="note", document={}, tensors=tensors, arrays=arrays, tables=tables)
    finally:
        os.umask(before)
    modes = {place.name: place.stat().st_mode & 0o777 for place in (tmp_path / "run").iterdir()}
    names = ("config.json", "model.safetensors", "arrays.safetensors", "t.parquet")
    assert modes == dict.fromkeys(names, 0o666 & ~mask)


def test_a_folder_that_goes_while_it_is_looked_at_is_looked_for_again(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()

    def look():
        if not folder.exists():
            return "gone"
        folder.rmdir()
        return [*folder.iterdir()]

    assert persistence._while_it_stays(folder, look) == "gone"
    folder.mkdir()
    with pytest.raises(FileNotFoundError):
        persistence._while_it_stays(folder, (folder / "never").stat)
