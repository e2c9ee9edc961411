"""Linear projections of the features."""

from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from scipy import sparse


def principal_components(
    X: Any,
    n_components: int,
    *,
    weighting: Literal["raw", "idf", "tfidf"] = "raw",
    center: bool = True,
    seed: int = 0,
    project: Any = None,
) -> Float[np.ndarray, "rows dim"]:
    """Project rows on the directions in which they vary most.

    Parameters
    ----------
    X
        Features, dense or sparse; they stay sparse without `center`.
    n_components
        Number of directions.
    weighting
        ``"idf"`` multiplies each column with ``log((1 + n) / (1 + m)) + 1`` where m of the n rows have it, so that one
        that every row has is kept as it is; ``"tfidf"`` then scales rows to length 1.
    center
        Subtract the columns' means first (principal component analysis); without, it is latent semantic analysis.
    seed
        Of the randomised solver.
    project
        Rows to project instead of those of X, which then say nothing about the directions.

    Examples
    --------
    >>> np.abs(principal_components(np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]), 1)).round(4).ravel().tolist()
    [5.0, 0.0, 5.0]
    """
    from sklearn.decomposition import PCA, TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    X = _as_matrix(X)
    rows = X if project is None else _as_matrix(project)
    n_components = min(n_components, min(X.shape) - (0 if center else 1))
    if weighting != "raw":
        norm: Any = "l2" if weighting == "tfidf" else None
        transformer = TfidfTransformer(norm=norm).fit(X)
        X, rows = transformer.transform(X), transformer.transform(rows)
    if center:
        X, rows = _dense(X), _dense(rows)
        solver = PCA(n_components, svd_solver="randomized", random_state=seed)
    else:
        solver = TruncatedSVD(n_components, random_state=seed)
    projected = solver.fit_transform(X) if project is None else solver.fit(X).transform(rows)
    return np.ascontiguousarray(projected, dtype=np.float32)


def _as_matrix(X: Any) -> Any:
    return sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
