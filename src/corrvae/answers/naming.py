"""Ids as files and command lines spell them, matched with the ids that a model knows."""

import csv
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Shaped

from corrvae.errors import DataFileError
from corrvae.graphs.files.reading import PARQUET_MAGIC, FileLayout, open_data
from corrvae.graphs.ids import VertexIds, id_array

_SHOWN = 3
_MOST_TEXT_BYTES = 1 << 28


def spell_like(ids: Any, known: Shaped[np.ndarray, " known"]) -> Shaped[np.ndarray, " ids"]:
    """Turn ids into the kind that known ones are of, where they are spelled alike: "7" into 7, or 7 into "7".

    Examples
    --------
    >>> spell_like(["7", "ann"], np.array([7, 8])).tolist(), spell_like([7], np.array(["7"], dtype=object)).tolist()
    ([7, 'ann'], ['7'])
    """
    given = id_array(ids, "ids")
    if known.dtype.kind == "i":
        return given if given.dtype.kind == "i" else id_array([_as_integer(value) for value in given.tolist()], "ids")
    if given.dtype.kind == "i" and len(known) and all(isinstance(value, str) for value in known[:_SHOWN].tolist()):
        return id_array([str(value) for value in given.tolist()], "ids")
    return given


def find_known(
    ids: Any, known: Shaped[np.ndarray, " known"], of: str, place: Callable[[int], str] | None = None
) -> Shaped[np.ndarray, " ids"]:
    """Give ids as the known ones are spelled, and refuse those that are not among them.

    Parameters
    ----------
    ids
        The ids asked for.
    known
        The ids there are.
    of
        Whose they are, for the error.
    place
        Says where the k-th id was found, for the error.

    Examples
    --------
    >>> find_known(["8"], np.array([7, 8]), "run").tolist()
    [8]
    """
    given = spell_like(ids, known)
    missing = np.flatnonzero(VertexIds(known.copy(), len(known)).find(given) < 0)
    if not len(missing):
        return given
    shown = ", ".join(repr(given[k : k + 1].tolist()[0]) for k in missing[:_SHOWN])
    where = "" if place is None else f" ({place(int(missing[0]))})"
    subject = f"id {shown} is" if len(missing) == 1 else f"{len(missing):,} ids are"
    listed = "" if len(missing) == 1 else f": {shown}{', ...' if len(missing) > _SHOWN else ''}"
    example = repr(known[:1].tolist()[0]) if len(known) else "none"
    raise ValueError(
        f"{subject} not among the {len(known):,} points of {of}, whose ids are like {example}{listed}{where}"
    )


def read_ids(given: str) -> list[str]:
    """Read ids that are separated by commas, or the name of a file that has one in each line.

    Of a file with several columns the first is taken; a first line "id" is a heading.

    Examples
    --------
    >>> read_ids("ann, bob")
    ['ann', 'bob']
    """
    path = Path(given)
    if not path.is_file():
        ids = [part.strip() for part in given.split(",")]
        if not all(ids):
            raise ValueError(f"{given!r} is no list of ids separated by commas, and there is no file of this name")
        return ids
    with open_data(path) as stream:
        try:
            text = io.StringIO(read_whole(path, stream).decode("utf-8-sig"), newline="")
        except UnicodeDecodeError as error:
            raise DataFileError(
                path, "this is no text in UTF-8: ids are read from a text file, one in each line"
            ) from error
    try:
        ids = [row[0].strip() for row in csv.reader(text) if row and row[0].strip()]
    except csv.Error as error:
        raise DataFileError(path, f"cannot be read as a list of ids ({error})") from error
    if ids and ids[0].lower() in ("id", "ids"):
        ids = ids[1:]
    if not ids:
        raise DataFileError(path, "there are no ids in it")
    return ids


def read_whole(path: Path, stream: io.BufferedIOBase) -> bytes:
    """Read a text that is not large: a compressed one may stand for more than there is memory."""
    text = stream.read(_MOST_TEXT_BYTES + 1)
    if len(text) > _MOST_TEXT_BYTES:
        raise DataFileError(path, f"has more than {_MOST_TEXT_BYTES:,} bytes, too many for ids")
    return text


@final
@dataclass(frozen=True, eq=False)
class FilePairs:
    """Pairs of ids in the order of a file.

    Attributes
    ----------
    ids
        One pair in each row.
    place
        Says where in the file the k-th pair is.
    headless
        Whether the first pair may be the names of the columns, because no header was seen.
    """

    ids: Shaped[np.ndarray, "pairs 2"]
    place: Callable[[int], str]
    headless: bool = False


def read_pairs(path: Path) -> FilePairs:
    r"""Read the first two columns of a file as pairs of ids, none dropped, none turned round.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pairs.csv")
    ...     _ = path.write_text("source,target\nbob,ann\nbob,ann\n")
    ...     read_pairs(path).ids.tolist()
    [['bob', 'ann'], ['bob', 'ann']]
    """
    from corrvae.graphs.files.parquet import read_parquet
    from corrvae.graphs.files.text import read_text

    with open_data(path) as stream:
        magic = stream.read(len(PARQUET_MAGIC))
    if not magic:
        raise DataFileError(path, "the file is empty")
    table = (read_parquet if magic == PARQUET_MAGIC else read_text)(path, FileLayout())
    return FilePairs(table.coded.distinct[table.coded.codes], table.place, table.headless)


def find_known_pairs(pairs: FilePairs, known: Shaped[np.ndarray, " known"], of: str) -> Shaped[np.ndarray, "pairs 2"]:
    """Give a file's pairs as the known ids are spelled, and refuse ids that are not among them.

    Where only the first line has unknown ids, and no other, it is a header; a warning says that it was left out.

    Parameters
    ----------
    pairs
        The pairs.
    known
        The ids there are.
    of
        Whose they are, for the error.

    Examples
    --------
    >>> pairs = FilePairs(np.array([["7", "8"], ["8", "7"]], dtype=object), "line {}".format)
    >>> find_known_pairs(pairs, np.array([7, 8]), "run").tolist()
    [[7, 8], [8, 7]]
    """
    ids, skipped = pairs.ids, 0
    if pairs.headless and len(ids) > 1:
        missing = VertexIds(known.copy(), len(known)).find(spell_like(ids.ravel(), known)).reshape(-1, 2) < 0
        if missing[0].all() and not missing[1:].any():
            first, second = ids[0].tolist()
            warnings.warn(
                f"{pairs.place(0)} of the pairs is taken for a header: {first!r} and {second!r} are no ids of {of}",
                stacklevel=3,
            )
            ids, skipped = ids[1:], 1
    flat = find_known(ids.ravel(), known, of, lambda position: pairs.place(position // 2 + skipped))
    return flat.reshape(-1, 2)


def _as_integer(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    digits = value.removeprefix("-")
    return int(value) if digits.isascii() and digits.isdigit() and str(int(value)) == value else value
