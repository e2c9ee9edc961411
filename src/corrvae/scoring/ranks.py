"""The ranks of given targets, by whichever search suits the metric and the points."""

import numpy as np
from jaxtyping import Int

from corrvae.monitor import Monitor, watch
from corrvae.ranks import Ranks, alone, current_ranks
from corrvae.scoring import factorised
from corrvae.scoring.found import FoundRanks
from corrvae.scoring.metrics import Metric
from corrvae.scoring.neighbors import MEMORY, is_correlated
from corrvae.scoring.points import Exclusions, Points


def rank(
    queries: Points,
    candidates: Points,
    metric: Metric,
    pairs: Int[np.ndarray, "pairs 2"],
    exclusions: Exclusions,
    *,
    same: bool = False,
    memory: int = MEMORY,
    progress: bool | None = None,
) -> FoundRanks:
    """Find the exact rank of each target among the candidates of its query; candidates with its score come first.

    Where there are several processes they divide the work, as in `corrvae.scoring.neighbors.nearest`.

    Parameters
    ----------
    queries, candidates, metric, exclusions, same, memory, progress
        As in `corrvae.scoring.neighbors.nearest`.
    pairs
        Positions of a query and of its target. A target counts as a candidate even if its query excludes it.

    Examples
    --------
    >>> from corrvae.scoring.metrics import MeanDistance
    >>> points = Points.of(np.array([[0.0], [1.0], [-1.0], [5.0]]), np.ones((4, 1)))
    >>> myself = Exclusions.of(4, np.arange(4), np.arange(4))
    >>> rank(points, points, MeanDistance(), np.array([[0, 1], [0, 3], [3, 1]]), myself).ranks
    array([2, 3, 1])
    """
    ranks = current_ranks()
    pairwise = is_correlated(queries, candidates, metric)
    if ranks.count > 1 and not pairwise:
        return _by_ranks(queries, candidates, metric, pairs, exclusions, ranks, memory, progress)

    def work(monitor: Monitor) -> FoundRanks:
        if pairwise:
            from corrvae.scoring import correlated

            return correlated.rank(
                queries, candidates, pairs, exclusions, same=same, memory=memory, monitor=monitor, ranks=ranks
            )
        return factorised.rank(queries, candidates, metric, pairs, exclusions, memory=memory, monitor=monitor)

    return watch(work, progress=progress)


def _by_ranks(
    queries: Points,
    candidates: Points,
    metric: Metric,
    pairs: Int[np.ndarray, "pairs 2"],
    exclusions: Exclusions,
    ranks: Ranks,
    memory: int,
    progress: bool | None,
) -> FoundRanks:
    """Rank the targets of each process's share of the queries, and put the shares together."""
    asked, query_of = np.unique(pairs[:, 0], return_inverse=True)
    by_query = np.argsort(query_of, kind="stable")
    share = ranks.share(len(asked))
    mine = by_query[slice(*np.searchsorted(query_of[by_query], [share.start, share.stop]))]
    with ranks.agreed(), alone():
        part = rank(
            queries,
            candidates,
            metric,
            pairs[mine],
            exclusions,
            memory=memory,
            progress=progress if ranks.is_first else False,
        )
    order = np.argsort(by_query)
    counts = ranks.sum(np.array([part.n_evaluated, part.n_pairs]))
    return FoundRanks(ranks.gather_rows(part.ranks)[order], ranks.gather_rows(part.scores)[order], *counts.tolist())
