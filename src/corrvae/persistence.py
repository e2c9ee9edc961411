"""Folders of tensors, arrays, tables and JSON, written whole or not at all.

A folder holds `config.json` and beside it safetensors and Parquet files, which `config.json` lists with their sizes and
checksums. Everything is checked before it is used, and nothing in a folder is ever executed.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np
from torch import Tensor

from corrvae.drafts import draft_of, make_folder, named_as, put_in_place, sweep, sync
from corrvae.errors import DamagedFolderError, FolderError
from corrvae.parquet import load_table, save_table
from corrvae.regular import check_inside, open_inside, told_as_unreadable

if TYPE_CHECKING:
    import pyarrow

_Seen = TypeVar("_Seen")
DOCUMENT, TENSORS, ARRAYS = "config.json", "model.safetensors", "arrays.safetensors"
_RESERVED = ("format", "files", "folders", "checksum")
_TABLE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FILE_NAME = re.compile(r"(model|arrays)\.safetensors|[a-z][a-z0-9_]{0,63}\.parquet")

# The longest that is written is that of shards, half a KiB for each; parsed, one can take thirty times its bytes.
MOST_DOCUMENT_BYTES = 16 * 2**20
_DEEPEST_DOCUMENT, _READ_TRIES = 64, 20


@final
@dataclass(frozen=True, eq=False)
class Folder:
    """What a folder holds.

    Attributes
    ----------
    document
        The JSON document, as it was given.
    tensors, arrays, tables
        By name; empty if there are none.
    version
        Version of the format that the folder was written in.
    folders
        Names of the folders in it, which are not read.
    """

    document: dict[str, Any]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    tables: "dict[str, pyarrow.Table]" = field(default_factory=dict)
    version: int = 1
    folders: tuple[str, ...] = ()


def write_folder(
    path: str | os.PathLike[str],
    *,
    kind: str,
    document: Mapping[str, Any],
    tensors: Mapping[str, Tensor] | None = None,
    arrays: Mapping[str, np.ndarray] | None = None,
    tables: "Mapping[str, pyarrow.Table] | None" = None,
    folders: Mapping[str, Callable[[Path], object]] | None = None,
    version: int = 1,
) -> None:
    """Write a folder so that no reader ever finds half of one: it gets its name once all of it is on the disk.

    A folder of the same kind is replaced: the two exchange their names at once, and the old one is removed. (Where the
    system cannot do this, the old one is renamed first; a reader between the two steps finds no folder of this name,
    and is told so.) Anything else that is in the way is left alone, with a `FolderError`.

    Parameters
    ----------
    path
        Where. The folder above is made if it is not there.
    kind
        What kind of folder this is, such as "corrvae model"; `read_folder` asks for it.
    document
        What goes into `config.json`: numbers (finite ones), strings, booleans, None, lists, and mappings from strings.
    tensors, arrays
        By name, for `model.safetensors` and `arrays.safetensors`.
    tables
        By name (small letters, digits, underscores), each for a Parquet file of that name.
    folders
        By name, what makes a folder in this one and sees to it that its files are on the disk. Neither their sizes nor
        their contents are recorded: a reader has to check them itself.
    version
        Version of the format of this kind.

    Examples
    --------
    >>> import torch
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as parent:
    ...     write_folder(f"{parent}/run", kind="note", document={"n": 3}, tensors={"w": torch.ones(2)})
    ...     found = read_folder(f"{parent}/run", kind="note")
    >>> found.document, found.tensors
    ({'n': 3}, {'w': tensor([1., 1.])})
    """
    target = Path(os.path.realpath(path))  # a link to a folder keeps pointing to it
    writers = _writers(tensors or {}, arrays or {}, tables or {})
    about = {"format": {"kind": kind, "version": version}, **_plain_document(target, document)}
    with _told_as_folder_errors(target):
        _while_it_stays(target, lambda: _refuse_what_is_not_ours(target, kind))
        make_folder(target.parent)
        sweep(target)
        with draft_of(target) as draft:
            for name, make in (folders or {}).items():
                make(draft / _checked_name(name))
            if folders:
                about["folders"] = sorted(folders)
            about["files"] = {name: _write_file(draft / name, write) for name, write in writers.items()}
            text = json.dumps({**about, "checksum": _document_checksum(about)}, indent=1)
            if len(text) >= MOST_DOCUMENT_BYTES:  # it is ASCII
                raise FolderError(target, f"cannot be written: its {DOCUMENT} would have {len(text):,} bytes")
            _write_file(draft / DOCUMENT, lambda place: place.write_text(text + "\n", encoding="utf-8"))
            sync(draft)
            put_in_place(draft, target)


def read_folder(path: str | os.PathLike[str], *, kind: str, newest: int = 1) -> Folder:
    """Read a folder that `write_folder` wrote, after checking that it is whole.

    Parameters
    ----------
    path
        The folder.
    kind
        The kind it should be of.
    newest
        The newest version of the format that the caller understands.

    Raises
    ------
    FolderError
        If the folder is missing, of another kind, of a newer version, or cannot be read; a `DamagedFolderError` if it
        is not what was written.

    Examples
    --------
    >>> read_folder("no/such/folder", kind="note")
    Traceback (most recent call last):
    corrvae.errors.FolderError: no/such/folder: there is no such folder
    """
    folder = Path(path)
    return _while_it_stays(folder, lambda: _read(folder, kind, newest))


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Give the kind that a folder says it is of; ``None`` if it says none.

    Examples
    --------
    >>> kind_of("no/such/folder")
    """
    try:
        form = json.loads(_read_regular(Path(path, DOCUMENT), MOST_DOCUMENT_BYTES))["format"]
        return form["kind"] if _is_format(form) else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _read(folder: Path, kind: str, newest: int) -> Folder:
    with told_as_unreadable(folder):
        if not folder.is_dir():
            raise FolderError(folder, _why_missing(folder))
    document = _read_document(folder)
    form, files, folders = document.pop("format"), document.pop("files"), document.pop("folders", [])
    if form["kind"] != kind:
        raise FolderError(folder, f"this is a folder of the kind {form['kind']!r}, not {kind!r}")
    if form["version"] > newest:
        raise FolderError(
            folder,
            f"it was written by a newer corrvae (format {form['version']}; this one reads up to {newest}); "
            "install a newer corrvae to read it",
        )
    for name in folders:
        check_inside(folder / name)
    contents = {name: _read_file(folder / name, claim) for name, claim in files.items()}
    tables = {name: _table(folder / name, data) for name, data in contents.items() if name.endswith(".parquet")}
    return Folder(
        document,
        _tensors(folder / TENSORS, contents.get(TENSORS)),
        _arrays(folder / ARRAYS, contents.get(ARRAYS)),
        {name.removesuffix(".parquet"): table for name, table in tables.items()},
        form["version"],
        tuple(folders),
    )


