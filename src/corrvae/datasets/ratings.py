"""MovieLens, Epinions and Ciao: who has rated what, and for the last two who trusts whom."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Int, Shaped
from scipy import sparse

from corrvae.datasets.citations import read_columns
from corrvae.datasets.published import CATALOGUE, locate, open_member
from corrvae.datasets.users import MOST_PAIRS, HalvedUsers, Protocol, UserSplit, halve_users, split_users
from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph, DroppedEdgesWarning


@final
@dataclass(frozen=True, eq=False)
class HalvedRatings:
    """Users and the items that they have rated, in parts that share no user; ids are the publisher's.

    Each part has users in two halves: features, the graph between halves, and `redraw` to draw halves again in
    training. `split` has the users of each part, as positions in `users`.
    """

    train: HalvedUsers
    validation: HalvedUsers
    test: HalvedUsers
    split: UserSplit
    users: Int[np.ndarray, " users"]
    items: Int[np.ndarray, " items"]


@final
@dataclass(frozen=True, eq=False)
class TrustData:
    """Users, the products that they have rated, and their mutual trust; ids are the publisher's, in row order."""

    features: sparse.csr_array
    graph: CorrelationGraph
    products: Int[np.ndarray, " products"]


def movielens(
    source: str | os.PathLike[str] = "ml-20m",
    *,
    min_ratings: int = 1000,
    test: float = 0.1,
    validation: float = 0.05,
    most_pairs: int = MOST_PAIRS,
    protocol: Protocol = "random-halves",
    random_state: int | np.random.Generator | None = None,
) -> HalvedRatings:
    """Read MovieLens for the matching task.

    A rating of any value counts as watched. Users who have watched fewer than two of the movies that are kept cannot be
    cut in two and are left out.

    Parameters
    ----------
    source : str or path-like
        A name, "ml-1m", "ml-10m", "ml-20m", "ml-25m" or "ml-32m", of data that `get` put into the cache; or the path of
        the published archive, of a folder with its files, or of its ``ratings.dat`` or ``ratings.csv``.
    min_ratings : int
        Number of users that a movie must have been rated by. The default is the paper's, for 20 million ratings; 50
        keeps the proportion for one million.
    test, validation, most_pairs
        Shares of users, and the most pairs to evaluate on; see `split_users`.
    protocol
        How users are halved; see `halve_users`.
    random_state : int, Generator or None
        Seed or generator of parts and halves.
    """
    users, movies = _read_movielens(source, "userId", "movieId")
    shares = {"test": test, "validation": validation, "most_pairs": most_pairs}
    return _halve(Path(source), users, movies, min_ratings, 2, protocol, random_state, **shares)


def rated_products(
    name: Literal["ciao", "epinions"],
    *,
    min_ratings: int,
    min_items: int = 10,
    protocol: Protocol = "random-halves",
    random_state: int | np.random.Generator | None = None,
) -> HalvedRatings:
    """Read the ratings of Ciao or Epinions for the matching task, as `movielens`.

    Products that `min_ratings` users or more have rated are kept, then users with `min_items` of these or more.
    """
    path = locate(name)
    users, products = _read_ciao(path) if name == "ciao" else _read_numbers(path, "ratings_data.txt")[:2]
    return _halve(path, users, products, min_ratings, min_items, protocol, random_state)


def _halve(
    path: Path,
    users: Int[np.ndarray, " ratings"],
    items: Int[np.ndarray, " ratings"],
    min_ratings: int,
    min_items: int,
    protocol: Protocol,
    random_state: int | np.random.Generator | None,
    **shares: Any,
) -> HalvedRatings:
    matrix, users, items = _rated_items(users, items, min_ratings, min_items)
    if not len(users):
        kept = f"{min_items:,} items" if min_items > 2 else "two movies"
        raise DataFileError(path, f"no user has {kept} with {min_ratings:,} ratings or more; lower min_ratings")
    generator = np.random.default_rng(random_state)
    split = split_users(len(users), random_state=generator, **shares)
    parts = {
        part: halve_users(matrix[getattr(split, part)], protocol=protocol, random_state=generator)
        for part in ("train", "validation", "test")
    }
    return HalvedRatings(**parts, split=split, users=users, items=items)


def watched(
    source: str | os.PathLike[str] = "ml-1m", *, min_rating: float = 4.0, min_items: int = 5
) -> sparse.csr_array:
    """Read MovieLens as 1 where the user of the row has rated the movie of the column well, both in order of their ids.

    The source is as in `movielens`. Ratings below `min_rating` are left out, then users with fewer than `min_items`
    movies.
    """
    users, movies, ratings = _read_movielens(source, "userId", "movieId", "rating")
    liked = ratings >= min_rating
    return _rated_items(users[liked], movies[liked], 1, min_items)[0]


