"""The link task: find held-out edges of mutual trust between users who have rated products.

Settings are chosen on validation edges, which are drawn as the test edges are. Then they are given back: the chosen
model is trained once more with them, and the test edges are ranked. Candidates of a vertex are all vertices but itself
and its neighbours in the graph that the model knows. A vertex i with k held-out edges of
ranks r_1, ..., r_k has CRR_i = 1/r_1 + ... + 1/r_k and NCRR_i = CRR_i / H(k), with H(k) = 1 + 1/2 + ... + 1/k the best
that k edges can reach. The score is the mean of NCRR_i over the vertices with a held-out edge. Ties count against the
method: a rank is 1 plus the number of other candidates that score at least as well.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from corrvae.datasets import ciao, epinions
from corrvae.experiments.baselines import RowScores
from corrvae.experiments.models import Run, Trained, describe_settings, train_entry, train_network
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.records import Outcome
from corrvae.experiments.sources import data_files, small_world
from corrvae.graphs import CorrelationGraph, graph_features, heuristics, split_edges
from corrvae.model import Posterior
from corrvae.scoring import METRICS, Metric, calibrate_links, make_metric, rank, score
from corrvae.scoring.calibration import calibration_error, random_unlinked
from corrvae.scoring.links import candidate_recall, read_graph

# What each heuristic may choose on validation edges.
HEURISTICS: dict[str, list[dict[str, float]]] = {
    "degree": [{}],
    "common_neighbors": [{}],
    "adamic_adar": [{}],
    "resource_allocation": [{}],
    "three_step_allocation": [{}],
    "personalized_pagerank": [{"alpha": alpha} for alpha in (0.3, 0.5, 0.7)],
    "katz": [{"share": share} for share in (0.1, 0.3, 0.6, 0.9)],
}
# Vertices whose heuristics are computed together.
_BLOCK = 256
# Random pairs without a link that probabilities are judged on.
_UNLINKED = 20_000
# What a degree adds to a heuristic: less than any difference that the heuristic makes.
_TIE_BREAK = 1e-9

Ranks = Int[np.ndarray, " pairs"]


@final
@dataclass(frozen=True, eq=False)
class EdgeRanks:
    """Ranks of held-out edges (vertex, other) among the candidates of the vertex; every edge is listed from both ends.

    `ranks` counts the candidates that score at least as well as the edge, itself included, `above` those that score
    better, `candidates` all.
    """

    vertices: Ranks
    others: Ranks
    ranks: Ranks
    above: Ranks
    candidates: Ranks


@final
@dataclass(frozen=True, eq=False)
class Part:
    """Edges to find, and the graph that methods may know."""

    held: Int[np.ndarray, "edges 2"]
    known: CorrelationGraph


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Train a model without the validation edges and rank these; then train it with them, and rank the test edges."""
    name, features, parts = load(settings, run.seed)
    data = {
        "name": name,
        "users": parts["test"].known.n_vertices,
        "features": int(features.shape[1]),  # pyright: ignore[reportOptionalSubscript]
        "known_edges": parts["test"].known.n_edges,
        "validation_edges": len(parts["validation"].held),
        "test_edges": len(parts["test"].held),
        "files": data_files(settings["name"]),
        "settings": dict(settings),
    }
    if entry.method in HEURISTICS or entry.method == "best_heuristic":
        chosen, scores = _run_heuristic(entry.method, features, parts)
        return Outcome(scores, describe_settings(entry) | {"chosen": chosen}, data)
    if entry.method == "neural_common_neighbors":
        history, scores = _run_pair_network(entry, features, parts, run)
        return Outcome(scores, describe_settings(entry), data, history)
    metric, scores = make_metric(entry.metric), {}

    def train(name: str, known: CorrelationGraph) -> Trained:
        X = graph_features(features, known) if entry.graph_features else features
        checkpoint = None if run.checkpoint is None else run.checkpoint / name
        return train_entry(entry, X, known, replace(run, checkpoint=checkpoint))

    trained = train("validation", parts["validation"].known)
    for name, part in parts.items():
        if part.known is not parts["validation"].known:
            trained = train(name, part.known)
        prefix = "" if name == "test" else f"{name}_"
        posterior = trained.posterior(None)
        found = score_links(posterior, metric, part.held, part.known)
        if (linkable := read_graph(posterior, posterior, metric)) is not None:
            found["candidate_recall"] = candidate_recall(linkable[0], np.concatenate([part.held, part.held[:, ::-1]]))
            if name == "validation":
                scores["calibration_error"] = _calibration_error(posterior, metric, parts, run.seed)
        scores |= {prefix + key: value for key, value in found.items()}
    return Outcome(scores, trained.settings, data, trained.history)


