import base64
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex

from corrvae.plots import (
    COLOURS,
    draw_balance,
    draw_curves,
    draw_map,
    draw_pairs,
    draw_uncertainty,
    draw_weights,
    save_figure,
    svg_uri,
)
from corrvae.plots.figures import short_number
from corrvae.plots.style import SOFT
from corrvae.scoring import Balance


def axes_of(figure):
    (axes,) = figure.axes
    return axes


def test_a_curve_for_each_name_without_what_is_not_finite():
    steps = np.arange(1.0, 6.0)
    values = np.array([1.0, np.nan, 3.0, np.inf, 5.0])
    axes = axes_of(draw_curves({"training": (steps, values), "validation": (steps, steps)}, title="Objective"))
    assert [line.get_xdata().tolist() for line in axes.lines] == [[1.0, 3.0, 5.0], steps.tolist()]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["training", "validation"]
    assert axes.get_title("left") == "Objective"


def test_first_steps_do_not_press_a_curve_flat():
    values = np.linspace(-2.0, -1.0, 100)
    values[0] = -1e6
    low, high = axes_of(draw_curves({"training": (np.arange(100.0), values)})).get_ylim()
    assert -2.2 < low < -1.9
    assert -1.0 < high < -0.8


def test_an_empty_curve_is_an_empty_frame():
    axes = axes_of(draw_curves({"training": (np.empty(0), np.empty(0))}))
    assert len(axes.lines[0].get_xdata()) == 0


def test_every_weight_is_counted_from_0_to_1():
    weights = np.array([0.0, 0.2, 0.2, 1.0])
    axes = axes_of(draw_weights(weights))
    assert sum(bar.get_height() for bar in axes.patches) == 4
    assert axes.patches[0].get_x() == pytest.approx(0.0)
    assert axes.patches[-1].get_x() + axes.patches[-1].get_width() == pytest.approx(1.0)


@pytest.mark.parametrize("spread", [np.full(5, 0.3), np.linspace(0.1, 0.9, 50), np.empty(0)])
def test_uncertainty_of_any_points_has_a_histogram(spread):
    axes = axes_of(draw_uncertainty(spread))
    inside = sum(bar.get_height() for bar in axes.patches)
    assert 0.95 * len(spread) <= inside <= len(spread)


def test_pairs_are_shares_of_their_own_kind():
    rng = np.random.default_rng(0)
    axes = axes_of(draw_pairs(rng.normal(2.0, 1.0, 500), rng.normal(-2.0, 1.0, 2000), metric="log_odds"))
    outlines = [patch for patch in axes.patches if patch.get_label().endswith("pairs")]
    assert [patch.get_label() for patch in outlines] == ["random unlinked pairs", "linked pairs"]
    for patch in outlines:
        assert patch.get_data().values.sum() == pytest.approx(1.0, abs=0.05)
    assert axes.get_xlabel() == "log odds"


def test_pairs_with_equal_scores_have_a_frame():
    low, high = axes_of(draw_pairs(np.ones(3), np.ones(4))).get_xlim()
    assert low < 1.0 < high


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (1234.0, "1.23k"), (-2.5e6, "\N{MINUS SIGN}2.5M"), (3e9, "3G"), (0.125, "0.125")]
)
def test_numbers_are_short(value, text):
    assert short_number(value) == text


def test_a_love_plot_shows_the_covariates_that_differed_most():
    names = [f"c{k}" for k in range(40)]
    before = np.linspace(-2.0, 2.0, 40)
    balance = Balance(names, before, before / 10, np.ones(40), np.ones(40), 5, 5, 5.0, 5.0)
    axes = axes_of(draw_balance(balance, n_covariates=3))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["c1", "c39", "c0"]
    unmatched, matched = (np.asarray(points.get_offsets()) for points in axes.collections[-2:])
    np.testing.assert_allclose(unmatched[:, 0], before[[1, 39, 0]])
    np.testing.assert_allclose(matched[:, 0], before[[1, 39, 0]] / 10)


# Maps


def colours_of(figure):
    """The colour of each scatter plot with points, and how many it has."""
    collections = [c for c in figure.axes[0].collections if len(c.get_offsets()) and hasattr(c, "get_sizes")]
    return {to_hex(c.get_facecolor()[0]): len(c.get_offsets()) for c in collections}


def keys_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_largest_groups_have_colours_and_keys_and_the_others_share_grey():
    groups = [f"{k}_c$x$" for k in range(12) for _ in range(k + 1)]
    figure = draw_map(np.random.default_rng(0).normal(size=(len(groups), 2)), groups)
    assert keys_of(figure) == ["4 others", *(f"{k}_c$x$ ({k + 1})" for k in range(11, 3, -1))]
    assert colours_of(figure) == {SOFT: 1 + 2 + 3 + 4, **dict(zip(COLOURS, range(12, 4, -1), strict=True))}


def test_one_point_far_away_does_not_press_the_others_together():
    places = np.random.default_rng(0).normal(size=(500, 2))
    places[0] = [1e6, 0.0]
    low, high = draw_map(places).axes[0].get_xlim()
    assert high - low < 20


def test_edges_are_lines_between_their_points():
    places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    lines = draw_map(places, edges=np.array([[0, 2]])).axes[0].collections[0]
    assert [segment.tolist() for segment in lines.get_segments()] == [[[0.0, 0.0], [0.0, 1.0]]]


def test_crowds_are_pixels():
    places = np.random.default_rng(0).normal(size=(5000, 2))
    edges = np.random.default_rng(1).integers(5000, size=(5000, 2))
    svg = base64.b64decode(svg_uri(draw_map(places, edges=edges)).partition(",")[2])
    assert svg.count(b"<image") >= 1
    assert svg.count(b"<path") + svg.count(b"<use") < 100


def test_the_same_figure_gives_the_same_svg_whatever_the_users_style():
    places = np.random.default_rng(0).normal(size=(9, 2))
    first = svg_uri(draw_map(places, list("abcabcabc"), title="t<&>"))
    with mpl.rc_context({"font.size": 40, "svg.fonttype": "path", "axes.facecolor": "black"}):
        assert svg_uri(draw_map(places, list("abcabcabc"), title="t<&>")) == first
    kind, _, data = first.partition(",")
    assert kind == "data:image/svg+xml;base64"
    texts = [t.text for t in ElementTree.fromstring(base64.b64decode(data)).iter("{http://www.w3.org/2000/svg}text")]
    assert "t<&>" in texts


def test_names_in_other_scripts_stay_text(tmp_path):
    figure = draw_map(np.eye(2), ["東京", "Oslo"])
    assert "東京 (1)" in base64.b64decode(svg_uri(figure).partition(",")[2]).decode()
    save_figure(figure, tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
