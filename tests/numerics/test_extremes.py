"""Where numbers are extreme, terms and gradients stay finite in float32 and agree with float64.

The tolerance is relative to the size of the parts that a value is the sum of: no sum of float32 numbers can be closer.
"""

from itertools import product

import numpy as np
import pytest
import torch

from corrvae import CorrelatedVAE, CorrelationGraph, Pairwise, spanning_weights
from corrvae.model import Batch, CorrelatedModel, PairPrior
from corrvae.model.families import Independent
from corrvae.model.objectives import edge_term, mutual_information, singleton_kl
from corrvae.nn import Decoder, DenseRows, Encoder, Marginals, make_likelihood
from support.training import given_noise, sparse_table

TAUS = [-0.999, -0.9, 0.0, 0.5, 0.99, 0.999, 0.9999]
TOLERANCE = 1e-5
FLOOR = 1e-4
EDGES = torch.tensor([[0, 1], [0, 5], [2, 3], [2, 4], [3, 5]])


def points(n_components: int, dtype: torch.dtype, size: float) -> Marginals:
    """Means up to `size`, close to each other and far apart; standard deviations from their floor up to 30."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(6, n_components)) * size
    mean[1] = mean[0] * (1 + 1e-3)
    stddev = 10.0 ** rng.uniform(-1, 1.5, (6, n_components))
    stddev[2:4] = FLOOR
    mean, stddev = (torch.from_numpy(part.astype(np.float32)).to(dtype) for part in (mean, stddev))
    return Marginals(torch.cat([mean, stddev], 1).requires_grad_())


def activations(n_components: int, dtype: torch.dtype) -> torch.Tensor:
    """Correlations from none to the edge: tanh of 9 is 1 in float32, of 20 in float64, and of 80 in any."""
    values = torch.tensor([0.0, 1e-4, -1e-4, 1.0, -3.0, 9.0, -9.0, 20.0, 80.0, -80.0], dtype=torch.float32)
    places = torch.arange(len(EDGES) * n_components) % len(values)
    return values[places].reshape(len(EDGES), n_components).to(dtype).requires_grad_()


def size_of_parts(marginals: Marginals, prior: PairPrior, a: torch.Tensor | None) -> torch.Tensor:
    """Add up the sizes of all that the edge term is the sum of."""
    (x, s), (y, t) = (
        (marginals.mean[EDGES[:, end]].detach(), marginals.stddev[EDGES[:, end]].detach()) for end in (0, 1)
    )
    size = (x - y).square() @ prior.near.abs() + (x + y).square() @ prior.far.abs() + prior.constant.abs()
    if a is None:
        return size + (s.square() + t.square()) @ prior.spread
    return size + (s - t).square() @ prior.spread + 2.0 * (s * t) @ prior.product + mutual_information(a.detach())


@pytest.mark.parametrize(
    ("tau", "n_components", "size"), [*product(TAUS, [1, 1000], [1.0]), (0.9999, 5, 1e3), (-0.999, 5, 1e3)]
)
@pytest.mark.parametrize("correlated", [False, True])
def test_edge_terms(tau, n_components, size, correlated):
    values, gradients, sizes = [], [], None
    for dtype in (torch.float32, torch.float64):
        marginals, prior = points(n_components, dtype, size), PairPrior.of(tau, n_components, dtype)
        a = activations(n_components, dtype) if correlated else None
        value = edge_term(marginals, EDGES, prior, a)
        value.sum().backward()
        values.append(value.detach().double())
        gradients.append([part.grad.double() for part in (marginals.joint, a) if part is not None])
        sizes = size_of_parts(marginals, prior, a)
    assert torch.isfinite(values[0]).all()
    assert ((values[0] - values[1]).abs() <= TOLERANCE * sizes).all()
    for single, double in zip(*gradients, strict=True):
        assert torch.isfinite(single).all()
        torch.testing.assert_close(single, double, rtol=1e-4, atol=TOLERANCE * float(double.abs().max()))


def literal_terms(parameters, counts, noise, tau) -> list[torch.Tensor]:
    """The objective of `test_the_gradient_of_a_step` as its terms, written down with torch's own functions."""
    first, first_bias, second, second_bias, decoding, decoding_bias = parameters
    mean, raw = ((counts @ first + first_bias).relu() @ second.T + second_bias).chunk(2, 1)
    stddev = FLOOR + torch.nn.functional.softplus(raw, threshold=1e3)
    n_drawn, d = noise.shape
    outputs = (mean[:n_drawn] + stddev[:n_drawn] * noise) @ decoding.T + decoding_bias
    reconstruction = (counts[:n_drawn] * outputs.log_softmax(1)).sum(1).mean()
    kl = 0.5 * (mean.square() + stddev.square() - 1.0 - 2.0 * stddev.log()).sum(1)[:n_drawn].mean()
    x, y = torch.cat([mean, stddev], 1)[EDGES[:, 0]], torch.cat([mean, stddev], 1)[EDGES[:, 1]]
    prior = torch.tensor([[1.0, tau], [tau, 1.0]], dtype=torch.float64).inverse() - torch.eye(2, dtype=torch.float64)
    cross = (x * y)[:, :d].sum(1)  # independent posteriors: no product of standard deviations
    quadratic = 0.5 * (prior[0, 0] * (x.square() + y.square()).sum(1) + 2.0 * prior[0, 1] * cross)
    edge = quadratic + 0.5 * d * np.log1p(-(tau**2))
    return [reconstruction, -kl, -edge.sum() / len(counts)]


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize(("tau", "n_components"), [*product([-0.999, 0.9999], [1, 1000])])
def test_the_gradient_of_a_step(tau, n_components, as_sparse):
    """Large counts, and half of the standard deviations at their floor."""
    torch.manual_seed(0)
    encoder, decoder = Encoder(8, n_components, hidden=(5,)), Decoder(n_components, 8, hidden=())
    parameters = [*encoder.first.parameters(), *encoder.rest.parameters(), *decoder.parameters()]
    with torch.no_grad():
        parameters[3][n_components::2] = -40.0
        parameters[3][n_components + 1 :: 4] = -9.0
    counts = np.random.default_rng(0).poisson(0.5, (6, 8)).astype(np.float32)
    counts[0, 3] = 1000.0
    model = CorrelatedModel(encoder, decoder, make_likelihood("multinomial", 8), family=Independent(), tau=tau)
    batch = Batch(
        rows=sparse_table(counts, as_sparse=as_sparse).rows(np.arange(6)),
        vertices=np.arange(6),
        n_drawn=4,
        drawn=slice(0, 4),
        vertex_weights=torch.full((4,), 0.25),
        edges=EDGES,
        edge_weights=torch.full((5,), 1 / 6),
    )
    noise = torch.randn(4, n_components)
    with given_noise(noise):
        terms = model(batch)
    terms.total().backward()
    exact = [part.detach().double().requires_grad_() for part in parameters]
    expected = literal_terms(exact, torch.from_numpy(counts).double(), noise.double(), tau)
    sum(expected).backward()
    sizes = sum(abs(term.item()) for term in expected)
    assert abs(terms.numbers()["total"] - sum(expected).item()) <= TOLERANCE * sizes
    for single, double in zip(parameters, exact, strict=True):
        assert torch.isfinite(single.grad).all()
        atol = TOLERANCE * float(double.grad.abs().max())
        torch.testing.assert_close(single.grad.double(), double.grad, rtol=1e-4, atol=atol)


