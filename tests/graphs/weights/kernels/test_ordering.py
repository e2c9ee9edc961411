from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from corrvae.graphs import CorrelationGraph
from corrvae.graphs.weights.kernels import ordering as cuts
from corrvae.graphs.weights.kernels.adjacency import breadth_first
from corrvae.graphs.weights.kernels.ordering import Ordering, minimum_degree
from corrvae.graphs.weights.pattern import build_structure, order_pieces, split_into_pieces
from corrvae.graphs.weights.progress import Monitor
from support.elimination import in_positions, lists_of, no_control, symbolic_fill
from support.graphs import graphs
from support.resistance import from_networkx

HUB_FACTOR = 10.0


def pieces_first(graph: CorrelationGraph) -> tuple[CorrelationGraph, np.ndarray]:
    """Relabel so that pieces are runs of vertices, without the isolated ones; and where the pieces start."""
    order, _, starts = breadth_first(*lists_of(graph)[:2], np.flatnonzero(graph.degrees))
    label = np.empty(graph.n_vertices, np.int64)
    label[order] = np.arange(order.size)
    return CorrelationGraph.from_edges(label[graph.edges], vertices=range(starts[-1])), starts


def ordered(graph, starts, *, stop_ratio=np.inf, degree=np.inf, work=np.inf, core=0.0, control=None) -> Ordering:
    pointers, neighbors, _ = lists_of(graph)
    control = no_control() if control is None else control
    limits = map(float, (stop_ratio, degree, work, core))
    return minimum_degree(pointers, neighbors, starts, HUB_FACTOR, *limits, control)


def ordered_whole(graph: nx.Graph, **limits) -> tuple[CorrelationGraph, Ordering]:
    graph, starts = pieces_first(from_networkx(graph))
    assert starts.size == 2
    return graph, ordered(graph, starts, **limits)


def n_ordered(ordering: Ordering) -> list[int]:
    """How many vertices of each piece have been ordered."""
    return [int(ordering.pivot_sizes[a:b].sum()) for a, b in pairwise(ordering.piece_pivots)]


def pivot_ends(ordering: Ordering) -> np.ndarray:
    """Where each pivot ends, if every piece is ordered to its end or there is only one."""
    return np.cumsum(ordering.pivot_sizes)


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
    assert n_ordered(ordering) == np.diff(starts).tolist()
    ends = pivot_ends(ordering)
    assert np.all(ordering.pivot_sizes > 0)
    fill = fill_of(graph, ordering)
    for start, end, tail in zip(ends - ordering.pivot_sizes, ends, ordering.pivot_tails, strict=True):
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
    assert ordering.pivot_sizes.tolist() == [70]
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
    assert n_ordered(ordering) == [600]
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
    assert np.all(ordering.pivot_tails <= limit)
    assert 0 < n_ordered(ordering)[0] < 900
    assert sorted(ordering.order) == list(range(900))
    _, unlimited = ordered_whole(grid)
    assert np.array_equal(ordering.pivot_sizes, unlimited.pivot_sizes[: ordering.pivot_sizes.size])


def test_nothing_below_the_degree_limit_means_no_pivots():
    _, ordering = ordered_whole(nx.random_regular_graph(6, 100, seed=0), degree=5)
    assert ordering.pivot_sizes.size == 0
    assert ordering.piece_pivots.tolist() == [0, 0]
    assert sorted(ordering.order) == list(range(100))


def test_the_work_limit_leaves_a_core():
    limit = 2e4
    _, ordering = ordered_whole(nx.grid_2d_graph(30, 30), work=limit, core=np.inf)
    sizes = ordering.pivot_sizes
    work = np.cumsum(sizes * (ordering.pivot_tails + sizes).astype(float) ** 2)
    assert work[-2] <= limit < work[-1]
    assert n_ordered(ordering)[0] < 900


def test_what_clearly_passes_the_work_limit_stops_early():
    grid = nx.grid_2d_graph(30, 30)
    _, patient = ordered_whole(grid, work=2e4, core=np.inf)
    _, hopeless = ordered_whole(grid, work=2e4, core=100.0)
    assert n_ordered(hopeless) < n_ordered(patient)


def test_the_stop_ratio_leaves_what_is_dense():
    _, ordering = ordered_whole(nx.complete_graph(70), stop_ratio=0.5)
    assert n_ordered(ordering) == [0]
    _, ordering = ordered_whole(nx.complete_graph(60), stop_ratio=0.5)  # too small to be worth a core
    assert n_ordered(ordering) == [60]


def test_a_stopped_piece_leaves_the_next_ones_alone():
    graph = nx.disjoint_union_all([nx.complete_graph(80), nx.cycle_graph(50), nx.complete_graph(90)])
    graph, starts = pieces_first(from_networkx(graph))
    ordering = ordered(graph, starts, stop_ratio=0.5)
    assert n_ordered(ordering) == [0, 50, 0]
    alone, alone_starts = pieces_first(from_networkx(nx.cycle_graph(50)))
    assert ordering.pivot_tails.tolist() == ordered(alone, alone_starts).pivot_tails.tolist()
    assert sorted(ordering.order) == list(range(220))


def test_a_stopped_piece_leaves_nothing_in_the_degree_lists():
    first, second = nx.random_regular_graph(8, 64, seed=1), nx.random_regular_graph(8, 300, seed=2)
    graph, starts = pieces_first(from_networkx(nx.disjoint_union(first, second)))
    ordering = ordered(graph, starts, stop_ratio=0.1)
    assert n_ordered(ordering)[0] == 0
    assert n_ordered(ordering)[1] > 36
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
    assert n_ordered(ordering) == [0]


