"""Baselines: embeddings by other methods, each a function of features and graph.

`principal_components` reads features alone. `halves_plda` is the linear model of two halves of a user in closed form.
`graph_sage` (Hamilton et al., 2017) and `variational_graph` (Kipf and
Welling, 2016) are networks over the graph, made with torch_geometric, which comes with ``corrvae[baselines]``. Both
run on the whole graph at every step: the samplers of torch_geometric need packages that are not on PyPI, and at the
sizes of the experiments a whole pass takes less than a second. `neural_common_neighbors` (Wang et al., 2024) scores
pairs, and embeds nothing.
"""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import sparse
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, logsigmoid

from corrvae.graphs import CorrelationGraph
from corrvae.model.linear import LinearSolution, solve_linear
from corrvae.nn.layers import RowsLinear
from corrvae.nn.rows import FeatureTable

OnStep = Callable[[int, float], None]
# A row of scores for each of some vertices, with a score for every vertex.
RowScores = Callable[[Int[np.ndarray, " rows"]], Float[np.ndarray, "rows vertices"]]


def principal_components(
    X: Any,
    n_components: int,
    *,
    weighting: Literal["raw", "idf"] = "raw",
    center: bool = True,
    seed: int = 0,
    project: Any = None,
) -> Float[np.ndarray, "rows dim"]:
    """Project rows, of X or of `project`, on the directions in which X varies most.

    With weighting "idf" each column is multiplied by ``log((1 + n) / (1 + m)) + 1`` where m of the n rows have it.
    Without `center` it is latent semantic analysis, and sparse features stay sparse.
    """
    from sklearn.decomposition import PCA, TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    X = _as_matrix(X)
    rows = X if project is None else _as_matrix(project)
    n_components = min(n_components, min(X.shape) - (0 if center else 1))
    if weighting != "raw":
        transformer: Any = TfidfTransformer(norm=None).fit(X)  # pyright: ignore[reportArgumentType]
        X, rows = transformer.transform(X), transformer.transform(rows)
    if center:
        X, rows = (np.asarray(part.toarray() if sparse.issparse(part) else part, np.float64) for part in (X, rows))
        solver = PCA(n_components, svd_solver="randomized", random_state=seed)
    else:
        solver = TruncatedSVD(n_components, random_state=seed)
    projected = solver.fit_transform(X) if project is None else solver.fit(X).transform(rows)
    return np.ascontiguousarray(projected, dtype=np.float32)


def halves_plda(items: Any, n_components: int, *, ridge: float) -> LinearSolution:
    """Solve the linear model of random halves, y = x / sqrt(size of the half), in expectation over all halves.

    Of a user with n items in halves of sizes h = floor(n / 2) and k = n - h, two different items are in one half each
    with probability h k / (n (n - 1)) either way, and the same item never is in both. So the expected cross scatter is
    sqrt(h k) / (n (n - 1)) off the diagonal and 0 on it, and the expected scatter of one half (n - 2) / (2 n (n - 1))
    and 1 / n.

    Every user (row) has two items or more, 0 or 1 each; `ridge` is as in `corrvae.model.linear.solve_linear`.
    """
    items = sparse.csr_array(items, dtype=np.float64)
    n = np.diff(items.indptr).astype(np.float64)
    h = np.floor(n / 2)
    k = n - h

    def scatter(off: np.ndarray, on: np.ndarray) -> np.ndarray:
        found = (items.T @ items.multiply(off[:, None])).toarray()
        np.fill_diagonal(found, items.T @ on)
        return found / len(n)

    mean = items.T @ ((np.sqrt(h) + np.sqrt(k)) / (2 * n)) / len(n)
    between = scatter(np.sqrt(h * k) / (n * (n - 1)), np.zeros_like(n)) - np.outer(mean, mean)
    total = scatter((n - 2) / (2 * n * (n - 1)), 1 / n) - np.outer(mean, mean)
    return solve_linear(between, total, mean, n_components, ridge=ridge)


def _as_matrix(X: Any) -> Any:
    return sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)


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
    on_step: OnStep | None = None,
) -> Float[np.ndarray, "vertices dim"]:
    """Embed vertices by two rounds of mean aggregation, trained so that neighbours have large inner products.

    The loss of an edge (u, v) is ``-log s(z_u . z_v) - sum over Q random w of log s(-z_u . z_w)`` with s the logistic
    function and Q = `n_negatives`; embeddings have length 1. `on_step` is called with the steps taken and the loss.
    """
    layer = _geometric_layers().SAGEConv
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = _Features(X, hidden)
        second = layer(hidden, hidden, aggr="mean", normalize=False)
        third = layer(hidden, n_components, aggr="mean", normalize=True)
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

    _descend(nn.ModuleList([first, second, third]), loss, n_steps, learning_rate, on_step)
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
    on_step: OnStep | None = None,
) -> Float[np.ndarray, "vertices dim"]:
    """Embed vertices as the means of a variational graph auto-encoder with two rounds of graph convolution.

    A round multiplies with ``D^-1/2 (A + I) D^-1/2``, where D holds the row sums of A + I. The first layer's bias comes
    before it, as a feature would that every vertex has. A step of Adam reads every edge and as many random pairs.
    """
    geometric = _geometric_layers()
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = _Features(X, hidden)
        second = geometric.GCNConv(hidden, 2 * n_components, cached=True)
    edges, both = _edges(graph)
    # GCNConv takes dense features only: the first round is its product with the graph, after weights for sparse rows
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

    _descend(nn.ModuleList([first, second]), loss, n_steps, learning_rate, on_step)
    with torch.no_grad():
        return encode()[0].numpy()


