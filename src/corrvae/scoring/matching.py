"""Matching of two sides: partners within a caliper and among like points, and what matched pairs say of a cause."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Int, Shaped
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching
from sklearn.linear_model import LinearRegression

from corrvae.graphs.ids import VertexIds, as_array, id_array, is_missing, object_array
from corrvae.io import Features
from corrvae.model.posterior import Posterior
from corrvae.scoring.effects import Balance, Effect, as_numbers, average_effect, compare
from corrvae.scoring.metrics import Metric, MetricLike, make_metric
from corrvae.scoring.results import OfPairs, score_table
from corrvae.scoring.search import Pairs, Scores, nearest, parts, score, score_matrix

# Up to here all pairs are scored (the assignment of 2,000 x 2,000 takes about a second); beyond, nearest candidates.
_MOST_PAIRS, _CANDIDATES = 4_000_000, 50
# Share of the largest score that float32 may be wrong by.
_ROUNDING = 1e-5
# Right points that the variance of the outcome at another one is estimated from.
_TWINS = 3
# Right points whose distances to each other say how near is near, and points that a caliper in deviations is read from.
_SAMPLE = 2000

NO_LIKE = "no candidate with the same exact_on values"
OUT_OF_REACH = "no partner within the caliper"
TAKEN = "its possible partners have others"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Matches(OfPairs):
    """Pairs of a left and a right point.

    In studies of causes the left points are the treated ones and the right points the controls.

    Attributes
    ----------
    id_pairs
        The ids of the left and of the right point: in the order of the left points, best first.
    scores
        Their scores.
    margins
        How much better a pair's score is than that of the best right point that is no partner of the left one, with the
        same `exact_on` values: negative if another would have been better. Not a number if there is no other.
    parts, metric, larger_is_better
        As in `Neighbors`.
    caliper
        The worst score that a pair may have, in the units of the metric; ``None``: any.
    ratio, replace
        Right points for each left one, and whether one may be used again.
    exact
        Whether no other matching is better: more pairs, then more left points with a partner, then a better sum of
        scores. If not, it is the best among each point's nearest candidates.
    unmatched
        The ids of points without a partner, left and right, and why.
    """

    margins: Scores
    caliper: float | None
    ratio: int
    replace: bool
    exact: bool
    unmatched: dict[Any, str]
    _sides: "_Sides"
    _pairs: Pairs

    @property
    def left_ids(self) -> Shaped[np.ndarray, " left"]:
        """All left points."""
        return self._sides.left.points.ids

    @property
    def right_ids(self) -> Shaped[np.ndarray, " right"]:
        """All right points."""
        return self._sides.right.points.ids

    @cached_property
    def weights(self) -> dict[Any, float]:
        """The weight of every point of both sides, by id.

        1 for a left point with partners, which share 1 among them (summed over the left points that they are partners
        of), and 0 for a point without a partner. Under these weights both sides have the same total.
        """
        ids = [*self.left_ids.tolist(), *self.right_ids.tolist()]
        return dict(zip(ids, np.concatenate(self._weights).tolist(), strict=True))

    @cached_property
    def common_support(self) -> Bool[np.ndarray, " left"]:
        """Whether each left point lies where right points are, in the order of `left_ids`.

        It does if its nearest right point is as near as that of 99 in 100 right points (of 2,000, if there are more),
        among points with the same `exact_on` values.
        """
        left, right, metric = self._sides.left, self._sides.right, self._sides.metric
        best = metric.sign * _nearest(left, right, metric, 1)[1][:, 0]
        some = _sample(len(right.points))
        among_right = metric.sign * _nearest(right.take(some), right, metric, 1, own=some)[1][:, 0]
        known = among_right[~np.isnan(among_right)]
        return best <= (np.quantile(known, 0.99) if len(known) else np.inf)

    def balance(self, X: Any) -> Balance:
        """Return how alike the two sides are in covariates, before and after matching.

        Parameters
        ----------
        X : data frame, matrix or mapping
            The covariates: a frame with ids as its index, `corrvae.io.Features`, a mapping of ids to values, or an
            array with the rows of the `X` that was matched (of training, if there was none). It may be sparse.
        """
        left, right, names = self._sides.look_up(X, "X")
        return compare(as_numbers(left, "X"), as_numbers(right, "X"), *self._weights, names)

    def effect(self, outcome: Any, *, covariates: Any = None, level: float = 0.95) -> Effect:
        """Return the average effect of being a left point, on the left points that have a partner.

        The interval holds if, given what was matched on, the sides would differ in nothing else that moves the outcome.

        Parameters
        ----------
        outcome : series, array or mapping
            The outcome of every point, as the covariates of `balance`.
        covariates : "embedding", data frame, matrix, mapping or None
            Take away what differs between partners in these: the bias correction of Abadie and Imbens (2011), by least
            squares on the right partners. "embedding" is the means that were matched on.
        level : float
            Level of the interval.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        if not len(self):
            raise ValueError("no point has a partner, so there is no effect to estimate")
        sides, pairs = self._sides, self._pairs
        found = [as_numbers(part, "outcome") for part in sides.look_up(outcome, "outcome")[:2]]
        if found[0].shape[1] != 1:
            raise ValueError(f"outcome must have one value for each point, not {found[0].shape[1]}")
        left, right = found[0][:, 0], found[1][:, 0]
        reused = np.flatnonzero(np.bincount(pairs[:, 1]) > 1)
        twins = np.full((len(right), _TWINS), -1)
        twins[reused] = _nearest(sides.right.take(reused), sides.right, sides.metric, _TWINS, own=reused)[0]
        used = np.union1d(pairs[:, 1], twins[twins >= 0])
        for side, positions, values in ((sides.left, np.unique(pairs[:, 0]), left), (sides.right, used, right)):
            unknown = positions[~np.isfinite(values[positions])]
            if len(unknown):
                raise ValueError(f"outcome of id {side.points.ids[unknown[:1]].tolist()[0]!r} is not a finite number")
        n_adjusted = 0
        if covariates is not None:
            found: Any = sides.left.points.mean, sides.right.points.mean
            if not (isinstance(covariates, str) and covariates == "embedding"):
                found = sides.look_up(covariates, "covariates")[:2]
            dense = (part.toarray() if issparse(part) else part for part in found)
            of_left, of_right = (as_numbers(part, "covariates") for part in dense)
            weights, n_adjusted = self._weights[1], of_left.shape[1]
            if (weights > 0).sum() < n_adjusted + 2:
                raise ValueError(
                    f"{n_adjusted:,} covariates are too many for {(weights > 0).sum():,} right points; pass fewer"
                )
            used = weights > 0
            expected = LinearRegression().fit(of_right[used], right[used], weights[used])
            left, right = left - expected.predict(of_left), right - expected.predict(of_right)
        return average_effect(left, right, pairs, twins, level=level, n_adjusted=n_adjusted)

    def to_table(self) -> pa.Table:
        """Return a row for each pair."""
        columns = {"left": self.id_pairs[:, 0], "right": self.id_pairs[:, 1], "margin": self.margins}
        return score_table(columns, self)

    @cached_property
    def _weights(self) -> tuple[Float[np.ndarray, " left"], Float[np.ndarray, " right"]]:
        n_partners = np.bincount(self._pairs[:, 0], minlength=len(self._sides.left.points))
        shares = 1.0 / n_partners[self._pairs[:, 0]]
        shared = np.bincount(self._pairs[:, 1], shares, len(self._sides.right.points))
        return (n_partners > 0).astype(float), shared.astype(float)  # of no pairs it counts in integers

    def __repr__(self) -> str:
        return super().__repr__().removesuffix(")") + (", one to one)" if self.ratio == 1 and not self.replace else ")")


