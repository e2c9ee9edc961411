"""Correlated posteriors (CVAE_corr): a pair network reads the correlation of two points from their features."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.pair_features import PairFeatures, RowDirections
from corrvae.model.batch import Batch, TrainingData
from corrvae.model.families.base import Family
from corrvae.model.families.evidence import (
    EvidencePosterior,
    draw_with_candidates,
    pool_of,
    row_sizes,
)
from corrvae.model.network import CorrelatedModel, evaluation_mode
from corrvae.model.objectives import Terms, edge_term, mutual_information
from corrvae.model.posterior import Posterior
from corrvae.nn import PAIR_NETWORKS, DenseRows, FeatureTable, InputTransform, Marginals, PairNetwork, Rows
from corrvae.nn.pair_evidence import PairEvidence

# Pairs evaluated at a time.
_PAIRS = 8192


@final
class Pairwise(Family):
    """q(z_i, z_j) has correlation rho_ij = tanh(a(x_i, x_j)) in each latent dimension (CVAE_corr).

    The objective is E log p - KL - sum_e w_e T_e - gamma_kl KL - gamma_mi (2/n) sum_{i<j} I_ij.

    Parameters
    ----------
    network : {"perceptron", "bilinear", "metric"} or callable
        The pair network: the paper's; one that costs hundreds of times less for each pair; one that reads the encoder's
        means and is best where edges are few; or a function of the numbers of features and of components that makes a
        `corrvae.nn.PairNetwork`.
    gamma_kl, gamma_mi : float
        Strength of the regulariser: of the singletons' KL, and of the mutual information of pairs.
    hidden : tuple of int or None
        Widths of the pair network's hidden layers; ``None`` for its default.
    dropout : float or None
        Share of the features hidden from the pair network at random while training; ``None``: it reads what the encoder
        reads. Without dropout, a pair network memorises edges where they are few.
    normalize : {"none", "binary", "l2", "log1p"} or None
        What is done to features before the pair network reads them; ``None``: as for the encoder.
    pair_batch : int or None
        Pairs that a step draws for the mutual information; ``None``: all pairs of its rows.
    contrast, rivals
        As in `Independent`; the term reads the points' own posteriors.
    non_edges : {"information", "competing"} or None
        What speaks against pairs without a link: the paper's mutual information alone; or, with graph inputs, a softmax
        too in which every hidden link competes with candidates that are not linked. ``None``: "competing" with graph
        inputs. With features, `contrast` is such a softmax.
    inputs : {"features", "graph"}
        What the correlation of a pair is read from. "features": the two rows, as in the paper. "graph": what short
        paths, degrees and the likeness of rows tell of the pair (`corrvae.graphs.PairFeatures`), rho = tanh(b + c s).
        The log-odds s of a link are fitted first, by competition, on links that are hidden from the features, so that
        ``metric="log_odds"`` finds links of vertices whose other links are known; b and c are trained with the encoder.
        With ``non_edges="information"``, s is trained with the encoder too, by the objective alone.
        `network`, `hidden`, `dropout`, `normalize` and `pair_batch` are then not used.

    Examples
    --------
    >>> Pairwise(network="metric", gamma_kl=0.0, gamma_mi=10.0).get_params()["network"]
    'metric'
    """

    needs_graph: ClassVar[bool] = True

    def __init__(
        self,
        network: str | Callable[[int, int], PairNetwork] = "perceptron",
        *,
        gamma_kl: float = 1.0,
        gamma_mi: float = 1.0,
        hidden: Sequence[int] | None = None,
        dropout: float | None = None,
        normalize: str | None = None,
        pair_batch: int | None = None,
        contrast: float = 0.0,
        rivals: str = "all",
        non_edges: str | None = None,
        inputs: str = "features",
    ) -> None:
        super().__init__()
        self.network = network
        self.gamma_kl = gamma_kl
        self.gamma_mi = gamma_mi
        self.hidden = hidden
        self.dropout = dropout
        self.normalize = normalize
        self.pair_batch = pair_batch
        self.contrast = contrast
        self.rivals = rivals
        self.non_edges = non_edges
        self.inputs = inputs

    def build(self, n_features: int, n_components: int, *, normalize: str, dropout: float) -> None:
        """Make the pair network and, if it reads other inputs than the encoder, their transform."""
        super().build(n_features, n_components, normalize=normalize, dropout=dropout)
        for name in ("gamma_kl", "gamma_mi"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be finite and not negative, got {getattr(self, name)}")
        if self.pair_batch is not None and self.pair_batch < 1:
            raise ValueError(f"pair_batch must be positive, got {self.pair_batch}")
        if self.inputs not in ("features", "graph"):
            raise ValueError(f'inputs must be "features" or "graph", got {self.inputs!r}')
        known = (None, "information", "competing") if self.inputs == "graph" else (None, "information")
        if self.non_edges not in known:
            raise ValueError(f"non_edges must be one of {known} with {self.inputs} inputs, got {self.non_edges!r}")
        if self.inputs == "graph":
            self.evidence = PairEvidence(n_components)
            return
        self.pair_network = self._make_network(n_features, n_components)
        if self.pair_network.reads_means and self.normalize not in (None, normalize):
            raise ValueError(
                "this pair network reads the encoder's means, so both must read features in one form; "
                f"got normalize={normalize!r} and Pairwise(normalize={self.normalize!r})"
            )
        self.pair_inputs = None
        if self.dropout is not None or self.normalize is not None:
            own_dropout = dropout if self.dropout is None else self.dropout
            self.pair_inputs = InputTransform(self.normalize or normalize, dropout=own_dropout)

    def _make_network(self, n_features: int, n_components: int) -> PairNetwork:
        if isinstance(self.network, str):
            if self.network not in PAIR_NETWORKS:
                raise ValueError(f"network must be one of {sorted(PAIR_NETWORKS)} or callable, got {self.network!r}")
            options = {} if self.hidden is None else {"hidden": tuple(self.hidden)}
            return PAIR_NETWORKS[self.network](n_features, n_components, **options)
        made = self.network(n_features, n_components)
        if not isinstance(made, PairNetwork):
            raise TypeError(f"network made a {type(made).__name__}, which is not a corrvae.nn.PairNetwork")
        return made

    def observe(self, data: TrainingData) -> None:
        """With graph inputs, standardise features, and fit the log-odds on links that are hidden from them."""
        if self.inputs == "graph" and data.n_edges:
            pool = pool_of(data)
            rows = np.flatnonzero(pool.competes)
            if len(rows):
                phi, is_open = pool.phi[rows], pool.is_open[rows]
                self.evidence.standardise(phi, is_open)
                if self.non_edges != "information":
                    self.evidence.compete(phi, is_open, np.random.default_rng((data.seed, 6)))

    def draw(self, data: TrainingData, step: int) -> Batch:
        """Draw vertices, edges, and pairs of the drawn vertices; or hidden edges with their candidates."""
        if self.inputs == "graph":
            return draw_with_candidates(data, step)
        batch = super().draw(data, step)
        if batch.edges is None:
            return batch
        if batch.n_drawn < 2 <= data.n_vertices:
            raise ValueError("a pairwise family needs batch_size of at least 2: its non-edge term needs a pair")
        pairs = data.draw_pairs(step, batch.n_drawn, self.pair_batch)
        weight = (data.n_vertices - 1) / (data.n_vertices * max(1, len(pairs)))
        return replace(batch, pairs=torch.from_numpy(pairs), pair_weight=weight)

    def terms(self, model: CorrelatedModel, batch: Batch, generator: torch.Generator | None = None) -> Terms:
        """Return reconstruction, singleton, edge and non-edge terms; without a graph those of a VAE."""
        rows, marginals, terms, kl = model.autoencode(batch, generator)
        if batch.phi is not None:
            terms.add("singleton", -1.0 - self.gamma_kl, kl, batch.vertex_weights)
            return self._graph_terms(model, batch, marginals, terms)
        if batch.edges is None or batch.edge_weights is None or batch.pairs is None:
            return terms.add("singleton", -1.0, kl, batch.vertex_weights)
        terms.add("singleton", -1.0 - self.gamma_kl, kl, batch.vertex_weights)
        if self.pair_inputs is None:
            prepared = self._prepare(model, rows, marginals)
        else:
            prepared = self._prepare(model, self.pair_inputs(batch.rows, generator), None)
        # One call for edges and pairs: a pair network works on larger blocks faster.
        first, second = torch.cat([batch.edges, batch.pairs]).T.contiguous()
        a = self.pair_network.pre_activation(prepared, first, second)
        n_edges = len(batch.edges)
        edge = edge_term(marginals, batch.edges, model.prior(marginals.mean), a[:n_edges])
        information = mutual_information(a[n_edges:])
        terms.add("edge", -1.0, edge, batch.edge_weights)
        weights = torch.full_like(information, batch.pair_weight, requires_grad=False)
        terms.add("non_edge", -self.gamma_mi, information, weights)
        return self.add_contrast(terms, model, marginals, batch)

    def _graph_terms(self, model: CorrelatedModel, batch: Batch, marginals: Marginals, terms: Terms) -> Terms:
        """Add the terms of edges that are hidden from their features, and of candidates without a link."""
        edges, phi, is_open = batch.edges, batch.phi, batch.is_open
        assert edges is not None
        assert phi is not None
        assert is_open is not None
        assert batch.edge_weights is not None
        a = self.evidence.pre_activation(self.evidence(phi))
        terms.add("edge", -1.0, edge_term(marginals, edges, model.prior(marginals.mean), a[:, 0]), batch.edge_weights)
        others = is_open[:, 1:]
        information = mutual_information(a[:, 1:].flatten(0, 1)).view_as(others)
        mean = (information * others).sum(1) / others.sum(1).clamp(min=1)
        return terms.add("non_edge", -self.gamma_mi, mean, torch.full_like(mean, batch.pair_weight))

    def _prepare(self, model: CorrelatedModel, rows: Rows, marginals: Marginals | None) -> Tensor:
        """Return what the pair network needs of each row: of its features, or of the encoder's mean."""
        if self.pair_network.reads_means:
            rows = DenseRows((model.encoder(rows) if marginals is None else marginals).mean)
        return self.pair_network.prepare(rows)

    def prepare(self, model: CorrelatedModel, rows: Rows) -> Float[Tensor, "vertices width"]:
        """Return what the pair network needs of each vertex, from features as they are."""
        return self._prepare(model, (self.pair_inputs or model.inputs)(rows), None)

    def posterior(
        self,
        model: CorrelatedModel,
        mean: Float[np.ndarray, "rows dim"],
        stddev: Float[np.ndarray, "rows dim"],
        table: FeatureTable | None,
        ids: Shaped[np.ndarray, " rows"] | None = None,
        graph: CorrelationGraph | None = None,
    ) -> Posterior:
        """Return the posterior of rows whose marginals are known."""
        if self.inputs == "graph":
            features = self._pair_features(table, len(mean), graph)
            return EvidencePosterior(
                self.evidence, features, mean, stddev, ids=ids, tau=model.tau_values(mean.shape[1])
            )
        return PairwisePosterior(model, self, table, mean, stddev, ids=ids, tau=model.tau_values(mean.shape[1]))

    def _pair_features(self, table: FeatureTable | None, n_rows: int, graph: CorrelationGraph | None) -> PairFeatures:
        """Return the features of pairs of rows; they are kept for the next call with the same table and graph."""
        matrix = np.zeros((n_rows, 1)) if table is None else table.matrix
        kept = getattr(self, "_kept", None)
        if kept is None or kept[0] is not graph or kept[1] is not matrix:
            edges = np.empty((0, 2), np.int64) if graph is None else graph.edges
            features = PairFeatures(CorrelationGraph(edges, n_rows), RowDirections(matrix)(matrix), row_sizes(matrix))
            self._kept = kept = (graph, matrix, features)
        return kept[2]


