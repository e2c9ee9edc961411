"""Epinions as the link task needs it: who has rated what, and who trusts whom in both directions."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int
from scipy import sparse

from corrvae.datasets.archives import beside, open_member
from corrvae.datasets.cache import locate
from corrvae.datasets.columns import THREE_NUMBERS, read_integers
from corrvae.datasets.ratings import rated_items
from corrvae.errors import DataFileError
from corrvae.graphs.canonical import DroppedEdgesWarning
from corrvae.graphs.graph import CorrelationGraph

RATINGS, TRUST = "ratings_data.txt", "trust_data.txt"


@final
@dataclass(frozen=True, eq=False)
class Epinions:
    """Users, the products they have rated, and their mutual trust.

    Attributes
    ----------
    features
        1 where the user of the row has rated the product of the column.
    graph
        An edge where two users trust each other; its ids are the publisher's, in the order of the rows.
    products
        The publisher's ids of the columns.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(7, 9)])
    >>> data = Epinions(sparse.csr_array(np.eye(2)), graph, np.array([101, 102]))
    >>> data.products[data.features[[0]].indices].tolist()  # what user 7, the first row, has rated
    [101]
    """

    features: sparse.csr_array
    graph: CorrelationGraph
    products: Int[np.ndarray, " products"]


def epinions(source: str | os.PathLike[str] = "epinions", *, min_ratings: int = 100) -> Epinions:
    r"""Read Epinions for the link task.

    Products that are rated often enough are kept, then users who have rated one of them and have mutual trust with
    another such user. The published files give 16,101 users, 679 products and 76,315 edges.

    Parameters
    ----------
    source
        "epinions" for the data that `get` has got; or the path of a zip archive or a folder that holds
        ``ratings_data.txt`` and ``trust_data.txt``, compressed with bzip2 or not; or of one of them, beside the other.
    min_ratings
        Users that a product must have been rated by.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "ratings_data.txt").write_text("1 100 4\n2 100 5\n3 100 1\n")
    ...     _ = pathlib.Path(folder, "trust_data.txt").write_text(" 1 2 1\n 2 1 1\n 3 1 1\n")
    ...     data = epinions(folder, min_ratings=3)
    >>> data.features.toarray().tolist(), data.graph.id_pairs.tolist()
    ([[1.0], [1.0]], [[1, 2]])
    """
    path = locate("epinions") if source == "epinions" else beside(Path(source), (RATINGS, TRUST))
    with open_member(path, (RATINGS,)) as member:
        users, products = read_integers(path, member, THREE_NUMBERS, ("first", "second"))
    with open_member(path, (TRUST,)) as member:
        *ends, value = read_integers(path, member, THREE_NUMBERS, ("first", "second", "value"))
    table = rated_items(users, products, min_ratings)
    pairs = np.column_stack(ends)[value > 0]
    pairs = pairs[np.isin(pairs, table.users).all(axis=1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedEdgesWarning)  # most trust is one-way: nothing to worry about
        graph = CorrelationGraph.from_edges(pairs, vertices=table.users, directed="mutual")
    trusted = np.flatnonzero(graph.degrees)
    if not len(trusted):
        raise DataFileError(path, f"no two users trust each other and have a product with {min_ratings:,} ratings")
    return Epinions(table.matrix[trusted], graph[trusted], table.items)
