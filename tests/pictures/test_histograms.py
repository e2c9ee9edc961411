import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from corrvae.pictures.histograms import describe_separation, draw_pairs, draw_weights_histogram, share_lower
from support.markup import parse

SCORES = arrays(float, st.integers(1, 12), elements=st.floats(-5, 5).map(lambda value: round(value, 1)))


@given(SCORES, SCORES)
def test_the_share_is_that_of_all_pairs(linked, random):
    literal = np.mean((linked[:, None] < random) + 0.5 * (linked[:, None] == random))
    assert share_lower(linked, random) == pytest.approx(literal)


def test_the_sentence_knows_which_way_is_better():
    low, high = np.zeros(4), np.ones(4)
    assert "nearer than a random one in 100 %" in describe_separation(low, high, "Expected squared distance")
    assert "scores higher than a random one in 100 %" in describe_separation(high, low, "log-odds")


def test_all_and_none_are_said_only_where_they_are_true():
    linked, random = np.arange(500.0), np.full(500, 498.5)  # one of five hundred is on the wrong side
    assert "nearer than a random one in over 99 % of cases" in describe_separation(linked, random, "distance")
    assert "scores higher than a random one in under 1 % of cases" in describe_separation(linked, random, "cosine")
    assert "in 0 % of cases" in describe_separation(linked, random + 1.0, "cosine")


def test_bars_of_weights_are_as_high_as_their_counts():
    counts = np.array([5.0, 0.0, 20.0, 10.0])
    svg = draw_weights_histogram(counts, np.linspace(0, 1, 5), name="w")
    bars = [path["d"] for path in parse(svg).all("path") if "fill:var(--series-0)" in path.get("style", "")]
    heights = [np.ptp([float(y) for y in re.findall(r"[ML]-?[\d.]+ (-?[\d.]+)", bar)]) for bar in bars]
    assert np.array(heights) / max(heights) == pytest.approx(counts / counts.max(), abs=0.01)
    assert "35 edges" in svg


def test_no_edges_at_all_are_drawn_as_such():
    assert "0 edges" in draw_weights_histogram(np.zeros(3), np.arange(4.0), name="w")


@settings(max_examples=25)
@given(
    arrays(float, st.integers(1, 8), elements=st.floats(-1e99, 1e99)),
    arrays(float, st.integers(1, 8), elements=st.floats(-1e99, 1e99)),
)
def test_any_scores_are_drawn(linked, random):
    svg = draw_pairs(linked, random, name="p", label="a", metric="distance", series=None)
    assert f"{len(linked)} linked and {len(random)} random pairs" in svg
    assert "nan" not in svg


def test_linked_pairs_have_the_colour_of_the_model_and_random_ones_none():
    generator = np.random.default_rng(0)
    svg = draw_pairs(generator.random(99), generator.random(99), name="p", label="a", metric="distance", series=3)
    drawn = [path.get("style", "") for path in parse(svg).all("path")]
    assert any("fill:var(--series-3)" in style for style in drawn)
    assert any("fill:var(--soft)" in style for style in drawn)
