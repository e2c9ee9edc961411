"""A section of the report: one task by one recipe, in a table and figures."""

import re
from collections.abc import Callable, Iterable, Mapping
from statistics import fmean

import numpy as np

from corrvae.experiments.published import CLEAR_RESIDUAL, TASKS
from corrvae.pictures.bars import Bar, draw_bars
from corrvae.pictures.curves import Curve, draw_curves, term_names
from corrvae.pictures.histograms import describe_separation, draw_pairs, draw_weights_histogram
from corrvae.pictures.maps import draw_map, group_series
from corrvae.pictures.page import Html, element, figure, join, key, legend, panels, table
from corrvae.pictures.paper import describe_recipe, describe_task
from corrvae.pictures.reading import NOT_GIVEN, show_number
from corrvae.pictures.runs import Drawing, Entrant, Run, Section

_NONE = "\N{EN DASH}"
_MOST_SCORES, _MOST_TERMS, _MOST_KEYS = 8, 10, 8
_NAMES = {
    "reciprocal_rank": "Reciprocal rank",
    "nmi": "NMI",
    "ari": "ARI",
    "ncrr": "NCRR",
    "mrr": "MRR",
    "auc": "AUC",
}


def main_score(section: Section) -> str:
    """The score that a section is judged by: the task's own, or the first that there is.

    Examples
    --------
    >>> main_score(Section("links", "paper", []))
    'ncrr'
    """
    there = (name for run in section.runs for name in run.scores)
    return describe_task(section.task).score or next(there, "score")


def ranking(section: Section, paper: Mapping[str, float], series: Mapping[str, int]) -> list[tuple[Entrant, Bar]]:
    """The models with their bars, the best first, then those without a score; a ceiling comes last.

    Examples
    --------
    >>> unscored = Section("links", "paper", [Entrant("ind", "CVAE_ind", [])])
    >>> [(entrant.model, str(bar)) for entrant, bar in ranking(unscored, {}, {})]
    [('ind', 'not given')]
    """
    score = main_score(section)
    bars = [
        (one, Bar(one.label, one.values(score), paper.get(one.model), series.get(one.model)))
        for one in section.entrants
    ]
    return sorted(
        bars, key=lambda pair: (pair[0].is_ceiling, pair[1].mean is None, -(pair[1].mean or 0.0), pair[0].model)
    )


def say_unclear(entrant: Entrant) -> str:
    """Say in how many runs the cut into groups means little, or nothing if it means something in all.

    Examples
    --------
    >>> say_unclear(Entrant("ind", "CVAE_ind", []))
    ''
    """
    residuals = entrant.values("residual")
    n_unclear = sum(residual > CLEAR_RESIDUAL for residual in residuals)
    if n_unclear == 0:
        return ""
    return "no clear cut" if n_unclear == len(residuals) else f"no clear cut in {n_unclear} of {len(residuals)} seeds"


def section_html(section: Section, paper: Mapping[str, float], series: Mapping[str, int], *, name: str) -> Html:
    """Write a section.

    Parameters
    ----------
    section
        The runs.
    paper
        The paper's main score of each model; none if the section is not held against it.
    series
        Colours of the models.
    name
        What its identifiers begin with.

    Examples
    --------
    >>> 'id="s1-bars"' in section_html(Section("links", "paper", []), {}, {}, name="s1")
    True
    """
    ranked = ranking(section, paper, series)
    entrants = [entrant for entrant, _ in ranked]
    bars = _bars(section, [bar for _, bar in ranked], f"{name}-bars", compared=bool(paper))
    upper = [bars, _weights(entrants, f"{name}-weights")]
    return join(
        part
        for part in (
            element("p", _introduce(section, compared=bool(paper)), class_="soft"),
            _score_table(section, ranked, compared=bool(paper)),
            element("div", join(part for part in upper if part is not None), class_="pair"),
            _curves(entrants, series, f"{name}-curves"),
            _maps(section, entrants, series, f"{name}-map"),
            _distances(section, entrants, series, f"{name}-pairs"),
            _particulars(entrants),
        )
        if part is not None
    )


def _introduce(section: Section, *, compared: bool) -> str:
    names = sorted({run.data.get("name", NOT_GIVEN) for run in section.runs})
    paper = f"; the paper's numbers are of {describe_task(section.task).paper_data}" if compared else ""
    return f"{describe_recipe(section.recipe, section.task).sentence} Data: {', '.join(names)}{paper}."


