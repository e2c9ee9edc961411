import base64
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_hex

from corrvae.plots import COLOURS, draw_map, save_figure, svg_uri
from corrvae.plots.style import SOFT


def colours_of(figure):
    """The colour of each scatter plot with points, and how many it has."""
    collections = [c for c in figure.axes[0].collections if len(c.get_offsets()) and hasattr(c, "get_sizes")]
    return {to_hex(c.get_facecolor()[0]): len(c.get_offsets()) for c in collections}


def keys_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_groups_have_colours_and_keys():
    figure = draw_map(np.random.default_rng(0).normal(size=(6, 2)), ["b", "a", "b", None, "_c$x$", float("nan")])
    assert colours_of(figure) == {SOFT: 2, COLOURS[0]: 1, COLOURS[1]: 1, COLOURS[2]: 2}
    assert keys_of(figure) == ["not given", "_c$x$ (1)", "a (1)", "b (2)"]


def test_numbers_of_groups_are_in_order_and_the_smallest_groups_share_grey():
    groups = [k for k in range(12) for _ in range(k + 1)]
    figure = draw_map(np.random.default_rng(0).normal(size=(len(groups), 2)), [str(k) for k in groups])
    assert keys_of(figure) == ["4 others", *(f"{k} ({k + 1})" for k in range(4, 12))]
    assert colours_of(figure)[SOFT] == 1 + 2 + 3 + 4


def test_many_numbers_have_a_scale():
    figure = draw_map(np.random.default_rng(0).normal(size=(20, 2)), [*range(19), None])
    assert len(figure.axes) == 2
    assert figure.legends == []
    shown = [c for c in figure.axes[0].collections if c.get_array() is not None]
    assert shown[0].get_array().tolist() == list(range(19))


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
    svg = base64.b64decode(svg_uri(draw_map(places, places[:, 0], edges=edges)).partition(",")[2])
    assert svg.count(b"<image") >= 2
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
