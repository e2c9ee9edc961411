"""What a search does with a block of approximate costs: keep the best, or count those that are as good as a target.

Costs are scores whose sign makes lower better. A block's costs are right to within `error`; whatever that leaves open
is decided by the cost in float64. Comparisons are written so that a cost which is not a number is left open too.
"""

import numpy as np

from corrvae.compiling import kernel
from corrvae.scoring.kernels.exact import two_parts

# Entries that are looked at together, to see quickly that none of them matters; they share a bound of their errors.
STRETCH = 64


@kernel(error_model="numpy")
def is_excluded(query, candidate, offsets, excluded):
    """Whether a query leaves a candidate out."""
    begin, end = offsets[query], offsets[query + 1]
    if begin == end:
        return False
    place = begin + np.searchsorted(excluded[begin:end], candidate)
    return place < end and excluded[place] == candidate


@kernel(error_model="numpy")
def insert(costs, positions, cost, position):
    """Put a candidate in its place among the best, by cost and then by position; the last one falls out."""
    place = len(costs) - 1
    while place > 0 and (
        positions[place - 1] < 0
        or cost < costs[place - 1]
        or (cost == costs[place - 1] and position < positions[place - 1])
    ):
        costs[place], positions[place] = costs[place - 1], positions[place - 1]
        place -= 1
    costs[place], positions[place] = cost, position


@kernel(error_model="numpy")
def keep_best(block, error, first_row, columns, metric, left, right, offsets, excluded, costs, positions):
    """Update the best candidates of the queries that begin at `first_row` with a block of costs.

    Parameters
    ----------
    block, error
        Approximate costs, and their error in each row and stretch of columns.
    first_row, columns
        The first row's query; the candidate of each column.
    metric
        Kind, sign and tau.
    left, right
        Queries and candidates.
    offsets, excluded
        The exclusions.
    costs, positions
        The best so far of every query, best first; position -1 where there is none yet.
    """
    kind, sign, tau = metric
    last = costs.shape[1] - 1
    for row in range(len(block)):
        query = first_row + row
        best, where, values = costs[query], positions[query], block[row]
        for begin in range(0, len(values), STRETCH):
            end = min(begin + STRETCH, len(values))
            slack = error[row, begin // STRETCH]
            limit = np.float32(best[last] + slack)
            above = 0
            for column in range(begin, end):
                above += values[column] > limit
            if above == end - begin:
                continue
            for column in range(begin, end):
                if values[column] > limit:
                    continue
                candidate = columns[column]
                if is_excluded(query, candidate, offsets, excluded):
                    continue
                of_means, of_variances = two_parts(kind, left, query, right, candidate, tau)
                cost = sign * (of_means + of_variances)
                if where[last] < 0 or cost < best[last] or (cost == best[last] and candidate < where[last]):
                    insert(best, where, cost, candidate)
                    limit = np.float32(best[last] + slack)


@kernel(error_model="numpy")
def count_as_good(block, error, first_row, first_column, metric, left, right, offsets, targets, counts):
    """Add to `counts` how many of a block's candidates cost at most as much as each target of each query.

    Parameters
    ----------
    block, error
        Approximate costs, and their error in each row and stretch of columns.
    first_row, first_column
        Where the block lies.
    metric
        Kind, sign and tau.
    left, right
        Queries and candidates.
    offsets, targets
        Where each query's targets begin, and the targets' costs.
    counts
        For each target.
    """
    kind, sign, tau = metric
    for row in range(len(block)):
        query, values = first_row + row, block[row]
        for target in range(offsets[query], offsets[query + 1]):
            cost = targets[target]
            for begin in range(0, len(values), STRETCH):
                end = min(begin + STRETCH, len(values))
                slack = error[row, begin // STRETCH]
                low, high = np.float32(cost - slack), np.float32(cost + slack)
                sure, above = 0, 0
                for column in range(begin, end):
                    sure += values[column] < low
                    above += values[column] > high
                counts[target] += sure
                if sure + above == end - begin:
                    continue
                for column in range(begin, end):
                    if not (values[column] < low or values[column] > high):
                        of_means, of_variances = two_parts(kind, left, query, right, first_column + column, tau)
                        counts[target] += sign * (of_means + of_variances) <= cost


@kernel(error_model="numpy")
def count_excluded(metric, left, right, offsets, targets, exclusion_offsets, excluded, costs, counts):
    """Take back from `counts` what `count_as_good` counted of the excluded candidates and of the targets themselves.

    Parameters
    ----------
    metric, left, right, offsets
        As in `count_as_good`.
    targets, costs
        The targets, and their costs.
    exclusion_offsets, excluded
        The exclusions.
    counts
        For each target.
    """
    kind, sign, tau = metric
    for query in range(len(offsets) - 1):
        for target in range(offsets[query], offsets[query + 1]):
            if not is_excluded(query, targets[target], exclusion_offsets, excluded):
                counts[target] -= 1
            for place in range(exclusion_offsets[query], exclusion_offsets[query + 1]):
                of_means, of_variances = two_parts(kind, left, query, right, excluded[place], tau)
                counts[target] -= sign * (of_means + of_variances) <= costs[target]
