import numpy as np
import pytest
import torch
from scipy import sparse

from corrvae.baselines import graph_sage, variational_graph
from corrvae.graphs import CorrelationGraph
from corrvae.nn.layers import RowsLinear

pytest.importorskip("torch_geometric")

# two communities of eight, dense inside, features that tell vertices apart and nothing more
COMMUNITIES = [(i + 8 * c, j + 8 * c) for c in (0, 1) for i in range(8) for j in range(i)]
GRAPH = CorrelationGraph.from_edges(COMMUNITIES, n_vertices=16)


@pytest.mark.parametrize(
    ("embed", "settings"),
    [
        (graph_sage, {"n_steps": 60, "edge_batch": 64, "learning_rate": 1e-2, "n_negatives": 5}),
        (variational_graph, {"n_steps": 60}),
    ],
)
def test_neighbours_come_closer_than_strangers(embed, settings):
    features = np.eye(16)
    losses = []
    z = embed(features, GRAPH, 4, hidden=8, seed=1, on_step=lambda _, loss: losses.append(loss), **settings)
    assert z.shape == (16, 4)
    assert np.mean(losses[-10:]) < np.mean(losses[:10])
    products = z @ z.T
    inside = np.kron(np.eye(2), np.ones((8, 8))).astype(bool)
    assert products[inside].mean() > products[~inside].mean() + 0.1
    # sparse features give the same numbers; so does the same seed; and nothing global moves
    before = torch.random.get_rng_state()
    again = embed(sparse.csr_array(features), GRAPH, 4, hidden=8, seed=1, **settings)
    np.testing.assert_allclose(again, z, rtol=1e-3, atol=1e-4)
    assert torch.random.get_rng_state().equal(before)


@pytest.mark.parametrize("embed", [graph_sage, variational_graph])
def test_a_graph_without_edges_is_refused(embed):
    with pytest.raises(ValueError, match="has none"):
        embed(np.eye(3), CorrelationGraph.from_edges([], n_vertices=3), 2)


def test_sage_embeddings_have_length_one():
    z = graph_sage(np.eye(16), GRAPH, 4, hidden=8, n_steps=2)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("embed", [graph_sage, variational_graph])
def test_weights_are_those_of_the_seed(embed):
    one, other = (embed(np.eye(16), GRAPH, 4, hidden=8, n_steps=0, seed=seed) for seed in (0, 1))
    assert np.abs(one - other).max() > 1e-2


@pytest.mark.parametrize("embed", [graph_sage, variational_graph])
def test_draws_are_those_of_the_seed(embed, monkeypatch):
    # weights are the same for every seed here, so that the losses differ by what is drawn
    start = torch.manual_seed
    monkeypatch.setattr(torch, "manual_seed", lambda seed: start(7))
    losses = []
    for seed in (0, 0, 1):
        embed(np.eye(16), GRAPH, 4, hidden=8, n_steps=1, seed=seed, on_step=lambda _, loss: losses.append(loss))
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("embed", [graph_sage, variational_graph])
def test_a_vertex_sees_its_neighbours_neighbours_and_nobody_beyond(embed):
    path = CorrelationGraph.from_edges([(i, i + 1) for i in range(5)])
    features = np.random.default_rng(0).normal(size=(6, 3))
    before = embed(features, path, 4, hidden=16, n_steps=0)
    for changed in range(6):
        other = features.copy()
        other[changed] += 3.0
        moved = np.abs(embed(other, path, 4, hidden=16, n_steps=0) - before).max(axis=1) > 1e-6
        assert moved.tolist() == [abs(vertex - changed) <= 2 for vertex in range(6)]


def test_a_round_of_convolution_is_the_normalised_product():
    from torch_geometric.nn import GCNConv

    features = np.random.default_rng(0).normal(size=(16, 5))
    star = CorrelationGraph.from_edges([*COMMUNITIES, *((0, i) for i in range(8, 16))])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        first, second = RowsLinear(5, 8), GCNConv(8, 8)
    looped = star.to_scipy().toarray() + np.eye(16)
    scale = looped.sum(axis=1) ** -0.5
    graph = scale[:, None] * looped * scale
    hidden = np.maximum(graph @ (features @ first.weight.detach().numpy() + first.bias.detach().numpy()), 0.0)
    expected = graph @ hidden @ second.lin.weight.detach().numpy().T
    found = variational_graph(features, star, 4, hidden=8, n_steps=0, seed=3)
    np.testing.assert_allclose(found, expected[:, :4], rtol=1e-4, atol=1e-5)
