import errno
import io
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from corrvae.errors import FolderError
from corrvae.io import folder as module
from corrvae.io import lock_folder, read_folder, write_folder

KIND = {"kind": "note", "version": 2}


def write(path, number, **more):
    """Write a folder in which everything says the number."""
    content = {
        "document": {"number": number},
        "tensors": {"w": torch.full((3,), float(number))},
        "arrays": {"a.b": np.full(4, number)},
        "tables": {"t": pa.table({"id": [str(number)]})},
    }
    write_folder(path, **KIND, **(content | more))


def number_in(path):
    """Return the number that everything in a folder says."""
    found = read_folder(path, **KIND)
    (number,) = {
        found.document["number"],
        *found.tensors["w"].int().tolist(),
        *found.arrays["a.b"].tolist(),
        *map(int, found.tables["t"]["id"].to_pylist()),
    }
    return number


def files_in(path):
    return sorted(place.name for place in path.iterdir() if place.name != module.LOCK)


def test_each_write_replaces_the_one_before(tmp_path):
    run = tmp_path / "made" / "run"
    for number in (1, 2, 3):
        write(run, number)
        assert number_in(run) == number
        assert files_in(run) == [
            f"a.b-{number}.npy", "config.json", f"model-{number}.safetensors", f"t-{number}.parquet",
        ]  # fmt: skip
    write_folder(run, **KIND, document={})
    assert files_in(run) == ["config.json"]
    found = read_folder(run, **KIND)
    assert (found.document, found.tensors, found.arrays, found.tables) == ({}, {}, {}, {})


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
KINDS = st.sampled_from([np.float32, np.float64, np.int64, np.int32, np.uint8, bool, "<U3"])
ARRAYS = KINDS.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, min_side=0)))


@given(document=st.dictionaries(st.text(), DOCUMENTS, max_size=3), array=ARRAYS, transposed=st.booleans())
def test_round_trip(document, array, transposed, tmp_path_factory):
    run = tmp_path_factory.mktemp("folder")
    array = array.T if transposed else array
    tensors = {} if array.dtype.kind == "U" else {"x": torch.tensor(array), "y.z": torch.tensor(array.T)}
    write_folder(run, **KIND, document=document, arrays={"x": array}, tensors=tensors)
    found = read_folder(run, **KIND)
    assert found.document == document
    assert found.arrays["x"].dtype == array.dtype
    assert found.arrays["x"].shape == array.shape
    assert np.array_equal(found.arrays["x"], array, equal_nan=array.dtype.kind == "f")
    assert found.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name].nan_to_num(), tensor.nan_to_num())


def test_tied_weights_and_odd_layouts(tmp_path):
    whole = torch.arange(6.0).reshape(2, 3)
    write_folder(tmp_path, **KIND, document={}, tensors={"a": whole, "b": whole, "c": whole.T, "d": whole[1]})
    found = read_folder(tmp_path, **KIND).tensors
    assert all(torch.equal(found[name], value) for name, value in (("a", whole), ("b", whole), ("c", whole.T)))
    assert found["d"].tolist() == [3, 4, 5]
    found["d"].add_(1)  # writable
    assert found["d"].tolist() == [4, 5, 6]


def test_large_arrays_are_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAPPED_BYTES", 200)
    write_folder(tmp_path, **KIND, document={}, arrays={"small": np.ones(2), "large": np.arange(100.0)})
    found = read_folder(tmp_path, **KIND).arrays
    assert isinstance(found["large"], np.memmap)
    assert not isinstance(found["small"], np.memmap)
    # What is mapped from a folder can be written to the same folder.
    write_folder(tmp_path, **KIND, document={}, arrays={"large": found["large"]})
    assert np.array_equal(read_folder(tmp_path, **KIND).arrays["large"], np.arange(100.0))
    assert np.array_equal(found["large"], np.arange(100.0))


