"""Features from a folder of shards."""

import warnings
from pathlib import Path

import numpy as np

from corrvae.errors import DataFileError, FolderError
from corrvae.persistence import DOCUMENT
from corrvae.reading.features import Features
from corrvae.shards.folder import ShardFolder, open_shards


def read_shards(path: Path, names: tuple[str, ...] | None = None) -> Features:
    """Open a folder of shards, once its files match their checksums; its matrix stays on the disk.

    Parameters
    ----------
    path
        The folder.
    names
        The items that are to be the columns, as in a long table: others are left out, and those that are not there are
        zeros. ``None``: all there are.
    """
    if not (path / DOCUMENT).exists():
        raise DataFileError(
            path, "this is a folder without shards; corrvae data shard makes some of long tables in files or folders"
        )
    try:
        found = open_shards(path)
        found.matrix.check()
    except FolderError as error:
        raise DataFileError(error.path, error.problem) from error
    if names is None or found.names == names:
        return Features(found.matrix, found.ids, found.names)
    if found.names is None:
        n_columns = found.matrix.shape[1]
        if n_columns != len(names):
            raise DataFileError(path, f"it has {n_columns:,} columns, where the model was trained with {len(names):,}")
        return Features(found.matrix, found.ids, names)
    return _choose(path, found, found.names, names)


def _choose(path: Path, found: ShardFolder, items: tuple[str, ...], names: tuple[str, ...]) -> Features:
    place_of = {name: place for place, name in enumerate(names)}
    places = np.array([place_of.get(item, -1) for item in items], dtype=np.int64)
    n_unknown = int((places < 0).sum())
    if n_unknown:
        which = "1 item that the model does not know is" if n_unknown == 1 else f"{n_unknown:,} items unknown to it are"
        warnings.warn(f"{path}: the model reads {len(names):,} items; {which} left out", stacklevel=4)
    return Features(found.matrix.with_columns(places, len(names)), found.ids, names)
