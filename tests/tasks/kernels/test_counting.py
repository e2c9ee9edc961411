import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corrvae.tasks.kernels.counting import count_better


@given(st.integers(2, 9), st.integers(0, 2**16))
def test_counts_are_those_of_the_definition(n_vertices, seed):
    generator = np.random.default_rng(seed)
    block = generator.integers(-2, 3, (n_vertices, n_vertices)).astype(np.float32)  # with many ties
    block[generator.random(block.shape) < 0.1] = -np.inf
    known = np.triu(generator.random((n_vertices, n_vertices)) < 0.3, 1)
    known |= known.T
    vertices, others = np.nonzero(~known & ~np.eye(n_vertices, dtype=bool))
    indptr, indices = np.append(0, known.sum(axis=1).cumsum()), np.nonzero(known)[1]
    at_least, above = count_better(block, vertices, vertices, others, indptr, indices)
    for pair, (vertex, other) in enumerate(zip(vertices, others, strict=True)):
        candidates = [k for k in range(n_vertices) if k != vertex and not known[vertex, k]]
        assert at_least[pair] == sum(block[vertex, k] >= block[vertex, other] for k in candidates)
        assert above[pair] == sum(block[vertex, k] > block[vertex, other] for k in candidates)