@pytest.mark.parametrize("n_components", [1, 1000])
def test_singleton_terms_at_the_floor(n_components):
    single, double = (points(n_components, dtype, 100.0) for dtype in (torch.float32, torch.float64))
    values = [singleton_kl(marginals) for marginals in (single, double)]
    for value in values:
        value.sum().backward()
    torch.testing.assert_close(values[0].double(), values[1], rtol=TOLERANCE, atol=0.0)
    # s - 1/s is a difference of numbers close to 1 where s is
    torch.testing.assert_close(single.joint.grad.double(), double.joint.grad, rtol=TOLERANCE, atol=1e-6)


@pytest.mark.parametrize("name", ["multinomial", "poisson", "negative_binomial"])
def test_ten_million_counts_in_a_row(name):
    counts = torch.tensor([[1e7, 0.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0], [1e6, 1e6, 5e6, 3e6]])
    results = []
    for dtype in (torch.float32, torch.float64):
        likelihood = make_likelihood(name, 4).to(dtype)
        outputs = torch.tensor([[16.0, -20.0, 1.0, 0.0]], dtype=dtype).repeat(3, 1).requires_grad_()
        value = likelihood.log_prob(outputs, DenseRows(counts.to(dtype)))
        value.sum().backward()
        results.append((value.detach().double(), outputs.grad.double()))
    (single, gradient), (double, exact) = results
    assert torch.isfinite(single).all()
    # parts are as large as the counts times their logarithms
    parts = (counts.double() * (counts.double() + 2).log()).sum(1) + 2e7 * 20
    assert ((single - double).abs() <= 1e-6 * parts).all()
    torch.testing.assert_close(gradient, exact, rtol=1e-4, atol=1e-6 * float(exact.abs().max()))


def fit(X, graph, n_components=2, **options):
    """Fit a few steps and check that every number is finite."""
    numbers = {"hidden": (4,), "max_steps": 3, "tau": 0.9999, "random_state": 0, "device": "cpu"}
    model = CorrelatedVAE(n_components, **{**numbers, **options}).fit(X, graph=graph)
    assert all(np.isfinite(column).all() for column in model.history_.values())
    assert np.isfinite(model.embedding_).all()
    assert (model.stddev_ > 0).all()
    return model


@pytest.mark.filterwarnings("ignore:.*(zero|empty):UserWarning")
@pytest.mark.parametrize(
    ("likelihood", "normalize"),
    [("multinomial", "none"), ("multinomial", "l2"), ("poisson", "log1p"), ("negative_binomial", "log1p")],
)
@pytest.mark.parametrize("n_components", [1, 1000])
def test_training_on_large_counts(likelihood, normalize, n_components):
    counts = np.random.default_rng(0).poisson(1.0, (12, 8)).astype(np.float32)
    counts[0] = 0
    counts[1, 2] = 1e7
    counts[2:4] = 1e6
    graph = CorrelationGraph.from_edges([(i, i + 1) for i in range(11)])
    fit(counts, graph, n_components, likelihood=likelihood, normalize=normalize)


def test_one_vertex():
    model = fit(np.ones((1, 8)), CorrelationGraph(np.empty((0, 2), dtype=np.int64), 1))
    assert np.isfinite(model.score(np.ones((1, 8))))


def test_a_star_of_a_hundred_thousand_leaves():
    leaves = np.arange(1, 100_001)
    graph = CorrelationGraph(np.column_stack([np.zeros_like(leaves), leaves]), 100_001)
    assert (spanning_weights(graph).weights == 1.0).all()
    fit(np.random.default_rng(0).normal(size=(100_001, 8)).astype(np.float32), graph)


def test_cliques():
    n = 150
    graph = CorrelationGraph.from_edges(np.argwhere(np.triu(np.ones((n, n)), 1)))
    np.testing.assert_allclose(spanning_weights(graph).weights, 2 / n, rtol=1e-10)
    X = np.random.default_rng(0).normal(size=(n, 8))
    fit(X, graph, family=Pairwise("bilinear", hidden=(4,)))
