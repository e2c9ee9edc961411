"""Ids and items: strings become numbers as they come by, and ids that spell integers become integers at the end."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Int, Shaped

if TYPE_CHECKING:
    import pyarrow

# As Python writes an integer: 007 stays a string, so that it is written as it was read.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


@final
class Coder:
    """Numbers strings in the order in which they first come by.

    Parameters
    ----------
    known
        Strings with the numbers 0, 1, ...; all others then have the number -1.

    Examples
    --------
    >>> import pyarrow
    >>> coder = Coder()
    >>> coder.code(pyarrow.array(["b", "a", "b"]).dictionary_encode()).tolist(), coder.strings
    ([0, 1, 0], ['b', 'a'])
    """

    def __init__(self, known: Sequence[str] | None = None) -> None:
        self._numbers = {string: number for number, string in enumerate(known or ())}
        self._closed = known is not None

    def code(self, column: "pyarrow.Array") -> Int[np.ndarray, " rows"]:
        """Give the number of each string of a column that is encoded by a dictionary."""
        numbers = self._numbers
        found: Iterable[int]
        strings = [string.strip() for string in column.dictionary.to_pylist()]
        if self._closed:
            found = (numbers.get(string, -1) for string in strings)
        else:
            found = (numbers.setdefault(string, len(numbers)) for string in strings)
        number_of = np.fromiter(found, np.int32, len(strings))
        return number_of[column.indices.to_numpy()]

    @property
    def strings(self) -> list[str]:
        """The strings, in the order of their numbers."""
        return list(self._numbers)


def texts_of(column: "pyarrow.Array") -> list[Any]:
    """Give a column's values; strings under numbers are made once each, however many rows have them.

    Examples
    --------
    >>> import pyarrow
    >>> texts_of(pyarrow.array(["b", "a", None, "b"]).dictionary_encode())
    ['b', 'a', None, 'b']
    """
    if not hasattr(column, "dictionary"):
        return column.to_pylist()
    strings = column.dictionary.to_pylist()
    return [None if place is None else strings[place] for place in column.indices.to_pylist()]


def as_ids(strings: Sequence[str]) -> Shaped[np.ndarray, " ids"]:
    """Give ids as integers if all of them are written as such, else as strings.

    Examples
    --------
    >>> as_ids(["3", "12"]), as_ids(["3", "x"]), as_ids(["007"])
    (array([ 3, 12]), array(['3', 'x'], dtype=object), array(['007'], dtype=object))
    """
    if all(map(_INTEGER.fullmatch, strings)):
        return np.array([int(string) for string in strings], dtype=np.int64)
    ids = np.empty(len(strings), dtype=object)
    ids[:] = strings
    return ids
