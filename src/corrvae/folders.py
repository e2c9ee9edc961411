"""Fitted models as folders: JSON, safetensors and Parquet, checked before use; nothing in them is ever executed."""

import os
import platform
import sys
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Shaped
from scipy import sparse

from corrvae.building import Architecture, build_model
from corrvae.compressed import check_compressed
from corrvae.errors import FolderError
from corrvae.generation import tau_of
from corrvae.graphs import CorrelationGraph
from corrvae.graphs.ids import VertexIds
from corrvae.model import CorrelatedModel
from corrvae.parameters import check_parameters
from corrvae.persistence import ARRAYS, DOCUMENT, TENSORS, Folder, read_folder, write_folder
from corrvae.shards import ShardedMatrix, open_shards, write_shards
from corrvae.tables import Matrix
from corrvae.training import History
from corrvae.warm_start import Past

if TYPE_CHECKING:
    from corrvae.estimator import CorrelatedVAE

_KIND, _VERSION = "corrvae model", 1
_VERTICES, _HISTORY, _FEATURES = "vertices", "history", "features"
_PLUGGED = ("likelihood", "pair_network")


def save_model(estimator: "CorrelatedVAE", path: str | os.PathLike[str], *, store_features: bool = True) -> None:
    """Write a fitted estimator to a folder.

    Parameters
    ----------
    estimator
        A fitted `CorrelatedVAE`.
    path
        The folder; a model in it is replaced once the new one is written whole.
    store_features
        Whether a pairwise model's training features go along. Features in shards that the folder itself holds are
        replaced too, and the estimator then has the new ones.
    """
    features = estimator.features_ if store_features else None
    replaced = _lies_in(estimator.features_, path)
    if replaced and features is None:
        raise FolderError(
            Path(path), "the model reads its features from this folder, and would lose them; choose another folder"
        )
    names = getattr(estimator, "feature_names_in_", None)
    libraries = {name: version(name) for name in ("corrvae", "numpy", "scikit-learn", "torch")}
    document = {
        "library": {"python": platform.python_version(), **libraries},
        "parameters": {name: _plain(name, value) for name, value in estimator.get_params(deep=False).items()},
        "fitted": {
            "n_features": estimator.n_features_in_,
            "n_rows": len(estimator.ids_),
            "n_steps": estimator.n_steps_,
            "best_step": estimator.best_step_,
            "stopped": estimator.stopped_,
            "total": estimator.total_,
            "graph": estimator.graph_ is not None,
            "data": estimator.fingerprint_,
            "fits": estimator._past.fits,
            "hold_out": estimator._past.hold_out,
        },
    }
    arrays = _graph_arrays(estimator.graph_, estimator.weights_) | _name_arrays(names)
    folders = {}
    if isinstance(features, ShardedMatrix):
        folders[_FEATURES] = lambda place: _copy_shards(features, place)
    elif features is not None:
        arrays |= _feature_arrays(features)
    tables = {
        _VERTICES: _vertices(estimator.ids_, estimator.embedding_, estimator.stddev_),
        _HISTORY: pa.table(dict(estimator.history_.columns)),
    }
    tensors = estimator.model_.state_dict()
    write_folder(
        path,
        kind=_KIND,
        version=_VERSION,
        document=document,
        tensors=tensors,
        arrays=arrays,
        tables=tables,
        folders=folders,
    )
    if replaced:
        estimator.features_ = open_shards(Path(path, _FEATURES)).matrix


def load(path: str | os.PathLike[str], *, likelihood: Any = None, pair_network: Any = None) -> "CorrelatedVAE":
    """Read a fitted model from the folder that `CorrelatedVAE.save` wrote.

    Parameters
    ----------
    path
        The folder.
    likelihood, pair_network
        What the model was made with, if that was a class or function of the user's own: code is never read from a
        folder.

    Raises
    ------
    FolderError
        With the path and what is wrong, if the folder is missing, damaged, foreign, or of a newer version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/run")
    ...     again = load(f"{folder}/run")
    >>> np.array_equal(again.transform(X), model.transform(X))
    True
    """
    folder = read_folder(path, kind=_KIND, newest=_VERSION)
    place = Path(path)
    estimator = _estimator(place, folder, {"likelihood": likelihood, "pair_network": pair_network})
    fitted = _fitted(place, folder)
    n_rows, n_features = fitted["n_rows"], fitted["n_features"]
    estimator.n_features_in_ = n_features
    names = _read_names(place, folder, fitted)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator._past = Past(Architecture.of(estimator, n_features), fitted["hold_out"], fitted["fits"])
    estimator.model_ = _model(place, folder, estimator._past.architecture)
    estimator.tau_ = tau_of(estimator.model_, estimator.n_components)
    estimator.ids_, estimator.embedding_, estimator.stddev_ = _read_vertices(
        place, folder, n_rows, estimator.n_components
    )
    estimator.graph_, estimator.weights_ = _read_graph(place, folder, fitted["graph"], estimator.ids_)
    estimator.features_ = _read_features(place, folder, (n_rows, n_features))
    estimator.n_steps_, estimator.best_step_ = fitted["n_steps"], fitted["best_step"]
    estimator.stopped_, estimator.total_ = fitted["stopped"], fitted["total"]
    estimator.fingerprint_ = fitted["data"]
    estimator.history_ = _read_history(place, folder)
    return estimator


