"""The objectives, one function for one equation, as named per-vertex terms.

All are maximised. Closed forms are summed over latent dimensions; correlations enter as pre-activations a with
rho = tanh(a), so that 1 - rho and 1 - rho^2 keep their digits when rho is close to 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from corrvae.nn.autoencoding import Tape
from corrvae.nn.closed_forms import draw_and_compare, kl_from_standard, log_cosh
from corrvae.nn.encoder import Marginals
from corrvae.nn.prior import PairPrior

Gamma = float | tuple[float, float]


@final
@dataclass(frozen=True, eq=False)
class Mean:
    """An average over draws that estimates, without bias, a sum over the graph divided by its number of vertices.

    Attributes
    ----------
    values
        One for each draw.
    scale, weights
        The estimate is ``scale * sum(weights * values)``, weights of 1 if there are none.
    """

    values: Float[Tensor, " draws"]
    scale: float
    weights: Float[Tensor, " draws"] | None = None

    @property
    def value(self) -> Float[Tensor, ""]:
        """The estimate."""
        return self.scale * (self.values.sum() if self.weights is None else torch.dot(self.values, self.weights))

    def slope(self, factor: float) -> Float[Tensor, " draws"]:
        """The derivative of `factor` times the estimate with respect to the values."""
        factor = float(factor * self.scale)
        if not self.values.is_cpu:
            return torch.full_like(self.values, factor) if self.weights is None else self.weights * factor
        # NumPy does this for a few hundred numbers in a fraction of the time that a tensor operation takes to begin.
        values = self.values.detach().numpy()
        return torch.from_numpy(np.full_like(values, factor) if self.weights is None else self.weights.numpy() * factor)

    def number(self) -> float:
        """The estimate as a number, of values on a CPU."""
        values = self.values.detach().numpy()
        return self.scale * float(values.sum() if self.weights is None else np.dot(values, self.weights.numpy()))


@final
@dataclass(frozen=True, eq=False)
class Terms:
    """An objective and its terms, each divided by the number of vertices.

    Attributes
    ----------
    means
        What the objective consists of.
    factors
        The objective is the sum of the means times these.
    tape
        The way back from reconstruction, singleton and edge to the parameters, if torch does not know it: the total has
        no derivative then, but `climb` finds it.

    Examples
    --------
    >>> values = torch.tensor([1.0, 3.0], requires_grad=True)
    >>> terms = Terms({"reconstruction": Mean(values, 0.5)}, {"reconstruction": 2.0})
    >>> terms.climb()
    >>> terms.total.item(), values.grad
    (4.0, tensor([1., 1.]))
    """

    means: Mapping[str, Mean]
    factors: Mapping[str, float]
    tape: Tape | None = None

    @property
    def total(self) -> Float[Tensor, ""]:
        """The objective."""
        return torch.stack([factor * self.means[name].value for name, factor in self.factors.items()]).sum()

    @property
    def reconstruction(self) -> Float[Tensor, ""]:
        """E log p(x given z)."""
        return self._value("reconstruction")

    @property
    def singleton(self) -> Float[Tensor, ""]:
        """KL of the singleton posteriors from their prior, before gamma."""
        return self._value("singleton")

    @property
    def edge(self) -> Float[Tensor, ""]:
        """Weighted sum of T over the edges: what the pair prior adds to the KL divergence."""
        return self._value("edge")

    @property
    def non_edge(self) -> Float[Tensor, ""]:
        """(2/n) times the sum of all pairs' mutual information, before gamma."""
        return self._value("non_edge")

    @property
    def bound(self) -> Float[Tensor, ""]:
        """The evidence lower bound: the objective without the terms that gamma adds."""
        return self.reconstruction - self.singleton - self.edge

    def climb(self) -> None:
        """Add the gradient of the objective to every parameter's, as ``total.backward()`` would.

        The objective is linear in the means' values, so that its derivative begins with numbers that are known. To form
        the total, and to lead the derivative back through its sums, takes a twentieth of a small step.
        """
        if self.tape is not None:
            edge = self._slope("edge") if "edge" in self.means else None
            self.tape.lead_back(self._slope("reconstruction"), self._slope("singleton"), edge)
            return
        learned = [name for name, mean in self.means.items() if mean.values.requires_grad]
        if not learned:
            raise ValueError("nothing that this objective depends on is to be learned")
        slopes = [self._slope(name) for name in learned]
        _Slopes.apply(slopes, *(self.means[name].values for name in learned)).backward()  # pyright: ignore[reportAttributeAccessIssue]

    def numbers(self) -> dict[str, float]:
        """Give the terms that the objective has, and the total, as numbers by name."""
        if all(mean.values.is_cpu for mean in self.means.values()):
            found = {name: mean.number() for name, mean in self.means.items()}
        else:
            found = self._transferred()
        return {"total": sum(factor * found[name] for name, factor in self.factors.items()), **found}

    def floats(self) -> dict[str, float]:
        """Give all terms and the total as numbers by name; a term that the objective does not have is 0."""
        found = self.numbers()
        return {name: found.get(name, 0.0) for name in ("reconstruction", "singleton", "edge", "non_edge", "total")}

    def _transferred(self) -> dict[str, float]:
        """Give the terms as numbers, in one transfer from the device."""
        with torch.no_grad():
            values = torch.stack([mean.value for mean in self.means.values()]).tolist()
        return dict(zip(self.means, values, strict=True))

    def _slope(self, name: str) -> Tensor:
        return self.means[name].slope(self.factors[name])

    def _value(self, name: str) -> Tensor:
        if name in self.means:
            return self.means[name].value
        return next(iter(self.means.values())).values.new_zeros(())


