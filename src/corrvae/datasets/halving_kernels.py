"""Split the entries of CSR rows at random into two halves, in one pass."""

import numpy as np
from numba import njit


@njit(cache=True)
def draw_halves(indptr, indices, data, users, place, side, coins, draws):
    """Return CSR rows: half ``side[r]`` of row ``users[place[r]]``, with its columns in their order.

    Each of the distinct `users` is split once, so that its two halves share nothing and together are all it has. The
    halves differ by one entry at most; a coin decides which is larger. `draws` holds a uniform number for every entry
    of the users, in their order, and `coins` one for every user.
    """
    begins = np.empty(len(users) + 1, np.int64)
    begins[0] = 0
    for u in range(len(users)):
        begins[u + 1] = begins[u] + indptr[users[u] + 1] - indptr[users[u]]
    first = np.empty(begins[-1], np.bool_)
    sizes = np.empty((len(users), 2), np.int64)
    for u in range(len(users)):
        count = begins[u + 1] - begins[u]
        wanted = count // 2
        if count % 2 == 1 and coins[u] < 0.5:
            wanted += 1
        sizes[u, 0], sizes[u, 1] = wanted, count - wanted
        # Selection sampling: an entry is taken with the share of what is wanted in what is left.
        for entry in range(count):
            taken = draws[begins[u] + entry] * (count - entry) < wanted
            first[begins[u] + entry] = taken
            wanted -= taken
    offsets = np.empty(len(place) + 1, indptr.dtype)
    offsets[0] = 0
    for r in range(len(place)):
        offsets[r + 1] = offsets[r] + sizes[place[r], side[r]]
    columns = np.empty(offsets[-1], indices.dtype)
    values = np.empty(offsets[-1], data.dtype)
    for r in range(len(place)):
        u, free = place[r], offsets[r]
        source, wants_first = indptr[users[u]], side[r] == 0
        for entry in range(begins[u + 1] - begins[u]):
            if first[begins[u] + entry] == wants_first:
                columns[free] = indices[source + entry]
                values[free] = data[source + entry]
                free += 1
    return values, columns, offsets
