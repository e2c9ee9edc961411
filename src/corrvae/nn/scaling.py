"""The units in which a model sees its features."""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from jaxtyping import Float
from scipy import sparse

Counts = Literal["raw", "presence", "log"]


@final
@dataclass(frozen=True, eq=False)
class Scaling:
    """What is done to features before the model sees them, networks and likelihood alike.

    Counts stay as they are ("raw"), become 1 ("presence") or log(1 + x), perhaps divided by a scale ("log"). Real
    columns are standardised, (x - location) / scale; in sparse batches only divided by their scale, so that zeros stay
    zeros.
    """

    counts: Counts = "raw"
    location: Float[np.ndarray, " features"] | None = None
    scale: Float[np.ndarray, " features"] | None = None

    def __call__(self, rows: np.ndarray | sparse.csr_array) -> np.ndarray | sparse.csr_array:
        """Return rows in the model's units."""
        if self.counts == "raw" and self.scale is None:
            return rows
        if isinstance(rows, sparse.csr_array):
            columns = None if self.scale is None else self.scale[rows.indices]
            return sparse.csr_array((self._entries(rows.data, None, columns), rows.indices, rows.indptr), rows.shape)
        return self._entries(np.asarray(rows), self.location, self.scale)

    def _entries(self, values: np.ndarray, location: np.ndarray | None, scale: np.ndarray | None) -> np.ndarray:
        values = values.astype(np.float32)  # as features are kept, so that kept ones give the same
        if self.counts == "presence":
            return np.where(np.isnan(values), np.nan, values != 0).astype(np.float32)
        if self.counts == "log":
            return np.log1p(values) if scale is None else np.log1p(values) / scale
        centred = values if location is None else values - location
        return centred / scale

    def invert(self, features: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows features"]:
        """Return features in the user's units; what "presence" took away is not brought back."""
        if self.scale is not None:
            features = (features * self.scale + (0.0 if self.location is None else self.location)).astype(
                features.dtype
            )
        return np.expm1(features) if self.counts == "log" else features
