"""The random numbers of a step that several ranks make together."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from corrvae.model import Batch, CorrelatedModel
from corrvae.nn.inputs import InputTransform
from corrvae.ranks import Ranks


@final
@dataclass(frozen=True, eq=False)
class StepNoise:
    """What one rank's part of a step takes from chance.

    Attributes
    ----------
    latent
        Standard normal noise of the vertices drawn.
    seed
        Of what input dropout drops; ``None`` without dropout.
    """

    latent: Float[Tensor, "drawn dim"]
    seed: int | None = None

    def generator(self) -> torch.Generator | None:
        """Give a generator for dropout, the same one at every call."""
        return None if self.seed is None else torch.Generator(self.latent.device).manual_seed(self.seed)


@final
class SharedNoise:
    """Draws the noise of whole steps, as every other rank does, and gives one rank's part of it.

    Without dropout one rank alone would draw the same numbers. What is dropped is drawn by each rank for itself, from a
    seed that all draw, so that a vertex which two ranks encode is not hidden alike in both: either way the estimate
    has no bias.

    Parameters
    ----------
    model
        Says how wide the noise is, and whether it has input dropout.
    generator
        The stream that all ranks draw from; no rank moves it on further than another.
    ranks
        Who takes part.
    n_drawn
        Vertices of a whole step.
    """

    def __init__(self, model: CorrelatedModel, generator: torch.Generator, ranks: Ranks, n_drawn: int) -> None:
        self._model, self._generator = model, generator
        self._ranks, self._n_drawn = ranks, n_drawn
        transforms = (module for module in model.modules() if isinstance(module, InputTransform))
        self._drops = any(transform.dropout > 0 for transform in transforms)
        self._like: Tensor | None = None

    def draw(self, batch: Batch) -> StepNoise:
        """Draw for a step of which this is the rank's batch."""
        if self._like is None:
            self._like = self._latent_of(batch)
        like, device = self._like, self._generator.device
        shape = self._n_drawn, like.shape[1]
        whole = torch.randn(shape, generator=self._generator, dtype=like.dtype, device=like.device)
        latent = whole[self._ranks.share(self._n_drawn)]
        if not self._drops:
            return StepNoise(latent)
        common = int(torch.randint(2**62, (), generator=self._generator, device=device))
        seeds = np.random.SeedSequence((common, self._ranks.index))
        return StepNoise(latent, int(seeds.generate_state(1, np.uint64)[0]))

    def _latent_of(self, batch: Batch) -> Tensor:
        """Give a latent point: as wide as the noise, and of its type."""
        with torch.no_grad():
            spare = torch.Generator(self._generator.device)
            return self._model.encoder(self._model.inputs(batch.rows.head(1), spare)).mean
