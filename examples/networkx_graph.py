"""Start from a weighted networkx graph: the characters of Les Misérables and how often they appear together.

Run: python examples/networkx_graph.py
"""

import networkx as nx
import numpy as np

from corrvae import CorrelatedVAE, CorrelationGraph, spanning_weights

novel = nx.les_miserables_graph()

# The number of common scenes is the conductance of an edge: how sure a correlation is.
graph = CorrelationGraph.from_networkx(novel, conductance="weight")
print(graph)

# An edge counts by the share of spanning trees that contain it: 1 for the only link to somebody, little in a crowd.
weights = spanning_weights(graph).weights
order = np.argsort(weights)
for edge in (*order[:2], *order[-2:]):
    print(f"{' and '.join(graph.id_pairs[edge])}: weight {weights[edge]:.2f}")

# Features of a character: scenes shared with each of the others, and one of its own.
counts = graph.to_scipy().toarray() + np.eye(graph.n_vertices)
model = CorrelatedVAE(4, likelihood="multinomial", tau=0.9, hidden=(50,), max_steps=300, random_state=0)
model.fit(counts, graph=graph)

near = model.kneighbors(ids="Valjean", n_neighbors=5)
print(f"nearest to Valjean: {', '.join(near.ids)}")
unlinked = model.kneighbors(ids="Valjean", n_neighbors=3, exclude=graph)
print(f"nearest whom Valjean does not meet: {', '.join(unlinked.ids)}")

# Back to networkx: attributes of nodes and edges.
nx.set_node_attributes(novel, dict(zip(model.ids_, model.embedding_, strict=True)), "embedding")
nx.set_edge_attributes(novel, {tuple(pair): w for pair, w in zip(graph.id_pairs, weights, strict=True)}, "share")
print(f"Cosette: {novel.nodes['Cosette']['embedding'].round(2)}")
