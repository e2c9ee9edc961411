from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from corrvae.graphs import SpanningWeights


@pytest.fixture
def result():
    weights = np.array([0.5, 1.0, 0.25])
    weights.flags.writeable = False
    route = "exact with a dense core of 64 vertices"
    return SpanningWeights(weights=weights, method="exact", core_size=64, route=route, seconds=1.234)


def test_it_is_an_array_of_its_weights(result):
    assert len(result) == 3
    assert np.array_equal(np.asarray(result), [0.5, 1.0, 0.25])
    assert np.shares_memory(np.asarray(result), result.weights)
    assert np.asarray(result, dtype=np.float32).dtype == np.float32
    assert np.isclose(np.sum(result), 1.75)
    assert np.array_equal(2 * np.asarray(result), [1.0, 2.0, 0.5])


def test_a_copy_can_be_changed(result):
    copy = np.array(result)
    copy[0] = 9.0
    assert result.weights[0] == 0.5
    with pytest.raises(ValueError, match="copy"):
        np.asarray(result, dtype=np.float32, copy=False)


def test_repr_is_one_line(result):
    assert repr(result) == "SpanningWeights(3 edges, exact with a dense core of 64 vertices, 1.23 s)"
    many = replace(result, weights=np.ones(12_345), standard_errors=np.ones(12_345))
    assert repr(many).startswith("SpanningWeights(12,345 edges, ")
    assert "\n" not in repr(many)


def test_it_does_not_change(result):
    with pytest.raises(FrozenInstanceError):
        result.error = 0.1
    assert result.standard_errors is None
    assert result != replace(result)  # arrays are compared by the caller, not here
