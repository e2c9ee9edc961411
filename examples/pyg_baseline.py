"""Compare with graph networks of PyTorch Geometric on the same split of a PyG graph, and on points with no edge.

VGAE and GraphSAGE aggregate over the graph; CorrelatedVAE reads features alone, and is trained with the graph. So the
first two may know more of a point that has edges, and the last one can place a point that has none.

Run: pip install 'corrvae[baselines]'; python examples/pyg_baseline.py
"""

import warnings

import numpy as np
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.data import Data

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.baselines import graph_sage, variational_graph
from corrvae.graphs import split_edges
from corrvae.tasks import embedding_scores, rank_links, rank_pairs, score_links

N_POINTS, N_NEIGHBOURS, N_NEW = 400, 4, 50
rng = np.random.default_rng(0)

# Points that are linked to those near them in two hidden coordinates out of four; the features show all four.
hidden = rng.normal(size=(N_POINTS, 4))
distance = np.square(hidden[:, None, :2] - hidden[None, :, :2]).sum(axis=2)
near = np.argsort(distance, axis=1)[:, 1 : N_NEIGHBOURS + 1]
source, target = np.repeat(np.arange(N_POINTS), N_NEIGHBOURS), near.ravel()
features = (hidden @ rng.normal(size=(4, 60)) + rng.normal(size=(N_POINTS, 60)) > 0).astype(np.float32)
both_ways = np.unique(np.stack([np.r_[source, target], np.r_[target, source]]), axis=1)
data = Data(x=torch.from_numpy(features), edge_index=torch.from_numpy(both_ways))

# From PyG to a correlation graph; the newest points' edges are all hidden, of the others a tenth is.
graph = CorrelationGraph.from_pyg(data)
is_new = np.isin(graph.edges, np.arange(N_POINTS - N_NEW, N_POINTS)).any(axis=1)
old_graph = CorrelationGraph.from_edges(graph.edges[~is_new], n_vertices=N_POINTS)
split = split_edges(old_graph, "random", test=0.1, validation=0.0, random_state=0)

cvae = CorrelatedVAE(8, likelihood="bernoulli", tau=0.9, hidden=(100,), max_steps=400, random_state=0)
cvae.fit(features, graph=split.train)
sage = graph_sage(features, split.train, 8, hidden=100, n_steps=100, edge_batch=512)
vgae = variational_graph(features, split.train, 8, hidden=100, n_steps=100)
scorers = {
    "CVAE_ind": embedding_scores(cvae.embedding_),
    "GraphSAGE": embedding_scores(sage),
    "VGAE": lambda rows: vgae[rows] @ vgae.T,  # it is trained for inner products
}

print("mean reciprocal rank        held-out edges   edges of points that training knows no edge of")
for name, scores in scorers.items():
    held_out = score_links(rank_links(scores, split)).mrr
    new = score_links(rank_pairs(scores, graph.edges[is_new], N_POINTS, known=split.train)).mrr
    print(f"  {name:10}                {held_out:.3f}            {new:.3f}")
