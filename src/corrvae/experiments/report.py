"""The report on a folder of results: one HTML file with tables and figures that needs no network."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from corrvae.errors import FolderError
from corrvae.experiments.published import RECIPE_TITLES, TASKS, Task
from corrvae.experiments.records import Record, read_records, write_text
from corrvae.experiments.tables import in_order, result_table
from corrvae.plots import COLOURS, draw_curves, styled, svg_uri

_RECIPE_NOTES = {
    "recommended": "What we advise.",
    "paper": "Trained with the settings that the paper gives; hidden widths and steps, which it leaves open, are ours.",
    "quick": "The same code on small data: not comparable with the paper's numbers.",
    "recommended-two-catalogues": "The same models where the list of items is cut in two; the paper does not do this.",
    "quick-two-catalogues": "The same on small data.",
}
_CHOICE_NOTES = {
    ("matching", "recommended"): "Settings were chosen on validation data.",
    ("matching", "recommended-two-catalogues"): "Settings were chosen on validation data.",
    ("links", "old-protocol"): "Settings were chosen on validation data, except those of CVAE_corr, the paper's.",
}
_TERMS = ("total", "reconstruction", "singleton", "edge", "non_edge", "contrast", "tau", "loss")
_OURS = ("ind", "corr", "ind+graph")

# The runs of one task and recipe by model, in the order of the tables.
Models = dict[str, list[Record]]


def write_report(results: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Write the report on a folder of records, whole or not at all, and return its path."""
    folder = Path(results)
    if not folder.is_dir():
        raise FolderError(folder, "is not a folder" if folder.exists() else "there is no such folder")
    records = list(read_records(folder))
    if not records:
        raise FolderError(folder, "has no results in it; corrvae reproduce TASK --out FOLDER makes them")
    path = folder / "report.html" if out is None else Path(out)
    write_text(path, build_report(records))
    return path


def build_report(records: Iterable[Record]) -> str:
    """Return the page; the same records always give the same page."""
    records = sorted(records, key=lambda record: record.seed)
    tasks = []
    for task in TASKS.values():
        sections = []
        for recipe in RECIPE_TITLES:
            runs = [record for record in records if (record.task, record.recipe) == (task.name, recipe)]
            names = in_order({run.model for run in runs}, task.name, recipe)
            if runs:
                sections.append(_section(task, recipe, {name: [r for r in runs if r.model == name] for name in names}))
        if sections:
            tasks.append({"name": task.name, "question": task.question, "sections": sections})
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html.j2").render(
        tasks=tasks,
        n_runs=len(records),
        n_models=len({(record.task, record.model) for record in records}),
        last=max((record.finished for record in records), default=""),
    )


def _section(task: Task, recipe: str, models: Models) -> dict[str, Any]:
    runs = [run for of_model in models.values() for run in of_model]
    notes = [_RECIPE_NOTES[recipe], _CHOICE_NOTES.get((task.name, recipe), ""), task.note]
    return {
        "notes": " ".join(note for note in notes if note),
        "card": _card(task, recipe, models),
        "table": result_table(runs),
        "figures": _figures(task, recipe, models),
        "runs": [_facts(run) for run in runs],
    }


def _card(task: Task, recipe: str, models: Models) -> dict[str, str]:
    """Return the best correlated model in large, with the paper's number and the best of the others."""
    competing = [name for name, runs in models.items() if runs[0].settings.get("method") != "latents"] or list(models)
    competing.sort(key=lambda name: -_mean(task, models[name]))
    ours = next((name for name in competing if name in _OURS), competing[0])
    other = next((name for name in competing if name not in _OURS and name != ours), None)
    lines = [f"{models[ours][-1].label}, {RECIPE_TITLES[recipe]}"]
    if (paper := _paper(task, recipe, ours)) is not None:
        lines.append(f"paper: {paper:.4f}")
    if other is not None:
        lines.append(f"best of the others: {models[other][-1].label} {_mean(task, models[other]):.4f}")
    return {"measure": task.metric_name, "score": f"{_mean(task, models[ours]):.4f}", "lines": "; ".join(lines)}


def _mean(task: Task, runs: list[Record]) -> float:
    return fmean(run.scores[task.metric] for run in runs)


def _paper(task: Task, recipe: str, model: str) -> float | None:
    """Return the paper's score, where the data are comparable with the paper's."""
    comparable = recipe in ("recommended", "paper") and model in task.published
    return task.published[model].mean if comparable else None


def _facts(run: Record) -> dict[str, str]:
    facts = {"settings": run.settings.get("parameters", {}), "data": run.data, "versions": run.versions}
    text = "\n".join(f"{name}: {json.dumps(value)}" for name, value in facts.items())
    return {"title": f"{run.label}, seed {run.seed}, finished {run.finished}", "command": run.command, "text": text}


def _figures(task: Task, recipe: str, models: Models) -> list[dict[str, Any]]:
    curves = []
    for term in _TERMS:
        lines = {}
        for runs in models.values():
            history = next((run.history for run in runs if run.history), {})
            if any(history.get(term, [])):
                lines[runs[-1].label] = np.array(history["step"]), np.array(history[term])
        if lines:
            curves.append(draw_curves(lines, title=term.replace("_", "-")))
    scores = (
        "Look for simple methods that pass the others. An upright mark is the paper's number, a whisker one standard "
    )
    steps = "Look for lines that have levelled off: each is a term per data point along the steps of the first seed."
    figures = [
        ("Scores", scores + "deviation over seeds.", [_draw_bars(task, recipe, models)]),
        ("Learning curves", steps, curves),
    ]
    return [
        {"title": title, "look": look, "images": [svg_uri(figure) for figure in drawings]}
        for title, look, drawings in figures
        if drawings
    ]


@styled
def _draw_bars(task: Task, recipe: str, models: Models) -> Figure:
    figure = Figure(figsize=(5.2, 0.6 + 0.32 * len(models)))
    axes = figure.add_subplot()
    for place, (model, runs) in enumerate(models.items()):
        values = [run.scores[task.metric] for run in runs]
        spread = stdev(values) if len(values) > 1 else 0.0
        colour = COLOURS[0] if model in _OURS else "#9aa3ad"
        axes.barh(place, fmean(values), xerr=spread, color=colour, height=0.6, capsize=3)
        if (paper := _paper(task, recipe, model)) is not None:
            axes.plot([paper] * 2, [place - 0.4, place + 0.4], color="black", lw=2.5, solid_capstyle="butt")
    axes.set_yticks(range(len(models)), [runs[-1].label for runs in models.values()])
    axes.invert_yaxis()
    axes.set_xlabel(task.metric_name)
    return figure