class _Slopes(torch.autograd.Function):
    """A number that nobody reads, with given derivatives.

    To hand several derivatives to torch at once would be shorter, but it compares their shapes by symbolic algebra,
    which takes seconds to load and then a twentieth of a small step.
    """

    @staticmethod
    def forward(ctx, slopes: list[Tensor], *values: Tensor) -> Tensor:
        ctx.slopes = slopes
        return values[0].new_zeros(())

    @staticmethod
    def backward(ctx, *gradients: Tensor):
        return None, *ctx.slopes  # the gradient is 1: this is where the derivative begins


def _combine(tape: Tape | None = None, **parts: tuple[float, Mean]) -> Terms:
    """Add up means with factors."""
    means = {name: mean for name, (_, mean) in parts.items()}
    return Terms(means, {name: factor for name, (factor, _) in parts.items()}, tape)


def singleton_kl(marginals: Marginals) -> Float[Tensor, " vertices"]:
    """KL_i = KL(q_i || p0) = sum over dimensions of (mu^2 + s^2 - 1) / 2 - log s.

    Examples
    --------
    >>> singleton_kl(Marginals.of(torch.ones(1, 3), torch.ones(1, 3)))
    tensor([1.5000])
    """
    return kl_from_standard(marginals.joint)


@final
@dataclass(frozen=True, eq=False)
class Draws:
    """Latent points drawn from their posteriors, and what the closed forms say of these posteriors.

    Attributes
    ----------
    z
        One point for each vertex drawn.
    kl
        KL_i for each vertex drawn.
    quadratic
        For each edge the part of T_ij that does not depend on the correlation; T_ij itself if that is 0.
    """

    z: Float[Tensor, "drawn dim"]
    kl: Float[Tensor, " drawn"]
    quadratic: Float[Tensor, " edges"]


def draw(
    marginals: Marginals,
    noise: Float[Tensor, "drawn dim"],
    edges: Int[Tensor, "edges 2"],
    prior: PairPrior,
    *,
    independent: bool,
) -> Draws:
    """z_i = mu_i + s_i noise_i and KL_i for the first vertices, and the quadratic part of T_ij for the edges.

    Parameters
    ----------
    marginals
        Singleton posteriors.
    noise
        Standard normal, for as many vertices as are to be drawn.
    edges
        Pairs of positions in `marginals`.
    prior
        The pair prior.
    independent
        Whether rho = 0; else `correlation_term` gives the rest of T_ij.

    Examples
    --------
    >>> four, edge = Marginals.of(torch.ones(4, 3), torch.ones(4, 3)), torch.tensor([[0, 3]])
    >>> draws = draw(four, torch.zeros(2, 3), edge, PairPrior.of(0.0, 3), independent=True)
    >>> draws.z.shape, draws.kl, draws.quadratic
    (torch.Size([2, 3]), tensor([1.5000, 1.5000]), tensor([0.]))
    """
    form = prior.form_independent if independent else prior.form
    return Draws(*draw_and_compare(marginals.joint, noise, edges, form))


