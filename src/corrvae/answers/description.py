"""What a run is, in a few facts: the model, its data, how training ended, what the folder takes."""

import json
from pathlib import Path
from typing import Any

from corrvae.answers.run import Run
from corrvae.persistence import DOCUMENT

_TERMS = ("reconstruction", "singleton", "edge", "non_edge", "total")


def describe(run: Run) -> dict[str, dict[str, Any]]:
    """Give the facts of a run by subject, all as JSON has them.

    Parameters
    ----------
    run
        A run that was opened from its folder.

    Examples
    --------
    >>> import numpy, tempfile
    >>> from corrvae import CorrelatedVAE
    >>> X = numpy.random.default_rng(0).normal(size=(50, 4))
    >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/run")
    ...     facts = describe(Run.open(f"{folder}/run"))
    >>> facts["model"]["name"], facts["data"]["points"], facts["training"]["stopped"]
    ('VAE', 50, 'finished')
    """
    document = json.loads((run.path / DOCUMENT).read_bytes())
    return {
        "model": _model(run),
        "data": _data(run),
        "training": _training(run),
        "parameters": document["parameters"],
        "folder": {"path": str(run.path), "bytes": _size(run.path), "format": document["format"]["version"]},
        "versions": document["library"],
    }


def model_name(run: Run) -> str:
    """Name the model as the field does.

    Examples
    --------
    >>> import numpy
    >>> from corrvae import CorrelatedVAE
    >>> X = numpy.random.default_rng(0).normal(size=(50, 4))
    >>> model_name(Run(CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)))
    'VAE'
    """
    if run.is_pairwise:
        return "CVAE_corr"
    return "VAE" if run.graph_ is None else "CVAE_ind"


def _model(run: Run) -> dict[str, Any]:
    likelihood, tau = run.model.likelihood, run.tau_
    return {
        "name": model_name(run),
        "posterior": run.model.posterior,
        "likelihood": likelihood if isinstance(likelihood, str) else type(run.model_.likelihood).__name__,
        "components": int(run.embedding_.shape[1]),
        "tau": _short(tau[0]) if (tau == tau[0]).all() else [_short(value) for value in tau.tolist()],
        "trainable_numbers": sum(parameter.numel() for parameter in run.model_.parameters()),
    }


def _data(run: Run) -> dict[str, Any]:
    graph, ids = run.graph_, run.ids_
    return {
        "points": len(ids),
        "first_ids": ids[:3].tolist(),
        "features": run.n_features_in_,
        "features_have_names": run.feature_names is not None,
        "features_stored": run.features_ is not None,
        "links": 0 if graph is None else graph.n_edges,
        "links_have_conductances": graph is not None and graph.conductances is not None,
        "points_without_a_link": len(ids) if graph is None else int((graph.degrees == 0).sum()),
        "connected_parts": len(ids) if graph is None else graph.n_components,
    }


def _training(run: Run) -> dict[str, Any]:
    model, history = run.model, run.model.history_
    told = {"steps": model.n_steps_, "best_step": model.best_step_, "stopped": model.stopped_}
    if history.n_rows:
        for name in ("epoch", "seconds"):
            if name in history:
                told[name] = _short(history[name][-1])
        wanted = [prefix + term for prefix in ("", "validation_") for term in _TERMS]
        told["last_terms"] = {name: _short(history[name][-1]) for name in wanted if name in history}
    return told


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _short(value: Any) -> float | None:
    number = float(value)
    return float(f"{number:.9g}") if number == number and abs(number) != float("inf") else None