def _other_scores(section: Section) -> dict[str, str]:
    """The further scores that the runs have, by name, for people: counts are none."""
    main, there = main_score(section), dict.fromkeys(name for run in section.runs for name in run.scores)
    if section.task in TASKS:
        return {name: title for name, title in TASKS[section.task].others.items() if name in there}
    return {name: _plain(name) for name in [name for name in there if name != main][:_MOST_SCORES]}


def _score_table(section: Section, ranked: list[tuple[Entrant, Bar]], *, compared: bool) -> Html:
    main, others = main_score(section), _other_scores(section)
    head = ["Model", _NAMES.get(main, main), "± s.d.", *(["Paper"] if compared else []), *others.values()]
    rows = [
        [
            Html(key(bar.series) + element("span", entrant.label)),
            show_number(bar.mean) + (f" ({unclear})" if (unclear := say_unclear(entrant)) else ""),
            show_number(bar.deviation, "one seed" if bar.values else NOT_GIVEN),
            *([show_number(bar.paper, _NONE)] if compared else []),
            *(show_number(_mean(entrant.values(name))) for name in others),
            f"{len(entrant.runs)}",
            show_number(_mean(run.seconds / 60 for run in entrant.runs if run.seconds is not None), digits=1),
            show_number(
                max((run.megabytes for run in entrant.runs if run.megabytes is not None), default=None), digits=0
            ),
        ]
        for entrant, bar in ranked
    ]
    best = 0 if ranked and ranked[0][1].mean is not None and not ranked[0][0].is_ceiling else -1
    return table([*head, "Seeds", "Minutes", "Memory, MB"], rows, _explain_scores(section), best=best)


def _explain_scores(section: Section) -> str:
    told = describe_task(section.task)
    sentences = [f"Means over seeds, best {told.measure} first; minutes are the mean and memory the most of a run."]
    sentences += [
        f"{entrant.label} is a ceiling, no competitor: it stands for the true latents, which no model is given."
        for entrant in section.entrants
        if entrant.is_ceiling
    ]
    return " ".join([*sentences, *([told.note] if told.note else []), *_count_pairs(section)])


def _count_pairs(section: Section) -> list[str]:
    """Ranks among fewer candidates are better ranks, so that the parts must not be compared with each other."""
    test, validation = (
        sorted({run.scores[name] for run in section.runs if name in run.scores})
        for name in ("n_pairs", "validation_n_pairs")
    )
    if section.task != "matching" or not test or not validation:
        return []
    counts = [", ".join(show_number(count, digits=0) for count in part) for part in (test, validation)]
    return [
        f"Test has {counts[0]} pairs and validation {counts[1]}: each half is ranked among those of its own part, "
        "so that reciprocal ranks of the two cannot be compared."
    ]


def _bars(section: Section, bars: list[Bar], name: str, *, compared: bool) -> Html:
    measure = describe_task(section.task).measure
    marks = [(Html('<span class="key mark"></span>'), "the paper")] if compared else []
    marks.append((Html("├─┤ "), "one standard deviation over seeds"))
    drawing = join([Html(draw_bars(bars, name=f"{name}-svg", measure=measure)), legend(marks)])
    if compared:
        title = f"{measure.capitalize()} against the paper"
        look = "Look for bars that pass their upright mark, and for simple methods that pass them all."
    else:
        title, look = measure.capitalize(), "Look for simple methods that pass the others."
    return figure(title, look, drawing, name=name)


def _weights(entrants: list[Entrant], name: str) -> Html | None:
    drawings = _drawings(entrants, lambda drawing: len(drawing.weight_counts) > 0)
    if not drawings:
        return None
    _, drawing = drawings[0]
    svg = draw_weights_histogram(drawing.weight_counts, drawing.weight_bounds, name=f"{name}-svg")
    look = (
        "Look at the ends: an edge of weight 1 is the only way between its points, one near 0 has many ways around it."
    )
    return figure("Spanning weights of the graph", look, Html(svg), name=name)


def _curves(entrants: list[Entrant], series: Mapping[str, int], name: str) -> Html | None:
    trained = [entrant for entrant in entrants if entrant.model in series and any(run.history for run in entrant.runs)]
    terms = term_names(run.history for entrant in trained for run in entrant.runs)
    if not terms:
        return None
    parts = []
    for position, (term, title) in enumerate(list(terms.items())[:_MOST_TERMS]):
        curves = [
            Curve(entrant.label, series[entrant.model], run.history["step"], run.history[term])
            for entrant in trained
            for run in entrant.runs
            if term in run.history
        ]
        parts.append((title, Html(draw_curves(curves, name=f"{name}-{position}", term=title)), ""))
    keys = legend((key(series[entrant.model]), entrant.label) for entrant in trained)
    look = (
        "Look for lines that have levelled off: each is a term per data point along the steps of one seed, "
        "and the very first steps may leave the frame."
    )
    return figure("Learning curves", look, join([panels(parts, small=True), keys]), name=name)


