"""MovieLens as the matching task needs it: who has watched what, users in three parts, each user in two halves."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int

from corrvae.datasets.archives import open_member
from corrvae.datasets.cache import locate
from corrvae.datasets.catalogue import CATALOGUE
from corrvae.datasets.columns import RATINGS_CSV, RATINGS_DAT, read_integers
from corrvae.datasets.ratings import RatedItems, rated_items
from corrvae.errors import DataFileError
from corrvae.tasks.halves import HalvedUsers, halve_users
from corrvae.tasks.matching import MOST_PAIRS, UserSplit, split_users

_LAYOUTS = {"ratings.dat": RATINGS_DAT, "ratings.csv": RATINGS_CSV}


@final
@dataclass(frozen=True, eq=False)
class MovieLens:
    """Users and the movies they have rated, in parts that share no user.

    Attributes
    ----------
    train, validation, test
        Users in two halves: features, the graph between halves, and `redraw` to draw halves anew in training.
    split
        The users of each part, as positions in `users`.
    users, movies
        The publisher's ids.

    Examples
    --------
    >>> from corrvae.tasks import halve_users, split_users
    >>> rated = np.random.default_rng(0).random((40, 20)) < 0.5
    >>> split = split_users(40, random_state=0)
    >>> parts = [halve_users(rated[users], random_state=0) for users in (split.train, split.validation, split.test)]
    >>> data = MovieLens(*parts, split, np.arange(40), np.arange(20))
    >>> data.train.graph.n_edges == len(data.split.train)
    True
    """

    train: HalvedUsers
    validation: HalvedUsers
    test: HalvedUsers
    split: UserSplit
    users: Int[np.ndarray, " users"]
    movies: Int[np.ndarray, " movies"]


def movielens(
    source: str | os.PathLike[str] = "ml-20m",
    *,
    min_ratings: int = 1000,
    test: float = 0.1,
    validation: float = 0.05,
    most_pairs: int = MOST_PAIRS,
    random_state: int | np.random.Generator | None = None,
) -> MovieLens:
    r"""Read MovieLens for the matching task.

    A rating of any value counts as watched. Users who have watched fewer than two of the movies that are kept cannot be
    cut in two and are left out.

    Parameters
    ----------
    source
        A name, "ml-1m", "ml-10m", "ml-20m", "ml-25m" or "ml-32m", of data that `get` has got; or the path of the
        published archive, of a folder with what is in it, or of its ``ratings.dat`` or ``ratings.csv``.
    min_ratings
        Users that a movie must have been rated by. The default is the paper's, for 20 million ratings; 50 keeps the
        proportion for one million.
    test, validation, most_pairs
        Shares of users, and the most pairs to evaluate on; see `corrvae.tasks.split_users`.
    random_state
        Seed or generator of parts and halves.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> rows = "".join(f"{user},{movie},3.5,0\n" for user in range(20) for movie in range(user % 4, 9))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "ratings.csv")
    ...     _ = path.write_text("userId,movieId,rating,timestamp\n" + rows)
    ...     data = movielens(path, min_ratings=10, random_state=0)
    >>> data.train.features.shape, data.train.graph
    ((34, 8), CorrelationGraph(34 vertices, 17 edges))
    """
    table = _read(source, min_ratings)
    generator = np.random.default_rng(random_state)
    parts = split_users(
        len(table.users), test=test, validation=validation, most_pairs=most_pairs, random_state=generator
    )
    return MovieLens(
        train=halve_users(table.matrix[parts.train], random_state=generator),
        validation=halve_users(table.matrix[parts.validation], random_state=generator),
        test=halve_users(table.matrix[parts.test], random_state=generator),
        split=parts,
        users=table.users,
        movies=table.items,
    )


def _read(source: str | os.PathLike[str], min_ratings: int) -> RatedItems:
    path = locate(source) if isinstance(source, str) and source in CATALOGUE else Path(source)
    with open_member(path, tuple(_LAYOUTS)) as member:
        users, movies = read_integers(path, member, _LAYOUTS[member.name], ("userId", "movieId"))
    table = rated_items(users, movies, min_ratings, min_items=2)
    if not len(table.users):
        raise DataFileError(path, f"no user has two movies with {min_ratings:,} ratings or more; lower min_ratings")
    return table
