"""The questions that are more than one call: new links among all pairs, pairs of a file, neighbours, groups."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from corrvae.answers.clusters import find_clusters
from corrvae.answers.likely_links import best_pairs
from corrvae.answers.naming import FilePairs, find_known
from corrvae.answers.run import Run
from corrvae.answers.tables import AnswerTable, neighbors_table, pairs_table, score_table
from corrvae.scoring.assignment import assign
from corrvae.scoring.evaluation import complete_parts
from corrvae.scoring.metrics import ExpectedDistance
from corrvae.scoring.neighbors import nearest
from corrvae.scoring.points import Exclusions

if TYPE_CHECKING:
    from corrvae.reading import Features

Say = Callable[[str], Any]


def ask_neighbors(
    run: Run,
    asked: "list[str] | Features | None",
    n_neighbors: int,
    *,
    metric: str = "expected_distance",
    candidates: "Features | None" = None,
    unlinked: bool = False,
    say: Say = print,
    progress: bool | None = None,
) -> AnswerTable:
    """Give the nearest neighbours of points, none of them its own.

    Parameters
    ----------
    run
        The run.
    asked
        Ids of training points, or of candidates; rows of a file; ``None``: all candidates.
    n_neighbors
        How many, at most as many as there are.
    metric
        The score.
    candidates
        Among whom to search; ``None``: the training points.
    unlinked
        Leave out those that the training graph links a point with.
    say
        Is told what was done otherwise than asked.
    progress
        Show a bar; ``None``: on a terminal, once it takes long.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> run = Run(CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X))
    >>> ask_neighbors(run, ["3"], 60)
    60 neighbours were asked for, but there are 49
    AnswerTable(49 rows: query, rank, neighbor, score, mean_part, variance_part, correlation_part, metric, better)
    """
    if candidates is None:
        run.require_features(metric, "--candidates")
    there = run.ids_ if candidates is None else candidates.ids
    if isinstance(asked, list):
        known = run.ids_ if there is None else run.spell(there)
        asked_for: Any = find_known(asked, known, str(run.path))
    else:
        # all candidates: their file stands for them, unless they are the training points
        asked_for = candidates if asked is None else asked
    recognised = isinstance(asked, list) or run.recognises(asked_for)
    exclude: Any = "self" if recognised and run.recognises(candidates) else None
    if unlinked:
        if run.graph_ is None:
            raise ValueError(f"{run.path} was trained without a graph: it knows no links to leave out")
        exclude = run.graph_
    found = run.kneighbors(
        asked_for, n_neighbors=n_neighbors, metric=metric, candidates=candidates, exclude=exclude, progress=progress
    )
    width = found.scores.shape[1]
    if width < n_neighbors:
        say(f"{n_neighbors:,} neighbours were asked for, but there are {width:,}")
    return neighbors_table(found)


def ask_links(
    run: Run,
    n_links: int,
    *,
    metric: str | None = None,
    features: "Features | None" = None,
    say: Say = print,
    progress: bool | None = None,
) -> AnswerTable:
    """Give the most likely links among all pairs of points that the training graph does not link.

    Parameters
    ----------
    run
        The run.
    n_links
        How many, at most as many as there are pairs.
    metric
        The score; ``None``: log-odds, and for a pairwise model the expected distance, which knows its correlations.
    features
        Points of a file; ``None``: the training points.
    say, progress
        As in `ask_neighbors`.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> run = Run(CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X))
    >>> ask_links(run, 3).columns["rank"].tolist()
    [1, 2, 3]
    """
    metric = run.link_metric if metric is None else metric
    if features is None:
        run.require_features(metric, "--features")
    score, named = run.metric(metric), run.points(features, metric)
    found = best_pairs(named.points, score, n_links, run.linked(named), progress=progress)
    if len(found.pairs) < n_links:
        say(f"{n_links:,} links were asked for, but there are {len(found.pairs):,} pairs that are not linked")
    parts = complete_parts(named.points, named.points, score, found.pairs, found.scores)
    first, second = found.pairs.T
    ids = {"rank": np.arange(1, len(first) + 1), "source": named.ids[first], "target": named.ids[second]}
    return score_table(ids, found.scores, parts, metric)


def ask_scores(
    run: Run, pairs: FilePairs, *, metric: str = "expected_distance", features: "Features | None" = None
) -> AnswerTable:
    """Score the pairs of a file, in its order.

    Parameters
    ----------
    run
        The run.
    pairs
        The pairs.
    metric
        The score.
    features
        Where the points are; ``None``: among the training points.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> run = Run(CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X))
    >>> len(ask_scores(run, FilePairs(np.array([["3", "4"]], object), "line {}".format)))
    1
    """
    if features is None:
        run.require_features(metric, "--features")
    if features is None or features.ids is not None:
        known = run.ids_ if features is None or features.ids is None else run.spell(features.ids)
        of = str(run.path) if features is None else "the file of features"
    else:
        known, of = np.arange(features.n_rows), "the file of features"
    flat = find_known(pairs.ids.ravel(), known, of, lambda position: pairs.place(position // 2))
    return pairs_table(run.score_pairs(flat.reshape(-1, 2), features, metric=metric))


def ask_matches(
    run: Run,
    left: "Features",
    right: "Features",
    *,
    one_to_one: bool = False,
    metric: str = "expected_distance",
    say: Say = print,
    progress: bool | None = None,
) -> AnswerTable:
    """Match the points of two files.

    Parameters
    ----------
    run
        The run.
    left, right
        The files. Each has ids of its own: the same id in both says nothing.
    one_to_one
        Whether no point is in two pairs.
    metric
        The score.
    say, progress
        As in `ask_neighbors`.
    """
    score = run.metric(metric)
    lefts, rights = run.points(left, metric), run.points(right, metric)
    sides = lefts.points, rights.points
    if not len(sides[0]) or not len(sides[1]):
        raise ValueError("a file without points cannot be matched")
    if one_to_one:
        made = assign(*sides, score, progress=progress)
        pairs, scores, exact = made.pairs, made.scores, made.exact
    else:
        found = nearest(*sides, score, 1, Exclusions.none(len(sides[0])), progress=progress)
        pairs = np.stack([np.arange(len(sides[0])), found.positions[:, 0]], axis=1)
        scores, exact = found.scores[:, 0], True
    if not exact:
        say("there are too many pairs to look at all: the matching is the best among each point's nearest candidates")
    parts = complete_parts(*sides, score, pairs, scores)
    ids = {"left": lefts.ids[pairs[:, 0]], "right": rights.ids[pairs[:, 1]]}
    return score_table(ids, scores, parts, metric, {"one_to_one": one_to_one, "exact": exact})


def ask_clusters(
    run: Run,
    n_clusters: int,
    *,
    method: str = "auto",
    features: "Features | None" = None,
    seed: int = 0,
    say: Say = print,
    progress: bool | None = None,
) -> AnswerTable:
    """Divide points into groups.

    Parameters
    ----------
    run
        The run.
    n_clusters
        How many, at most as many as there are points.
    method, seed
        As in `find_clusters`.
    features
        Points of a file; ``None``: the training points.
    say, progress
        As in `ask_neighbors`.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> run = Run(CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X))
    >>> ask_clusters(run, 2, method="kmeans").facts["route"]
    'k-means of the means'
    """
    if features is None and method != "kmeans":
        run.require_features(ExpectedDistance.name, "--features")
    # k-means looks at means alone, so correlations need not be prepared
    named = run.points(features, "mean_distance" if method == "kmeans" else ExpectedDistance.name)
    if n_clusters > len(named.points) > 0:
        say(f"{n_clusters:,} groups were asked for, but there are {len(named.points):,} points")
        n_clusters = len(named.points)
    found = find_clusters(named.points, n_clusters, method=method, seed=seed, progress=progress)
    facts = {"method": found.method, "route": found.route, "sizes": found.sizes.tolist()}
    return AnswerTable({"id": named.ids, "cluster": found.labels}, facts)
