import re
from statistics import fmean, stdev

import pytest

from corrvae.pictures.bars import Bar, draw_bars
from support.markup import parse


def widths(svg: str, colour: str) -> list[float]:
    """Width of each filled patch of a colour."""
    found = [path["d"] for path in parse(svg).all("path") if f"fill:var(--{colour})" in path.get("style", "")]
    corners = [[float(x) for x in re.findall(r"[ML](-?[\d.]+)", path)] for path in found]
    return [max(xs) - min(xs) for xs in corners]


def test_bars_are_as_long_as_their_means():
    values = [0.2, 0.3, 0.4]
    svg = draw_bars([Bar("a", values, None, 0), Bar("b", [0.6], None, 1)], name="b", measure="rank")
    (first,), (second,) = widths(svg, "series-0"), widths(svg, "series-1")
    assert second / first == pytest.approx(0.6 / fmean(values), rel=0.01)


def test_words_give_mean_deviation_and_paper():
    values = [0.7, 0.72, 0.77]
    text = parse(draw_bars([Bar("CVAE", values, 0.66, 0)], name="b", measure="rank")).words
    assert f"{fmean(values):.4f} ± {stdev(values):.4f} · paper 0.6600" in text
    assert "CVAE" in text


def test_the_mark_of_the_paper_is_where_a_bar_of_its_length_would_end():
    svg = draw_bars([Bar("a", [0.5], 0.5, 0)], name="b", measure="rank")
    bar = next(path for path in parse(svg).all("path") if "fill:var(--series-0)" in path["style"])
    mark = next(path for path in parse(svg).all("path") if "stroke-width:2.5" in path.get("style", ""))
    end = max(float(x) for x in re.findall(r"[ML](-?[\d.]+)", bar["d"]))
    assert {float(x) for x in re.findall(r"[ML](-?[\d.]+)", mark["d"])} == {end}


def test_one_seed_has_no_deviation_and_none_no_bar():
    assert str(Bar("a", [0.5], None, None)) == "0.5000"
    assert str(Bar("a", [], None, None)) == "not given"
    assert "not given" in draw_bars([Bar("a", [], None, None)], name="b", measure="rank")


@pytest.mark.parametrize("values", [[-0.2, 0.1], [0.0], [1e99], [-1e99, 1e99], [1e-300]])
def test_odd_scores_are_drawn_too(values):
    assert "<svg" in draw_bars([Bar("a", values, None, 0)], name="b", measure="rank")


def test_a_long_name_is_cut_and_named_whole_in_the_description():
    label = "a name that is far too long to stand above a bar"
    page = parse(draw_bars([Bar(label, [0.5], 0.4, 0)], name="b", measure="rank"))
    assert any(text.endswith("…") and label.startswith(text[:-1]) for text in page.text)
    assert label in page.words
