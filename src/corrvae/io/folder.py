"""Folders that are replaced atomically: a kill at any moment leaves the old content or the new one, whole.

A folder holds `config.json` and beside it safetensors (tensors), NPY (arrays) and Parquet (tables). Each write has a
generation number, which is part of every file's name (`model-3.safetensors`). The files of a new generation are written
and fsynced beside those of the old one; then a single ``os.replace`` of `config.json`, which lists the files of its
generation, switches from the old to the new; then the old files are deleted. Nothing in a folder is ever executed.
"""

import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, final

import numpy as np

from corrvae.errors import FolderError

CONFIG, LOCK = "config.json", ".corrvae.lock"
# What a run keeps beside a model; a folder with nothing else in it may become a model's folder.
COMPANIONS = frozenset({LOCK, "checkpoint", "history.csv"})
# Arrays from this size are mapped, not read, so that a model's features may be larger than memory.
MAPPED_BYTES = 1 << 28
# How often a reader starts again because a writer replaced the folder under it.
_ATTEMPTS = 10
_GENERATION = re.compile(r"(\w[\w.]*)-\d+\.(safetensors|npy|parquet)")


@final
@dataclass(frozen=True, eq=False)
class Folder:
    """The content of a folder: its JSON document, and by name tensors, arrays (mapped if large) and pyarrow tables."""

    document: dict[str, Any]
    tensors: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)


def write_folder(
    path: str | os.PathLike[str],
    *,
    kind: str,
    version: int,
    document: Mapping[str, Any],
    tensors: Mapping[str, Any] | None = None,
    arrays: Mapping[str, np.ndarray] | None = None,
    tables: Mapping[str, Any] | None = None,
) -> None:
    """Write a folder, or replace the content of one of the same kind, atomically; raise FolderError if that fails.

    It and its parents are made. Files that other programs put into it stay. A folder of another `kind` (such as
    "corrvae model"), or that corrvae did not write, is left as it is. `document` is what JSON can hold; tensors are
    torch's.
    """
    folder = Path(path)
    writers: dict[tuple[str, str], Callable[[BinaryIO], object]] = {}
    if tensors:
        writers["model", "safetensors"] = partial(_write_tensors, tensors=tensors)
    for name, array in (arrays or {}).items():
        writers[name, "npy"] = partial(_write_array, array=array)
    for name, table in (tables or {}).items():
        writers[name, "parquet"] = partial(_write_table, table=table)
    json.dumps(dict(document), allow_nan=False)  # raises before anything is written
    with lock_folder(folder), folder_errors(folder):
        old = _read_config(folder) or {"kind": kind, "generation": 0, "files": {}}
        if old["kind"] != kind:
            raise FolderError(folder, f"it holds a {old['kind']}, not a {kind}; choose another folder")
        generation = old["generation"] + 1
        files: dict[str, int] = {}
        try:
            for (name, suffix), write in writers.items():
                file = f"{name}-{generation}.{suffix}"
                files[file] = 0
                files[file] = _write_file(folder / file, write)
            config = {"kind": kind, "version": version, "generation": generation, "files": files}
            text = json.dumps({**config, "document": dict(document)}, indent=1) + "\n"
            fresh = folder / f"{CONFIG}.new"
            _write_file(fresh, lambda stream: stream.write(text.encode()))
            _sync_folder(folder)
            fresh.replace(folder / CONFIG)
            try:
                _sync_folder(folder)  # before the old files go: a power failure could bring the old config back
            except OSError as error:
                problem = f"the new content is there, but may be lost in a power failure ({error.strerror})"
                raise FolderError(folder, problem) from error
        except BaseException:
            _remove_unlisted(folder, lambda name: name in files)
            raise
        stems = writers.keys() | {_stem(name) for name in old["files"]}
        _remove_unlisted(folder, lambda name: _stem(name) in stems)


def read_folder(path: str | os.PathLike[str], *, kind: str, version: int) -> Folder:
    """Read a folder that `write_folder` wrote; raise FolderError for one that is damaged or of another kind."""
    folder = Path(path)
    with folder_errors(folder, "read"):
        for attempt in range(_ATTEMPTS):
            config = _checked_config(folder, kind, version)
            try:
                return _read_files(folder, config)
            except FileNotFoundError as error:
                # A writer may have switched to another generation and deleted the one that was being read.
                if attempt == _ATTEMPTS - 1 or _read_config(folder) == config:
                    raise FolderError(Path(error.filename), "damaged: this file is missing") from error
    raise AssertionError("unreachable")