@final
class PairwisePosterior(Posterior):
    """Marginals, with correlations that the pair network computes when they are asked for.

    The table is ``None`` if features were not kept; `rows` are those of the vertices, ``None`` for all, in order.
    """

    is_correlated = True

    def __init__(
        self,
        model: CorrelatedModel,
        family: Pairwise,
        table: FeatureTable | None,
        mean: Float[np.ndarray, "rows dim"],
        stddev: Float[np.ndarray, "rows dim"],
        *,
        ids: Sequence[Any] | Shaped[np.ndarray, " rows"] | None = None,
        tau: Float[np.ndarray, " dim"] | None = None,
        rows: Int[np.ndarray, " rows"] | None = None,
    ) -> None:
        super().__init__(mean, stddev, ids=ids, tau=tau)
        self._model, self._family, self._table, self._rows = model, family, table, rows

    def take(self, positions: Int[np.ndarray, " taken"]) -> "PairwisePosterior":
        """Return the posterior of some vertices, in this order."""
        return PairwisePosterior(
            self._model,
            self._family,
            self._table,
            self.mean[positions],
            self.stddev[positions],
            ids=self.ids[positions],
            tau=self.tau,
            rows=positions if self._rows is None else self._rows[positions],
        )

    def vectors(self, positions: Int[np.ndarray, " points"]) -> Float[Tensor, "points width"]:
        """Return what the pair network needs of each point."""
        if self._table is None:
            raise ValueError(
                "correlations between training rows need their features, which were not saved with the model "
                "(store_features=False); pass the features: posterior(X)"
            )
        rows = positions if self._rows is None else self._rows[positions]
        with evaluation_mode(self._model):
            return self._family.prepare(self._model, self._table.rows(rows).to(self._model.device))

    def block(
        self, vectors_i: Float[Tensor, "rows width"], vectors_j: Float[Tensor, "columns width"]
    ) -> Float[Tensor, "rows columns dim"]:
        """Return a for every point of one set against every point of another."""
        with torch.inference_mode():  # pair networks have no mode; walking all modules would take longer than a block
            return self._family.pair_network.block(vectors_i, vectors_j)

    def pre_activation(self, positions: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, "pairs dim"]:
        """Return a with correlation tanh(a) for pairs of positions."""
        values = np.empty((len(positions), self.n_components))
        for begin in range(0, len(positions), _PAIRS):
            found, places = np.unique(positions[begin : begin + _PAIRS], return_inverse=True)
            first, second = torch.from_numpy(places.reshape(-1, 2)).to(self._model.device).T.contiguous()
            prepared = self.vectors(found)
            with evaluation_mode(self._model):
                a = self._family.pair_network.pre_activation(prepared, first, second)
            values[begin : begin + _PAIRS] = a.cpu().numpy()
        return values
