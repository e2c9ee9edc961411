"""Features from a file of any kind: text, Parquet, NumPy arrays, AnnData, or a folder of mapped arrays."""

import os
from collections.abc import Sequence
from pathlib import Path

from corrvae.errors import DataFileError
from corrvae.io.arrays import Features as Features
from corrvae.io.arrays import read_h5ad, read_npy, read_npz
from corrvae.io.columns import open_binary
from corrvae.io.layouts import Layout, Missing, find_columns, open_table, read_long, read_wide
from corrvae.io.mapped import read_mapped


def read_features(
    path: str | os.PathLike[str],
    *,
    id_column: str | None = None,
    layout: Layout = "auto",
    names: Sequence[str] | None = None,
    missing: Missing = "error",
) -> Features:
    r"""Read a table of features: text, Parquet, NPZ, NPY, .h5ad, or a folder of mapped arrays.

    The content decides what a file is, not its name. Text has commas, tabs, semicolons, bars, blanks or ``::`` between
    fields, and may be compressed with gzip.

    A `DataFileError` names the path, line and column; a warning counts rows added up, and rows or columns left out.

    Parameters
    ----------
    path : path-like
        The file, or a folder that `write_mapped` wrote, which stays on the disk.
    id_column : str, optional
        The name of the column of ids. Default: the index of a pandas frame in Parquet, otherwise the first column.
    layout : {"auto", "wide", "long"}
        "auto": a table of two to four columns is long if its ids repeat, the next column holds whole numbers or words,
        and at most one further column holds numbers other than times; also if that next column holds words, or has a
        usual name such as "item". Others are wide. Where few ids repeat it may be either, and you choose.
    names : sequence of str, optional
        The columns that the result must have, in this order: those that a model was trained with. A wide table needs
        all of them; items of a long one that are not among them are left out.
    missing : {"error", "mask"}
        What to do with an empty cell of a wide table: raise an error, or return NaN.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "ratings.csv")
    ...     _ = path.write_text("user,item,stars\nann,tea,5\nbob,tea,2\nann,coffee,1\n")
    ...     features = read_features(path)
    >>> features.ids.tolist(), features.names, features.matrix.toarray().tolist()
    (['ann', 'bob'], ['tea', 'coffee'], [[5.0, 1.0], [2.0, 0.0]])
    """
    path = Path(path)
    wanted = None if names is None else list(names)
    if path.is_dir():
        return _with_columns(path, read_mapped(path), wanted)
    with open_binary(path) as stream:
        magic = stream.read(6)
    if magic.startswith((b"\x93NUMPY", b"PK\x03\x04")):
        if id_column is not None:
            raise DataFileError(path, f"an array has no column {id_column!r} of ids; its rows are 0, 1, ...")
        return _with_columns(path, read_npz(path) if magic.startswith(b"PK") else read_npy(path), wanted)
    if magic.startswith(b"\x89HDF"):
        return _with_columns(path, read_h5ad(path, id_column), wanted)
    table, is_long = open_table(path, id_column, layout, wanted)
    return read_long(table, wanted) if is_long else read_wide(table, wanted, missing)


def _with_columns(path: Path, features: Features, names: list[str] | None) -> Features:
    if names is None or features.names == names:
        return features
    places = find_columns(path, features.names, features.n_columns, names)
    if features.names is None:
        return Features(features.matrix, features.ids, names)
    if path.is_dir():
        raise DataFileError(path, "it was not written with the model's columns; write it again with their names")
    return Features(features.matrix[:, places], features.ids, names)