# Writing


def _writers(
    tensors: Mapping[str, Tensor], arrays: Mapping[str, np.ndarray], tables: "Mapping[str, pyarrow.Table]"
) -> dict[str, Callable[[Path], object]]:
    """Give, for each file by name, what writes it."""
    writers: dict[str, Callable[[Path], object]] = {}
    if tensors:
        writers[TENSORS] = lambda place: _save_tensors(place, tensors)
    if arrays:
        writers[ARRAYS] = lambda place: _save_arrays(place, arrays)
    for name, table in tables.items():
        writers[f"{_checked_name(name)}.parquet"] = lambda place, table=table: save_table(place, table)
    return writers


def _checked_name(name: str) -> str:
    if not _TABLE_NAME.fullmatch(name):
        raise ValueError(f"the name of a table or folder has small letters, digits and underscores; got {name!r}")
    return name


def _save_tensors(place: Path, tensors: Mapping[str, Tensor]) -> None:
    from safetensors.torch import save_file

    plain: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        storage = tensor.untyped_storage().data_ptr()
        # The format knows no shared memory, so weights that are tied are written twice.
        plain[name] = tensor.clone() if storage in storages else tensor
        storages.add(storage)
    save_file(plain, place)


def _save_arrays(place: Path, arrays: Mapping[str, np.ndarray]) -> None:
    from safetensors.numpy import save_file

    save_file({name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}, place)


