"""A page on one trained run: its map, its learning curves, its links, its most and least certain points."""

from pathlib import Path

import numpy as np
from jaxtyping import Int

from corrvae.answers.description import describe, model_name
from corrvae.drafts import draft_of_file
from corrvae.errors import FolderError
from corrvae.experiments.comparing import METRIC_NAMES
from corrvae.pictures.curves import Curve, draw_curves, term_names
from corrvae.pictures.histograms import describe_separation, draw_pairs, share_lower
from corrvae.pictures.maps import draw_map, group_series
from corrvae.pictures.page import Html, document, element, figure, join, key, legend, panels, table
from corrvae.pictures.reading import as_facts, as_text, show_number
from corrvae.pictures.run_calibration import draw_calibration
from corrvae.pictures.run_view import LinkScores, RunView

_FOOT = "Written by corrvae plot. This page is one file and asks for nothing from elsewhere."
_MOST_KEYS, _MOST_TERMS, _LONGEST_ID = 12, 10, 40
_ENDS = {"finished": "as planned", "early": "early, without improvement", "interrupted": "by an interruption"}


def write_page(view: RunView, path: Path) -> Path:
    """Write the page on a run, whole or not at all.

    Parameters
    ----------
    view
        What is to be seen.
    path
        The file.
    """
    page = build_page(view)
    try:
        with draft_of_file(path) as draft:
            draft.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        raise FolderError(path, f"cannot be written ({error.strerror or error})") from error
    return path


def build_page(view: RunView) -> str:
    """Put the page together: the same run always gives the same page.

    Examples
    --------
    >>> import tempfile
    >>> from corrvae import CorrelatedVAE
    >>> from corrvae.answers.run import Run
    >>> from corrvae.pictures.run_view import view_run
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = CorrelatedVAE(3, hidden=(8,), max_epochs=1, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/run")
    ...     page = build_page(view_run(Run.open(f"{folder}/run")))
    >>> page.splitlines()[0]
    '<!DOCTYPE html>'
    """
    run = view.run
    title = f"{as_text(run.path.resolve().name, longest=60)}: a trained {model_name(run)}"
    top = [element("h1", title), element("p", _summary(view), class_="soft"), _cards(view)]
    parts = (_map(view), _curves(view), _links(view.links), _certain(view), _particulars(view))
    main = join(part for part in parts if part is not None)
    body = [element("header", join(top)), element("main", main), element("footer", _FOOT)]
    return document(title, join(body))


def _summary(view: RunView) -> str:
    run, model = view.run, view.run.model
    graph = "no graph" if run.graph_ is None else f"{_many(run.graph_.n_edges, 'link')} between them"
    end = _ENDS.get(model.stopped_, model.stopped_)
    return (
        f"{_many(len(run.ids_), 'point')} of {_many(run.n_features_in_, 'feature')}, {graph}. "
        f"Training ended {end} after {_many(model.n_steps_, 'step')}."
    )


def _cards(view: RunView) -> Html:
    run, history = view.run, view.run.model.history_
    shown = [("Points", f"{len(run.ids_):,}", f"in {_many(run.embedding_.shape[1], 'dimension')}")]
    if "total" in history and history.n_rows:
        validated = "validation_total" in history
        value = float(history["validation_total" if validated else "total"][-1])
        shown.append(
            ("Bound", show_number(value, digits=2), f"nats a point, {'validation' if validated else 'training'}")
        )
    if view.links is not None:
        share = _share_better(view.links)
        kind = "links kept from training" if view.links.held_out else "links of training"
        shown.append(("Linked before unlinked", f"{share:.0%}".replace("%", " %"), f"of the time; {kind}"))
    typical = float(np.median(view.certainty.spread))
    shown.append(("Typical deviation", show_number(typical, digits=3), "the prior has 1"))
    cards = [
        element(
            "div",
            join([element("span", name, class_="soft"), element("strong", value), element("span", note)]),
            class_="card",
        )
        for name, value, note in shown
    ]
    return element("div", join(cards), class_="cards")


def _share_better(links: LinkScores) -> float:
    lower = share_lower(links.linked, links.unlinked)
    return lower if "distance" in links.metric else 1.0 - lower