# Parameters and numbers


def _plain(name: str, value: Any) -> Any:
    """Give a parameter as JSON has it."""
    if name in _PLUGGED and not isinstance(value, str):
        made = getattr(value, "func", value)
        return {"own": f"{made.__module__}.{made.__qualname__}"}
    if name == "random_state" and not isinstance(value, (int, np.integer)):
        return None
    if isinstance(value, (tuple, list)):
        return [_plain(name, part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _estimator(place: Path, folder: Folder, own: dict[str, Any]) -> "CorrelatedVAE":
    from corrvae.estimator import CorrelatedVAE

    parameters = folder.document.get("parameters")
    known = CorrelatedVAE().get_params(deep=False)
    if not isinstance(parameters, dict) or not parameters.keys() <= known.keys():
        raise FolderError(place / DOCUMENT, "its parameters are not those of a CorrelatedVAE")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}
    for name in _PLUGGED:
        if isinstance(parameters.get(name), dict):
            if own[name] is None:
                made = parameters[name].get("own")
                raise FolderError(place, f"the model was made with the {name} {made}; pass it: load(..., {name}=...)")
            values[name] = own[name]
        elif own[name] is not None:
            raise FolderError(place, f"the model has the {name} {values.get(name)!r} of corrvae; pass no other")
    estimator = CorrelatedVAE().set_params(**values)
    try:
        for name, value in values.items():
            _refuse_endless(name, value)
        check_parameters(estimator)
    except (ValueError, TypeError) as error:
        raise FolderError(place / DOCUMENT, f"it holds parameters that cannot be: {error}") from error
    return estimator


def _refuse_endless(name: str, value: Any) -> None:
    """Refuse whole numbers that no float can hold: JSON knows them, and hardly anything that computes does."""
    for part in value if isinstance(value, tuple) else (value,):
        if isinstance(part, int) and abs(part) > sys.float_info.max:
            raise ValueError(f"{name} has a number of {part.bit_length():,} bits")


def _fitted(place: Path, folder: Folder) -> dict[str, Any]:
    fitted = folder.document.get("fitted")
    if not isinstance(fitted, dict) or not _FITTED.keys() - _LATER.keys() <= fitted.keys():
        raise FolderError(place / DOCUMENT, "damaged: it does not describe a fitted model")
    fitted = {**_LATER, **fitted}
    for name, kinds in _FITTED.items():
        value = fitted[name]
        if type(value) not in kinds or (value is not None and value < _LEAST.get(name, value)):
            raise FolderError(place / DOCUMENT, f"damaged: {name} is {value!r}")
    for table in (_VERTICES, _HISTORY):
        if table not in folder.tables:
            raise FolderError(place / f"{table}.parquet", "missing")
    return fitted


_FITTED: dict[str, tuple[type, ...]] = {
    "n_features": (int,),
    "feature_names": (list, type(None)),
    "n_rows": (int,),
    "n_steps": (int,),
    "best_step": (int, type(None)),
    "stopped": (str,),
    "total": (float, int),
    "graph": (bool,),
    "data": (str,),
    "fits": (int,),
    "hold_out": (int, type(None)),
}
_LEAST: dict[str, Any] = {"n_features": 1, "n_rows": 1, "n_steps": 1, "fits": 0, "hold_out": 0}
# What not all folders of this format hold: the first ones, or those since names are among the arrays.
_LATER: dict[str, Any] = {"fits": 1, "hold_out": None, "feature_names": None}


def _read_names(place: Path, folder: Folder, fitted: dict[str, Any]) -> list[str] | None:
    """Give the names of the features, from the arrays or, as folders had them at first, from the document."""
    listed = "names.text" not in folder.arrays
    names = fitted["feature_names"] if listed else _split(place, folder)
    if names is not None and (len(names) != fitted["n_features"] or any(type(name) is not str for name in names)):
        raise FolderError(
            place / (DOCUMENT if listed else ARRAYS), "damaged: the names of the features are not as many strings"
        )
    return names


def _name_arrays(names: np.ndarray | None) -> dict[str, np.ndarray]:
    """Give names one behind the other as bytes, and where each ends: there can be more than a document should hold."""
    if names is None:
        return {}
    parts = [name.encode("utf-8", "surrogatepass") for name in names.tolist()]
    text, ends = np.frombuffer(b"".join(parts), np.uint8), np.cumsum([len(part) for part in parts], dtype=np.int64)
    return {"names.text": text, "names.ends": ends}


def _split(place: Path, folder: Folder) -> list[str]:
    text, ends = (_array(place, folder, f"names.{name}") for name in ("text", "ends"))
    whole = ends.dtype == np.int64 and ends.ndim == 1 and text.dtype == np.uint8 and text.ndim == 1 and len(ends)
    # compared, not subtracted: a difference of such numbers may wrap round to one that is not negative
    if not whole or ends[0] < 0 or ends[-1] != len(text) or (ends[1:] < ends[:-1]).any():
        raise FolderError(place / ARRAYS, "damaged: the names of the features do not end where they should")
    data, bounds = text.tobytes(), [0, *ends.tolist()]
    try:
        return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(bounds)]
    except UnicodeDecodeError as error:
        raise FolderError(place / ARRAYS, f"damaged: the names of the features are no text ({error})") from error


