import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from corrvae.graphs import heuristics
from corrvae.graphs.pair_features import EXCHANGED, NAMES, PairFeatures, RowDirections, are_linked
from support.graphs import graphs


def of(graph, seed=0):
    generator = np.random.default_rng(seed)
    directions = generator.standard_normal((graph.n_vertices, 3)).astype(np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return PairFeatures(graph, directions, generator.random(graph.n_vertices))


@settings(max_examples=25)
@given(graphs(max_vertices=9, min_vertices=2), st.integers(0, 99))
def test_a_linked_pair_has_the_features_of_the_graph_without_its_edge(graph, seed):
    features = of(graph, seed)
    found = features.of_pairs(graph.edges)
    for edge, row in zip(graph.edges.tolist(), found, strict=True):
        without = of(graph.without(graph.ids[[edge]]), seed)
        assert row == pytest.approx(without.of_pairs(np.array([edge]))[0], abs=1e-5)


@given(graphs(max_vertices=9, min_vertices=2))
def test_features_are_those_of_the_heuristics_and_of_dense_matrices(graph):
    features, every = of(graph), np.arange(graph.n_vertices)
    apart = np.argwhere(~np.eye(graph.n_vertices, dtype=bool))
    apart = apart[~are_linked(graph, apart[:, 0], apart[:, 1])]
    columns = dict(zip(NAMES, features.of_pairs(apart).T, strict=True))
    i, j = apart.T
    for name, heuristic, small in (
        ("common_neighbors", "common_neighbors", 1.0),
        ("adamic_adar", "adamic_adar", 1.0),
        ("resource_allocation", "resource_allocation", 1e-3),
        ("three_steps", "three_step_allocation", 1e-4),
    ):
        expected = np.log1p(getattr(heuristics, heuristic)(graph, every)[i, j] / small)
        assert columns[name] == pytest.approx(expected, abs=1e-5)
    adjacency, x = (graph.to_scipy().toarray() > 0).astype(float), features.directions.astype(float)
    around = adjacency @ x
    lengths = np.linalg.norm(around, axis=1, keepdims=True)
    around = around / np.where(lengths < 1e-6, 1.0, lengths)
    assert columns["cosine"] == pytest.approx((x @ x.T)[i, j], abs=1e-5)
    assert columns["cosine_of_neighborhoods"] == pytest.approx((around @ around.T)[i, j], abs=1e-4)
    assert columns["cosine_to_neighborhood"] == pytest.approx((around @ x.T)[i, j], abs=1e-4)
    triangles = np.diag(np.linalg.matrix_power(adjacency, 3))[i] / 2
    assert columns["triangles"] == pytest.approx(np.log1p(triangles), abs=1e-5)
    weights = adjacency @ (1 / np.maximum(graph.degrees, 1))
    assert columns["weight_of_other"] == pytest.approx(np.log1p(4 * weights[j]), abs=1e-5)
    assert columns["degree"] == pytest.approx(np.log1p(graph.degrees[i]), abs=1e-5)
    # the same pair from its other end
    assert features.of_pairs(apart[:, ::-1])[:, EXCHANGED] == pytest.approx(features.of_pairs(apart), abs=1e-4)


@given(graphs(max_vertices=9, min_vertices=2), st.integers(1, 9), st.integers(0, 9))
def test_candidates_are_the_best_by_paths_and_the_alike(graph, n_near, n_alike):
    features, every = of(graph), np.arange(graph.n_vertices)
    alike = features.alike(every, n_alike)
    found = features.candidates(every, n_near, np.insert(alike, 0, -1, axis=1))
    adjacency = graph.to_scipy().toarray() > 0
    steps = adjacency / np.maximum(graph.degrees, 1)
    weights = adjacency @ (1 / np.maximum(graph.degrees, 1))
    cosines = np.maximum(features.directions @ features.directions.T, 0)
    orders = (0.05 + weights) * (0.1 + cosines), cosines + 1e-6 * weights
    for i in every:
        mine = found.positions[i][found.positions[i] >= 0]
        assert len(set(mine.tolist())) == len(mine)
        known = set(np.flatnonzero(steps[i]).tolist()) | {i}
        assert not known & set(mine.tolist())
        for order in orders:  # nobody that may be listed is above the listed
            open_ones = sorted(set(every.tolist()) - set(np.flatnonzero(adjacency[i]).tolist()))
            best = sorted(order[i][open_ones], reverse=True)[: n_alike // 2]
            assert set(np.round(best, 5)) <= set(np.round(order[i][alike[i]], 5))
        reached = set(np.flatnonzero((steps + steps @ steps + steps @ steps @ steps)[i]).tolist()) - known
        assert len(mine) >= min(n_near, len(reached - set(alike[i].tolist())))
        rows = features.of_pairs(np.stack([np.full(len(mine), i), mine], axis=1))
        assert found.features[i][found.positions[i] >= 0] == pytest.approx(rows, abs=1e-4)


@pytest.mark.parametrize("form", [sparse.csr_array, np.asarray])
def test_directions_keep_cosines(form):
    rows = np.random.default_rng(0).poisson(0.7, (30, 12)).astype(np.float64)
    rows[3] = 0
    found = RowDirections(form(rows))(form(rows))
    weighted = rows * (np.log(31 / (1 + (rows > 0).sum(0))) + 1) if form is sparse.csr_array else rows
    if form is np.asarray:
        weighted = (rows - rows.mean(0)) / rows.std(0)
    lengths = np.linalg.norm(weighted, axis=1, keepdims=True)
    weighted = weighted / np.where(lengths == 0, 1, lengths)
    assert found @ found.T == pytest.approx(weighted @ weighted.T, abs=1e-5)
