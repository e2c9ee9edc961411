"""The features that points most probably have, and features that the decoder treats alike."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import sparse
from torch import Tensor

from corrvae.model import CorrelatedModel
from corrvae.model.network import evaluation_mode
from corrvae.model.posterior import Posterior
from corrvae.nn import Scaling

Matrix = np.ndarray | sparse.csr_array
# Numbers of a block: rows times features, and latent points times features.
_CELLS = 2**23
# Latent points at which features are compared, at most.
_POINTS = 1024


def top_features(
    model: CorrelatedModel,
    points: Posterior,
    k: int,
    *,
    seen: Callable[[Int[np.ndarray, " rows"]], Matrix] | None = None,
    among: Int[np.ndarray, " candidates"] | None = None,
    scaling: Scaling | None = None,
    n_samples: int = 16,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[Int[np.ndarray, "points k"], Float[np.ndarray, "points k"]]:
    """Find the k features with the largest expectation E_q[E[x | z]] at each point, best first.

    The expectation is a mean over draws from each point's posterior, the same noise for all points: what is found for
    one does not depend on the others.

    `seen` returns the features of some points, by position; one that is there (not 0, not missing) is left out. `among`
    are the features to choose among. Standardised columns are compared in the user's units. With `n_samples` 0 the
    means are decoded. Returns columns, and their expectations: -1 and not-a-number where there are no more.
    """
    noise = np.random.default_rng(random_state).standard_normal((max(0, n_samples) // 2, points.n_components))
    noise = np.concatenate([noise, -noise]) if len(noise) else np.zeros((1, points.n_components))
    step = max(1, _CELLS // max(1, model.likelihood.n_features))
    found, best = [], []
    with evaluation_mode(model):
        for begin in range(0, max(1, len(points)), step):
            rows = np.arange(begin, min(begin + step, len(points)))
            scores = _expectations(model, points.mean[rows], points.stddev[rows], noise)
            if scaling is not None and scaling.scale is not None:
                scores = torch.from_numpy(scaling.invert(scores.numpy()))
            if seen is not None:
                scores[_entries(seen(rows))] = -torch.inf
            if among is not None:
                scores = scores[:, torch.from_numpy(among)]
            values, places = scores.topk(min(k, scores.shape[1]), dim=1)
            places = places.numpy() if among is None else among[places.numpy()]
            there = np.isfinite(values.numpy())
            found.append(np.where(there, places, -1))
            best.append(np.where(there, values.numpy(), np.nan))
    return np.concatenate(found), np.concatenate(best)


def alike_features(
    model: CorrelatedModel,
    points: Posterior,
    features: Int[np.ndarray, " queries"],
    k: int,
    *,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[Int[np.ndarray, "queries k"], Float[np.ndarray, "queries k"]]:
    """Find the k features whose decoder outputs correlate most with those of a feature, never itself, best first.

    The correlation is that over a draw from the posteriors of some of the points: features are alike that rise and fall
    together across the latent space, whatever their frequency.
    """
    generator = np.random.default_rng(random_state)
    n_features = model.likelihood.n_features
    chosen = generator.permutation(len(points))[: max(2, min(_POINTS, 4 * _CELLS // n_features))]
    latent = points.mean[chosen] + points.stddev[chosen] * generator.standard_normal((len(chosen), points.n_components))
    with evaluation_mode(model):
        outputs = model.decoder(torch.from_numpy(latent.astype(np.float32)).to(model.device)).cpu()
        outputs -= outputs.mean(0)
        outputs /= outputs.norm(dim=0).clamp_min(torch.finfo(outputs.dtype).tiny)
        found, best = [], []
        step = max(1, _CELLS // n_features)
        for begin in range(0, max(1, len(features)), step):
            block = torch.from_numpy(features[begin : begin + step])
            scores = outputs[:, block].T @ outputs
            scores[torch.arange(len(block)), block] = -torch.inf
            values, places = scores.topk(min(k, n_features - 1), dim=1)
            found.append(places.numpy())
            best.append(values.numpy())
    return np.concatenate(found), np.concatenate(best)


def _expectations(model: CorrelatedModel, mean: np.ndarray, stddev: np.ndarray, noise: np.ndarray) -> Tensor:
    """Return E[x | z] averaged over z = mean + stddev noise."""
    center, spread, draws = (
        torch.from_numpy(part.astype(np.float32)).to(model.device) for part in (mean, stddev, noise)
    )
    total = center.new_zeros(len(center), model.likelihood.n_features)
    for draw in draws:
        total += model.likelihood.mean(model.decoder(torch.addcmul(center, spread, draw)))
    return (total / len(draws)).cpu()


def _entries(block: Matrix) -> tuple[Tensor, Tensor]:
    """Return rows and columns of the entries that are neither 0 nor missing."""
    if isinstance(block, np.ndarray):
        rows, columns = np.nonzero((block != 0) & ~np.isnan(block))
    else:
        there = (block.data != 0) & ~np.isnan(block.data)
        rows = np.repeat(np.arange(len(block.indptr) - 1), np.diff(block.indptr))[there]
        columns = block.indices[there]
    return torch.from_numpy(rows.astype(np.int64)), torch.from_numpy(columns.astype(np.int64))
