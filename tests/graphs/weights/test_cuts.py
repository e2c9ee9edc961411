import networkx as nx
import numpy as np
import pytest

from corrvae.graphs.weights.cuts import LARGEST_DEGREE, cut_low_degrees, plan_cuts
from corrvae.graphs.weights.pattern import build_structure, order_pieces, split_into_pieces
from corrvae.monitor import Monitor
from support.resistance import from_networkx


@pytest.fixture(scope="module")
def analysed():
    graph = nx.disjoint_union_all(
        [nx.barabasi_albert_graph(700, 4, seed=1), nx.grid_2d_graph(20, 20), nx.complete_graph(90)]
    )
    pieces = split_into_pieces(from_networkx(graph))
    return pieces, order_pieces(pieces, Monitor())


def test_bytes_are_those_of_columns_front_and_core(analysed):
    cuts = plan_cuts(*analysed, np.inf)
    assert cuts.core_sizes[2] == 90
    assert 64 <= cuts.core_sizes[0] < 700
    for piece in range(3):
        structure = build_structure(*analysed, np.array([piece]), cuts.n_eliminated[[piece]], Monitor())
        assert structure.columns.size - 1 - structure.first == cuts.core_sizes[piece]
        fronts = structure.ends - structure.starts + np.diff(structure.tail_pointers)
        room = 8 * structure.columns[-1] + 4 * structure.tails.size + 8 * max(fronts, default=0) ** 2
        assert cuts.bytes[piece] == room + 8 * cuts.core_sizes[piece] ** 2


def test_a_tight_budget_is_kept_and_costs_time(analysed):
    free = plan_cuts(*analysed, np.inf)
    least = plan_cuts(*analysed, 0.0)
    budget = 0.5 * (free.bytes[0] + least.bytes[0])
    tight = plan_cuts(*analysed, budget)
    assert tight.bytes[0] <= budget
    assert tight.seconds[0] > free.seconds[0]
    assert tight.n_eliminated[0] != free.n_eliminated[0]


def test_what_cannot_fit_is_cut_where_it_needs_least(analysed):
    least = plan_cuts(*analysed, 0.0)
    for budget in (1e5, 5e5, 1e6, np.inf):
        assert np.all(least.bytes <= plan_cuts(*analysed, budget).bytes)


def test_a_sketch_eliminates_only_vertices_of_few_neighbours(analysed):
    cuts = cut_low_degrees(*analysed)
    assert cuts.n_eliminated[2] == 0
    assert cuts.core_sizes[2] == 90
    structure = build_structure(*analysed, np.arange(3), cuts.n_eliminated, Monitor())
    lengths = np.diff(structure.columns)[: structure.first]
    assert lengths.max() <= LARGEST_DEGREE
    assert cuts.bytes.sum() == 8 * structure.columns[-1] + 4 * structure.tails.size
    assert cuts.core_sizes.sum() == analysed[0].n_vertices - structure.first
