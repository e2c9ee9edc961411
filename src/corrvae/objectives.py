"""The objectives, one function for one equation, as named per-vertex terms.

All are maximised. Closed forms are summed over latent dimensions; correlations enter as pre-activations a with
rho = tanh(a), so that 1 - rho and 1 - rho^2 keep their digits when rho is close to 1.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from corrvae.nn.closed_forms import kl_from_standard, log_cosh, quadratic
from corrvae.nn.encoder import Marginals
from corrvae.nn.prior import PairPrior

Gamma = float | tuple[float, float]


@final
@dataclass(frozen=True, eq=False)
class Terms:
    """An objective's terms, each divided by the number of vertices.

    Attributes
    ----------
    reconstruction
        E log p(x given z).
    singleton
        KL of the singleton posteriors from their prior, before gamma.
    edge
        Weighted sum over edges of T: what the pair prior adds to the KL divergence.
    non_edge
        (2/n) times the sum over all pairs of their mutual information, before gamma.
    total
        The objective.
    """

    reconstruction: Float[Tensor, ""]
    singleton: Float[Tensor, ""]
    edge: Float[Tensor, ""]
    non_edge: Float[Tensor, ""]
    total: Float[Tensor, ""]

    @property
    def bound(self) -> Float[Tensor, ""]:
        """The evidence lower bound: the objective without the terms that gamma adds."""
        return self.reconstruction - self.singleton - self.edge

    def floats(self) -> dict[str, float]:
        """Give the terms as numbers by name."""
        return {name: getattr(self, name).item() for name in self.__dataclass_fields__}


def singleton_kl(marginals: Marginals) -> Float[Tensor, " vertices"]:
    """KL_i = KL(q_i || p0) = sum over dimensions of (mu^2 + s^2 - 1) / 2 - log s.

    Examples
    --------
    >>> singleton_kl(Marginals.of(torch.ones(1, 3), torch.ones(1, 3)))
    tensor([1.5000])
    """
    return kl_from_standard(marginals.joint)


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
    first, second = edges.T.contiguous()
    if pre_activation is None:
        factors = prior.apart_independent, prior.together_independent
        return 0.5 * (quadratic(marginals.joint, first, second, *factors) + prior.log_determinant)
    values = 0.5 * (quadratic(marginals.joint, first, second, prior.apart, prior.together) + prior.log_determinant)
    # tau - rho from 1 - rho and 1 - tau, each of which is accurate when both correlations are close to 1.
    excess = 2.0 * torch.sigmoid(prior.minus_twice_sign * pre_activation) - prior.complement
    stddev = marginals.stddev
    coupling = stddev.index_select(0, first) * stddev.index_select(0, second) * excess
    return values + torch.mv(coupling, prior.product) + mutual_information(pre_activation)


def mutual_information(pre_activation: Float[Tensor, "pairs dim"]) -> Float[Tensor, " pairs"]:
    """I_ij = -1/2 log(1 - rho^2) = log cosh a, summed over dimensions.

    Examples
    --------
    >>> mutual_information(torch.tensor([[0.0, 0.8]]).atanh())
    tensor([0.5108])
    """
    return log_cosh(pre_activation).sum(1)


def mean_over_vertices(
    values: Float[Tensor, " drawn"], weights: Float[Tensor, " drawn"] | None = None
) -> Float[Tensor, ""]:
    """(1/n) sum_i of a vertex term, from vertices drawn uniformly.

    Parameters
    ----------
    values
        The term of each vertex drawn.
    weights
        Sample weights of these vertices, scaled to have mean 1 over all n.

    Examples
    --------
    >>> mean_over_vertices(torch.tensor([1.0, 3.0]))
    tensor(2.)
    """
    return values.mean() if weights is None else (weights * values).mean()


def mean_over_edges(
    values: Float[Tensor, " drawn"], weights: Float[Tensor, " drawn"], *, n_vertices: int, n_edges: int
) -> Float[Tensor, ""]:
    """(1/n) sum_e w_e T_e, from edges drawn uniformly: (m/n) mean w_e T_e.

    Examples
    --------
    >>> mean_over_edges(torch.tensor([2.0]), torch.tensor([0.5]), n_vertices=4, n_edges=6)
    tensor(1.5000)
    """
    return (weights * values).mean() * (n_edges / n_vertices)


def mean_over_weighted_edges(
    values: Float[Tensor, " drawn"], *, n_vertices: int, total_weight: float
) -> Float[Tensor, ""]:
    """(1/n) sum_e w_e T_e, from edges drawn in proportion to w_e: (W/n) mean T_e.

    W, the sum of all w_e, is the number of vertices less that of connected components.

    Examples
    --------
    >>> mean_over_weighted_edges(torch.tensor([2.0]), n_vertices=4, total_weight=3.0)
    tensor(1.5000)
    """
    return values.mean() * (total_weight / n_vertices)


def mean_over_pairs(values: Float[Tensor, " drawn"], *, n_vertices: int) -> Float[Tensor, ""]:
    """(1/n) (2/n) sum_{i<j} I_ij, from pairs drawn uniformly: ((n-1)/n) mean I_ij.

    Examples
    --------
    >>> mean_over_pairs(torch.tensor([1.0, 3.0]), n_vertices=4)
    tensor(1.5000)
    """
    return values.mean() * ((n_vertices - 1) / n_vertices)


def vae(reconstruction: Float[Tensor, ""], singleton: Float[Tensor, ""], *, warmup: float = 1.0) -> Terms:
    """E log p - KL; `warmup` scales the KL divergence while training begins.

    Examples
    --------
    >>> float(vae(torch.tensor(-3.0), torch.tensor(1.0)).total)
    -4.0
    """
    nothing = torch.zeros_like(singleton)
    return Terms(reconstruction, singleton, nothing, nothing, reconstruction - warmup * singleton)


def cvae_ind(
    reconstruction: Float[Tensor, ""], singleton: Float[Tensor, ""], edge: Float[Tensor, ""], *, warmup: float = 1.0
) -> Terms:
    """E log p - KL - sum_e w_e T_e, with T at rho = 0.

    Examples
    --------
    >>> float(cvae_ind(torch.tensor(-3.0), torch.tensor(1.0), torch.tensor(0.5)).total)
    -4.5
    """
    total = reconstruction - warmup * (singleton + edge)
    return Terms(reconstruction, singleton, edge, torch.zeros_like(singleton), total)


def cvae_corr(
    reconstruction: Float[Tensor, ""],
    singleton: Float[Tensor, ""],
    edge: Float[Tensor, ""],
    non_edge: Float[Tensor, ""],
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
    >>> one = torch.tensor(1.0)
    >>> float(cvae_corr(-one, one, one, one, gamma=2.0).total)
    -7.0
    >>> float(cvae_corr(-one, one, one, one, gamma=(0.0, 2.0)).total)
    -5.0
    """
    of_singletons, of_pairs = gamma_pair(gamma)
    total = reconstruction - warmup * ((1.0 + of_singletons) * singleton + edge + of_pairs * non_edge)
    return Terms(reconstruction, singleton, edge, non_edge, total)


def gamma_pair(gamma: Gamma) -> tuple[float, float]:
    """Give gamma as its two factors, of the singleton KL and of the pairs.

    Examples
    --------
    >>> gamma_pair(0.1)
    (0.1, 0.1)
    """
    of_singletons, of_pairs = gamma if isinstance(gamma, tuple) else (gamma, gamma)
    if not (of_singletons >= 0 and of_pairs >= 0):
        raise ValueError(f"gamma must not be negative, got {gamma}")
    return float(of_singletons), float(of_pairs)