def _map(view: RunView) -> Html:
    groups = view.colouring.groups
    colours = group_series(groups)
    svg = draw_map(view.places, view.edges, groups, colours, name="map-svg", label="the embedding")
    sizes = {group: int((groups == group).sum()) for group in colours}
    entries = [
        (key(colour), f"{view.colouring.names[group]} ({sizes[group]:,})")
        for group, colour in colours.items()
        if colour is not None
    ]
    quiet = [group for group, colour in colours.items() if colour is None]
    if quiet:
        entries.append((key(None), f"{len(quiet):,} others ({sum(sizes[group] for group in quiet):,})"))
    how = "by UMAP" if view.projection == "umap" else "in the plane of the two principal components"
    share = "" if view.share is None else f", which holds {view.share:.0%} of the variance".replace("%", " %")
    part = "" if len(view.shown) == len(view.run.ids_) else f"; {len(view.shown):,} points were drawn at random"
    look = (
        f"The means of the points {how}{share}{part}, coloured by {as_text(view.colouring.title, longest=60)}. "
        "Look for short edges: linked points should be next to each other."
    )
    note = element("p", f"{_many(len(view.shown), 'point')}, {_many(len(view.edges), 'edge')} drawn.", class_="note")
    return figure("Map of the embedding", look, join([Html(svg), note, legend(entries[:_MOST_KEYS])]), name="map")


def _curves(view: RunView) -> Html | None:
    history = {name: np.asarray(values, dtype=float) for name, values in view.run.model.history_.items()}
    terms = term_names([history])
    if "step" not in history or not terms or len(history["step"]) < 2:
        return None
    parts, validated = [], False
    for position, (term, title) in enumerate(list(terms.items())[:_MOST_TERMS]):
        curves = [Curve("training", 0, history["step"], history[term])]
        if f"validation_{term}" in history:
            validated = True
            curves.append(Curve("validation", 1, history["step"], history[f"validation_{term}"]))
        parts.append((title, Html(draw_curves(curves, name=f"curves-{position}", term=title)), ""))
    keys = [(key(0), "training"), *([(key(1), "validation")] if validated else [])]
    look = "Look for lines that have levelled off. Each is a term per point along the steps."
    if validated:
        look += " Where validation turns away from training, the model learns by heart."
    return figure("Learning curves", look, join([panels(parts, small=True), legend(keys)]), name="curves")


def _links(links: LinkScores | None) -> Html | None:
    if links is None:
        return None
    metric = METRIC_NAMES[links.metric]
    pairs = draw_pairs(links.linked, links.unlinked, name="links-pairs", label="this run", metric=metric, series=0)
    note = f"{metric.capitalize()}. {describe_separation(links.linked, links.unlinked, metric)}"
    parts = [
        ("Scores", join([Html(pairs), legend([(key(0), "linked pairs"), (key(None), "random unlinked pairs")])]), note)
    ]
    if len(links.predicted):
        drawn = draw_calibration(links.predicted, links.observed, links.counts, name="links-calibration")
        told = "Near the diagonal, a probability means what it says; half of these pairs are links."
        parts.append(("Calibration", Html(drawn), told))
    look = "Look for two hills apart, and for dots along the diagonal. "
    if links.held_out:
        look += f"These are {_many(len(links.linked), 'link')} that training has not seen."
    else:
        look += "These links are those of training, which flatter the model: on new ones it does worse."
    return figure("Linked against unlinked pairs", look, panels(parts), name="links")


def _certain(view: RunView) -> Html | None:
    certainty = view.certainty
    if not len(certainty.most):
        return None
    tables = [
        _points_table(view, certainty.most, "The most certain points: where they are is known best."),
        _points_table(view, certainty.least, "The least certain points: their features say little of where they are."),
    ]
    told = element("p", "Deviation is the root of a point's mean variance; the prior has 1.", class_="soft")
    return element(
        "section", join([element("h2", "Certainty"), told, element("div", join(tables), class_="pair")]), id="certainty"
    )


def _points_table(view: RunView, chosen: Int[np.ndarray, " chosen"], caption: str) -> Html:
    graph = view.run.graph_
    ids = view.run.ids_[chosen].tolist()
    rows = [
        [
            as_text(name, longest=_LONGEST_ID),
            show_number(float(view.certainty.spread[point])),
            "0" if graph is None else f"{graph.degrees[point]:,}",
        ]
        for name, point in zip(ids, chosen.tolist(), strict=True)
    ]
    return table(["Point", "Deviation", "Links"], rows, caption)


def _particulars(view: RunView) -> Html:
    tables = [
        table(
            ["", subject],
            [[name.replace("_", " "), value] for name, value in as_facts(facts).items()],
            subject,
            words=True,
        )
        for subject, facts in describe(view.run).items()
    ]
    return element("details", join([element("summary", "Model, data, training, versions"), *tables]))


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
