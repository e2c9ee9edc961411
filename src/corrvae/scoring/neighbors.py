"""The best candidates of each query, by whichever search suits the metric and the points."""

import numpy as np

from corrvae.monitor import Monitor, watch
from corrvae.ranks import Ranks, alone, current_ranks
from corrvae.scoring import factorised
from corrvae.scoring.found import Found
from corrvae.scoring.metrics import Metric
from corrvae.scoring.points import Exclusions, Points

# Bytes that a search may take for its working space.
MEMORY = 512 * 2**20


def nearest(
    queries: Points,
    candidates: Points,
    metric: Metric,
    n_neighbors: int,
    exclusions: Exclusions,
    *,
    same: bool = False,
    memory: int = MEMORY,
    progress: bool | None = None,
) -> Found:
    """Find the exact best candidates of each query, best first.

    In a process group of torch the ranks divide the work, and all receive the result, which is that of one rank.

    Parameters
    ----------
    queries, candidates
        The points. If both have vectors of a pair network, a metric that uses correlations takes them in.
    metric
        The score.
    n_neighbors
        How many candidates.
    exclusions
        Candidates that queries leave out.
    same
        Whether the queries are the candidates, so that a pair serves both of its ends.
    memory
        Bytes of working space.
    progress
        Show a bar; ``None``: on a terminal, once it takes long.

    Examples
    --------
    >>> import numpy as np
    >>> from corrvae.scoring.metrics import Cosine
    >>> points = Points.of(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]]), np.ones((3, 2)))
    >>> nearest(points, points, Cosine(), 1, Exclusions.of(3, np.arange(3), np.arange(3))).positions.tolist()
    [[2], [2], [0]]
    """
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors must be positive, got {n_neighbors}")

    ranks = current_ranks()
    pairwise = is_correlated(queries, candidates, metric)
    if ranks.count > 1 and not (pairwise and same):
        return _by_ranks(queries, candidates, metric, n_neighbors, exclusions, ranks, memory, progress)

    def work(monitor: Monitor) -> Found:
        if pairwise:
            from corrvae.scoring import correlated

            return correlated.nearest(
                queries, candidates, n_neighbors, exclusions, same=same, memory=memory, monitor=monitor, ranks=ranks
            )
        return factorised.nearest(queries, candidates, metric, n_neighbors, exclusions, memory=memory, monitor=monitor)

    return watch(work, progress=progress)


def _by_ranks(
    queries: Points,
    candidates: Points,
    metric: Metric,
    n_neighbors: int,
    exclusions: Exclusions,
    ranks: Ranks,
    memory: int,
    progress: bool | None,
) -> Found:
    """Search for each rank's share of the queries, and put the shares together."""
    mine = np.arange(len(queries))[ranks.share(len(queries))]
    with ranks.agreed(), alone():
        part = nearest(
            queries.take(mine),
            candidates,
            metric,
            n_neighbors,
            exclusions.take(mine),
            memory=memory,
            progress=progress if ranks.is_first else False,
        )
    counts = ranks.sum(np.array([part.n_evaluated, part.n_pairs]))
    return Found(ranks.gather_rows(part.scores), ranks.gather_rows(part.positions), *counts.tolist())


def is_correlated(queries: Points, candidates: Points, metric: Metric) -> bool:
    """Whether correlations enter the scores of these points.

    Examples
    --------
    >>> import numpy as np
    >>> from corrvae.scoring.metrics import Cosine
    >>> points = Points.of(np.zeros((1, 2)), np.ones((1, 2)))
    >>> is_correlated(points, points, Cosine())
    False
    """
    return metric.uses_correlation and queries.vectors is not None and candidates.vectors is not None