def _plain_document(target: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    taken = [name for name in _RESERVED if name in document]
    if taken:
        raise ValueError(f"the document of a folder cannot have entries named {taken}")
    try:
        return json.loads(json.dumps(dict(document), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{target}: the document cannot be written as JSON ({error})") from error


def _write_file(place: Path, write: Callable[[Path], object]) -> dict[str, Any]:
    """Write one file through to the disk; give its size and checksum."""
    from safetensors import SafetensorError

    place.touch()
    usual = stat.S_IMODE(place.stat().st_mode)
    try:
        write(place)
    except SafetensorError as error:
        raise _system_error(error) from error
    place.chmod(usual)  # safetensors makes files that nobody else may read
    with place.open("rb+") as stream:
        os.fsync(stream.fileno())
        return {"bytes": place.stat().st_size, "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}


def _system_error(error: Exception) -> OSError:
    """Give what the system said, such as that the disk is full, as Python's own functions would have told it."""
    number = re.search(r"os error (\d+)", str(error))
    return OSError(str(error)) if number is None else OSError(int(number[1]), os.strerror(int(number[1])))


def _refuse_what_is_not_ours(target: Path, kind: str) -> None:
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise FolderError(target, "there is a file of this name; choose another")
    found = {place.name for place in target.iterdir()}
    if not found:
        return
    advice = "nothing was written; choose another folder, or remove this one"
    try:
        document = _read_document(target)
    except FolderError as error:
        raise FolderError(target, f"a folder with other contents is in the way ({error.problem}); {advice}") from error
    if document["format"]["kind"] != kind:
        raise FolderError(target, f"a folder of the kind {document['format']['kind']!r} is in the way; {advice}")
    strangers = sorted(found - {DOCUMENT, *document["files"], *document.get("folders", [])})
    if strangers:
        raise FolderError(target, f"the folder also holds {', '.join(strangers[:5])}; {advice}")


@contextmanager
def _told_as_folder_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except FolderError:
        raise
    except OSError as error:
        raise FolderError(target, f"cannot be written ({error.strerror or error})") from error


# Reading


def _why_missing(folder: Path) -> str:
    if folder.exists():
        return "this is a file, not a folder"
    aside = sorted(named_as(folder, "old")) if folder.parent.is_dir() else []
    if aside:
        return f"there is no such folder; a save was interrupted, and what it was to replace is {aside[-1]}"
    return "there is no such folder"


def _read_document(folder: Path) -> dict[str, Any]:
    """Read `config.json` and check all that it says about the folder."""
    place = folder / DOCUMENT
    with told_as_unreadable(folder):  # that it may not be looked into, which is not the same as empty
        os.scandir(folder).close()
    if not os.path.lexists(place):
        raise FolderError(folder, f"there is no {DOCUMENT} in it, so corrvae did not write it")
    data = _read_regular(place, MOST_DOCUMENT_BYTES)
    try:
        document = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise DamagedFolderError(place, f"damaged: not JSON ({error})") from error
    if not isinstance(document, dict) or not _is_format(document.get("format")):
        raise DamagedFolderError(folder, f"its {DOCUMENT} names no format, so corrvae did not write it")
    if not _is_shallow(document):
        raise DamagedFolderError(place, f"damaged: nested more than {_DEEPEST_DOCUMENT} deep")
    if document.pop("checksum", None) != _document_checksum(document):
        raise DamagedFolderError(place, "damaged or edited: its contents do not match its checksum")
    files = document.get("files")
    if not isinstance(files, dict) or not all(map(_is_claim, files.values())):
        raise DamagedFolderError(place, "damaged: it does not list the folder's files with sizes and checksums")
    for name in files:
        if not _FILE_NAME.fullmatch(name):
            raise DamagedFolderError(place, f"it lists a file {name!r}, which no folder of ours has")
    folders = document.get("folders", [])
    if not isinstance(folders, list) or not all(isinstance(n, str) and _TABLE_NAME.fullmatch(n) for n in folders):
        raise DamagedFolderError(place, "it lists folders that no folder of ours has")
    return document


def _read_file(place: Path, claim: dict[str, Any]) -> bytes:
    if not os.path.lexists(place):
        raise DamagedFolderError(place, f"missing, though {DOCUMENT} lists it")
    data = _read_regular(place, claim["bytes"])
    if len(data) < claim["bytes"]:
        raise DamagedFolderError(place, f"truncated: it has {len(data):,} bytes of {claim['bytes']:,}")
    if hashlib.sha256(data).hexdigest() != claim["sha256"]:
        raise DamagedFolderError(place, "damaged: its contents do not match its checksum")
    return data


def _read_regular(place: Path, most: int) -> bytes:
    """Read a file of a folder that is not larger than expected."""
    try:
        with told_as_unreadable(place), open_inside(place) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > most:
                raise DamagedFolderError(place, f"damaged: it has {size:,} bytes, more than the {most:,} expected")
            return stream.read(size)
    except MemoryError as error:
        raise FolderError(place, "cannot be read: there is not enough memory for it") from error


def _while_it_stays(folder: Path, look: Callable[[], _Seen]) -> _Seen:
    """Look at a folder, and look again if what was found is wrong but it went, or another took its name, meanwhile."""
    for _ in range(_READ_TRIES):
        before = _identity(folder)
        try:
            return look()
        except (FolderError, FileNotFoundError):
            if _identity(folder) == before:
                raise
    return look()


def _identity(folder: Path) -> tuple[int, int, int] | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _tensors(place: Path, data: bytes | None) -> dict[str, Tensor]:
    from safetensors.torch import load

    # copied, so that their memory is aligned as torch's own is
    return {name: tensor.clone() for name, tensor in _unpacked(place, data, load).items()}


def _arrays(place: Path, data: bytes | None) -> dict[str, np.ndarray]:
    from safetensors.numpy import load

    return _unpacked(place, data, load)


def _unpacked(place: Path, data: bytes | None, load: Callable[[bytes], dict[str, _Seen]]) -> dict[str, _Seen]:
    from safetensors import SafetensorError

    try:
        return {} if data is None else load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise DamagedFolderError(place, f"damaged: not a safetensors file ({error})") from error


def _table(place: Path, data: bytes) -> "pyarrow.Table":
    import pyarrow as pa

    try:
        return load_table(data)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DamagedFolderError(place, f"damaged: not a Parquet file of ours ({error})") from error


def _is_format(form: Any) -> bool:
    if not isinstance(form, dict) or not isinstance(form.get("kind"), str):
        return False
    return type(form.get("version")) is int and form["version"] >= 1


def _is_claim(claim: Any) -> bool:
    if not isinstance(claim, dict) or not isinstance(claim.get("sha256"), str):
        return False
    return type(claim.get("bytes")) is int and claim["bytes"] >= 0


def _is_shallow(document: Any) -> bool:
    level = [document]
    for _ in range(_DEEPEST_DOCUMENT):
        inner = (part for part in level if isinstance(part, dict | list))
        level = [child for part in inner for child in (part.values() if isinstance(part, dict) else part)]
        if not level:
            return True
    return False


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _document_checksum(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
