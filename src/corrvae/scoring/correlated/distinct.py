"""Points that are equal to the bit: the pair network sees each of them once."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Int

from corrvae.scoring.points import Points

# Rows whose vectors are compared at a time.
_ROWS = 2048


@final
@dataclass(frozen=True, eq=False)
class Distinct:
    """Groups of equal points.

    Parameters
    ----------
    representatives
        One point of each group: its first.
    offsets, members
        ``members[offsets[g] : offsets[g + 1]]`` are the points of group g, ascending.

    Examples
    --------
    >>> Distinct.each(3).members
    array([0, 1, 2])
    """

    representatives: Int[np.ndarray, " groups"]
    offsets: Int[np.ndarray, " boundaries"]
    members: Int[np.ndarray, " points"]

    @classmethod
    def each(cls, n_points: int) -> "Distinct":
        """Every point in a group of its own."""
        return cls(np.arange(n_points), np.arange(n_points + 1), np.arange(n_points))

    @classmethod
    def some(cls, positions: Int[np.ndarray, " chosen"]) -> "Distinct":
        """These points alone, each in a group of its own."""
        return cls(positions, np.arange(len(positions) + 1), positions)

    @classmethod
    def of(cls, points: Points) -> "Distinct":
        """Group points whose means, standard deviations and prepared vectors are equal to the bit."""
        from corrvae.scoring.correlated.kernels.hashing import mix_rows

        hashes = np.zeros(len(points), np.uint64)
        for piece in _pieces(np.arange(len(points))):
            of_piece = hashes[piece]
            for rows in _rows(points, piece):
                mix_rows(rows.view(np.uint32), of_piece)
            hashes[piece] = of_piece
        _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        if len(first) == len(points):
            return cls.each(len(points))
        representative = first[group]
        if not _equal(points, np.flatnonzero(representative != np.arange(len(points))), representative):
            return cls.each(len(points))
        # groups in the order of their first points
        place = np.empty(len(first), np.int64)
        place[np.argsort(first)] = np.arange(len(first))
        offsets = np.zeros(len(first) + 1, np.int64)
        np.cumsum(np.bincount(place[group]), out=offsets[1:])
        return cls(np.sort(first), offsets, np.argsort(place[group], kind="stable"))

    def __len__(self) -> int:
        return len(self.representatives)


def _pieces(indices: np.ndarray) -> list[np.ndarray]:
    return np.split(indices, range(_ROWS, len(indices), _ROWS))


def _rows(points: Points, indices: np.ndarray) -> list[np.ndarray]:
    rows = [points.mean[indices], points.stddev[indices]]
    if points.vectors is not None:
        rows.append(np.ascontiguousarray(points.vectors.at(indices).numpy(), np.float32))
    return rows


def _equal(points: Points, indices: np.ndarray, representative: np.ndarray) -> bool:
    """Whether rows equal those that stand for them; different rows of one hash are next to impossible, not more."""
    for piece in _pieces(indices):
        for rows, others in zip(_rows(points, piece), _rows(points, representative[piece]), strict=True):
            if not np.array_equal(rows.view(np.uint32), others.view(np.uint32)):
                return False
    return True