def _maps(section: Section, entrants: list[Entrant], series: Mapping[str, int], name: str) -> Html | None:
    drawings = _drawings(entrants, lambda drawing: len(drawing.points) > 0)
    if not drawings:
        return None
    grouped = [drawing.groups for _, drawing in drawings if drawing.groups is not None]
    # the same group has the same colour on every map
    colours = group_series(np.concatenate(grouped)) if grouped else {}
    parts = []
    for position, (entrant, drawing) in enumerate(drawings):
        if drawing.groups is None:
            groups, shown = np.zeros(len(drawing.points)), {0.0: series.get(entrant.model)}
        else:
            groups, shown = drawing.groups, colours
        label = entrant.label
        svg = draw_map(drawing.points, drawing.edges, groups, shown, name=f"{name}-{position}", label=label)
        parts.append((label, Html(svg), f"{len(drawing.points):,} points, {len(drawing.edges):,} edges"))
    keys = legend((key(colour), f"group {group:g}") for group, colour in colours.items())
    look = "Look for short edges: a model that has learned the graph puts linked points next to each other."
    below = [keys] if 1 < len(colours) <= _MOST_KEYS else []
    look = f"{look} {describe_task(section.task).map}".rstrip()
    return figure("Maps of the embedding", look, join([panels(parts), *below]), name=name)


def _distances(section: Section, entrants: list[Entrant], series: Mapping[str, int], name: str) -> Html | None:
    drawings = _drawings(entrants, lambda drawing: len(drawing.linked) > 0 and len(drawing.random) > 0)
    if not drawings:
        return None
    parts = []
    for position, (entrant, drawing) in enumerate(drawings):
        svg = draw_pairs(
            drawing.linked,
            drawing.random,
            name=f"{name}-{position}",
            label=entrant.label,
            metric=drawing.metric,
            series=series.get(entrant.model),
        )
        note = f"{drawing.metric.capitalize()}. {describe_separation(drawing.linked, drawing.random, drawing.metric)}"
        parts.append((entrant.label, Html(svg), note))
    look = "Look for two hills apart: linked pairs should stand clear of random ones, which are grey."
    look = f"{look} {describe_task(section.task).linked}".rstrip()
    return figure("Linked against random pairs", look, panels(parts), name=name)


def _particulars(entrants: list[Entrant]) -> Html:
    head = ["", *(entrant.label for entrant in entrants)]
    tables = []
    facts: list[tuple[str, Callable[[Run], Mapping[str, str]]]] = [
        ("Settings", lambda run: run.settings),
        ("Data", lambda run: run.data),
        ("Versions", lambda run: run.versions),
    ]
    for title, facts_of in facts:
        names = dict.fromkeys(name for entrant in entrants for run in entrant.runs for name in facts_of(run))
        rows = [
            [name, *(_agreed(facts_of(run).get(name, _NONE) for run in one.runs) for one in entrants)] for name in names
        ]
        tables.append(table(head, rows, title, words=True) if rows else element("p", f"{title}: {NOT_GIVEN}"))
    lines = [
        f"{entrant.label}, seed {run.seed}, finished {run.finished}:\n  {run.command}"
        for entrant in entrants
        for run in entrant.runs
    ]
    commands = [element("h4", "Commands that repeat these runs"), element("pre", "\n".join(lines))]
    return element("details", join([element("summary", "Settings, data, versions, commands"), *tables, *commands]))


def _drawings(entrants: list[Entrant], has: Callable[[Drawing], bool]) -> list[tuple[Entrant, Drawing]]:
    found = ((entrant, entrant.drawing) for entrant in entrants)
    return [(entrant, drawing) for entrant, drawing in found if drawing is not None and has(drawing)]


def _agreed(values: Iterable[str]) -> str:
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else " | ".join(different)


def _plain(name: str) -> str:
    if re.fullmatch(r"hits_\d+", name):
        return name.replace("_", "@")
    return name.replace("_", " ").capitalize()


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return fmean(listed) if listed else None
