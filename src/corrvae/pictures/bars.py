"""Horizontal bars of the models' scores, with their spread over seeds and what the paper reports."""

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, final

from corrvae.pictures.reading import show_number
from corrvae.pictures.theme import INK, SERIES, SOFT
from corrvae.pictures.vector import bare_axes, inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _ROW, _FOOT = 340, 40, 30
_LONGEST_LABEL, _LONGEST_BESIDE = 32, 18


@final
@dataclass(frozen=True)
class Bar:
    """A model's row.

    Attributes
    ----------
    label
        The model, for people.
    values
        Its score with each seed; none if it has no score.
    paper
        What the paper reports, if it does.
    series
        Position of its colour in `SERIES`, or ``None`` for a quiet one.
    """

    label: str
    values: list[float]
    paper: float | None
    series: int | None

    @property
    def mean(self) -> float | None:
        """Over seeds."""
        return fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over seeds; one seed has none."""
        return stdev(self.values) if len(self.values) > 1 else None

    def __str__(self) -> str:
        return show_number(self.mean) + ("" if self.deviation is None else f" ± {show_number(self.deviation)}")


def draw_bars(bars: list[Bar], *, name: str, measure: str) -> str:
    """Draw bars against the paper, as SVG.

    Parameters
    ----------
    bars
        One for each model, from top to bottom.
    name
        What identifiers begin with.
    measure
        The score, for people.

    Examples
    --------
    >>> svg = draw_bars([Bar("CVAE_ind", [0.7, 0.72], 0.6608, 0)], name="bars", measure="reciprocal rank")
    >>> "0.7100 ± 0.0141" in svg
    True
    """

    def paint(figure: "Figure") -> None:
        axes = bare_axes(figure, 8, _FOOT, 8, 2)
        low, high = _bounds(bars)
        axes.set(xlim=(low, high), ylim=(len(bars) - 0.05, -0.25), yticks=[])
        axes.locator_params(axis="x", nbins=5)
        for row, bar in enumerate(bars):
            _paint_row(axes, row, bar)

    height = _ROW * max(len(bars), 1) + _FOOT + 2
    return inline_svg(
        paint, name=name, width=_WIDTH, height=height, title=f"Bars of {measure}", description=_text(bars, measure)
    )


def _paint_row(axes, row: int, bar: Bar) -> None:
    low, high = axes.get_xlim()
    colour = SOFT if bar.series is None else SERIES[bar.series]
    line = row + 0.1  # the words stand above the bar, where no mark can meet them
    short = bar.label if len(bar.label) <= _LONGEST_LABEL else f"{bar.label[: _LONGEST_LABEL - 1]}…"
    axes.text(low, line, short, va="center", fontweight="bold", parse_math=False)
    # the paper's number, which the mark shows as well, makes room for a long name
    paper = "" if bar.paper is None or len(bar.label) > _LONGEST_BESIDE else f" · paper {show_number(bar.paper)}"
    axes.text(high, line, f"{bar}{paper}", va="center", ha="right", color=SOFT, fontsize=10)
    place = row + 0.55
    if bar.mean is not None:
        axes.barh(place, bar.mean, height=0.36, color=colour, alpha=0.85)
        if bar.deviation is not None:
            axes.errorbar(bar.mean, place, xerr=bar.deviation, color=INK, capsize=3.5, elinewidth=1.5, capthick=1.5)
    if bar.paper is not None:
        axes.plot([bar.paper] * 2, [place - 0.27, place + 0.27], color=INK, lw=2.5, solid_capstyle="butt")


def _bounds(bars: list[Bar]) -> tuple[float, float]:
    reached = [0.0]
    for bar in bars:
        if bar.mean is not None:
            reached += [bar.mean + sign * (bar.deviation or 0.0) for sign in (-1, 1)]
        if bar.paper is not None:
            reached.append(bar.paper)
    low, high = min(reached), max(reached)
    # a spread that reaches below nothing is cut: scores of this kind are shares
    low = low if any(value < 0 for bar in bars for value in bar.values) else 0.0
    return low, high + 0.04 * (high - low) if high > low else low + 1.0


def _text(bars: list[Bar], measure: str) -> str:
    rows = (f"{bar.label} {bar}" + ("" if bar.paper is None else f", paper {show_number(bar.paper)}") for bar in bars)
    return f"Mean and standard deviation of {measure} over seeds. {'; '.join(rows)}."
