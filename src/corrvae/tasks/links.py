"""The link task: find held-out edges among all vertices that are not known to be neighbours."""

from dataclasses import dataclass
from typing import Literal, final

from corrvae.graphs.splits import EdgeSplit
from corrvae.tasks.metrics import area_under_curve, hits_at, ncrr, reciprocal_rank
from corrvae.tasks.ranks import BlockScores, PairRanks, rank_pairs


@final
@dataclass(frozen=True)
class LinkScores:
    """How well held-out edges were found; all are better larger, and 1 at best.

    Attributes
    ----------
    ncrr
        Normalised cumulative reciprocal rank: the mean over vertices that have a held-out edge.
    mrr, hits_1, hits_10, hits_100
        Mean reciprocal rank, and shares of ranks up to 1, 10 and 100, over all held-out edges from both ends.
    auc
        Share of unrelated candidates that score below a held-out edge.
    n_vertices
        Vertices with a held-out edge.

    Examples
    --------
    >>> import numpy as np
    >>> from corrvae.tasks import embedding_scores, rank_pairs
    >>> places = np.array([[0.0], [1.0], [5.0]])
    >>> scores = score_links(rank_pairs(embedding_scores(places), np.array([[0, 1]]), 3))
    >>> scores.mrr, scores.n_vertices
    (1.0, 2)
    """

    ncrr: float
    mrr: float
    hits_1: float
    hits_10: float
    hits_100: float
    auc: float
    n_vertices: int


def rank_links(scores: BlockScores, split: EdgeSplit, part: Literal["validation", "test"] = "test") -> PairRanks:
    """Rank the held-out edges of a split from both ends.

    Candidates are all vertices but the one that asks and its training neighbours.

    Parameters
    ----------
    scores
        Function of an array of vertices that gives their scores with every vertex; larger is better.
    split
        What was trained on, and what was held out.
    part
        "validation" to choose a model, "test" to report it.

    Examples
    --------
    >>> from corrvae.graphs import CorrelationGraph, split_edges
    >>> from corrvae.tasks import degree_scores
    >>> graph = CorrelationGraph.from_edges([(i, (i + k) % 30) for i in range(30) for k in (1, 2)])
    >>> split = split_edges(graph, random_state=0)
    >>> rank_links(degree_scores(split.train), split)
    PairRanks(... pairs of 30 vertices)
    """
    if part not in ("validation", "test"):
        raise ValueError(f'part must be "validation" or "test", not {part!r}')
    held = split.validation if part == "validation" else split.test
    return rank_pairs(scores, held, split.train.n_vertices, known=split.train)


def score_links(ranks: PairRanks) -> LinkScores:
    """Turn ranks of held-out edges into the numbers of the link task.

    Examples
    --------
    Points at 0, 1, 3 and 4 on a line, two held-out edges at the first. Its NCRR is (1 + 1/2) / (1 + 1/2) = 1; the
    others find it first, and third behind two nearer ones: (1 + 1 + 1/3) / 3.

    >>> import numpy as np
    >>> from corrvae.tasks import embedding_scores, rank_pairs
    >>> places = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> found = score_links(rank_pairs(embedding_scores(places), np.array([[0, 1], [0, 2]]), 4))
    >>> round(found.ncrr, 4), round(found.mrr, 4), found.hits_1, found.n_vertices
    (0.7778, 0.7083, 0.5, 3)
    """
    return LinkScores(
        ncrr=ncrr(ranks.ranks, ranks.vertices),
        mrr=reciprocal_rank(ranks.ranks),
        hits_1=hits_at(ranks.ranks, 1),
        hits_10=hits_at(ranks.ranks, 10),
        hits_100=hits_at(ranks.ranks, 100),
        auc=area_under_curve(ranks.ranks, ranks.above, ranks.candidates, ranks.vertices),
        n_vertices=len(set(ranks.vertices.tolist())),
    )
