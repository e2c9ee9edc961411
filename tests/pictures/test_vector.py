import matplotlib
import numpy as np
import pytest

from corrvae.pictures.theme import INK, SERIES
from corrvae.pictures.vector import bare_axes, inline_svg
from support.markup import parse


def paint(figure):
    axes = bare_axes(figure, 20, 20, 10, 10)
    axes.plot(np.arange(5), np.arange(5) ** 2, color=SERIES[1], marker="o")
    axes.text(1, 1, "a <b> & $x_1$ 漢", color=INK, parse_math=False)


def draw(name="one", **changes):
    options = {"width": 200, "height": 100, "title": "A <title>", "description": 'A "text"'} | changes
    return inline_svg(paint, name=name, **options)


def test_it_speaks_for_itself_and_fills_its_place():
    svg = parse(draw()).all("svg")
    assert svg == [{"viewbox": "0 0 200 100", "role": "img", "aria-labelledby": "one-title one-text"}]


def test_texts_are_text_and_escaped():
    page = parse(draw())
    assert {"a <b> & $x_1$ 漢", "A <title>", 'A "text"'} <= set(page.text)
    assert page.all("b") == []


def test_colours_are_names_and_no_stand_in_is_left():
    svg = draw()
    assert "var(--series-1)" in svg
    assert "#0a00" not in svg
    assert "font-family" not in svg


def test_identifiers_are_its_own_and_only_those_in_use():
    first, second = parse(draw("one")), parse(draw("two"))
    assert set(first.ids) & set(second.ids) == set()
    for page in (first, second):
        assert len(set(page.ids)) == len(page.ids)
        used = {attributes["href"][1:] for _, attributes in page.elements if "href" in attributes}
        used |= {attributes["clip-path"][5:-1] for _, attributes in page.elements if "clip-path" in attributes}
        assert len(used) >= 2
        assert set(page.ids) == used | {name for name in page.ids if name.endswith(("-title", "-text"))}


def test_nothing_points_elsewhere_and_no_style_leaks_into_the_page():
    svg = draw()
    assert "http" not in svg
    assert "<style" not in svg
    assert "<metadata" not in svg


def test_the_same_drawing_gives_the_same_bytes_whatever_style_the_reader_has():
    before = draw()
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path", "axes.grid": True}):
        kept = dict(matplotlib.rcParams)
        assert draw() == before
        assert dict(matplotlib.rcParams) == kept


@pytest.mark.parametrize(("digits", "path"), [(1, "M12.3 90L250 10"), (0, "M12 90L250 10")])
def test_positions_keep_the_digits_that_can_be_seen(digits, path):
    axes_at = {}

    def dot(figure):
        axes = bare_axes(figure, 0, 0, 0, 0)
        axes.axis("off")
        axes.set(xlim=(0, 300), ylim=(0, 100))
        axes.plot([12.34567, 250.04], [10, 90], color=INK)
        axes_at.update(bounds=axes.get_position().bounds)

    sizes = {"width": 300, "height": 100}
    svg = inline_svg(dot, name="dot", title="", description="", digits=digits, **sizes)
    assert axes_at["bounds"] == pytest.approx((0, 0, 1, 1))
    assert parse(svg).all("path")[-1]["d"] == path
