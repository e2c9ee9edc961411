"""Cut points in two by the second eigenvector of the normalised Laplacian of their similarities.

With L = R - S, the Laplacian of the similarities S whose row sums are R, a similarity of c between each point and
itself only adds c to the row sums: the normalised Laplacian is D^-1/2 L D^-1/2 with D = R + c. The diagonal of S is
therefore never stored, and both of its choices share one matrix. The first eigenvector, D^1/2 1, is known and kept out.
"""

import logging
import warnings
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from jaxtyping import Bool, Float

from corrvae.tasks.scorers import BlockDistances

Diagonal = Literal["zero", "unit"]

_log = logging.getLogger("corrvae")

# Points up to which all eigenvectors are computed; beyond, a few are, by iteration.
_DENSE = 500
_VECTORS, _ITERATIONS, _TOLERANCE = 5, 80, 3e-5
# Where the residual is not so far below the eigenvalue, which may be small, iteration goes on for so many times more.
_CLEAR, _MORE_ITERATIONS = 0.01, 1000
_BLOCK = 1 << 23


@final
@dataclass(frozen=True, eq=False)
class Similarities:
    """Similarities S = exp(-(dis - least) / 2) of points, without the diagonal.

    Attributes
    ----------
    matrix
        S with a zero diagonal.
    sums
        Its row sums.
    least
        The least distance between two points.
    """

    matrix: Float[np.ndarray, "points points"]
    sums: Float[np.ndarray, " points"]
    least: float


@final
@dataclass(frozen=True, eq=False)
class Cut:
    """Points cut in two.

    Attributes
    ----------
    side
        Whether each point's coordinate of the second eigenvector is above the median.
    eigenvalue
        The second smallest of the normalised Laplacian; near 0, the points fall apart into groups.
    residual
        Of the eigenvector, over the eigenvalue. Where this is not well below 1, the similarities hold many
        near-separate groups, no second eigenvector stands out, and the cut means little.
    """

    side: Bool[np.ndarray, " points"]
    eigenvalue: float
    residual: float