def _calibration_error(posterior: Posterior, metric: Metric, parts: dict[str, Part], seed: int) -> float:
    """Learn probabilities on validation edges, and return their error on test edges and random pairs without a link."""
    seen, held = parts["validation"], parts["test"].held
    calibration = calibrate_links(
        posterior,
        seen.held,
        metric,
        edges=seen.known.edges,
        n_unlinked=_UNLINKED,
        random_state=seed,
    )
    n_points, linked = seen.known.n_vertices, np.concatenate([seen.known.edges, seen.held])
    unlinked = random_unlinked(n_points, np.concatenate([linked, held]), _UNLINKED, np.random.default_rng((seed, 1)))
    at_prior = calibration.with_prior(len(held) / (0.5 * n_points * (n_points - 1) - len(linked)))
    scores = [score(posterior, posterior, metric, pairs) for pairs in (held, unlinked)]
    return calibration_error(at_prior, scores[0], scores[1])


def load(settings: Settings, seed: int) -> tuple[str, sparse.csr_array, dict[str, Part]]:
    """Read or draw the data, and hold edges out: name, features, edges in two parts, those of validation first.

    Under the first edition's protocol, validation edges are drawn uniformly, and hidden from what ranks the test edges.
    """
    if settings["name"] == "small":
        features, graph = small_world(settings["n_users"], settings["n_items"], random_state=seed)
        name = "small synthetic trust"
    else:
        read = {"epinions": epinions, "ciao": ciao}[settings["name"]]
        found = read(min_ratings=settings["min_ratings"])
        # vertex i is row i for every model, also for those that do not see the graph
        features, graph = found.features, CorrelationGraph(found.graph.edges, found.graph.n_vertices)
        name = settings["name"].capitalize()
    if settings.get("protocol") != "first edition":
        split = split_edges(graph, random_state=seed)
        parts = {"validation": Part(split.validation, split.train), "test": Part(split.test, split.known)}
        return name, features, parts
    generator = np.random.default_rng(seed)
    outer = split_edges(graph, validation=0.0, random_state=generator)
    inner = split_edges(outer.train, "random", test=0.05, validation=0.0, random_state=generator)
    parts = {"validation": Part(inner.test, inner.train), "test": Part(outer.test, inner.train)}
    return name, features, parts


def score_links(
    posterior: Posterior, metric: Metric, held: Int[np.ndarray, "edges 2"], known: CorrelationGraph
) -> dict[str, float]:
    """Rank held-out edges (positions) among what the known graph does not link, and return the scores of the task."""
    return _summary(rank_edges(posterior, metric, held, known), known)


def rank_edges(
    posterior: Posterior, metric: Metric, held: Int[np.ndarray, "edges 2"], known: CorrelationGraph
) -> EdgeRanks:
    """Rank held-out edges (positions) from both ends: first all from their first end, then all from their second.

    None of them may be an edge of the known graph.
    """
    pairs, left_out = _from_both_ends(held, known)
    vertices, others = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    ranks = rank(posterior, posterior, metric, pairs, exclude=left_out)[0]
    candidates = known.n_vertices - np.diff(left_out.indptr)[vertices].astype(np.int64)
    if read_graph(posterior, posterior, metric) is not None:
        above = ranks - 1
    elif metric.name in METRICS:  # continuous scores are equal where points are; a second ranking would cost minutes
        above = ranks - _equal_points(posterior, left_out, vertices, others)
    else:
        flipped = replace(metric, larger_is_better=not metric.larger_is_better)
        above = candidates - rank(posterior, posterior, flipped, pairs, exclude=left_out)[0]
    return EdgeRanks(vertices, others, ranks, above, candidates)


