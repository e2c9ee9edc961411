"""Features from a file of any kind."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from corrvae.errors import DataFileError
from corrvae.graphs.files.reading import PARQUET_MAGIC, open_data
from corrvae.reading.features import Features
from corrvae.reading.layouts import check_layout, find_layout, tell_long
from corrvae.reading.long import read_long
from corrvae.reading.tables import TableFile
from corrvae.reading.wide import read_wide
from corrvae.shards.matrix import ShardedMatrix

_NPY, _ZIP, _HDF = b"\x93NUMPY", b"PK\x03\x04", b"\x89HDF"


def read_features(
    path: str | os.PathLike[str],
    *,
    id_column: str | None = None,
    layout: str = "auto",
    names: Sequence[str] | None = None,
    say: Callable[[str], None] | None = None,
) -> Features:
    r"""Read a table of features: text, Parquet, NPZ, NPY, annotated data or shards. Its content decides what it is.

    Text has commas, tabs, semicolons or blanks between fields, and may be compressed with gzip; lines before
    the first one of the table that begin with ``#`` or ``%`` are comments. What unpacks to more than 200 times its size
    and 1 MiB is refused: unpack it first. Warnings tell what was left out or added up.

    Parameters
    ----------
    path
        The file, or a folder of shards as `corrvae data shard` writes it, which stays on the disk.
    id_column
        The name of the column of ids; without it, the index of a pandas frame in Parquet, else the first column.
    layout
        "wide": a row for each data point, a column for each feature. "long": a row for each point and item, with the
        columns id, item and, if it is there, value. "auto": long if there are two to four columns, and items
        are no numbers or have a usual name such as "item"; where only ids that repeat tell, the file is refused.
    names
        The columns that the result must have, in this order: those that a model was trained with. A wide table has to
        have them all; items of a long one that are not among them are left out.
    say
        Takes a sentence on how the columns of a long table are read.

    Raises
    ------
    DataFileError
        With the path, and the line or row and the column that are at fault.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "ratings.csv")
    ...     _ = path.write_text("user,item,stars\nann,tea,5\nbob,tea,2\nann,coffee,1\n")
    ...     features = read_features(path)
    >>> features.ids.tolist(), features.names, features.matrix.toarray().tolist()
    (['ann', 'bob'], ('tea', 'coffee'), [[5.0, 1.0], [2.0, 0.0]])
    """
    path = Path(path)
    check_layout(layout)
    wanted = None if names is None else tuple(names)
    if path.is_dir():
        if id_column is not None:
            raise DataFileError(path, f"shards have no column {id_column!r} of ids; they have been made with theirs")
        from corrvae.reading.sharded import read_shards

        return read_shards(path, wanted)
    with open_data(path) as stream:
        magic = stream.read(6)
    if not magic:
        raise DataFileError(path, "the file is empty")
    if magic.startswith((_NPY, _ZIP, _HDF)):
        return _conform(path, _read_array(path, magic, id_column), wanted)
    table = open_table(path, id_column)
    id_position = table.id_position(id_column)
    found = find_layout(table, id_position, wanted) if layout == "auto" else layout
    if found == "wide":
        return read_wide(table, id_position, wanted)
    features = read_long(table, id_position, wanted)
    if say is not None:
        say(f"{path}: {tell_long(table, id_position)}")
    return features


def _read_array(path: Path, magic: bytes, id_column: str | None) -> Features:
    if magic.startswith(_HDF):
        from corrvae.reading.annotated import read_annotated

        return read_annotated(path, id_column)
    from corrvae.reading.arrays import read_npy, read_npz

    if id_column is not None:
        raise DataFileError(path, f"an array has no column {id_column!r} of ids; its rows are 0, 1, ...")
    return read_npy(path) if magic.startswith(_NPY) else read_npz(path)


def open_table(path: Path, id_column: str | None) -> TableFile:
    """Open a table in text or Parquet.

    Parameters
    ----------
    path
        The file.
    id_column
        The name of the column of ids, if it is told: then there is a header.
    """
    with open_data(path) as stream:
        magic = stream.read(6)
    if not magic:
        raise DataFileError(path, "the file is empty")
    if magic.startswith((_NPY, _ZIP, _HDF)):
        raise DataFileError(path, "this is an array, not a table in text or Parquet")
    if magic.startswith(PARQUET_MAGIC):
        from corrvae.reading.parquet import ParquetTable

        return ParquetTable(path)
    from corrvae.reading.text import TextTable

    return TextTable(path, header=None if id_column is None else True)


def _conform(path: Path, features: Features, names: tuple[str, ...] | None) -> Features:
    """Bring the columns of an array into the order of a model's."""
    if names is None or features.names == names:
        return features
    if features.names is None:
        if features.n_columns != len(names):
            raise DataFileError(
                path, f"it has {features.n_columns:,} columns, where the model was trained with {len(names):,}"
            )
        return Features(features.matrix, features.ids, names)
    place_of = {name: place for place, name in enumerate(features.names)}
    missing = [name for name in names if name not in place_of]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise DataFileError(path, f"there is no column {missing[0]!r}{more}, which the model was trained with")
    matrix = features.matrix
    if isinstance(matrix, ShardedMatrix):
        raise TypeError("the columns of shards are chosen where they are opened")
    return Features(matrix[:, [place_of[name] for name in names]], features.ids, names)
