"""Graph neural networks without labels: GraphSAGE (Hamilton et al., 2017) and VGAE (Kipf and Welling, 2016).

Both run on the whole graph at every step: the samplers of torch_geometric need packages that are not on PyPI, and at
the sizes of the experiments a whole pass takes less than a second.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from corrvae.graphs.graph import CorrelationGraph
from corrvae.nn.features import FeatureTable
from corrvae.nn.layers import RowsLinear

Loss = Callable[[], Tensor]


def graph_sage(
    X: Any,
    graph: CorrelationGraph,
    n_components: int = 100,
    *,
    hidden: int = 300,
    n_negatives: int = 20,
    n_steps: int = 300,
    edge_batch: int = 4096,
    learning_rate: float = 1e-3,
    seed: int = 0,
    on_step: Callable[[int, float], None] | None = None,
) -> Float[np.ndarray, "vertices dim"]:
    """Embed vertices by two rounds of mean aggregation, trained so that neighbours have large inner products.

    The loss of an edge (u, v) is ``-log s(z_u . z_v) - sum over Q random w of log s(-z_u . z_w)`` with s the logistic
    function; embeddings have length 1.

    Parameters
    ----------
    X
        Features, dense or sparse.
    graph
        The graph to aggregate over and to learn from: training edges only.
    n_components, hidden
        Width of the embedding and of the layer between.
    n_negatives
        Random vertices against each edge (Q).
    n_steps, edge_batch, learning_rate
        Steps of Adam, edges that each draws, and their size.
    seed
        Of weights and draws.
    on_step
        Called with the number of steps made and the loss.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(0, 1), (2, 3)])
    >>> graph_sage(np.eye(4), graph, 2, hidden=4, n_steps=2).shape
    (4, 2)
    """
    layer = _geometric_layers().SAGEConv
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = _Features(X, hidden)
        second = layer(hidden, hidden, aggr="mean", normalize=False)
        third = layer(hidden, n_components, aggr="mean", normalize=True)
    layers = nn.ModuleList([first, second, third])
    edges, both = _edges(graph)

    def embed() -> Tensor:
        return third(second(first().relu(), both).relu(), both)

    def loss() -> Tensor:
        z = embed()
        drawn = edges[:, torch.randint(edges.shape[1], (edge_batch,), generator=generator)]
        others = torch.randint(graph.n_vertices, (edge_batch, n_negatives), generator=generator)
        near = (z[drawn[0]] * z[drawn[1]]).sum(1)
        far = torch.einsum("ed,eqd->eq", z[drawn[0]], z[others])
        return -(logsigmoid(near) + logsigmoid(-far).sum(1)).mean()

    _descend(layers, loss, n_steps, learning_rate, on_step)
    with torch.no_grad():
        return embed().numpy()


def variational_graph(
    X: Any,
    graph: CorrelationGraph,
    n_components: int = 100,
    *,
    hidden: int = 300,
    n_steps: int = 200,
    learning_rate: float = 1e-2,
    seed: int = 0,
    on_step: Callable[[int, float], None] | None = None,
) -> Float[np.ndarray, "vertices dim"]:
    """Embed vertices as the means of a variational graph auto-encoder with two rounds of graph convolution.

    A round multiplies with ``D^-1/2 (A + I) D^-1/2``, where D holds the row sums of A + I. The first layer's bias comes
    before it, as a feature would that every vertex has.

    Parameters
    ----------
    X
        Features, dense or sparse.
    graph
        The graph to convolve over and to reconstruct: training edges only.
    n_components, hidden
        Width of the embedding and of the layer between.
    n_steps, learning_rate
        Steps of Adam and their size. Each sees every edge and as many random pairs.
    seed
        Of weights and draws.
    on_step
        Called with the number of steps made and the loss.

    Examples
    --------
    >>> graph = CorrelationGraph.from_edges([(0, 1), (2, 3)])
    >>> variational_graph(np.eye(4), graph, 2, hidden=4, n_steps=2).shape
    (4, 2)
    """
    geometric = _geometric_layers()
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = _Features(X, hidden)
        second = geometric.GCNConv(hidden, 2 * n_components, cached=True)
    layers = nn.ModuleList([first, second])
    edges, both = _edges(graph)
    # GCNConv takes dense features alone: the first round is its product with the graph, after weights for sparse rows
    convolve, looped = geometric.LGConv(), torch.cat([both, torch.arange(graph.n_vertices).expand(2, -1)], 1)

    def encode() -> tuple[Tensor, Tensor]:
        mean, log_stddev = second(convolve(first(), looped).relu(), both).chunk(2, 1)
        return mean, log_stddev.clamp(max=10.0)

    def loss() -> Tensor:
        mean, log_stddev = encode()
        z = mean + log_stddev.exp() * torch.randn(mean.shape, generator=generator)
        apart = torch.randint(graph.n_vertices, edges.shape, generator=generator)
        near, far = ((z[pairs[0]] * z[pairs[1]]).sum(1) for pairs in (edges, apart))
        kl = 0.5 * (mean.square() + (2 * log_stddev).exp() - 1 - 2 * log_stddev).sum(1).mean()
        return -(logsigmoid(near).mean() + logsigmoid(-far).mean()) + kl / graph.n_vertices

    _descend(layers, loss, n_steps, learning_rate, on_step)
    with torch.no_grad():
        return encode()[0].numpy()


class _Features(nn.Module):
    """A linear layer of the features, which stay as sparse as they are."""

    def __init__(self, X: Any, n_outputs: int) -> None:
        super().__init__()
        self.linear = RowsLinear(X.shape[1], n_outputs)
        self.rows = FeatureTable(X).rows(np.arange(X.shape[0]))

    def forward(self) -> Tensor:
        return self.linear(self.rows)


def _geometric_layers() -> Any:
    """Import torch_geometric, which warns of what torch has deprecated: no concern of whoever calls a baseline."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import torch_geometric.nn

    return torch_geometric.nn


def _edges(graph: CorrelationGraph) -> tuple[Tensor, Tensor]:
    """The edges once, and in both directions."""
    if graph.n_edges == 0:
        raise ValueError("these baselines learn from edges, and the graph has none")
    edges = torch.from_numpy(np.ascontiguousarray(graph.edges.T))
    return edges, torch.cat([edges, edges.flip(0)], 1)


def _descend(
    layers: nn.Module,
    loss: Loss,
    n_steps: int,
    learning_rate: float,
    on_step: Callable[[int, float], None] | None,
) -> None:
    optimizer = torch.optim.Adam(layers.parameters(), lr=learning_rate)
    for step in range(n_steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        if on_step is not None:
            on_step(step + 1, float(value.detach()))
