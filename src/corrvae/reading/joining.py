"""A table and a graph of the same data points, which two files may list in part."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Shaped

from corrvae.graphs import CorrelationGraph
from corrvae.reading.features import Features
from corrvae.reading.matching import find_ids

_SHOWN = 5


@final
@dataclass(frozen=True, eq=False)
class Joined:
    """A graph whose vertices are the rows of a table, and the ids that only one of the two had.

    Attributes
    ----------
    graph
        Vertex i is row i; its ids are those of the table. Rows that the graph does not know are isolated vertices.
    only_rows
        Ids of rows that are no vertices of the graph given.
    only_vertices
        Ids of its vertices that have no row; these are left out with their edges.
    n_edges_lost
        How many edges that were.
    """

    graph: CorrelationGraph
    only_rows: Shaped[np.ndarray, " rows"]
    only_vertices: Shaped[np.ndarray, " vertices"]
    n_edges_lost: int


def join(features: Features, graph: CorrelationGraph) -> Joined:
    """Bring a graph into the order of a table's rows.

    Parameters
    ----------
    features
        The table; without ids, its rows are 0, 1, ....
    graph
        A graph under the same ids, or under integers where the table has the strings that spell them, or the reverse.

    Examples
    --------
    >>> features = Features(np.zeros((3, 1), dtype=np.float32), np.array(["cem", "ann", "dee"], dtype=object), None)
    >>> joined = join(features, CorrelationGraph.from_edges([("ann", "bob"), ("ann", "cem")]))
    >>> joined.graph.id_pairs.tolist(), joined.only_rows.tolist(), joined.only_vertices.tolist()
    ([['cem', 'ann']], ['dee'], ['bob'])
    """
    ids = np.arange(features.n_rows) if features.ids is None else features.ids
    row_of = find_ids(ids, graph.ids)
    known = np.zeros(len(ids), dtype=bool)
    known[row_of[row_of >= 0]] = True
    ends = np.sort(row_of[graph.edges], axis=1)
    kept = np.flatnonzero(ends[:, 0] >= 0)
    order = kept[np.lexsort((ends[kept, 1], ends[kept, 0]))]
    conductances = None if graph.conductances is None else graph.conductances[order]
    return Joined(
        CorrelationGraph(ends[order], len(ids), conductances=conductances, vertices=ids),
        ids[~known],
        graph.ids[row_of < 0],
        graph.n_edges - len(kept),
    )


def are_first_line(
    ids: Shaped[np.ndarray, " ids"], path: Path, columns: Sequence[str | int] | None, conductance: str | int | None
) -> bool:
    r"""Whether ids are exactly those of the first line of a graph's file, which then may be a header.

    Parameters
    ----------
    ids
        The ids that have no row.
    path
        The file of the graph.
    columns, conductance
        As in `CorrelationGraph.from_file`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "edges.csv")
    ...     _ = path.write_text("he,she\nann,bob\n")
    ...     are_first_line(np.array(["he", "she"], dtype=object), path, None, None)
    True
    """
    # no more than a line has, so that a file is not opened again for nothing
    if not 1 <= len(ids) <= 2:
        return False
    from corrvae.graphs.files.reading import FileLayout
    from corrvae.graphs.files.text import possible_names

    return set(possible_names(path, FileLayout(columns, conductance))) == set(map(str, ids.tolist()))


def name_some(ids: Shaped[np.ndarray, " ids"]) -> str:
    """Name the first few ids.

    Examples
    --------
    >>> name_some(np.arange(10))
    '0, 1, 2, 3, 4, ...'
    """
    shown = ", ".join(map(str, ids[:_SHOWN].tolist()))
    return f"{shown}, ..." if len(ids) > _SHOWN else shown
