"""Where a fit begins: with new networks, or with those of the fits before it."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import final

import torch

from corrvae.building import Architecture, build_model
from corrvae.fitting import Seeds
from corrvae.model import CorrelatedModel


@final
@dataclass(frozen=True)
class Past:
    """What a fit that goes on must know of those before it.

    Attributes
    ----------
    architecture
        What the networks were built from.
    hold_out
        Seed of the rows that the first fit held out; ``None`` if it is not known.
    fits
        How many there were; one that is to be taken up again from its checkpoint does not count.
    """

    architecture: Architecture
    hold_out: int | None = None
    fits: int = 1


@final
@dataclass(frozen=True, eq=False)
class Start:
    """A fit about to begin.

    Attributes
    ----------
    model
        The networks to train, which are nobody else's.
    seeds
        Of all that is random in this fit.
    past
        What the next fit must know, when this one has run to its end.
    """

    model: CorrelatedModel
    seeds: Seeds
    past: Past

    def past_after(self, *, unfinished: bool) -> Past:
        """Give what the next fit must know; the draws of an unfinished one are to be had again."""
        return replace(self.past, fits=self.past.fits - 1) if unfinished else self.past


def start_anew(architecture: Architecture, seeds: Seeds) -> Start:
    """Begin with new networks.

    Examples
    --------
    >>> start_anew(Architecture(3, 2), Seeds.of(0)).past.fits
    1
    """
    return Start(build_model(architecture, seeds.networks), seeds, Past(architecture, seeds.hold_out))


def go_on(model: CorrelatedModel, past: Past, architecture: Architecture, seeds: Seeds) -> Start:
    """Begin with a copy of the networks of the last fit, if these are still what is asked for.

    The draws are new ones, also under the same seed, and the rows held out those of the first fit.

    Examples
    --------
    >>> first = start_anew(Architecture(3, 2), Seeds.of(0))
    >>> second = go_on(first.model, first.past, Architecture(3, 2), Seeds.of(0))
    >>> second.seeds.training != first.seeds.training, second.seeds.hold_out == first.seeds.hold_out
    (True, True)
    """
    changed = [name for name, value in vars(architecture).items() if value != vars(past.architecture)[name]]
    if changed:
        raise ValueError(f"warm_start cannot go on: {', '.join(changed)} changed since the last fit")
    if past.fits:
        seeds = seeds.after(past.fits, past.hold_out)
    with torch.inference_mode(False):  # what is copied in the caller's could not be trained
        own = deepcopy(model)
    return Start(own, seeds, Past(architecture, seeds.hold_out, past.fits + 1))
