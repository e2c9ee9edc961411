import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from corrvae.graphs.weights.pattern import split_into_pieces
from corrvae.graphs.weights.progress import Cancelled, Monitor
from corrvae.graphs.weights.sample import neighbor_tables, sample_bytes, solve_sample
from support.graphs import graphs
from support.resistance import conductances_of, from_networkx, scale_free, solved_weights


def sampled(graph, n_forests=200, seed=0, n_threads=2, monitor=None):
    return solve_sample(
        split_into_pieces(graph),
        graph.conductances,
        n_forests=n_forests,
        random_state=np.random.default_rng(seed),
        n_threads=n_threads,
        monitor=monitor or Monitor(),
    )


@given(graphs(max_vertices=12))
def test_sums_are_exact_and_bridges_left_out(graph):
    weights = sampled(graph, n_forests=11)
    is_bridge = split_into_pieces(graph).is_bridge
    assert np.all(weights[is_bridge] == 0.0)
    assert np.isclose(weights.sum(), graph.n_vertices - graph.n_connected - is_bridge.sum())
    assert np.all((weights >= 0) & (weights <= 1 + 1e-12))


@pytest.mark.parametrize("conductance_seed", [None, 2])
def test_the_mean_converges_to_the_weights(conductance_seed):
    graph = scale_free(80, conductance_seed)
    truth = solved_weights(graph)
    coarse, fine = (np.abs(sampled(graph, n) - truth).mean() for n in (200, 20_000))
    assert fine < 0.002
    assert 0.05 < fine / coarse < 0.2  # one over the root of a hundred times as many


def test_one_forest_is_more_precise_than_counting_its_edges():
    graph = from_networkx(nx.complete_graph(12))
    spread = np.std([sampled(graph, 1, seed) for seed in range(150)])
    share = 2 / 12
    assert spread < np.sqrt(share * (1 - share) / 3)  # a third of the variance of counting


def test_the_same_for_any_number_of_threads():
    graph = scale_free(200, 1)
    assert np.array_equal(sampled(graph, n_threads=1), sampled(graph, n_threads=3))
    assert not np.array_equal(sampled(graph, seed=0), sampled(graph, seed=1))


@given(graphs(max_vertices=10))
def test_tables_hold_the_conductance_of_each_entry(graph):
    pieces = split_into_pieces(graph)
    values, threshold, alias = neighbor_tables(pieces, graph.conductances)
    assert np.array_equal(values, conductances_of(graph)[pieces.edge_of])
    size = 0 if graph.conductances is None else values.size
    assert threshold.shape == alias.shape == (size,)


def test_memory_covers_the_sums_of_all_streams():
    graph = scale_free(500)
    pieces = split_into_pieces(graph)
    assert sample_bytes(pieces, 1) > 8 * 8 * graph.n_edges
    assert sample_bytes(pieces, 10**9) > 8 * 10**9  # a key for each forest


def test_progress_is_counted_and_stops_when_asked():
    monitor = Monitor()
    sampled(scale_free(50), n_forests=37, monitor=monitor, n_threads=1)
    assert (monitor.label, monitor.total, monitor.control[1]) == ("sampling forests", 37, 37)
    monitor.control[0] = 1
    with pytest.raises(Cancelled):
        sampled(scale_free(50), monitor=monitor)
