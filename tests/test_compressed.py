from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corrvae.compressed import check_compressed

FORMS = [sparse.csr_array, sparse.csc_array]


def consistent(pointers, columns, n_columns):
    """Say the same by looking at each row."""
    if pointers[0] != 0 or pointers[-1] > len(columns):
        return False
    ascend = all(begin <= end for begin, end in pairwise(pointers))
    return ascend and all(0 <= column < n_columns for column in columns[: pointers[-1]])


@given(
    st.lists(st.integers(-1, 4), min_size=2, max_size=5),
    st.lists(st.integers(-1, 3), max_size=3),
    st.sampled_from(FORMS),
)
def test_parts_fit_or_are_refused(pointers, columns, form):
    n_rows = len(pointers) - 1
    shape = (n_rows, 3) if form is sparse.csr_array else (3, n_rows)
    try:
        matrix = form((np.ones(len(columns)), np.array(columns, int), np.array(pointers)), shape=shape)
        check_compressed(matrix)
    except ValueError:
        assert not consistent(pointers, columns, 3)
    else:
        assert consistent(pointers, columns, 3)


@pytest.mark.parametrize("form", FORMS)
def test_pointers_that_lead_out_and_come_back_are_refused(form):
    shape = (3, 5) if form is sparse.csr_array else (5, 3)
    wrong = form((np.empty(0), np.empty(0, int), np.array([0, 2**27, 2**27, 0])), shape=shape)
    with pytest.raises(ValueError, match="do not ascend"):
        check_compressed(wrong)
