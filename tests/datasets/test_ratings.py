import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.datasets.ratings import rated_items

PAIRS = st.lists(st.tuples(st.integers(-3, 6), st.integers(100, 106)), min_size=1, max_size=40)


@given(PAIRS, st.integers(1, 4), st.integers(1, 3))
def test_the_table_holds_exactly_the_pairs_that_count(pairs, min_ratings, min_items):
    users, items = np.array(pairs).T
    table = rated_items(users, items, min_ratings, min_items)
    kept = {item for _, item in pairs if len({user for user, other in pairs if other == item}) >= min_ratings}
    left = {(user, item) for user, item in pairs if item in kept}
    left = {(user, item) for user, item in left if sum(other == user for other, _ in left) >= min_items}
    rows, columns = table.matrix.nonzero()
    assert set(zip(table.users[rows].tolist(), table.items[columns].tolist(), strict=True)) == left
    assert table.items.tolist() == sorted(kept)
    assert table.users.tolist() == sorted({user for user, _ in left})
    assert set(table.matrix.data.tolist()) <= {1.0}
    assert table.matrix.dtype == np.float32


def test_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="min_ratings must be at least 1"):
        rated_items(np.array([1]), np.array([1]), 0)
