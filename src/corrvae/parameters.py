"""What each parameter of the estimator may be, as data that scikit-learn checks when `fit` begins."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from corrvae.building import LEARNED
from corrvae.nn import PairNetwork
from corrvae.nn.inputs import NORMALIZATIONS
from corrvae.nn.likelihoods import LIKELIHOODS, Likelihood
from corrvae.objectives import gamma_pair

_COUNT = Interval(Integral, 1, None, closed="left")

CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [_COUNT],
    "posterior": [StrOptions({"independent", "pairwise"})],
    "likelihood": [StrOptions(set(LIKELIHOODS)), callable],
    "tau": [Interval(Real, -1, 1, closed="neither"), StrOptions(set(LEARNED))],
    "gamma": [Interval(Real, 0, None, closed="left"), tuple, list],
    "hidden": [tuple, list],
    "pair_network": [StrOptions({"perceptron", "bilinear", "metric"}), callable],
    "pair_hidden": [tuple, list, None],
    "normalize": [StrOptions(set(NORMALIZATIONS)), tuple, list],
    "dropout": [Interval(Real, 0, 1, closed="left"), tuple, list],
    # below, it would be 0 in single precision
    "min_stddev": [Interval(Real, float(np.finfo(np.float32).tiny), None, closed="left")],
    "missing": [StrOptions({"error", "mask"})],
    "max_epochs": [_COUNT],
    "max_steps": [_COUNT, None],
    "vertex_batch": [_COUNT],
    "edge_batch": [_COUNT],
    "pair_batch": [_COUNT, None],
    "edge_sampling": [StrOptions({"uniform", "weighted"})],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "warmup_steps": [Interval(Integral, 0, None, closed="left")],
    "validation_fraction": [Interval(Real, 0, 1, closed="left")],
    "patience": [_COUNT, None],
    "evaluate_every": [_COUNT, None],
    "warm_start": ["boolean"],
    "device": [str],
    "random_state": ["random_state", np.random.Generator],
}


def check_parameters(estimator: Any) -> None:
    """Refuse parameters that are not what they may be, one by one or together.

    Parameters
    ----------
    estimator
        A `CorrelatedVAE`.
    """
    estimator._validate_params()
    for name in ("hidden", "pair_hidden"):
        widths = getattr(estimator, name)
        if widths is not None and not all(map(_is_width, widths)):
            raise ValueError(f"{name} must be positive whole numbers, the widths of hidden layers; got {widths}")
    widths, network = estimator.pair_hidden, estimator.pair_network
    if network == "perceptron" and widths is not None and not len(widths):
        raise ValueError('pair_hidden is empty, but pair_network="perceptron" needs at least one hidden layer')
    gamma = estimator.gamma
    if isinstance(gamma, tuple | list):
        if len(gamma) != 2 or not all(isinstance(part, Real) for part in gamma):
            raise ValueError(f"gamma must be a number or a pair of numbers (singletons, pairs), got {gamma}")
        gamma_pair((gamma[0], gamma[1]))
    normalize = estimator.normalize
    if not isinstance(normalize, str) and (len(normalize) != 2 or not all(map(_is_form, normalize))):
        names = ", ".join(f'"{name}"' for name in NORMALIZATIONS)
        raise ValueError(
            f"normalize must be one of {names}, or a pair of them (encoder, pair network); got {normalize}"
        )
    dropout = estimator.dropout
    if isinstance(dropout, tuple | list) and (len(dropout) != 2 or not all(map(_is_share, dropout))):
        raise ValueError(f"dropout must be a share in [0, 1), or a pair of them (encoder, pair network); got {dropout}")
    for name, kind in (("likelihood", Likelihood), ("pair_network", PairNetwork)):
        made_by = getattr(estimator, name)
        if isinstance(made_by, type) and not issubclass(made_by, kind):
            raise TypeError(f"{name} is the class {made_by.__name__}, which is not a corrvae.nn.{kind.__name__}")
    if estimator.patience is not None and estimator.validation_fraction == 0:
        raise ValueError(
            f"patience={estimator.patience} needs rows to validate with; set validation_fraction, to 0.1 for example"
        )


def _is_form(form: Any) -> bool:
    return isinstance(form, str) and form in NORMALIZATIONS


def _is_share(share: Any) -> bool:
    return isinstance(share, Real) and not isinstance(share, bool) and 0 <= float(share) < 1


def _is_width(width: Any) -> bool:
    return isinstance(width, int | np.integer) and not isinstance(width, bool) and int(width) > 0