def _model(place: Path, folder: Folder, architecture: Architecture) -> CorrelatedModel:
    """Build networks without memory, compare what they need with what there is, and only then fill them."""
    layers = len(architecture.hidden) + len(architecture.pair_hidden or ())
    if layers > len(folder.tensors):
        raise FolderError(place / TENSORS, f"its tensors are not those of networks with {layers:,} hidden layers")
    try:
        model = build_model(architecture, 0, device="meta")
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        raise FolderError(place / DOCUMENT, f"no networks can be built from its parameters: {error}") from error
    wanted = model.state_dict()
    if wanted.keys() != folder.tensors.keys():
        odd = sorted(wanted.keys() ^ folder.tensors.keys())
        raise FolderError(place / TENSORS, f"its tensors are not those of the networks; {odd[0]!r} is odd")
    for name, tensor in folder.tensors.items():
        if tensor.shape != wanted[name].shape or tensor.dtype != wanted[name].dtype:
            found, asked = (f"{part.dtype} {tuple(part.shape)}" for part in (tensor, wanted[name]))
            raise FolderError(place / TENSORS, f"tensor {name!r} is {found}, but the parameters ask for {asked}")
        if not bool(tensor.isfinite().all()):
            raise FolderError(place / TENSORS, f"tensor {name!r} holds numbers that are not finite")
    model.load_state_dict(folder.tensors, assign=True)
    return model


# Rows


def id_column(ids: Shaped[np.ndarray, " rows"]) -> pa.Array:
    """Give ids as a column of a table that they come back from as they were, or say that there is none.

    Examples
    --------
    >>> id_column(np.array(["ann", "bob"], dtype=object)).type
    DataType(string)
    """
    listed = ids.tolist()
    try:
        column = pa.array(listed)
        returned = column.to_pylist()
    except (pa.ArrowException, OverflowError, ValueError):
        column, returned = None, []
    # True and 1 are equal, and a tuple comes back as a list.
    if column is None or returned != listed or list(map(type, returned)) != list(map(type, listed)):
        kinds = sorted({type(value).__name__ for value in listed})
        raise TypeError(
            f"ids of the kind {', '.join(kinds)} cannot be kept in a file; give the graph or the data frame's index "
            "integers or strings"
        )
    return column


def _vertices(
    ids: Shaped[np.ndarray, " rows"], mean: Float[np.ndarray, "rows dim"], stddev: Float[np.ndarray, "rows dim"]
) -> pa.Table:
    columns = {"mean": mean, "stddev": stddev}
    lists = {name: pa.FixedSizeListArray.from_arrays(pa.array(v.ravel()), v.shape[1]) for name, v in columns.items()}
    return pa.table({"id": id_column(ids), **lists})


