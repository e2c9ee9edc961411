"""From a score to the probability of a link, learned from held-out links against random pairs."""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from jaxtyping import Float, Int, Shaped


@final
@dataclass(frozen=True, eq=False)
class LinkCalibration:
    """The probability of a link as a function of a score that it was learned for.

    The odds of a link are the prior odds times the likelihood ratio of the score among linked and unlinked pairs, which
    is what was learned. The ratio does not depend on the prior, so that may be changed.

    Attributes
    ----------
    metric
        The score's name.
    method
        "logistic" or "isotonic".
    prior
        The share of linked pairs among those whose probability is asked for.
    n_linked, n_unlinked
        Pairs it was learned from.
    knots, log_ratios
        Log likelihood ratios at some scores. Between these they are joined by straight lines; outside, a logistic
        calibration goes on along them and an isotonic one stays at its ends.

    Examples
    --------
    >>> calibration = LinkCalibration("log_odds", "logistic", 0.5, 10, 100, np.array([0.0, 1.0]), np.array([0.0, 2.0]))
    >>> calibration(np.array([0.0, 1.0])).round(3).tolist()
    [0.5, 0.881]
    >>> calibration.with_prior(0.01)(np.array([0.0])).round(3).tolist()
    [0.01]
    """

    metric: str
    method: Literal["logistic", "isotonic"]
    prior: float
    n_linked: int
    n_unlinked: int
    knots: Float[np.ndarray, " knots"]
    log_ratios: Float[np.ndarray, " knots"]

    def __call__(self, scores: Float[np.ndarray, " pairs"]) -> Float[np.ndarray, " pairs"]:
        """Give the probability of a link at scores."""
        from scipy.special import expit, logit

        return expit(logit(self.prior) + self._log_ratio(np.asarray(scores, np.float64)))

    def with_prior(self, prior: float) -> "LinkCalibration":
        """Give the same calibration for another share of linked pairs."""
        learned = self.metric, self.method
        return LinkCalibration(
            *learned, check_prior(prior), self.n_linked, self.n_unlinked, self.knots, self.log_ratios
        )

    def _log_ratio(self, scores: np.ndarray) -> np.ndarray:
        if self.method == "isotonic":
            return np.interp(scores, self.knots, self.log_ratios)
        (first, second), (begin, end) = self.knots, self.log_ratios
        return begin + (scores - first) * ((end - begin) / (second - first))


def calibrate(
    linked: Float[np.ndarray, " linked"],
    unlinked: Float[np.ndarray, " unlinked"],
    *,
    metric: str,
    larger_is_better: bool,
    prior: float,
    method: Literal["logistic", "isotonic"] = "logistic",
) -> LinkCalibration:
    """Learn probabilities from the scores of held-out links and of pairs without a link.

    Parameters
    ----------
    linked, unlinked
        The scores.
    metric, larger_is_better
        The score's name and direction.
    prior
        The share of linked pairs among those whose probability will be asked for.
    method
        "logistic": log-odds linear in the score, and flat if links do not have the better scores. "isotonic": any
        function that is better for better scores, for which there should be a thousand links or more.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> linked, unlinked = rng.normal(1.0, 1.0, 5000), rng.normal(-1.0, 1.0, 5000)
    >>> probability = calibrate(linked, unlinked, metric="log_odds", larger_is_better=True, prior=0.5)
    >>> probability(np.array([0.0, 1.0])).round(1)  # truly 1/2 and 1 / (1 + exp(-2))
    array([0.5, 0.9])
    """
    if min(len(linked), len(unlinked)) < 2:
        raise ValueError(
            f"a calibration needs scores of at least 2 linked and 2 unlinked pairs, got {len(linked)} and "
            f"{len(unlinked)}"
        )
    scores = np.concatenate([linked, unlinked]).astype(np.float64)
    if not np.isfinite(scores).all():
        raise ValueError("a calibration needs finite scores")
    labels = np.repeat([1, 0], [len(linked), len(unlinked)])
    # Both kinds weigh the same, so that what is learned is the likelihood ratio.
    weights = 0.5 * len(scores) / np.where(labels == 1, len(linked), len(unlinked))
    learn = {"logistic": _logistic, "isotonic": _isotonic}.get(method)
    if learn is None:
        raise ValueError(f'method must be "logistic" or "isotonic", not {method!r}')
    knots, log_ratios = learn(scores, labels, weights, larger_is_better)
    sizes = len(linked), len(unlinked)
    return LinkCalibration(metric, method, check_prior(prior), *sizes, knots, log_ratios)


