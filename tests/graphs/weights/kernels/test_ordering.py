import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.kernels.adjacency import label_pieces
from corrvae.graphs.weights.kernels.ordering import minimum_degree
from corrvae.graphs.weights.pattern import Ordering
from support.elimination import in_positions, lists_of, no_control, symbolic_fill
from support.graphs import graphs
from support.resistance import from_networkx

HUB_FACTOR = 10.0


def pieces_first(graph: CorrelationGraph) -> tuple[CorrelationGraph, np.ndarray]:
    """Relabel so that pieces are runs of vertices, without the isolated ones; and where the pieces start."""
    label, starts = label_pieces(graph.n_vertices, *lists_of(graph)[:2])
    return CorrelationGraph.from_edges(label[graph.edges].astype(np.int64), vertices=range(starts[-1])), starts


def ordered(graph, starts, *, stop_ratio=np.inf, degree=np.inf, work=np.inf, core=0.0, control=None) -> Ordering:
    pointers, neighbors, _ = lists_of(graph)
    control = no_control() if control is None else control
    return Ordering(
        *minimum_degree(pointers, neighbors, starts, HUB_FACTOR, *map(float, (stop_ratio, degree, work, core)), control)
    )


def ordered_whole(graph: nx.Graph, **limits) -> tuple[CorrelationGraph, Ordering]:
    graph, starts = pieces_first(from_networkx(graph))
    assert starts.size == 2
    return graph, ordered(graph, starts, **limits)


def pivot_ends(ordering: Ordering) -> np.ndarray:
    ends = np.append(ordering.pivot_starts, -1)[1:]
    for piece in range(ordering.piece_ordered.size):
        if ordering.piece_pivots[piece + 1] > ordering.piece_pivots[piece]:
            ends[ordering.piece_pivots[piece + 1] - 1] = ordering.piece_ordered[piece]
    return ends


def fill_of(graph: CorrelationGraph, ordering: Ordering) -> list[set[int]]:
    return symbolic_fill(graph.n_vertices, in_positions(graph, ordering.order), graph.n_vertices)


def naive_minimum_degree_fill(graph: nx.Graph) -> int:
    """Entries of all columns when the vertex of the truly smallest degree always goes next."""
    graph = graph.copy()
    total = 0
    while graph.number_of_nodes():
        v = min(graph, key=graph.degree)
        neighbors = list(graph[v])
        total += len(neighbors)
        graph.remove_node(v)
        graph.add_edges_from((a, b) for k, a in enumerate(neighbors) for b in neighbors[:k])
    return total


@given(graphs(max_vertices=30))
@settings(max_examples=200)
def test_pivots_tile_each_piece_and_their_tails_are_the_fill(graph):
    graph, starts = pieces_first(graph)
    ordering = ordered(graph, starts)
    n_pieces = starts.size - 1
    for piece in range(n_pieces):
        run = slice(starts[piece], starts[piece + 1])
        assert sorted(ordering.order[run]) == list(range(starts[piece], starts[piece + 1]))
        assert ordering.pivot_starts[ordering.piece_pivots[piece]] == starts[piece]
        assert ordering.piece_ordered[piece] == starts[piece + 1]
    ends = pivot_ends(ordering)
    assert np.array_equal(ordering.pivot_starts[1:], ends[:-1])
    assert np.all(ends > ordering.pivot_starts)
    fill = fill_of(graph, ordering)
    for start, end, tail in zip(ordering.pivot_starts, ends, ordering.pivot_tails, strict=True):
        assert [len(fill[j]) for j in range(start, end)] == [end - 1 - j + tail for j in range(start, end)]


@pytest.mark.parametrize(
    "graph",
    [
        nx.grid_2d_graph(13, 11),
        nx.random_regular_graph(4, 150, seed=1),  # its lists outgrow their room and are moved together
        nx.powerlaw_cluster_graph(200, 3, 0.5, seed=2),
        nx.gnm_random_graph(60, 500, seed=3),
        nx.circular_ladder_graph(90),
    ],
    ids=["grid", "regular", "power law", "dense", "ladder"],
)
def test_tails_are_the_fill_of_larger_graphs(graph):
    graph, ordering = ordered_whole(graph)
    fill = fill_of(graph, ordering)
    last = pivot_ends(ordering) - 1
    assert [len(fill[j]) for j in last] == ordering.pivot_tails.tolist()


def test_a_complete_graph_is_one_pivot():
    _, ordering = ordered_whole(nx.complete_graph(70))
    assert ordering.pivot_starts.tolist() == [0]
    assert ordering.pivot_tails.tolist() == [0]


def test_chains_have_no_fill():
    _, ordering = ordered_whole(nx.cycle_graph(1000))
    assert ordering.pivot_tails.max() == 2
    _, ordering = ordered_whole(nx.path_graph(1000))
    assert ordering.pivot_tails.max() <= 1


@pytest.mark.parametrize("n_hubs", [1, 3])
def test_hubs_come_last_and_are_left_out_of_the_tails(n_hubs):
    wheel = nx.cycle_graph(600)
    wheel.add_edges_from((v, 600 + hub) for hub in range(n_hubs) for v in range(600))
    graph, ordering = ordered_whole(wheel)
    assert ordering.piece_ordered.tolist() == [600]
    assert np.all(graph.degrees[ordering.order[600:]] == 600)
    assert sorted(ordering.order) == list(range(600 + n_hubs))
    fill = fill_of(graph, ordering)
    last = pivot_ends(ordering) - 1
    assert ordering.piece_hubs.tolist() == [n_hubs]
    assert np.all(ordering.pivot_tails + n_hubs >= [len(fill[j]) for j in last])
    assert ordering.pivot_tails.max() == 2  # along the rim


