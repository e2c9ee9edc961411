import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corrvae.reading.keys import Coder, as_ids

BATCHES = st.lists(st.lists(st.sampled_from(["a", "b", "c", " a ", "long one"]), min_size=1), min_size=1, max_size=5)


@given(BATCHES)
def test_numbers_do_not_depend_on_where_batches_end(batches):
    coder = Coder()
    numbers = [number for batch in batches for number in coder.code(pa.array(batch).dictionary_encode()).tolist()]
    strings = [string.strip() for batch in batches for string in batch]
    assert coder.strings == list(dict.fromkeys(strings))
    assert [coder.strings[number] for number in numbers] == strings


def test_known_strings_keep_their_numbers_and_no_others_get_one():
    coder = Coder(["b", "a"])
    assert coder.code(pa.array(["a", "c", "b", "c"]).dictionary_encode()).tolist() == [1, -1, 0, -1]
    assert coder.strings == ["b", "a"]


@given(st.lists(st.integers(-(10**17), 10**17)))
def test_integers_come_back(values):
    ids = as_ids([str(value) for value in values])
    assert ids.dtype.kind == "i"
    assert ids.tolist() == values


def test_what_python_would_write_otherwise_stays_a_string():
    for odd in ("007", "-0", "+1", "1.0", " 1", "", "9" * 30):
        ids = as_ids(["1", odd])
        assert (ids.dtype, ids.tolist()) == (object, ["1", odd])
