"""Random batches of rows for property tests."""

import numpy as np
import torch
from hypothesis import strategies as st
from scipy import sparse

from corrvae.nn import SparsePattern, SparseRows


def sparse_rows(matrix: sparse.csr_array, dtype: torch.dtype = torch.float64) -> SparseRows:
    """Return a CSR matrix as a batch."""
    matrix = sparse.csr_array(matrix)
    columns, offsets = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indices, matrix.indptr))
    return SparseRows(torch.from_numpy(matrix.data).to(dtype), pattern=SparsePattern(columns, offsets, matrix.shape[1]))


@st.composite
def matrices(draw: st.DrawFn, max_rows: int = 6, max_columns: int = 7) -> sparse.csr_array:
    """Draw a small matrix of any density, with empty rows and columns, and negative entries."""
    shape = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = generator.normal(size=shape) * (generator.random(shape) < draw(st.sampled_from([0.0, 0.2, 0.6, 1.0])))
    return sparse.csr_array(values)
