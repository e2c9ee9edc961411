"""All networks of a model as one torch module, and the loss of one step.

`Batch` is what a step draws; `CorrelatedModel.terms` turns it into the objective's terms. Each distinct vertex of the
batch is encoded once, whatever its roles.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from corrvae import objectives
from corrvae.nn.autoencoding import Autoencoded, autoencode
from corrvae.nn.decoder import Decoder
from corrvae.nn.encoder import Encoder, Marginals
from corrvae.nn.inputs import InputTransform
from corrvae.nn.kernels import choice
from corrvae.nn.kernels.picking import number_vertices
from corrvae.nn.likelihoods.base import Likelihood
from corrvae.nn.pairs import PairNetwork
from corrvae.nn.prior import LearnedTau, PairPrior, check_tau
from corrvae.nn.rows import DenseRows, Rows
from corrvae.objectives import Gamma, Mean, Terms


@final
@dataclass(frozen=True, eq=False)
class Population:
    """What a batch was drawn from: the numbers that make its means estimates of the whole.

    Parameters
    ----------
    n_vertices, n_edges
        Vertices and edges of the graph.
    total_weight
        Sum of the edges' spanning weights: vertices less connected components.
    """

    n_vertices: int
    n_edges: int = 0
    total_weight: float = 0.0


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """The draws of one step.

    Parameters
    ----------
    rows
        Features of the distinct vertices of this step. The first `n_drawn` are the vertices drawn for the singleton
        terms.
    n_drawn
        Number of vertices drawn (B1).
    edges
        Ends of the edges drawn (B2), as positions in `rows`; ``None`` trains a VAE.
    edge_weights
        Their spanning weights if they were drawn uniformly; ``None`` if they were drawn in proportion to the weights.
    pairs
        Pairs for the non-edge term, as positions in `rows`; ``None`` takes all pairs of the drawn vertices.
    targets
        What the decoder should explain, if other than the first `n_drawn` rows.
    vertex_weights
        Sample weights of the drawn vertices, scaled to have mean 1 over all vertices.
    """

    rows: Rows
    n_drawn: int
    edges: Int[Tensor, "edges 2"] | None = None
    edge_weights: Float[Tensor, " edges"] | None = None
    pairs: Int[Tensor, "pairs 2"] | None = None
    targets: Rows | None = None
    vertex_weights: Float[Tensor, " drawn"] | None = None


@final
@dataclass(frozen=True, eq=False)
class DistinctVertices:
    """Vertices of a step without repetition, and where the edges' ends are among them.

    Attributes
    ----------
    vertices
        The drawn vertices in their order, then the edges' other ends.
    positions
        For each edge, the positions of its ends in `vertices`.
    """

    vertices: Int[np.ndarray, " distinct"]
    positions: Int[np.ndarray, "edges 2"]


@final
class VertexIndex:
    """Finds the distinct vertices of a step, in time that does not depend on the size of the graph.

    Parameters
    ----------
    n_vertices
        Vertices of the graph. The index keeps a scratch array of this length, whose contents mean nothing between
        calls.

    Examples
    --------
    >>> VertexIndex(10).distinct(np.array([7, 3]), np.array([[3, 9], [9, 7]]))
    DistinctVertices(vertices=array([7, 3, 9]), positions=array([[1, 2],
           [2, 0]]))
    """

    def __init__(self, n_vertices: int) -> None:
        self._slot = np.zeros(n_vertices, dtype=np.int64)

    def distinct(self, drawn: Int[np.ndarray, " drawn"], edges: Int[np.ndarray, "edges 2"]) -> DistinctVertices:
        """Put the drawn vertices (distinct ones) first, then the ends of edges that are not among them."""
        if not choice.used():
            return _distinct_by_sorting(drawn, edges)
        vertices, positions = np.empty(len(drawn) + edges.size, np.int64), np.empty(edges.shape, np.int64)
        count = number_vertices(drawn, edges.reshape(-1), self._slot, vertices, positions.reshape(-1))
        return DistinctVertices(vertices[:count], positions)


def _distinct_by_sorting(drawn: np.ndarray, edges: np.ndarray) -> DistinctVertices:
    every = np.concatenate([drawn, edges.reshape(-1)])
    found, first, places = np.unique(every, return_index=True, return_inverse=True)
    order = np.argsort(first)
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order))
    return DistinctVertices(found[order], numbers[places[len(drawn) :]].reshape(edges.shape))


@final
class CorrelatedModel(nn.Module):
    """Encoder, decoder, likelihood, pair prior and, for correlated posteriors, a pair network.

    Parameters
    ----------
    encoder
        Rows to `Marginals`.
    decoder
        Latent points to one output for each feature.
    likelihood
        Distribution of the features given these outputs.
    pair_network
        For CVAE_corr; without one a batch with edges trains CVAE_ind, and a batch without edges a VAE.
    tau
        Correlation of the pair prior: a number, or a `LearnedTau`.
    inputs
        What is done to features before the encoder reads them.
    pair_inputs
        The same for the pair network; ``None``: it reads what the encoder reads.

    Examples
    --------
    >>> from corrvae.nn import Decoder, DenseRows, Encoder, make_likelihood
    >>> model = CorrelatedModel(Encoder(6, 2), Decoder(2, 6), make_likelihood("gaussian", 6))
    >>> batch = Batch(DenseRows(torch.rand(4, 6)), 3, edges=torch.tensor([[0, 3]]), edge_weights=torch.ones(1))
    >>> terms = model.terms(batch, Population(10, 9, 9.0))
    >>> terms.climb()
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        likelihood: Likelihood,
        *,
        pair_network: PairNetwork | None = None,
        tau: float | LearnedTau = 0.99,
        inputs: InputTransform | None = None,
        pair_inputs: InputTransform | None = None,
    ) -> None:
        super().__init__()
        self.inputs = InputTransform() if inputs is None else inputs
        self.pair_inputs = pair_inputs
        self.encoder = encoder
        self.decoder = decoder
        self.likelihood = likelihood
        self.pair_network = pair_network
        self.tau = tau
        if not isinstance(tau, LearnedTau):
            check_tau(tau)

    def prior(
        self, n_components: int, dtype: torch.dtype = torch.float32, device: torch.device | None = None
    ) -> PairPrior:
        """Give the pair prior at the current tau."""
        tau = self.tau() if isinstance(self.tau, LearnedTau) else self.tau
        return PairPrior.of(tau, n_components, dtype, device)

    def products_a_step(self, n_rows: int, n_pairs: int) -> int:
        """Give about how many multiplications it takes to look at so many rows and, with a pair network, pairs."""
        of_rows = n_rows * sum(parameter.numel() for parameter in self.parameters())
        return of_rows if self.pair_network is None else of_rows + n_pairs * self.pair_network.products_a_pair

    def prepare_pairs(self, rows: Rows) -> Float[Tensor, "vertices width"]:
        """Give what the pair network needs of each vertex, from its features as they are."""
        if self.pair_network is None:
            raise ValueError("this model has no pair network: its posteriors are independent")
        read = (self.inputs if self.pair_inputs is None else self.pair_inputs)(rows)
        return self.pair_network.prepare(self._read_by(self.pair_network, read, None))

    def _read_by(self, network: PairNetwork, rows: Rows, marginals: Marginals | None) -> Rows:
        """Give what a pair network reads of rows: themselves, or the encoder's means, if they are not known already."""
        if not network.reads_means:
            return rows
        return DenseRows((self.encoder(rows) if marginals is None else marginals).mean)

    def terms(
        self,
        batch: Batch,
        population: Population,
        *,
        gamma: Gamma = 1.0,
        warmup: float = 1.0,
        generator: torch.Generator | None = None,
        noise: Float[Tensor, "drawn dim"] | None = None,
        taped: bool = False,
    ) -> Terms:
        """Estimate the objective's terms, without bias, from one batch.

        Parameters
        ----------
        batch, population
            What was drawn, and from what.
        gamma
            Strength of the regulariser of CVAE_corr: one number, or (singleton, pairs).
        warmup
            Factor of all terms but the reconstruction.
        generator
            Draws the latent noise and what input dropout drops.
        noise
            Standard normal latent noise, if it is not to be drawn.
        taped
            Whether the terms may know the way back to the parameters by themselves, which is faster. Torch then knows
            none: `Terms.climb` gives gradients, and ``total.backward()`` does not; functions that wait for gradients,
            as those of DistributedDataParallel do, wait in vain.
        """
        rows = self.inputs(batch.rows, generator)
        targets = batch.rows if batch.targets is None else batch.targets
        if self.pair_network is None or batch.edges is None:
            passed = self._pass(rows, targets, batch, generator, noise, taped)
            fit = objectives.mean_over_vertices(passed.log_prob, batch.vertex_weights)
            singleton = objectives.mean_over_vertices(passed.kl, batch.vertex_weights)
            if batch.edges is None:
                return objectives.vae(fit, singleton, warmup=warmup, tape=passed.tape)
            edge = _edge_mean(batch, population, passed.quadratic)
            return objectives.cvae_ind(fit, singleton, edge, warmup=warmup, tape=passed.tape)
        marginals = self.encoder(rows)
        if noise is None:
            noise = _draw_noise(batch, marginals.joint.shape[1] // 2, marginals.joint, generator)
        prior = self.prior(noise.shape[1], noise.dtype, noise.device)
        draws = objectives.draw(marginals, noise, batch.edges, prior, independent=False)
        log_prob = self.likelihood.log_prob(self.decoder(draws.z), targets.head(batch.n_drawn))
        fit = objectives.mean_over_vertices(log_prob, batch.vertex_weights)
        singleton = objectives.mean_over_vertices(draws.kl, batch.vertex_weights)
        if self.pair_inputs is None:
            read = self._read_by(self.pair_network, rows, marginals)
        else:
            read = self._read_by(self.pair_network, self.pair_inputs(batch.rows, generator), None)
        of_edges, of_pairs = self._pre_activations(self.pair_network, read, batch, batch.edges)
        correlation = objectives.correlation_term(marginals, batch.edges, prior, of_edges)
        edge = _edge_mean(batch, population, draws.quadratic + correlation)
        information = objectives.mutual_information(of_pairs)
        non_edge = objectives.mean_over_pairs(information, n_vertices=population.n_vertices)
        return objectives.cvae_corr(fit, singleton, edge, non_edge, gamma=gamma, warmup=warmup)

    def _pass(
        self,
        rows: Rows,
        targets: Rows,
        batch: Batch,
        generator: torch.Generator | None,
        noise: Tensor | None,
        taped: bool,
    ) -> Autoencoded:
        """Lead a batch through the networks of independent posteriors: as one function, if they are the library's."""
        encoder, decoder = self.encoder, self.decoder
        edges = torch.empty((0, 2), dtype=torch.int64) if batch.edges is None else batch.edges
        if isinstance(encoder, Encoder) and isinstance(decoder, Decoder):
            if noise is None:
                noise = _draw_noise(batch, encoder.n_components, encoder.first.bias, generator)
            form = self.prior(noise.shape[1], noise.dtype, noise.device).form_independent
            edges = edges.to(noise.device)
            return autoencode(encoder, decoder, self.likelihood, rows, noise, targets, edges, form, taped=taped)
        marginals = encoder(rows)
        if noise is None:
            noise = _draw_noise(batch, marginals.joint.shape[1] // 2, marginals.joint, generator)
        prior = self.prior(noise.shape[1], noise.dtype, noise.device)
        draws = objectives.draw(marginals, noise, edges.to(noise.device), prior, independent=True)
        log_prob = self.likelihood.log_prob(decoder(draws.z), targets.head(batch.n_drawn))
        return Autoencoded(log_prob, draws.kl, draws.quadratic)

    def _pre_activations(self, network: PairNetwork, rows: Rows, batch: Batch, edges: Tensor) -> tuple[Tensor, Tensor]:
        """Give the pair network's output for the edges and for the pairs of the non-edge term."""
        prepared = network.prepare(rows)
        of_edges = network.pre_activation(prepared, *edges.T.contiguous())
        if batch.pairs is None:
            return of_edges, network.within(prepared[: batch.n_drawn])
        return of_edges, network.pre_activation(prepared, *batch.pairs.T.contiguous())


def _draw_noise(batch: Batch, n_components: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.randn((batch.n_drawn, n_components), generator=generator, dtype=like.dtype, device=like.device)


def _edge_mean(batch: Batch, population: Population, values: Tensor) -> Mean:
    n_vertices = population.n_vertices
    if batch.edge_weights is None:
        total = population.total_weight
        return objectives.mean_over_weighted_edges(values, n_vertices=n_vertices, total_weight=total)
    return objectives.mean_over_edges(values, batch.edge_weights, n_vertices=n_vertices, n_edges=population.n_edges)