def edge_term(
    marginals: Marginals,
    edges: Int[Tensor, "edges 2"],
    prior: PairPrior,
    pre_activation: Float[Tensor, "edges dim"] | None = None,
) -> Float[Tensor, " edges"]:
    """T_ij = KL(q_ij || p0_ij) - KL_i - KL_j for each edge.

    Parameters
    ----------
    marginals
        Singleton posteriors.
    edges
        Pairs of positions in `marginals`.
    prior
        The pair prior.
    pre_activation
        a with rho = tanh(a), for each edge; ``None`` for independent posteriors (rho = 0).

    Examples
    --------
    >>> two, edge = Marginals.of(torch.zeros(2, 1), torch.ones(2, 1)), torch.tensor([[0, 1]])
    >>> edge_term(two, edge, PairPrior.of(0.8, 1), torch.tensor([[0.8]]).atanh())
    tensor([0.])
    """
    if pre_activation is None:
        return prior.form_independent(marginals.joint, edges)
    return prior.form(marginals.joint, edges) + correlation_term(marginals, edges, prior, pre_activation)


def correlation_term(
    marginals: Marginals, edges: Int[Tensor, "edges 2"], prior: PairPrior, pre_activation: Float[Tensor, "edges dim"]
) -> Float[Tensor, " edges"]:
    """Give what the correlation adds to the quadratic part of T_ij: s_i s_j (tau - rho) tau / (1 - tau^2) and I_ij.

    Examples
    --------
    >>> two, edge = Marginals.of(torch.zeros(2, 1), torch.ones(2, 1)), torch.tensor([[0, 1]])
    >>> correlation_term(two, edge, PairPrior.of(0.0, 1), torch.tensor([[0.8]]).atanh())
    tensor([0.5108])
    """
    # tau - rho from 1 - rho and 1 - tau, each of which is accurate when both correlations are close to 1.
    excess = 2.0 * torch.sigmoid(prior.minus_twice_sign * pre_activation) - prior.complement
    stddev = marginals.stddev
    coupling = stddev.index_select(0, edges[:, 0]) * stddev.index_select(0, edges[:, 1]) * excess
    return torch.mv(coupling, prior.product) + mutual_information(pre_activation)


def mutual_information(pre_activation: Float[Tensor, "pairs dim"]) -> Float[Tensor, " pairs"]:
    """I_ij = -1/2 log(1 - rho^2) = log cosh a, summed over dimensions.

    Examples
    --------
    >>> mutual_information(torch.tensor([[0.0, 0.8]]).atanh())
    tensor([0.5108])
    """
    return log_cosh(pre_activation).sum(1)


def mean_over_vertices(values: Float[Tensor, " drawn"], weights: Float[Tensor, " drawn"] | None = None) -> Mean:
    """(1/n) sum_i of a vertex term, from vertices drawn uniformly.

    Parameters
    ----------
    values
        The term of each vertex drawn.
    weights
        Sample weights of these vertices, scaled to have mean 1 over all n.

    Examples
    --------
    >>> mean_over_vertices(torch.tensor([1.0, 3.0])).value
    tensor(2.)
    """
    return Mean(values, 1.0 / len(values), weights)


def mean_over_edges(
    values: Float[Tensor, " drawn"], weights: Float[Tensor, " drawn"], *, n_vertices: int, n_edges: int
) -> Mean:
    """(1/n) sum_e w_e T_e, from edges drawn uniformly: (m/n) mean w_e T_e.

    Examples
    --------
    >>> mean_over_edges(torch.tensor([2.0]), torch.tensor([0.5]), n_vertices=4, n_edges=6).value
    tensor(1.5000)
    """
    return Mean(values, n_edges / (n_vertices * len(values)), weights)


