"""Small correlated models, their points, and the literal evaluation of all their pairs in float64."""

import numpy as np
import torch
from torch import nn

from corrvae.inference import infer_posterior
from corrvae.model import CorrelatedModel
from corrvae.nn import (
    Decoder,
    Encoder,
    FeatureTable,
    PairBilinear,
    PairMetric,
    PairNetwork,
    PairPerceptron,
    make_likelihood,
)
from corrvae.scoring.pair_vectors import PairVectors
from corrvae.scoring.points import Exclusions, Points

N_FEATURES, DIM = 6, 3


class OwnNetwork(PairNetwork):
    """A network that the library does not know."""

    def __init__(self, n_features: int, n_components: int) -> None:
        super().__init__()
        self.n_components = n_components
        self.layer = nn.Linear(n_features, n_components)

    def prepare(self, rows):
        return rows.affine(self.layer.weight.T, self.layer.bias)

    def pre_activation(self, prepared, first, second):
        return prepared[first] * prepared[second] - (prepared[first] - prepared[second]) ** 2 / 4


NETWORKS = {
    "perceptron": lambda: PairPerceptron(N_FEATURES, DIM, hidden=(11,)),
    "wide": lambda: PairPerceptron(N_FEATURES, DIM, hidden=(500,)),
    "two layers": lambda: PairPerceptron(N_FEATURES, DIM, hidden=(7, 5)),
    "bilinear": lambda: PairBilinear(N_FEATURES, DIM, rank=2, hidden=(9,)),
    "bilinear, odd rank": lambda: PairBilinear(N_FEATURES, DIM, rank=3, hidden=()),
    "metric": lambda: PairMetric(N_FEATURES, DIM),
    "metric, hidden": lambda: PairMetric(N_FEATURES, DIM, hidden=(5,)),
    "own": lambda: OwnNetwork(N_FEATURES, DIM),
}


def make_model(network: str, seed: int = 0) -> CorrelatedModel:
    """A model with random weights, large enough that correlations spread over (-1, 1)."""
    torch.manual_seed(seed)
    parts = Encoder(N_FEATURES, DIM, hidden=(8,)), Decoder(DIM, N_FEATURES), make_likelihood("gaussian", N_FEATURES)
    return CorrelatedModel(*parts, pair_network=NETWORKS[network]())


def make_points(model: CorrelatedModel, X: np.ndarray, *, spread: float = 1.0, memory: int = 2**29) -> Points:
    """The posteriors of these rows, with standard deviations times `spread`."""
    table = FeatureTable(np.asarray(X, np.float32))
    posterior = infer_posterior(model, table)
    return Points.of(posterior.mean, spread * posterior.stddev, PairVectors(model, table, memory=memory))


def random_rows(n_rows: int, seed: int = 0, repeated: int = 0) -> np.ndarray:
    """Random rows, of which the last `repeated` are copies of others."""
    generator = np.random.default_rng(seed)
    X = 3.0 * generator.normal(size=(n_rows, N_FEATURES))
    X[n_rows - repeated :] = X[generator.integers(0, max(1, n_rows - repeated), repeated)]
    return X.astype(np.float32)


@torch.no_grad()
def literal_distances(queries: Points, candidates: Points) -> np.ndarray:
    """Every query against every candidate, as the formula stands, with the network in float64."""
    assert queries.vectors is not None
    assert candidates.vectors is not None
    network = queries.vectors.network
    left, right = (points.vectors.at(np.arange(len(points))).double() for points in (queries, candidates))
    vectors, distances = torch.cat([left, right]), np.empty((len(queries), len(candidates)))
    network.double()
    try:
        for i in range(len(queries)):
            others = torch.arange(len(candidates))
            a = network.pre_activation(vectors, torch.full_like(others, i), len(queries) + others)
            rho, s_i, s_j = np.tanh(a.numpy()), queries.stddev[i].astype(float), candidates.stddev.astype(float)
            apart = queries.mean[i].astype(float) - candidates.mean.astype(float)
            distances[i] = (apart**2 + s_i**2 + s_j**2 - 2 * rho * s_i * s_j).sum(1)
    finally:
        network.float()
    return distances


def excluding(n_queries: int, *pairs: tuple[int, int]) -> Exclusions:
    """These (query, candidate) pairs."""
    queries, candidates = np.array(pairs, np.int64).reshape(-1, 2).T
    return Exclusions.of(n_queries, queries, candidates)


def oneself(n_points: int) -> Exclusions:
    """Each point leaves itself out."""
    return Exclusions.of(n_points, np.arange(n_points), np.arange(n_points))


def left_out(exclusions: Exclusions, n_candidates: int) -> np.ndarray:
    """The exclusions as a dense matrix."""
    dense = np.zeros((len(exclusions.offsets) - 1, n_candidates), bool)
    dense[exclusions.queries, exclusions.candidates] = True
    return dense


def large_activations(n_points: int, offset: float, seed: int = 0) -> Points:
    """Points whose hidden activations are of the size of `offset` and cancel, with correlations spread over (-1, 1)."""
    generator = np.random.default_rng(seed)
    model = make_model("wide", seed)
    X = generator.normal(size=(n_points, N_FEATURES)).astype(np.float32)
    X[:, 0] += offset
    vectors = PairVectors(model, FeatureTable(X))
    prepared, everyone = vectors.at(np.arange(n_points)), torch.arange(n_points)
    with torch.no_grad():
        a = model.pair_network.pre_activation(prepared, everyone, everyone.roll(1))
        model.pair_network.last.bias -= a.mean(0)
    shape = n_points, DIM
    return Points.of(0.3 * generator.normal(size=shape), np.exp(0.05 * generator.normal(size=shape)), vectors)
