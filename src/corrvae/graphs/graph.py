"""The correlation graph: which data points are known to be correlated, and how strongly."""

import warnings
from collections.abc import Iterable, Mapping, Sized
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.sparse import coo_array, csr_array, hstack, issparse
from scipy.sparse.csgraph import connected_components

from corrvae.graphs import edges as canon
from corrvae.graphs.edges import CanonicalEdges, DroppedEdgesWarning, EdgeError
from corrvae.graphs.ids import VertexIds, as_array, frozen, plain_list

if TYPE_CHECKING:
    import networkx

Ids = Iterable[Any]
Directed = Literal["mutual"] | None
Edges = Int[np.ndarray, "edges 2"]
Conductances = Float[np.ndarray, " edges"] | None


@final
class CorrelationGraph:
    """An immutable undirected simple graph, with optional positive conductances and ids for its vertices.

    Most graphs come from `from_edges`, `from_scipy`, `from_networkx`, `from_pyg` or `corrvae.io.read_graph`, which take
    edges in any order and direction. The constructor is for edges that are canonical already, and raises for others.

    Parameters called ``ids``, ``vertex`` or ``edges`` are ids; the array `edges` and square brackets are vertex
    indices, which are positions in `ids`. ``graph.ids[pairs]`` turns indices into ids; ``vertex in graph`` takes an id.

    Parameters
    ----------
    edges
        Vertex indices, each row with i < j, the rows sorted and distinct.
    n_vertices
        Number of vertices.
    conductances
        A positive number for each edge.
    vertices
        Ids in vertex order; 0, 1, ..., n_vertices - 1 by default.
    is_group
        Which vertices are groups: True for a vertex that only joins its members (see `from_groups`). None by default.

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
    _is_group: np.ndarray | None

    def __init__(
        self,
        edges: Any,
        n_vertices: int,
        *,
        conductances: Any = None,
        vertices: Ids | None = None,
        is_group: Any = None,
    ) -> None:
        canonical = canon.check_canonical(edges, n_vertices, conductances, vertices)
        marks = None if is_group is None else np.array(is_group, dtype=bool)
        if marks is not None and marks.shape != (n_vertices,):
            raise ValueError(f"is_group must have an entry for each of the {n_vertices:,} vertices, not {marks.shape}")
        self._fill(canonical.edges, canonical.conductances, canonical.ids, marks)

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
        """Return a graph from pairs of ids.

        A `DroppedEdgesWarning` counts repeats (without conductances), self-loops, one-way edges and vertices dropped.

        Parameters
        ----------
        edges
            An array of shape (m, 2), a data frame of two columns, or any iterable of pairs; ids are any hashables.
        conductances
            A positive number for each pair. Repeats in one direction add up; the two directions of an edge must agree.
        vertices
            All ids in the order of the rows they stand for, including those without an edge. By default the ids that
            have an edge: sorted when all are integers or all strings, otherwise in order of appearance.
        n_vertices
            Instead of `vertices`, when the pairs are vertex indices: the ids are then 0, 1, ..., n_vertices - 1.
        directed
            None: a pair in either order is an edge. "mutual": only pairs given in both orders are.
        keep_isolated
            Without `vertices` or `n_vertices`: keep also the ids that are left without an edge, because all their pairs
            were self-loops or, under "mutual", one-way.

        Examples
        --------
        >>> CorrelationGraph.from_edges([(1, 2), (2, 1), (2, 5)], conductances=[0.5, 0.5, 2.0])
        CorrelationGraph(3 vertices, 2 edges, conductances)
        >>> CorrelationGraph.from_edges([(0, 1)], n_vertices=3).degrees.tolist()
        [1, 1, 0]
        """
        direction = canon.checked_direction(directed)
        if n_vertices is None:
            pairs, ids = canon.place_pairs(edges, vertices)
        elif vertices is None:
            pairs, ids = canon.index_pairs(edges, n_vertices), VertexIds(None, int(n_vertices))
        else:
            raise ValueError("give vertices or n_vertices, not both")
        keep = keep_isolated or vertices is not None or n_vertices is not None
        return cls._from_given(canon.canonicalize(pairs, ids, conductances, direction=direction, keep_isolated=keep))

    @classmethod
    def from_groups(
        cls, groups: Mapping[Any, Iterable[Any]], *, edges: Any = None, vertices: Ids | None = None
    ) -> "CorrelationGraph":
        """Return a graph in which each group is a vertex of its own, joined to its members.

        With correlation tau along an edge, two members of a group correlate by tau^2, and they do as one joint
        distribution of all of them: the graph stays a forest where groups do not overlap. A clique of k members has
        k (k - 1) / 2 edges and cycles; a group has k edges and none.

        Parameters
        ----------
        groups
            Members by the id of their group: ids of points, or of other groups.
        edges
            Further edges: a `CorrelationGraph`, or pairs of ids.
        vertices
            Ids of the points in the order wanted; by default those of `edges`, then further members as they appear.
            Groups come last.

        Examples
        --------
        >>> graph = CorrelationGraph.from_groups({"household 7": ["ann", "bob", "cem"]}, edges=[("cem", "dee")])
        >>> graph.ids.tolist(), graph.is_group.tolist()
        (['cem', 'dee', 'ann', 'bob', 'household 7'], [False, False, False, False, True])
        >>> graph.neighbors("household 7").tolist()
        ['cem', 'ann', 'bob']
        """
        if not isinstance(groups, Mapping):
            raise TypeError(f'groups must be a mapping such as {{"household 7": ["ann", "bob"]}}, not {type(groups)}')
        for name, members in groups.items():
            if isinstance(members, str | bytes) or not isinstance(members, Iterable):
                raise TypeError(f"group {name!r} must be a list of members, not {members!r}")
        within = [(name, member) for name, members in groups.items() for member in _plain(members)]
        known = edges if edges is None or isinstance(edges, CorrelationGraph) else cls.from_edges(edges)
        first = [] if known is None else known.ids.tolist()
        points = dict.fromkeys(_plain(vertices) if vertices is not None else first)
        both = next((name for name in groups if name in points), None)
        if both is not None:
            raise ValueError(f"{both!r} is the id of a group and of a point; name the group differently")
        if vertices is None:
            points |= dict.fromkeys(member for _, member in within if member not in groups)
        pairs, values = within, None
        if known is not None:
            pairs = within + known.id_pairs.tolist()
            if known.conductances is not None:
                values = np.concatenate([np.ones(len(within)), known.conductances])
        made = cls.from_edges(pairs, conductances=values, vertices=[*points, *groups])
        marks = np.arange(made.n_vertices) >= len(points)
        if known is not None and known.has_groups:
            marks[made.index_of(known.ids[known.is_group])] = True
        return cls._from_canonical(made.edges, made.conductances, made._ids, marks)

    @classmethod
    def from_scipy(
        cls, adjacency: Any, *, vertices: Ids | None = None, weighted: bool | None = None, directed: Directed = None
    ) -> "CorrelationGraph":
        """Return a graph from a SciPy sparse adjacency; row i is vertex i.

        Parameters
        ----------
        adjacency
            Square and symmetric. Stored zeros are no edges, and the diagonal is dropped.
        vertices
            The ids of the rows.
        weighted
            Whether the values are conductances; None: they are unless every one is 1.
        directed
            "mutual" accepts an asymmetric adjacency, and keeps what is there in both directions.
        """
        canon.checked_direction(directed)
        if not issparse(adjacency):
            advice = "scipy.sparse.csr_array makes one from a dense matrix"
            raise TypeError(f"from_scipy reads a SciPy sparse adjacency, not {type(adjacency).__name__}; {advice}")
        if len(adjacency.shape) != 2 or adjacency.shape[0] != adjacency.shape[1]:
            raise ValueError(f"an adjacency is square; this one has shape {adjacency.shape}")
        entries = adjacency.tocsr(copy=True)
        entries.sum_duplicates()
        entries.eliminate_zeros()  # NaN is not zero: it stays, and raises below
        entries = entries.tocoo()
        pairs = np.column_stack([entries.row, entries.col]).astype(np.int64)
        ids = VertexIds.of_rows(vertices, adjacency.shape[0])
        values = entries.data.copy()
        values[entries.row == entries.col] = 1  # the diagonal is dropped; its values do not matter
        values = _conductances(values, weighted)
        try:
            given = canon.canonicalize(pairs, ids, values, direction="mutual" if directed else "symmetric")
        except EdgeError as error:  # positions among stored entries mean nothing to the caller
            raise ValueError(f"adjacency: {error.problem}") from error
        return cls._from_given(given)

    @classmethod
    def from_networkx(
        cls,
        graph: "networkx.Graph",
        *,
        conductance: str | None = None,
        vertices: Ids | None = None,
        directed: Directed = None,
    ) -> "CorrelationGraph":
        """Return a graph from a networkx graph of any class; its nodes are the vertices, in their order.

        Parameters
        ----------
        graph
            Directed edges count in either direction, unless `directed` is "mutual"; parallel edges are repeats.
        conductance
            The edge attribute of conductances. None ignores attributes: a "weight" is as often a length as a strength.
        vertices, directed
            As in `from_edges`; every node must be among `vertices`.
        """
        direction = canon.checked_direction(directed)
        nodes = VertexIds.from_vertices(list(graph.nodes))
        ids = nodes if vertices is None else VertexIds.from_vertices(vertices)
        unknown = np.flatnonzero(ids.find(nodes.values) < 0)
        if len(unknown):
            raise ValueError(f"node {unknown[0]} of the graph: {ids.describe_unknown(nodes.values[unknown[0]])}")
        pairs, ids = canon.place_pairs(list(graph.edges()), ids)
        values = None
        if conductance is not None:
            values = [value for *_, value in graph.edges(data=conductance, default=np.nan)]
        # an undirected edge counts in both directions already
        direction = direction if graph.is_directed() else "either"
        return cls._from_given(canon.canonicalize(pairs, ids, values, direction=direction))

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
        """Return a graph from PyTorch Geometric's ``Data``, or from an ``edge_index`` of shape (2, m).

        Parameters
        ----------
        data
            An object with ``edge_index`` and, optionally, ``num_nodes`` and ``edge_weight``; or a tensor or array.
        n_vertices, vertices
            The number of vertices, or their ids, where `data` has none; by default one more than the largest index.
        weighted, directed
            As in `from_scipy` for ``edge_weight``, and as in `from_edges`.

        Examples
        --------
        >>> CorrelationGraph.from_pyg([[0, 1, 1, 2], [1, 0, 2, 1]], n_vertices=4)
        CorrelationGraph(4 vertices, 2 edges)
        """
        direction = canon.checked_direction(directed)
        given = getattr(data, "edge_index", None)
        edge_index = _to_numpy(data if given is None else given)
        if edge_index.ndim != 2 or edge_index.shape[0] != 2:
            advice = "from_edges takes pairs of shape (m, 2)"
            raise ValueError(f"an edge_index has shape (2, m), not {edge_index.shape}; {advice}")
        count = n_vertices
        if count is None and isinstance(vertices, Sized):
            count = len(vertices)
        if count is None and given is not None:
            count = getattr(data, "num_nodes", None)
        count = canon.checked_count(int(edge_index.max(initial=-1)) + 1 if count is None else count)
        pairs = canon.index_pairs(np.ascontiguousarray(edge_index.T), count)
        weight = None if given is None else getattr(data, "edge_weight", None)
        if weighted and weight is None:
            raise ValueError("weighted=True, but the data has no edge_weight")
        values = None if weight is None else _conductances(_to_numpy(weight), weighted)
        ids = VertexIds.of_rows(vertices, count)
        return cls._from_given(canon.canonicalize(pairs, ids, values, direction=direction))

    @property
    def edges(self) -> Edges:
        """The edges as vertex indices, i < j, sorted; a read-only array, as all of a graph's arrays are."""
        return self._edges

    @property
    def conductances(self) -> Conductances:
        """The conductances in edge order; None means 1 for each edge."""
        return self._conductances

    @property
    def ids(self) -> Shaped[np.ndarray, " vertices"]:
        """The ids in vertex order: an integer array, or an array of objects."""
        return self._ids.values

    @property
    def is_group(self) -> Bool[np.ndarray, " vertices"]:
        """Whether each vertex is a group."""
        return frozen(np.zeros(self.n_vertices, dtype=bool)) if self._is_group is None else self._is_group

    @property
    def has_groups(self) -> bool:
        """Whether a vertex is a group."""
        return self._is_group is not None

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
    def n_connected(self) -> int:
        """The number of connected components; an isolated vertex is one."""
        return int(self.components.max(initial=-1)) + 1

    def index_of(self, ids: Ids) -> Int[np.ndarray, " ids"]:
        """Return the vertex indices of ids."""
        return self._ids.locate(ids)

    def neighbors(self, vertex: Any) -> Shaped[np.ndarray, " neighbors"]:
        """Return the ids of a vertex's neighbours, in vertex order; `vertex` is an id."""
        return self.ids[self._adjacency[self.index_of([vertex])].indices]

    def subgraph(self, ids: Ids) -> "CorrelationGraph":
        """Return the subgraph induced by these ids, in their order."""
        return self[self.index_of(ids)]

    def __getitem__(self, indices: Any) -> "CorrelationGraph":
        """Return the subgraph induced by vertex indices, a slice or a boolean mask, in that order, with its ids."""
        chosen = np.arange(self.n_vertices)[indices]  # scikit-learn writes [indices, ...]
        if chosen.ndim != 1:
            raise TypeError("the indices of a subgraph are one-dimensional; graph[[3]] is that of one vertex")
        times = np.bincount(chosen, minlength=self.n_vertices)
        if (times > 1).any():
            raise ValueError(f"vertex index {np.argmax(times)} occurs {times.max()} times; a subgraph has each once")
        edges, kept = canon.induced_edges(self._edges, self.n_vertices, chosen)
        conductances = None if self._conductances is None else self._conductances[kept]
        marks = None if self._is_group is None else self._is_group[chosen]
        return self._from_canonical(edges, conductances, self._ids.take(chosen), marks)

    def without(self, edges: Iterable[Any]) -> "CorrelationGraph":
        """Return the graph without some of its edges, pairs of ids in either order, and with all of its vertices.

        A pair that is no edge raises an error, so that a hold-out of another graph cannot go unnoticed.

        Examples
        --------
        >>> graph = CorrelationGraph.from_edges([("a", "b"), ("b", "c")])
        >>> graph.without([("c", "b")])
        CorrelationGraph(3 vertices, 1 edge)
        """
        pairs, ids = canon.place_pairs(edges, self._ids)
        place = canon.edge_positions(self._edges, self.n_vertices, pairs)
        if (place < 0).any():
            position = int(np.argmax(place < 0))
            raise EdgeError(position, f"{canon.name_edge(pairs[position], ids)} is not an edge of the graph")
        keep = np.ones(self.n_edges, dtype=bool)
        keep[place] = False
        return self._with_edges(keep)

    def to_scipy(self) -> csr_array:
        """Return the symmetric adjacency with conductances as values, or ones."""
        return self._adjacency.copy()

    def to_networkx(self) -> "networkx.Graph":
        """Return a networkx graph on the ids, with conductances as the edge attribute ``weight``."""
        import networkx

        written = networkx.Graph()
        written.add_nodes_from(self.ids.tolist())
        first, second = self.id_pairs.T.tolist()
        if self._conductances is None:
            written.add_edges_from(zip(first, second, strict=True))
        else:
            written.add_weighted_edges_from(zip(first, second, self._conductances.tolist(), strict=True))
        return written

    def __len__(self) -> int:
        return self.n_vertices

    def __contains__(self, vertex: Any) -> bool:
        return self._ids.find_one(vertex) >= 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CorrelationGraph):
            return NotImplemented
        mine, others = self._conductances, other._conductances
        same = mine is others if mine is None or others is None else np.array_equal(mine, others)
        same = same and np.array_equal(self.is_group, other.is_group)
        return same and self._ids == other._ids and np.array_equal(self._edges, other._edges)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        vertices = "1 vertex" if self.n_vertices == 1 else f"{self.n_vertices:,} vertices"
        edges = "1 edge" if self.n_edges == 1 else f"{self.n_edges:,} edges"
        n_groups = int(self.is_group.sum())
        groups = {0: "", 1: ", 1 group"}.get(n_groups, f", {n_groups:,} groups")
        return f"CorrelationGraph({vertices}, {edges}{'' if self._conductances is None else ', conductances'}{groups})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a CorrelationGraph is immutable; {name!r} cannot be set")

    def __deepcopy__(self, memo: dict[int, Any]) -> "CorrelationGraph":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return self._from_canonical, (self._edges, self._conductances, self._ids, self._is_group)

    @cached_property
    def _adjacency(self) -> csr_array:
        low, high = self._edges.astype(np.int32).T
        half = np.ones(self.n_edges) if self._conductances is None else self._conductances
        # lower neighbours first: every row then comes out sorted
        entries = (np.concatenate([high, low]), np.concatenate([low, high]))
        return coo_array((np.concatenate([half, half]), entries), shape=(self.n_vertices, self.n_vertices)).tocsr()

    def with_conductances(self, conductances: Float[np.ndarray, " edges"]) -> "CorrelationGraph":
        """Return the same graph with these conductances, in the order of `edges`."""
        checked = canon.check_conductances(conductances, self._edges, self._ids)
        return self._from_canonical(self._edges, checked, self._ids, self._is_group)

    def _with_edges(self, keep: Shaped[np.ndarray, " edges"]) -> "CorrelationGraph":
        conductances = None if self._conductances is None else self._conductances[keep]
        return self._from_canonical(self._edges[keep], conductances, self._ids, self._is_group)

    @classmethod
    def _from_canonical(
        cls, edges: Edges, conductances: Conductances, ids: VertexIds, is_group: np.ndarray | None = None
    ) -> "CorrelationGraph":
        graph = cls.__new__(cls)
        graph._fill(edges, conductances, ids, is_group)
        return graph

    @classmethod
    def _from_given(cls, canonical: CanonicalEdges) -> "CorrelationGraph":
        if canonical.dropped:
            warnings.warn(f"dropped {canonical.dropped}", DroppedEdgesWarning, stacklevel=3)
        return cls._from_canonical(canonical.edges, canonical.conductances, canonical.ids)

    def _fill(self, edges: Edges, conductances: Conductances, ids: VertexIds, is_group: np.ndarray | None) -> None:
        read_only = None if conductances is None else frozen(conductances)
        marks = None if is_group is None or not is_group.any() else frozen(is_group)
        self.__dict__.update(_edges=frozen(edges), _conductances=read_only, _ids=ids, _is_group=marks)


