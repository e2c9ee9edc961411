"""Adaptive forests: edges that the posterior does not support lose their weight, and may be left out altogether.

The paper's prior is a mixture over the maximal acyclic subgraphs of the graph. Here it is one over all acyclic
subgraphs T, with a distribution r over them of our own:

    log p(x) >= sum_i E log p(x_i | z_i) - sum_i KL_i - sum_e w_e(r) T_e - KL(r || r0),

where w_e(r) is the probability that a subgraph drawn from r contains e. With one more vertex, the ground, that is
joined to every other one, the spanning trees without the ground's edges are all acyclic subgraphs (`add_ground`). r0
draws them in proportion to the product of conductances, the graph's own and those of the ground. For fixed posteriors
the edge terms and 1/eta times the divergence are least together for the conductances c_e = c0_e exp(-eta T_e), and
those of the ground as they were: a cut costs nothing. eta = 1 is the bound itself, a smaller eta stays closer to r0.
"""

from dataclasses import dataclass
from math import ceil, log
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator

from corrvae.graphs import CorrelationGraph, SpanningPlan
from corrvae.graphs.forests import add_ground

# Conductances are kept within this range of the largest: sketched weights lose their digits beyond it.
_RANGE = 1e-12
# The automatic eta, times the standard deviation of the edge terms.
_SPREAD = 3.0
# Steps at an update, as a multiple of those at the update before.
_GROWTH = 1.5


@final
class AdaptiveForests(BaseEstimator):
    """How the weights of edges follow the posterior in training: c_e = c0_e exp(-eta T_e).

    Parameters
    ----------
    eta : float or "auto"
        How strongly conductances depend on the edge terms; "auto" is 3 over their standard deviation, anew at each
        update, but at most 1.
    ground : float
        How readily edges are left out of forests: the conductance of an edge from every vertex to one more vertex, the
        ground. With 0 forests are maximal, as they are in any case where posteriors are propagated along them.
    first : int
        Passes over the rows before the first update. The others come whenever the passes have grown by half.

    Examples
    --------
    >>> AdaptiveForests(eta=0.5).get_params()["eta"]
    0.5
    """

    def __init__(self, eta: float | Literal["auto"] = "auto", *, ground: float = 1.0, first: int = 10) -> None:
        self.eta = eta
        self.ground = ground
        self.first = first

    def check(self) -> None:
        """Raise a `ValueError` for an option that cannot be."""
        if self.eta != "auto" and not (isinstance(self.eta, (int, float)) and 0 <= self.eta < np.inf):
            raise ValueError(f'eta must be "auto" or a number of 0 or more, got {self.eta!r}')
        if not 0 <= self.ground < np.inf:
            raise ValueError(f"ground must be a number of 0 or more, got {self.ground!r}")
        if not isinstance(self.first, int) or self.first < 1:
            raise ValueError(f"first must be a positive integer, got {self.first!r}")

    def is_due(self, step: int, start: int) -> bool:
        """Return whether weights are updated at this step, if they are at `start` for the first time."""
        if step < start:
            return False
        return step == ceil(start * _GROWTH ** round(log(step / start, _GROWTH)))

    def eta_of(self, edge_terms: Float[np.ndarray, " edges"]) -> float:
        """Return eta for these edge terms."""
        return min(1.0, _SPREAD / max(float(edge_terms.std()), 1e-12)) if self.eta == "auto" else float(self.eta)


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
    """A distribution over a graph's forests, in proportion to the product of their conductances.

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

    The graph's conductances are the starting point and the reference of the divergence. `maximal`: forests are maximal
    acyclic subgraphs whatever the options.
    """

    def __init__(
        self, graph: CorrelationGraph, options: AdaptiveForests, *, maximal: bool = False, seed: int = 0
    ) -> None:
        self.options = options
        joined, self._is_own = graph, np.ones(graph.n_edges, bool)
        if options.ground > 0 and not maximal:
            joined, self._is_own = add_ground(graph, options.ground)
        # Two threads wait for each other beside other programs, and gain little on the dense core of a large graph.
        self._plan = SpanningPlan(joined, random_state=seed, n_threads=1)
        self._own = self._plan.solve()
        self._log_given = np.zeros(joined.n_edges) if joined.conductances is None else np.log(joined.conductances)

    def adapt(self, edge_terms: Float[np.ndarray, " edges"]) -> ForestWeights:
        """Return the forests that are best for these edge terms."""
        eta = self.options.eta_of(edge_terms)
        log_conductances = self._log_given.copy()
        log_conductances[self._is_own] -= eta * edge_terms
        smallest = log_conductances.max(initial=0.0) + np.log(_RANGE)
        log_conductances = np.maximum(log_conductances, smallest) - max(0.0, smallest)
        log_ratio = log_conductances - self._log_given
        found = self._plan.solve(np.exp(log_conductances))
        if found.log_forests is not None and self._own.log_forests is not None:
            growth = found.log_forests - self._own.log_forests
        else:  # d log Z = sum_e w_e d log c_e, along the straight line, by Simpson's rule
            middle = self._plan.solve(np.exp(self._log_given + 0.5 * log_ratio))
            growth = log_ratio @ (self._own.weights + 4.0 * middle.weights + found.weights) / 6.0
        divergence = max(0.0, float(found.weights @ log_ratio - growth))
        return ForestWeights(np.exp(log_conductances[self._is_own]), found.weights[self._is_own], divergence, eta)
