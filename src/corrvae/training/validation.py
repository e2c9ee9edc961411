"""The objective over all of some data, and the terms that are not finite."""

import numpy as np
import torch

from corrvae.errors import TrainingError
from corrvae.model import Batch, CorrelatedModel, Terms, TrainingData
from corrvae.model.network import evaluation_mode
from corrvae.nn import FeatureTable

OBJECTIVE = "the objective"  # blamed if no single term is


def evaluate(model: CorrelatedModel, data: TrainingData, *, seed: int = 0, step: int = 0) -> dict[str, float]:
    """Return the objective's terms and total over `exhaustive` data, with the same draws and noise at every call.

    `step` is named by the `TrainingError` that a term raises if it is infinite or not a number.
    """
    sums: dict[str, float] = {}
    pieces = model.family.n_pieces(data)
    generator = torch.Generator(model.device).manual_seed(seed)
    with evaluation_mode(model):
        for piece in range(pieces):
            batch = model.family.draw(data, piece).to(model.device)
            terms = model(batch, generator)
            for name, value in terms.numbers().items():
                sums[name] = sums.get(name, 0.0) + value / pieces
            if not np.isfinite(list(sums.values())).all():
                raise broken_term(terms, batch, step, data.table)
    return sums


def broken_term(terms: Terms, batch: Batch, step: int, table: FeatureTable) -> TrainingError:
    """Return the error that names the first term that is not finite, and the rows of X it is not finite at."""
    for name, values in terms.values.items():
        wrong = torch.nonzero(~torch.isfinite(values.detach()))[:, 0].cpu().numpy()
        if len(wrong):
            vertices = np.array(batch.vertices_of(name, wrong))
            return TrainingError(step, f"the {name} term", tuple(table.numbers(vertices).tolist()))
    return TrainingError(step, OBJECTIVE, tuple(table.numbers(batch.vertices).tolist()))