def mean_over_weighted_edges(values: Float[Tensor, " drawn"], *, n_vertices: int, total_weight: float) -> Mean:
    """(1/n) sum_e w_e T_e, from edges drawn in proportion to w_e: (W/n) mean T_e.

    W, the sum of all w_e, is the number of vertices less that of connected components.

    Examples
    --------
    >>> mean_over_weighted_edges(torch.tensor([2.0]), n_vertices=4, total_weight=3.0).value
    tensor(1.5000)
    """
    return Mean(values, total_weight / (n_vertices * len(values)))


def mean_over_pairs(values: Float[Tensor, " drawn"], *, n_vertices: int) -> Mean:
    """(1/n) (2/n) sum_{i<j} I_ij, from pairs drawn uniformly: ((n-1)/n) mean I_ij.

    Examples
    --------
    >>> mean_over_pairs(torch.tensor([1.0, 3.0]), n_vertices=4).value
    tensor(1.5000)
    """
    return Mean(values, (n_vertices - 1) / (n_vertices * len(values)))


def vae(reconstruction: Mean, singleton: Mean, *, warmup: float = 1.0, tape: Tape | None = None) -> Terms:
    """E log p - KL; `warmup` scales the KL divergence while training begins.

    Examples
    --------
    >>> vae(Mean(torch.tensor([-3.0]), 1.0), Mean(torch.tensor([1.0]), 1.0)).total
    tensor(-4.)
    """
    return _combine(tape, reconstruction=(1.0, reconstruction), singleton=(-warmup, singleton))


def cvae_ind(
    reconstruction: Mean, singleton: Mean, edge: Mean, *, warmup: float = 1.0, tape: Tape | None = None
) -> Terms:
    """E log p - KL - sum_e w_e T_e, with T at rho = 0.

    Examples
    --------
    >>> one = Mean(torch.tensor([1.0]), 1.0)
    >>> cvae_ind(one, one, one).total
    tensor(-1.)
    """
    return _combine(tape, reconstruction=(1.0, reconstruction), singleton=(-warmup, singleton), edge=(-warmup, edge))


def cvae_corr(
    reconstruction: Mean,
    singleton: Mean,
    edge: Mean,
    non_edge: Mean,
    *,
    gamma: Gamma = 1.0,
    warmup: float = 1.0,
) -> Terms:
    """E log p - KL - sum_e w_e T_e - gamma (KL + (2/n) sum_{i<j} I_ij).

    Parameters
    ----------
    reconstruction, singleton, edge, non_edge
        The terms, each per vertex.
    gamma
        One number, or one for the singleton KL and one for the pairs.
    warmup
        Factor of all terms but the reconstruction.

    Examples
    --------
    >>> one = Mean(torch.tensor([1.0]), 1.0)
    >>> cvae_corr(one, one, one, one, gamma=2.0).total
    tensor(-5.)
    >>> cvae_corr(one, one, one, one, gamma=(0.0, 2.0)).total
    tensor(-3.)
    """
    of_singletons, of_pairs = gamma_pair(gamma)
    return _combine(
        reconstruction=(1.0, reconstruction),
        singleton=(-warmup * (1.0 + of_singletons), singleton),
        edge=(-warmup, edge),
        non_edge=(-warmup * of_pairs, non_edge),
    )


def gamma_pair(gamma: Gamma) -> tuple[float, float]:
    """Give gamma as its two factors, of the singleton KL and of the pairs.

    Examples
    --------
    >>> gamma_pair(0.1)
    (0.1, 0.1)
    """
    of_singletons, of_pairs = gamma if isinstance(gamma, tuple) else (gamma, gamma)
    if not (0 <= of_singletons < inf and 0 <= of_pairs < inf):
        raise ValueError(f"gamma must not be negative, infinite or not a number; got {gamma}")
    return float(of_singletons), float(of_pairs)