def test_what_cannot_be_written_is_rejected_before_anything_is(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_folder(tmp_path / "run", **KIND, document={"x": float("inf")})
    assert not (tmp_path / "run").exists()
    write(tmp_path / "run", 1)
    with pytest.raises(ValueError, match="Object arrays"):
        write(tmp_path / "run", 2, arrays={"a.b": np.array([None])})
    assert number_in(tmp_path / "run") == 1
    assert len(files_in(tmp_path / "run")) == 4


# Other things in the folder


def test_unknown_files_stay(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "x").write_text("x")
    (tmp_path / "history.csv").write_text("step\n")
    write(tmp_path, 1)
    (tmp_path / "notes-1.txt").write_text("mine")
    (tmp_path / "other-1.parquet").write_text("mine")
    write(tmp_path, 2)
    write(tmp_path / "checkpoint" / "inner", 7)
    assert {"checkpoint", "history.csv", "notes-1.txt", "other-1.parquet"} <= set(files_in(tmp_path))
    assert (number_in(tmp_path), number_in(tmp_path / "checkpoint" / "inner")) == (2, 7)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("photo.jpg", "x", "it holds 'photo.jpg' and no model of corrvae, so nothing was written; choose another"),
        ("config.json", "{}", "damaged, or not written by this version of corrvae"),
        ("config.json", '{"model_type": "bert"}', "damaged, or not written by this version of corrvae"),
        ("config.json", "[", "damaged, or not written by corrvae"),
    ],
)
def test_a_foreign_folder_is_left_alone(name, content, sentence, tmp_path):
    (tmp_path / name).write_text(content)
    for attempt in (lambda: write(tmp_path, 1), lambda: lock_folder(tmp_path).__enter__()):
        with pytest.raises(FolderError, match=sentence):
            attempt()
    assert [(place.name, place.read_text()) for place in tmp_path.iterdir()] == [(name, content)]


def test_a_folder_of_another_kind_is_left_alone(tmp_path):
    write(tmp_path, 1)
    with pytest.raises(FolderError, match="it holds a note, not a corrvae model; choose another folder"):
        write_folder(tmp_path, kind="corrvae model", version=1, document={})
    assert number_in(tmp_path) == 1


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "run").write_text("x")
    with pytest.raises(FolderError, match="run: there is a file of this name; choose another"):
        write(tmp_path / "run", 1)
    with pytest.raises(FolderError, match=r"it cannot be written \(Not a directory\)"):
        write(tmp_path / "run" / "below", 1)
    with pytest.raises(FolderError, match="this is a file, not a folder"):
        read_folder(tmp_path / "run", **KIND)


# Reading what is not as it should be


def test_other_kinds_and_versions(tmp_path):
    with pytest.raises(FolderError, match="there is no such folder"):
        read_folder(tmp_path / "run", **KIND)
    with pytest.raises(FolderError, match=r"there is no config\.json in it, so it holds no note"):
        read_folder(tmp_path, **KIND)
    write(tmp_path, 1)
    with pytest.raises(FolderError, match="it holds a note, not a model"):
        read_folder(tmp_path, kind="model", version=2)
    with pytest.raises(FolderError, match=r"a newer corrvae \(format 2; this one reads 1\); install a newer corrvae"):
        read_folder(tmp_path, kind="note", version=1)
    with pytest.raises(FolderError, match=r"an older corrvae \(format 2; this one reads 3\)"):
        read_folder(tmp_path, kind="note", version=3)


