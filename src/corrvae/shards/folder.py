"""Folders of shards: what is in them, and under which ids and names."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Int, Shaped

from corrvae.errors import FolderError
from corrvae.graphs.ids import VertexIds
from corrvae.persistence import DOCUMENT, Folder, kind_of, read_folder
from corrvae.shards.matrix import Shard, ShardedMatrix

KIND, VERSION = "corrvae features", 1
SHARDS, IDS, ITEMS = "shards", "ids", "items"


@final
@dataclass(frozen=True, eq=False)
class ShardFolder:
    """A table larger than memory.

    Attributes
    ----------
    matrix
        The table; it stays on the disk.
    ids
        One for each row, all distinct: integers, or an array of strings; ``None``: rows are 0, 1, ....
    names
        One for each column, all distinct; ``None`` if they have none.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from corrvae.shards import write_shards
    >>> with TemporaryDirectory() as folder:
    ...     write_shards(f"{folder}/x", [np.eye(2)], n_columns=2, ids=np.array([7, 9]))
    ...     open_shards(f"{folder}/x").ids
    array([7, 9])
    """

    matrix: ShardedMatrix
    ids: Shaped[np.ndarray, " rows"] | None
    names: tuple[str, ...] | None


def is_shard_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a folder says of itself that it holds shards.

    Examples
    --------
    >>> is_shard_folder("nowhere")
    False
    """
    return kind_of(path) == KIND


def open_shards(path: str | os.PathLike[str]) -> ShardFolder:
    """Open a folder of shards, after comparing the sizes of its files with what it says of them.

    Its shards are not read; `ShardedMatrix.check` compares them with their checksums.

    Parameters
    ----------
    path
        The folder, as `corrvae data shard` or `write_shards` wrote it.

    Raises
    ------
    FolderError
        If it is missing, damaged, of another kind, or of a newer version.

    Examples
    --------
    >>> open_shards("no/such/folder")
    Traceback (most recent call last):
    corrvae.errors.FolderError: no/such/folder: there is no such folder
    """
    place = Path(path)
    folder = read_folder(place, kind=KIND, newest=VERSION)
    n_columns, sizes = _sizes(place, folder)
    shards = [Shard.find(place / SHARDS, number, *size) for number, size in enumerate(sizes)]
    matrix = ShardedMatrix(place, shards, n_columns)
    return ShardFolder(matrix, _ids(place, folder, matrix.shape[0]), _names(place, folder, n_columns))


def reopen(path: str, places: Int[np.ndarray, " columns"] | None, shape: tuple[int, int]) -> ShardedMatrix:
    """Open the matrix of a pickle, where its folder was, and refuse one of another shape."""
    matrix = open_shards(path).matrix
    if places is not None:
        matrix = matrix.with_columns(places, shape[1])
    if matrix.shape != shape:
        raise FolderError(path, f"it holds a matrix of shape {matrix.shape}, where one of {shape} was")
    return matrix


def _sizes(place: Path, folder: Folder) -> tuple[int, list[tuple[int, int, list[str | None]]]]:
    document = folder.document
    n_columns, shards = document.get("columns"), document.get("shards")
    sizes = [_size(part) for part in shards] if isinstance(shards, list) else []
    if SHARDS not in folder.folders or not _is_count(n_columns, 1) or not sizes or None in sizes:
        raise FolderError(place / DOCUMENT, "damaged: it does not tell the sizes of its shards")
    return n_columns, sizes  # pyright: ignore[reportReturnType]


def _size(part: Any) -> tuple[int, int, list[str | None]] | None:
    if not isinstance(part, dict) or not _is_count(part.get("rows"), 1) or not _is_count(part.get("entries"), 0):
        return None
    checksums = part.get("sha256", [None] * 3)  # the first folders of this format have none
    if not isinstance(checksums, list) or len(checksums) != 3:
        return None
    return part["rows"], part["entries"], checksums


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**48


def _ids(place: Path, folder: Folder, n_rows: int) -> np.ndarray | None:
    if IDS not in folder.tables:
        return None
    values = _column(place, folder, IDS, n_rows)
    try:
        if {type(value) for value in values} not in ({int}, {str}):
            raise TypeError("they are neither integers nor strings")
        return VertexIds.from_vertices(values).values
    except (ValueError, TypeError) as error:
        raise FolderError(place / f"{IDS}.parquet", f"damaged: its ids cannot be ({error})") from error


def _names(place: Path, folder: Folder, n_columns: int) -> tuple[str, ...] | None:
    if ITEMS not in folder.tables:
        return None
    names = _column(place, folder, ITEMS, n_columns)
    if any(type(name) is not str for name in names) or len(set(names)) < n_columns:
        raise FolderError(place / f"{ITEMS}.parquet", "damaged: the items are not distinct strings")
    return tuple(names)


def _column(place: Path, folder: Folder, name: str, count: int) -> list[Any]:
    table = folder.tables[name]
    if table.num_rows != count or table.num_columns != 1:
        raise FolderError(place / f"{name}.parquet", f"damaged: it should hold one column of {count:,} rows")
    try:
        return table.column(0).to_pylist()
    except UnicodeDecodeError as error:
        raise FolderError(place / f"{name}.parquet", "damaged: its strings are not UTF-8") from error
    except (ValueError, ArithmeticError) as error:  # such as a date that is beyond the calendar
        raise FolderError(place / f"{name}.parquet", f"damaged: its values cannot be ({error})") from error
