"""Features and graphs that training is measured on."""

import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

import graphs

# Users and products of the original Epinions files after the paper's filters.
EPINIONS_SHAPE = 16_101, 679
MOVIELENS_SHAPE = 276_000, 3_000


@dataclass(frozen=True)
class Table:
    """A matrix of features, and edges between its rows."""

    X: sparse.csr_array
    edges: np.ndarray

    def save(self, path: Path) -> str:
        """Write the arrays to a file; give its path."""
        X = self.X
        np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape), edges=self.edges)
        return str(path)

    @classmethod
    def load(cls, path: str) -> "Table":
        """Read what `save` wrote."""
        with np.load(path) as parts:
            csr = parts["data"], parts["indices"], parts["indptr"]
            return cls(sparse.csr_array(csr, shape=tuple(parts["shape"].tolist())), parts["edges"])


def epinions() -> Table | None:
    """The original files after the paper's filters, when the folder CORRVAE_DATA has them.

    Products rated at least 100 times; users with a rating of one and a mutual edge to another such user.
    """
    archive = Path(os.environ.get("CORRVAE_DATA", "")) / "epinions.zip"
    if not archive.is_file():
        return None
    with zipfile.ZipFile(archive) as members, members.open("trust_data.txt") as lines:
        trust = np.unique(np.loadtxt(io.TextIOWrapper(lines), dtype=np.int64, usecols=(0, 1)), axis=0)
    with zipfile.ZipFile(archive) as members, members.open("ratings_data.txt") as lines:
        users, products = np.loadtxt(io.TextIOWrapper(lines), dtype=np.int64, usecols=(0, 1)).T
    often = np.bincount(products)[products] >= 100
    users, products = users[often], products[often]
    n_users = int(max(users.max(), trust.max())) + 1
    rated = np.zeros(n_users, dtype=bool)
    rated[users] = True
    there, back = trust @ [n_users, 1], trust @ [1, n_users]
    mutual = trust[np.isin(there, back) & (trust[:, 0] < trust[:, 1])]
    mutual = mutual[rated[mutual].all(axis=1)]
    chosen, ends = np.unique(mutual, return_inverse=True)
    row_of = np.full(n_users, -1)
    row_of[chosen] = np.arange(len(chosen))
    kept = row_of[users] >= 0
    rows, columns = row_of[users[kept]], np.unique(products, return_inverse=True)[1][kept]
    X = sparse.coo_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(chosen), columns.max() + 1))
    X = X.tocsr()
    X.data[:] = 1.0  # rated, however often
    return Table(X, ends.reshape(-1, 2))


def like_epinions() -> Table:
    """Generated data of the same shape, with about as many edges."""
    n_rows, n_columns = EPINIONS_SHAPE
    return Table(sparse_rows(n_rows, n_columns, 7), graphs.scale_free(n_rows, 5, 0))


def like_movielens(n_rows: int) -> Table:
    """Generated data of the shape of MovieLens-20M for matching: two halves of each user, joined by an edge."""
    return Table(sparse_rows(n_rows, MOVIELENS_SHAPE[1], 72), graphs.pairs(n_rows // 2))


def sparse_rows(n_rows: int, n_columns: int, per_row: int) -> sparse.csr_array:
    """Ones in distinct columns of each row, some columns far more often than others."""
    generator = np.random.default_rng(0)
    popularity = (1.0 / np.arange(10, 10 + n_columns)).astype(np.float32)
    pieces = []
    for begin in range(0, n_rows, 4096):
        # the first arrivals among exponential clocks that run at the speed of popularity
        clocks = generator.standard_exponential((min(4096, n_rows - begin), n_columns), dtype=np.float32) / popularity
        pieces.append(np.sort(np.argpartition(clocks, per_row, axis=1)[:, :per_row], axis=1).astype(np.int32))
    indices = np.concatenate(pieces).reshape(-1)
    indptr = np.arange(0, len(indices) + 1, per_row, dtype=np.int32)
    return sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=(n_rows, n_columns))
