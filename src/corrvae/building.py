"""A model's networks from an estimator's parameters, leaving torch's global state as it was."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import torch

from corrvae.model import CorrelatedModel
from corrvae.nn import (
    Decoder,
    Encoder,
    InputTransform,
    LearnedTau,
    Likelihood,
    PairBilinear,
    PairMetric,
    PairNetwork,
    PairPerceptron,
    make_likelihood,
)
from corrvae.nn.inputs import Normalization

LEARNED = ("learned", "learned_per_dimension")
# Where a learned tau begins: the paper's value.
_START = 0.99


@final
@dataclass(frozen=True)
class Architecture:
    """What decides the shape of a model's networks.

    Attributes
    ----------
    n_features, n_components
        Columns of the table; latent dimension.
    likelihood
        Name, or class.
    pair_network
        Name, or function of the numbers of features and of components; ``None`` for independent posteriors.
    hidden, pair_hidden
        Widths of the encoder's hidden layers (the decoder's are the same in reverse), and of the pair network's.
    tau
        A number, ``"learned"`` or ``"learned_per_dimension"``.
    normalize, dropout
        What is done to features before a network reads them; a pair is of the encoder and the pair network.
    min_stddev
        No posterior has a smaller standard deviation.
    """

    n_features: int
    n_components: int
    likelihood: str | Callable[[int], Likelihood] = "gaussian"
    pair_network: str | Callable[[int, int], PairNetwork] | None = None
    hidden: tuple[int, ...] = (300,)
    pair_hidden: tuple[int, ...] | None = None
    tau: float | str = _START
    normalize: Normalization | tuple[Normalization, Normalization] = "raw"
    dropout: float | tuple[float, float] = 0.0
    min_stddev: float = 1e-4

    @classmethod
    def of(cls, estimator: Any, n_features: int) -> "Architecture":
        """Read an estimator's parameters."""
        pair_hidden, normalize, dropout = estimator.pair_hidden, estimator.normalize, estimator.dropout
        return cls(
            n_features=n_features,
            n_components=int(estimator.n_components),
            likelihood=estimator.likelihood,
            pair_network=estimator.pair_network if estimator.posterior == "pairwise" else None,
            hidden=tuple(int(width) for width in estimator.hidden),
            pair_hidden=None if pair_hidden is None else tuple(int(width) for width in pair_hidden),
            tau=estimator.tau if isinstance(estimator.tau, str) else float(estimator.tau),
            normalize=tuple(normalize) if isinstance(normalize, list) else normalize,
            dropout=(float(dropout[0]), float(dropout[1])) if isinstance(dropout, tuple | list) else float(dropout),
            min_stddev=float(estimator.min_stddev),
        )


def build_model(architecture: Architecture, seed: int, *, device: str = "cpu") -> CorrelatedModel:
    """Build the networks with parameters drawn from a seed; on the device "meta" they have shapes only.

    Examples
    --------
    >>> model = build_model(Architecture(n_features=6, n_components=2), seed=0)
    >>> sum(parameter.numel() for parameter in model.parameters())
    6016
    """
    n_features, n_components = architecture.n_features, architecture.n_components
    # Modules draw from torch's own generator, on the default device, in the default type: all are the caller's, and in
    # another type a seed gives other numbers. So is the mode, and what is made in inference mode could not be trained.
    with torch.random.fork_rng(devices=[]), torch.device(device), _single_precision(), torch.inference_mode(False):
        torch.default_generator.manual_seed(seed)
        model = CorrelatedModel(
            Encoder(n_features, n_components, hidden=architecture.hidden, floor=architecture.min_stddev),
            Decoder(n_components, n_features, hidden=architecture.hidden[::-1]),
            make_likelihood(architecture.likelihood, n_features),
            pair_network=_pair_network(architecture),
            tau=_tau(architecture),
            **_inputs(architecture),
        )
    return model.float()


@contextmanager
def _single_precision() -> Iterator[None]:
    """Make float32 torch's default type for a while."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


def _inputs(architecture: Architecture) -> dict[str, InputTransform]:
    """What the networks read; an own transform for the pair network if anything is said of it alone."""
    normalize, dropout = architecture.normalize, architecture.dropout
    of_encoder, of_pairs = (normalize, normalize) if isinstance(normalize, str) else normalize
    encoder_dropout, pair_dropout = dropout if isinstance(dropout, tuple) else (dropout, dropout)
    inputs = {"inputs": InputTransform(of_encoder, dropout=encoder_dropout)}
    if not isinstance(normalize, str) or isinstance(dropout, tuple):
        inputs["pair_inputs"] = InputTransform(of_pairs, dropout=pair_dropout)
    return inputs


def _tau(architecture: Architecture) -> float | LearnedTau:
    if isinstance(architecture.tau, str):
        each = architecture.tau == "learned_per_dimension"
        return LearnedTau(_START, n_components=architecture.n_components if each else None)
    return architecture.tau


def _pair_network(architecture: Architecture) -> PairNetwork | None:
    choice = architecture.pair_network
    if choice is None:
        return None
    if isinstance(choice, str):
        network = _PAIR_NETWORKS[choice]
        choice = network if architecture.pair_hidden is None else partial(network, hidden=architecture.pair_hidden)
    made = choice(architecture.n_features, architecture.n_components)
    if not isinstance(made, PairNetwork):
        raise TypeError(f"pair_network made a {type(made).__name__}, which is not a corrvae.nn.PairNetwork")
    normalize = architecture.normalize
    if made.reads_means and not isinstance(normalize, str) and normalize[0] != normalize[1]:
        raise ValueError(
            f"this pair network reads the encoder's means, so both read features in one form; got normalize={normalize}"
        )
    return made


_PAIR_NETWORKS: dict[str, Callable[..., PairNetwork]] = {
    "perceptron": PairPerceptron,
    "bilinear": PairBilinear,
    "metric": PairMetric,
}
