"""What a fit refuses, and what it warns of, before it spends any time on training."""

import os
import warnings
from math import inf
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Shaped
from scipy import sparse

from corrvae.graphs import CorrelationGraph
from corrvae.nn.likelihoods import Likelihood
from corrvae.tables import Matrix, empty_rows
from corrvae.training.data import Redraw
from corrvae.training.settings import choose_device


def check_run(
    estimator: Any,
    checkpoint: str | os.PathLike[str] | None,
    checkpoint_steps: int | None,
    checkpoint_minutes: float | None,
) -> None:
    """Refuse a device that is not there and checkpoints that cannot be, before anything is computed.

    Parameters
    ----------
    estimator, checkpoint, checkpoint_steps, checkpoint_minutes
        As in `corrvae.fitting.settings_of`.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> check_run(CorrelatedVAE(), None, 100, None)
    Traceback (most recent call last):
    ValueError: checkpoint_steps=100 needs a folder to save to: pass checkpoint= as well
    """
    choose_device(estimator.device)
    if checkpoint is not None and not isinstance(estimator.random_state, Integral):
        raise ValueError("a fit with a checkpoint needs an integer random_state, or it could not be taken up again")
    for name, value in (("checkpoint_steps", checkpoint_steps), ("checkpoint_minutes", checkpoint_minutes)):
        if value is not None and checkpoint is None:
            raise ValueError(f"{name}={value} needs a folder to save to: pass checkpoint= as well")
        if value is not None and not (isinstance(value, Real) and 0 < value < inf):
            raise ValueError(f"{name} must be a positive number, got {value!r}")


def mention_empty_rows(matrix: Matrix, *, missing: bool = False) -> None:
    """Warn of rows of zeros, which say nothing to a likelihood of draws given their number.

    Parameters
    ----------
    matrix
        The features.
    missing
        Whether NaN stands for a missing entry.

    Examples
    --------
    >>> mention_empty_rows(np.eye(3))
    """
    empty = empty_rows(matrix)
    if len(empty):
        rows = "1 row of X holds" if len(empty) == 1 else f"{len(empty)} rows of X hold"
        what = "zeros and missing entries only" if missing else "zeros only"
        warnings.warn(
            f"{rows} {what} (the first is row {empty[0]}); under the multinomial likelihood such a row has no "
            "draws to explain, and its posterior is the one that the encoder gives any row of zeros",
            UserWarning,
            stacklevel=3,
        )


def mention_ids(ids: Shaped[np.ndarray, " rows"]) -> None:
    """Warn of ids that the folder of a model cannot hold, before training has taken its time.

    Examples
    --------
    >>> mention_ids(np.arange(3))
    """
    if ids.dtype.kind != "O":
        return
    from corrvae.folders import id_column

    try:
        id_column(ids)
    except TypeError as error:
        warnings.warn(f"this model can be fitted but not saved: {error}", UserWarning, stacklevel=3)


def check_y(y: Any) -> None:
    """Refuse a graph where scikit-learn has labels, which are ignored.

    Examples
    --------
    >>> check_y(CorrelationGraph.from_edges([(0, 1)]))
    Traceback (most recent call last):
    TypeError: y, the second argument, is ignored; give the graph by name: fit(X, graph=graph)
    """
    if isinstance(y, CorrelationGraph):
        raise TypeError("y, the second argument, is ignored; give the graph by name: fit(X, graph=graph)")


def refuse_without_edges(graph: CorrelationGraph | None) -> NoReturn:
    """Say what a fit of pairwise posteriors lacks: a graph, edges in it, or edges that are not held out.

    Examples
    --------
    >>> refuse_without_edges(None)
    Traceback (most recent call last):
    ValueError: posterior="pairwise" learns correlations from edges and needs a graph that has some: ...
    """
    if graph is not None and graph.n_edges:
        raise ValueError(
            f'posterior="pairwise" learns correlations from edges, and of the {graph.n_edges:,} in the graph none lies '
            "between two rows that are trained on, since others are held out; lower validation_fraction"
        )
    raise ValueError(
        'posterior="pairwise" learns correlations from edges and needs a graph that has some: '
        'fit(X, graph=...). Without one, use posterior="independent"'
    )


def check_first_batch(redraw: Redraw | None, likelihood: Likelihood) -> Redraw | None:
    """Make a function that draws features refuse, the first time, what a likelihood cannot explain.

    Parameters
    ----------
    redraw
        Function of row numbers and a generator; ``None`` stays ``None``.
    likelihood
        Of the features. Infinities are left to training, which names them at any step.

    Examples
    --------
    >>> from corrvae.nn.likelihoods import Poisson
    >>> redraw = check_first_batch(lambda rows, generator: -np.ones((len(rows), 2)), Poisson(2))
    >>> redraw(np.array([7]), np.random.default_rng(0))
    Traceback (most recent call last):
    ValueError: redraw gave -1 in column 0 of row 7, but the Poisson likelihood needs ...
    """
    if redraw is None:
        return None
    if not callable(redraw):
        raise TypeError(f"redraw must be a function of row numbers and a generator, got {type(redraw).__name__}")
    looked = False

    def checked(rows: np.ndarray, generator: np.random.Generator) -> Any:
        nonlocal looked
        features = redraw(rows, generator)
        if not looked:
            _check_drawn(features, rows, likelihood)
            looked = True
        return features

    return checked


def _check_drawn(features: Any, rows: np.ndarray, likelihood: Likelihood) -> None:
    if not isinstance(features, np.ndarray) and not sparse.issparse(features):
        raise TypeError(f"redraw must return an array or a SciPy sparse matrix, got {type(features).__name__}")
    entries = sparse.coo_array(features)
    wrong = np.flatnonzero(~likelihood.admits(entries.data) & np.isfinite(entries.data))
    if len(wrong) and len(rows) == features.shape[0]:
        row, column = (int(places[wrong[0]]) for places in entries.coords)
        raise ValueError(
            f"redraw gave {entries.data[wrong[0]]:g} in column {column} of row {rows[row]}, but the "
            f"{type(likelihood).__name__} likelihood needs {likelihood.domain}"
        )