def similarities(distances: BlockDistances, n_points: int) -> Similarities:
    """Fill the matrix of similarities: n by n numbers of 4 bytes, whose size is logged first.

    Subtracting the least distance scales all similarities alike, which normalisation undoes, and keeps them from all
    becoming 0.

    Examples
    --------
    >>> from corrvae.tasks.scorers import embedding_distances
    >>> similarities(embedding_distances(np.array([[0.0], [1.0], [3.0]])), 3).matrix.astype(float).round(3).tolist()
    [[0.0, 1.0, 0.018], [1.0, 0.0, 0.223], [0.018, 0.223, 0.0]]
    """
    if n_points < 2:
        raise ValueError(f"there must be 2 points or more to cut, not {n_points}")
    _log.info("similarities of %s points: %.1f MB", f"{n_points:,}", 4e-6 * n_points**2)
    matrix = np.empty((n_points, n_points), np.float32)
    blocks = [slice(k, k + max(1, _BLOCK // n_points)) for k in range(0, n_points, max(1, _BLOCK // n_points))]
    everyone = np.arange(n_points)
    for block in blocks:
        rows = everyone[block]
        matrix[block] = distances(rows)
        matrix[rows, rows] = np.inf  # becomes the 0 of the diagonal
    _check_distances(matrix[blocks[0]], matrix[:, blocks[0]].T)
    least = min(float(matrix[block].min()) for block in blocks)
    if not np.isfinite(least):
        raise ValueError("distances must be finite, but some are not numbers or all are infinite")
    sums = np.empty(n_points)
    for block in blocks:
        part = matrix[block]
        part -= least
        part *= -0.5
        np.exp(part, out=part)
        sums[block] = part.sum(axis=1, dtype=np.float64)
    return Similarities(matrix, sums, least)


def cut(similar: Similarities, diagonal: Diagonal = "zero") -> Cut:
    """Cut points in two at the median of the second eigenvector of the normalised Laplacian.

    Parameters
    ----------
    similar
        The similarities.
    diagonal
        "zero": a point is not similar to itself. "unit": its similarity is exp(0) = 1, as for distance 0; where all
        other distances are large this leaves little but the identity.

    Examples
    --------
    >>> from corrvae.tasks.scorers import embedding_distances
    >>> places = np.array([[0.0], [0.5], [1.0], [4.0], [4.5], [5.0]])
    >>> found = cut(similarities(embedding_distances(places), 6))
    >>> bool(found.side[:3].all() != found.side[3:].all())
    True
    """
    # a point whose similarities have all become 0 keeps an eigenvector of its own
    sums = np.maximum(similar.sums, np.finfo(np.float32).tiny)
    if diagonal == "zero":
        measure = sums
    elif diagonal == "unit":
        measure = 1.0 + np.exp(-similar.least / 2) * sums  # over 1 / S_ii, which may be beyond what floats can hold
    else:
        raise ValueError(f'diagonal must be "zero" or "unit", not {diagonal!r}')
    solve = _second_dense if len(sums) <= _DENSE else _second_iterated
    eigenvalue, vector = solve(similar.matrix, sums, measure)
    residual = float(np.linalg.norm(_laplacian(similar.matrix, sums, measure, vector) - eigenvalue * vector))
    scale = 1.0 if diagonal == "zero" else float(np.exp(-similar.least / 2))
    relative = residual / max(eigenvalue, np.finfo(np.float64).tiny)
    return Cut(vector > np.median(vector), scale * eigenvalue, relative)


def _laplacian(
    matrix: Float[np.ndarray, "points points"],
    sums: Float[np.ndarray, " points"],
    measure: Float[np.ndarray, " points"],
    vectors: Float[np.ndarray, "points *columns"],
) -> Float[np.ndarray, "points *columns"]:
    """Multiply by D^-1/2 (R - S) D^-1/2."""
    shape = (-1,) + (1,) * (vectors.ndim - 1)
    root, sums = np.sqrt(measure).reshape(shape), sums.reshape(shape)
    scaled = vectors / root
    # the products in the precision of S, so that S is read as it is
    return (sums * scaled - matrix @ _single(scaled)) / root


def _single(vectors: np.ndarray) -> np.ndarray:
    # tiny measures make large entries: beyond single precision they would become infinite
    largest = np.finfo(np.float32).max
    return np.clip(vectors, -largest, largest).astype(np.float32)


def _second_dense(
    matrix: Float[np.ndarray, "points points"],
    sums: Float[np.ndarray, " points"],
    measure: Float[np.ndarray, " points"],
) -> tuple[float, Float[np.ndarray, " points"]]:
    root = np.sqrt(measure)
    laplacian = (np.diag(sums) - matrix) / root[:, None] / root
    first = root / np.linalg.norm(root)
    # lift the known eigenvector above all others, so that ties with its eigenvalue 0 cannot mix with it
    lifted = laplacian + 4.0 * np.max(sums / measure) * np.outer(first, first)
    values, vectors = np.linalg.eigh((lifted + lifted.T) / 2)
    return max(float(values[0]), 0.0), vectors[:, 0]


def _second_iterated(
    matrix: Float[np.ndarray, "points points"],
    sums: Float[np.ndarray, " points"],
    measure: Float[np.ndarray, " points"],
) -> tuple[float, Float[np.ndarray, " points"]]:
    from scipy.sparse.linalg import LinearOperator, lobpcg

    count, diagonal = len(sums), sums / measure

    def multiply(vectors: np.ndarray) -> np.ndarray:
        return _laplacian(matrix, sums, measure, vectors)

    def precondition(vectors: np.ndarray) -> np.ndarray:
        return vectors / diagonal.reshape((-1,) + (1,) * (vectors.ndim - 1))

    operator = LinearOperator((count, count), matvec=multiply, matmat=multiply, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    inverse = LinearOperator((count, count), matvec=precondition, matmat=precondition, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    first = np.sqrt(measure)[:, None] / np.sqrt(measure.sum())

    def iterate(start: np.ndarray, tolerance: float, most: int) -> tuple[float, np.ndarray, np.ndarray]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has not converged: the residual says so
            found = lobpcg(operator, start, M=inverse, Y=first, largest=False, tol=tolerance, maxiter=most)
        values, vectors = found[:2]
        best = int(np.argmin(values))
        return max(float(values[best]), 0.0), vectors[:, best], vectors

    start = np.random.default_rng(0).standard_normal((count, _VECTORS))
    eigenvalue, vector, vectors = iterate(start, _TOLERANCE * float(np.median(diagonal)), _ITERATIONS)
    if np.linalg.norm(multiply(vector) - eigenvalue * vector) > _CLEAR * eigenvalue:
        eigenvalue, vector, _ = iterate(vectors, _CLEAR * eigenvalue, _MORE_ITERATIONS)
    return eigenvalue, vector


def _check_distances(rows: Float[np.ndarray, "block points"], columns: Float[np.ndarray, "block points"]) -> None:
    if np.isnan(rows).any():
        row, column = np.argwhere(np.isnan(rows))[0]
        raise ValueError(f"the distance of points {row} and {column} is not a number")
    scale = max(float(np.max(rows, where=np.isfinite(rows), initial=0.0)), 1e-30)
    apart = np.argwhere(~np.isclose(rows, columns, rtol=0.0, atol=1e-3 * scale))
    if len(apart):
        row, column = apart[0]
        raise ValueError(
            f"distances must be the same both ways, but that of points {row} and {column} is {rows[row, column]:.6g} "
            f"and {columns[row, column]:.6g}"
        )
