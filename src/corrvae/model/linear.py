"""The linear model in closed form: directions in which the two ends of an edge agree, and how much.

With linear networks and Gaussian noise CVAE_ind is the two-covariance model (PLDA): in the coordinates z = W'(y - mean)
that solve one generalised eigenproblem, the ends of an edge have correlation rho_k in dimension k and none between
dimensions.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh

# Correlations are kept between these, so that standard deviations are positive and scores finite.
_LEAST, _MOST = 1e-3, 0.999


@final
@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Coordinates z = (y - mean)' W of variance 1, and the correlation of each across an edge.

    Attributes
    ----------
    directions
        W, a column for each dimension, in descending order of the correlations.
    mean
        The mean of y.
    correlation
        rho of each dimension.
    """

    directions: Float[np.ndarray, "features dim"]
    mean: Float[np.ndarray, " features"]
    correlation: Float[np.ndarray, " dim"]

    def marginals(self, tau: Float[np.ndarray, " dim"] | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return scale, standard deviation and tau of each dimension, under which log-odds are the linear model's.

        A posterior N(sqrt(u) z, 1 - u) under the prior correlation tau has the log-odds of correlation rho = tau u.

        Parameters
        ----------
        tau
            The prior's correlation; ``None``: the root of rho, which is then shared evenly by tau and u.

        Examples
        --------
        >>> solution = LinearSolution(np.eye(1), np.zeros(1), np.array([0.64]))
        >>> [part.round(3).tolist() for part in solution.marginals()]
        [[0.894], [0.447], [0.8]]
        """
        tau = np.sqrt(self.correlation) if tau is None else tau
        u = np.clip(self.correlation / tau, _LEAST, _MOST)
        return np.sqrt(u), np.sqrt(1.0 - u), tau


def solve_linear(
    between: Float[np.ndarray, "features features"],
    total: Float[np.ndarray, "features features"],
    mean: Float[np.ndarray, " features"],
    n_components: int,
    *,
    ridge: float,
) -> LinearSolution:
    """Solve between w = rho (total + ridge tr(total) / m I) w for the largest rho.

    Parameters
    ----------
    between, total
        Covariance of the two ends of an edge, and of one end, of m features.
    mean
        Mean of an end.
    n_components
        Number of directions.
    ridge
        Added to the total, as a share of its mean variance.

    Examples
    --------
    >>> solve_linear(np.diag([0.5, 0.9]), np.eye(2), np.zeros(2), 1, ridge=0.0).correlation
    array([0.9])
    """
    m = len(mean)
    total = total + ridge * np.trace(total) / m * np.eye(m)
    n_components = min(n_components, m)
    rho, directions = eigh(between, total, subset_by_index=[m - n_components, m - 1])
    return LinearSolution(directions[:, ::-1], mean, np.clip(rho[::-1], _LEAST, _MOST))
