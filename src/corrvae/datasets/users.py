"""Users for the matching task: in parts that share no user, and cut in two halves that share no item."""

from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Int
from scipy import sparse

from corrvae.graphs import CorrelationGraph

# As in the paper: so many test pairs, or all where there are fewer.
MOST_PAIRS = 1000
Protocol = Literal["random-halves", "two-catalogues"]


@final
@dataclass(frozen=True, eq=False)
class HalvedUsers:
    """Users and one draw of their halves: rows 2u and 2u + 1 of the features are those of user u, joined in the graph.

    `items` has what each user has, one row each.
    """

    items: sparse.csr_array
    features: sparse.csr_array
    graph: CorrelationGraph
    protocol: Protocol = "random-halves"

    @property
    def n_users(self) -> int:
        """Number of users; there are twice as many halves."""
        return int(self.graph.n_edges)

    def redraw(self, rows: Int[np.ndarray, " rows"], generator: np.random.Generator) -> sparse.csr_array:
        """Draw halves again, for ``CorrelatedVAE.fit(..., augment=users.redraw)``.

        Both halves of a user, where both are asked for, are parts of the same draw: they share no item. Of two
        catalogues the item list is cut once for all rows of a call.
        """
        return _draw(self.items, rows, generator, self.protocol)


@final
@dataclass(frozen=True, eq=False)
class UserSplit:
    """Row numbers of users in three parts that share none, each sorted."""

    train: Int[np.ndarray, " train"]
    validation: Int[np.ndarray, " validation"]
    test: Int[np.ndarray, " test"]


def halve_users(
    items: Any, *, protocol: Protocol = "random-halves", random_state: int | np.random.Generator | None = None
) -> HalvedUsers:
    """Split each user's items (a row for each) into two halves at random.

    "random-halves": each user's items are halved on their own; halves differ by one item at most, and a user with a
    single item has an empty half. "two-catalogues": the list of items is cut into two catalogues of equal size, the
    same for all users, and a half is what a user has of one; halves differ in size, and may be empty.
    """
    table = sparse.csr_array(items, dtype=np.float32)
    table.sum_duplicates()
    table.eliminate_zeros()
    count = len(table.indptr) - 1
    halves = np.arange(2 * count)
    features = _draw(table, halves, np.random.default_rng(random_state), protocol)
    return HalvedUsers(table, features, CorrelationGraph(halves.reshape(count, 2), 2 * count), protocol)


def split_users(
    n_users: int,
    *,
    test: float = 0.1,
    validation: float = 0.05,
    most_pairs: int = MOST_PAIRS,
    random_state: int | np.random.Generator | None = None,
) -> UserSplit:
    """Split users at random into train, validation and test.

    `test` is the share of users for testing, `validation` that of the remaining users for choosing a model, rounded up.
    Both keep at most `most_pairs` users, drawn at random; the others are in no part.
    """
    order = np.random.default_rng(random_state).permutation(n_users)
    n_test = ceil(test * n_users - 1e-9)  # 0.07 * 100 is a little more than 7
    n_validation = ceil(validation * (n_users - n_test) - 1e-9)
    tested, validated, trained = np.split(order, [n_test, n_test + n_validation])
    return UserSplit(np.sort(trained), np.sort(validated[:most_pairs]), np.sort(tested[:most_pairs]))


def _draw(
    items: sparse.csr_array, rows: Int[np.ndarray, " rows"], generator: np.random.Generator, protocol: Protocol
) -> sparse.csr_array:
    users, place = np.unique(rows // 2, return_inverse=True)
    owned = sparse.csr_array(items[users])
    counts = np.diff(owned.indptr)
    if protocol == "two-catalogues":
        catalogue = generator.permutation(owned.shape[1]) % 2  # pyright: ignore[reportOptionalSubscript]
        sides = catalogue[owned.indices]
    else:
        # A random order of each user's entries: the first half of it is one side, and a coin rounds.
        order = np.argsort(np.repeat(np.arange(len(users)), counts) + generator.random(owned.nnz))
        n_first = (counts + generator.integers(0, 2, len(users))) // 2
        sides = np.empty(owned.nnz, np.int64)
        sides[order] = np.arange(owned.nnz) >= np.repeat(owned.indptr[:-1] + n_first, counts)
    marks = sparse.csr_array((sides, owned.indices, owned.indptr), shape=owned.shape)
    drawn = sparse.csr_array(owned[place])
    kept = sparse.csr_array(marks[place]).data == np.repeat(rows % 2, np.diff(drawn.indptr))
    indptr = np.concatenate([[0], np.cumsum(kept)])[drawn.indptr].astype(drawn.indptr.dtype)
    return sparse.csr_array((drawn.data[kept], drawn.indices[kept], indptr), shape=drawn.shape)
