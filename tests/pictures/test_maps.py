import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.pictures.maps import draw_map, group_series
from corrvae.pictures.theme import SERIES
from support.markup import parse


def strokes(svg: str) -> dict[str, np.ndarray]:
    """Ends of the lines of each colour, as (lines, 2 ends, 2 coordinates)."""
    found = {}
    for path in parse(svg).all("path"):
        colour = re.search(r"stroke:var\(--([\w-]+)\)", path.get("style", ""))
        if colour:
            whole = re.sub(r"M([^MLh]+)h0", r"M\1 \1", path["d"])  # a dot ends where it begins
            found[colour[1]] = np.array(re.findall(r"-?\d+", whole), dtype=float).reshape(-1, 2, 2)
    return found


def test_edges_and_points_are_where_they_should_be():
    generator = np.random.default_rng(0)
    points, edges = generator.random((30, 2)), generator.integers(0, 30, (40, 2))
    groups = generator.integers(0, 2, 30).astype(float)
    drawn = strokes(draw_map(points, edges, groups, {0.0: 0, 1.0: 1}, name="m", label="a"))
    assert {colour: len(lines) for colour, lines in drawn.items()} == {
        "soft": 40,
        "series-0": int((groups == 0).sum()),
        "series-1": int((groups == 1).sum()),
    }
    dots = np.empty((30, 2))
    dots[groups == 0], dots[groups == 1] = drawn["series-0"][:, 0], drawn["series-1"][:, 0]
    assert np.abs(drawn["soft"] - dots[edges]).max() <= 1.0
    # one scale for both axes, the second upwards
    scale = (dots[1] - dots[0]) / (points[1] - points[0])
    assert scale[0] == pytest.approx(-scale[1], rel=0.02)


def test_a_large_map_stays_small():
    generator = np.random.default_rng(0)
    points, edges = generator.normal(size=(800, 2)), generator.integers(0, 800, (1500, 2))
    svg = draw_map(points, edges, np.zeros(800), {0.0: 0}, name="m", label="a")
    assert len(svg) < 40_000


def test_one_point_far_away_does_not_press_the_others_together():
    points = np.random.default_rng(0).random((300, 2))
    points[7] = 1e6
    drawn = strokes(draw_map(points, np.empty((0, 2), int), np.zeros(300), {0.0: 0}, name="m", label="a"))
    assert np.ptp(np.delete(drawn["series-0"][:, 0], 7, axis=0), axis=0).min() > 400


def test_the_largest_of_many_groups_have_colours():
    groups = np.repeat(np.arange(12.0), np.arange(1, 13))
    colours = group_series(groups)
    assert [group for group, colour in colours.items() if colour is not None] == list(range(4, 12))
    assert sorted(colour for colour in colours.values() if colour is not None) == list(range(len(SERIES)))


@settings(max_examples=25)
@given(
    st.lists(st.tuples(*[st.floats(-1e99, 1e99)] * 2), min_size=1, max_size=6),
    st.lists(st.tuples(*[st.integers(0, 0)] * 2), max_size=3),
)
def test_any_points_are_drawn(points, edges):
    places, pairs = np.array(points), np.array(edges, dtype=int).reshape(-1, 2)
    svg = draw_map(places, pairs, np.zeros(len(places)), {0.0: None}, name="m", label="a")
    assert f"{len(places)} points, {len(pairs)} edges" in svg
    assert "nan" not in svg
