"""A trained run, opened to be asked: its model, and searches among its points and those of files."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Shaped

from corrvae.answers.naming import spell_like
from corrvae.errors import FolderError
from corrvae.folders import load
from corrvae.persistence import kind_of
from corrvae.retrieval import Retrieval
from corrvae.scoring.metrics import ExpectedDistance, LogOdds, Metric, make_metric
from corrvae.scoring.named import NamedPoints
from corrvae.scoring.points import Exclusions
from corrvae.tables import Matrix, Table, fingerprint, read_table, shape_of

if TYPE_CHECKING:
    from corrvae.estimator import CorrelatedVAE
    from corrvae.reading import Features

_KIND = "corrvae model"


def is_run_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is one that a trained model was saved to, by what it says of itself.

    Examples
    --------
    >>> is_run_folder("nowhere")
    False
    """
    return kind_of(path) == _KIND


@final
class Run(Retrieval):
    """A fitted model from its folder, whose methods take files that `read` has read where an estimator takes arrays.

    Parameters
    ----------
    model
        The fitted model.
    path
        Its folder, for sentences.

    Attributes
    ----------
    model, path
        As given; the rest is as in `corrvae.CorrelatedVAE`.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> run = Run(CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X))
    >>> run.kneighbors(["3"], n_neighbors=2).ids.shape
    Traceback (most recent call last):
    ValueError: position 0: id '3' is not among the 50 vertices, whose ids are like 0 (int, not str)
    >>> run.kneighbors([3], n_neighbors=2).ids.shape
    (1, 2)
    """

    def __init__(self, model: "CorrelatedVAE", path: str | os.PathLike[str] = "the run") -> None:
        self.model, self.path = model, Path(path)
        self.missing = model.missing
        self.ids_, self.embedding_, self.stddev_ = model.ids_, model.embedding_, model.stddev_
        self.tau_, self.model_, self.graph_ = model.tau_, model.model_, model.graph_
        self.features_, self.fingerprint_ = model.features_, model.fingerprint_
        self.n_features_in_ = model.n_features_in_

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Run":
        """Open a folder; `FolderError` if it holds no model."""
        return cls(load(path), path)

    @property
    def is_pairwise(self) -> bool:
        """Whether points have correlations of their own."""
        return self.model_.pair_network is not None

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features, if training had some."""
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else tuple(names.tolist())

    @property
    def link_metric(self) -> str:
        """The score that new links are looked for by: log-odds, or what a pairwise model has learned of each pair."""
        return ExpectedDistance.name if self.is_pairwise else LogOdds.name

    def metric(self, name: str) -> Metric:
        """Give the score of a name."""
        return make_metric(name, self.tau_)

    def read(self, path: str | os.PathLike[str], *, id_column: str | None = None, layout: str = "auto") -> "Features":
        """Read a file of features, its columns in the order of training.

        Parameters
        ----------
        path
            The file.
        id_column, layout
            As in `corrvae.reading.read_features`.
        """
        from corrvae.errors import DataFileError
        from corrvae.reading import read_features

        features = read_features(path, id_column=id_column, layout=layout, names=self.feature_names)
        n_columns = shape_of(features.matrix)[1]
        if n_columns != self.n_features_in_:
            raise DataFileError(
                Path(path), f"it has {n_columns:,} features, but {self.path} was trained on {self.n_features_in_:,}"
            )
        return features

    def require_features(self, metric: str, option: str) -> None:
        """Refuse correlations of training points whose features the folder does not hold.

        Parameters
        ----------
        metric
            The score's name.
        option
            With which the features could be given.
        """
        if self.is_pairwise and self.features_ is None and metric == ExpectedDistance.name:
            raise FolderError(
                self.path,
                "it holds no training features, which a pairwise model computes correlations from; give them with "
                f"{option} FILE, or choose another metric",
            )

    def points(self, features: "Features | None", metric: str) -> NamedPoints:
        """Give the points of a file, or those of training, as a score needs them."""
        return self._reader().points(features, self.metric(metric))

    def linked(self, named: NamedPoints) -> Exclusions:
        """Give each point itself and its neighbours in the training graph, which a search for new links leaves out."""
        edges = self._edges_among(named)
        own = np.arange(len(named.points))
        first, second = np.concatenate([edges, edges[:, ::-1]]).T
        return Exclusions.of(len(own), np.concatenate([own, first]), np.concatenate([own, second]))

    def recognises(self, features: "Features | None") -> bool:
        """Whether the points of a file are known by id, so that one can be left out of its own neighbours."""
        if features is None:
            return True
        if features.ids is not None:
            return Table(features.matrix, _Index(self.spell(features.ids))).ids is not None
        return shape_of(features.matrix)[0] == len(self.ids_) and fingerprint(features.matrix) == self.fingerprint_

    def spell(self, ids: Any) -> Shaped[np.ndarray, " ids"]:
        """Give ids in the kind of the training points' ids."""
        return spell_like(ids, self.ids_)

    def check(self, features: "Features", rows: slice = slice(None)) -> Matrix:
        """Give some rows of a file's features, after a look at their numbers."""
        from sklearn.base import BaseEstimator

        return read_table(BaseEstimator(), features.matrix[rows], reset=True, missing=self.missing == "mask").matrix

    def _read(self, X: "Features") -> Table:
        return Table(self.check(X), None if X.ids is None else _Index(self.spell(X.ids)))

    def _check_fitted(self) -> None:
        """A saved model is a fitted one."""


@final
class _Index:
    """Ids in the place of a data frame's index."""

    def __init__(self, ids: np.ndarray) -> None:
        self._ids = ids

    def to_numpy(self) -> np.ndarray:
        return self._ids
