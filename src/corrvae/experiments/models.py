"""Train what a recipe's entry asks for, on the training part and nothing else."""

import inspect
import warnings
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.experiments.outcomes import Run
from corrvae.experiments.recipes import Entry
from corrvae.training import Progress
from corrvae.training.data import Redraw

# Rows of a history that a reader's eye can tell apart.
MOST_ROWS = 200
_CHECKPOINT_MINUTES = 2.0
# What baselines are given that is no setting.
_NO_SETTINGS = ("X", "graph", "project", "on_step")
_TERMS = ("step", "epoch", "reconstruction", "singleton", "edge", "non_edge", "total", "tau")


@final
@dataclass(frozen=True, eq=False)
class Embedded:
    """An embedding without uncertainty, and the losses on the way to it."""

    embedding: Float[np.ndarray, "points dim"]
    history: dict[str, list[float]] | None = None


def make_estimator(entry: Entry, seed: int) -> CorrelatedVAE:
    """Make the estimator of an entry, to be trained on the processor and evaluated a hundred times.

    Examples
    --------
    >>> make_estimator(Entry("vae", "VAE", "vae", {"max_steps": 500}), 3).get_params()["evaluate_every"]
    5
    """
    parameters = {"device": "cpu", **entry.parameters}
    if parameters.get("max_steps") is not None:
        parameters.setdefault("evaluate_every", max(1, parameters["max_steps"] // 100))
    return CorrelatedVAE(**parameters, random_state=seed)


def fit_estimator(
    entry: Entry, X: Any, graph: CorrelationGraph, run: Run, *, redraw: Redraw | None = None
) -> CorrelatedVAE:
    """Train a VAE or a CVAE; Ctrl-C leaves its checkpoint and interrupts.

    Parameters
    ----------
    entry
        What to train.
    X, graph, redraw
        The training part. A VAE is not shown the graph.
    run
        Seed, checkpoint, and whom to report to.

    Examples
    --------
    >>> entry = Entry("vae", "VAE", "vae", {"n_components": 2, "hidden": (4,), "max_steps": 3})
    >>> fit_estimator(entry, np.eye(5), CorrelationGraph.from_edges([(0, 1)], n_vertices=5), Run(0)).embedding_.shape
    (5, 2)
    """
    model = make_estimator(entry, run.seed)

    def tell(progress: Progress) -> None:
        run.report("training", progress.step, progress.max_steps)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="training was interrupted")
        model.fit(
            X,
            graph=None if entry.method == "vae" else graph,
            redraw=redraw if entry.redraw else None,
            checkpoint=run.checkpoint,
            checkpoint_minutes=None if run.checkpoint is None else _CHECKPOINT_MINUTES,
            callbacks=[tell],
        )
    if model.stopped_ == "interrupted":
        raise KeyboardInterrupt
    return model


def embed(entry: Entry, X: Any, graph: CorrelationGraph, run: Run) -> Embedded:
    """Embed the training rows by a baseline.

    Parameters
    ----------
    entry, X, graph, run
        As in `fit_estimator`.

    Examples
    --------
    >>> entry = Entry("pca", "PCA", "principal_components", {"n_components": 1})
    >>> embed(entry, np.eye(3), CorrelationGraph.from_edges([(0, 1)], n_vertices=3), Run(0)).embedding.shape
    (3, 1)
    """
    from corrvae.baselines import graph_sage, principal_components, variational_graph

    parameters = dict(entry.parameters)
    if entry.method == "principal_components":
        run.report("projecting", 0, None)
        return Embedded(principal_components(X, **parameters, seed=run.seed))
    method = {"graph_sage": graph_sage, "variational_graph": variational_graph}.get(entry.method)
    if method is None:
        raise ValueError(f"{entry.method!r} is no method that embeds points")
    losses: list[float] = []
    n_steps = all_parameters(entry, run.seed)["n_steps"]  # a recipe may leave it to the baseline

    def tell(step: int, loss: float) -> None:
        losses.append(loss)
        run.report("training", step, n_steps)

    embedding = method(X, graph, **parameters, seed=run.seed, on_step=tell)
    history = {"step": [float(step + 1) for step in range(len(losses))], "loss": losses}
    return Embedded(embedding, thin(history))


def history_of(model: CorrelatedVAE) -> dict[str, list[float]]:
    """Give the terms at every evaluation, thinned.

    Examples
    --------
    >>> sorted(history_of(CorrelatedVAE(2, hidden=(4,), max_steps=3).fit(np.eye(5))))[:3]
    ['edge', 'epoch', 'non_edge']
    """
    history = model.history_
    return thin({name: history[name].tolist() for name in _TERMS if name in history})


def thin(history: dict[str, list[float]]) -> dict[str, list[float]]:
    """Keep so many rows, evenly spread, with the first and the last, to six digits.

    Examples
    --------
    >>> thin({"step": list(range(1, 1000))})["step"][::100]
    [1.0, 503.0]
    """
    n_rows = max((len(column) for column in history.values()), default=0)
    kept = np.unique(np.linspace(0, n_rows - 1, min(n_rows, MOST_ROWS)).round().astype(int))
    return {name: [float(f"{column[row]:.6g}") for row in kept] for name, column in history.items()}


def all_parameters(entry: Entry, seed: int) -> dict[str, Any]:
    """Give every parameter that an entry's method has, with its default where the recipe says nothing.

    Examples
    --------
    >>> all_parameters(Entry("pca", "PCA", "principal_components", {"n_components": 2}), 3)
    {'n_components': 2, 'weighting': 'raw', 'center': True, 'seed': 3}
    """
    if entry.method in ("vae", "cvae"):
        return make_estimator(entry, seed).get_params()
    from corrvae.baselines import graph_sage, principal_components, variational_graph

    known = {function.__name__: function for function in (graph_sage, principal_components, variational_graph)}
    if entry.method not in known:
        return dict(entry.parameters)
    parameters = inspect.signature(known[entry.method]).parameters.values()
    defaults = {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.name not in _NO_SETTINGS and parameter.default is not parameter.empty
    }
    return {**dict.fromkeys(entry.parameters), **defaults, **entry.parameters, "seed": seed}


def describe_settings(entry: Entry, seed: int, model: CorrelatedVAE | None = None) -> dict[str, Any]:
    """Give all that a model was made and trained with, as JSON: what the recipe said, and every parameter.

    Examples
    --------
    >>> describe_settings(Entry("pca", "PCA", "principal_components", {"n_components": 2}), 0)["parameters"]
    {'n_components': 2}
    """
    settings = {name: value for name, value in asdict(entry).items() if name not in ("model", "label")}
    settings["all_parameters"] = all_parameters(entry, seed) if model is None else model.get_params()
    if model is not None:
        settings["n_steps"] = int(model.n_steps_)
    return settings
