"""The embedding as a table, block by block: means `z0`, `z1`, ... and standard deviations `s0`, `s1`, ... under ids."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float, Shaped

from corrvae.answers.run import Run
from corrvae.answers.writing import BlockWriter, Columns, writing
from corrvae.drafts import draft_of_file
from corrvae.inference import infer_posterior
from corrvae.nn.features import FeatureTable
from corrvae.ranks import current_ranks
from corrvae.tables import shape_of

if TYPE_CHECKING:
    from corrvae.reading import Features

# As many rows as the encoder takes at a time, so that blocks end where its own do, and give the same bits.
BLOCK = 4096


@final
@dataclass(frozen=True, eq=False)
class EmbeddingBlock:
    """Posteriors of some rows.

    Attributes
    ----------
    ids, mean, stddev
        One for each row; row numbers where there are no ids.
    """

    ids: Shaped[np.ndarray, " rows"]
    mean: Float[np.ndarray, "rows dim"]
    stddev: Float[np.ndarray, "rows dim"]

    @property
    def columns(self) -> Columns:
        """As columns of a table."""
        means = {f"z{k}": column for k, column in enumerate(self.mean.T)}
        return {"id": self.ids, **means, **{f"s{k}": column for k, column in enumerate(self.stddev.T)}}


def embedding_blocks(run: Run, features: "Features | None" = None) -> Iterator[EmbeddingBlock]:
    """Give the posteriors of a file's rows, or of the training points, a block at a time.

    In a process group of torch the ranks encode a block each and exchange these, so that every rank is given all of
    them, and no rank holds more than as many blocks as there are ranks.

    Parameters
    ----------
    run
        The run.
    features
        The rows, as `Run.read` gives them; ``None``: the training points.

    Examples
    --------
    >>> from corrvae import CorrelatedVAE
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> run = Run(CorrelatedVAE(2, hidden=(8,), max_epochs=1, random_state=0).fit(X))
    >>> [list(block.columns) for block in embedding_blocks(run)]
    [['id', 'z0', 'z1', 's0', 's1']]
    """
    n_rows = len(run.ids_) if features is None else shape_of(features.matrix)[0]
    blocks = [slice(begin, min(begin + BLOCK, n_rows)) for begin in range(0, n_rows, BLOCK)]
    if features is None:
        for rows in blocks:
            yield EmbeddingBlock(run.ids_[rows], run.embedding_[rows], run.stddev_[rows])
        return
    ranks = current_ranks()
    for begin in range(0, len(blocks), ranks.count):
        some = blocks[begin : begin + ranks.count]
        nothing = np.empty((0, 2 * run.embedding_.shape[1]), np.float32)
        with ranks.agreed():
            mine = [_encode(run, features, rows) for rows in some[ranks.share(len(some))]]
        joint = ranks.gather_rows(np.concatenate([nothing, *mine]))
        for rows in some:
            ids = np.arange(rows.start, rows.stop) if features.ids is None else features.ids[rows]
            place = slice(rows.start - some[0].start, rows.stop - some[0].start)
            yield EmbeddingBlock(ids, *np.split(joint[place], 2, axis=1))


def _encode(run: Run, features: "Features", rows: slice) -> Float[np.ndarray, "rows twice_dim"]:
    """Give means and standard deviations of some rows side by side."""
    table = FeatureTable(run.check(features, rows), missing=run.missing == "mask")
    posterior = infer_posterior(run.model_, table)
    return np.concatenate([posterior.mean, posterior.stddev], axis=1)


def write_npy(path: Path, blocks: Iterator[EmbeddingBlock], n_rows: int, n_components: int) -> Path:
    """Write means and standard deviations side by side as one array, and the ids to a CSV file beside it.

    Parameters
    ----------
    path
        The file; the array has shape (rows, 2 n_components), the means first.
    blocks, n_rows, n_components
        What to write, and its size.

    Returns
    -------
    pathlib.Path
        The file of ids: an array cannot hold them without code to run when it is read.

    Examples
    --------
    >>> import tempfile
    >>> block = EmbeddingBlock(np.array([7, 8]), np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = write_npy(Path(folder, "z.npy"), iter([block]), 2, 3)
    ...     names.name, np.load(Path(folder, "z.npy")).sum()
    ('z.ids.csv', np.float32(6.0))
    """
    beside = path.with_suffix(".ids.csv")
    kind = np.dtype("<f4")
    header = {"descr": kind.str, "fortran_order": False, "shape": (n_rows, 2 * n_components)}
    with writing(beside) as names, draft_of_file(path) as draft, draft.open("wb") as stream:
        # not through a memory map: on a full disk the system ends a program that writes to one
        np.lib.format.write_array_header_1_0(stream, header)
        for block in blocks:
            stream.write(np.concatenate([block.mean, block.stddev], axis=1, dtype=kind).tobytes())
            names.write({"id": block.ids})
    return beside


def write_blocks(writer: BlockWriter, blocks: Iterator[EmbeddingBlock]) -> int:
    """Write blocks as they come, and give the number of rows."""
    n_rows = 0
    for block in blocks:
        writer.write(block.columns)
        n_rows += len(block.ids)
    return n_rows
