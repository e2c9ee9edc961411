"""Short numbers that stand for long rows, to find rows that are equal."""

import numpy as np

from corrvae.compiling import kernel

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@kernel()
def mix_rows(words, hashes):
    """Mix each row's words into its hash; equal rows with equal hashes stay equal."""
    for row in range(len(words)):
        value = hashes[row]
        for column in range(words.shape[1]):
            value = (value ^ np.uint64(words[row, column])) * _MULTIPLIER
            value ^= value >> _SHIFT
        hashes[row] = value
