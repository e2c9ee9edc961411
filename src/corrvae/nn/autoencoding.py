"""Features to log-probabilities in one differentiable function: encode, draw, compare, decode, and count.

It is the composition of an `Encoder`, `draw_and_compare`, a `Decoder` and, for sparse counts, the multinomial
likelihood, from the same pieces. A training step without a pair network does nothing else; what it spends between
functions, and not in them, it then spends once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from corrvae.nn.chains import chain_backward, chain_forward, encode_backward, encode_forward
from corrvae.nn.closed_forms import QuadraticForm, compare_backward, compare_forward, draw_and_compare
from corrvae.nn.decoder import Decoder
from corrvae.nn.encoder import Encoder
from corrvae.nn.likelihoods.base import Likelihood
from corrvae.nn.likelihoods.multinomial import Multinomial, counts_backward, counts_forward
from corrvae.nn.rows import Rows, SparseRows


@final
@dataclass(frozen=True, eq=False)
class Autoencoded:
    """How well drawn points explain their features, and what the closed forms say of the posteriors.

    Attributes
    ----------
    log_prob
        log p(x_i given z_i) for each vertex drawn.
    kl
        KL_i for each vertex drawn.
    quadratic
        The quadratic form for each edge.
    tape
        The way back, if it was asked for; torch then knows of none.
    """

    log_prob: Float[Tensor, " drawn"]
    kl: Float[Tensor, " drawn"]
    quadratic: Float[Tensor, " edges"]
    tape: "Tape | None" = None


def autoencode(
    encoder: Encoder,
    decoder: Decoder,
    likelihood: Likelihood,
    rows: Rows,
    noise: Float[Tensor, "drawn dim"],
    targets: Rows,
    edges: Int[Tensor, "edges 2"],
    form: QuadraticForm,
    *,
    taped: bool = False,
) -> Autoencoded:
    """Decode mean + stddev noise for the first rows, as many as there is noise for, and compare the ends of edges.

    Parameters
    ----------
    encoder, decoder, likelihood
        The networks. On a device other than a CPU they are applied one after the other.
    rows
        Features of vertices.
    noise
        Standard normal.
    targets
        What the decoder should explain; the first rows, as many as there is noise for.
    edges
        Pairs of positions in `rows`.
    form
        The quadratic form of [mean, stddev]; one that is learned has them applied one after the other, too.
    taped
        Whether to record a tape, if there can be one, instead of a graph of derivatives: for sparse counts, whose
        likelihood is part of the function.

    Examples
    --------
    >>> from corrvae.nn import DenseRows
    >>> networks = Encoder(6, 2), Decoder(2, 6), Multinomial(6)
    >>> form = QuadraticForm(torch.ones(4), torch.zeros(4), torch.tensor(0.5))
    >>> rows, edges = DenseRows(torch.ones(5, 6)), torch.tensor([[0, 4]])
    >>> found = autoencode(*networks, rows, torch.zeros(3, 2), rows, edges, form)
    >>> found.log_prob.shape, found.kl.shape, found.quadratic.shape
    (torch.Size([3]), torch.Size([3]), torch.Size([1]))
    """
    encoding, decoding = encoder.parameters_for(rows), decoder.chain
    if form.learned or not encoding[0].is_cpu:
        z, kl, quadratic = draw_and_compare(encoder(rows).joint, noise, edges, form)
        return Autoencoded(likelihood.log_prob(decoder(z), targets.head(len(noise))), kl, quadratic)
    counts = None
    if isinstance(likelihood, Multinomial) and isinstance(targets, SparseRows) and targets.observed is None:
        counts = targets
    given = _Given(rows, encoder.floor, noise, edges, form, counts, len(encoding))
    parameters = (*encoding, *decoding)
    if taped and counts is not None and _can_be_led_back(parameters):
        with torch.no_grad():
            results, trace = _forward(given, parameters)
        return Autoencoded(*results, Tape(given, parameters, trace))
    scored, kl, quadratic = _Autoencode.apply(given, *parameters)  # pyright: ignore[reportGeneralTypeIssues]
    if counts is None:
        scored = likelihood.log_prob(scored, targets.head(len(noise)))
    return Autoencoded(scored, kl, quadratic)


@final
@dataclass(frozen=True, eq=False)
class Tape:
    """What one call of `autoencode` did, to be led back once without torch's engine.

    For one function whose inputs are parameters there is nothing to plan, and to do without saves a twentieth of a
    small step. Hooks on gradients are not called.
    """

    _given: "_Given"
    _parameters: Sequence[Tensor]
    _trace: "_Trace"

    def lead_back(self, of_log_prob: Tensor, of_kl: Tensor, of_quadratic: Tensor | None) -> None:
        """Add to the parameters' gradients, given the derivative with respect to each of the results."""
        with torch.no_grad():
            if of_quadratic is None:
                of_quadratic = of_kl.new_zeros(len(self._given.edges))
            gradients = _backward(self._given, self._parameters, self._trace, of_log_prob, of_kl, of_quadratic)
            for parameter, gradient in zip(self._parameters, gradients, strict=True):
                if parameter.requires_grad:
                    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


