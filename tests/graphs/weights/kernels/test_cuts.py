import networkx as nx
import numpy as np
import pytest

from corrvae.graphs.weights.kernels import cuts
from corrvae.graphs.weights.pattern import build_structure, order_pieces, split_into_pieces
from corrvae.monitor import Monitor
from support.resistance import from_networkx, scale_free


def analysed(graph):
    pieces = split_into_pieces(graph)
    ordering = order_pieces(pieces, Monitor())
    fields = (
        pieces.starts,
        ordering.pivot_sizes,
        ordering.pivot_tails,
        ordering.piece_pivots,
        ordering.piece_hubs,
    )
    return pieces, ordering, fields


def every_cut(fields, piece):
    """Pivots, core, seconds and bytes of each place where a piece may be cut."""
    starts, pivot_sizes, pivot_tails, piece_pivots, piece_hubs = fields
    first, last = piece_pivots[piece : piece + 2]
    sizes, tails = pivot_sizes[first:last], pivot_tails[first:last] + piece_hubs[piece]
    for n_pivots in range(last - first + 1):
        core = starts[piece + 1] - starts[piece] - sizes[:n_pivots].sum()
        if 0 < core < cuts.SMALLEST_CORE and n_pivots < last - first:
            continue
        columns = [cuts.column_cost(*column) for column in zip(sizes[:n_pivots], tails[:n_pivots], strict=True)]
        seconds = sum(column[0] for column in columns)
        seconds += cuts.SECONDS_A_CORE_ENTRY * core**2 + cuts.SECONDS_A_CORE_CUBE * float(core) ** 3
        front = max((sizes + tails)[:n_pivots], default=0)
        yield n_pivots, core, seconds, sum(column[1] for column in columns) + 8.0 * front**2, 8.0 * core**2


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
    _, _, fields = analysed(from_networkx(graph))
    n_eliminated, seconds, column_bytes, core_sizes = cuts.choose_cuts(*fields, budget)
    assert n_eliminated.size == 4
    for piece in range(4):
        candidates = list(every_cut(fields, piece))
        fitting = [cut for cut in candidates if cut[3] + cut[4] <= budget]
        best = min(fitting, key=lambda cut: cut[2]) if fitting else min(candidates, key=lambda cut: cut[3] + cut[4])
        assert seconds[piece] <= best[2] * (1 + 1e-9)
        found = next(cut for cut in candidates if cut[0] == n_eliminated[piece])
        assert core_sizes[piece] == found[1]
        assert np.allclose([seconds[piece], column_bytes[piece]], [found[2], found[3]])
        if fitting:
            assert column_bytes[piece] + 8.0 * float(core_sizes[piece]) ** 2 <= budget
        else:
            assert np.isclose(found[3] + found[4], best[3] + best[4])


def test_sparse_pieces_go_to_the_end_and_dense_ones_do_not_begin():
    _, ordering, fields = analysed(from_networkx(nx.disjoint_union(nx.cycle_graph(70), nx.complete_graph(90))))
    n_eliminated, _, _, core_sizes = cuts.choose_cuts(*fields, np.inf)
    assert core_sizes.tolist() == [0, 90]
    assert n_eliminated.tolist() == [ordering.piece_pivots[1], 0]


@pytest.mark.parametrize("largest_degree", [3, 5, 12])
def test_low_degrees_are_cut_where_fill_begins(largest_degree):
    graph = from_networkx(nx.disjoint_union_all([nx.grid_2d_graph(20, 20), nx.cycle_graph(30), nx.complete_graph(20)]))
    pieces, ordering, fields = analysed(graph)
    n_eliminated, core_sizes, column_bytes = cuts.cut_at_degree(*fields, largest_degree)
    assert core_sizes.tolist()[1:] == [0, 20]
    assert 0 < core_sizes[0] < 400
    structure = build_structure(pieces, ordering, np.arange(3), n_eliminated, Monitor())
    lengths = np.diff(structure.columns)[: structure.first]
    assert lengths.max() <= largest_degree
    assert pieces.n_vertices - structure.first == core_sizes.sum()
    assert column_bytes.sum() == 8 * structure.columns[-1] + 4 * structure.tails.size
    one_more = build_structure(pieces, ordering, np.array([0]), n_eliminated[:1] + 1, Monitor())
    assert np.diff(one_more.columns)[: one_more.first].max() > largest_degree


def test_predicted_bytes_are_those_of_the_structure():
    pieces, ordering, fields = analysed(scale_free(800))
    n_eliminated, _, column_bytes, core_sizes = cuts.choose_cuts(*fields, np.inf)
    structure = build_structure(pieces, ordering, np.array([0]), n_eliminated, Monitor())
    assert pieces.n_vertices - structure.first == core_sizes[0]
    fronts = structure.ends - structure.starts + np.diff(structure.tail_pointers)
    assert column_bytes[0] == 8 * structure.columns[-1] + 4 * structure.tails.size + 8 * fronts.max() ** 2


def test_hubs_do_not_keep_low_degrees_from_being_cut():
    wheels = nx.cycle_graph(2000)
    wheels.add_edges_from((v, 2000 + hub) for hub in range(20) for v in range(hub, 2000, 3))
    _, ordering, fields = analysed(from_networkx(wheels))
    assert ordering.piece_hubs.tolist() == [20]
    core_sizes = cuts.cut_at_degree(*fields, 12)[1]
    assert core_sizes.tolist() == [20]
