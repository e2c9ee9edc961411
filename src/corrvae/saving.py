"""What a fitted `CorrelatedVAE` is in a folder: JSON, tensors, arrays and ids, which other programs can read too."""

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from corrvae.choices import Choice
from corrvae.errors import FolderError
from corrvae.graphs import CorrelationGraph
from corrvae.graphs.ids import id_array
from corrvae.io import ids_as_column
from corrvae.io.folder import Folder, read_folder, write_folder
from corrvae.model import build_model
from corrvae.model.adaptive import AdaptiveForests
from corrvae.model.families import FAMILIES, Family, make_family
from corrvae.nn import LIKELIHOODS, Scaling
from corrvae.training import History

_KIND, _VERSION = "corrvae model", 2
# Fitted attributes that JSON holds as they are, and arrays that are written if there are any, by their names there.
_FITTED = {
    "n_features": "n_features_in_",
    "n_steps": "n_steps_",
    "best_step": "best_step_",
    "stopped": "stopped_",
    "total": "total_",
    "n_fits": "n_fits_",
    "hold_out_seed": "_hold_out_seed",
}
_ARRAYS = {"embedding": "embedding_", "stddev": "stddev_"}
_ARRAYS |= {"graph.weights": "weights_", "graph.adapted": "conductances_"}
_ENTRIES = ("data", "indices", "indptr")


def write_model(model: Any, path: str | os.PathLike[str], *, store_features: bool) -> None:
    """Write a fitted `CorrelatedVAE` to a folder."""
    names, scaling, graph = getattr(model, "feature_names_in_", None), model._scaling, model.graph_
    arrays = {name: getattr(model, attribute) for name, attribute in _ARRAYS.items()}
    arrays |= {"scaling.location": scaling.location, "scaling.scale": scaling.scale}
    if model.model_.family.conditions_on_graph:
        arrays |= dict(zip(("encoded.mean", "encoded.stddev"), model._encoded, strict=True))
    if graph is not None:
        arrays |= {"graph.edges": graph.edges, "graph.conductances": graph.conductances}
        arrays["graph.is_group"] = graph.is_group if graph.has_groups else None
    features = model.features_ if store_features else None
    if isinstance(features, sparse.csr_array):
        arrays |= {f"features.{name}": getattr(features, name) for name in _ENTRIES}
    elif features is not None:
        arrays["features.dense"] = np.asarray(features)
    libraries = {name: version(name) for name in ("corrvae", "numpy", "scikit-learn", "torch")}
    fitted = {name: getattr(model, attribute) for name, attribute in _FITTED.items()}
    document = {
        "library": {**libraries, "python": platform.python_version()},
        "parameters": {name: plain(value) for name, value in model.get_params(deep=False).items()},
        "architecture": {name: plain(value) for name, value in model._architecture.items()},
        "fitted": {
            **fitted,
            "feature_names": None if names is None else [str(name) for name in names],
            "graph": graph is not None,
            "choices": [[name, plain(value), why] for name, value, why in model.choices_],
            "counts": scaling.counts,
        },
        "history": model.history_.columns,
    }
    write_folder(
        path,
        kind=_KIND,
        version=_VERSION,
        document=document,
        tensors=model.model_.state_dict(),
        arrays={name: array for name, array in arrays.items() if array is not None},
        tables={"ids": _id_table(model.ids_)},
    )


def read_model(path: str | os.PathLike[str], kind: type, own: Mapping[str, Any]) -> Any:
    """Return the estimator of a `kind` that is in a folder; `own` is the user's code that it was made with."""
    folder = read_folder(path, kind=_KIND, version=_VERSION)
    try:
        return _restore(Path(path), folder, kind, own)
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FolderError(Path(path), f"damaged: it is not a whole model ({reason})") from error


