"""One seed, the same bits on a CPU; with another number of threads, nearly the same numbers."""

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

import fragile
from corrvae import CorrelatedVAE, CorrelationGraph, spanning_weights

BETWEEN_THREADS = 1e-3


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(0)
    edges = {tuple(sorted(pair)) for pair in rng.integers(0, 150, (500, 2)).tolist() if pair[0] != pair[1]}
    return CorrelationGraph.from_edges(sorted(edges), vertices=range(150))


def with_threads(count, work):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            return work()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("method", ["exact", "sketch", "sample"])
def test_weights_repeat_to_the_bit(graph, method):
    def weights(threads):
        return with_threads(
            threads,
            lambda: spanning_weights(graph, method, epsilon=0.2, random_state=3, n_threads=threads).weights,
        )

    found = [weights(threads) for threads in (1, 1, 2, 2)]
    assert found[0].tobytes() == found[1].tobytes()
    assert found[2].tobytes() == found[3].tobytes()
    if method == "exact":  # whose products of matrices add up in another order
        np.testing.assert_allclose(found[0], found[2], rtol=1e-10)
    else:
        assert found[0].tobytes() == found[2].tobytes()


def fitted(graph):
    X = np.random.default_rng(1).poisson(0.5, (graph.n_vertices, 300)).astype(np.float32)
    X[:, 0] += 1
    numbers = {"hidden": (200,), "max_steps": 4, "likelihood": "multinomial", "random_state": 0, "device": "cpu"}
    pairwise = {"posterior": "pairwise", "pair_network": "bilinear", "pair_hidden": (20,)}
    return CorrelatedVAE(20, **numbers, **pairwise).fit(X, graph=graph)


def test_training_and_scoring_repeat_to_the_bit_and_threads_change_little(graph):
    models = [with_threads(threads, lambda: fitted(graph)) for threads in (1, 1, 2, 2)]
    codes = [fragile.digest(model) for model in models]
    assert codes[0] == codes[1]
    assert codes[2] == codes[3]
    scale = np.abs(models[0].embedding_).max()
    assert np.abs(models[0].embedding_ - models[2].embedding_).max() <= BETWEEN_THREADS * scale

    def answers(model):
        found = model.kneighbors([0, 1, 2], n_neighbors=5)
        pairs = model.score_pairs([(0, 1), (2, 3)], metric="log_odds")
        return np.asarray(found.scores).tobytes(), np.asarray(found.ids).tobytes(), np.asarray(pairs).tobytes()

    assert with_threads(1, lambda: answers(models[0])) == with_threads(1, lambda: answers(models[1]))
    scores = [with_threads(threads, lambda: models[0].score(models[0].features_, graph=graph)) for threads in (1, 1, 2)]
    assert scores[0] == scores[1]
    assert scores[0] == pytest.approx(scores[2], rel=BETWEEN_THREADS)
