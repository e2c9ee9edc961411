"""From latent points to features: expectations, and new data drawn from the prior."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float

from corrvae.graphs import CorrelationGraph, sample_forest
from corrvae.model import CorrelatedModel
from corrvae.nn.prior import LearnedTau
from corrvae.posterior import Posterior

# Rows decoded at a time.
_ROWS = 1024


@final
@dataclass(frozen=True, eq=False)
class PriorSample:
    """New data drawn from a model.

    Attributes
    ----------
    features
        One row for each point drawn.
    latent
        The latent points that they were drawn from.
    """

    features: Float[np.ndarray, "rows features"]
    latent: Float[np.ndarray, "rows dim"]


def sample_prior(
    model: CorrelatedModel,
    tau: Float[np.ndarray, " dim"],
    n_samples: Any,
    graph: Any,
    totals: Any,
    generator: np.random.Generator,
) -> PriorSample:
    """Draw new data from a model, or say what was asked for that cannot be.

    Parameters
    ----------
    model, tau
        A trained model, and its prior's correlation in each dimension.
    n_samples
        Number of independent rows; ``None`` for one, or for one for each vertex of the graph.
    graph
        A `CorrelationGraph` to draw along, or ``None``.
    totals
        Sums of the rows, for likelihoods that condition on them: one for all, or one for each.
    generator
        Source of randomness.

    Examples
    --------
    >>> from corrvae.building import Architecture, build_model
    >>> model = build_model(Architecture(3, 2), seed=0)
    >>> sample_prior(model, np.full(2, 0.9), 4, None, 1.0, np.random.default_rng(0)).features.shape
    (4, 3)
    """
    n_rows = _count_rows(n_samples, graph)
    latent = draw_latent(tau, n_rows, graph, generator)
    given = np.asarray(totals, dtype=np.float64)
    if given.shape not in ((), (1,), (n_rows,)):
        raise ValueError(f"totals must be a number, or {n_rows} of them, one for each row; got shape {given.shape}")
    return PriorSample(draw_features(model, latent, generator, np.broadcast_to(given, (n_rows,))), latent)


def _count_rows(n_samples: Any, graph: Any) -> int:
    if n_samples is not None and not isinstance(n_samples, Integral):
        raise TypeError(f"n_samples must be a whole number, got {n_samples!r}")
    if graph is None:
        if n_samples is not None and n_samples < 1:
            raise ValueError(f"n_samples must be positive, got {n_samples}")
        return 1 if n_samples is None else int(n_samples)
    if not isinstance(graph, CorrelationGraph):
        raise TypeError(
            f"graph must be a corrvae.CorrelationGraph, such as graph_ of a fitted model, got {type(graph).__name__}"
        )
    if n_samples not in (None, graph.n_vertices):
        raise ValueError(f"a sample along a graph has a row for each of its {graph.n_vertices} vertices")
    return graph.n_vertices


def expected_features(
    model: CorrelatedModel, latent: Float[np.ndarray, "rows dim"], totals: Float[np.ndarray, " rows"] | None = None
) -> Float[np.ndarray, "rows features"]:
    """Give the mean of the features at latent points.

    Parameters
    ----------
    model
        A trained model.
    latent
        The points.
    totals
        Sums of the rows, for likelihoods that condition on them.

    Examples
    --------
    >>> from corrvae.building import Architecture, build_model
    >>> expected_features(build_model(Architecture(3, 2), seed=0), np.zeros((5, 2))).shape
    (5, 3)
    """
    pieces = []
    with torch.inference_mode():
        for begin in range(0, len(latent), _ROWS):
            outputs, sums = _decode(model, latent, totals, slice(begin, begin + _ROWS))
            pieces.append(model.likelihood.mean(outputs, sums).cpu().numpy())
    return np.concatenate(pieces)


def draw_features(
    model: CorrelatedModel,
    latent: Float[np.ndarray, "rows dim"],
    generator: np.random.Generator,
    totals: Float[np.ndarray, " rows"] | None = None,
) -> Float[np.ndarray, "rows features"]:
    """Draw features at latent points; parameters as in `expected_features`.

    Examples
    --------
    >>> from corrvae.building import Architecture, build_model
    >>> draw_features(build_model(Architecture(3, 2), seed=0), np.zeros((5, 2)), np.random.default_rng(0)).shape
    (5, 3)
    """
    pieces = []
    with torch.inference_mode():
        for begin in range(0, len(latent), _ROWS):
            outputs, sums = _decode(model, latent, totals, slice(begin, begin + _ROWS))
            pieces.append(model.likelihood.sample(outputs, generator, sums).cpu().numpy())
    return np.concatenate(pieces)


def draw_latent(
    tau: Float[np.ndarray, " dim"], n_points: int, graph: CorrelationGraph | None, generator: np.random.Generator
) -> Float[np.ndarray, "points dim"]:
    """Draw latent points from the prior: along a forest drawn from the graph, or each on its own.

    Parameters
    ----------
    tau
        Correlation along an edge, in each dimension.
    n_points
        Number of points, that of the graph's vertices if there is one.
    graph
        The graph.
    generator
        Source of randomness.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> draw_latent(np.full(4, 0.9), 3, graph, np.random.default_rng(0)).shape
    (3, 4)
    """
    shape = n_points, len(tau)
    prior = Posterior(
        np.zeros(shape), np.ones(shape), lambda pairs: np.broadcast_to(np.arctanh(tau), (len(pairs), len(tau)))
    )
    if graph is None:
        return prior.sample(1, generator)[0]
    forest = graph.edges[sample_forest(graph, generator)]
    return prior.sample_forest(1, forest, generator)[0]


def tau_of(model: CorrelatedModel, n_components: int) -> Float[np.ndarray, " dim"]:
    """Give a model's tau in each latent dimension.

    Examples
    --------
    >>> from corrvae.building import Architecture, build_model
    >>> tau_of(build_model(Architecture(3, 2, tau=0.5), seed=0), 2)
    array([0.5, 0.5])
    """
    tau = model.tau().detach().numpy() if isinstance(model.tau, LearnedTau) else model.tau
    return np.broadcast_to(np.asarray(tau, dtype=np.float64), (n_components,)).copy()


def _decode(
    model: CorrelatedModel, latent: np.ndarray, totals: np.ndarray | None, chosen: slice
) -> tuple[torch.Tensor, torch.Tensor | None]:
    device = next(model.parameters()).device
    outputs = model.decoder(torch.from_numpy(latent[chosen].astype(np.float32)).to(device))
    return outputs, None if totals is None else torch.from_numpy(totals[chosen].astype(np.float32)).to(device)