def match(
    points: Posterior,
    left: Any,
    right: Any,
    metric: MetricLike,
    *,
    caliper: float | str | None = None,
    ratio: int = 1,
    replace: bool = False,
    exact_on: Any = None,
    n_candidates: int | None = None,
    progress: bool | None = None,
) -> Matches:
    """Pair each left point with right ones; parameters are those of `corrvae.CorrelatedVAE.match`."""
    metric = make_metric(metric)
    if ratio < 1:
        raise ValueError(f"ratio must be a positive number of right points, got {ratio}")
    sides = _Sides.of(points, left, right, exact_on, metric)
    limit = _caliper(sides, caliper)
    worst = np.inf if limit is None else metric.sign * limit
    near, near_scores = _nearest(sides.left, sides.right, metric, ratio + 1, progress=progress)
    if replace:
        chosen = (near >= 0) & (metric.sign * near_scores <= worst)
        chosen[:, ratio] = False
        pairs, scores, exact = np.stack([np.nonzero(chosen)[0], near[chosen]], axis=1), near_scores[chosen], True
    else:
        options: dict[str, Any] = {"caliper": limit, "ratio": ratio, "n_candidates": n_candidates, "progress": progress}
        pairs, scores, exact = np.empty((0, 2), np.int64), np.empty(0), True
        for rows, columns in _groups(sides.left, sides.right):
            one, other = sides.left.take(rows).points, sides.right.take(columns).points
            found, costs, is_best = assign(one, other, metric, **options)
            pairs = np.concatenate([pairs, np.stack([rows[found[:, 0]], columns[found[:, 1]]], axis=1)])
            scores, exact = np.concatenate([scores, costs]), exact and is_best
        order = np.lexsort((pairs[:, 1], metric.sign * scores, pairs[:, 0]))
        pairs, scores = pairs[order], scores[order]
    # The best right point that is no partner is among the `ratio + 1` nearest.
    place = np.array([len(sides.right.points), 1])
    is_other = ~np.isin(np.arange(len(near))[:, None] * place[0] + near, pairs @ place) & (near >= 0)
    others = np.where(is_other, metric.sign * near_scores, np.inf).min(axis=1)[pairs[:, 0]]
    ids = [side.points.ids[pairs[:, k]] for k, side in enumerate((sides.left, sides.right))]
    return Matches(
        id_pairs=np.stack(ids, axis=1),
        scores=scores,
        margins=np.where(np.isfinite(others), others - metric.sign * scores, np.nan),
        parts=parts(sides.left.points, sides.right.points, metric, pairs, scores),
        metric=metric.name,
        larger_is_better=metric.larger_is_better,
        caliper=limit,
        ratio=ratio,
        replace=replace,
        exact=exact,
        unmatched=_reasons(sides.left, sides.right, pairs[:, 0], metric, worst)
        | _reasons(sides.right, sides.left, pairs[:, 1], metric, worst),
        _sides=sides,
        _pairs=pairs,
    )


