"""Train what an entry of a recipe names, on the training part and nothing else."""

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.experiments import baselines
from corrvae.experiments.recipes import Entry
from corrvae.model import Posterior
from corrvae.model.families import make_family
from corrvae.model.objectives import TERMS
from corrvae.training import Checkpoint, Progress, ProgressBar

# Rows of a history that a figure can show.
MOST_ROWS = 200
_CHECKPOINT_MINUTES = 2.0
_TERMS = ("step", "epoch", *TERMS, "tau")
_FAMILY = "family__"


@final
@dataclass
class Run:
    """What a run of one model is given, and the time of its training before an interruption."""

    seed: int  # of data, splits and training
    checkpoint: Path | None = None  # folder from which an interrupted training resumes
    progress: bool = False  # whether training shows a bar
    earlier_seconds: float | None = None  # known once training has begun


@final
@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model: its posterior of rows of features, or of the training rows for ``None``."""

    posterior: Callable[[Any], Posterior]
    settings: dict[str, Any]
    history: dict[str, list[float]] | None = None


def train_entry(entry: Entry, X: Any, graph: CorrelationGraph, run: Run, *, augment: Any = None) -> Trained:
    """Train the model of an entry; Ctrl-C leaves its checkpoint and raises `KeyboardInterrupt`.

    A VAE does not see the graph; `augment` draws rows again, for entries that ask for it.
    """
    if entry.method in ("vae", "cvae"):
        return train_estimator(entry, X, graph, run, augment)[1]
    if entry.method == "principal_components":
        return Trained(
            lambda rows: point_posterior(
                baselines.principal_components(X, **entry.parameters, seed=run.seed, project=rows)
            ),
            describe_settings(entry),
        )
    if entry.method in ("graph_sage", "variational_graph"):
        embedding, history = train_network(entry, X, graph, run)
        posterior = point_posterior(embedding)

        def training_rows(rows: Any) -> Posterior:
            if rows is not None:
                raise ValueError(f"{entry.method} cannot embed rows that it was not trained on")
            return posterior

        return Trained(training_rows, describe_settings(entry), history)
    raise ValueError(f"{entry.method!r} is no method that embeds points")


def point_posterior(embedding: Float[np.ndarray, "points dim"]) -> Posterior:
    """Return an embedding without uncertainty as a posterior, for metrics that read means alone."""
    return Posterior(np.asarray(embedding, dtype=np.float32), np.ones(embedding.shape, np.float32))


def make_estimator(entry: Entry, seed: int) -> CorrelatedVAE:
    """Return the estimator of an entry, to be trained on the CPU."""
    parameters: dict[str, Any] = {n: value for n, value in entry.parameters.items() if not n.startswith(_FAMILY)}
    if "family" in parameters:
        options = {name.removeprefix(_FAMILY): entry.parameters[name] for name in entry.parameters.keys() - parameters}
        parameters["family"] = make_family(parameters["family"]).set_params(**options)
    if "max_steps" in parameters:  # a recipe with settings of its own has dropout only if it says so
        parameters = {"dropout": 0.0} | parameters
    return CorrelatedVAE(**parameters, device="cpu", random_state=seed)


def train_estimator(
    entry: Entry, X: Any, graph: CorrelationGraph | None, run: Run, augment: Any = None
) -> tuple[CorrelatedVAE, Trained]:
    """Return the fitted estimator of an entry, and what a record has of it."""
    model = make_estimator(entry, run.seed)

    def read_clock(progress: Progress) -> None:
        if run.earlier_seconds is None:  # at the first step: where training was resumed, of what went before too
            run.earlier_seconds = progress.seconds if progress.step > 1 else 0.0

    callbacks: list[Any] = [read_clock, *([ProgressBar()] if run.progress else [])]
    if run.checkpoint is not None:
        callbacks.append(Checkpoint(run.checkpoint, minutes=_CHECKPOINT_MINUTES))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="training was interrupted")
        model.fit(
            X,
            graph=None if entry.method == "vae" else graph,
            augment=augment if entry.augment else None,
            callbacks=callbacks,
        )
    if model.stopped_ == "interrupted":
        raise KeyboardInterrupt
    history = thin({name: model.history_[name].tolist() for name in _TERMS if name in model.history_})
    every = model.get_params() | {"family": entry.parameters.get("family", "independent")}
    settings = {**describe_settings(entry), "all_parameters": every, "n_steps": int(model.n_steps_)}
    return model, Trained(lambda rows: model.posterior(rows), settings, history)


def train_network(entry: Entry, X: Any, graph: CorrelationGraph, run: Run) -> tuple[Any, dict[str, list[float]]]:
    """Return what a network of `corrvae.experiments.baselines` learns, and its losses."""
    losses: list[float] = []
    train = getattr(baselines, entry.method)
    found = train(X, graph, **entry.parameters, seed=run.seed, on_step=lambda step, loss: losses.append(loss))
    return found, thin({"step": [step + 1.0 for step in range(len(losses))], "loss": losses})


def thin(history: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return at most 200 rows of a history, evenly spread, with the first and the last, to six digits."""
    n_rows = max((len(column) for column in history.values()), default=0)
    kept = np.unique(np.linspace(0, n_rows - 1, min(n_rows, MOST_ROWS)).round().astype(int))
    return {name: [float(f"{column[row]:.6g}") for row in kept] for name, column in history.items()}


def describe_settings(entry: Entry) -> dict[str, Any]:
    """Return the recipe's choices for a model, as JSON."""
    return {name: value for name, value in asdict(entry).items() if name not in ("model", "label")}