def graph_features(X: Any, graph: CorrelationGraph) -> csr_array:
    """Return features with each vertex's row of the adjacency matrix, 0 or 1, beside them: [X, A], CSR in float32.

    An encoder that reads features alone cannot know a vertex's neighbours. With these features it does, and a
    multinomial likelihood explains both parts: what a point has, and whom it is linked to. This suits links among the
    vertices of training; a new row has no adjacency. Use the training graph, or held-out edges leak. Vertex i is row i.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(0, 1), (1, 2)])
    >>> graph_features([[5.0], [0.0], [6.0]], graph).toarray().tolist()
    [[5.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [6.0, 0.0, 1.0, 0.0]]
    """
    index = getattr(X, "index", None)
    if index is not None and not callable(index):  # a list has a method of that name
        ids, known = list(index), graph.ids.tolist()
        if ids != known and set(ids) == set(known):
            raise ValueError(
                "the rows of X are in another order than the vertices of the graph; pass graph.subgraph(X.index)"
            )
    features = csr_array(X, dtype=np.float32)
    n_rows = len(features.indptr) - 1
    if n_rows != graph.n_vertices:
        raise ValueError(f"the graph has {graph.n_vertices:,} vertices, but X has {n_rows:,} rows")
    adjacency = csr_array(graph.to_scipy(), dtype=np.float32)
    adjacency.data[:] = 1.0
    return csr_array(hstack([features, adjacency], format="csr"))


def _conductances(values: np.ndarray, weighted: bool | None) -> np.ndarray | None:
    """Return the values if they are conductances; by default ones only mean that there is an edge."""
    if weighted is None:
        weighted = bool((values != 1).any())
    return values if weighted else None


def _plain(ids: Iterable[Any]) -> list[Any]:
    """Return ids as a list of Python's own types."""
    array = as_array(ids)
    return list(ids) if array is None else plain_list(array)


def _to_numpy(values: Any) -> np.ndarray:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
