"""From a score to the probability of a link, learned from held-out links and random pairs without a link."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from corrvae.model.posterior import Posterior
from corrvae.scoring.metrics import MetricLike, make_metric
from corrvae.scoring.search import score

# Random pairs without a link for each link, and at least so many.
_UNLINKED, _FEWEST_UNLINKED = 10, 1000


@final
@dataclass(frozen=True, eq=False)
class LinkCalibration:
    """The probability of a link as a function of a score.

    The odds of a link are the prior odds times the likelihood ratio of the score among linked and unlinked pairs, whose
    logarithm is intercept + slope * score. That is what was learned; it does not depend on the prior, the share of
    linked pairs among those whose probability is asked for, so the prior may be changed.
    """

    metric: str
    prior: float
    n_linked: int
    n_unlinked: int
    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not 0.0 < self.prior < 1.0:
            raise ValueError(f"prior, the share of linked pairs, must lie strictly between 0 and 1, got {self.prior}")

    def __call__(self, scores: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Return the probability of a link at scores."""
        return expit(logit(self.prior) + self.intercept + self.slope * np.asarray(scores, np.float64))

    def with_prior(self, prior: float) -> "LinkCalibration":
        """Return the same calibration for another share of linked pairs."""
        return replace(self, prior=float(prior))


def calibrate(
    linked: Float[np.ndarray, " linked"],
    unlinked: Float[np.ndarray, " unlinked"],
    *,
    metric: str,
    larger_is_better: bool,
    prior: float,
) -> LinkCalibration:
    """Learn probabilities from the scores of held-out links and of pairs without a link, by logistic regression.

    They are constant if links do not have the better scores. `prior` is as in `LinkCalibration`.
    """
    if min(len(linked), len(unlinked)) < 2:
        raise ValueError(
            f"a calibration needs at least 2 linked and 2 unlinked pairs, got {len(linked)} and {len(unlinked)}"
        )
    scores = np.concatenate([linked, unlinked]).astype(np.float64)
    if not np.isfinite(scores).all():
        raise ValueError("a calibration needs finite scores, but one is infinite or not a number")
    labels = np.repeat([1, 0], [len(linked), len(unlinked)])
    # Both kinds weigh the same, so that what is learned is the likelihood ratio.
    weights = 0.5 * len(scores) / np.where(labels == 1, len(linked), len(unlinked))
    centre, scale = scores.mean(), scores.std() or 1.0
    fitted = LogisticRegression().fit(((scores - centre) / scale)[:, None], labels, sample_weight=weights)
    slope, constant = float(fitted.coef_[0, 0]) / scale, float(fitted.intercept_[0])
    if (slope > 0) != larger_is_better:  # worse scores must not be likelier links; then the score means nothing
        slope = constant = 0.0
    return LinkCalibration(metric, float(prior), len(linked), len(unlinked), slope, constant - slope * centre)


def calibrate_links(
    posterior: Posterior,
    links: Int[np.ndarray, "links 2"],
    metric: MetricLike,
    *,
    edges: Int[np.ndarray, "edges 2"],
    prior: float | None = None,
    n_unlinked: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> LinkCalibration:
    """Learn the probability of a link given a score, from links that training has not seen.

    Links and `edges`, which training has seen, are positions. `prior` is by default the share of linked pairs, by both,
    among all pairs of points. The links are compared with `n_unlinked` random pairs, by default ten for each link, and
    at least 1000.
    """
    metric = make_metric(metric)
    n_points = posterior.n_vertices
    codes, seen = (part.min(axis=1) * n_points + part.max(axis=1) for part in (links, edges))
    advice = "is an edge of training; calibrate with held-out links, such as those of corrvae.graphs.split_edges"
    for wrong, problem in ((links[:, 0] == links[:, 1], "joins a point with itself"), (np.isin(codes, seen), advice)):
        for place in np.flatnonzero(wrong)[:1]:
            first, second = posterior.ids[links[place]].tolist()
            raise ValueError(f"link {place}, ({first!r}, {second!r}), {problem}")
    linked = np.concatenate([links, edges])
    if prior is None:
        prior = len(np.unique(np.concatenate([codes, seen]))) / (0.5 * n_points * (n_points - 1))
    count = max(_UNLINKED * len(links), _FEWEST_UNLINKED) if n_unlinked is None else n_unlinked
    unlinked = random_unlinked(n_points, linked, count, np.random.default_rng(random_state))
    return calibrate(
        score(posterior, posterior, metric, links),
        score(posterior, posterior, metric, unlinked),
        metric=metric.name,
        larger_is_better=metric.larger_is_better,
        prior=prior,
    )


def calibration_error(
    calibration: LinkCalibration,
    linked: Float[np.ndarray, " linked"],
    unlinked: Float[np.ndarray, " unlinked"],
    n_bins: int = 20,
) -> float:
    """Return the expected calibration error: how far probabilities are from the share of links, on average over pairs.

    Pairs are cut into bins of like scores, so that each has as many of the given links; unlinked pairs stand for all
    others at the calibration's prior.
    """
    scores = np.concatenate([linked, unlinked])
    weights = np.repeat(
        [calibration.prior / len(linked), (1.0 - calibration.prior) / len(unlinked)], [len(linked), len(unlinked)]
    )
    bins = np.digitize(scores, np.quantile(linked, np.arange(1, n_bins) / n_bins))
    gaps = weights * (calibration(scores) - (np.arange(len(scores)) < len(linked)))
    return float(np.abs(np.bincount(bins, weights=gaps)).sum())


def random_unlinked(
    n_points: int, linked: Int[np.ndarray, "linked 2"], n_pairs: int, generator: np.random.Generator
) -> Int[np.ndarray, "pairs 2"]:
    """Draw pairs i < j of distinct points, none of them linked, with repetition."""
    links = linked[linked[:, 0] != linked[:, 1]]
    codes = np.unique(links.min(axis=1) * n_points + links.max(axis=1))
    if len(codes) >= n_points * (n_points - 1) // 2:
        raise ValueError("every pair of points is linked, so there are no unlinked pairs to compare with")
    found = np.empty(0, np.int64)
    while len(found) < n_pairs:
        drawn = np.sort(generator.integers(n_points, size=(2 * n_pairs, 2)), axis=1)
        own = drawn[:, 0] * n_points + drawn[:, 1]
        found = np.concatenate([found, own[(drawn[:, 0] != drawn[:, 1]) & ~np.isin(own, codes)]])
    return np.stack(np.divmod(found[:n_pairs], n_points), axis=1)