def _from_both_ends(
    held: Int[np.ndarray, "edges 2"], known: CorrelationGraph
) -> tuple[Int[np.ndarray, "pairs 2"], sparse.csr_array]:
    """Return the pairs to rank, and which candidates each vertex leaves out: itself and its known neighbours."""
    leaked = np.flatnonzero(np.isin(held @ [known.n_vertices, 1], known.edges @ [known.n_vertices, 1]))
    if len(leaked):
        pair = tuple(held[leaked[0]].tolist())
        raise ValueError(f"held-out edge {leaked[0]}, {pair}, is a training edge: what was trained on is not ranked")
    itself = sparse.eye_array(known.n_vertices, dtype=bool, format="csr")
    return np.concatenate([held, held[:, ::-1]]), sparse.csr_array(known.to_scipy().astype(bool) + itself)


def _equal_points(posterior: Posterior, known: sparse.csr_array, vertices: Ranks, others: Ranks) -> Ranks:
    """Count the candidates of each vertex that are equal to the other end, itself included."""
    points = np.concatenate([posterior.mean, posterior.stddev], axis=1)
    _, group = np.unique(points, axis=0, return_inverse=True)
    group = group.ravel()
    membership = sparse.csr_array((np.ones(len(group), np.int64), (np.arange(len(group)), group)))
    known_by_group = sparse.csr_array(known.astype(np.int64) @ membership)
    return np.bincount(group)[group[others]] - np.asarray(known_by_group[vertices, group[others]]).ravel()


def _summary(found: EdgeRanks, known: CorrelationGraph) -> dict[str, float]:
    lone = known.degrees[found.vertices] == 0
    return {
        "ncrr": ncrr(found.ranks, found.vertices),
        **({"ncrr_lone": ncrr(found.ranks[lone], found.vertices[lone])} if lone.any() else {}),
        "mrr": float(np.mean(1.0 / found.ranks)),
        "hits_1": float(np.mean(found.ranks <= 1)),
        "hits_10": float(np.mean(found.ranks <= 10)),
        "hits_100": float(np.mean(found.ranks <= 100)),
        "auc": area_under_curve(found),
        "n_vertices": float(len(np.unique(found.vertices))),
    }


def ncrr(ranks: Ranks, vertices: Ranks) -> float:
    """Compute the NCRR of held-out edges from their ranks at the vertex each is looked for from."""
    _, place, counts = np.unique(vertices, return_inverse=True, return_counts=True)
    cumulative = np.bincount(place, weights=1.0 / ranks)
    harmonic = np.cumsum(1.0 / np.arange(1, counts.max() + 1))
    return float(np.mean(cumulative / harmonic[counts - 1]))


def area_under_curve(found: EdgeRanks) -> float:
    """Compute the mean share of a vertex's unrelated candidates that score below its held-out edge, ties half (AUC).

    It is exact, not sampled. The unrelated candidates of a vertex are those it was ranked among, without its held-out
    edges. An edge all of whose candidates are held-out edges is left out.
    """
    order = np.lexsort((found.ranks, found.vertices))
    vertex, at_least, higher = found.vertices[order], found.ranks[order], found.above[order]
    _, begins, place, counts = np.unique(vertex, return_index=True, return_inverse=True, return_counts=True)
    # take back the vertex's own held-out edges; those of equal rank have equal scores
    ties_begin = np.flatnonzero(np.r_[True, (np.diff(at_least) != 0) | (np.diff(vertex) != 0)])
    ties_end = np.r_[ties_begin[1:], len(order)]
    group = np.repeat(np.arange(len(ties_begin)), ties_end - ties_begin)
    at_least = at_least - (ties_end[group] - begins[place])
    higher = higher - (ties_begin[group] - begins[place])
    unrelated = found.candidates[order] - counts[place]
    counted = unrelated > 0
    return float(np.mean(1.0 - (at_least + higher)[counted] / (2.0 * unrelated[counted])))


