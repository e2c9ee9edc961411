"""The inner loop of the spring layout, compiled by numba."""

import numpy as np
from numba import njit

PUSHING = 5  # random points that push for each neighbour that pulls


@njit(cache=True, nogil=True)
def relax(places, neighbors, rounds, seed):
    """Move places towards those of neighbours and away from those of random points, less in each round."""
    n, k = neighbors.shape
    state = seed * np.uint64(0x9E3779B97F4A7C15)
    for step in range(rounds):
        rate = 1.0 - step / rounds
        for i in range(n):
            for rank in range(k):
                j = neighbors[i, rank]
                state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                if j < 0 or (state >> np.uint64(33)) % np.uint64(k) < rank:
                    continue
                dx, dy = places[i, 0] - places[j, 0], places[i, 1] - places[j, 1]
                pull = rate * 2.0 / (1.0 + dx * dx + dy * dy)
                places[i, 0] -= pull * dx
                places[i, 1] -= pull * dy
                places[j, 0] += pull * dx
                places[j, 1] += pull * dy
                for _ in range(PUSHING):
                    state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                    other = (state >> np.uint64(33)) % np.uint64(n)
                    dx, dy = places[i, 0] - places[other, 0], places[i, 1] - places[other, 1]
                    square = dx * dx + dy * dy
                    push = rate * 2.0 / ((0.001 + square) * (1.0 + square))
                    places[i, 0] += min(4.0, max(-4.0, push * dx))
                    places[i, 1] += min(4.0, max(-4.0, push * dy))
