import numpy as np
from scipy import sparse

from corrvae.reading import Features


def test_sizes_of_dense_and_sparse_ones():
    for matrix in (np.zeros((2, 3), dtype=np.float32), sparse.csr_array((2, 3), dtype=np.float32)):
        features = Features(matrix, None, None)
        assert (features.n_rows, features.n_columns) == (2, 3)
