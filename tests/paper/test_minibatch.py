"""The average over every batch that could be drawn is the full objective."""

from itertools import combinations

import numpy as np
import pytest
import torch

from corrvae.model import Batch, CorrelatedModel, Population, VertexIndex
from corrvae.nn import Decoder, Encoder, FeatureTable, PairBilinear, PairMetric, PairPerceptron, make_likelihood
from support.forests import random_edges, weights_by_enumeration

N = 6
EDGES = random_edges(N, 0.6, 0)
WEIGHTS = weights_by_enumeration(N, EDGES)
POPULATION = Population(N, len(EDGES), float(WEIGHTS.sum()))
X = np.random.default_rng(0).poisson(1.0, (N, 7)).astype(np.float32)
NOISE = torch.randn(N, 3, generator=torch.Generator().manual_seed(0))
NAMES = ("reconstruction", "singleton", "edge", "non_edge", "total")


def make(kind: str) -> CorrelatedModel:
    torch.manual_seed(0)
    pair_network = {
        "corr": PairPerceptron(7, 3, hidden=(9,)),
        "bilinear": PairBilinear(7, 3),
        "metric": PairMetric(7, 3),
        "ind": None,
    }[kind]
    networks = Encoder(7, 3, hidden=(8,)), Decoder(3, 7, hidden=(8,)), make_likelihood("multinomial", 7)
    return CorrelatedModel(*networks, pair_network=pair_network, tau=0.9)


def terms(model: CorrelatedModel, drawn: np.ndarray, edges: np.ndarray, proportional: bool) -> np.ndarray:
    found = VertexIndex(N).distinct(drawn, EDGES[edges])
    weights = None if proportional else torch.from_numpy(WEIGHTS[edges]).float()
    batch = Batch(FeatureTable(X).rows(found.vertices), len(drawn), torch.from_numpy(found.positions), weights)
    with torch.no_grad():
        values = model.terms(batch, POPULATION, gamma=0.7, noise=NOISE[drawn]).floats()
    return np.array([values[name] for name in NAMES])


@pytest.mark.parametrize("proportional", [False, True])
@pytest.mark.parametrize("kind", ["ind", "corr", "bilinear", "metric"])
def test_batches_average_to_the_whole(kind, proportional):
    model, every = make(kind), np.arange(len(EDGES))
    full = terms(model, np.arange(N), every, proportional=False)
    chances = WEIGHTS / WEIGHTS.sum() if proportional else np.full(len(EDGES), 1 / len(EDGES))
    subsets = [np.array(subset) for subset in combinations(range(N), 3)]
    average = sum(
        chances[edge] * terms(model, subset, np.array([edge]), proportional) / len(subsets)
        for subset in subsets
        for edge in every
    )
    np.testing.assert_allclose(average, full, rtol=2e-5, atol=1e-6)
    # batches themselves differ, or the average would prove nothing
    assert np.ptp([terms(model, subset, every[:1], proportional)[4] for subset in subsets]) > 1e-2
