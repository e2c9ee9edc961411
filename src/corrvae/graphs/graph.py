"""The correlation graph: which data points are known to be correlated, and how strongly."""

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, final

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from corrvae.graphs import canonical as canon
from corrvae.graphs import convert
from corrvae.graphs.canonical import CanonicalEdges, check_directed
from corrvae.graphs.ids import VertexIds, frozen
from corrvae.graphs.pairs import EdgeError, place_edges
from corrvae.graphs.selection import edge_positions, induced_edges, vertex_indices

if TYPE_CHECKING:
    import networkx

Ids = Iterable[Any]
Directed = Literal["mutual"] | None
Edges = Int[np.ndarray, "edges 2"]
Conductances = Float[np.ndarray, " edges"] | None


@final
class CorrelationGraph:
    """An immutable undirected simple graph, with optional positive conductances and ids for its vertices.

    Most graphs come from `from_edges`, `from_scipy`, `from_networkx`, `from_pyg` or `from_file`, which take edges in
    any order and direction. The constructor is for edges that are canonical already, and refuses others.

    Methods whose parameter is called ``ids``, ``vertex`` or ``edges`` speak ids; the array `edges` and square brackets
    speak vertex indices, which are positions in `ids`. ``graph.ids[pairs]`` turns indices into ids, and
    ``vertex in graph`` asks for an id.

    Parameters
    ----------
    edges
        Vertex indices, each row with i < j, the rows sorted and distinct.
    n_vertices
        The number of vertices.
    conductances
        A positive number for each edge.
    vertices
        The ids, in vertex order; 0, 1, ..., n_vertices - 1 without.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([("ann", "bob"), ("bob", "cem")], vertices=["ann", "bob", "cem", "dee"])
    >>> graph
    CorrelationGraph(4 vertices, 2 edges)
    >>> graph.neighbors("bob").tolist()
    ['ann', 'cem']
    >>> graph[[3, 2, 1]].ids.tolist()
    ['dee', 'cem', 'bob']
    """

    _edges: Edges
    _conductances: Conductances
    _ids: VertexIds

    def __init__(self, edges: Any, n_vertices: int, *, conductances: Any = None, vertices: Ids | None = None) -> None:
        canonical = canon.check_canonical(edges, n_vertices, conductances, vertices)
        self._fill(canonical.edges, canonical.conductances, canonical.ids)

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Any],
        *,
        conductances: Any = None,
        vertices: Ids | None = None,
        n_vertices: int | None = None,
        directed: Directed = None,
        keep_isolated: bool = False,
    ) -> "CorrelationGraph":
        """Make a graph from pairs of ids.

        Parameters
        ----------
        edges
            An array of shape (m, 2), a data frame of two columns, or any iterable of pairs; ids are any hashables.
        conductances
            A positive number for each pair. Repeats in one direction add up; the two directions of an edge must agree.
        vertices
            All ids in the order of the rows they stand for, those without an edge included. Without it the vertices are
            the ids that have an edge: sorted when all are integers or all strings, else in order of appearance.
        n_vertices
            Instead of `vertices`, when the pairs are vertex indices: the ids are then 0, 1, ..., n_vertices - 1.
        directed
            None: a pair in either order is an edge. "mutual": only pairs given in both orders are.
        keep_isolated
            Without `vertices` or `n_vertices`: keep also the ids that are left without an edge, because all their pairs
            were self-loops or, under "mutual", one-way.

        Warns
        -----
        DroppedEdgesWarning
            Once, with the counts of repeats (without conductances), self-loops, one-way edges and vertices dropped.

        Examples
        --------
        >>> CorrelationGraph.from_edges([(1, 2), (2, 1), (2, 5)], conductances=[0.5, 0.5, 2.0])
        CorrelationGraph(3 vertices, 2 edges, conductances)
        >>> CorrelationGraph.from_edges([(0, 1)], n_vertices=3).degrees.tolist()
        [1, 1, 0]
        """
        direction = check_directed(directed)
        placed = place_edges(edges, vertices, n_vertices)
        values = canon.pair_conductances(conductances, placed)
        keep = keep_isolated or vertices is not None or n_vertices is not None
        return cls._from_given(canon.canonicalize(placed, values, direction, keep))

    @classmethod
    def from_scipy(
        cls, adjacency: Any, *, vertices: Ids | None = None, weighted: bool | None = None, directed: Directed = None
    ) -> "CorrelationGraph":
        """Make a graph from a SciPy sparse adjacency; row i is vertex i.

        Parameters
        ----------
        adjacency
            Square and symmetric. Stored zeros are no edges, and the diagonal is dropped.
        vertices
            The ids of the rows.
        weighted
            Whether the values are conductances; None: they are unless every one is 1.
        directed
            "mutual" admits an asymmetric adjacency, and keeps what is there in both directions.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> CorrelationGraph.from_scipy(csr_array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
        CorrelationGraph(3 vertices, 1 edge)
        """
        return cls._from_given(convert.read_scipy(adjacency, vertices, weighted, check_directed(directed)))

    @classmethod
    def from_networkx(
        cls,
        graph: "networkx.Graph",
        *,
        conductance: str | None = None,
        vertices: Ids | None = None,
        directed: Directed = None,
    ) -> "CorrelationGraph":
        """Make a graph from a networkx graph of any class; its nodes are the vertices, in their order.

        Parameters
        ----------
        graph
            Directed edges count in either direction, unless `directed` says otherwise; parallel edges are repeats.
        conductance
            The edge attribute of conductances. None ignores attributes: a "weight" is as often a length as a strength.
        vertices, directed
            As in `from_edges`; every node must be among `vertices`.

        Examples
        --------
        >>> import networkx
        >>> CorrelationGraph.from_networkx(networkx.path_graph(["x", "y", "z"]))
        CorrelationGraph(3 vertices, 2 edges)
        """
        return cls._from_given(convert.read_networkx(graph, conductance, vertices, check_directed(directed)))

    @classmethod
    def from_pyg(
        cls,
        data: Any,
        *,
        n_vertices: int | None = None,
        vertices: Ids | None = None,
        weighted: bool | None = None,
        directed: Directed = None,
    ) -> "CorrelationGraph":
        """Make a graph from PyTorch Geometric's ``Data``, or from an ``edge_index`` of shape (2, m).

        Parameters
        ----------
        data
            Anything with ``edge_index`` and, optionally, ``num_nodes`` and ``edge_weight``; or a tensor or array.
        n_vertices, vertices
            The number of vertices, or their ids, where `data` does not say; else one more than the largest index.
        weighted, directed
            As in `from_scipy` for ``edge_weight``, and as in `from_edges`.

        Examples
        --------
        >>> CorrelationGraph.from_pyg([[0, 1, 1, 2], [1, 0, 2, 1]], n_vertices=4)
        CorrelationGraph(4 vertices, 2 edges)
        """
        return cls._from_given(convert.read_pyg(data, n_vertices, vertices, weighted, check_directed(directed)))

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        columns: Sequence[str | int] | None = None,
        conductance: str | int | None = None,
        header: bool | None = None,
        delimiter: str | None = None,
        id_kind: Literal["integer", "string"] | None = None,
        vertices: Ids | None = None,
        directed: Directed = None,
        keep_isolated: bool = False,
    ) -> "CorrelationGraph":
        r"""Make a graph from a file of edges: CSV, TSV, whitespace or Parquet, also compressed with gzip.

        Lines that begin with ``#`` or ``%`` are comments; ids that do need quotes. Blanks around fields do not count.
        What unpacks to more than 200 times its size and 1 MiB is refused.

        Parameters
        ----------
        path
            The file. Its content decides what it is, not its name.
        columns
            The names, or positions from 0, of the two columns of ids; without, the first two, if the first has a name.
        conductance
            The name or position of the column of conductances. Without it further columns are ignored.
        header
            Whether the first line names the columns. None: it does when names are asked for, when it has no number in a
            column where the next lines do, or when its names are usual ones such as ``source`` and ``target``.
        delimiter
            What parts the fields; " " stands for any run of blanks and tabs. None: found out from the first lines.
        id_kind
            None: ids are integers when all of them are written as integers, else strings.
        vertices, directed, keep_isolated
            As in `from_edges`.

        Raises
        ------
        DataFileError
            With the path, and the line that is at fault. For a missing file it is a ``FileNotFoundError`` too.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "friends.csv")
        ...     _ = path.write_text("from,to,strength\nann,bob,2\nbob,cem,1\n")
        ...     CorrelationGraph.from_file(path, conductance="strength")
        CorrelationGraph(3 vertices, 2 edges, conductances)
        """
        from corrvae.graphs.files.reading import FileLayout, read_file

        layout = FileLayout(columns, conductance, header, delimiter, id_kind)
        read = read_file(path, layout, vertices, check_directed(directed), keep_isolated)
        return cls._from_given(read, source=os.fspath(path))

    @property
    def edges(self) -> Edges:
        """The edges as vertex indices, i < j, sorted; a read-only array, as all of a graph's arrays are."""
        return self._edges

    @property
    def conductances(self) -> Conductances:
        """The conductances in edge order, or None where there are none, which means 1 for each edge."""
        return self._conductances

    @property
    def ids(self) -> Shaped[np.ndarray, " vertices"]:
        """The ids in vertex order: an integer array, or an array of objects."""
        return self._ids.values

    @property
    def id_pairs(self) -> Shaped[np.ndarray, "edges 2"]:
        """The edges as pairs of ids, in edge order."""
        return self.ids[self._edges]

    @property
    def n_vertices(self) -> int:
        """The number of vertices."""
        return self._ids.count

    @property
    def n_edges(self) -> int:
        """The number of edges."""
        return len(self._edges)

    @property
    def shape(self) -> tuple[int]:
        """``(n_vertices,)``, so that scikit-learn slices a graph with the rows of a table."""
        return (self.n_vertices,)

    @cached_property
    def degrees(self) -> Int[np.ndarray, " vertices"]:
        """The number of edges at each vertex."""
        return frozen(np.bincount(self._edges.ravel(), minlength=self.n_vertices))

    @cached_property
    def components(self) -> Int[np.ndarray, " vertices"]:
        """The number of the connected component of each vertex, from 0 in the order of their first vertices."""
        if not self.n_vertices:
            return frozen(np.empty(0, dtype=np.int64))
        return frozen(connected_components(self._adjacency, directed=False)[1].astype(np.int64))

    @cached_property
    def n_components(self) -> int:
        """The number of connected components; an isolated vertex is one."""
        return int(self.components.max(initial=-1)) + 1

    def index_of(self, ids: Ids) -> Int[np.ndarray, " ids"]:
        """Give the vertex indices of ids.

        Examples
        --------
        >>> CorrelationGraph.from_edges([("a", "b")]).index_of(["b", "a", "b"]).tolist()
        [1, 0, 1]
        """
        return self._ids.locate(ids)

    def neighbors(self, vertex: Any) -> Shaped[np.ndarray, " neighbors"]:
        """Give the ids of a vertex's neighbours, in vertex order; `vertex` is an id.

        Examples
        --------
        >>> CorrelationGraph.from_edges([(10, 20), (20, 30)]).neighbors(20).tolist()
        [10, 30]
        """
        return self.ids[self._adjacency[[self._ids.locate_one(vertex)]].indices]

    def subgraph(self, ids: Ids) -> "CorrelationGraph":
        """Give the subgraph induced by these ids, in their order.

        Examples
        --------
        >>> CorrelationGraph.from_edges([("a", "b"), ("b", "c")]).subgraph(["c", "b"])
        CorrelationGraph(2 vertices, 1 edge)
        """
        return self[self.index_of(ids)]

    def __getitem__(self, indices: Any) -> "CorrelationGraph":
        """Give the subgraph induced by vertex indices, a slice or a boolean mask, in that order; ids go along."""
        chosen = vertex_indices(indices, self.n_vertices)
        edges, kept = induced_edges(self._edges, self.n_vertices, chosen)
        conductances = None if self._conductances is None else self._conductances[kept]
        return self._from_canonical(edges, conductances, self._ids.take(chosen))

    def without(self, edges: Iterable[Any]) -> "CorrelationGraph":
        """Give the graph without some of its edges and with all of its vertices.

        Parameters
        ----------
        edges
            Pairs of ids, in either order; ``graph.ids[pairs]`` for pairs of vertex indices. A pair that is no edge of
            the graph is refused, so that a hold-out which does not fit cannot go unnoticed.

        Examples
        --------
        >>> graph = CorrelationGraph.from_edges([("a", "b"), ("b", "c")])
        >>> graph.without([("c", "b")])
        CorrelationGraph(3 vertices, 1 edge)
        """
        pairs = place_edges(edges, self._ids).pairs
        place = edge_positions(self._edges, self.n_vertices, pairs)
        if (place < 0).any():
            position = int(np.flatnonzero(place < 0)[0])
            raise EdgeError(position, f"{canon.name_edge(pairs[position], self._ids)} is not an edge of the graph")
        keep = np.ones(self.n_edges, dtype=bool)
        keep[place] = False
        return self._with_edges(keep)

    def to_scipy(self) -> csr_array:
        """Give the symmetric adjacency with conductances as values, or ones.

        Examples
        --------
        >>> CorrelationGraph.from_edges([(0, 1)], n_vertices=2).to_scipy().toarray().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        return self._adjacency.copy()

    def to_networkx(self) -> "networkx.Graph":
        """Give a networkx graph on the ids, with conductances as the edge attribute ``weight``.

        Examples
        --------
        >>> sorted(CorrelationGraph.from_edges([("a", "b")]).to_networkx().nodes)
        ['a', 'b']
        """
        return convert.write_networkx(self)

    def __len__(self) -> int:
        return self.n_vertices

    def __contains__(self, vertex: Any) -> bool:
        return self._ids.find_one(vertex) >= 0

    def __iter__(self) -> NoReturn:
        raise TypeError("a graph is not iterated over: its vertices are in graph.ids, its edges in graph.id_pairs")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CorrelationGraph):
            return NotImplemented
        if (self._conductances is None) != (other._conductances is None) or self._ids != other._ids:
            return False
        mine, others = self._conductances, other._conductances
        same = mine is None or others is None or np.array_equal(mine, others)
        return same and np.array_equal(self._edges, other._edges)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        vertices = "1 vertex" if self.n_vertices == 1 else f"{self.n_vertices:,} vertices"
        edges = "1 edge" if self.n_edges == 1 else f"{self.n_edges:,} edges"
        return f"CorrelationGraph({vertices}, {edges}{'' if self._conductances is None else ', conductances'})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a CorrelationGraph does not change; {name!r} cannot be set")

    def __deepcopy__(self, memo: dict[int, Any]) -> "CorrelationGraph":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        ids = None if self._ids.are_rows else self.ids
        return _restore, (self._edges, self._conductances, ids, self.n_vertices)

    @cached_property
    def _adjacency(self) -> csr_array:
        return convert.write_scipy(self)

    def _with_edges(self, keep: Shaped[np.ndarray, " edges"]) -> "CorrelationGraph":
        conductances = None if self._conductances is None else self._conductances[keep]
        return self._from_canonical(self._edges[keep], conductances, self._ids)

    @classmethod
    def _from_canonical(cls, edges: Edges, conductances: Conductances, ids: VertexIds) -> "CorrelationGraph":
        graph = cls.__new__(cls)
        graph._fill(edges, conductances, ids)
        return graph

    @classmethod
    def _from_given(cls, canonical: CanonicalEdges, source: str | None = None) -> "CorrelationGraph":
        canonical.dropped.warn(stacklevel=3, source=source)
        return cls._from_canonical(canonical.edges, canonical.conductances, canonical.ids)

    def _fill(self, edges: Edges, conductances: Conductances, ids: VertexIds) -> None:
        held = None if conductances is None else frozen(conductances)
        self.__dict__.update(_edges=frozen(edges), _conductances=held, _ids=ids)


def _restore(edges: Edges, conductances: Conductances, ids: np.ndarray | None, count: int) -> CorrelationGraph:
    return CorrelationGraph._from_canonical(edges, conductances, VertexIds(ids, count))
