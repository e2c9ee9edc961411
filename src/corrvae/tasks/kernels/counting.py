"""Counts behind ranks: how many candidates score as well as a vertex, or better."""

import numpy as np

from corrvae.compiling import kernel


@kernel()
def count_better(block, rows, vertices, others, indptr, indices):
    """Count, for each pair, the candidates that score at least as high as it, and those that score higher.

    Row ``rows[p]`` of `block` holds the scores of ``vertices[p]`` with every vertex. Candidates are all but the vertex
    itself and those that the CSR rows ``indptr``, ``indices`` list for it.
    """
    at_least = np.zeros(len(rows), np.int64)
    above = np.zeros(len(rows), np.int64)
    for p in range(len(rows)):
        scores, vertex = block[rows[p]], vertices[p]
        score = scores[others[p]]
        # count all and take back the few that are no candidates: the long loop stays free of questions
        reached, passed = 0, 0
        for k in range(len(scores)):
            reached += scores[k] >= score
            passed += scores[k] > score
        reached -= scores[vertex] >= score
        passed -= scores[vertex] > score
        for entry in range(indptr[vertex], indptr[vertex + 1]):
            reached -= scores[indices[entry]] >= score
            passed -= scores[indices[entry]] > score
        at_least[p], above[p] = reached, passed
    return at_least, above