def _read_vertices(
    place: Path, folder: Folder, n_rows: int, n_components: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    file, table = place / f"{_VERTICES}.parquet", folder.tables[_VERTICES]
    if table.num_rows != n_rows or table.column_names != ["id", "mean", "stddev"]:
        raise FolderError(file, f"it should hold id, mean and stddev of {n_rows} rows")
    mean, stddev = (_read_lists(file, table[name], n_components) for name in ("mean", "stddev"))
    if not (np.isfinite(mean).all() and np.isfinite(stddev).all() and (stddev > 0).all()):
        raise FolderError(file, "damaged: it holds means or standard deviations that cannot be")
    try:
        ids = VertexIds.from_vertices(table["id"].to_pylist()).values
    except (ValueError, TypeError, ArithmeticError) as error:  # such as a date that is beyond the calendar
        raise FolderError(file, f"damaged: its ids cannot be ({error})") from error
    return ids, mean, stddev


def _read_history(place: Path, folder: Folder) -> History:
    table = folder.tables[_HISTORY]
    for name, column in zip(table.column_names, table.columns, strict=True):
        number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
        if not number or column.null_count:
            raise FolderError(place / f"{_HISTORY}.parquet", f"damaged: {name!r} should hold a number in each row")
    return History(table.to_pydict())


def _read_lists(file: Path, column: pa.ChunkedArray, length: int) -> np.ndarray:
    kind = column.type
    fits = pa.types.is_fixed_size_list(kind) and kind.list_size == length and kind.value_type == pa.float32()
    if not fits or column.null_count:
        raise FolderError(file, f"means and standard deviations should be {length} numbers in each row")
    return column.combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(len(column), length)


# Graph and features


def _graph_arrays(graph: CorrelationGraph | None, weights: np.ndarray | None) -> dict[str, np.ndarray]:
    if graph is None or weights is None:
        return {}
    arrays = {"graph.edges": graph.edges, "graph.weights": weights}
    return arrays if graph.conductances is None else {**arrays, "graph.conductances": graph.conductances}


def _read_graph(
    place: Path, folder: Folder, there: bool, ids: np.ndarray
) -> tuple[CorrelationGraph | None, np.ndarray | None]:
    if not there:
        return None, None
    edges, weights = (_array(place, folder, f"graph.{name}") for name in ("edges", "weights"))
    conductances = folder.arrays.get("graph.conductances")
    try:
        graph = CorrelationGraph(edges, len(ids), conductances=conductances, vertices=ids)
    except (ValueError, TypeError) as error:
        raise FolderError(place / ARRAYS, f"damaged: its graph cannot be ({error})") from error
    if weights.dtype != np.float64 or weights.shape != (graph.n_edges,) or not ((weights >= 0) & (weights <= 1)).all():
        raise FolderError(place / ARRAYS, "damaged: the edges' weights are not a share for each")
    return graph, weights


def _lies_in(features: Any, path: str | os.PathLike[str]) -> bool:
    """Whether features are read from files in this folder."""
    if not isinstance(features, ShardedMatrix):
        return False
    return Path(os.path.realpath(path)) in Path(os.path.realpath(features.path)).parents


def _copy_shards(matrix: ShardedMatrix, place: Path) -> None:
    """Write features that are larger than memory, so that the model's folder needs no other."""
    matrix.check()  # what is damaged must not get a checksum that fits
    write_shards(place, (block for _, block in matrix.pieces()), n_columns=matrix.shape[1])


def _feature_arrays(matrix: Matrix) -> dict[str, np.ndarray]:
    rows = sparse.csr_array(matrix, dtype=np.float32)
    parts = {"data": rows.data, "columns": rows.indices.astype(np.int64), "offsets": rows.indptr.astype(np.int64)}
    return {f"features.{name}": part for name, part in parts.items()}


def _read_features(place: Path, folder: Folder, shape: tuple[int, int]) -> sparse.csr_array | ShardedMatrix | None:
    if _FEATURES in folder.folders:
        shards = open_shards(place / _FEATURES).matrix
        if shards.shape != shape:
            raise FolderError(place / _FEATURES, f"damaged: it holds a matrix of shape {shards.shape}, not {shape}")
        return shards
    if "features.data" not in folder.arrays:
        return None
    data, columns, offsets = (_array(place, folder, f"features.{name}") for name in ("data", "columns", "offsets"))
    try:
        if data.dtype != np.float32 or columns.dtype != np.int64 or offsets.dtype != np.int64:
            raise ValueError("wrong types of numbers")
        features = sparse.csr_array((data, columns, offsets), shape=shape)
        check_compressed(features)
        if not features.has_canonical_format:
            raise ValueError("columns out of order")
    except (ValueError, TypeError, IndexError) as error:
        raise FolderError(place / ARRAYS, f"damaged: its features are no sparse matrix ({error})") from error
    return features


def _array(place: Path, folder: Folder, name: str) -> np.ndarray:
    if name not in folder.arrays:
        raise FolderError(place / ARRAYS, f"the array {name!r} is missing")
    return folder.arrays[name]
