"""The joint posterior: the encoder's evidence, combined along forests of the graph by belief propagation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from scipy.special import logsumexp
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.forests import ForestPieces, ForestSampler, OrderedForest
from corrvae.model.batch import Batch, TrainingData
from corrvae.model.families.base import Family
from corrvae.model.families.independent import mean_field_terms
from corrvae.model.kernels import combine_upwards, descend, log_densities, pair_covariances, spread_downwards
from corrvae.model.network import CorrelatedModel
from corrvae.model.objectives import Terms, edge_term
from corrvae.model.posterior import Posterior
from corrvae.model.propagation import propagate
from corrvae.nn import FeatureTable, Marginals, Rows

# Vertices that are propagated together, where the data are gone through once: more are cut into blocks.
_WHOLE = 50_000
# Forests that a bound is averaged over.
_FORESTS = 5
# Outputs of the decoder that are held together.
_OUTPUTS = 2**25
# The correlation nearest to 1 that has a finite arctanh.
_LARGEST = 1.0 - 2.0**-53


@final
class Joint(Family):
    """q(z given x, G) is a mixture over forests T of q_T(z), proportional to p0(z; T) prod_i phi_i(z_i).

    The encoder gives the evidence phi_i(z) = exp(-lambda_i z^2 / 2 + h_i z) of each row. Belief propagation combines it
    along maximal acyclic subgraphs drawn at random. The objective is E_T [E log p - KL(q_T || p0_T)]. A vertex
    without features has no evidence and a posterior all the same.

    For training, forests are cut into blocks of at most `block_size` vertices that are independent of each other, and
    the edges cut enter the objective with rho = 0: with 1, the default, it is that of CVAE_ind. Posteriors are
    propagated along whole forests in any case.

    Parameters
    ----------
    n_forests : int
        Forests that posteriors are averaged over; a graph without cycles needs one, and takes it.
    block_size : int or None
        Most vertices of a block in training, which is also how many a step draws; ``None``: 50,000, or the whole graph
        if it is smaller. With 1 a step draws rows and edges, `batch_size` and `edge_batch_size` of them.
    strength : float or None
        Factor of the evidence where it is propagated; ``None``: 0.3 if `block_size` is 1 and there are edges, because
        the encoder is then as sure of a row as its features and its neighbours together make it; otherwise 1.
    contrast, rivals
        As in `Independent`, for `block_size` 1 and graphs of rows alone.

    Examples
    --------
    >>> Joint(n_forests=50)
    Joint(n_forests=50)
    """

    conditions_on_graph: ClassVar[bool] = True
    factor: Tensor

    def __init__(
        self,
        *,
        n_forests: int = 20,
        block_size: int | None = 1,
        strength: float | None = None,
        contrast: float = 0.0,
        rivals: str = "all",
    ) -> None:
        super().__init__()
        self.contrast = contrast
        self.rivals = rivals
        self.n_forests = n_forests
        self.block_size = block_size
        self.strength = strength

    def build(self, n_features: int, n_components: int, *, normalize: str, dropout: float) -> None:
        """Check the options."""
        super().build(n_features, n_components, normalize=normalize, dropout=dropout)
        for name in ("n_forests", "block_size"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        if self.strength is not None and not 0 < self.strength < float("inf"):
            raise ValueError(f"strength must be positive and finite, got {self.strength!r}")
        self.register_buffer("factor", torch.ones(()))
        self._last: tuple[TrainingData, int, ForestPieces] | None = None

    def observe(self, data: TrainingData) -> None:
        """Weigh the evidence."""
        if self.contrast and self.draws_forests(data):
            raise ValueError(
                "contrast compares rows: it needs block_size=1, and features for every vertex of the graph"
            )
        self.weigh_evidence(data.n_edges)

    def weigh_evidence(self, n_edges: int) -> None:
        """Set the factor of the evidence of an encoder that is trained with so many edges."""
        usual = 0.3 if self.block_size == 1 and n_edges else 1.0
        self.factor.fill_(usual if self.strength is None else self.strength)

    def draws_forests(self, data: TrainingData) -> bool:
        """Return whether a step draws a forest."""
        # A block of one row has no use for the forest: its edges count by their spanning weights.
        return self.block_size != 1 or data.n_bare > 0 or data.as_inferred

    def _pieces(self, data: TrainingData, number: int) -> ForestPieces:
        """Return the forest of this number, cut into blocks; the last one is kept."""
        if self._last is None or self._last[0] is not data or self._last[1] != number:
            size = _WHOLE if self.block_size is None else self.block_size
            pieces = ForestPieces(
                data.forests.draw((data.seed, 5, number)),
                max(size, _WHOLE) if data.as_inferred else size,
                piece_size=None if size > 1 or data.as_inferred else data.batch_size + data.edge_batch_size,
                stays=np.arange(data.n_vertices + data.n_bare) >= data.n_vertices,
            )
            self._last = data, number, pieces
        return self._last[2]

    def rows_per_step(self, n_rows: int) -> int | None:
        """Return the size of a block, unless it is 1."""
        return None if self.block_size == 1 else min(n_rows, self.block_size or _WHOLE)

    def steps_per_epoch(self, data: TrainingData) -> int:
        """Return the number of steps that draw every row once, about."""
        if self.block_size == 1:
            return data.vertex_draws.per_epoch
        return self._pieces(data, 0).n_pieces

    def n_pieces(self, data: TrainingData) -> int:
        """Return the number of batches that all of the data make: the pieces of a forest, or some forests."""
        if not self.draws_forests(data):
            return super().n_pieces(data)
        n_pieces = self._pieces(data, 0).n_pieces
        several = n_pieces == 1 and data.n_pieces is not None and not data.forests.is_forest
        return min(self.n_forests, _FORESTS) if several else n_pieces

    def draw(self, data: TrainingData, step: int) -> Batch:
        """Draw rows and edges, or a piece of a forest; a new forest once all pieces of one are drawn."""
        if not self.draws_forests(data):
            return super().draw(data, step)
        if data.n_pieces is None:
            number, place = divmod(step, self.steps_per_epoch(data))
            pieces = self._pieces(data, number)
            place = np.random.default_rng((data.seed, 6, number)).permutation(pieces.n_pieces)[place % pieces.n_pieces]
        else:
            pieces = self._pieces(data, 0)
            pieces, place = (pieces, step) if pieces.n_pieces > 1 else (self._pieces(data, step), 0)
        return data.draw_piece(step, pieces.at(int(place)), pieces.n_pieces)

    def terms(self, model: CorrelatedModel, batch: Batch, generator: torch.Generator | None = None) -> Terms:
        """Return reconstruction and singleton terms, each vertex's KL given its parent, and the edges cut."""
        if batch.forest is None or batch.forest_weights is None:
            return mean_field_terms(model, batch, generator)
        rows, target = model.inputs.split(batch.rows, generator)
        marginals = model.encoder(rows)
        tau = model.tau_tensor(marginals.mean.shape[1])
        without = (0, 0, 0, len(batch.vertices) - len(marginals.mean))
        precision, information = evidence(marginals, self.factor if batch.is_inferred else 1.0)
        found = propagate(pad(precision, without), pad(information, without), tau, batch.forest)
        shape = (batch.n_drawn, len(tau))
        noise = torch.randn(shape, generator=generator, dtype=found.mean.dtype, device=found.mean.device)[batch.drawn]
        z = torch.addcmul(found.mean[batch.drawn], found.variance[batch.drawn].sqrt(), noise)
        terms = Terms().add("reconstruction", 1.0, _log_prob(model, z, target[batch.drawn]), batch.vertex_weights)
        terms.add("singleton", -1.0, found.kl, batch.forest_weights)
        if batch.edges is not None and batch.edge_weights is not None:
            joined = Marginals.of(found.mean, found.variance.sqrt())
            terms.add("edge", -1.0, edge_term(joined, batch.edges, model.prior(found.mean)), batch.edge_weights)
        return terms

    def posterior(
        self,
        model: CorrelatedModel,
        mean: Float[np.ndarray, "rows dim"],
        stddev: Float[np.ndarray, "rows dim"],
        table: FeatureTable | None,
        ids: Shaped[np.ndarray, " vertices"] | None = None,
        graph: CorrelationGraph | None = None,
    ) -> Posterior:
        """Return the posterior of rows that were encoded, and after them of the graph's vertices without a row."""
        n_rows, n_components = mean.shape
        graph = CorrelationGraph(np.empty((0, 2), np.int64), n_rows) if graph is None else graph
        with torch.no_grad():
            found = evidence(Marginals.of(torch.from_numpy(mean), torch.from_numpy(stddev)), self.factor.cpu())
        without = ((0, graph.n_vertices - n_rows), (0, 0))
        precision, information = (np.pad(part.numpy(), without) for part in found)
        tau = model.tau_values(n_components)
        return JointPosterior.of(Mixture(precision, information, tau, ForestSampler(graph), self.n_forests), ids)


