import numpy as np
import pytest
import torch
from scipy import sparse

from corrvae.baselines import graph_sage, variational_graph
from corrvae.graphs import CorrelationGraph

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