def epinions(source: str | os.PathLike[str] = "epinions", *, min_ratings: int = 100) -> TrustData:
    """Read Epinions for the link task.

    Products that `min_ratings` users or more have rated are kept, then users who have rated one of them and have mutual
    trust with another such user. The published files give 16,101 users, 679 products and 76,315 edges.

    The source is "epinions" for the data that `get` put into the cache; or the path of a zip archive or a folder with
    ``ratings_data.txt`` and ``trust_data.txt``, compressed with bzip2 or not; or of one of them, beside the other.
    """
    path = locate("epinions") if source == "epinions" else Path(source)
    users, products, _ = _read_numbers(path, "ratings_data.txt")
    first, second, value = _read_numbers(path, "trust_data.txt")
    return _join_trust(path, users, products, np.column_stack([first, second])[value > 0], min_ratings)


def ciao(source: str | os.PathLike[str] = "ciao", *, min_ratings: int = 20) -> TrustData:
    """Read Ciao as `epinions` reads Epinions: ``ratings.csv`` (user, product) and ``trust.csv`` (source, target)."""
    path = locate("ciao") if source == "ciao" else Path(source)
    users, products = _read_ciao(path)
    pairs = np.column_stack(read_columns(path, "trust.csv", "source", "target"))
    return _join_trust(path, users, products, pairs, min_ratings)


def _read_ciao(path: Path) -> list[np.ndarray]:
    return read_columns(path, "ratings.csv", "user", "product")


def _join_trust(path: Path, users: np.ndarray, products: np.ndarray, pairs: np.ndarray, min_ratings: int) -> TrustData:
    matrix, users, products = _rated_items(users, products, min_ratings)
    pairs = pairs[np.isin(pairs, users).all(axis=1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedEdgesWarning)  # most trust is one-way
        graph = CorrelationGraph.from_edges(pairs, vertices=users, directed="mutual")
    trusted = np.flatnonzero(graph.degrees)
    if not len(trusted):
        raise DataFileError(path, f"no two users trust each other and have a product with {min_ratings:,} ratings")
    return TrustData(matrix[trusted], graph[trusted], products)


def _rated_items(
    users: Int[np.ndarray, " ratings"], items: Int[np.ndarray, " ratings"], min_ratings: int, min_items: int = 1
) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """Return the binary table of users and items that are rated often enough, and the ids of its rows and columns."""
    user_ids, rows = np.unique(users, return_inverse=True)
    item_ids, columns = np.unique(items, return_inverse=True)
    shape = (len(user_ids), len(item_ids))
    matrix = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    often = np.flatnonzero(np.bincount(matrix.indices, minlength=len(item_ids)) >= min_ratings)
    matrix = sparse.csr_array(matrix[:, often])
    active = np.flatnonzero(np.diff(matrix.indptr) >= min_items)
    return matrix[active], user_ids[active], item_ids[often]


def _read_movielens(source: str | os.PathLike[str], *columns: str) -> list[Shaped[np.ndarray, " ratings"]]:
    """Return columns of ``ratings.csv``, or of ``ratings.dat`` with lines like 1::1193::5::978300."""
    import pyarrow as pa
    from pyarrow import csv

    path = locate(source) if isinstance(source, str) and source in CATALOGUE else Path(source)
    types = {name: pa.float64() if name == "rating" else pa.int64() for name in columns}
    with open_member(path, ["ratings.dat", "ratings.csv"]) as (name, stream):
        is_csv = name == "ratings.csv"
        names = None if is_csv else ["userId", "", "movieId", " ", "rating", "  ", "timestamp"]
        try:
            table = csv.read_csv(
                stream,
                csv.ReadOptions(column_names=names, block_size=1 << 23),
                csv.ParseOptions(delimiter="," if is_csv else ":"),
                csv.ConvertOptions(column_types=types, include_columns=columns, null_values=[]),
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise DataFileError(path, f"{name} is not as published ({str(error).splitlines()[0]})") from error
    if not table.num_rows:
        raise DataFileError(path, f"{name} holds no rows")
    return [table.column(column).to_numpy() for column in columns]


def _read_numbers(path: Path, name: str) -> Int[np.ndarray, "3 rows"]:
    with open_member(path, [name]) as (_, stream), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*input contained no data")
        try:
            numbers = np.loadtxt(stream, dtype=np.int64, ndmin=2)  # pyright: ignore[reportArgumentType]
        except ValueError as error:
            raise DataFileError(path, f"{name} is not as published, three numbers on each line ({error})") from error
    if not numbers.size or numbers.shape[1] != 3:
        raise DataFileError(path, f"{name} is not as published, three numbers on each line")
    return numbers.T
