"""Adaptive forests: edges that the posterior does not support lose their weight.

The prior is a mixture over the maximal acyclic subgraphs T of the graph. With a distribution r over them of our own,

    log p(x) >= sum_i E log p(x_i | z_i) - sum_i KL_i - sum_e w_e(r) T_e - KL(r || r0),

where w_e(r) is the probability that a forest drawn from r contains e, and r0 is uniform, or has the graph's
conductances. For fixed posteriors the edge terms and 1/eta times the divergence are least together where r is
proportional to the product of the conductances c_e = c0_e exp(-eta T_e); eta = 1 is the bound itself, a smaller eta
stays closer to r0, and eta = 0 is the paper.
"""

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator

from corrvae.graphs import CorrelationGraph, SpanningPlan

# Conductances are kept within this range of the largest: sketched weights lose their digits beyond it.
_RANGE = 1e-12


@final
class AdaptiveForests(BaseEstimator):
    """How the weights of edges follow the posterior in training: c_e = c0_e exp(-eta T_e).

    Parameters
    ----------
    eta : float or "auto"
        How strongly conductances depend on the edge terms; "auto" is 1 over their standard deviation, anew at each
        update, but at most 1.
    first : int
        Passes over the rows before the first update.
    every : int
        Passes over the rows between updates.

    Examples
    --------
    >>> AdaptiveForests(eta=0.5).get_params()["eta"]
    0.5
    """

    def __init__(self, eta: float | Literal["auto"] = "auto", *, first: int = 10, every: int = 5) -> None:
        self.eta = eta
        self.first = first
        self.every = every

    def check(self) -> None:
        """Raise a `ValueError` for an option that cannot be."""
        if self.eta != "auto" and not (isinstance(self.eta, (int, float)) and 0 <= self.eta < np.inf):
            raise ValueError(f'eta must be "auto" or a number of 0 or more, got {self.eta!r}')
        for name in ("first", "every"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise ValueError(f"{name} must be a positive integer, got {getattr(self, name)!r}")

    def eta_of(self, edge_terms: Float[np.ndarray, " edges"]) -> float:
        """Return eta for these edge terms."""
        return min(1.0, 1.0 / max(float(edge_terms.std()), 1e-12)) if self.eta == "auto" else float(self.eta)


def make_forests(choice: Any) -> AdaptiveForests | None:
    """Return how weights of edges follow the posterior; ``None`` if they do not."""
    if isinstance(choice, str) and choice in ("uniform", "adaptive"):
        return AdaptiveForests() if choice == "adaptive" else None
    if not isinstance(choice, AdaptiveForests):
        raise ValueError(f'forests must be "uniform", "adaptive" or corrvae.AdaptiveForests(...), got {choice!r}')
    choice.check()
    return choice


@final
@dataclass(frozen=True, eq=False)
class ForestWeights:
    """A distribution over a graph's forests, in proportion to the product of their conductances (the largest is 1).

    `weights` are the probabilities that a forest contains each edge; `divergence` is KL from the graph's own
    distribution, in nats.
    """

    conductances: Float[np.ndarray, " edges"]
    weights: Float[np.ndarray, " edges"]
    divergence: float
    eta: float


@final
class ForestAdapter:
    """The weights of one graph's edges for any edge terms; what depends on the graph alone is computed once.

    The graph's conductances are the starting point and the reference of the divergence.
    """

    def __init__(self, graph: CorrelationGraph, options: AdaptiveForests, *, seed: int = 0) -> None:
        self.options = options
        self._plan = SpanningPlan(graph, random_state=seed)
        self._own = self._plan.solve()
        given = graph.conductances
        self._log_given = np.zeros(graph.n_edges) if given is None else np.log(given)

    def adapt(self, edge_terms: Float[np.ndarray, " edges"]) -> ForestWeights:
        """Return the forests that are best for these edge terms."""
        eta = self.options.eta_of(edge_terms)
        log_conductances = self._log_given - eta * edge_terms
        log_conductances = np.maximum(log_conductances - log_conductances.max(initial=-np.inf), np.log(_RANGE))
        found = self._plan.solve(np.exp(log_conductances))
        log_ratio = log_conductances - self._log_given
        if found.log_forests is not None and self._own.log_forests is not None:
            growth = found.log_forests - self._own.log_forests
        else:  # d log Z = sum_e w_e d log c_e, along the straight line, by Simpson's rule
            middle = self._plan.solve(np.exp(self._log_given + 0.5 * log_ratio))
            growth = log_ratio @ (self._own.weights + 4.0 * middle.weights + found.weights) / 6.0
        divergence = max(0.0, float(found.weights @ log_ratio - growth))
        return ForestWeights(np.exp(log_conductances), found.weights, divergence, eta)
