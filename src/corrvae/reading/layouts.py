"""Wide or long: whether a table has a row for each data point, or one for each point and item."""

import re
from typing import Literal, get_args

from corrvae.errors import DataFileError
from corrvae.reading.tables import TableFile

Layout = Literal["auto", "wide", "long"]

# Long tables have an id, an item, perhaps a value and perhaps a time.
_MOST_LONG_COLUMNS = 4
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# Names of a column of items.
ITEM_NAMES = frozenset(
    f"{thing}{gap}{end}"
    for thing in ("item", "movie", "book", "product", "song", "track", "article", "word", "term", "gene", "feature")
    for gap, end in (("", ""), ("", "id"), ("_", "id"), (" ", "id"), ("", "name"), ("_", "name"))
)


def check_layout(layout: str) -> None:
    """Refuse a layout that there is not.

    Examples
    --------
    >>> check_layout("long")
    """
    if layout not in get_args(Layout):
        raise ValueError(f"layout must be one of {', '.join(get_args(Layout))}, not {layout!r}")


def find_layout(table: TableFile, id_position: int, names: tuple[str, ...] | None = None) -> Literal["wide", "long"]:
    """Tell a long table from a wide one by its first rows.

    A table of two to four columns is long if its items are no numbers, if the column of items has a usual name for
    them, or if an id is there twice and items are those that are looked for. If an id is there twice and nothing else
    tells, the table may be a wide one with a mistake in it, and is refused. All others are wide.

    Parameters
    ----------
    table
        The file.
    id_position
        Where its ids are.
    names
        The features that are looked for; a table with columns of these names is wide.

    Raises
    ------
    DataFileError
        If it may be either.
    """
    if names is not None and set(names) <= set(table.names or ()):
        return "wide"
    if not 2 <= table.n_columns <= _MOST_LONG_COLUMNS:
        return "wide"
    item = long_positions(table, id_position)[1]
    if table.names is not None and table.names[item].strip().lower() in ITEM_NAMES:
        return "long"
    rows = table.sample([id_position, item])
    if any(row[1] and not _NUMBER.fullmatch(row[1]) for row in rows) and all(row[1] for row in rows):
        return "long"
    seen: set[str] = set()
    repeated = next((row[0] for row in rows if row[0] in seen or seen.add(row[0])), None)
    if repeated is None:
        return "wide"
    if names is not None and not {row[1] for row in rows}.isdisjoint(names):
        return "long"
    raise DataFileError(
        table.path,
        f"the id {repeated!r} is there twice, and {table.name_of(item)} holds numbers: with a row for each id, a row "
        "is one too many (--layout wide says which); with a row for each id and item, give --layout long",
    )


def tell_long(table: TableFile, id_position: int) -> str:
    """Say which columns of a table are read as ids, items and values, and which are not read."""
    positions = long_positions(table, id_position)
    said = (f"{part}={_short_name(table, k)}" for part, k in zip(("id", "item", "value"), positions, strict=False))
    left = [_short_name(table, k) for k in range(table.n_columns) if k not in positions]
    return f"read as a long table: {', '.join(said)}" + (f"; not read: {', '.join(left)}" if left else "")


def long_positions(table: TableFile, id_position: int) -> list[int]:
    """Give where a long table has its ids, its items and, if there are more columns, its values."""
    others = [k for k in range(table.n_columns) if k != id_position]
    return [id_position, *others[:2]]


def _short_name(table: TableFile, position: int) -> str:
    return table.name_of(position) if table.names is None else table.names[position]