def neural_common_neighbors(
    X: Any,
    graph: CorrelationGraph,
    width: int = 32,
    *,
    n_negatives: int = 4,
    dropout: float = 0.3,
    n_steps: int = 200,
    edge_batch: int = 2048,
    learning_rate: float = 1e-2,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> RowScores:
    """Learn to score pairs by ``g(h_i * h_j, sum of h_u over common neighbours u)``: neural common neighbours.

    h are two rounds of graph convolution, ``h' = layer norm(W h + V A h)`` of rectified h; g is a perceptron with one
    hidden layer. The loss is logistic, of edges and of `n_negatives` random pairs for each; edges of a step are not in
    its graph.
    """
    edges = _edges(graph)[0].T.numpy()

    def loss() -> Tensor:
        drawn = torch.randint(len(edges), (edge_batch,)).numpy()
        others = torch.randint(graph.n_vertices, (edge_batch * n_negatives,)).numpy()
        apart = np.column_stack([np.repeat(edges[drawn, np.arange(edge_batch) % 2], n_negatives), others])
        adjacency = _adjacency(np.delete(edges, drawn, axis=0), graph.n_vertices)
        h = network.encode(adjacency)
        near, far = (network(h, adjacency, pairs) for pairs in (edges[drawn], apart))
        return -(logsigmoid(near).mean() + logsigmoid(-far).mean())

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _CommonNeighbors(X, width, dropout)
        _descend(network, loss, n_steps, learning_rate, on_step)
    network.eval()
    adjacency = _adjacency(edges, graph.n_vertices)
    with torch.no_grad():
        h = network.encode(adjacency)
    return lambda vertices: np.stack([network.row(h, adjacency, vertex) for vertex in vertices.tolist()])


class _CommonNeighbors(nn.Module):
    def __init__(self, X: Any, width: int, dropout: float) -> None:
        super().__init__()
        self.features, self.dropout = _Features(X, width), nn.Dropout(dropout)
        self.own, self.around = (nn.ModuleList(nn.Linear(width, width) for _ in range(2)) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.join, self.last = nn.Linear(2 * width, width), nn.Linear(width, 1)

    def encode(self, adjacency: sparse.csr_array) -> Tensor:
        h = self.features()
        for own, around, norm in zip(self.own, self.around, self.norms, strict=True):
            h = self.dropout(h.relu())
            h = norm(own(h) + _times(adjacency, around(h)))
        return h

    def forward(self, h: Tensor, adjacency: sparse.csr_array, pairs: Int[np.ndarray, "pairs 2"]) -> Tensor:
        i, j = pairs.T.copy()
        common = _times(sparse.csr_array(adjacency[i].multiply(adjacency[j])), h)
        return self.last(self.dropout(self.join(torch.cat([h[i] * h[j], common], 1)).relu()))[:, 0]

    @torch.no_grad()
    def row(self, h: Tensor, adjacency: sparse.csr_array, vertex: int) -> Float[np.ndarray, " vertices"]:
        """Score a vertex with all: `join` is linear, so that sums over common neighbours can follow it."""
        own, shared = self.join.weight.chunk(2, dim=1)
        joined = torch.addmm(self.join.bias, h, (own * h[vertex]).T)
        neighbors = adjacency.indices[adjacency.indptr[vertex] : adjacency.indptr[vertex + 1]]
        joined += _times(sparse.csr_array(adjacency[neighbors].T), h[neighbors] @ shared.T)
        return self.last(joined.relu_())[:, 0].numpy()


def _adjacency(edges: Int[np.ndarray, "edges 2"], n_vertices: int) -> sparse.csr_array:
    both = np.concatenate([edges, edges[:, ::-1]]).T
    return sparse.csr_array((np.ones(both.shape[1], np.float32), both), shape=(n_vertices, n_vertices))


def _times(rows: sparse.csr_array, h: Tensor) -> Tensor:
    """Multiply a sparse matrix with a dense one, which receives derivatives."""
    indices, offsets = (torch.from_numpy(part.astype(np.int64)) for part in (rows.indices, rows.indptr))
    weights = torch.from_numpy(rows.data.astype(np.float32))
    return embedding_bag(indices, h, offsets, mode="sum", include_last_offset=True, per_sample_weights=weights)


class _Features(nn.Module):
    """A linear layer of the features, which stay as sparse as they are."""

    def __init__(self, X: Any, n_outputs: int) -> None:
        super().__init__()
        self.linear = RowsLinear(X.shape[1], n_outputs)
        self.rows = FeatureTable(X).rows(np.arange(X.shape[0]))

    def forward(self) -> Tensor:
        return self.linear(self.rows)


def _geometric_layers() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch_geometric uses what torch has deprecated
        import torch_geometric.nn

    return torch_geometric.nn


def _edges(graph: CorrelationGraph) -> tuple[Tensor, Tensor]:
    """Return the edges once, and in both directions."""
    if graph.n_edges == 0:
        raise ValueError("this baseline learns from edges, and the graph has none")
    edges = torch.from_numpy(np.ascontiguousarray(graph.edges.T))
    return edges, torch.cat([edges, edges.flip(0)], 1)


def _descend(
    layers: nn.Module, loss: Callable[[], Tensor], n_steps: int, learning_rate: float, on_step: OnStep | None
) -> None:
    optimizer = torch.optim.Adam(layers.parameters(), lr=learning_rate)
    for step in range(n_steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        if on_step is not None:
            on_step(step + 1, float(value.detach()))
