"""By what data are recognised: their files, without reading what is in them, and the numbers that were made of them."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from corrvae.datasets.cache import locate
from corrvae.datasets.catalogue import CATALOGUE
from corrvae.errors import DataFileError
from corrvae.regular import open_regular

_DRAWN = ("tree", "small")


def data_files(name: str) -> dict[str, str]:
    """Give size and SHA-256 of the files of a data set, by their names; none for data that are drawn.

    Parameters
    ----------
    name
        As in the settings of a recipe: the name of a data set, or the path of one.

    Examples
    --------
    >>> data_files("tree")
    {}
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "ratings.csv")
    ...     _ = path.write_text("abc")
    ...     data_files(str(path))["ratings.csv"][:18]
    '3 bytes, ba7816bf8'
    """
    if name in _DRAWN:
        return {}
    place = locate(name) if name in CATALOGUE else Path(name)
    if not place.is_dir():
        return {place.name: _code(place)}
    members = {member for publication in CATALOGUE.values() for member, _ in publication.members}
    # they may be compressed, and lie in a folder of the archive's name
    found = sorted(path for path in place.rglob("*") if path.is_file() and _bare(path) in members)
    return {path.relative_to(place).as_posix(): _code(path) for path in found}


def fingerprint_all(*parts: Any) -> str:
    """Give a short code of several matrices of features or arrays of edges, in this order.

    Examples
    --------
    >>> edges = np.array([[0, 1], [1, 2]])
    >>> fingerprint_all(np.eye(3), edges) == fingerprint_all(np.eye(3), edges[:1])
    False
    """
    from corrvae.tables import fingerprint

    whole = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray) and np.issubdtype(part.dtype, np.integer):
            whole.update(repr(part.shape).encode())
            whole.update(np.ascontiguousarray(part, dtype=np.int64).data)
        else:
            whole.update(fingerprint(part).encode())
    return whole.hexdigest()


def _bare(path: Path) -> str:
    return path.stem if path.suffix in (".bz2", ".gz") else path.name


def _code(path: Path) -> str:
    try:
        status = path.stat()
        return _code_of(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise DataFileError(path, f"cannot be read ({error.strerror or error})") from error


@lru_cache(maxsize=64)  # many jobs ask for the same file
def _code_of(path: Path, size: int, changed: int) -> str:
    with open_regular(path) as file:
        return f"{size} bytes, {hashlib.file_digest(file, 'sha256').hexdigest()}"
