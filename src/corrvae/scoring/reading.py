"""Points as users name them: ids of training rows, features of any rows, or nothing for all training rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int, Shaped

from corrvae.alignment import graph_has_ids
from corrvae.graphs import CorrelationGraph
from corrvae.graphs.ids import VertexIds, as_array, id_array
from corrvae.graphs.pairs import EdgeError, place_edges
from corrvae.inference import infer_posterior
from corrvae.model import CorrelatedModel
from corrvae.nn.features import FeatureTable
from corrvae.ranks import current_ranks
from corrvae.scoring.metrics import Metric
from corrvae.scoring.named import NamedPoints, exclude_neighbors, exclude_same, refuse_repeats
from corrvae.scoring.pair_vectors import PairVectors
from corrvae.scoring.points import Exclusions, Points
from corrvae.tables import Matrix, Table, fingerprint


@final
@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What a fitted model knows of its training rows.

    Attributes
    ----------
    ids, mean, stddev
        Ids, and posteriors.
    features
        The features, if they are there.
    fingerprint
        The code by which they are recognised.
    n_features
        How many features a row has.
    """

    ids: Shaped[np.ndarray, " rows"]
    mean: Float[np.ndarray, "rows dim"]
    stddev: Float[np.ndarray, "rows dim"]
    features: Matrix | None
    fingerprint: str
    n_features: int


@final
class PointReader:
    """Turns what users give into points.

    Parameters
    ----------
    model
        The networks.
    rows
        The training rows.
    read
        Reads and checks a table of features.
    missing
        Whether NaN stands for a missing entry.
    """

    def __init__(
        self, model: CorrelatedModel, rows: TrainingRows, read: Callable[[Any], Table], *, missing: bool = False
    ) -> None:
        self._model, self._rows, self._read, self._missing = model, rows, read, missing

    def points(self, given: Any, metric: Metric, among: NamedPoints | None = None) -> NamedPoints:
        """Give points by ids, by features or, by None, all training rows.

        Parameters
        ----------
        given
            What the user gave. The training features are recognised, and go by the training rows' ids.
        metric
            The score that they are for; correlations need the features of its points.
        among
            Points that have been read already, such as the candidates, where ids are looked up first.
        """
        correlated = metric.uses_correlation and self._model.pair_network is not None
        if given is None:
            return self._training(correlated, among)
        one = is_one_id(given)
        if not one and not are_ids(given):
            return self._new(given, correlated)
        if not one:
            self._refuse_features(given)
        ids = id_array([given] if one else given, "ids")
        if among is not None and among.known:
            there = _place(ids, among.ids)
            if (there >= 0).all():
                return among.take(there)
        training = VertexIds(self._rows.ids.copy(), len(self._rows.ids))
        where = np.array([training.locate_one(given)]) if one else training.locate(ids)
        return self._training(correlated, among).take(where)

    def exclusions(self, asked: NamedPoints, among: NamedPoints, exclude: Any) -> Exclusions:
        """Give what queries leave out: nothing, themselves, or themselves and their neighbours in a graph."""
        if exclude is None:
            return Exclusions.none(len(asked.points))
        graph = exclude if isinstance(exclude, CorrelationGraph) else None
        if graph is None and not (isinstance(exclude, str) and exclude == "self"):
            raise ValueError(f'exclude must be "self", a CorrelationGraph or None, not {exclude!r}')
        same = asked.is_same(among)
        by_row = same and not asked.known and (graph is None or (_counts(graph) and graph.n_vertices == len(asked.ids)))
        if not (asked.known and among.known) and not by_row:
            raise ValueError(
                "to exclude anything, points must be recognised: name them by ids, give a data frame with the ids as "
                "its index, or the features of training exactly as they were"
            )
        parts = [exclude_same(asked.ids, among.ids)]
        if graph is not None:
            parts.append(exclude_neighbors(asked.ids, among.ids, graph, self._vertices(graph, asked, among, same)))
        return Exclusions.union(len(asked.points), parts)

    def _vertices(self, graph: CorrelationGraph, asked: NamedPoints, among: NamedPoints, same: bool) -> np.ndarray:
        """Give the ids of a graph's vertices; one that only counts them counts the rows asked about, or training's."""
        vertices = graph.ids
        if _counts(graph):
            for rows in ([asked.ids] if same else []) + [self._rows.ids]:
                if len(rows) == graph.n_vertices:
                    # Numbers in another order are ids, by which vertices are found.
                    counted = rows.dtype.kind == "i" and np.array_equal(np.sort(rows), vertices)
                    vertices = vertices if counted else rows
                    break
        of_vertices = VertexIds(vertices.copy(), len(vertices))
        if graph.n_edges and not any(
            (of_vertices.find(ids) >= 0).any() for ids in (asked.ids, among.ids, self._rows.ids)
        ):
            raise ValueError(
                f"exclude has no vertex that is known: its ids are like {vertices[:1].tolist()[0]!r}, those of the "
                f"points like {among.ids[:1].tolist()[0]!r}"
            )
        return vertices

    def _new(self, given: Any, correlated: bool) -> NamedPoints:
        table, rows = self._read(given), self._rows
        features = FeatureTable(table.matrix, missing=self._missing)
        vectors = PairVectors(self._model, features) if correlated else None
        ids = table.ids
        if (ids is None or ids.tolist() == rows.ids.tolist()) and self._is_training(table):
            return NamedPoints(Points.of(rows.mean, rows.stddev, vectors), rows.ids, True)
        posterior = infer_posterior(self._model, features, ranks=current_ranks())
        points = Points.of(posterior.mean, posterior.stddev, vectors)
        if ids is None:
            # An index 0, 1, ... may only count rows; it says which they are if they look like the first of training.
            known = table.index is not None and self._are_first_rows(points)
            return NamedPoints(points, np.arange(len(points)), known)
        return NamedPoints(points, ids, True)

    def _is_training(self, table: Table) -> bool:
        return table.n_rows == len(self._rows.ids) and fingerprint(table.matrix) == self._rows.fingerprint

    def _are_first_rows(self, points: Points) -> bool:
        first, rows = slice(0, len(points)), self._rows
        if not np.array_equal(rows.ids[first], np.arange(len(points))):
            return False
        near = (
            np.allclose(found, known[first], rtol=1e-4, atol=1e-5)
            for found, known in ((points.mean, rows.mean), (points.stddev, rows.stddev))
        )
        return all(near)

    def _training(self, correlated: bool, among: NamedPoints | None) -> NamedPoints:
        rows = self._rows
        if among is not None and among.ids is rows.ids:
            return among
        vectors = None
        if correlated:
            if rows.features is None:
                where = _place(rows.ids, among.ids) if among is not None and among.known else np.array([-1])
                if among is not None and (where >= 0).all():
                    return among.take(where)
                raise ValueError(
                    "correlations with training rows need their features, which the folder of this model does not "
                    "hold (store_features=False). Pass the training features, or a data frame of some rows with their "
                    "ids as its index: to kneighbors as candidates=, to match as left and right, to other methods as X="
                )
            vectors = PairVectors(self._model, FeatureTable(rows.features, missing=self._missing))
        return NamedPoints(Points.of(rows.mean, rows.stddev, vectors), rows.ids, True)

    def _refuse_features(self, given: Any) -> None:
        """Refuse a row of features where ids would be looked up: numbers with fractions, or as many as features."""
        array = as_array(given)
        values = id_array(given, "ids") if array is None else array
        kind, numbered = values.dtype.kind, self._rows.ids.dtype.kind == "i"
        # A range and an index of pandas are no rows of features; a list of integers is taken for ids.
        may_be_row = (
            array is not None and kind in "iu" and not (isinstance(given, range) or hasattr(given, "get_indexer"))
        )
        if kind == "f" or (kind == "O" and numbered and any(isinstance(value, float) for value in values)):
            found = "floating-point numbers, which are no ids"
        elif may_be_row and numbered and len(values) == self._rows.n_features:
            found = f"{len(values)} integers, as many as there are features"
        else:
            return
        raise ValueError(
            f"a one-dimensional array of {found}: give a single row of features as a table of one row, such as "
            "X[[0]], and ids as a list"
        )