def _reasons(
    side: "_Side", other: "_Side", matched: Int[np.ndarray, " pairs"], metric: Metric, worst: float
) -> dict[Any, str]:
    """Return why points of a side have no partner, by their ids."""
    alone = side.take(np.setdiff1d(np.arange(len(side.points)), matched))
    best = metric.sign * _nearest(alone, other, metric, 1)[1][:, 0]
    why = np.where(np.isnan(best), NO_LIKE, np.where(best > worst, OUT_OF_REACH, TAKEN))
    return dict(zip(alone.points.ids.tolist(), why.tolist(), strict=True))


def _caliper(sides: "_Sides", caliper: float | str | None) -> float | None:
    """Return a caliper in the units of the metric.

    "0.5sd" is the mean score of points with themselves, moved by half a standard deviation in every dimension. The
    deviation is the root of the mean variance of both sides.
    """
    if caliper is None or (not isinstance(caliper, str) and np.isfinite(caliper)):
        return None if caliper is None else float(caliper)
    width = str(caliper).removesuffix("sd")
    if not (str(caliper).endswith("sd") and width.replace(".", "", 1).isdigit()):
        raise ValueError(f"caliper must be a score, or standard deviations as in '0.5sd', got {caliper!r}")
    both = sides.left.points, sides.right.points
    step = float(width) * np.sqrt((both[0].mean.var(axis=0) + both[1].mean.var(axis=0)) / 2)
    scores = np.empty(0)
    for side in both:
        some = _sample(len(side))
        pairs = np.repeat(np.arange(len(some))[:, None], 2, axis=1)
        stay = Posterior(side.mean[some], side.stddev[some], tau=side.tau)
        for moved in (stay.mean - step, stay.mean + step):
            moved = Posterior(moved, stay.stddev, tau=side.tau)
            scores = np.append(scores, score(stay, moved, sides.metric, pairs))
    return float(scores.mean())


