"""What one call of `fit` trains on: rows and edges with their weights, what is held out, and the seeds of it all."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from corrvae.errors import TrainingError
from corrvae.graphs import CorrelationGraph, spanning_weights
from corrvae.model import CorrelatedModel
from corrvae.nn.features import FeatureTable
from corrvae.ranks import current_ranks
from corrvae.tables import Matrix, shape_of
from corrvae.training import Callback, TrainingData, TrainingResult, TrainingSettings, hold_out, steps_for_epochs, train
from corrvae.training.data import Redraw

# The batches of the paper; an estimator whose user did not choose others takes what there is without a word.
_VERTEX_BATCH, _EDGE_BATCH = 64, 256


@final
@dataclass(frozen=True)
class Seeds:
    """Independent seeds for all that is random in a fit, from one.

    Attributes
    ----------
    networks, hold_out, training, weights
        For the networks' first parameters, the rows held out, the draws of training, and sketched spanning weights.
    """

    networks: int
    hold_out: int
    training: int
    weights: int

    @classmethod
    def of(cls, random_state: Any) -> "Seeds":
        """Derive them from a seed or generator; ``None`` takes fresh ones and leaves NumPy's global generator alone.

        In a process group every rank gets those of rank 0.

        Examples
        --------
        >>> Seeds.of(0) == Seeds.of(0), Seeds.of(0) == Seeds.of(1), Seeds.of(None) == Seeds.of(None)
        (True, False, False)
        """
        if isinstance(random_state, np.random.RandomState):
            random_state = random_state.randint(2**31)
        elif isinstance(random_state, np.random.Generator):
            random_state = int(random_state.integers(2**63))
        state = np.random.SeedSequence(random_state).generate_state(4)
        return cls(*current_ranks().tell([int(word) for word in state]))

    def after(self, fits: int, hold_out: int | None) -> "Seeds":
        """Give the seeds of a fit that goes on from others: new draws, but the rows held out before.

        Parameters
        ----------
        fits
            How many there were.
        hold_out
            Seed of the rows that the first one held out; ``None`` if it is not known any more.

        Examples
        --------
        >>> first = Seeds.of(0)
        >>> second = Seeds.of(1).after(1, first.hold_out)
        >>> second.hold_out == first.hold_out, Seeds.of(0).after(1, None).training == first.training
        (True, False)
        """
        draws = int(np.random.SeedSequence((self.training, fits)).generate_state(1)[0])
        return replace(self, training=draws, hold_out=self.hold_out if hold_out is None else hold_out)


@final
@dataclass(frozen=True, eq=False)
class FitPlan:
    """The data of a fit.

    Attributes
    ----------
    training
        What is trained on.
    validation
        What early stopping looks at, if rows are held out.
    weights
        The weight that each edge of the whole graph has in training, 0 for one at a row that is held out; ``None``
        without a graph.
    rows
        The rows that are trained on.
    held_out
        The rows of the validation data.
    """

    training: TrainingData
    validation: TrainingData | None
    weights: Float[np.ndarray, " edges"] | None
    rows: Int[np.ndarray, " rows"]
    held_out: Int[np.ndarray, " held"]


@final
@dataclass(frozen=True, eq=False)
class FitData:
    """All rows with what the user gave along with them.

    Attributes
    ----------
    matrix
        The features.
    missing
        Whether NaN stands for a missing entry.
    graph
        The graph, its vertices in the order of the rows.
    sample_weight
        A weight for each row.
    redraw
        Gives new features for rows, for every batch.
    """

    matrix: Matrix
    missing: bool = False
    graph: CorrelationGraph | None = None
    sample_weight: Float[np.ndarray, " rows"] | None = None
    redraw: Redraw | None = None


def plan_fit(data: FitData, validation_fraction: float, seeds: Seeds) -> FitPlan:
    """Hold out rows if asked to, and weigh the edges of each part.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> plan = plan_fit(FitData(np.eye(3), graph=graph), 0.0, Seeds.of(0))
    >>> plan.weights.round(3), plan.training.total_weight
    (array([0.667, 0.667, 0.667]), 2.0)
    """
    n_rows = shape_of(data.matrix)[0]
    edges = None if data.graph is None else data.graph.edges
    weights = None if edges is None else np.zeros(len(edges))
    if validation_fraction == 0.0:
        everyone = np.arange(n_rows)
        return FitPlan(_part(data, everyone, seeds, weights, whole=True), None, weights, everyone, everyone[:0])
    if n_rows < 2:
        raise ValueError(f"validation_fraction={validation_fraction} needs two rows at least, got n_samples={n_rows}")
    parts = hold_out(n_rows, edges, validation_fraction, seeds.hold_out)
    training = _part(data, parts.train, seeds, weights)
    return FitPlan(training, _part(data, parts.validation, seeds, None), weights, parts.train, parts.validation)


def run_plan(
    model: CorrelatedModel, plan: FitPlan, settings: TrainingSettings, callbacks: Sequence[Callback]
) -> TrainingResult:
    """Train, and name the rows of the user's table, not those of a part of it, if a term breaks."""
    try:
        return train(model, plan.training, settings, validation=plan.validation, callbacks=callbacks)
    except TrainingError as error:
        part = plan.held_out if error.held_out else plan.rows
        rows = tuple(int(row) for row in part[list(error.rows)])
        raise TrainingError(error.step, error.term, rows, error.checkpoint, error.held_out) from error