def analysed(graph):
    pieces = split_into_pieces(graph)
    ordering = order_pieces(pieces, Monitor())
    return pieces, ordering


def every_cut(starts, ordering, piece):
    """Pivots, core, seconds and bytes of each place where a piece may be cut."""
    first, last = ordering.piece_pivots[piece : piece + 2]
    sizes, tails = ordering.pivot_sizes[first:last], ordering.pivot_tails[first:last] + ordering.piece_hubs[piece]
    for n_pivots in range(last - first + 1):
        core = starts[piece + 1] - starts[piece] - sizes[:n_pivots].sum()
        if 0 < core < cuts.SMALLEST_CORE and n_pivots < last - first:
            continue
        columns = [cuts.column_cost(*column) for column in zip(sizes[:n_pivots], tails[:n_pivots], strict=True)]
        seconds = sum(column[0] for column in columns)
        seconds += cuts.SECONDS_A_CORE_ENTRY * core**2 + cuts.SECONDS_A_CORE_CUBE * float(core) ** 3
        front = max((sizes + tails)[:n_pivots], default=0)
        yield n_pivots, core, seconds, sum(column[1] for column in columns) + 8.0 * front**2 + 8.0 * core**2


@pytest.mark.parametrize(("size", "tail"), [(1, 0), (1, 7), (4, 0), (5, 3)])
def test_a_pivot_costs_its_entries_and_pairs(size, tail):
    lengths = [size - 1 - i + tail for i in range(size)]
    seconds, room = cuts.column_cost(size, tail)
    assert room == 8 * sum(lengths) + 4 * tail
    pairs = sum(length**2 for length in lengths) + (size + tail) ** 2
    expected = cuts.SECONDS_A_PIVOT + cuts.SECONDS_AN_ENTRY * sum(lengths) + cuts.SECONDS_A_PAIR * pairs
    assert np.isclose(seconds, expected)


@pytest.mark.parametrize("budget", [np.inf, 3e6, 8e5, 4e5])
def test_the_cheapest_cut_that_fits_is_chosen(budget):
    graph = nx.disjoint_union_all(
        [nx.barabasi_albert_graph(500, 4, seed=1), nx.grid_2d_graph(25, 25), nx.cycle_graph(70), nx.complete_graph(90)]
    )
    pieces, ordering = analysed(from_networkx(graph))
    n_eliminated, core_sizes, seconds, sizes = cuts.choose_cuts(pieces.starts, ordering, budget)
    assert n_eliminated.size == 4
    for piece in range(4):
        candidates = list(every_cut(pieces.starts, ordering, piece))
        fitting = [cut for cut in candidates if cut[3] <= budget]
        best = min(fitting, key=lambda cut: cut[2]) if fitting else min(candidates, key=lambda cut: cut[3])
        assert seconds[piece] <= best[2] * (1 + 1e-9)
        found = next(cut for cut in candidates if cut[0] == n_eliminated[piece])
        assert core_sizes[piece] == found[1]
        assert np.allclose([seconds[piece], sizes[piece]], [found[2], found[3]])
        if fitting:
            assert sizes[piece] <= budget
        else:
            assert np.isclose(found[3], best[3])


def test_sparse_pieces_go_to_the_end_and_dense_ones_do_not_begin():
    pieces, ordering = analysed(from_networkx(nx.disjoint_union(nx.cycle_graph(70), nx.complete_graph(90))))
    n_eliminated, core_sizes, _, _ = cuts.choose_cuts(pieces.starts, ordering, np.inf)
    assert core_sizes.tolist() == [0, 90]
    assert n_eliminated.tolist() == [ordering.piece_pivots[1], 0]


@pytest.mark.parametrize("largest_degree", [3, 5, 12])
def test_low_degrees_are_cut_where_fill_begins(largest_degree):
    graph = from_networkx(nx.disjoint_union_all([nx.grid_2d_graph(20, 20), nx.cycle_graph(30), nx.complete_graph(20)]))
    pieces, ordering = analysed(graph)
    n_eliminated, core_sizes, _, _ = cuts.cut_at_degree(pieces.starts, ordering, largest_degree)
    assert core_sizes.tolist()[1:] == [0, 20]
    assert 0 < core_sizes[0] < 400
    structure = build_structure(pieces, ordering, np.arange(3), n_eliminated, Monitor())
    lengths = np.diff(structure.columns)[: structure.first]
    assert lengths.max() <= largest_degree
    assert pieces.n_vertices - structure.first == core_sizes.sum()
    one_more = build_structure(pieces, ordering, np.array([0]), n_eliminated[:1] + 1, Monitor())
    assert np.diff(one_more.columns)[: one_more.first].max() > largest_degree


def test_hubs_do_not_keep_low_degrees_from_being_cut():
    wheels = nx.cycle_graph(2000)
    wheels.add_edges_from((v, 2000 + hub) for hub in range(20) for v in range(hub, 2000, 3))
    pieces, ordering = analysed(from_networkx(wheels))
    assert ordering.piece_hubs.tolist() == [20]
    core_sizes = cuts.cut_at_degree(pieces.starts, ordering, 12).core_sizes
    assert core_sizes.tolist() == [20]
