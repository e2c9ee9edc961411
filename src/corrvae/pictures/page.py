"""A page of HTML that needs nothing but itself: its style sheet, and the pieces that reports are put together from.

Whatever is not marked as `Html` is escaped on its way in.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import final

from corrvae.pictures.theme import SERIES, css_values

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_STYLE = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--back);color:var(--ink);line-height:1.5;overflow-wrap:break-word;
 font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main,header,footer{max-width:66rem;margin:0 auto;padding:0 1rem}
header{padding-top:2.2rem}
footer{padding-top:1.5rem;padding-bottom:3rem;color:var(--soft);font-size:.85rem}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .4rem;letter-spacing:-.01em}
h2{font-size:1.4rem;line-height:1.25;margin:3rem 0 .2rem}
h3{font-size:1.1rem;margin:1.8rem 0 .2rem}
h4{font-size:.92rem;margin:0;font-weight:600}
p{margin:.2rem 0 .8rem;max-width:44rem}
a{color:var(--series-0)}
.soft,figcaption,caption{color:var(--soft)}
.cards,.pair,.panels{display:grid;gap:1rem;align-items:start}
.cards{grid-template-columns:repeat(auto-fit,minmax(min(100%,15rem),1fr));margin:1.2rem 0}
.pair{grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))}
.panels{grid-template-columns:repeat(auto-fill,minmax(min(100%,15.5rem),1fr));gap:1rem 1.2rem}
.panels.small{grid-template-columns:repeat(auto-fit,minmax(min(100%,9rem),1fr));gap:.8rem}
.card,figure,.scroll,details{background:var(--surface);border:1px solid var(--line);border-radius:.6rem}
.card{padding:1rem 1.1rem;color:inherit;text-decoration:none;display:block}
.card strong{display:block;font-size:2rem;line-height:1.15;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.card span{display:block;font-size:.88rem}
figure{margin:1rem 0;padding:.9rem 1rem 1rem}
.pair>figure{margin:0}
figcaption{font-size:.9rem;margin-bottom:.8rem;max-width:44rem}
figcaption b{color:var(--ink);display:block;font-size:1rem}
figure svg{display:block;width:100%;height:auto;max-width:34rem;margin:0 auto;overflow:visible}
figure svg *{stroke-linejoin:round;stroke-linecap:butt}
figure .note{font-size:.82rem;color:var(--soft);margin:.1rem 0 0}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:.7rem 0 0;padding:0;font-size:.86rem}
.key{display:inline-block;width:.8em;height:.8em;border-radius:.2em;margin-right:.45em;background:var(--soft)}
.key.mark{width:.2em;height:1em;border-radius:0;background:var(--ink);vertical-align:-.1em}
.scroll{overflow-x:auto;margin:.8rem 0 1rem;-webkit-overflow-scrolling:touch}
table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.7rem .9rem .3rem;font-size:.86rem}
caption span{position:sticky;left:.9rem;display:inline-block;max-width:min(44rem,calc(100vw - 4rem))}
th,td{padding:.45rem .5rem;text-align:right;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--soft);font-weight:600;font-size:.84rem;vertical-align:bottom}
th:first-child{text-align:left;position:sticky;left:0;padding-left:.9rem;background:var(--surface)}
tbody th{font-weight:600;min-width:11rem}
.words td,.words th{text-align:left;min-width:7rem;max-width:22rem;vertical-align:top}
tr.best td:nth-child(2){font-weight:700}
tr.best th,tr.best td{background:var(--best)}
details{margin:1rem 0;padding:.2rem 1rem}
summary{cursor:pointer;font-weight:600;padding:.55rem 0}
details .scroll{border-radius:.4rem}
pre{white-space:pre-wrap;font-size:.82rem;overflow-wrap:anywhere;margin:.3rem 0 1rem}
@media (max-width:40rem){th:first-child{padding-left:.5rem}tbody th{min-width:7.5rem}td:nth-child(2){min-width:5rem}}
@media print{body{background:none}figure,.scroll{break-inside:avoid}}
"""