def _sample(size: int) -> Int[np.ndarray, " some"]:
    """Return positions, evenly spaced: all, if they are not too many."""
    return np.linspace(0, size - 1, min(size, _SAMPLE)).astype(np.int64)


@final
@dataclass(frozen=True, eq=False)
class _Side:
    """Points and the kind of each; only points of one kind may be partners."""

    points: Posterior
    kinds: Int[np.ndarray, " points"]

    def take(self, positions: Int[np.ndarray, " taken"]) -> "_Side":
        """Return some points; `positions` ascend, so that all of them are the side itself."""
        if len(positions) == len(self.points):
            return self
        return _Side(self.points.take(positions), self.kinds[positions])


@final
@dataclass(frozen=True, eq=False)
class _Sides:
    """Two sides, the positions of their points in the table that they are from, and how they are compared."""

    left: _Side
    right: _Side
    places: tuple[Int[np.ndarray, " left"], Int[np.ndarray, " right"]]
    rows: Shaped[np.ndarray, " rows"]
    metric: Metric

    @classmethod
    def of(cls, points: Posterior, left: Any, right: Any, exact_on: Any, metric: Metric) -> "_Sides":
        """Return two sides by the ids of their points."""
        places = points.distinct_positions(left, "left"), points.distinct_positions(right, "right")
        common = np.intersect1d(*places)
        if len(common):
            raise ValueError(f"id {points.ids.tolist()[common[0]]!r} is on both sides")
        if not (len(places[0]) and len(places[1])):
            raise ValueError("a side without points cannot be matched")
        one, other = (_Side(points.take(place), np.zeros(len(place), np.int64)) for place in places)
        sides = cls(one, other, places, points.ids, metric)
        return sides if exact_on is None else sides._of_kinds(exact_on)

    def _of_kinds(self, exact_on: Any) -> "_Sides":
        """Return the sides with points of equal values as one kind."""
        codes: dict[Any, int] = {}
        sides = []
        for side, values in zip((self.left, self.right), self.look_up(exact_on, "exact_on")[:2], strict=True):
            rows = (values.toarray() if issparse(values) else values).reshape(len(side.points), -1).tolist()
            unknown = next((place for place, row in enumerate(rows) if any(map(is_missing, row))), None)
            if unknown is not None:
                raise ValueError(f"exact_on has no value for id {side.points.ids.tolist()[unknown]!r}")
            sides.append(_Side(side.points, np.array([codes.setdefault(tuple(row), len(codes)) for row in rows])))
        return _Sides(sides[0], sides[1], self.places, self.rows, self.metric)

    def look_up(self, values: Any, name: str) -> tuple[Any, Any, list[str] | None]:
        """Return the rows of a table that belong to the left and to the right points, and names of its columns."""
        names = ids = None
        if isinstance(values, Features):
            values, ids, names = values.matrix, values.ids, values.names
        elif isinstance(values, Mapping):
            values, ids = object_array(list(values.values())), list(values)
        elif hasattr(values, "index") and hasattr(values, "to_numpy"):
            columns = getattr(values, "columns", [getattr(values, "name", None) or name])
            values, ids, names = values.to_numpy(), values.index, [str(column) for column in columns]
        if not issparse(values):
            values = np.asarray(values) if (array := as_array(values)) is None else array
        if ids is None:
            if values.shape[0] != len(self.rows):
                raise ValueError(
                    f"{name} has {values.shape[0]:,} rows, but there are {len(self.rows):,} points; pass a data frame "
                    "with their ids as its index, or a row for each"
                )
            return (*(values[place] for place in self.places), names)
        known = VertexIds.from_vertices(id_array(ids, name))
        found = [known.find(side.points.ids) for side in (self.left, self.right)]
        for side, place in zip((self.left, self.right), found, strict=True):
            if (place < 0).any():
                raise ValueError(f"{name} has no value for id {side.points.ids[place < 0].tolist()[0]!r}")
        return (*(values[place] for place in found), names)


