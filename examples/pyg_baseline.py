"""Compare with graph networks of PyTorch Geometric, on held-out edges and on points without a training edge.

VGAE and GraphSAGE aggregate over the graph; CorrelatedVAE is trained with the graph and reads features alone. So the
first two may know more of a point that has edges, and the last one can embed a point that has none.

Run: pip install 'corrvae[baselines]'; python examples/pyg_baseline.py
"""

import warnings

import numpy as np
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.data import Data

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.experiments.baselines import graph_sage, variational_graph
from corrvae.experiments.links import score_links
from corrvae.experiments.models import point_posterior
from corrvae.graphs import split_edges
from corrvae.scoring import make_metric

N_POINTS, N_NEIGHBORS, N_NEW = 400, 4, 50
rng = np.random.default_rng(0)

# Points are linked to those near them in two hidden coordinates out of four; the features show all four.
hidden = rng.normal(size=(N_POINTS, 4))
distance = np.square(hidden[:, None, :2] - hidden[None, :, :2]).sum(axis=2)
near = np.argsort(distance, axis=1)[:, 1 : N_NEIGHBORS + 1]
source, target = np.repeat(np.arange(N_POINTS), N_NEIGHBORS), near.ravel()
features = (hidden @ rng.normal(size=(4, 60)) + rng.normal(size=(N_POINTS, 60)) > 0).astype(np.float32)
both_ways = np.unique(np.stack([np.r_[source, target], np.r_[target, source]]), axis=1)
data = Data(x=torch.from_numpy(features), edge_index=torch.from_numpy(both_ways))

# All edges of the newest points are held out, and a tenth of those of the others.
graph = CorrelationGraph.from_pyg(data)
is_new = (graph.edges >= N_POINTS - N_NEW).any(axis=1)
old_graph = CorrelationGraph.from_edges(graph.edges[~is_new], n_vertices=N_POINTS)
split = split_edges(old_graph, "random", test=0.1, validation=0.0, random_state=0)
new = graph.edges[is_new]

cvae = CorrelatedVAE(8, likelihood="bernoulli", tau=0.9, hidden=(100,), max_steps=400, random_state=0)
cvae.fit(features, graph=split.train)
sage = graph_sage(features, split.train, 8, hidden=100, n_steps=100, edge_batch=512)
vgae = variational_graph(features, split.train, 8, hidden=100, n_steps=100)
models = {
    "CVAE_ind": (cvae.posterior(), "mean_distance"),
    "GraphSAGE": (point_posterior(sage), "mean_distance"),
    "VGAE": (point_posterior(vgae), "inner_product"),  # what it is trained for
}

print("mean reciprocal rank        held-out edges   edges of points without training edges")
for name, (posterior, metric) in models.items():
    held_out, newest = (
        score_links(posterior, make_metric(metric), part, split.train)["mrr"] for part in (split.test, new)
    )
    print(f"  {name:10}                {held_out:.3f}            {newest:.3f}")