def is_one_id(given: Any) -> bool:
    """Whether a user names a single point.

    Examples
    --------
    >>> is_one_id("ann"), is_one_id(["ann"])
    (True, False)
    """
    return isinstance(given, (str, bytes)) or bool(np.isscalar(given))


def are_ids(given: Any) -> bool:
    """Whether a user lists ids, rather than rows of features.

    Examples
    --------
    >>> are_ids(["ann", "bob"]), are_ids(np.eye(2)), are_ids([[1.0, 2.0]])
    (True, False, False)
    """
    shape = getattr(given, "shape", None)
    if shape is not None:
        return len(shape) == 1
    if not isinstance(given, (list, tuple, range)):
        return False
    return all(isinstance(value, (str, bytes)) or not hasattr(value, "__len__") for value in given)


def place_pairs(pairs: Any, named: NamedPoints) -> Int[np.ndarray, "pairs 2"]:
    """Give pairs of ids, or of row numbers where points have no ids, as positions.

    Examples
    --------
    >>> named = NamedPoints(Points.of(np.zeros((2, 1)), np.ones((2, 1))), np.array([7, 8]), True)
    >>> place_pairs([(8, 7)], named).tolist()
    [[1, 0]]
    """
    refuse_repeats(named, "X")
    if isinstance(pairs, CorrelationGraph):
        raise TypeError("pairs must be pairs of ids or rows, not a CorrelationGraph; its id_pairs are")
    if isinstance(pairs, str):
        raise TypeError(f"pairs must be a list or an array of pairs, got {pairs!r}")
    shape = getattr(pairs, "shape", None)
    if shape is not None and shape != (0,) and (len(shape) != 2 or shape[1] != 2):
        raise ValueError(f"pairs must have two columns, the two points of each; got shape {tuple(shape)}")
    if shape is None and not isinstance(pairs, Iterable):
        raise TypeError(f"pairs must be a list or an array of pairs, got {pairs!r}")
    try:
        if named.known:
            return place_edges(pairs, VertexIds.from_vertices(named.ids)).pairs
        return place_edges(pairs, None, len(named.ids)).pairs
    except EdgeError as error:
        problem = error.problem.replace("vertex index", "row").replace("vertices", "points")
        problem = problem.partition("; give conductances")[0]
        raise ValueError(f"pair {error.position}: {problem}") from error


def _counts(graph: CorrelationGraph) -> bool:
    return not graph_has_ids(graph)


def _place(wanted: np.ndarray, ids: np.ndarray) -> np.ndarray:
    return VertexIds(ids.copy(), len(ids)).find(wanted)
