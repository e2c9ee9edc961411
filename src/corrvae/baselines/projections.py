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
) -> Float[np.ndarray, "rows dim"]:
    """Project rows on the directions in which they vary most.

    Parameters
    ----------
    X
        Features, dense or sparse; they stay sparse without `center`.
    n_components
        Number of directions.
    weighting
        ``"idf"`` multiplies each column with the logarithm of how rare it is; ``"tfidf"`` then scales rows to length 1.
    center
        Subtract the columns' means first (principal component analysis); without, it is latent semantic analysis.
    seed
        Of the randomised solver.

    Examples
    --------
    >>> np.abs(principal_components(np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]), 1)).round(4).ravel().tolist()
    [5.0, 0.0, 5.0]
    """
    from sklearn.decomposition import PCA, TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    n_components = min(n_components, min(X.shape) - (0 if center else 1))
    if weighting != "raw":
        norm: Any = "l2" if weighting == "tfidf" else None
        X = TfidfTransformer(norm=norm).fit_transform(X)
    if center:
        solver = PCA(n_components, svd_solver="randomized", random_state=seed)
        dense = np.asarray(X.toarray(), dtype=np.float64) if sparse.issparse(X) else X
        projected = solver.fit_transform(dense)
    else:
        projected = TruncatedSVD(n_components, random_state=seed).fit_transform(X)
    return np.ascontiguousarray(projected, dtype=np.float32)
