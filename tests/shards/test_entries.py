import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corrvae.shards.entries import add_up

ENTRIES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-3, 3)), max_size=60)


@given(ENTRIES)
def test_values_of_a_place_add_up(entries):
    expected, places = np.zeros((4, 5)), set()
    for row, column, value in entries:
        expected[row, column] += value
        places.add((row, column))
    rows, columns, values = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    made = add_up(rows, columns, values.astype(np.float32), (4, 5))
    np.testing.assert_array_equal(made.matrix.toarray(), expected)
    assert made.matrix.has_canonical_format
    assert (made.matrix.data != 0).all()
    assert made.n_repeats == len(entries) - len(places)


@given(st.integers(0, 2**32 - 1))
def test_a_row_is_the_same_to_the_bit_in_any_company(seed):
    generator = np.random.default_rng(seed)
    columns, values = generator.integers(0, 3, 50), generator.normal(size=50).astype(np.float32)
    columns = np.sort(columns) if seed % 2 else columns
    alone = add_up(np.zeros(50, np.int64), columns, values, (1, 3)).matrix
    others = generator.integers(0, 3, 20)
    rows = np.concatenate([np.zeros(50, np.int64), np.ones(20, np.int64)])
    both = add_up(rows, np.concatenate([columns, others]), np.append(values, np.ones(20, np.float32)), (2, 3)).matrix
    assert alone.toarray()[0].tolist() == both.toarray()[0].tolist()
