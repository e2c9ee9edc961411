import re

import numpy as np
import pytest

from corrvae.pictures.curves import Curve, draw_curves, term_names
from support.markup import parse


def lines(svg: str, colour: str) -> list[int]:
    """Number of knots of each line of a colour."""
    drawn = [path["d"] for path in parse(svg).all("path") if f"stroke:var(--{colour})" in path.get("style", "")]
    return [len(re.findall("[ML]", path)) for path in drawn]


def test_terms_come_in_their_order_without_clocks_validation_and_terms_that_nobody_has():
    ones, zeros = np.ones(3), np.zeros(3)
    history = {"step": ones, "epoch": ones, "seconds": ones, "zeta": ones, "edge": ones, "non_edge": zeros}
    history |= {"total": ones, "validation_total": ones, "broken": np.full(3, np.nan)}
    assert list(term_names([history, {"step": ones, "reconstruction": ones}])) == [
        "total",
        "reconstruction",
        "edge",
        "zeta",
    ]


def test_one_line_a_seed_in_the_colour_of_the_model():
    curves = [Curve("a", 0, np.arange(9.0), np.arange(9.0) + seed) for seed in range(3)]
    svg = draw_curves([*curves, Curve("b", 1, np.arange(9.0), np.arange(9.0) ** 2)], name="c", term="Edge")
    assert (len(lines(svg, "series-0")), len(lines(svg, "series-1"))) == (3, 1)


def test_long_histories_become_means_of_blocks():
    steps = np.arange(30_000.0)
    svg = draw_curves([Curve("a", 0, steps, np.full(30_000, 7.0) + (-1) ** steps)], name="c", term="Edge")
    assert max(lines(svg, "series-0")) <= 101
    assert "a from 7 to 7" in svg


def test_what_is_no_number_is_left_out():
    values = np.array([1.0, np.nan, 3.0, np.inf, 5.0])
    assert "a from 1 to 5" in draw_curves([Curve("a", 0, np.arange(5.0), values)], name="c", term="Edge")


@pytest.mark.parametrize("values", [[3.0], [3.0, 3.0], [1e99, -1e99], [1e-300, 2e-300], [1.0, 1.0 + 1e-15]])
def test_odd_values_are_drawn_too(values):
    steps = np.arange(float(len(values)))
    assert "<svg" in draw_curves([Curve("a", 0, steps, np.array(values))], name="c", term="Edge")


def test_no_curves_say_so():
    assert "no values" in draw_curves([], name="c", term="Edge")