# ---- scores of the graph alone ---------------------------------------------------------------------------------------


def score_rows(score: RowScores, held: Int[np.ndarray, "edges 2"], known: CorrelationGraph) -> dict[str, float]:
    """Score a function that returns a row of scores for each of some vertices, as `score_links` does a posterior."""
    return _summary(rank_rows(score, held, known), known)


def rank_rows(score: RowScores, held: Int[np.ndarray, "edges 2"], known: CorrelationGraph) -> EdgeRanks:
    """Rank held-out edges from both ends, by vertex."""
    pairs, left_out = _from_both_ends(held, known)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    queries, begins = np.unique(pairs[:, 0], return_index=True)
    ranks, above = np.empty((2, len(pairs)), np.int64)
    for begin in range(0, len(queries), _BLOCK):
        block = queries[begin : begin + _BLOCK]
        rows = score(block).astype(np.float32)
        rows[left_out[block].nonzero()] = -np.inf
        end = begins[begin + _BLOCK] if begin + _BLOCK < len(queries) else len(pairs)
        for k in range(begins[begin], end):
            row = rows[np.searchsorted(block, pairs[k, 0])]
            ranks[k], above[k] = (row >= row[pairs[k, 1]]).sum(), (row > row[pairs[k, 1]]).sum()
    vertices, others = pairs.T.copy()
    candidates = known.n_vertices - np.diff(left_out.indptr)[vertices].astype(np.int64)
    return EdgeRanks(vertices, others, ranks, above, candidates)


def row_scores(method: str, known: CorrelationGraph, features: Any = None, **parameters: float) -> RowScores:
    """Return a heuristic on a graph; with features, times 1 + the cosine of two rows, with the degree as tie-break."""
    alone = partial(getattr(heuristics, method), known, **parameters)
    if features is None:
        return alone
    counts = sparse.csr_array(features, dtype=np.float64)
    weighted = sparse.csr_array(TfidfTransformer().fit_transform(counts))  # pyright: ignore[reportArgumentType]
    tie_break = _TIE_BREAK * known.degrees

    def score(vertices: Int[np.ndarray, " rows"]) -> Float[np.ndarray, "rows vertices"]:
        alike = 1.0 + (weighted[vertices] @ weighted.T).toarray()
        return (alone(vertices) + tie_break) * alike

    return score


def _run_heuristic(method: str, features: Any, parts: dict[str, Part]) -> tuple[dict[str, Any], dict[str, float]]:
    """Choose settings on validation edges and score the test edges; "best_heuristic" chooses among all heuristics."""
    validation, test = parts["validation"], parts["test"]
    with_features = features if method == "best_heuristic" else None
    methods = [name for name in HEURISTICS if name != "degree"] if method == "best_heuristic" else [method]
    tried = [
        ({"method": name, **parameters}, row_scores(name, validation.known, with_features, **parameters))
        for name in methods
        for parameters in HEURISTICS[name]
    ]
    scored = [(chosen, score_rows(score, validation.held, validation.known)) for chosen, score in tried]
    chosen, best = max(scored, key=lambda one: one[1]["ncrr"])
    found = score_rows(row_scores(known=test.known, features=with_features, **chosen), test.held, test.known)
    return chosen, found | {f"validation_{name}": value for name, value in best.items()}


def _run_pair_network(
    entry: Entry, features: Any, parts: dict[str, Part], run: Run
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Train a network of pairs for each part, and score it; return the losses of the last training, and all scores."""
    history, scores = {}, {}
    for name, part in parts.items():
        score, history = train_network(entry, features, part.known, run)
        prefix = "" if name == "test" else f"{name}_"
        scores |= {prefix + key: value for key, value in score_rows(score, part.held, part.known).items()}
    return history, scores
