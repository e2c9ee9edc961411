"""Points as users name them: ids of training rows, features of any rows, or nothing for all training rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int, Shaped

from corrvae.alignment import graph_has_ids
from corrvae.graphs import CorrelationGraph
from corrvae.graphs.ids import VertexIds
from corrvae.graphs.pairs import place_edges
from corrvae.inference import infer_posterior
from corrvae.model import CorrelatedModel
from corrvae.nn.features import FeatureTable
from corrvae.scoring.metrics import Metric
from corrvae.scoring.named import NamedPoints, exclude_neighbors, exclude_same
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
    """

    ids: Shaped[np.ndarray, " rows"]
    mean: Float[np.ndarray, "rows dim"]
    stddev: Float[np.ndarray, "rows dim"]
    features: Matrix | None
    fingerprint: str


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

    def points(self, given: Any, metric: Metric, training: NamedPoints | None = None) -> NamedPoints:
        """Give points by ids, by features or, by None, all training rows.

        Parameters
        ----------
        given
            What the user gave.
        metric
            The score that they are for; correlations need the features of its points.
        training
            Points that have been read already, taken for the training rows if they are these.
        """
        correlated = metric.uses_correlation and self._model.pair_network is not None
        if given is not None and not is_one_id(given) and not are_ids(given):
            return self._new(given, correlated)
        if training is None or training.ids is not self._rows.ids:
            training = self._training(correlated)
        if given is None:
            return training
        ids = VertexIds(self._rows.ids.copy(), len(self._rows.ids))
        where = np.array([ids.locate_one(given)]) if is_one_id(given) else ids.locate(given)
        return training.take(where)

    def exclusions(self, asked: NamedPoints, among: NamedPoints, exclude: Any) -> Exclusions:
        """Give what queries leave out: nothing, themselves, or themselves and their neighbours in a graph."""
        if exclude is None:
            return Exclusions.of(len(asked.points), np.empty(0, np.int64), np.empty(0, np.int64))
        graph = exclude if isinstance(exclude, CorrelationGraph) else None
        if graph is None and not (isinstance(exclude, str) and exclude == "self"):
            raise ValueError(f'exclude must be "self", a CorrelationGraph or None, not {exclude!r}')
        queries, candidates = self._identities(asked), self._identities(among)
        if queries is None and candidates is None and graph is None and len(asked.ids) == len(among.ids):
            queries, candidates = asked.ids, among.ids
        if queries is None or candidates is None:
            raise ValueError(
                "to exclude anything, points must be recognised: name them by ids, give a data frame with the ids as "
                f"its index, or one row for each of the {len(self._rows.ids):,} training rows"
            )
        parts = [exclude_same(queries, candidates)]
        if graph is not None:
            in_order = not graph_has_ids(graph) and graph.n_vertices == len(self._rows.ids)
            vertices = self._rows.ids if in_order else graph.ids
            parts.append(exclude_neighbors(queries, candidates, graph, vertices))
        return Exclusions.union(len(asked.points), parts)

    def _new(self, given: Any, correlated: bool) -> NamedPoints:
        table = self._read(given)
        features = FeatureTable(table.matrix, missing=self._missing)
        posterior = infer_posterior(self._model, features)
        vectors = PairVectors(self._model, features) if correlated else None
        points = Points.of(posterior.mean, posterior.stddev, vectors)
        if self._rows.features is None and correlated and fingerprint(table.matrix) == self._rows.fingerprint:
            return NamedPoints(points, self._rows.ids, True)
        if table.ids is not None:
            return NamedPoints(points, table.ids, True)
        return NamedPoints(points, np.arange(table.n_rows), False)

    def _training(self, correlated: bool) -> NamedPoints:
        rows = self._rows
        vectors = None
        if correlated:
            if rows.features is None:
                raise ValueError(
                    "correlations with training rows need their features, which the folder of this model does not "
                    "hold (store_features=False); pass the training features, to kneighbors as candidates=, to other "
                    "methods as X="
                )
            vectors = PairVectors(self._model, FeatureTable(rows.features, missing=self._missing))
        return NamedPoints(Points.of(rows.mean, rows.stddev, vectors), rows.ids, True)

    def _identities(self, named: NamedPoints) -> np.ndarray | None:
        if named.known:
            return named.ids
        return self._rows.ids if len(named.ids) == len(self._rows.ids) else None


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
    if named.known:
        return place_edges(pairs, VertexIds.from_vertices(named.ids)).pairs
    return place_edges(pairs, None, len(named.ids)).pairs