def random_unlinked(
    n_points: int, linked: Int[np.ndarray, "linked 2"], n_pairs: int, generator: np.random.Generator
) -> Int[np.ndarray, "pairs 2"]:
    """Draw pairs i < j of distinct points, none of them linked, with repetition.

    Parameters
    ----------
    n_points
        Number of points.
    linked
        All links, in any order and direction.
    n_pairs
        How many pairs.
    generator
        Source of randomness.

    Examples
    --------
    >>> random_unlinked(3, np.array([[1, 0], [1, 2]]), 2, np.random.default_rng(0)).tolist()
    [[0, 2], [0, 2]]
    """
    ordered = np.unique(np.sort(linked, axis=1)[linked[:, 0] != linked[:, 1]], axis=0)
    if len(ordered) >= n_points * (n_points - 1) // 2:
        raise ValueError("every pair of points is linked: there is none to compare with")
    codes = ordered[:, 0] * n_points + ordered[:, 1]
    found = np.empty(0, np.int64)
    while len(found) < n_pairs:
        drawn = np.sort(generator.integers(n_points, size=(2 * n_pairs, 2)), axis=1)
        drawn = drawn[drawn[:, 0] != drawn[:, 1]]
        own = drawn[:, 0] * n_points + drawn[:, 1]
        found = np.concatenate([found, own[~np.isin(own, codes)]])
    return np.stack(np.divmod(found[:n_pairs], n_points), axis=1)


def refuse_links(
    ids: Shaped[np.ndarray, " points"], links: Int[np.ndarray, "links 2"], edges: Int[np.ndarray, "edges 2"]
) -> None:
    """Refuse links that join a point with itself, or that training has seen.

    Parameters
    ----------
    ids
        The points' ids.
    links, edges
        Positions of linked points: those to calibrate with, and those seen.

    Examples
    --------
    >>> refuse_links(np.array(["a", "b", "c"]), np.array([[0, 1]]), np.array([[1, 2]]))
    """
    codes, seen = (part.min(axis=1) * len(ids) + part.max(axis=1) for part in (links, edges))
    own = links[:, 0] == links[:, 1]
    for wrong, sentence in (
        (own, "joins a point with itself"),
        (
            np.isin(codes, seen),
            "is an edge that training has seen; a calibration needs links held out, such as those of "
            "corrvae.graphs.split_edges",
        ),
    ):
        if wrong.any():
            position = int(np.flatnonzero(wrong)[0])
            first, second = ids[links[position]].tolist()
            raise ValueError(f"link {position}, ({first!r}, {second!r}), {sentence}")


def check_prior(prior: float) -> float:
    """Refuse a share that is not strictly between 0 and 1.

    Examples
    --------
    >>> check_prior(0.5)
    0.5
    """
    if not 0.0 < prior < 1.0:
        raise ValueError(f"prior, the share of linked pairs, must lie strictly between 0 and 1, got {prior}")
    return float(prior)


def _logistic(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, larger_is_better: bool
) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.linear_model import LogisticRegression

    centre, scale = scores.mean(), scores.std() or 1.0
    fitted = LogisticRegression().fit(((scores - centre) / scale)[:, None], labels, sample_weight=weights)
    slope, constant = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
    if (slope > 0) != larger_is_better:
        # The best that does not call worse scores likelier links says nothing, as both kinds weigh the same.
        slope = constant = 0.0
    return np.array([centre, centre + scale]), np.array([constant, constant + slope])


def _isotonic(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, larger_is_better: bool
) -> tuple[np.ndarray, np.ndarray]:
    from scipy.special import logit
    from sklearn.isotonic import IsotonicRegression

    # No finite sample proves that a link is certain: the ends stay half an observation away from that.
    margin = 0.5 / len(scores)
    fitted = IsotonicRegression(
        y_min=margin, y_max=1.0 - margin, increasing=larger_is_better, out_of_bounds="clip"
    ).fit(scores, labels, sample_weight=weights)
    return fitted.X_thresholds_, logit(fitted.y_thresholds_)
