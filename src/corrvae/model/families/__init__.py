"""Posterior families, one file each: what a step draws, what it optimises, what is inferred.

A new family is one file with a `Family` and one line in `FAMILIES`; nothing else asks which family a model has.
"""

from typing import Any

from sklearn.base import clone

from corrvae.model.families.base import Family as Family
from corrvae.model.families.evidence import EvidencePosterior as EvidencePosterior
from corrvae.model.families.independent import Independent as Independent
from corrvae.model.families.joint import Joint as Joint
from corrvae.model.families.pairwise import Pairwise as Pairwise

FAMILIES: dict[str, type[Family]] = {"independent": Independent, "pairwise": Pairwise, "joint": Joint}


def make_family(choice: Any) -> Family:
    """Return a new family that is not yet built, from its name or from one with the options wanted."""
    if isinstance(choice, str):
        if choice not in FAMILIES:
            raise ValueError(f"family must be one of {sorted(FAMILIES)} or a Family, got {choice!r}")
        return FAMILIES[choice]()
    if not isinstance(choice, Family):
        raise TypeError(f"family must be a name or a corrvae.model.families.Family, got {type(choice).__name__}")
    return clone(choice)  # pyright: ignore[reportReturnType]
