"""Features to log-probabilities in one differentiable function: encode, draw, compare, decode, and count.

It is the composition of an `Encoder`, `draw_and_compare`, a `Decoder` and, for sparse counts, the multinomial
likelihood, from the same pieces. A training step without a pair network does nothing else; what it spends between
functions, and not in them, it then spends once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

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
    """

    log_prob: Float[Tensor, " drawn"]
    kl: Float[Tensor, " drawn"]
    quadratic: Float[Tensor, " edges"]


def autoencode(
    encoder: Encoder,
    decoder: Decoder,
    likelihood: Likelihood,
    rows: Rows,
    noise: Float[Tensor, "drawn dim"],
    targets: Rows,
    edges: Int[Tensor, "edges 2"],
    form: QuadraticForm,
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
    if form.learned or encoding[0].device.type != "cpu":
        z, kl, quadratic = draw_and_compare(encoder(rows).joint, noise, edges, form)
        return Autoencoded(likelihood.log_prob(decoder(z), targets.head(len(noise))), kl, quadratic)
    counts = None
    if isinstance(likelihood, Multinomial) and isinstance(targets, SparseRows) and targets.observed is None:
        counts = targets
    given = _Given(rows, encoder.floor, noise, edges, form, counts, len(encoding))
    scored, kl, quadratic = _Autoencode.apply(given, *encoding, *decoding)  # pyright: ignore[reportGeneralTypeIssues]
    if counts is None:
        scored = likelihood.log_prob(scored, targets.head(len(noise)))
    return Autoencoded(scored, kl, quadratic)


def differentiate(values: Sequence[Tensor], slopes: Sequence[Tensor]) -> bool:
    """Add the gradients of the parameters behind what one call of `autoencode` gave, without torch's engine.

    For one function whose inputs are parameters there is nothing to plan, and to do without saves a twentieth of a
    small step. Hooks on gradients are not called.

    Parameters
    ----------
    values
        Some of the results.
    slopes
        The derivative with respect to each of them.

    Returns
    -------
    Whether it was done; not so for values that are anything else than such results.

    Examples
    --------
    >>> differentiate([torch.ones(2, requires_grad=True).exp()], [torch.ones(2)])
    False
    """
    function: Any = values[0].grad_fn
    if not isinstance(function, _Backward) or any(value.grad_fn is not function for value in values):
        return False
    leaves = [leaf for leaf, _ in function.next_functions]  # none for a parameter that is not to be learned
    if not all(leaf is None or hasattr(leaf, "variable") for leaf in leaves):
        return False  # what it reads was computed
    given: _Given = function.given
    with torch.no_grad():
        begun = [given.noise.new_zeros(length) for length in (len(given.noise), len(given.noise), len(given.edges))]
        for value, slope in zip(values, slopes, strict=True):
            begun[value.output_nr] = slope
        _, *gradients = _Autoencode.backward(function, *begun)
        for leaf, gradient in zip(leaves, gradients, strict=True):
            if leaf is not None:
                learned = leaf.variable
                learned.grad = gradient if learned.grad is None else learned.grad + gradient
    return True


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


class _Autoencode(torch.autograd.Function):
    @staticmethod
    def forward(ctx, given: _Given, *parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        joint, *encoded = encode_forward(given.rows, given.floor, parameters[: given.n_encoding])
        z, kl, quadratic = compare_forward(joint, given.noise, given.edges, given.form)
        scored, decoded = chain_forward(z, parameters[given.n_encoding :])
        ctx.given, ctx.joint, ctx.encoded, ctx.decoded = given, joint, encoded, decoded
        if given.counts is not None:
            scored, ctx.probabilities = counts_forward(scored, given.counts)
        ctx.save_for_backward(*parameters)
        return scored, kl, quadratic

    @staticmethod
    def backward(ctx, *gradients: Tensor):
        of_scored, of_kl, of_quadratic = gradients
        given, parameters = ctx.given, ctx.saved_tensors
        encoding, decoding = parameters[2 : given.n_encoding], parameters[given.n_encoding :]
        if given.counts is not None:
            of_scored = counts_backward(of_scored, ctx.probabilities, given.counts)
        gradient, of_decoding = chain_backward(of_scored, of_scored.sum(0), ctx.decoded, decoding)
        of_drawn = gradient.mm(decoding[0]), of_kl, of_quadratic
        of_joint = compare_backward(of_drawn, ctx.joint, given.noise, given.edges, given.form)
        of_encoding = encode_backward(of_joint, given.rows, ctx.encoded, encoding, spare=True)
        return None, *of_encoding, *of_decoding


# what torch makes of it in the graph of derivatives
_Backward: Any = _Autoencode._backward_cls  # pyright: ignore[reportAttributeAccessIssue]
