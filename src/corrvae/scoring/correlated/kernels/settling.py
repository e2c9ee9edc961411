"""What evaluated blocks mean for their queries: better neighbours, or counts of those that come before a target.

Rows and columns of a block stand for groups of equal points; `offsets` and `members` list the points of each group.
`mark` is scratch, one entry for each candidate, that holds the last query which excluded it.
"""

import numpy as np

from corrvae.compiling import kernel
from corrvae.scoring.correlated.kernels.choosing import first_at_least


@kernel()
def _is_before(cost, position, other_cost, other_position):
    return cost < other_cost or (cost == other_cost and position < other_position)


@kernel()
def _insert(best, positions, cost, position):
    """Put a candidate among a query's best, which are sorted by cost and then by position; the last falls out."""
    place = len(best) - 1
    if not _is_before(cost, position, best[place], positions[place]):
        return
    while place > 0 and _is_before(cost, position, best[place - 1], positions[place - 1]):
        best[place], positions[place] = best[place - 1], positions[place - 1]
        place -= 1
    best[place], positions[place] = cost, position


@kernel()
def offer(
    costs,
    row_offsets,
    row_members,
    column_offsets,
    column_members,
    best,
    positions,
    reach,
    excluded_from,
    excluded,
    mark,
):
    """Offer every candidate of a block to every query of it; `costs` is not a number where there is nothing to offer.

    A place that is still free has cost infinity and the largest position. Also lowers each query's reach to its worst.
    """
    last = best.shape[1] - 1
    for row in range(len(costs)):
        for query in row_members[row_offsets[row] : row_offsets[row + 1]]:
            for place in range(excluded_from[query], excluded_from[query + 1]):
                mark[excluded[place]] = query
            for column in range(costs.shape[1]):
                cost = costs[row, column]
                if cost <= best[query, last]:
                    for candidate in column_members[column_offsets[column] : column_offsets[column + 1]]:
                        if mark[candidate] != query:
                            _insert(best[query], positions[query], cost, candidate)
            reach[query] = min(reach[query], best[query, last])


@kernel()
def offer_listed(
    groups,
    others,
    costs,
    row_offsets,
    row_members,
    column_offsets,
    column_members,
    best,
    positions,
    excluded_from,
    excluded,
    mark,
):
    """Offer listed candidates: group `others[n]` to the queries of group `groups[n]`, which is ascending."""
    last, begin = best.shape[1] - 1, 0
    while begin < len(groups):
        end, row = begin, groups[begin]
        while end < len(groups) and groups[end] == row:
            end += 1
        for query in row_members[row_offsets[row] : row_offsets[row + 1]]:
            for place in range(excluded_from[query], excluded_from[query + 1]):
                mark[excluded[place]] = query
            for n in range(begin, end):
                for candidate in column_members[column_offsets[others[n]] : column_offsets[others[n] + 1]]:
                    # positions ascend: once one comes too late, all do
                    if not _is_before(costs[n], candidate, best[query, last], positions[query, last]):
                        break
                    if mark[candidate] != query:
                        _insert(best[query], positions[query], costs[n], candidate)
        begin = end


@kernel()
def still_matter(
    groups, others, costs, row_offsets, row_members, column_offsets, column_members, best, positions, kept
):
    """Mark the listed candidates that do not come after the last of the best of each of their queries."""
    last = best.shape[1] - 1
    for n in range(len(groups)):
        first = column_members[column_offsets[others[n]]]
        for query in row_members[row_offsets[groups[n]] : row_offsets[groups[n] + 1]]:
            if not _is_before(best[query, last], positions[query, last], costs[n], first):
                kept[n] = True


@kernel()
def count(
    costs,
    lower,
    row_offsets,
    row_members,
    column_offsets,
    column_members,
    target_offsets,
    limits,
    steps,
    excluded_from,
    excluded,
    mark,
):
    """Add each candidate of a block to ``steps`` at the first of the query's targets that it does not come after.

    Where `costs` is not a number the bounds have decided: the first limit above `lower` is above the upper bound too.
    """
    for row in range(len(costs)):
        for query in row_members[row_offsets[row] : row_offsets[row + 1]]:
            begin, end = target_offsets[query], target_offsets[query + 1]
            if begin == end:
                continue
            for place in range(excluded_from[query], excluded_from[query + 1]):
                mark[excluded[place]] = query
            largest = limits[end - 1]
            for column in range(costs.shape[1]):
                cost = costs[row, column]
                if np.isnan(cost):
                    cost = lower[row, column]
                if cost <= largest:
                    first = first_at_least(limits, begin, end, cost)
                    for candidate in column_members[column_offsets[column] : column_offsets[column + 1]]:
                        if mark[candidate] != query:
                            steps[first] += 1