@final
class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def html(text: str) -> str:
    """Escape what is not HTML yet.

    Examples
    --------
    >>> html("<b>"), html(Html("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return text if isinstance(text, Html) else escape(text)


def join(parts: Iterable[str]) -> Html:
    r"""Put pieces one below the other.

    Examples
    --------
    >>> join([Html("<hr>"), "1 < 2"])
    '<hr>\n1 &lt; 2'
    """
    return Html("\n".join(html(part) for part in parts))


def element(tag: str, content: str, **attributes: str) -> Html:
    """An element; ``class_`` stands for ``class`` and ``aria_label`` for ``aria-label``.

    Examples
    --------
    >>> element("p", "1 < 2", class_="soft")
    '<p class="soft">1 &lt; 2</p>'
    """
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{tag}{given}>{html(content)}</{tag}>")


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], caption: str, *, words: bool = False, best: int = -1
) -> Html:
    """A table that scrolls inside its own frame; the first cell of a row names it.

    Parameters
    ----------
    head, rows
        Their cells.
    caption
        What it shows.
    words
        Cells hold words rather than numbers.
    best
        Position of the row to point out.

    Examples
    --------
    >>> print(table(["model", "score"], [["VAE", "0.35"]], "Scores"))
    <div class="scroll" tabindex="0" role="region" aria-label="Scores"><table><caption><span>Scores</span></caption>
    <thead><tr><th scope="col">model</th><th scope="col">score</th></tr></thead>
    <tbody>
    <tr><th scope="row">VAE</th><td>0.35</td></tr>
    </tbody></table></div>
    """
    top = "".join(element("th", cell, scope="col") for cell in head)
    lines = []
    for position, (name, *cells) in enumerate(rows):
        line = element("th", name, scope="row") + "".join(element("td", cell) for cell in cells)
        lines.append(f'<tr class="best">{line}</tr>' if position == best else f"<tr>{line}</tr>")
    body = "\n".join(lines)
    inner = f"{element('caption', element('span', caption))}\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody>"
    framed = Html(f'<table class="words">{inner}</table>' if words else f"<table>{inner}</table>")
    return element("div", framed, class_="scroll", tabindex="0", role="region", aria_label=caption)


def figure(title: str, look: str, drawing: str, *, name: str) -> Html:
    """A figure with its title, one sentence on what to look for, and the drawing.

    Examples
    --------
    >>> print(figure("Bars", "Longer is better.", Html("<svg></svg>"), name="bars"))
    <figure id="bars"><figcaption><b>Bars</b>Longer is better.</figcaption>
    <svg></svg></figure>
    """
    caption = element("figcaption", Html(element("b", title) + html(look)))
    return element("figure", join([caption, drawing]), id=name)


def panels(parts: Iterable[tuple[str, str, str]], *, small: bool = False) -> Html:
    """Small drawings side by side, each with a title above and a note below.

    Examples
    --------
    >>> print(panels([("VAE", Html("<svg></svg>"), "")]))
    <div class="panels"><div><h4>VAE</h4>
    <svg></svg></div></div>
    """
    cells = []
    for title, drawing, note in parts:
        below = [element("p", note, class_="note")] if note else []
        cells.append(element("div", join([element("h4", title), drawing, *below])))
    return element("div", join(cells), class_="panels small" if small else "panels")


def key(series: int | None) -> Html:
    """A patch of a series' colour, for those who see.

    Examples
    --------
    >>> key(2)
    '<span class="key" style="background:var(--series-2)"></span>'
    """
    if series is None:
        return Html('<span class="key"></span>')
    return Html(f'<span class="key" style="background:var(--series-{series % len(SERIES)})"></span>')


def legend(entries: Iterable[tuple[Html, str]]) -> Html:
    """Patches with what they stand for.

    Examples
    --------
    >>> print(legend([(key(None), "random pairs")]))
    <ul class="legend"><li><span class="key"></span>random pairs</li></ul>
    """
    return element("ul", join(element("li", Html(patch + html(text))) for patch, text in entries), class_="legend")


def document(title: str, body: str) -> str:
    """The whole page.

    Examples
    --------
    >>> "default-src 'none'" in document("Results", "")
    True
    """
    colours = f":root{{color-scheme:light dark;{css_values(dark=False)}}}\n"
    colours += f"@media (prefers-color-scheme:dark){{:root{{{css_values(dark=True)}}}}}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{colours}{_STYLE}</style>
</head>
<body>
{html(body)}
</body>
</html>
"""
