"""The runs of a result set, in the order that a report tells them: tasks, in each its recipes, in each its models."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from corrvae.experiments.records import Record, Sketches
from corrvae.pictures.reading import as_edges, as_facts, as_moment, as_number, as_numbers, as_points, as_text

_MOST_POINTS, _MOST_EDGES, _MOST_PAIRS, _MOST_BARS = 2000, 4000, 100_000, 200
_TASKS, _RECIPES = ("matching", "clustering", "links"), ("recommended", "paper", "quick")
_LONGEST_NAME = 60


@final
@dataclass(frozen=True, eq=False)
class Drawing:
    """What is drawn of a run; a part that the record does not give whole is empty.

    Attributes
    ----------
    points, groups, edges
        The map: where its points are, their groups if they are given, and edges as positions in `points`.
    linked, random, metric
        Scores of linked and of random pairs, and what was measured.
    weight_counts, weight_bounds
        The histogram of spanning weights.
    """

    points: Float[np.ndarray, "points 2"]
    groups: Float[np.ndarray, " points"] | None
    edges: Int[np.ndarray, "edges 2"]
    linked: Float[np.ndarray, " linked"]
    random: Float[np.ndarray, " random"]
    metric: str
    weight_counts: Float[np.ndarray, " bars"]
    weight_bounds: Float[np.ndarray, " bounds"]


@final
@dataclass(frozen=True, eq=False)
class Run:
    """A record with every value checked."""

    task: str
    recipe: str
    model: str
    label: str
    seed: str
    scores: dict[str, float]
    settings: dict[str, str]
    data: dict[str, str]
    versions: dict[str, str]
    command: str
    finished: str
    seconds: float | None
    megabytes: float | None
    history: dict[str, Float[np.ndarray, " steps"]]
    drawing: Drawing | None


@final
@dataclass(frozen=True, eq=False)
class Entrant:
    """A model with its runs, one for each seed."""

    model: str
    label: str
    runs: list[Run]

    def values(self, score: str) -> list[float]:
        """A score in every run that has it."""
        return [run.scores[score] for run in self.runs if score in run.scores]

    @property
    def is_ceiling(self) -> bool:
        """Whether these are the true latents, which no model is given: they take no part in the comparison."""
        return any(run.settings.get("method") == "latents" for run in self.runs)

    @property
    def drawing(self) -> Drawing | None:
        """Of the first run that has one."""
        return next((run.drawing for run in self.runs if run.drawing is not None), None)


@final
@dataclass(frozen=True, eq=False)
class Section:
    """The models that ran the same task by the same recipe."""

    task: str
    recipe: str
    entrants: list[Entrant]

    @property
    def runs(self) -> list[Run]:
        """Of all models."""
        return [run for entrant in self.entrants for run in entrant.runs]


def arrange(records: Iterable[Record]) -> list[Section]:
    """Check records and sort them into sections.

    Examples
    --------
    >>> arrange([])
    []
    """
    sections: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for run in map(check_run, records):
        sections.setdefault((run.task, run.recipe), {}).setdefault(run.model, []).append(run)
    ordered = sorted(sections, key=lambda key: (_place(key[0], _TASKS), key[0], _place(key[1], _RECIPES), key[1]))
    return [
        Section(task, recipe, [Entrant(name, runs[0].label, runs) for name, runs in sections[task, recipe].items()])
        for task, recipe in ordered
    ]


def check_run(record: Record) -> Run:
    """Take from a record what can be shown, whatever it holds.

    Examples
    --------
    >>> scores = {"ncrr": 0.016, "auc": float("nan")}
    >>> record = Record("links", "paper", "ind", "CVAE_ind", 0, scores, {}, {}, {}, "", "", 60.0, 500.0)
    >>> check_run(record).scores
    {'ncrr': 0.016}
    """
    scores = {as_text(name): as_number(value) for name, value in _pairs(record.scores)}
    return Run(
        task=as_text(record.task, longest=_LONGEST_NAME),
        recipe=as_text(record.recipe, longest=_LONGEST_NAME),
        model=as_text(record.model, longest=_LONGEST_NAME),
        label=as_text(record.label, longest=_LONGEST_NAME),
        seed=as_text(record.seed),
        scores={name: value for name, value in scores.items() if value is not None},
        settings=as_facts(record.settings),
        data=as_facts(record.data),
        versions=as_facts(record.versions),
        command=as_text(record.command, longest=1000),
        finished=as_moment(record.finished),
        seconds=as_number(record.seconds),
        megabytes=as_number(record.peak_megabytes),
        history=_history(record.history),
        drawing=_drawing(record.sketches),
    )


def _place(name: str, order: tuple[str, ...]) -> int:
    return order.index(name) if name in order else len(order)


def _pairs(values: object) -> Iterable[tuple[object, object]]:
    return values.items() if isinstance(values, dict) else ()


def _history(history: object) -> dict[str, np.ndarray]:
    """Columns that are as long as the steps are many; without steps there is nothing to draw along."""
    columns = {as_text(name): as_numbers(values) for name, values in _pairs(history)}
    steps = columns.get("step", np.empty(0))
    usable = len(steps) > 0 and bool(np.isfinite(steps).all())
    return {name: column for name, column in columns.items() if usable and len(column) == len(steps)}


def _drawing(sketches: Sketches | None) -> Drawing | None:
    if sketches is None:
        return None
    points = as_points(sketches.points, _MOST_POINTS)
    groups = as_numbers(sketches.groups)[: len(points)]
    linked, random = (as_numbers(pairs)[:_MOST_PAIRS] for pairs in (sketches.linked, sketches.random))
    counts, bounds = as_numbers(sketches.weight_counts), as_numbers(sketches.weight_bounds)
    whole = 0 < len(counts) <= _MOST_BARS and len(bounds) == len(counts) + 1 and bool((np.diff(bounds) > 0).all())
    if not (whole and (counts >= 0).all()):
        counts, bounds = np.empty(0), np.empty(0)
    return Drawing(
        points=points,
        groups=groups if len(groups) == len(points) > 0 and np.isfinite(groups).all() else None,
        edges=as_edges(sketches.edges, len(points), _MOST_EDGES),
        linked=linked[np.isfinite(linked)],
        random=random[np.isfinite(random)],
        metric=as_text(sketches.metric, longest=_LONGEST_NAME),
        weight_counts=counts,
        weight_bounds=bounds,
    )
