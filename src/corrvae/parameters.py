"""What each parameter of the estimator may be, as data that scikit-learn checks when `fit` begins."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from corrvae.building import LEARNED
from corrvae.nn.likelihoods import LIKELIHOODS
from corrvae.objectives import gamma_pair

_COUNT = Interval(Integral, 1, None, closed="left")

CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [_COUNT],
    "posterior": [StrOptions({"independent", "pairwise"})],
    "likelihood": [StrOptions(set(LIKELIHOODS)), callable],
    "tau": [Interval(Real, -1, 1, closed="neither"), StrOptions(set(LEARNED))],
    "gamma": [Interval(Real, 0, None, closed="left"), tuple],
    "hidden": [tuple, list],
    "pair_network": [StrOptions({"perceptron", "bilinear"}), callable],
    "pair_hidden": [tuple, list, None],
    "normalize": [StrOptions({"raw", "binary", "l2", "log1p"})],
    "dropout": [Interval(Real, 0, 1, closed="left")],
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
        if widths is not None and not all(isinstance(width, int | np.integer) and width > 0 for width in widths):
            raise ValueError(f"{name} must be positive whole numbers, the widths of hidden layers; got {widths}")
    if isinstance(estimator.gamma, tuple):
        if len(estimator.gamma) != 2:
            raise ValueError(f"gamma must be a number or a pair (singletons, pairs), got {estimator.gamma}")
        gamma_pair(estimator.gamma)
    if estimator.patience is not None and estimator.validation_fraction == 0:
        raise ValueError(
            f"patience={estimator.patience} needs rows to validate with; set validation_fraction, to 0.1 for example"
        )
