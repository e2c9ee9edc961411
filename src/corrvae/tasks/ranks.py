"""Ranks of pairs among all candidates, from scores that come a block of rows at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.graphs.graph import CorrelationGraph
from corrvae.tasks.kernels.counting import count_better

# A scorer: given some vertices, the score of each with every vertex. Larger is better, whatever it measures.
BlockScores = Callable[[np.ndarray], np.ndarray]

# Scores held at a time.
_BLOCK = 1 << 23


@final
@dataclass(frozen=True, eq=False)
class PairRanks:
    """Where each pair stands among the candidates of one of its ends.

    Attributes
    ----------
    vertices, others
        The end that looks for the other, and the other. A pair stands here twice, once for each end.
    ranks
        Candidates that score at least as high as the pair, itself included: ties count against it.
    above
        Candidates that score higher; ``ranks - 1`` where no two scores are equal.
    candidates
        The number of candidates.

    Examples
    --------
    >>> PairRanks(*(np.array(part) for part in ([0, 1], [1, 0], [1, 2], [0, 1], [3, 3])))
    PairRanks(2 pairs of 2 vertices)
    """

    vertices: Int[np.ndarray, " pairs"]
    others: Int[np.ndarray, " pairs"]
    ranks: Int[np.ndarray, " pairs"]
    above: Int[np.ndarray, " pairs"]
    candidates: Int[np.ndarray, " pairs"]

    def __repr__(self) -> str:
        return f"PairRanks({len(self.ranks):,} pairs of {len(np.unique(self.vertices)):,} vertices)"


def rank_pairs(
    scores: BlockScores,
    pairs: Int[np.ndarray, "pairs 2"],
    n_vertices: int,
    *,
    known: CorrelationGraph | None = None,
) -> PairRanks:
    """Rank each pair among the candidates of either end.

    Candidates of a vertex are all vertices but itself and its neighbours in `known`.

    Parameters
    ----------
    scores
        Function of an array of vertices that gives their scores with every vertex, one row each; larger is better.
    pairs
        Pairs of vertex indices, none of them an edge of `known`.
    n_vertices
        The number of vertices.
    known
        The graph whose edges are no candidates: the one that was trained on.

    Returns
    -------
    PairRanks
        Sorted by vertex.

    Examples
    --------
    Points on a line, at 0, 1, 3 and 4. Seen from 0, the second is nearest; seen from it, 0 is nearest; and so on.

    >>> places = np.array([0.0, 1.0, 3.0, 4.0])
    >>> found = rank_pairs(lambda rows: -np.abs(places[rows, None] - places), np.array([[0, 1], [0, 2]]), 4)
    >>> found.vertices.tolist(), found.others.tolist(), found.ranks.tolist()
    ([0, 0, 1, 2], [1, 2, 0, 0], [1, 2, 1, 3])
    """
    pairs = _checked_pairs(pairs, n_vertices, known)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    vertices, others = np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])
    indptr, indices, degrees = _known_neighbours(known, n_vertices)
    ranks, above = np.empty(len(both), np.int64), np.empty(len(both), np.int64)
    asked, begins = np.unique(vertices, return_index=True)
    begins = np.append(begins, len(both))
    step = max(1, _BLOCK // n_vertices)
    for start in range(0, len(asked), step):
        rows = asked[start : start + step]
        part = slice(begins[start], begins[start + len(rows)])
        block = _checked_block(scores(rows), rows, n_vertices)
        place = np.searchsorted(rows, vertices[part])
        ranks[part], above[part] = count_better(block, place, vertices[part], others[part], indptr, indices)
    return PairRanks(vertices, others, ranks, above, n_vertices - 1 - degrees[vertices])


def _known_neighbours(known: CorrelationGraph | None, n_vertices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if known is None:
        return np.zeros(n_vertices + 1, np.int64), np.empty(0, np.int64), np.zeros(n_vertices, np.int64)
    adjacency = known.to_scipy()
    return adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64), np.diff(adjacency.indptr)


def _checked_pairs(
    pairs: Int[np.ndarray, "pairs 2"], n_vertices: int, known: CorrelationGraph | None
) -> Int[np.ndarray, "pairs 2"]:
    wrong = np.flatnonzero(((pairs < 0) | (pairs >= n_vertices)).any(axis=1) | (pairs[:, 0] == pairs[:, 1]))
    if len(wrong):
        pair = tuple(pairs[wrong[0]].tolist())
        raise ValueError(f"pair {wrong[0]} is {pair}; pairs are of two different vertices from 0 to {n_vertices - 1}")
    if known is not None:
        if known.n_vertices != n_vertices:
            raise ValueError(f"known has {known.n_vertices:,} vertices where there are {n_vertices:,}")
        codes, edges = np.sort(pairs, axis=1) @ [n_vertices, 1], known.edges @ [n_vertices, 1]
        leaked = np.flatnonzero(np.isin(codes, edges))
        if len(leaked):
            pair = tuple(pairs[leaked[0]].tolist())
            raise ValueError(
                f"pair {leaked[0]}, {pair}, is an edge of known: what has been trained on cannot be ranked"
            )
    return pairs.astype(np.int64)


def _checked_block(
    block: np.ndarray, rows: Int[np.ndarray, " rows"], n_vertices: int
) -> Float[np.ndarray, "rows vertices"]:
    block = np.ascontiguousarray(block)
    if block.shape != (len(rows), n_vertices):
        raise ValueError(f"scores gave an array of shape {block.shape} where {(len(rows), n_vertices)} was asked for")
    if block.dtype not in (np.float32, np.float64):
        block = block.astype(np.float64)
    unknown = np.isnan(block)
    if unknown.any():
        row, column = np.argwhere(unknown)[0]
        raise ValueError(f"the score of vertices {rows[row]} and {column} is not a number")
    return block