@contextmanager
def lock_folder(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make a folder if needed and lock it, so that only one program writes to it; readers need no lock.

    The lock ends with the block, or with the process however it ends. A process may lock a folder again that it has
    locked (in the same thread). Raise FolderError if another program holds it, or if it has content that corrvae did
    not write.
    """
    from filelock import FileLock, Timeout

    folder = Path(path)
    with folder_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        names = {place.name for place in folder.iterdir()}
        if _read_config(folder) is None and LOCK not in names and not names <= COMPANIONS:
            other = sorted(names - COMPANIONS)[0]
            raise FolderError(
                folder, f"it holds {other!r} and no model of corrvae, so nothing was written; choose another folder"
            )
        lock = FileLock(folder.resolve() / LOCK, is_singleton=True)
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            problem = "another program is writing to it; wait for it or choose another folder"
            raise FolderError(folder, problem) from error
    try:
        yield
    finally:
        lock.release()


# Writing


def save_array(place: Path, array: np.ndarray) -> None:
    """Write an array to an NPY file in blocks, so that a mapped one is never in memory, and through to the disk."""
    _write_file(place, partial(_write_array, array=array))


def _write_array(stream: BinaryIO, array: np.ndarray) -> None:
    # Through `write`, not `ndarray.tofile`, which hides why it failed.
    np.lib.format.write_array(SimpleNamespace(write=stream.write), array, allow_pickle=False)  # pyright: ignore


def _write_tensors(stream: BinaryIO, tensors: Mapping[str, Any]) -> None:
    from safetensors.torch import save

    # The format knows no shared memory: tied weights are written twice.
    stream.write(save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}))


def _write_table(stream: BinaryIO, table: Any) -> None:
    from pyarrow import parquet

    parquet.write_table(table, stream)


def _write_file(place: Path, write: Callable[[BinaryIO], object]) -> int:
    """Write a file through to the disk and return its size."""
    with place.open("wb") as stream:
        write(stream)
        stream.flush()
        os.fsync(stream.fileno())
        return stream.tell()


def _sync_folder(folder: Path) -> None:
    """Write a folder's names through to the disk, where the system knows how."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_unlisted(folder: Path, is_ours: Callable[[str], bool]) -> None:
    """Delete files that are ours and not listed in `config.json`; a failure leaves them for the next write."""
    with suppress(OSError):
        listed = (_read_config(folder) or {"files": {}})["files"]
        for place in list(folder.iterdir()):
            if place.name == f"{CONFIG}.new" or (is_ours(place.name) and place.name not in listed):
                with suppress(OSError):
                    place.unlink()


def _stem(name: str) -> tuple[str, str] | None:
    """Return the name of a file without its generation, and its suffix; None if it is not one of ours."""
    match = _GENERATION.fullmatch(name)
    return None if match is None else (match[1], match[2])


# Reading


def _read_config(folder: Path) -> dict[str, Any] | None:
    """Return what `config.json` holds, or None if there is none; raise if corrvae did not write it."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise FolderError(folder / CONFIG, f"damaged, or not written by corrvae: {error}") from error
    form = {"kind": str, "version": int, "generation": int, "files": dict, "document": dict}
    if not isinstance(config, dict) or any(type(config.get(name)) is not of for name, of in form.items()):
        raise FolderError(folder / CONFIG, "damaged, or not written by this version of corrvae; choose another folder")
    return config


def _checked_config(folder: Path, kind: str, version: int) -> dict[str, Any]:
    if not folder.is_dir():
        raise FolderError(folder, "this is a file, not a folder" if folder.exists() else "there is no such folder")
    config = _read_config(folder)
    if config is None:
        raise FolderError(folder, f"there is no {CONFIG} in it, so it holds no {kind}")
    if config["kind"] != kind:
        raise FolderError(folder, f"it holds a {config['kind']}, not a {kind}")
    if config["version"] != version:
        age, cure = "an older", "write it again with this one"
        if config["version"] > version:
            age, cure = "a newer", "install a newer corrvae to read it"
        raise FolderError(
            folder, f"it was written by {age} corrvae (format {config['version']}; this one reads {version}); {cure}"
        )
    return config


def _read_files(folder: Path, config: dict[str, Any]) -> Folder:
    found = Folder(config["document"])
    for file, size in config["files"].items():
        place, stem = folder / file, _stem(file)
        if stem is None:
            raise FolderError(folder / CONFIG, f"damaged: it lists a file named {file!r}")
        actual = place.stat().st_size
        if actual != size:
            raise FolderError(place, f"damaged: it has {actual:,} bytes of {size:,}")
        name, suffix = stem
        try:
            if suffix == "safetensors":
                from safetensors.torch import load

                found.tensors.update(load(place.read_bytes()))
            elif suffix == "npy":
                mode = "r" if size >= MAPPED_BYTES else None
                found.arrays[name] = np.load(place, mmap_mode=mode, allow_pickle=False)
            else:
                from pyarrow import parquet

                with parquet.ParquetFile(place) as opened:
                    found.tables[name] = opened.read()
        except FileNotFoundError:
            raise
        except Exception as error:  # the libraries' own errors have no common class
            raise FolderError(place, f"damaged: {str(error).splitlines()[0][:200]}") from error
    return found


@contextmanager
def folder_errors(path: Path, action: str = "written") -> Iterator[None]:
    """Raise system errors as `FolderError`: one sentence on a folder or file that cannot be written (or read)."""
    try:
        yield
    except FolderError:
        raise
    except FileExistsError as error:
        raise FolderError(path, "there is a file of this name; choose another") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            problem = "the disk is full; free some space or choose another place"
        elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            problem = "no permission, or a read-only disk; choose another place"
        else:
            problem = error.strerror or str(error)
        unchanged = "; what was there before is unchanged" if action == "written" else ""
        raise FolderError(path, f"it cannot be {action} ({problem}){unchanged}") from error
