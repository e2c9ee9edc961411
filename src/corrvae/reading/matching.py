"""Ids of one file among those of another, which may have written them in another way."""

import numpy as np
from jaxtyping import Int, Shaped

from corrvae.graphs.ids import VertexIds


def find_ids(known: Shaped[np.ndarray, " known"], wanted: Shaped[np.ndarray, " wanted"]) -> Int[np.ndarray, " wanted"]:
    """Give the place of each wanted id among the known ones, and -1 where it is not there.

    Integers match the strings that spell them: a file that has a word among its ids holds strings, another of the same
    points may hold integers.

    Parameters
    ----------
    known
        Distinct ids, as `read_features` and graphs have them: integers, or an array of objects.
    wanted
        Ids to look for.

    Examples
    --------
    >>> find_ids(np.array([10, 20, 30]), np.array(["30", "x", "10"], dtype=object)).tolist()
    [2, -1, 0]
    """
    if known.dtype.kind != wanted.dtype.kind:
        known, wanted = _spelled(known), _spelled(wanted)
    return VertexIds(known.copy(), len(known)).find(wanted)


def _spelled(ids: np.ndarray) -> np.ndarray:
    if ids.dtype.kind != "i":
        return ids
    spelled = np.empty(len(ids), dtype=object)
    spelled[:] = [str(value) for value in ids.tolist()]
    return spelled
