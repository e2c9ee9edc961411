"""Wide or long: whether a table has a row for each data point, or one for each point and item."""

import re
from typing import Literal, get_args

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

    A table of two to four columns is long if an id is there twice, if its items are no numbers, or if the column of
    items has a usual name for them. All others are wide.

    Parameters
    ----------
    table
        The file.
    id_position
        Where its ids are.
    names
        The features that are looked for; a table with columns of these names is wide.
    """
    if names is not None and set(names) <= set(table.names or ()):
        return "wide"
    if not 2 <= table.n_columns <= _MOST_LONG_COLUMNS:
        return "wide"
    item = long_positions(table, id_position)[1]
    if table.names is not None and table.names[item].strip().lower() in ITEM_NAMES:
        return "long"
    rows = table.sample([id_position, item])
    repeats = len({row[0] for row in rows}) < len(rows)
    words = any(row[1] and not _NUMBER.fullmatch(row[1]) for row in rows) and all(row[1] for row in rows)
    return "long" if repeats or words else "wide"


def long_positions(table: TableFile, id_position: int) -> list[int]:
    """Give where a long table has its ids, its items and, if there are more columns, its values."""
    others = [k for k in range(table.n_columns) if k != id_position]
    return [id_position, *others[:2]]
