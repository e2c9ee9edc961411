"""The correlation graph, its splits and forests, and the spanning weights of its edges.

`CorrelationGraph` is the one graph type of the library; `spanning_weights` returns the share of maximal acyclic
subgraphs that contain each edge, which turns a graph with cycles into a valid prior. Importing this room loads neither
torch nor numba.
"""

from corrvae.graphs import heuristics as heuristics
from corrvae.graphs.edges import DroppedEdgesWarning as DroppedEdgesWarning
from corrvae.graphs.edges import EdgeError as EdgeError
from corrvae.graphs.forests import sample_forest as sample_forest
from corrvae.graphs.graph import CorrelationGraph as CorrelationGraph
from corrvae.graphs.graph import graph_features as graph_features
from corrvae.graphs.ids import VertexIds as VertexIds
from corrvae.graphs.splits import EdgeSplit as EdgeSplit
from corrvae.graphs.splits import split_edges as split_edges
from corrvae.graphs.weights.plan import SpanningPlan as SpanningPlan
from corrvae.graphs.weights.plan import SpanningWeights as SpanningWeights
from corrvae.graphs.weights.plan import spanning_weights as spanning_weights