def _groups(one: _Side, other: _Side) -> Iterator[tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " columns"]]]:
    """Yield the ascending positions of the points of each kind that is on both sides."""
    kinds, orders = (one.kinds, other.kinds), [np.argsort(side.kinds, kind="stable") for side in (one, other)]
    for kind in np.intersect1d(*kinds):
        bounds = [np.searchsorted(k[order], [kind, kind + 1]) for k, order in zip(kinds, orders, strict=True)]
        yield orders[0][slice(*bounds[0])], orders[1][slice(*bounds[1])]


def _nearest(
    queries: _Side,
    candidates: _Side,
    metric: Metric,
    k: int,
    own: Int[np.ndarray, " queries"] | None = None,
    progress: bool | None = None,
) -> tuple[Int[np.ndarray, "queries k"], Float[np.ndarray, "queries k"]]:
    """Find the k best candidates of each query's kind; `own` is a candidate that each query leaves out."""
    positions, scores = np.full((len(queries.points), k), -1), np.full((len(queries.points), k), np.nan)
    for rows, columns in _groups(queries, candidates):
        exclude = None
        if own is not None:
            entries = np.ones(len(rows)), (np.arange(len(rows)), np.searchsorted(columns, own[rows]))
            exclude = csr_array(entries, shape=(len(rows), len(columns)))
        some, others = queries.take(rows).points, candidates.take(columns).points
        found, scores[rows] = nearest(some, others, metric, k, exclude=exclude, progress=progress)
        positions[rows] = np.where(found >= 0, columns[found], -1)
    return positions, scores


def assign(
    left: Posterior,
    right: Posterior,
    metric: MetricLike,
    *,
    caliper: float | None = None,
    ratio: int = 1,
    n_candidates: int | None = None,
    progress: bool | None = None,
) -> tuple[Pairs, Scores, bool]:
    """Match points of two sides, so that no right point is in two pairs and no left one in more than `ratio`.

    As many pairs as possible; then as many left points with a partner as possible; then the best sum of scores.

    With few pairs all of them are compared. With many, or if `n_candidates` is given, only the best candidates of each
    point are, from either side, and points for which these leave no partner are compared among each other.

    Returns positions of left and right points in the order of the left ones, their scores, and whether no other
    matching is better (up to float32 rounding). That is so if all pairs were compared that the caliper allows, or if
    there are as many candidates as points on the smaller side.
    """
    metric = make_metric(metric)
    if n_candidates is not None and n_candidates < 1:
        raise ValueError(f"n_candidates must be positive, got {n_candidates}")
    worst = np.inf if caliper is None else metric.sign * caliper
    # A left point stands for itself as often as it may have a partner.
    copies = left if ratio == 1 else left.take(np.repeat(np.arange(len(left)), ratio))
    shape = len(copies), len(right)
    if n_candidates is None and shape[0] * shape[1] > _MOST_PAIRS:
        n_candidates = _CANDIDATES
    if n_candidates is None or n_candidates >= max(shape):
        costs = metric.sign * score_matrix(copies, right, metric, progress=progress).astype(np.float64)
        near = np.argwhere(np.abs(costs - worst) < _ROUNDING * np.abs(costs).max())
        costs[tuple(near.T)] = metric.sign * score(copies, right, metric, near)
        allowed = np.nonzero(costs <= worst)
        gains = np.zeros(shape)
        gains[allowed] = _gains(allowed[0], costs[allowed], ratio, min(shape))
        pairs, exact = np.stack(linear_sum_assignment(gains, maximize=True), axis=1), True
        pairs = pairs[gains[tuple(pairs.T)] > 0]
    else:
        allowed, costs, exact = _candidate_pairs(copies, right, metric, worst, n_candidates, progress)
        # A point whose partner is none of its `min(shape)` best could take one of those: not all of them are taken.
        exact |= n_candidates >= min(shape) and (ratio == 1 or shape[0] <= shape[1])
        gains = _gains(allowed[0], costs, ratio, min(shape))
        # Every left point may also stay alone, which gains nothing. A stored cost must not be 0: all are shifted alike.
        alone = np.arange(shape[0])
        places = np.concatenate([allowed[0], alone]), np.concatenate([allowed[1], shape[1] + alone])
        costs = 1.0 + gains.max(initial=0.0) - np.concatenate([gains, np.zeros(shape[0])])
        graph = csr_array((costs, places), shape=(shape[0], shape[1] + shape[0]))
        pairs = np.stack(min_weight_full_bipartite_matching(graph), axis=1).astype(np.int64)
        pairs = pairs[pairs[:, 1] < shape[1]]
        pairs = pairs[np.argsort(pairs[:, 0])]
    pairs[:, 0] //= ratio
    return pairs, score(left, right, metric, pairs), exact


