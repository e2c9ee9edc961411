"""The clustering task: points on a random tree, cut in two by the distances of their embeddings.

There is no held-out part: groups are found among the training points, whose labels no model sees. Similarities are
exp(-dis / 2) with a zero diagonal; the paper leaves the diagonal open, so scores with a unit diagonal come with it.

Points are cut by the second eigenvector of the normalised Laplacian. With L = R - S, the Laplacian of the similarities
S whose row sums are R, a similarity c of each point to itself only adds c to the row sums: the normalised Laplacian is
D^-1/2 L D^-1/2 with D = R + c. So the diagonal of S is never stored, and both choices of it share one matrix. The first
eigenvector, D^1/2 1, is known and moved out of the way.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Float, Shaped
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, lobpcg

from corrvae.datasets import tree
from corrvae.experiments.models import Run, Trained, describe_settings, point_posterior, train_entry
from corrvae.experiments.recipes import Entry, Settings
from corrvae.experiments.records import Outcome
from corrvae.model import Posterior
from corrvae.scoring import Metric, make_metric, score_matrix

# Points up to which the matrix is decomposed whole: 0.05 s for 500.
_DENSE = 500
# Beyond, LOBPCG with the inverse of the diagonal as preconditioner. ARPACK (eigsh) is up to three times as fast where
# the second eigenvector stands out; elsewhere it returns nothing, or, on PCA of 10,000 points with a unit diagonal, a
# vector with a residual of 0.097 in place of 0.013.
_VECTORS, _ITERATIONS, _TOLERANCE = 5, 80, 3e-5
# Where the residual is not so far below the eigenvalue, which may be small, it iterates so many times more.
_CLEAR, _MORE_ITERATIONS = 0.01, 1000
# JSON has no infinity: the residual of a vector whose eigenvalue is 0.
_LARGEST = 1e9


def run(entry: Entry, settings: Settings, run: Run) -> Outcome:
    """Draw a tree, train a model on it, and score the cut."""
    drawn = tree(**{name: value for name, value in settings.items() if name != "name"}, random_state=run.seed)
    data = {
        "name": f"synthetic tree, {drawn.graph.n_vertices:,} points",
        "points": drawn.graph.n_vertices,
        "features": int(drawn.features.shape[1]),
        "edges": drawn.graph.n_edges,
        "settings": dict(settings),
    }
    if entry.method == "latents":
        trained = Trained(lambda rows: point_posterior(drawn.latents), describe_settings(entry))
    else:
        trained = train_entry(entry, drawn.features, drawn.graph, run)
    scores = score_clustering(trained.posterior(None), make_metric(entry.metric), drawn.labels)
    return Outcome(scores, trained.settings, data, trained.history)


def score_clustering(posterior: Posterior, metric: Metric, labels: Shaped[np.ndarray, " points"]) -> dict[str, float]:
    """Cut points in two by a squared distance, and compare with the true groups.

    The distances are one n-by-n matrix of 4-byte numbers, 400 MB for 10,000 points.
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    similar = similarities(score_matrix(posterior, posterior, metric))
    scores: dict[str, float] = {}
    for found, prefix in ((cut(similar, "zero"), ""), (cut(similar, "unit"), "unit_")):
        scores |= {
            f"{prefix}nmi": float(normalized_mutual_info_score(labels, found.side)),
            f"{prefix}ari": float(adjusted_rand_score(labels, found.side)),
            f"{prefix}residual": min(found.residual, _LARGEST),
        }
    return scores


@final
@dataclass(frozen=True, eq=False)
class Similarities:
    """Similarities S = exp(-(dis - least) / 2) of points, with a zero diagonal, and their row sums."""

    matrix: Float[np.ndarray, "points points"]
    sums: Float[np.ndarray, " points"]
    least: float  # distance between two points


@final
@dataclass(frozen=True, eq=False)
class Cut:
    """Points cut in two.

    Where the residual is not well below 1, the similarities have many near-separate groups, no second eigenvector
    stands out, and the cut means little.
    """

    side: Bool[np.ndarray, " points"]  # whether each coordinate of the second eigenvector is above the median
    eigenvalue: float  # the second smallest of the normalised Laplacian; near 0, the points fall apart into groups
    residual: float  # of the eigenvector, relative to the eigenvalue