def evidence(
    marginals: Marginals, factor: Tensor | float = 1.0
) -> tuple[Float[Tensor, "rows dim"], Float[Tensor, "rows dim"]]:
    """Return precision lambda and information h: the factor times those of N(mean, stddev^2) relative to N(0, 1)."""
    precision = marginals.stddev.square().reciprocal() - 1.0
    precision = precision - precision.clamp(max=0.0).detach()  # not negative, and yet with a gradient
    return factor * precision, factor * (1.0 + precision) * marginals.mean


def _log_prob(model: CorrelatedModel, z: Float[Tensor, "rows dim"], rows: Rows) -> Float[Tensor, " rows"]:
    """Return the log-likelihood of rows given their latent points; of many rows piece by piece, to bound memory."""

    def of(begin: int, end: int) -> Tensor:
        return model.likelihood.log_prob(model.decoder(z[begin:end]), rows[begin:end])

    n_rows, n_features = rows.shape
    step = max(1, _OUTPUTS // n_features)
    if n_rows <= step:
        return of(0, n_rows)
    bounds = [(begin, min(begin + step, n_rows)) for begin in range(0, n_rows, step)]
    return torch.cat([checkpoint(of, *each, use_reentrant=False, preserve_rng_state=False) for each in bounds])


@final
@dataclass(frozen=True, eq=False)
class Mixture:
    """Evidence, and the forests along which it is propagated."""

    precision: Float[np.ndarray, "vertices dim"]
    information: Float[np.ndarray, "vertices dim"]
    tau: Float[np.ndarray, " dim"]
    sampler: ForestSampler
    n_forests: int

    @property
    def n_members(self) -> int:
        """Number of forests; one if the graph is a forest."""
        return 1 if self.sampler.is_forest else self.n_forests

    def __iter__(self) -> Iterator["Member"]:
        """Draw the forests, the same ones every time, and propagate the evidence along each."""
        for number in range(self.n_members):
            forest = self.sampler.draw(number)
            a, b = (part[forest.order].astype(np.float64) for part in (self.precision, self.information))
            combine_upwards(a, b, forest.parents, self.tau)
            mean, variance, _ = spread_downwards(a, b, forest.parents, self.tau)
            yield Member(forest, a, b, mean, variance)


class Member(NamedTuple):
    """The posterior along a forest, in its order; a and b are the evidence of each vertex and all below it."""

    forest: OrderedForest
    a: Float[np.ndarray, "vertices dim"]
    b: Float[np.ndarray, "vertices dim"]
    mean: Float[np.ndarray, "vertices dim"]
    variance: Float[np.ndarray, "vertices dim"]


@final
class JointPosterior(Posterior):
    """A mixture of the posteriors along some forests of a graph, drawn at random.

    Means and variances are those of the mixture (law of total variance), and so are correlations: along one forest, the
    covariance of two vertices is the variance of their lowest common ancestor times the regression coefficients down
    both ways. Searches over all pairs use the marginals alone, scores of given pairs the correlation too.

    `chosen` are vertices of the mixture. The Monte Carlo standard error of the means is 0 if the graph is a forest.
    """

    is_correlated = True
    usual_metric = "mean_distance"  # variances tell how many neighbours a point has, more than where it is

    def __init__(
        self,
        mixture: Mixture,
        mean: Float[np.ndarray, "vertices dim"],
        stddev: Float[np.ndarray, "vertices dim"],
        standard_error: Float[np.ndarray, "vertices dim"],
        chosen: Int[np.ndarray, " vertices"],
        *,
        ids: Sequence[Any] | Shaped[np.ndarray, " ids"] | None = None,
    ) -> None:
        super().__init__(mean, stddev, ids=ids, tau=mixture.tau)
        self.standard_error = standard_error
        self._mixture, self._chosen = mixture, chosen

    @classmethod
    def of(cls, mixture: Mixture, ids: Sequence[Any] | Shaped[np.ndarray, " ids"] | None = None) -> "JointPosterior":
        """Return the posterior of all vertices."""
        shape = mixture.precision.shape
        mean, within, between = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for count, member in enumerate(mixture, start=1):
            order = member.forest.order
            moved = member.mean - mean[order]
            mean[order] += moved / count
            between[order] += moved * (member.mean - mean[order])
            within[order] += member.variance
        n = mixture.n_members
        stddev, error = np.sqrt((within + between) / n), np.sqrt(between / (n * max(1, n - 1)))
        mean, stddev, error = (part.astype(np.float32) for part in (mean, stddev, error))
        return cls(mixture, mean, stddev, error, np.arange(len(mean)), ids=ids)

    @cached_property
    def searchable(self) -> Posterior:
        """The marginals: the correlations of all pairs would take a walk through every forest for each."""
        return Posterior(self.mean, self.stddev, ids=self._ids, tau=self.tau)

    def take(self, positions: Int[np.ndarray, " taken"]) -> "JointPosterior":
        """Return the posterior of some vertices, in this order."""
        return JointPosterior(
            self._mixture,
            self.mean[positions],
            self.stddev[positions],
            self.standard_error[positions],
            self._chosen[positions],
            ids=self.ids[positions],
        )

    def pre_activation(self, positions: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, "pairs dim"]:
        """Return a with correlation tanh(a) for pairs of positions: the mixture's covariance in standard units."""
        vertices = self._chosen[positions]
        product = np.zeros((len(vertices), self.n_components))
        mean, square = np.zeros((len(vertices), 2, self.n_components)), np.zeros((len(vertices), 2, self.n_components))
        for forest, a, _, means, variances in self._mixture:
            place = np.empty_like(forest.order)
            place[forest.order] = np.arange(len(place))
            at = place[vertices]
            m = means[at]
            product += pair_covariances(a, variances, forest.parents, self.tau, at) + m[:, 0] * m[:, 1]
            mean += m
            square += variances[at] + m**2
        n = self._mixture.n_members
        mean /= n
        covariance, variance = product / n - mean[:, 0] * mean[:, 1], square / n - mean**2
        correlation = covariance / np.sqrt(variance[:, 0] * variance[:, 1])
        return np.arctanh(np.clip(correlation, -_LARGEST, _LARGEST))

    def sample(
        self, n_samples: int, random_state: np.random.Generator | int | None = None
    ) -> Float[np.ndarray, "samples vertices dim"]:
        """Draw all vertices jointly: a forest of the mixture, then every vertex given its parent there."""
        generator = np.random.default_rng(random_state)
        which = generator.integers(self._mixture.n_members, size=n_samples)
        drawn = np.empty((n_samples, len(self._chosen), self.n_components))
        for number, member in enumerate(self._mixture):
            for sample in np.flatnonzero(which == number):
                z = generator.standard_normal(member.mean.shape)
                descend(z, member.a, member.b, member.forest.parents, self.tau)
                every = np.empty_like(z)
                every[member.forest.order] = z
                drawn[sample] = every[self._chosen]
        return drawn

    def log_density(self, z: Float[np.ndarray, "*samples vertices dim"]) -> Float[np.ndarray, "*samples"] | np.floating:
        """Return the joint log-density of all vertices under the mixture."""
        if len(self._chosen) != len(self._mixture.precision):
            raise ValueError("the joint density is known for all vertices of the graph together, not for some of them")
        z = np.asarray(z, np.float64)[..., np.argsort(self._chosen), :]
        points = z.reshape(-1, *z.shape[-2:])
        each = [
            log_densities(points[:, forest.order], a, b, forest.parents, self.tau)
            for forest, a, b, _, _ in self._mixture
        ]
        return logsumexp(each, axis=0).reshape(z.shape[:-2]) - np.log(self._mixture.n_members)
