import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.pictures.reading import (
    as_edges,
    as_facts,
    as_moment,
    as_number,
    as_numbers,
    as_points,
    as_text,
    show_number,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)
HUGE = 10**5000


@given(JSON | st.just(HUGE))
def test_text_is_one_line_of_letters_that_can_be_written(value):
    text = as_text(value, longest=40)
    assert 0 < len(text) <= 40
    assert text.isprintable()
    text.encode("utf-8")


def test_a_text_cannot_turn_the_direction_of_what_follows():
    assert as_text("a\u202eb") == "a\ufffdb"
    assert as_text("a\ud800b") == "a\ufffdb"


@given(JSON | st.just(HUGE))
def test_a_number_is_finite_or_none(value):
    number = as_number(value)
    assert number is None or math.isfinite(number)
    if number is not None:
        assert type(value) in (int, float)
        assert number == value or number == pytest.approx(value)


@given(JSON | st.lists(SCALARS))
def test_numbers_are_as_many_as_were_given(values):
    numbers = as_numbers(values)
    assert len(numbers) == (len(values) if isinstance(values, list) else 0)
    assert not np.isinf(numbers).any()


@given(JSON, st.integers(0, 5))
def test_points_are_finite_pairs_whatever_comes(values, most):
    points = as_points(values, most)
    assert points.shape[1:] == (2,)
    assert len(points) <= most
    assert np.isfinite(points).all()


@given(st.lists(st.lists(st.integers(-3, 8), min_size=1, max_size=3)) | JSON, st.integers(0, 6), st.integers(0, 6))
def test_edges_stay_among_the_points(values, n_points, most):
    edges = as_edges(values, n_points, most)
    assert len(edges) <= most
    assert ((edges >= 0) & (edges < n_points)).all()
    if most >= 6 and isinstance(values, list) and all(isinstance(v, list) and len(v) == 2 for v in values):
        inside = [v for v in values if all(type(end) is int and 0 <= end < n_points for end in v)]
        assert edges.tolist() == inside[:most]


@given(JSON)
def test_facts_are_lines_of_text(values):
    for name, fact in as_facts(values).items():
        assert name.isprintable()
        assert fact.isprintable()


def test_settings_in_settings_are_laid_flat():
    facts = as_facts({"a": {"b": {"c": 1}}, "d": [1, 2], "e": {}, "f": float("nan"), "g": True})
    assert facts == {"a.b.c": "1", "d": "1, 2", "e": "{}", "f": "not given", "g": "True"}


def test_a_deep_tree_ends_somewhere():
    deep = json.loads('{"a":' * 300 + "1" + "}" * 300)
    assert len(as_facts(deep)) == 1


@given(JSON)
def test_a_moment_is_one_or_not_given(value):
    assert as_moment(value).isprintable()


def test_moments_are_told_in_utc():
    assert as_moment("2026-02-28T23:30:00-02:00") == "2026-03-01 01:30 UTC"
    assert as_moment("2026-02-28") == "2026-02-28 00:00"
    assert as_moment("0001-01-01T00:00:00+10:00") == "not given"


@given(st.floats(-1e100, 1e100))
def test_a_number_is_short_however_large(value):
    assert len(show_number(value)) <= 18