def _gains(rows: Int[np.ndarray, " pairs"], costs: Scores, ratio: int, n_pairs: int) -> Scores:
    """Return what pairs gain, so that the largest sum has the most pairs, then the most left points, then least cost.

    No difference of the costs of `n_pairs` pairs outweighs a further pair, or a further left point that has a partner.
    """
    low, high = costs.min(initial=np.inf), costs.max(initial=-np.inf)
    worth = (n_pairs + 1) * ((high - low) or 1.0)
    return (high - costs) + worth * (1.0 + (rows % ratio == 0))


def _candidate_pairs(
    left: Posterior, right: Posterior, metric: Metric, worst: float, n_candidates: int, progress: bool | None
) -> tuple[tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]], Scores, bool]:
    """Return each point's best candidates and their costs, and whether these are all pairs that may be.

    There are so many more pairs that as many points as possible have a partner.
    """
    shape = len(left), len(right)
    found, is_cut = [], []
    for one, other, turned in ((left, right, False), (right, left, True)):
        # The larger side brings about as many pairs as the smaller one.
        k = min(-(-n_candidates * min(shape) // len(one)), len(other))
        positions, scores = nearest(one, other, metric, k, progress=progress)
        costs = metric.sign * scores
        rows = np.repeat(np.arange(len(one)), k)
        found.append((*((positions.ravel(), rows) if turned else (rows, positions.ravel())), costs.ravel()))
        is_cut.append((costs[:, -1] <= worst) & (k < len(other)))
    places, costs = _distinct(found, shape[1], worst)
    partner = maximum_bipartite_matching(csr_array((np.ones(len(costs)), places), shape=shape), perm_type="column")
    taken = partner[partner >= 0]
    alone = np.flatnonzero((partner < 0) & is_cut[0])
    free = np.setdiff1d(np.flatnonzero(is_cut[1]), taken)
    if len(taken) < min(shape) and len(alone) and len(free):
        if len(alone) * len(free) > _MOST_PAIRS:
            more = min(2 * n_candidates, min(shape))
            return _candidate_pairs(left, right, metric, worst, more, progress)
        scores = score_matrix(left.take(alone), right.take(free), metric)
        costs = metric.sign * scores.ravel().astype(np.float64)
        places, costs = _distinct(
            [*found, (np.repeat(alone, len(free)), np.tile(free, len(alone)), costs)], shape[1], worst
        )
    return places, costs, not (is_cut[0].any() and is_cut[1].any())


def _distinct(
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]], n_columns: int, worst: float
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return pairs that are not too costly, each once."""
    rows, columns, costs = (np.concatenate(part) for part in zip(*found, strict=True))
    _, first = np.unique(rows * n_columns + columns, return_index=True)
    first = first[costs[first] <= worst]
    return (rows[first], columns[first]), costs[first]
