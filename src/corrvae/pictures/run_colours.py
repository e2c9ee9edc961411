"""By what the points of a map are coloured: groups that were found, or a column of a file."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float, Shaped

from corrvae.answers.naming import read_whole, spell_like
from corrvae.errors import DataFileError
from corrvae.graphs.files.reading import PARQUET_MAGIC, open_data
from corrvae.graphs.ids import VertexIds
from corrvae.parquet import decoded, open_checked
from corrvae.pictures.reading import as_text

_STEPS = 5  # of numbers, from the lowest to the highest fifth
_FEW = 8  # different numbers that may be kinds rather than amounts
_LONGEST = 40
_UNKNOWN = "not given"


@final
@dataclass(frozen=True, eq=False)
class Colouring:
    """A group for each point.

    Attributes
    ----------
    title
        What the groups are, for people.
    groups
        The number of each point's group.
    names
        What the groups are called, by number.
    """

    title: str
    groups: Float[np.ndarray, " points"]
    names: dict[float, str]


def colour_by_labels(labels: Shaped[np.ndarray, " points"], title: str) -> Colouring:
    """Colour by numbered groups.

    Examples
    --------
    >>> colour_by_labels(np.array([1, 0]), "cluster").names
    {0.0: 'cluster 0', 1.0: 'cluster 1'}
    """
    return Colouring(title, labels.astype(float), {float(n): f"{title} {n}" for n in np.unique(labels).tolist()})


def colour_by_column(given: str, ids: Shaped[np.ndarray, " points"]) -> Colouring:
    r"""Colour by a column of a table, given as FILE:COLUMN; its ids are in its first column.

    Numbers of more than a few different values are cut into fifths; all else are kinds.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("id,town\nann,Rome\nbob,Oslo\n")
    ...     colour_by_column(f"{path}:town", np.array(["bob", "ann"], object)).names
    {0.0: 'Oslo', 1.0: 'Rome'}
    """
    name, _, column = given.rpartition(":")
    if not name or not column:
        raise ValueError(f"what to colour by must be given as FILE:COLUMN, got {given!r}")
    path = Path(name)
    found = _read_column(path, column)
    where = VertexIds(ids.copy(), len(ids)).find(spell_like(list(found), ids))
    if not (where >= 0).any():
        raise DataFileError(path, f"none of its ids, such as {next(iter(found), '')!r}, is that of a point")
    values: list[str] = [_UNKNOWN] * len(ids)
    for place, value in zip(where.tolist(), found.values(), strict=True):
        if place >= 0 and value:
            values[place] = value
    return _group(values, column)


def _group(values: list[str], title: str) -> Colouring:
    numbers = np.array([_as_float(value) for value in values])
    given = np.array([value != _UNKNOWN for value in values])
    amounts = np.isfinite(numbers[given]).all() and len(np.unique(numbers[given])) > _FEW
    if not amounts:
        kinds = sorted(set(values), key=lambda value: (value == _UNKNOWN, value))
        number = {value: float(position) for position, value in enumerate(kinds)}
        shown = {position: as_text(value, longest=_LONGEST) for value, position in number.items()}
        return Colouring(title, np.array([number[value] for value in values]), shown)
    bounds = np.quantile(numbers[given], np.linspace(0, 1, _STEPS + 1))
    groups = np.where(given, np.clip(np.searchsorted(bounds, numbers, "right") - 1, 0, _STEPS - 1), _STEPS).astype(
        float
    )
    names = {float(k): f"{bounds[k]:.4g} to {bounds[k + 1]:.4g}" for k in range(_STEPS)} | {float(_STEPS): _UNKNOWN}
    return Colouring(title, groups, {group: names[group] for group in np.unique(groups).tolist()})


def _read_column(path: Path, column: str) -> dict[Any, str]:
    """Give the value of each id, as text."""
    with open_data(path) as stream:
        magic = stream.read(len(PARQUET_MAGIC))
    if magic == PARQUET_MAGIC:
        return _from_parquet(path, column)
    with open_data(path) as stream:
        try:
            text = read_whole(path, stream).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataFileError(path, "this is neither Parquet nor text in UTF-8") from error
    # as it is: a field in quotes may hold line ends, and other signs that end lines elsewhere
    stream = io.StringIO(text, newline="")
    first = stream.readline()
    stream.seek(0)
    rows = csv.reader(stream, delimiter=max(",\t;", key=first.count))
    try:
        names = [name.strip() for name in next(rows, [])]
        place = _place(path, names, column)
        return {row[0].strip(): row[place].strip() for row in rows if len(row) > place}
    except csv.Error as error:
        raise DataFileError(path, f"cannot be read as delimited text ({error})") from error


def _from_parquet(path: Path, column: str) -> dict[Any, str]:
    import pyarrow as pa

    try:
        size = path.stat().st_size
        file = open_checked(path, size)
        names = file.schema_arrow.names
        table = decoded(file.read(columns=[names[0], names[_place(path, names, column)]]), size)
        ids, values = table.columns[0].to_pylist(), table.columns[-1].to_pylist()
    except DataFileError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        raise DataFileError(path, f"this Parquet file cannot be read ({error})") from error
    if pa.types.is_nested(table.columns[0].type):
        raise DataFileError(path, f"its first column holds {table.columns[0].type}; ids are integers or strings")
    # what is not equal to itself is not a number: a table's way to leave a number out
    absent = (value is None or value != value for value in values)
    return {name: "" if no else str(value) for name, value, no in zip(ids, values, absent, strict=True)}


def _place(path: Path, names: list[str], column: str) -> int:
    if column not in names[1:]:
        raise DataFileError(path, f"there is no column {column!r} beside the ids; there are {', '.join(names[1:21])}")
    return names.index(column, 1)


def _as_float(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")
