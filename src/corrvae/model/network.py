"""All networks of a model as one torch module."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import log
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from corrvae.graphs import CorrelationGraph
from corrvae.model.batch import Batch, TrainingData
from corrvae.model.linear import solve_edges
from corrvae.model.objectives import Terms, edge_term, singleton_kl
from corrvae.model.prior import LearnedTau, PairPrior, check_tau
from corrvae.nn import Decoder, Encoder, FeatureTable, InputTransform, Likelihood, Marginals, Rows, make_likelihood

# Rows encoded or decoded at a time, and edges.
_ROWS, _EDGES = 4096, 2**16
# A learned tau begins at the paper's value. The temperature of competing candidates begins at 2 where the linear model
# does: its log-odds are too large, because features are no normal variables (2 was best on ratings held out).
_START, _WARM = 0.99, log(2.0)


class Autoencoded(NamedTuple):
    """A batch after the encoder, which read `rows`, and the decoder: posteriors, reconstruction term, and KL."""

    rows: Rows
    marginals: Marginals
    terms: Terms
    kl: Float[Tensor, " drawn"]


@final
class CorrelatedModel(nn.Module):
    """Encoder, decoder, likelihood, the correlation of the pair prior, and a posterior family."""

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        likelihood: Likelihood,
        *,
        family: Any,
        tau: float | LearnedTau = _START,
        inputs: InputTransform | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(tau, LearnedTau):
            check_tau(tau)
        self.inputs = InputTransform("none") if inputs is None else inputs
        self.encoder = encoder
        self.decoder = decoder
        self.likelihood = likelihood
        self.family = family
        self.tau = tau

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Terms:
        """Return the objective's terms at a batch; `generator` draws latent noise and dropout."""
        terms = self.family.terms(self, batch, generator)
        if batch.forest_cost is not None:
            like, (divergence, factor) = batch.vertex_weights, batch.forest_cost
            terms.add("forests", -factor, like.new_tensor([divergence]), like.new_ones(1))
        return terms

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    def prior(self, like: Tensor) -> PairPrior:
        """Return the pair prior at the current tau, in the dimension, type and device of latent points."""
        tau = self.tau() if isinstance(self.tau, LearnedTau) else self.tau
        return PairPrior.of(tau, like.shape[1], like.dtype, like.device)

    def tau_tensor(self, n_components: int) -> Float[Tensor, " dim"]:
        """Return tau in each latent dimension, in float64 on the CPU, with its gradient if it is learned."""
        tau = self.tau() if isinstance(self.tau, LearnedTau) else torch.tensor(self.tau, dtype=torch.float64)
        return tau.expand(n_components)

    def tau_values(self, n_components: int) -> Float[np.ndarray, " dim"]:
        """Return tau in each latent dimension."""
        return self.tau_tensor(n_components).detach().numpy().copy()

    def start_at(self, means: Float[np.ndarray, " features"]) -> None:
        """Set the decoder's last bias so that at first it explains the average row."""
        outputs, layers = self.likelihood.average_outputs(means), getattr(self.decoder, "layers", None)
        if outputs is not None and layers is not None:
            with torch.no_grad():
                layers[-1].bias.copy_(torch.from_numpy(outputs))

    def start_linear(self, data: TrainingData, *, seed: int = 0) -> None:
        """Set encoder, standard deviations and tau per dimension to the linear model in closed form."""
        encoder: Any = self.encoder
        solution = solve_edges(data, self.inputs, encoder.n_components, seed=seed)
        dim = len(solution.correlation)
        learned = self.tau if isinstance(self.tau, LearnedTau) and self.tau.raw.ndim == 1 else None
        scale, stddev, tau = solution.marginals(self.tau_values(dim) if learned is None else None)
        weight = solution.directions * scale
        parts = (weight, -solution.mean @ weight, stddev)
        encoder.start_linear(*(torch.from_numpy(part).float() for part in parts))
        if learned is not None:
            learned.start_at(torch.from_numpy(tau))
        if getattr(self.family, "log_temperature", None) is not None:
            self.family.log_temperature.data.fill_(_WARM)

    def autoencode(self, batch: Batch, generator: torch.Generator | None) -> Autoencoded:
        """Encode all vertices of a batch, and decode a sample z = mu + s noise of the drawn ones."""
        rows, target = self.inputs.split(batch.rows, generator)
        marginals = self.encoder(rows)
        joint = marginals.joint
        shape = (batch.n_drawn, joint.shape[1] // 2)
        noise = torch.randn(shape, generator=generator, dtype=joint.dtype, device=joint.device)
        mine = Marginals(joint[batch.drawn])
        z = torch.addcmul(mine.mean, mine.stddev, noise[batch.drawn])
        log_prob = self.likelihood.log_prob(self.decoder(z), target[batch.drawn])
        terms = Terms().add("reconstruction", 1.0, log_prob, batch.vertex_weights)
        return Autoencoded(rows, marginals, terms, singleton_kl(mine))

    def encode(self, table: FeatureTable) -> tuple[Float[np.ndarray, "rows dim"], Float[np.ndarray, "rows dim"]]:
        """Return means and standard deviations of every row of a table, encoded in pieces."""
        pieces = []
        with evaluation_mode(self):
            for begin in range(0, max(1, table.shape[0]), _ROWS):
                chosen = np.arange(begin, min(begin + _ROWS, table.shape[0]))
                rows = table.rows(chosen).to(self.device)
                pieces.append(self.encoder(self.inputs(rows)).joint.cpu().numpy())
        mean, stddev = np.split(np.concatenate(pieces), 2, axis=1)
        return np.ascontiguousarray(mean), np.ascontiguousarray(stddev)

    def edge_terms(
        self,
        encoded: tuple[Float[np.ndarray, "rows dim"], Float[np.ndarray, "rows dim"]],
        table: FeatureTable | None,
        graph: CorrelationGraph,
    ) -> Float[np.ndarray, " edges"]:
        """Return T of every edge for posteriors that do not know the graph; 0 where an end has no features."""
        n_rows = len(encoded[0])
        marginals = Marginals.of(*(torch.from_numpy(part) for part in encoded))
        posterior = None if self.family.conditions_on_graph else self.family.posterior(self, *encoded, table)
        found, known = np.zeros(graph.n_edges), np.flatnonzero((graph.edges < n_rows).all(axis=1))
        with torch.no_grad():
            prior = self.prior(marginals.mean)
            for begin in range(0, len(known), _EDGES):
                chosen = known[begin : begin + _EDGES]
                edges, a = graph.edges[chosen], None
                if posterior is not None and posterior.is_correlated:
                    a = torch.from_numpy(posterior.pre_activation(edges).astype(np.float32))
                found[chosen] = edge_term(marginals, torch.from_numpy(edges), prior, a).numpy()
        return found

    def decode(
        self,
        latent: Float[np.ndarray, "rows dim"],
        totals: Float[np.ndarray, " rows"] | None,
        read: Callable[[Tensor, Tensor | None], Tensor],
    ) -> Float[np.ndarray, "rows features"]:
        """Decode latent points in pieces; `read` turns outputs and row sums into features."""
        pieces = []
        with evaluation_mode(self):
            for begin in range(0, max(1, len(latent)), _ROWS):
                piece = latent[begin : begin + _ROWS].astype(np.float32)
                sums = None if totals is None else torch.from_numpy(totals[begin : begin + _ROWS].astype(np.float32))
                outputs = self.decoder(torch.from_numpy(piece).to(self.device))
                pieces.append(read(outputs, None if sums is None else sums.to(self.device)).cpu().numpy())
        return np.concatenate(pieces)


def build_model(
    n_features: int,
    n_components: int,
    *,
    family: Any,
    likelihood: str | Callable[[int], Likelihood] = "gaussian",
    tau: float | str = _START,
    hidden: Sequence[int] = (300,),
    normalize: str = "none",
    dropout: float = 0.0,
    masking: float = 0.0,
    min_stddev: float = 1e-4,
    init: str = "random",
    seed: int = 0,
) -> CorrelatedModel:
    """Build the networks with parameters drawn from a seed, in evaluation mode; the family becomes part of the model.

    The decoder has the `hidden` widths in reverse. With ``init="linear"`` the encoder has an affine path beside its
    hidden layers, for `CorrelatedModel.start_linear`.
    """
    # Modules draw from torch's global generator in its default type; both belong to the caller and stay as they are.
    with torch.random.fork_rng(devices=[]), _single_precision(), torch.inference_mode(False):
        torch.default_generator.manual_seed(seed)
        encoder = Encoder(n_features, n_components, hidden=hidden, floor=min_stddev, skip=init == "linear")
        decoder = Decoder(n_components, n_features, hidden=tuple(hidden)[::-1])
        family.build(n_features, n_components, normalize=normalize, dropout=dropout)
        if isinstance(tau, str):
            tau_module = LearnedTau(n_components=n_components if tau == "learned_per_dimension" else None)
        else:
            tau_module = float(tau)
        return CorrelatedModel(
            encoder,
            decoder,
            make_likelihood(likelihood, n_features),
            family=family,
            tau=tau_module,
            inputs=InputTransform(normalize, dropout=dropout, masking=masking),
        ).eval()


@contextmanager
def _single_precision() -> Iterator[None]:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Put a model in evaluation mode, without gradients, and afterwards back in the mode it was in."""
    training = model.training
    if training:  # walking through all modules takes longer than a small block of pairs
        model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if training:
            model.train()
