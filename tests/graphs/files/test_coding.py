import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs.files.coding import code_strings

WORDS = st.text(alphabet="ab\u00e9\U0001f600", max_size=3)


@given(st.lists(st.tuples(WORDS, WORDS), max_size=12), st.integers(1, 5))
def test_numbers_stand_for_the_strings_and_those_are_sorted(pairs, size):
    chunks = [pairs[k : k + size] for k in range(0, len(pairs), size)]
    columns = [pa.chunked_array([[pair[side] for pair in chunk] for chunk in chunks], pa.string()) for side in (0, 1)]
    coded = code_strings(columns)
    assert coded.distinct.tolist() == sorted({word for pair in pairs for word in pair})
    assert [tuple(pair) for pair in coded.distinct[coded.codes].tolist()] == pairs
