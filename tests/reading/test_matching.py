import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corrvae.reading import find_ids
from corrvae.reading.keys import as_ids

IDS = st.lists(st.one_of(st.integers(-5, 20).map(str), st.sampled_from(["x", "007", "é"])), max_size=12)


@given(IDS.map(lambda ids: list(dict.fromkeys(ids))), IDS)
def test_ids_match_by_how_they_are_spelled(known, wanted):
    found = find_ids(as_ids(known), as_ids(wanted))
    assert found.tolist() == [known.index(value) if value in known else -1 for value in wanted]


def test_integers_of_different_widths_match():
    assert find_ids(np.array([3, 4]), np.array([4], dtype=np.int32)).tolist() == [1]