def similarities(distances: Float[np.ndarray, "points points"]) -> Similarities:
    """Turn a matrix of squared distances into similarities, in place.

    The least distance is subtracted, so that similarities cannot all underflow; normalisation undoes it.
    """
    np.fill_diagonal(distances, np.inf)  # becomes the 0 of the diagonal
    least = float(distances.min())
    distances -= least
    distances *= -0.5
    np.exp(distances, out=distances)
    return Similarities(distances, distances.sum(axis=1, dtype=np.float64), least)


def cut(similar: Similarities, diagonal: Literal["zero", "unit"] = "zero") -> Cut:
    """Cut points in two at the median of the second eigenvector of the normalised Laplacian.

    With diagonal "zero" a point is not similar to itself. With "unit" its similarity is exp(0) = 1, as for distance 0;
    where all other distances are large this leaves little but the identity.
    """
    # a point whose similarities are all 0 keeps an eigenvector of its own
    sums = np.maximum(similar.sums, np.finfo(np.float32).tiny)
    if diagonal == "zero":
        scale, measure = 1.0, sums
    else:
        scale = float(np.exp(-similar.least / 2))
        measure = 1.0 + scale * sums  # D in units of 1 / scale, which floats may not hold
    root = np.sqrt(measure)

    def laplacian(vectors: np.ndarray) -> np.ndarray:
        scaled = (vectors.T / root).T
        # the product in the precision of S, so that S is not copied
        return (((sums * scaled.T).T - similar.matrix @ _single(scaled)).T / root).T

    if len(sums) <= _DENSE:
        first = root / np.linalg.norm(root)
        dense = (np.diag(sums) - similar.matrix) / root[:, None] / root
        # lift the known eigenvector above all others, so that ties with its eigenvalue 0 cannot mix with it
        lifted = dense + 4.0 * np.max(sums / measure) * np.outer(first, first)
        vector = eigh((lifted + lifted.T) / 2, subset_by_index=[0, 0])[1][:, 0]
    else:
        vector = _second(laplacian, sums / measure, root[:, None])
    product = laplacian(vector)
    eigenvalue = max(float(vector @ product), 0.0)
    residual = float(np.linalg.norm(product - eigenvalue * vector)) / max(eigenvalue, np.finfo(np.float64).tiny)
    return Cut(vector > np.median(vector), scale * eigenvalue, residual)


def _second(
    laplacian: Callable[[np.ndarray], np.ndarray],
    diagonal: Float[np.ndarray, " points"],
    first: Float[np.ndarray, "points 1"],
) -> Float[np.ndarray, " points"]:
    def operator(multiply: Callable[[np.ndarray], np.ndarray]) -> Any:
        shape: Any = (len(diagonal), len(diagonal))
        return LinearOperator(shape, matvec=multiply, matmat=multiply, dtype=np.float64)  # pyright: ignore[reportCallIssue]

    def iterate(start: np.ndarray, tolerance: float, most: int) -> tuple[float, np.ndarray, np.ndarray]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has not converged: the residual shows it
            options: Any = {"M": inverse, "Y": first, "largest": False, "tol": tolerance, "maxiter": most}
            values, vectors = lobpcg(product, start, **options)[:2]
        best = int(np.argmin(values))
        return max(float(values[best]), 0.0), vectors[:, best], vectors

    product, inverse = operator(laplacian), operator(lambda vectors: (vectors.T / diagonal).T)
    start = np.random.default_rng(0).standard_normal((len(diagonal), _VECTORS))
    eigenvalue, vector, vectors = iterate(start, _TOLERANCE * float(np.median(diagonal)), _ITERATIONS)
    if np.linalg.norm(laplacian(vector) - eigenvalue * vector) > _CLEAR * eigenvalue:
        vector = iterate(vectors, _CLEAR * eigenvalue, _MORE_ITERATIONS)[1]
    return vector


def _single(vector: np.ndarray) -> np.ndarray:
    # tiny row sums make large entries, which would become infinite in single precision
    largest = np.finfo(np.float32).max
    return np.clip(vector, -largest, largest).astype(np.float32)
