"""Searches by expected distance under correlated posteriors, where each pair needs the pair network.

Bounds that hold for every correlation leave out what cannot matter; the rest is evaluated in tiles, on all cores, each
pair of distinct points once. `nearest` gives the best candidates, `rank` the ranks of given pairs.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.scoring.correlated.neighbors import nearest as nearest
    from corrvae.scoring.correlated.ranking import rank as rank
    from corrvae.scoring.correlated.sides import pre_activation as pre_activation

_HOMES = {"nearest": ".neighbors", "pre_activation": ".sides", "rank": ".ranking"}
__all__ = ["nearest", "pre_activation", "rank"]

__getattr__, __dir__ = _attach(__name__, _HOMES)