def _restore(path: Path, folder: Folder, kind: type, own: Mapping[str, Any]) -> Any:
    document, arrays, fitted = folder.document, folder.arrays, folder.document["fitted"]
    parameters, architecture = (
        {name: _revive(path, name, value, own.get(name)) for name, value in document[part].items()}
        for part in ("parameters", "architecture")
    )
    model = kind(**parameters)
    model._check_parameters()
    model.model_ = build_model(fitted["n_features"], family=make_family(model.family), **architecture)
    model.model_.load_state_dict(folder.tensors)
    for name, attribute in _FITTED.items():
        setattr(model, attribute, fitted[name])
    for name, attribute in _ARRAYS.items():
        setattr(model, attribute, arrays.get(name))
    if fitted["feature_names"] is not None:
        model.feature_names_in_ = np.array(fitted["feature_names"], dtype=object)
    model.choices_ = [
        Choice(name, tuple(value) if isinstance(value, list) else value, why) for name, value, why in fitted["choices"]
    ]
    chosen = {choice.name: choice.value for choice in model.choices_}
    model._architecture, model._chosen = architecture, model.get_params(deep=False) | chosen | architecture
    model.likelihood_, model.normalize_ = architecture["likelihood"], architecture["normalize"]
    model._scaling = Scaling(fitted["counts"], arrays.get("scaling.location"), arrays.get("scaling.scale"))
    model.ids_ = _ids_of(folder.tables["ids"])
    n_vertices, n_features, n_components = len(model.ids_), fitted["n_features"], architecture["n_components"]
    model.tau_, model._posterior = model.model_.tau_values(n_components), None
    names = ("encoded.mean", "encoded.stddev") if "encoded.mean" in arrays else ("embedding", "stddev")
    model._encoded = arrays[names[0]], arrays[names[1]]
    model.graph_ = None
    if fitted["graph"]:
        model.graph_ = CorrelationGraph(
            arrays["graph.edges"],
            n_vertices,
            conductances=arrays.get("graph.conductances"),
            vertices=model.ids_,
            is_group=arrays.get("graph.is_group"),
        )
    n_rows = len(model._encoded[0])
    model.features_ = arrays.get("features.dense")
    if "features.data" in arrays:
        entries = tuple(arrays[f"features.{name}"] for name in _ENTRIES)
        model.features_ = sparse.csr_array(entries, shape=(n_rows, n_features))
    model.history_ = History({name: list(column) for name, column in document["history"].items()})
    shapes = {
        "embedding_": (n_vertices, n_components),
        "stddev_": (n_vertices, n_components),
        "features_": (n_rows, n_features),
        "feature_names_in_": (n_features,),
        "weights_": () if model.graph_ is None else (model.graph_.n_edges,),
    }
    for name, shape in shapes.items():
        array: Any = getattr(model, name, None)
        found = np.shape(array)
        if found != shape and not (array is None and name.startswith("feature")):  # which may be absent
            raise ValueError(f"{name} has the shape {found} instead of {shape}")
    return model


def plain(value: Any) -> Any:
    """Return a parameter as JSON holds it."""
    if isinstance(value, Family):
        name = next((name for name, kind in FAMILIES.items() if type(value) is kind), None)
        options = {option: plain(given) for option, given in value.get_params(deep=False).items()}
        own = name is None or any(isinstance(given, dict) and "own" in given for given in options.values())
        return {"own": _full_name(value)} if own else {"family": name, "options": options}
    if isinstance(value, AdaptiveForests):
        return {"options": {option: plain(given) for option, given in value.get_params().items()}}
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None
    if callable(value):
        return {"own": _full_name(value)}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _full_name(value: Any) -> str:
    made = getattr(value, "func", value)
    made = made if hasattr(made, "__qualname__") else type(made)
    return f"{made.__module__}.{made.__qualname__}"


def _revive(path: Path, name: str, value: Any, own: Any) -> Any:
    """Return a parameter from what JSON holds."""
    if isinstance(value, dict) and "own" in value:
        if own is None:
            problem = f"the model was made with the {name} {value['own']}; pass it: load(..., {name}=...)"
            raise FolderError(path, problem)
        return own
    if name == "forests":
        return AdaptiveForests(**value["options"]) if isinstance(value, dict) else value
    known = {"likelihood": LIKELIHOODS, "family": FAMILIES}.get(name)
    named = value["family"] if isinstance(value, dict) else value
    if own is not None and value != "auto":
        raise FolderError(path, f"the model has the {name} {named!r}, which needs no code of yours; pass no other")
    if known is not None and named not in (*known, "auto"):
        raise FolderError(
            path, f"the model has the {name} {named!r}, which is not registered; import what registers it"
        )
    if isinstance(value, dict):
        options = {option: _revive(path, option, given, None) for option, given in value["options"].items()}
        return FAMILIES[named](**options)
    return tuple(value) if isinstance(value, list) else value


def _id_table(ids: np.ndarray) -> pa.Table:
    """Return ids as a table, with a column that tells integers from strings where there are both."""
    listed = ids.tolist()
    kinds = {type(value) for value in listed}
    if not kinds <= {int, str}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(f"ids of the kind {names} cannot be saved; use integers or strings")
    table = pa.table({"id": ids_as_column(ids)})
    return table if len(kinds) < 2 else table.append_column("is_integer", pa.array([type(v) is int for v in listed]))


def _ids_of(table: pa.Table) -> np.ndarray:
    listed = table["id"].to_pylist()
    if "is_integer" in table.column_names:
        marks = table["is_integer"].to_pylist()
        listed = [int(value) if mark else value for value, mark in zip(listed, marks, strict=True)]
    return id_array(listed, "ids") if listed else np.empty(0, np.int64)