def _part(
    data: FitData, rows: Int[np.ndarray, " rows"], seeds: Seeds, record: np.ndarray | None, *, whole: bool = False
) -> TrainingData:
    """Give the rows and the edges among them; `record` takes down the weights of these edges."""
    table = FeatureTable(data.matrix, missing=data.missing, rows=None if whole else rows)
    sample_weights = None
    if data.sample_weight is not None:
        sample_weights = data.sample_weight[rows]
        if not sample_weights.any():
            raise ValueError("every row of a part of the data has sample weight 0; change validation_fraction")
        sample_weights = sample_weights / sample_weights.mean()
    redraw = data.redraw
    if redraw is not None and not whole:
        redraw = _renumbered(redraw, rows)
    graph = data.graph if data.graph is None or whole else data.graph[rows]
    # Without edges the objective is that of a VAE.
    if graph is None or graph.n_edges == 0:
        return TrainingData(table, sample_weights=sample_weights, redraw=redraw)
    weights = spanning_weights(graph, random_state=seeds.weights).weights
    if record is not None and data.graph is not None:
        inside = np.isin(data.graph.edges, rows).all(1)
        # Rows ascend, so the induced edges are in the order of the graph's own.
        record[inside] = weights
    return TrainingData(
        table,
        graph.edges,
        weights,
        float(graph.n_vertices - graph.n_components),
        sample_weights=sample_weights,
        redraw=redraw,
    )


def _renumbered(redraw: Redraw, rows: np.ndarray) -> Redraw:
    return lambda chosen, generator: redraw(rows[chosen], generator)


def settings_of(
    estimator: Any,
    data: TrainingData,
    seed: int,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_steps: int | None = None,
    checkpoint_minutes: float | None = None,
) -> TrainingSettings:
    """Read an estimator's parameters as the settings of a training run.

    Parameters
    ----------
    estimator
        A `CorrelatedVAE`.
    data
        What it will be trained on.
    seed
        Of the draws of training.
    checkpoint, checkpoint_steps, checkpoint_minutes
        Where to save the state of training, and after how many steps or minutes; without either, every ten minutes.
    """
    if checkpoint_steps is None and checkpoint_minutes is None:
        checkpoint_minutes = 10.0
    gamma = estimator.gamma
    vertex_batch = clip_batch("vertex_batch", int(estimator.vertex_batch), data.n_vertices, "rows", _VERTEX_BATCH)
    edge_batch = int(estimator.edge_batch)
    if data.n_edges:
        edge_batch = clip_batch("edge_batch", edge_batch, data.n_edges, "edges", _EDGE_BATCH)
    epoch = steps_for_epochs(1, data.n_vertices, vertex_batch)
    max_steps, evaluate_every = estimator.max_steps, estimator.evaluate_every
    if max_steps is None:
        max_steps = steps_for_epochs(int(estimator.max_epochs), data.n_vertices, vertex_batch)
    return TrainingSettings(
        max_steps=int(max_steps),
        vertex_batch=vertex_batch,
        edge_batch=edge_batch,
        pair_batch=None if estimator.pair_batch is None else int(estimator.pair_batch),
        edge_sampling=estimator.edge_sampling,
        learning_rate=float(estimator.learning_rate),
        gamma=(float(gamma[0]), float(gamma[1])) if isinstance(gamma, tuple | list) else float(gamma),
        warmup_steps=int(estimator.warmup_steps),
        evaluate_every=epoch if evaluate_every is None else int(evaluate_every),
        patience=None if estimator.patience is None else int(estimator.patience),
        seed=seed,
        device=estimator.device,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        checkpoint_steps=checkpoint_steps,
        checkpoint_minutes=checkpoint_minutes,
    )


def clip_batch(name: str, asked: int, available: int, what: str, default: int) -> int:
    """Give a batch size no larger than the data, and say so if the size is one that the user chose.

    Examples
    --------
    >>> clip_batch("vertex_batch", 64, 50, "rows", 64)
    50
    """
    if asked > available and asked != default:
        warnings.warn(
            f"{name}={asked} is more than the {available} {what} there are to train on, and is taken as {available}",
            UserWarning,
            stacklevel=4,
        )
    return max(1, min(asked, available))
