"""Where data come from: small synthetic ones for demonstrations, and codes of published files."""

import hashlib

import numpy as np
from scipy import sparse

from corrvae.datasets import CATALOGUE, locate
from corrvae.graphs import CorrelationGraph

# Dimensions of taste, how much it decides, and how popularity falls with the rank of an item.
_TASTES, _STRENGTH, _FALL = 6, 4.0, 1.0
# Friends are alike in the first of these tastes only: items alone do not show which tastes bring people together, so
# that a demonstration has something to learn from the graph.
_SHARED, _CLOSENESS = 2, 4.0
_FEWEST_ITEMS, _FRIENDS = 12, 5


def small_world(
    n_users: int, n_items: int, *, random_state: int | np.random.Generator | None = None
) -> tuple[sparse.csr_array, CorrelationGraph]:
    """Draw users whose tastes decide which items they take, and who befriends whom: items and friendships.

    Items are taken in proportion to popularity, which falls as a power of the rank, times what the user's taste makes
    of it; how many is drawn from a power law too. Friends are alike in some of their tastes, and some users have many.
    """
    generator = np.random.default_rng(random_state)
    tastes = generator.standard_normal((n_users, _TASTES))
    kinds = generator.standard_normal((n_items, _TASTES)) / np.sqrt(_TASTES)
    popularity = -_FALL * np.log(np.arange(1, n_items + 1))
    wishes = _STRENGTH * tastes @ kinds.T + popularity
    counts = np.minimum(_FEWEST_ITEMS + generator.pareto(1.5, n_users) * _FEWEST_ITEMS, n_items // 2).astype(int)
    # the largest of these are items drawn without replacement, in proportion to the exponential of the wishes
    order = np.argsort(-(wishes + generator.gumbel(size=wishes.shape)), axis=1)
    rows = np.repeat(np.arange(n_users), counts)
    columns = np.concatenate([order[user, :count] for user, count in enumerate(counts)])
    items = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n_users, n_items))
    return items, _friends(tastes[:, :_SHARED], generator)


def _friends(tastes: np.ndarray, generator: np.random.Generator) -> CorrelationGraph:
    """Everybody chooses a few, the nearer in taste and the better known the likelier."""
    n_users = len(tastes)
    fame = generator.pareto(2.0, n_users)
    squares = np.square(tastes).sum(axis=1)
    near = tastes @ tastes.T - 0.5 * (squares[:, None] + squares)
    liking = _CLOSENESS * near + np.log1p(fame) + generator.gumbel(size=(n_users, n_users))
    np.fill_diagonal(liking, -np.inf)
    chosen = np.argpartition(-liking, _FRIENDS, axis=1)[:, :_FRIENDS]
    pairs = np.column_stack([np.repeat(np.arange(n_users), _FRIENDS), chosen.ravel()])
    return CorrelationGraph(np.unique(np.sort(pairs, axis=1), axis=0), n_users)


def data_files(name: str) -> dict[str, str]:
    """Return size and SHA-256 of a data set's archive by its name; nothing for data that are drawn or unpacked."""
    place = locate(name) if name in CATALOGUE else None
    if place is None or not place.is_file():
        return {}
    with place.open("rb") as file:
        return {place.name: f"{place.stat().st_size} bytes, {hashlib.file_digest(file, 'sha256').hexdigest()}"}
