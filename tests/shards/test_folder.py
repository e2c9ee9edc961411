import json
import shutil

import numpy as np
import pyarrow as pa
import pytest

from corrvae import persistence
from corrvae.errors import DataFileError, FolderError
from corrvae.parquet import save_table
from corrvae.reading import read_features
from corrvae.shards import open_shards, write_shards
from corrvae.shards.folder import is_shard_folder
from support.shards import counts, sharded, whole

IDS = np.array([f"u{k}" for k in range(60)], dtype=object)
NAMES = [f"i{k}" for k in range(25)]


@pytest.fixture
def folder(tmp_path):
    sharded(tmp_path, counts(), 25, ids=IDS, names=NAMES)
    return tmp_path / "shards"


def change(folder, key, value):
    document = json.loads((folder / "config.json").read_text())
    document.pop("checksum")
    document[key] = value
    document["checksum"] = persistence._document_checksum(document)
    (folder / "config.json").write_text(json.dumps(document))


def test_ids_and_names_come_back(folder, tmp_path):
    found = open_shards(folder)
    assert found.ids.tolist() == IDS.tolist()
    assert found.names == tuple(NAMES)
    np.testing.assert_array_equal(whole(found.matrix), counts().toarray())
    assert is_shard_folder(folder)
    assert not is_shard_folder(tmp_path)
    write_shards(tmp_path / "plain", [counts()], n_columns=25)
    assert open_shards(tmp_path / "plain").ids is open_shards(tmp_path / "plain").names is None
    write_shards(tmp_path / "numbers", [counts()], n_columns=25, ids=np.arange(60) - 5)
    assert open_shards(tmp_path / "numbers").ids.tolist() == list(range(-5, 55))


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        [3],
        [{"rows": 0, "entries": 1}],
        [{"rows": True, "entries": 1}],
        [{"rows": 25, "entries": -1}],
        [{"rows": 2**60, "entries": 1}],
        [{"rows": 25, "entries": 1, "sha256": "0"}],
        [{"rows": 25, "entries": 1, "sha256": ["0"]}],
    ],
)
def test_sizes_that_cannot_be_are_refused(folder, value):
    change(folder, "shards", value)
    with pytest.raises(FolderError, match="does not tell the sizes of its shards"):
        open_shards(folder)


@pytest.mark.parametrize("part", ["offsets", "columns", "values"])
def test_a_changed_bit_of_any_shard_is_found(folder, part):
    open_shards(folder).matrix.check()
    place = folder / "shards" / f"000001.{part}.npy"
    data = bytearray(place.read_bytes())
    data[-30] ^= 1
    place.write_bytes(data)
    with pytest.raises(FolderError, match=rf"000001\.{part}\.npy: damaged: its contents do not match its checksum"):
        open_shards(folder).matrix.check()
    with pytest.raises(DataFileError, match=rf"000001\.{part}\.npy: damaged"):
        read_features(folder)


def test_sizes_that_are_not_those_of_the_files_are_refused(folder):
    sizes = json.loads((folder / "config.json").read_text())["shards"]
    for part in ({"rows": 24}, {"entries": sizes[0]["entries"] + 1}):
        change(folder, "shards", [{**sizes[0], **part}, *sizes[1:]])
        with pytest.raises(FolderError, match="damaged: it should hold"):
            open_shards(folder)
    change(folder, "shards", [*sizes, sizes[0]])
    with pytest.raises(FolderError, match="cannot be read"):
        open_shards(folder)
    change(folder, "shards", sizes[:-1])
    with pytest.raises(FolderError, match=r"ids.parquet: damaged: it should hold one column of 50 rows"):
        open_shards(folder)


def no_strings(count):
    """Give bytes that say of themselves that they are strings."""
    offsets = np.arange(count + 1, dtype=np.int32).tobytes()
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(b"\xb6" * count))


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("ids", ["u0"] * 60, "its ids cannot be"),
        ("ids", [1.5 * k for k in range(60)], "its ids cannot be"),
        ("items", ["i"] * 25, "not distinct strings"),
        ("items", list(range(25)), "not distinct strings"),
        ("ids", no_strings(60), "its strings are not UTF-8"),
        ("items", no_strings(25), "its strings are not UTF-8"),
        ("ids", pa.array(np.arange(60, dtype=np.int32) + 2**30).view(pa.date32()), "its values cannot be"),
    ],
)
def test_ids_and_items_that_cannot_be_are_refused(folder, name, values, problem):
    save_table(folder / f"{name}.parquet", pa.table({"x": values}))
    files = json.loads((folder / "config.json").read_text())["files"]
    data = (folder / f"{name}.parquet").read_bytes()
    files[f"{name}.parquet"] = {"bytes": len(data), "sha256": persistence.hashlib.sha256(data).hexdigest()}
    change(folder, "files", files)
    with pytest.raises(FolderError, match=problem):
        open_shards(folder)


def test_folders_of_other_kinds_and_missing_files(folder, tmp_path):
    persistence.write_folder(tmp_path / "note", kind="note", document={})
    with pytest.raises(FolderError, match="kind 'note'"):
        open_shards(tmp_path / "note")
    change(folder, "folders", [])
    with pytest.raises(FolderError, match="does not tell"):
        open_shards(folder)
    for names in ("x", ["../x"], [3]):
        change(folder, "folders", names)
        with pytest.raises(FolderError, match="it lists folders that no folder of ours has"):
            open_shards(folder)
    change(folder, "folders", ["shards"])
    shutil.rmtree(folder / "shards")
    with pytest.raises(FolderError, match="there is no such folder"):
        open_shards(folder)
