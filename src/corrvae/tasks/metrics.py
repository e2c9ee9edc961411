"""What the tasks report, each as a function of ranks or labels.

Ranks are counted with "at least as good": the best of all is 1, and a tie counts against the method.
"""

from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

Ranks = Int[np.ndarray, " pairs"]
Labels = Shaped[np.ndarray, " points"]


def reciprocal_rank(ranks: Ranks) -> float:
    """Mean of 1 / rank.

    Examples
    --------
    Found first, second and fourth: (1 + 1/2 + 1/4) / 3 = 7/12.

    >>> round(reciprocal_rank(np.array([1, 2, 4])), 4)
    0.5833
    """
    return float(np.mean(1.0 / _checked(ranks)))


def hits_at(ranks: Ranks, k: int) -> float:
    """Share of ranks that are at most k.

    Examples
    --------
    Two of three are among the best two.

    >>> round(hits_at(np.array([1, 2, 4]), 2), 4)
    0.6667
    """
    return float(np.mean(_checked(ranks) <= k))


def ncrr(ranks: Ranks, vertices: Ranks) -> float:
    """Normalised cumulative reciprocal rank, NCRR.

    A vertex with k held-out edges of ranks r_1, ..., r_k has CRR = 1/r_1 + ... + 1/r_k, which is at most the harmonic
    number H(k) = 1 + 1/2 + ... + 1/k, because two edges cannot both be first. NCRR is the mean of CRR / H(k) over the
    vertices that have a held-out edge.

    Parameters
    ----------
    ranks
        The rank of each held-out edge at the vertex it is looked for from: every edge stands there twice.
    vertices
        That vertex.

    Examples
    --------
    Vertex 7 finds its two at 1 and 3: (1 + 1/3) / (1 + 1/2) = 8/9. Vertex 9 finds its one at 4: 1/4. The mean is 41/72.

    >>> round(ncrr(np.array([1, 4, 3]), np.array([7, 9, 7])), 4)
    0.5694
    """
    _, place, counts = np.unique(vertices, return_inverse=True, return_counts=True)
    cumulative = np.bincount(place, weights=1.0 / _checked(ranks))
    harmonic = np.cumsum(1.0 / np.arange(1, counts.max() + 1))
    return float(np.mean(cumulative / harmonic[counts - 1]))


def area_under_curve(ranks: Ranks, above: Ranks, candidates: Ranks, vertices: Ranks) -> float:
    """Mean share of a vertex's unrelated candidates that score below its held-out edge, ties counting half (AUC).

    It is exact, not sampled: the candidates of a vertex are those it was ranked among, without its held-out edges.
    Edges all of whose candidates are held-out edges say nothing and are left out.

    Parameters
    ----------
    ranks, above
        Candidates that score at least as high as the edge, itself included; and those that score higher.
    candidates
        The number of candidates at the edge's vertex, held-out edges included.
    vertices
        The vertex that each edge is looked for from.

    Examples
    --------
    One vertex, five candidates: the held-out ones score 9 and 5, the others 7, 5 and 1. The first beats all three, the
    second beats one and ties with one: (3/3 + 1.5/3) / 2 = 0.75.

    >>> area_under_curve(np.array([1, 4]), np.array([0, 2]), np.array([5, 5]), np.array([0, 0]))
    0.75
    """
    order = np.lexsort((_checked(ranks), vertices))
    vertex, at_least, higher = vertices[order], ranks[order], above[order]
    _, begins, place, counts = np.unique(vertex, return_index=True, return_inverse=True, return_counts=True)
    # a vertex's held-out edges are sorted by rank, equal ranks being equal scores: count them as candidates were
    ties_begin = np.flatnonzero(np.r_[True, (np.diff(at_least) != 0) | (np.diff(vertex) != 0)])
    ties_end = np.r_[ties_begin[1:], len(order)]
    group = np.repeat(np.arange(len(ties_begin)), ties_end - ties_begin)
    at_least = at_least - (ties_end[group] - begins[place])
    higher = higher - (ties_begin[group] - begins[place])
    unrelated = candidates[order] - counts[place]
    told = unrelated > 0
    if not told.any():
        raise ValueError("every candidate is a held-out edge, so there is nothing that one could score above")
    return float(np.mean(1.0 - (at_least + higher)[told] / (2.0 * unrelated[told])))


def normalised_mutual_information(labels: Labels, found: Labels) -> float:
    """Mutual information of two clusterings over the mean of their entropies (NMI).

    Examples
    --------
    Two and two, found as three and one. The information is 1/2 log 4/3 + 1/4 log 2/3 + 1/4 log 2 = 0.2158; the
    entropies are log 2 = 0.6931 and -3/4 log 3/4 - 1/4 log 1/4 = 0.5623; so 0.2158 / 0.6277 = 0.3437.

    >>> round(normalised_mutual_information(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])), 4)
    0.3437
    """
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(*_pair(labels, found)))


def adjusted_rand_index(labels: Labels, found: Labels) -> float:
    """Share of pairs of points on which two clusterings agree, with 0 for chance and 1 for identity (ARI).

    Examples
    --------
    Three and three, found as two and four. Of 15 pairs, 1 + 3 = 4 are together in both, 3 + 3 = 6 in the first, and
    1 + 6 = 7 in the second. By chance 6 * 7 / 15 = 2.8 would be, at most (6 + 7) / 2 = 6.5:
    (4 - 2.8) / (6.5 - 2.8) = 12/37.

    >>> round(adjusted_rand_index(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])), 4)
    0.3243
    """
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(*_pair(labels, found)))


def _checked(ranks: Ranks) -> Ranks:
    if not len(ranks):
        raise ValueError("there are no ranks to average")
    if ranks.min() < 1:
        place = int(np.flatnonzero(ranks < 1)[0])
        raise ValueError(f"rank {place} is {ranks[place]}, but the best rank is 1")
    return ranks


def _pair(labels: Any, found: Any) -> tuple[Any, Any]:
    if len(labels) != len(found):
        raise ValueError(f"there are {len(labels):,} labels but {len(found):,} found ones")
    return labels, found