def _can_be_led_back(parameters: Sequence[Tensor]) -> bool:
    """Say whether there is something to learn, and nothing that was computed from what is to be learned.

    A parameter that lies in memory in another order than its gradient is left to the engine, which puts that in order.
    """
    simple = all(part.is_leaf and part.is_contiguous() for part in parameters)
    return simple and torch.is_grad_enabled() and any(part.requires_grad for part in parameters)


@final
@dataclass(eq=False, slots=True)
class _Given:
    """What is not differentiated: the data of a step; `n_encoding` of the parameters are the encoder's."""

    rows: Rows
    floor: float
    noise: Tensor
    edges: Tensor
    form: QuadraticForm
    counts: SparseRows | None
    n_encoding: int


@final
@dataclass(eq=False, slots=True)
class _Trace:
    """What the way there leaves for the way back."""

    joint: Tensor
    encoded: Sequence[Tensor]
    decoded: Sequence[Tensor]
    probabilities: Tensor | None


class _Autoencode(torch.autograd.Function):
    @staticmethod
    def forward(ctx, given: _Given, *parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        results, ctx.trace = _forward(given, parameters)
        ctx.given = given
        ctx.save_for_backward(*parameters)
        return results

    @staticmethod
    def backward(ctx, *gradients: Tensor):
        return None, *_backward(ctx.given, ctx.saved_tensors, ctx.trace, *gradients)


def _forward(given: _Given, parameters: Sequence[Tensor]) -> tuple[tuple[Tensor, Tensor, Tensor], _Trace]:
    joint, *encoded = encode_forward(given.rows, given.floor, parameters[: given.n_encoding])
    z, kl, quadratic = compare_forward(joint, given.noise, given.edges, given.form)
    scored, decoded = chain_forward(z, parameters[given.n_encoding :])
    probabilities = None
    if given.counts is not None:
        scored, probabilities = counts_forward(scored, given.counts)
    return (scored, kl, quadratic), _Trace(joint, encoded, decoded, probabilities)


def _backward(
    given: _Given, parameters: Sequence[Tensor], trace: _Trace, of_scored: Tensor, of_kl: Tensor, of_quadratic: Tensor
) -> tuple[Tensor, ...]:
    encoding, decoding = parameters[2 : given.n_encoding], parameters[given.n_encoding :]
    if given.counts is None or trace.probabilities is None:
        total = of_scored.sum(0)
    else:
        total = torch.empty_like(decoding[-1])
        of_scored = counts_backward(of_scored, trace.probabilities, given.counts, total)
    gradient, of_decoding = chain_backward(of_scored, total, trace.decoded, decoding)
    of_drawn = gradient.mm(decoding[0]), of_kl, of_quadratic
    of_joint = compare_backward(of_drawn, trace.joint, given.noise, given.edges, given.form)
    return *encode_backward(of_joint, given.rows, trace.encoded, encoding, spare=True), *of_decoding
