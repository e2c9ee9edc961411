"""What the pair network needs of each point, kept whole where memory allows and made again where it does not."""

from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from corrvae.inference import evaluation_mode
from corrvae.model import CorrelatedModel
from corrvae.nn.features import FeatureTable
from corrvae.nn.pairs import PairNetwork

# Rows prepared at a time.
_ROWS = 4096


@final
class PairVectors:
    """The pair network's prepared vectors of a table's rows.

    Parameters
    ----------
    model
        A model with a pair network.
    table
        The features.
    rows
        The rows of the table, if not all of them in their order.
    memory
        Bytes that may be taken to keep all vectors; beyond that they are made each time they are asked for.
    """

    def __init__(
        self,
        model: CorrelatedModel,
        table: FeatureTable,
        *,
        rows: Int[np.ndarray, " rows"] | None = None,
        memory: int = 512 * 2**20,
    ) -> None:
        if model.pair_network is None:
            raise ValueError("this model has no pair network: its posteriors are independent")
        self.model = model
        self.network: PairNetwork = model.pair_network
        self._table = table
        self._rows: np.ndarray = np.arange(table.shape[0]) if rows is None else rows
        self._memory = memory
        self._kept: Tensor | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, indices: Int[np.ndarray, " rows"]) -> "PairVectors":
        """Give the vectors of some rows, as a table of their own."""
        return PairVectors(self.model, self._table, rows=self._rows[indices], memory=self._memory)

    def at(self, indices: Int[np.ndarray, " rows"]) -> Float[Tensor, "rows width"]:
        """Give the vectors of these rows, on the CPU."""
        if self._kept is None and self._fits():
            self._kept = self._prepare(np.arange(len(self)))
        if self._kept is not None:
            return self._kept[torch.from_numpy(indices)]
        return self._prepare(indices)

    def _fits(self) -> bool:
        if len(self) == 0:
            return False
        width = self._prepare(np.zeros(1, np.int64)).shape[1]
        return 4 * width * len(self) <= self._memory

    def _prepare(self, indices: np.ndarray) -> Tensor:
        with evaluation_mode(self.model) as device:
            pieces = np.split(indices, range(_ROWS, len(indices), _ROWS))
            rows = (self._table.rows(self._rows[piece]).to(device) for piece in pieces)
            return torch.cat([self.model.prepare_pairs(piece).cpu() for piece in rows])
