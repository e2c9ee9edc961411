"""What there is to see of a trained run, cut down to what a page can show."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int, Shaped

from corrvae.answers.clusters import find_clusters
from corrvae.answers.run import Run
from corrvae.graphs import CorrelationGraph
from corrvae.pictures.run_colours import Colouring, colour_by_column, colour_by_labels
from corrvae.scoring.calibration import calibrate, random_unlinked
from corrvae.scoring.evaluation import evaluate_pairs
from corrvae.scoring.metrics import LogOdds, Metric
from corrvae.scoring.points import Points

MOST_POINTS, MOST_EDGES, _MOST_PAIRS = 20_000, 20_000, 5000
# Links that training has not seen which are worth looking at on their own, and links that a calibration needs.
_FEWEST_HELD_OUT, _FEWEST_CALIBRATED = 30, 40
_BINS, _LISTED = 10, 10


@final
@dataclass(frozen=True, eq=False)
class LinkScores:
    """Scores of linked pairs and of random ones that are not.

    Attributes
    ----------
    linked, unlinked, metric
        The scores, and their name.
    held_out
        Whether the links are ones that training has not seen.
    predicted, observed, counts
        Probabilities by a calibration that was learned from half of the pairs, the share of links among the other half,
        and pairs, in bins of equal size; empty where there are too few links.
    """

    linked: Float[np.ndarray, " linked"]
    unlinked: Float[np.ndarray, " unlinked"]
    metric: str
    held_out: bool
    predicted: Float[np.ndarray, " bins"]
    observed: Float[np.ndarray, " bins"]
    counts: Int[np.ndarray, " bins"]


@final
@dataclass(frozen=True, eq=False)
class Certainty:
    """How certain the places of points are.

    Attributes
    ----------
    spread
        The root of each point's mean variance.
    most, least
        The most certain points, the most certain first; and the least certain, the least certain first.
    """

    spread: Float[np.ndarray, " points"]
    most: Int[np.ndarray, " most"]
    least: Int[np.ndarray, " least"]


@final
@dataclass(frozen=True, eq=False)
class RunView:
    """What is shown of a run.

    Attributes
    ----------
    run
        The run.
    shown
        The points on the map.
    places, edges, colouring
        Where they are, which of them are linked (as positions in `shown`), and their groups.
    projection
        How the map was made.
    share
        The share of the variance of the means that the map shows, if that is known.
    links
        Scores of pairs; ``None`` without links.
    certainty
        Of all points.
    """

    run: Run
    shown: Int[np.ndarray, " shown"]
    places: Float[np.ndarray, "shown 2"]
    edges: Int[np.ndarray, "edges 2"]
    colouring: Colouring
    projection: str
    share: float | None
    links: LinkScores | None
    certainty: Certainty


def view_run(
    run: Run,
    *,
    projection: str = "pca",
    n_clusters: int = 5,
    color: str | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> RunView:
    """Look at a run.

    Parameters
    ----------
    run
        The run.
    projection
        "pca", or "umap" if that is installed.
    n_clusters
        Groups that the map is coloured by.
    color
        A column to colour by instead, as FILE:COLUMN.
    seed
        Of what is drawn at random.
    progress
        Show a bar; ``None``: on a terminal, once it takes long.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> run = Run(CorrelatedVAE(3, hidden=(8,), max_epochs=1, random_state=0).fit(X))
    >>> view_run(run, n_clusters=2).places.shape
    (50, 2)
    """
    generator = np.random.default_rng(seed)
    n_points = len(run.ids_)
    shown = np.arange(n_points)
    if n_points > MOST_POINTS:
        shown = np.sort(generator.choice(n_points, MOST_POINTS, replace=False))
    edges = np.empty((0, 2), np.int64) if run.graph_ is None else run.graph_[shown].edges
    if len(edges) > MOST_EDGES:
        edges = edges[np.sort(generator.choice(len(edges), MOST_EDGES, replace=False))]
    colouring = _colours(run, n_clusters, seed, progress) if color is None else colour_by_column(color, run.ids_)
    colouring = Colouring(colouring.title, colouring.groups[shown], colouring.names)
    places, share = _project(run.embedding_, shown, projection, seed)
    links = None if run.graph_ is None or not run.graph_.n_edges else _link_scores(run, run.graph_, generator)
    return RunView(run, shown, places, edges, colouring, projection, share, links, _certainty(run.stddev_))


def _colours(run: Run, n_clusters: int, seed: int, progress: bool | None) -> Colouring:
    # without stored features there are no correlations to be had, but means and deviations are there
    metric = LogOdds.name if run.is_pairwise and run.features_ is None else "expected_distance"
    points = run.points(None, metric).points
    found = find_clusters(points, min(n_clusters, len(points)), seed=seed, progress=progress)
    return colour_by_labels(found.labels, "cluster")


def _project(
    embedding: Float[np.ndarray, "points dim"], shown: Int[np.ndarray, " shown"], projection: str, seed: int
) -> tuple[Float[np.ndarray, "shown 2"], float | None]:
    if projection == "umap":
        try:
            from umap import UMAP  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise ValueError("the map by UMAP needs the package umap-learn: pip install umap-learn") from error
        return np.asarray(UMAP(n_components=2, random_state=seed).fit_transform(embedding[shown]), float), None
    if projection != "pca":
        raise ValueError(f'the map must be made by "pca" or "umap", not {projection!r}')
    return principal_plane(embedding, shown)


def principal_plane(
    embedding: Float[np.ndarray, "points dim"], shown: Int[np.ndarray, " shown"]
) -> tuple[Float[np.ndarray, "shown 2"], float]:
    """Give points in the plane of the two principal components, and the share of the variance that it holds.

    A direction points to where its largest loading is positive, so that a map is the same each time.

    Examples
    --------
    >>> places, share = principal_plane(np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0]]), np.array([1]))
    >>> places.tolist(), share
    ([[1.0, 0.0]], 1.0)
    """
    centre = embedding.mean(axis=0, dtype=np.float64)
    centred = embedding.astype(np.float64) - centre
    values, vectors = np.linalg.eigh(centred.T @ centred)
    plane = vectors[:, ::-1][:, :2]
    largest = np.abs(plane).argmax(axis=0)
    plane = plane * np.where(plane[largest, np.arange(plane.shape[1])] < 0, -1.0, 1.0)
    places = np.zeros((len(shown), 2))
    places[:, : plane.shape[1]] = centred[shown] @ plane
    total = float(values.sum())
    return places, float(values[::-1][:2].sum()) / total if total > 0 else 1.0


def _certainty(stddev: Float[np.ndarray, "points dim"]) -> Certainty:
    spread = np.sqrt(np.square(stddev, dtype=np.float64).mean(axis=1))
    order = np.argsort(spread, kind="stable")
    n_listed = min(_LISTED, len(order) // 2)
    return Certainty(spread, order[:n_listed], order[::-1][:n_listed])


def _link_scores(run: Run, graph: CorrelationGraph, generator: np.random.Generator) -> LinkScores | None:
    name = run.link_metric if run.features_ is not None or not run.is_pairwise else LogOdds.name
    metric, named = run.metric(name), run.points(None, name)
    n_points = len(named.points)
    if graph.n_edges >= n_points * (n_points - 1) // 2:
        return None
    unseen = np.empty((0, 2), np.int64) if run.model.weights_ is None else graph.edges[run.model.weights_ == 0]
    held_out = len(unseen) >= _FEWEST_HELD_OUT
    pairs = unseen if held_out else graph.edges
    if len(pairs) > _MOST_PAIRS:
        pairs = pairs[np.sort(generator.choice(len(pairs), _MOST_PAIRS, replace=False))]
    apart = random_unlinked(n_points, graph.edges, max(len(pairs), 200), generator)
    linked, unlinked = (_scores(named.points, metric, part) for part in (pairs, apart))
    bins = _calibration(linked, unlinked, name, metric.larger_is_better, generator)
    return LinkScores(linked, unlinked, name, held_out, *bins)


def _scores(points: Points, metric: Metric, pairs: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, " pairs"]:
    """Evaluate pairs with nothing prepared for points that are in none."""
    distinct, numbered = np.unique(pairs, return_inverse=True)
    chosen = points.take(distinct)
    return evaluate_pairs(chosen, chosen, metric, numbered.reshape(-1, 2)).score


def _calibration(
    linked: Float[np.ndarray, " linked"],
    unlinked: Float[np.ndarray, " unlinked"],
    metric: str,
    larger_is_better: bool,
    generator: np.random.Generator,
) -> tuple[Shaped[np.ndarray, " bins"], Shaped[np.ndarray, " bins"], Shaped[np.ndarray, " bins"]]:
    """Learn probabilities from half of the pairs, as many linked as not, and look at the other half."""
    nothing = np.empty(0), np.empty(0), np.empty(0, np.int64)
    count = min(len(linked), len(unlinked))
    if count < _FEWEST_CALIBRATED:
        return nothing
    linked, unlinked = (generator.permutation(scores)[:count] for scores in (linked, unlinked))
    half = count // 2
    probability = calibrate(linked[:half], unlinked[:half], metric=metric, larger_is_better=larger_is_better, prior=0.5)
    scores = np.concatenate([linked[half:], unlinked[half:]])
    is_link = np.repeat([1.0, 0.0], count - half)
    predicted = probability(scores)
    order = np.array_split(np.argsort(predicted, kind="stable"), min(_BINS, len(scores) // 8))
    means = [np.array([values[part].mean() for part in order]) for values in (predicted, is_link)]
    return means[0], means[1], np.array([len(part) for part in order])