def test_damaged_files(tmp_path):
    write(tmp_path, 1)
    for name in files_in(tmp_path):
        whole = (tmp_path / name).read_bytes()
        for damaged in (whole[: len(whole) // 2], b"", b"\xff" * len(whole)):
            (tmp_path / name).write_bytes(damaged)
            with pytest.raises(FolderError, match="damaged") as caught:
                read_folder(tmp_path, **KIND)
            assert caught.value.path == tmp_path / name
        (tmp_path / name).unlink()
        with pytest.raises(FolderError, match=f"{name}: damaged: this file is missing|there is no config.json"):
            read_folder(tmp_path, **KIND)
        (tmp_path / name).write_bytes(whole)
    assert number_in(tmp_path) == 1


def test_a_config_names_no_file_elsewhere(tmp_path):
    write(tmp_path / "run", 1)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    config["files"] = {"../x-1.npy": 5}
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    with pytest.raises(FolderError, match=r"damaged: it lists a file named '\.\./x-1\.npy'"):
        read_folder(tmp_path / "run", **KIND)


def test_no_pickle_is_read(tmp_path):
    write(tmp_path, 1)
    np.save(tmp_path / "a.b-1.npy", np.array([{}]), allow_pickle=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config["files"]["a.b-1.npy"] = (tmp_path / "a.b-1.npy").stat().st_size
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(FolderError, match="Object arrays cannot be loaded"):
        read_folder(tmp_path, **KIND)


def test_a_reader_starts_again_when_a_writer_was_faster(tmp_path, monkeypatch):
    write(tmp_path, 1)
    real, calls = module._checked_config, []

    def slow(*args):
        config = real(*args)
        calls.append(config["generation"])
        if len(calls) < 3:
            write(tmp_path, len(calls) + 1)
        return config

    monkeypatch.setattr(module, "_checked_config", slow)
    assert number_in(tmp_path) == 3
    assert calls == [1, 2, 3]


# Crashes and full disks


class Crash(BaseException):
    """A stop that nothing catches, as a kill is."""


@pytest.fixture
def operations(monkeypatch):
    """Count the calls that change files; from the k-th on, each does `fail` instead (until told otherwise)."""

    class Operations:
        count, limit, fail, once = 0, None, None, False

        def step(self):
            self.count += 1
            if self.limit is not None and (self.count == self.limit or (self.count > self.limit and not self.once)):
                raise self.fail

    state = Operations()

    def counted(function):
        def call(*args, **kwargs):
            state.step()
            return function(*args, **kwargs)

        return call

    class Stream(io.FileIO):
        def write(self, data):
            state.step()
            return super().write(data)

    real_open = io.open

    def counted_open(file, mode="r", *args, **kwargs):
        if "w" not in mode:
            return real_open(file, mode, *args, **kwargs)
        state.step()
        return io.BufferedWriter(Stream(file, "w"), 64)

    monkeypatch.setattr(io, "open", counted_open)
    for name in ("replace", "fsync", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    return state


def test_a_crash_at_any_moment_leaves_the_old_content_or_the_new(tmp_path, operations):
    """After a kill nothing runs, neither the next operation nor any cleaning up."""
    write(tmp_path / "count", 1)
    write(tmp_path / "count", 2)
    total = operations.count
    assert total > 20
    seen = set()
    for limit in range(1, total // 2 + 8):
        run = tmp_path / f"run{limit}"
        operations.limit = None
        write(run, 1)
        operations.count, operations.limit, operations.fail = 0, limit, Crash()
        with suppress(Crash):
            write(run, 2)
        operations.limit = None
        seen.add(number_in(run))
        assert number_in(run) in (1, 2)
        write(run, 3)  # and the next write works and cleans up
        assert number_in(run) == 3
        assert len(files_in(run)) == 4
    assert seen == {1, 2}


FULL, READ_ONLY = "the disk is full; free some space or choose", "no permission, or a read-only disk; choose another"


@pytest.mark.parametrize(
    ("code", "once", "sentence"),
    [
        (errno.ENOSPC, True, FULL),
        (errno.ENOSPC, False, FULL),
        (errno.EROFS, False, READ_ONLY),
        (errno.EACCES, True, READ_ONLY),
        (errno.EIO, True, os.strerror(errno.EIO)),
    ],
)
def test_an_error_of_the_system_is_one_sentence_and_loses_nothing(tmp_path, operations, code, once, sentence):
    run = tmp_path / "run"
    write(run, 1)
    before = operations.count
    write(run, 1)
    errors = []
    for limit in range(1, operations.count - before + 1):
        operations.count, operations.limit, operations.once = 0, limit, once
        operations.fail = OSError(code, os.strerror(code))
        try:
            write(run, 2)
        except FolderError as error:
            errors.append(error)
        operations.limit = None
        assert number_in(run) in (1, 2)
        is_kept = bool(errors) and errors[-1].problem.startswith("the new content is there")  # with the old files
        if once and not is_kept:
            assert len(files_in(run)) in (4, 5)  # nothing is left but perhaps the one file that could not be deleted
        write(run, 1)
        assert len(files_in(run)) == 4
    assert len(errors) > 10
    for error in errors:
        assert error.path == run
        assert sentence in str(error) or "may be lost in a power failure" in str(error)
        assert "; what was there before is unchanged" in str(error) or "the new content is there" in str(error)


def test_a_first_write_that_crashed_does_not_make_the_folder_foreign(tmp_path, operations):
    for limit in range(3, 14):
        run = tmp_path / f"run{limit}"
        operations.count, operations.limit, operations.fail = 0, limit, Crash()
        with pytest.raises(Crash):
            write(run, 1)
        operations.limit = None
        write(run, 2)
        assert number_in(run) == 2
        assert len(files_in(run)) == 4


# Locks

HOLDER = """
import sys
from corrvae.io import lock_folder
with lock_folder(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.readline()
"""


def test_one_program_writes_at_a_time(tmp_path):
    run = tmp_path / "run"
    write(run, 1)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(FolderError, match="another program is writing to it"):
            write(run, 2)
        assert number_in(run) == 1  # a reader needs no lock
        holder.kill()  # the lock ends with the process, however it ends
        holder.wait()
        write(run, 3)
        assert number_in(run) == 3
    finally:
        holder.kill()
        holder.communicate()


def test_a_program_may_lock_again_what_it_has_locked(tmp_path):
    run = tmp_path / "run"
    faults = []

    def other():
        try:
            write(run, 3)
        except FolderError as error:
            faults.append(str(error))

    with lock_folder(run):
        write(run, 1)
        with lock_folder(run):
            write(Path(os.path.relpath(run)), 2)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert number_in(run) == 2
    assert "another program is writing to it" in faults[0]
    write(run, 4)
    assert number_in(run) == 4
