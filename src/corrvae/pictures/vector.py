"""A matplotlib figure as SVG inside a page: text as text, colours by name, no identifier but its own, few digits."""

import re
import warnings
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from corrvae.pictures.theme import INK, LINE, SOFT, css_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UNITS_AN_INCH = 72  # of matplotlib's SVG: a font of 11 points is 11 units high
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "corrvae",
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "xtick.color": LINE,
    "xtick.labelcolor": SOFT,
    "xtick.major.size": 3,
    "ytick.color": LINE,
    "ytick.labelcolor": SOFT,
    "ytick.major.size": 0,
}
_DROPPED = {"metadata", "style"}
_STAND_IN = re.compile(r"#0a00[0-9a-f]{2}")
_DECIMAL = re.compile(r"-?\d+\.\d+")
_DOT = re.compile(r"M(\S+ \S+)L\1(?=M|$)")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_DRAWN_NUMBERS = ("d", "x", "y", "width", "height")


def inline_svg(
    paint: "Callable[[Figure], None]",
    *,
    name: str,
    width: float,
    height: float,
    title: str,
    description: str,
    digits: int = 1,
) -> str:
    """Draw a figure and give it as an ``<svg>`` element that fills the width of its place.

    Parameters
    ----------
    paint
        Draws on an empty figure, in the stand-in colours of `corrvae.pictures.theme`.
    name
        What its identifiers begin with: unique on the page.
    width, height
        Its size on a screen of the smallest kind; it is scaled from there.
    title, description
        For those who do not see it.
    digits
        Behind the point, of positions in the drawing.

    Examples
    --------
    >>> svg = inline_svg(lambda figure: None, name="a", width=72, height=36, title="Empty", description="Nothing.")
    >>> print(svg[:69])
    <svg viewBox="0 0 72 36" role="img" aria-labelledby="a-title a-text">
    """
    root = _without_namespaces(ElementTree.fromstring(_rendered(paint, width, height)))
    _shorten(root, digits)
    _rename(root, name)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-labelledby": f"{name}-title {name}-text"}
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, {"id": f"{name}-{'title' if tag == 'title' else 'text'}"})
        element.text = text
        root.insert(position, element)
    return ElementTree.tostring(root, encoding="unicode")


def bare_axes(figure: "Figure", left: float, bottom: float, right: float, top: float) -> "Axes":
    """Axes with margins given in the figure's units, so that labels of any font find the room they were promised.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> [float(side) for side in bare_axes(Figure(figsize=(2, 1)), 36, 18, 36, 0).get_position().bounds]
    [0.25, 0.25, 0.5, 0.75]
    """
    width, height = figure.get_size_inches() * _UNITS_AN_INCH
    box = (left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height)
    return figure.add_axes(box)


def _rendered(paint: "Callable[[Figure], None]", width: float, height: float) -> bytes:
    import matplotlib
    from matplotlib.figure import Figure

    file = BytesIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Letters that matplotlib's own font lacks are drawn by the reader's browser.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        matplotlib.rcdefaults()  # a reader's own style sheet must not reach into the report
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=(width / _UNITS_AN_INCH, height / _UNITS_AN_INCH))
        paint(figure)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return file.getvalue()


def _without_namespaces(element: ElementTree.Element) -> ElementTree.Element:
    """HTML knows what an ``<svg>`` is without its address."""
    plain = ElementTree.Element(_local(element.tag), {_local(key): value for key, value in element.attrib.items()})
    plain.text = element.text if plain.tag == "text" else None
    plain.extend(_without_namespaces(child) for child in element if _local(child.tag) not in _DROPPED)
    return plain


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _shorten(root: ElementTree.Element, digits: int) -> None:
    """Name the colours, leave the font to the page, and keep no digit that cannot be seen."""
    names = css_names()
    for element in root.iter():
        style = element.get("style")
        if style is not None:
            kept = [part.replace(": ", ":") for part in style.split("; ") if not part.startswith("font-family")]
            element.set("style", _STAND_IN.sub(lambda found: names[found[0]], ";".join(kept)))
        for attribute in _DRAWN_NUMBERS:
            value = element.get(attribute)
            if value is not None:
                short = _DECIMAL.sub(lambda found: _rounded(found[0], digits), value)
                element.set(attribute, _tight(short) if attribute == "d" else short)
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]


def _rounded(number: str, digits: int) -> str:
    return f"{round(float(number), digits):.{digits}f}".removesuffix(".0")


def _tight(path: str) -> str:
    """A path without spaces that say nothing, and lines of no length in short."""
    return _DOT.sub(r"M\1h0", re.sub(r"\s*([MLCQz])\s*", r"\1", path).rstrip())


def _rename(root: ElementTree.Element, name: str) -> None:
    """Keep the identifiers that something refers to, under the figure's own name."""
    used: dict[str, str] = {}
    for element in root.iter():
        for key, value in element.attrib.items():
            found = _REFERENCE.fullmatch(value) if key == "clip-path" else None
            target = found[1] if found else value[1:] if key == "href" else None
            if target is not None:
                used.setdefault(target, f"{name}-{len(used)}")
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in used:
            element.set("id", used[old])
        if "href" in element.attrib:
            element.set("href", f"#{used[element.attrib['href'][1:]]}")
        if "clip-path" in element.attrib:
            element.set(
                "clip-path", _REFERENCE.sub(lambda found: f"url(#{used[found[1]]})", element.get("clip-path", ""))
            )
