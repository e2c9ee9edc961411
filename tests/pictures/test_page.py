from hypothesis import given, settings
from hypothesis import strategies as st

from corrvae.pictures.page import Html, document, element, figure, join, key, legend, panels, table
from support.markup import parse


@settings(max_examples=50)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])))
def test_whatever_is_said_comes_out_as_text(text):
    pieces = [
        element("p", text, title=text),
        table([text, text], [[text, text]], text),
        figure(text, text, text, name="f"),
        panels([(text, text, text)]),
        legend([(key(1), text)]),
    ]
    page = parse(document(text, join(pieces)))
    # whatever the text, the page has the elements of one without any
    plain = parse(document("a", join(_plain_pieces())))
    without_notes = [name for name, _ in page.elements if not (text == "" and name == "p")]
    assert without_notes == [name for name, _ in plain.elements if not (text == "" and name == "p")]
    assert [attributes["title"] for attributes in page.all("p") if "title" in attributes] == [text]


def _plain_pieces():
    yield element("p", "a", title="a")
    yield table(["a", "a"], [["a", "a"]], "a")
    yield figure("a", "a", "a", name="f")
    yield panels([("a", "a", "a")])
    yield legend([(key(1), "a")])


def test_what_is_html_stays():
    assert join([Html("<hr>"), "<hr>"]) == "<hr>\n&lt;hr&gt;"


def test_the_page_lets_nothing_in_and_fits_a_phone():
    page = parse(document("Results", ""))
    metas = page.all("meta")
    policy = next(meta["content"] for meta in metas if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert any(meta.get("name") == "viewport" and "width=device-width" in meta["content"] for meta in metas)
    styles = "".join(page.styles)
    assert "prefers-color-scheme:dark" in styles
    # names and remarks fold, so that the first score can be seen beside the model
    assert "nowrap" not in styles
    assert page.all("script") == []


def test_the_best_row_is_pointed_out():
    rows = parse(table(["a"], [["x"], ["y"]], "t", best=1)).all("tr")
    assert [row.get("class") for row in rows] == [None, None, "best"]


def test_wide_tables_scroll_in_a_frame_that_a_keyboard_reaches():
    frame = parse(table(["a"], [["x"]], 'of "things"')).all("div")[0]
    assert frame == {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": 'of "things"'}
