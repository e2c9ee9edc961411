"""What a fitted model says about pairs of points: neighbours, scores, ranks, matches, probabilities of links."""

import numbers
from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.ids import VertexIds
from corrvae.model import CorrelatedModel
from corrvae.scoring.approximate import nearest_approximately
from corrvae.scoring.assignment import assign
from corrvae.scoring.calibration import LinkCalibration, calibrate, random_unlinked, refuse_links
from corrvae.scoring.evaluation import complete_parts, evaluate_pairs
from corrvae.scoring.metrics import Metric, Parts, make_metric
from corrvae.scoring.named import NamedPoints, exclude_same, refuse_repeats
from corrvae.scoring.neighbors import nearest
from corrvae.scoring.points import Exclusions
from corrvae.scoring.ranks import rank
from corrvae.scoring.reading import PointReader, TrainingRows, is_one_id, place_pairs
from corrvae.scoring.results import Matches, Neighbors, PairRanks, PairScores, gather_neighbors, pair_ids
from corrvae.tables import Matrix, Table

# Random pairs without a link for each link of a calibration, and at least so many.
_UNLINKED, _FEWEST_UNLINKED = 10, 1000


class Retrieval(ABC):
    """The part of `corrvae.CorrelatedVAE` that compares points with each other.

    Points are training rows, called by their ids, or rows of features never seen before.
    """

    missing: Literal["error", "mask"]
    ids_: np.ndarray
    embedding_: np.ndarray
    stddev_: np.ndarray
    tau_: np.ndarray
    model_: CorrelatedModel
    graph_: CorrelationGraph | None
    features_: Matrix | None
    fingerprint_: str
    n_features_in_: int

    @abstractmethod
    def _read(self, X: Any) -> Table:
        """Read features as a fitted estimator does."""

    def kneighbors(
        self,
        X: Any = None,
        *,
        n_neighbors: int = 10,
        metric: str | Metric = "expected_distance",
        candidates: Any = None,
        exclude: Any = None,
        approximate: bool = False,
        progress: bool | None = None,
    ) -> Neighbors:
        """Find the exact nearest neighbours of points, best first whatever the metric.

        Parameters
        ----------
        X : id, array of ids, matrix of features, or None
            The queries; ``None``: every training row, each of which is left out of its own neighbours.
        n_neighbors : int
            How many candidates to give for each query.
        metric : {"expected_distance", "log_odds", "mean_distance", "cosine"}
            The score. In a pairwise model the expected distance takes in the correlation of each pair.
        candidates : array of ids, matrix of features, or None
            Among whom to search; ``None``: the training rows. A pairwise model that was saved without its features
            needs them here. The training features, wherever they are given, are recognised and go by their ids.
        exclude : "self", CorrelationGraph or None
            What queries leave out: themselves, or themselves and their neighbours in a graph, such as `graph_`. Points
            are recognised by id: that of the training row, or that in the index of a data frame.
        approximate : bool
            Let an index propose candidates instead of looking at all (needs ``corrvae[index]``); the share of true
            neighbours found is in `recall`.
        progress : bool or None
            Show a bar; ``None``: on a terminal, once it takes long.

        Returns
        -------
        Neighbors
            With `scores`, `ids` and `parts`; ``scores, ids = model.kneighbors(...)`` works too.

        Examples
        --------
        >>> from corrvae import CorrelatedVAE
        >>> X = np.random.default_rng(0).normal(size=(50, 4))
        >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
        >>> scores, ids = model.kneighbors(n_neighbors=3)
        >>> ids.shape
        (50, 3)
        """
        self._check_fitted()
        if not isinstance(n_neighbors, numbers.Integral) or isinstance(n_neighbors, bool):
            raise TypeError(f"n_neighbors must be an integer, got {n_neighbors!r}")
        if n_neighbors < 1:
            raise ValueError(f"n_neighbors must be positive, got {n_neighbors}")
        score, reader = make_metric(metric, self.tau_), self._reader()
        among = reader.points(candidates, score)
        asked = reader.points(X, score, among)
        if not len(among.points):
            raise ValueError("there are no candidates")
        refuse_repeats(among, "candidates")
        if X is None and exclude is None:
            exclude = "self"
        left_out = reader.exclusions(asked, among, exclude)
        width = min(int(n_neighbors), len(among.points))
        search = asked.points, among.points, score, width, left_out
        recall = None
        if approximate:
            approximately = nearest_approximately(*search, progress=progress)
            found, recall = approximately.found, approximately.recall
        else:
            found = nearest(*search, same=asked is among, progress=progress)
        result = gather_neighbors(asked, among, score, found, recall)
        return result.first() if is_one_id(X) else result

    def score_pairs(
        self,
        pairs: Any,
        X: Any = None,
        *,
        metric: str | Metric = "expected_distance",
        probability: LinkCalibration | None = None,
    ) -> PairScores:
        """Score given pairs of points.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2)
            Pairs of training ids; with X, of the ids in its index, or of its row numbers if it has none and is not the
            training data.
        X : matrix of features or None
            Where the points are, if not among the training rows.
        metric : {"expected_distance", "log_odds", "mean_distance", "cosine"}
            The score.
        probability : LinkCalibration or None
            From `calibrate_links`, to give the probability of a link too.

        Examples
        --------
        >>> from corrvae import CorrelatedVAE
        >>> X = np.random.default_rng(0).normal(size=(50, 4))
        >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
        >>> model.score_pairs([(0, 1), (0, 2)], metric="cosine")
        PairScores(2 pairs, cosine)
        """
        self._check_fitted()
        score = make_metric(metric, self.tau_)
        if probability is not None and not isinstance(probability, LinkCalibration):
            raise TypeError(f"probability must be a LinkCalibration, from calibrate_links, got {probability!r}")
        if probability is not None and probability.metric != score.name:
            raise ValueError(f"the calibration is of {probability.metric}, but the metric is {score.name}")
        named = self._reader().points(X, score)
        placed = place_pairs(pairs, named)
        parts = _evaluate(named, score, placed)
        probabilities = None if probability is None else probability(parts.score)
        return PairScores(parts.score, parts, probabilities, named.ids[placed], score.name)

    def rank_pairs(
        self,
        pairs: Any,
        exclude: Any = None,
        *,
        X: Any = None,
        metric: str | Metric = "expected_distance",
        progress: bool | None = None,
    ) -> PairRanks:
        """Rank each target among all points but its query: 1 plus the number of others with a score as good.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2)
            Queries and their targets, as in `score_pairs`.
        exclude : CorrelationGraph, "self" or None
            A graph leaves a query's neighbours out too; the target itself always takes part. The vertices of a graph
            without ids are the rows of X, if it has as many.
        X : matrix of features or None
            The points, if not the training rows.
        metric : {"expected_distance", "log_odds", "mean_distance", "cosine"}
            The score.
        progress : bool or None
            Show a bar; ``None``: on a terminal, once it takes long.

        Examples
        --------
        >>> from corrvae import CorrelatedVAE
        >>> X = np.random.default_rng(0).normal(size=(50, 4))
        >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
        >>> nearest = model.kneighbors(n_neighbors=1).ids[:, 0]
        >>> model.rank_pairs(list(enumerate(nearest))).ranks.max()
        np.int64(1)
        """
        self._check_fitted()
        score, reader = make_metric(metric, self.tau_), self._reader()
        named = reader.points(X, score)
        placed = place_pairs(pairs, named)
        own = np.flatnonzero(placed[:, 0] == placed[:, 1])
        if len(own):
            raise ValueError(f"pair {own[0]} ranks {named.ids[placed[own[0], 0]]!r} among its own candidates")
        left_out = reader.exclusions(named, named, "self" if exclude is None else exclude)
        found = rank(named.points, named.points, score, placed, left_out, same=True, progress=progress)
        counts = found.n_evaluated, found.n_pairs
        parts = complete_parts(named.points, named.points, score, placed, found.scores)
        return PairRanks(found.ranks, found.scores, parts, named.ids[placed], score.name, *counts)

    def match(
        self,
        left: Any,
        right: Any,
        *,
        one_to_one: bool = True,
        metric: str | Metric = "expected_distance",
        n_candidates: int | None = None,
        progress: bool | None = None,
    ) -> Matches:
        """Pair the points of two sides.

        Parameters
        ----------
        left, right : arrays of ids, or matrices of features
            The two sides, without a common point.
        one_to_one : bool
            Whether each point is in at most one pair, and the sum of scores the best; the larger side then keeps
            points without a partner. Otherwise each left point gets its nearest right one.
        metric : {"expected_distance", "log_odds", "mean_distance", "cosine"}
            The score.
        n_candidates : int or None
            Admit only so many nearest candidates of each point; ``None``: everyone, up to four million pairs, and else
            50. `Matches.exact` says whether the matching is the best of all for sure.
        progress : bool or None
            Show a bar; ``None``: on a terminal, once it takes long.

        Examples
        --------
        >>> from corrvae import CorrelatedVAE
        >>> X = np.random.default_rng(0).normal(size=(50, 4))
        >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
        >>> model.match(range(20), range(20, 50))
        Matches(20 pairs, expected_distance, one to one)
        """
        self._check_fitted()
        score, reader = make_metric(metric, self.tau_), self._reader()
        lefts, rights = reader.points(left, score), reader.points(right, score)
        refuse_repeats(lefts, "left")
        refuse_repeats(rights, "right")
        if lefts.known and rights.known:
            common = exclude_same(lefts.ids, rights.ids)
            if len(common.candidates):
                raise ValueError(f"id {rights.ids[common.candidates[0]]!r} is on both sides")
        if not len(lefts.points) or not len(rights.points):
            raise ValueError("a side without points cannot be matched")
        if one_to_one:
            sides = lefts.points, rights.points
            made = assign(*sides, score, n_candidates=n_candidates, progress=progress)
            pairs, scores, exact = made.pairs, made.scores, made.exact
        else:
            nobody = Exclusions.none(len(lefts.points))
            found = nearest(lefts.points, rights.points, score, 1, nobody, progress=progress)
            pairs = np.stack([np.arange(len(lefts.points)), found.positions[:, 0]], axis=1)
            scores, exact = found.scores[:, 0], True
        id_pairs = pair_ids(lefts.ids[pairs[:, 0]], rights.ids[pairs[:, 1]])
        parts = complete_parts(lefts.points, rights.points, score, pairs, scores)
        return Matches(id_pairs, scores, parts, score.name, one_to_one, exact)

    def calibrate_links(
        self,
        links: Any,
        X: Any = None,
        *,
        metric: str | Metric = "log_odds",
        method: Literal["logistic", "isotonic"] = "logistic",
        prior: float | None = None,
        n_unlinked: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> LinkCalibration:
        """Learn the probability of a link given a score, from links that training has not seen.

        Parameters
        ----------
        links : array of shape (n_links, 2)
            Held-out links, as pairs in `score_pairs`; an edge of the training graph is refused.
        X : matrix of features or None
            Where the points are, if not among the training rows.
        metric : {"expected_distance", "log_odds", "mean_distance", "cosine"}
            The score.
        method : {"logistic", "isotonic"}
            Log-odds linear in the score, or any monotone function; the latter wants a thousand links or more.
        prior : float or None
            The share of linked pairs among those that will be asked about; ``None``: that among all pairs of training
            rows, by the training graph and these links.
        n_unlinked : int or None
            Random pairs without a link to compare with; ``None``: ten for each link, and 1000 at least.
        random_state : int, Generator or None
            Draws these pairs.

        Examples
        --------
        >>> from corrvae import CorrelatedVAE
        >>> X = np.random.default_rng(0).normal(size=(50, 4))
        >>> model = CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X)
        >>> calibration = model.calibrate_links([(0, 1), (2, 3), (4, 5)], prior=0.01, random_state=0)
        >>> model.score_pairs([(0, 9)], metric="log_odds", probability=calibration).probabilities.shape
        (1,)
        """
        self._check_fitted()
        score = make_metric(metric, self.tau_)
        named = self._reader().points(X, score)
        placed = place_pairs(links, named)
        edges = self._edges_among(named)
        refuse_links(named.ids, placed, edges)
        linked = np.unique(np.sort(np.concatenate([placed, edges]), axis=1), axis=0)
        n_points = len(named.points)
        if prior is None:
            if self.graph_ is None or named.ids is not self.ids_:
                missing = "there is no training graph" if self.graph_ is None else "X is not the training data, and"
                rest = "to take it from" if self.graph_ is None else "the training graph does not tell it"
                raise ValueError(f"give prior, the share of linked pairs: {missing} {rest}")
            prior = len(linked) / (0.5 * n_points * (n_points - 1))
        count = max(_UNLINKED * len(placed), _FEWEST_UNLINKED) if n_unlinked is None else n_unlinked
        unlinked = random_unlinked(n_points, linked, count, np.random.default_rng(random_state))
        scores = (_evaluate(named, score, part).score for part in (placed, unlinked))
        direction = score.larger_is_better
        return calibrate(*scores, metric=score.name, larger_is_better=direction, prior=prior, method=method)

    def _check_fitted(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)

    def _edges_among(self, named: NamedPoints) -> np.ndarray:
        """Give the training edges that join points, by their ids, as positions."""
        if self.graph_ is None or not named.known:
            return np.empty((0, 2), np.int64)
        where = VertexIds.from_vertices(named.ids).find(self.ids_)[self.graph_.edges]
        return where[(where >= 0).all(axis=1)]

    def _reader(self) -> PointReader:
        learned = self.ids_, self.embedding_, self.stddev_, self.features_
        rows = TrainingRows(*learned, self.fingerprint_, self.n_features_in_)
        return PointReader(self.model_, rows, self._read, missing=self.missing == "mask")


def _evaluate(named: NamedPoints, metric: Metric, pairs: np.ndarray) -> Parts:
    """Evaluate pairs with nothing prepared for points that are in none."""
    distinct, numbered = np.unique(pairs, return_inverse=True)
    points = named.points.take(distinct)
    return evaluate_pairs(points, points, metric, numbered.reshape(-1, 2))
