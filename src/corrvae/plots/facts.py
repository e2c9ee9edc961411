"""The facts of a fitted model, for its page and for `corrvae info`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from corrvae.estimator import CorrelatedVAE
from corrvae.model.families import EvidencePosterior

# The terms of the objective, in the order they are shown, with their names for people.
TERMS = {
    "total": "Objective",
    "reconstruction": "Reconstruction",
    "singleton": "Singleton KL",
    "edge": "Edge term",
    "non_edge": "Non-edge term",
    "contrast": "Competing candidates",
    "forests": "Divergence of forests",
}


def describe(model: CorrelatedVAE) -> dict[str, dict[str, Any]]:
    """Return the facts of a fitted model by subject (model, data, training, choices, parameters), as JSON has them."""
    graph, ids, history = model.graph_, model.ids_, model.history_
    n_points = len(ids)
    tau = [_short(value) for value in np.unique(model.tau_)]
    training = {"stopped": model.stopped_, "steps": model.n_steps_, "best_step": model.best_step_}
    for name in ("epoch", "seconds", *TERMS, *(f"validation_{term}" for term in TERMS)):
        if name in history and len(history[name]) and np.isfinite(history[name][-1]):
            training[name] = _short(history[name][-1])
    return {
        "model": {
            "family": type(model.model_.family).__name__,
            "likelihood": model.likelihood_,
            "normalize": model.normalize_,
            "n_components": int(model.embedding_.shape[1]),
            "tau": tau[0] if len(tau) == 1 else [_short(value) for value in model.tau_],
            "trained_numbers": sum(parameter.numel() for parameter in model.model_.parameters()),
        },
        "data": {
            "points": n_points,
            "first_ids": ids[:3].tolist(),
            "features": int(model.n_features_in_),
            "features_stored": model.features_ is not None,
            "edges": 0 if graph is None else graph.n_edges,
            "points_without_edges": n_points if graph is None else int((graph.degrees == 0).sum()),
            "connected_parts": n_points if graph is None else graph.n_connected,
        },
        "training": training,
        "choices": {name: f"{as_words(value)}: {why}" for name, value, why in model.choices_},
        "parameters": {name: _plain(value) for name, value in model.get_params().items()},
    }


def link_metric(model: CorrelatedVAE, *, features_given: bool = False) -> str:
    """Return the score to judge links by: expected distance where a pair network reads features, otherwise log-odds."""
    points, has_features = model.posterior().searchable, features_given or model.features_ is not None
    reads_features = has_features and points.is_correlated and not isinstance(points, EvidencePosterior)
    return "expected_distance" if reads_features else "log_odds"


def as_words(value: Any) -> str:
    """Return a fact as people write it.

    Examples
    --------
    >>> as_words(12000), as_words(True), as_words([0.5, None]), as_words({"a": 1})
    ('12,000', 'yes', '0.5, none', 'a 1')
    """
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {as_words(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(as_words, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)


def _short(value: float) -> float | None:
    number = float(value)
    return float(f"{number:.9g}") if np.isfinite(number) else None


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it; an object by how Python shows it."""
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