def test_hubs_with_few_spokes_are_bounded_from_above():
    graph = nx.compose(nx.cycle_graph(900), nx.star_graph(range(900, 1300)))
    graph.add_edges_from((901 + k, k) for k in range(0, 399, 2))
    graph.add_edges_from((901 + k, 902 + k) for k in range(0, 398))
    graph, ordering = ordered_whole(graph)
    assert graph.degrees.max() > HUB_FACTOR * np.sqrt(graph.n_vertices)
    fill = fill_of(graph, ordering)
    exact = np.array([len(fill[j]) for j in pivot_ends(ordering) - 1])
    assert ordering.piece_hubs.tolist() == [1]
    assert np.all(exact <= ordering.pivot_tails + 1)
    assert np.any(exact < ordering.pivot_tails + 1)  # a hub that is not joined yet
    assert np.all(ordering.pivot_tails <= exact)


def test_the_order_is_nearly_as_good_as_exact_minimum_degree():
    grid = nx.grid_2d_graph(40, 40)
    graph, ordering = ordered_whole(grid)
    fill = sum(map(len, fill_of(graph, ordering)))
    assert fill < 1.25 * naive_minimum_degree_fill(nx.convert_node_labels_to_integers(grid))


@pytest.mark.parametrize("limit", [3, 4, 6])
def test_the_degree_limit_leaves_a_core(limit):
    grid = nx.grid_2d_graph(30, 30)
    _, ordering = ordered_whole(grid, degree=limit)
    ends = pivot_ends(ordering)
    assert np.all(ordering.pivot_tails <= limit)
    assert 0 < ordering.piece_ordered[0] < 900
    assert ends[-1] == ordering.piece_ordered[0]
    assert sorted(ordering.order) == list(range(900))
    _, unlimited = ordered_whole(grid)
    assert np.array_equal(ordering.pivot_starts, unlimited.pivot_starts[: ordering.pivot_starts.size])


def test_nothing_below_the_degree_limit_means_no_pivots():
    _, ordering = ordered_whole(nx.random_regular_graph(6, 100, seed=0), degree=5)
    assert ordering.pivot_starts.size == 0
    assert ordering.piece_pivots.tolist() == [0, 0]
    assert ordering.piece_ordered.tolist() == [0]
    assert sorted(ordering.order) == list(range(100))


def test_the_work_limit_leaves_a_core():
    limit = 2e4
    _, ordering = ordered_whole(nx.grid_2d_graph(30, 30), work=limit, core=np.inf)
    sizes = pivot_ends(ordering) - ordering.pivot_starts
    work = np.cumsum(sizes * (ordering.pivot_tails + sizes).astype(float) ** 2)
    assert work[-2] <= limit < work[-1]
    assert ordering.piece_ordered[0] < 900


def test_what_plainly_passes_the_work_limit_stops_early():
    grid = nx.grid_2d_graph(30, 30)
    _, patient = ordered_whole(grid, work=2e4, core=np.inf)
    _, hopeless = ordered_whole(grid, work=2e4, core=100.0)
    assert hopeless.piece_ordered[0] < patient.piece_ordered[0]


def test_the_stop_ratio_leaves_what_is_dense():
    _, ordering = ordered_whole(nx.complete_graph(70), stop_ratio=0.5)
    assert ordering.piece_ordered.tolist() == [0]
    _, ordering = ordered_whole(nx.complete_graph(60), stop_ratio=0.5)  # too small to be worth a core
    assert ordering.piece_ordered.tolist() == [60]


def test_a_stopped_piece_leaves_the_next_ones_alone():
    graph = nx.disjoint_union_all([nx.complete_graph(80), nx.cycle_graph(50), nx.complete_graph(90)])
    graph, starts = pieces_first(from_networkx(graph))
    ordering = ordered(graph, starts, stop_ratio=0.5)
    assert ordering.piece_ordered.tolist() == [0, 130, 130]
    alone, alone_starts = pieces_first(from_networkx(nx.cycle_graph(50)))
    assert ordering.pivot_tails.tolist() == ordered(alone, alone_starts).pivot_tails.tolist()
    assert sorted(ordering.order) == list(range(220))


def test_a_stopped_piece_leaves_nothing_in_the_degree_lists():
    first, second = nx.random_regular_graph(8, 64, seed=1), nx.random_regular_graph(8, 300, seed=2)
    graph, starts = pieces_first(from_networkx(nx.disjoint_union(first, second)))
    ordering = ordered(graph, starts, stop_ratio=0.1)
    assert ordering.piece_ordered[0] == 0
    assert ordering.piece_ordered[1] > 100
    assert sorted(ordering.order[64:]) == list(range(64, 364))
    _, alone = ordered_whole(second, stop_ratio=0.1)
    assert ordering.pivot_tails.tolist() == alone.pivot_tails.tolist()


def test_work_is_counted_and_stops_when_asked():
    control = no_control()
    ordered_whole(nx.grid_2d_graph(10, 10), control=control)
    assert control.tolist() == [0, 100]
    control[:] = 1, 0
    _, ordering = ordered_whole(nx.grid_2d_graph(10, 10), control=control)
    assert control.tolist() == [1, 0]
    assert ordering.piece_ordered.tolist() == [0]
