"""The data of the experiments: a synthetic tree, MovieLens and Epinions, read as their publishers give them.

Data stay in one folder, ``CORRVAE_DATA`` or the platform's cache; `get` puts them there.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.datasets._epinions import Epinions as Epinions
    from corrvae.datasets._epinions import epinions as epinions
    from corrvae.datasets._movielens import MovieLens as MovieLens
    from corrvae.datasets._movielens import movielens as movielens
    from corrvae.datasets._tree import TreeData as TreeData
    from corrvae.datasets._tree import tree as tree
    from corrvae.datasets.cache import cache_folder as cache_folder
    from corrvae.datasets.getting import get as get

# The underscores keep modules from taking the names of the functions in them.
_HOMES = {
    "Epinions": "._epinions",
    "MovieLens": "._movielens",
    "TreeData": "._tree",
    "cache_folder": ".cache",
    "epinions": "._epinions",
    "get": ".getting",
    "movielens": "._movielens",
    "tree": "._tree",
}

__all__ = ["Epinions", "MovieLens", "TreeData", "cache_folder", "epinions", "get", "movielens", "tree"]

__getattr__, __dir__ = _attach(__name__, _HOMES)
