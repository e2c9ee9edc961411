"""What the explorer tells of points and groups: neighbours, likely links, typical features."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from corrvae.estimator import CorrelatedVAE
from corrvae.plots.facts import link_metric, link_probability
from corrvae.scoring import nearest

# Neighbours and links that are shown, and neighbours among which the links are looked for.
N_NEIGHBORS, N_LINKS, _N_NEAREST = 12, 6, 40
N_FEATURES = 6
# Rows that make the average.
_MAX_AVERAGED = 20_000
_NUMBERS = 2**24  # of decoded features at a time

Expected = Float[np.ndarray, "rows features"]
# Some features of each row, and a number for each.
Shown = tuple[Int[np.ndarray, "rows shown"], Float[np.ndarray, "rows shown"]]


@final
@dataclass(frozen=True, eq=False)
class Near:
    """Neighbours and likely links of some points, best first; -1 where there are no more."""

    neighbors: Int[np.ndarray, "points k"]
    scores: Float[np.ndarray, "points k"]
    links: Int[np.ndarray, "points l"]
    link_scores: Float[np.ndarray, "points l"]


@final
class Guide:
    """Answers about the training points of a fitted model, by position.

    `probability` turns the `metric` into the probability of a link, if there are enough links to learn it from; they
    are `held_out` if training has not seen them.
    """

    def __init__(self, model: CorrelatedVAE, *, random_state: int = 0) -> None:
        self.model, self.posterior = model, model.posterior()
        self.metric = link_metric(model)
        generator = np.random.default_rng(random_state)
        graph, n_points = model.graph_, len(model.ids_)
        self._linked = sparse.csr_array((n_points, n_points)) if graph is None else graph.to_scipy().tocsr()
        self.probability, self.held_out = link_probability(model, generator)
        shown = np.arange(n_points)
        if n_points > _MAX_AVERAGED:
            shown = np.sort(generator.choice(n_points, _MAX_AVERAGED, replace=False))
        self._average = self.expected(shown).mean(axis=0)

    def near(self, rows: Int[np.ndarray, " rows"] | None = None, *, progress: bool | None = None) -> Near:
        """Return the neighbours and the likely links of some points, or of all."""
        n_points = len(self.posterior)
        queries = self.posterior if rows is None else self.posterior.take(rows)
        places = np.arange(n_points) if rows is None else rows
        oneself = sparse.csr_array((np.ones(len(places)), (np.arange(len(places)), places)), (len(places), n_points))
        width = max(1, min(_N_NEAREST, n_points - 1))
        found, scores = nearest(queries, self.posterior, self.metric, width, exclude=oneself, progress=progress)
        linked = (self._linked[places[:, None], np.maximum(found, 0)].toarray() != 0) & (found >= 0)
        order = np.argsort(linked | (found < 0), axis=1, kind="stable")[:, :N_LINKS]
        links = np.where(np.take_along_axis(linked, order, axis=1), -1, np.take_along_axis(found, order, axis=1))
        return Near(found[:, :N_NEIGHBORS], scores[:, :N_NEIGHBORS], links, np.take_along_axis(scores, order, axis=1))

    def correlation(self, pairs: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, " pairs"]:
        """Return the correlation of pairs of positions, averaged over the dimensions."""
        ids = self.posterior.ids[pairs]
        pieces = [
            self.posterior.correlation(ids[begin : begin + 4096]).mean(axis=1) for begin in range(0, len(ids), 4096)
        ]
        return np.concatenate([np.empty(0), *pieces])

    def expected(self, rows: Int[np.ndarray, " rows"]) -> Expected:
        """Return the features that the decoder expects of points; of real numbers, in standard deviations."""
        network, total = self.model.model_, np.full(len(rows), self.model.total_)
        return network.decode(self.model.embedding_[rows], total, network.likelihood.mean)

    def typical(self, rows: Int[np.ndarray, " rows"]) -> Shown:
        """Return the features that tell each point most from the average, and by how much."""
        step = max(1, _NUMBERS // len(self._average))
        blocks = [rows[begin : begin + step] for begin in range(0, len(rows), step)]
        found = [self.strongest(self.expected(block)) for block in blocks]
        return np.concatenate([block[0] for block in found]), np.concatenate([block[1] for block in found])

    def strongest(self, expected: Expected) -> Shown:
        """Return the features that tell rows most from the average, strongest first, and by how much.

        Of features that are counts or yes and no these are the features j with the largest e_j log(e_j / a_j), where e
        is expected and a average, and by how much is e_j / a_j. Of real numbers it is |e_j - a_j|, and e_j - a_j.
        """
        average = self._average
        if self.model.model_.likelihood.non_negative:
            amount = expected / np.maximum(average, 1e-30)
            strength = expected * np.log(np.maximum(amount, 1e-30))
        else:
            amount = expected - average
            strength = np.abs(amount)
        width = min(N_FEATURES, len(average))
        best = np.argpartition(-strength, width - 1, axis=1)[:, :width]
        order = np.argsort(-np.take_along_axis(strength, best, axis=1), axis=1, kind="stable")
        best = np.take_along_axis(best, order, axis=1)
        return best, np.take_along_axis(amount, best, axis=1)

    def recommended(self, rows: Int[np.ndarray, " rows"]) -> Shown | None:
        """Return features to recommend, as `CorrelatedVAE.recommend`; -1 where there are no more.

        None without the training features, and where these are real numbers.
        """
        model = self.model
        if model.features_ is None or not model.model_.likelihood.non_negative:
            return None
        names, scores = model.recommend(ids=model.ids_[rows], k=N_FEATURES)
        place = {name: number for number, name in enumerate(model.feature_names_.tolist())}
        columns = np.array([place.get(name, -1) for name in names.ravel().tolist()], np.int64)
        return columns.reshape(scores.shape), scores

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, or their numbers."""
        named = hasattr(self.model, "feature_names_in_")
        return [str(name) if named else f"feature {name}" for name in self.model.feature_names_.tolist()]
