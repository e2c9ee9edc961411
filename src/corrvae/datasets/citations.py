"""Citeseer: papers, the words in them, who cites whom, and what each paper is about."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Shaped
from scipy import sparse

from corrvae.datasets.published import locate, open_member
from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph


@final
@dataclass(frozen=True, eq=False)
class Citations:
    """Papers, in the order of the labels: their words (0 or 1), citations, label, and part.

    Parts are "train", "validation" and "test"; papers in none of them have another word.
    """

    features: sparse.csr_array
    graph: CorrelationGraph
    labels: Shaped[np.ndarray, " papers"]
    parts: Shaped[np.ndarray, " papers"]


def citeseer(source: str | os.PathLike[str] = "citeseer") -> Citations:
    """Read a citation graph with labels.

    Parameters
    ----------
    source : str or path-like
        "citeseer" for the data that `get` put into the cache; or the path of a zip archive or a folder with
        ``words.csv`` (paper, word), ``links.csv`` (source, target) and ``labels.csv`` (paper, label, part).
    """
    path = locate("citeseer") if source == "citeseer" else Path(source)
    paper, label, part = read_columns(path, "labels.csv", "paper", "label", "part")
    row_of = {name: row for row, name in enumerate(paper.tolist())}

    def rows(names: np.ndarray) -> np.ndarray:
        return np.array([row_of.get(name, -1) for name in names.tolist()], np.int64)

    reader, word = read_columns(path, "words.csv", "paper", "word")
    _, columns = np.unique(word, return_inverse=True)
    entries = np.ones(len(columns), np.float32), (rows(reader), columns)
    features = sparse.csr_array(entries, shape=(len(paper), int(columns.max()) + 1))
    ends = np.column_stack([rows(names) for names in read_columns(path, "links.csv", "source", "target")])
    ends = ends[(ends >= 0).all(axis=1) & (ends[:, 0] != ends[:, 1])]  # some papers have neither words nor a label
    graph = CorrelationGraph(np.unique(np.sort(ends, axis=1), axis=0), len(paper))
    return Citations(features, graph, label, part)


def read_columns(path: Path, name: str, *columns: str) -> list[Shaped[np.ndarray, " rows"]]:
    """Return columns of a CSV file in an archive or folder."""
    import pyarrow as pa
    from pyarrow import csv

    with open_member(path, [name]) as (_, stream):
        try:
            options = csv.ConvertOptions(include_columns=columns, null_values=[])
            table = csv.read_csv(stream, convert_options=options)
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise DataFileError(path, f"{name} lacks what is read ({str(error).splitlines()[0]})") from error
    if not table.num_rows:
        raise DataFileError(path, f"{name} holds no rows")
    return [table.column(column).to_numpy() for column in columns]
