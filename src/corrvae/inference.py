"""A trained model applied to whole tables of features, in pieces: the posterior of every row."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped

from corrvae.model import CorrelatedModel, VertexIndex
from corrvae.nn.features import FeatureTable
from corrvae.nn.kernels.choice import using
from corrvae.posterior import Posterior
from corrvae.ranks import Ranks

# Rows encoded, and pairs evaluated, at a time.
_ROWS, _PAIRS = 4096, 8192


def infer_posterior(
    model: CorrelatedModel,
    table: FeatureTable,
    ids: Shaped[np.ndarray, " rows"] | None = None,
    *,
    ranks: Ranks | None = None,
) -> Posterior:
    """Encode every row of a table; correlations of pairs are evaluated when they are asked for.

    Parameters
    ----------
    model
        The model, used in evaluation mode and left in the mode it was in.
    table
        The features.
    ids
        Ids of its rows, if they have some.
    ranks
        The processes that divide the rows among them, and all receive the result; they have the same model and table.

    Examples
    --------
    >>> from corrvae.nn import Decoder, Encoder, make_likelihood
    >>> model = CorrelatedModel(Encoder(6, 2), Decoder(2, 6), make_likelihood("gaussian", 6))
    >>> infer_posterior(model, FeatureTable(np.ones((5, 6))))
    Posterior(5 vertices, 2 dimensions, independent)
    """
    ranks = ranks or Ranks()
    everyone = np.arange(table.shape[0])
    pieces = np.split(everyone, everyone[_ROWS::_ROWS])  # the same for any number of ranks, and so are the bits
    with ranks.agreed():
        mine = pieces[ranks.share(len(pieces))] or [everyone[:0]]
        joint = np.concatenate([_encode(model, table, piece) for piece in mine])
    joint = ranks.gather_rows(joint)
    mean, stddev = np.split(joint, 2, axis=1)
    return Posterior(mean, stddev, None if model.pair_network is None else PairEvaluator(model, table), ids=ids)


def recall_posterior(
    model: CorrelatedModel,
    mean: Float[np.ndarray, "rows dim"],
    stddev: Float[np.ndarray, "rows dim"],
    table: FeatureTable | None,
    ids: Shaped[np.ndarray, " rows"],
) -> Posterior:
    """Give the posterior of rows whose means and standard deviations are known already.

    Parameters
    ----------
    model
        The model that they are from.
    mean, stddev
        One row for each.
    table
        The features, which correlations are computed from; ``None`` if they are not kept.
    ids
        Ids of the rows.

    Examples
    --------
    >>> from corrvae.building import Architecture, build_model
    >>> recall_posterior(build_model(Architecture(3, 2), 0), np.zeros((5, 2)), np.ones((5, 2)), None, np.arange(5))
    Posterior(5 vertices, 2 dimensions, independent)
    """
    if model.pair_network is None:
        return Posterior(mean, stddev, ids=ids)
    return Posterior(mean, stddev, _without_features if table is None else PairEvaluator(model, table), ids=ids)


@final
class PairEvaluator:
    """The pair network as a function of pairs of a table's rows, which are read as they are needed.

    Parameters
    ----------
    model
        A model with a pair network.
    table
        The features.
    """

    def __init__(self, model: CorrelatedModel, table: FeatureTable) -> None:
        if model.pair_network is None:
            raise ValueError("this model has no pair network: its posteriors are independent")
        self.network = model.pair_network
        self.model = model
        self.table = table
        self._index = VertexIndex(table.shape[0])

    def __call__(self, pairs: Int[np.ndarray, "pairs 2"]) -> Float[np.ndarray, "pairs dim"]:
        """Give a for each pair, with correlation tanh(a)."""
        nobody = np.empty(0, dtype=np.int64)
        values = np.empty((len(pairs), self.network.n_components), dtype=np.float32)
        with evaluation_mode(self.model) as device:
            for begin in range(0, len(pairs), _PAIRS):
                found = self._index.distinct(nobody, pairs[begin : begin + _PAIRS])
                prepared = self.model.prepare_pairs(self.table.rows(found.vertices).to(device))
                first, second = torch.from_numpy(found.positions).to(device).unbind(1)
                a = self.network.pre_activation(prepared, first, second)
                values[begin : begin + _PAIRS] = a.cpu().numpy()
        return values


def _encode(model: CorrelatedModel, table: FeatureTable, indices: np.ndarray) -> np.ndarray:
    # whatever the number of rows, so that a row's bits do not depend on it
    with evaluation_mode(model) as device, using(False):
        rows = model.inputs(table.rows(indices).to(device))
        return model.encoder(rows).joint.cpu().numpy()


def _without_features(pairs: np.ndarray) -> np.ndarray:
    raise ValueError(
        "correlations between training rows need their features, which the folder of this model does not hold "
        "(store_features=False); pass them: infer_posterior(X)"
    )


@contextmanager
def evaluation_mode(model: CorrelatedModel) -> Iterator[torch.device]:
    """Put a model in evaluation mode, without gradients, and afterwards in the mode it was in; give its device."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield next(model.parameters()).device
    finally:
        model.train(training)
