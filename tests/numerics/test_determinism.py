"""One seed, the same bits on a CPU; with another number of threads, nearly the same numbers."""

import os
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from corrvae import CorrelatedVAE, CorrelationGraph, Pairwise, spanning_weights
from corrvae.training import loop

ROOT = Path(__file__).parents[2]
# Sums of float32 numbers in another order: seven digits, of which four steps of training leave at least three.
BETWEEN_THREADS = 1e-3


def make_graph() -> CorrelationGraph:
    rng = np.random.default_rng(0)
    edges = {tuple(sorted(pair)) for pair in rng.integers(0, 150, (500, 2)).tolist() if pair[0] != pair[1]}
    return CorrelationGraph.from_edges(sorted(edges), vertices=range(150))


def make_rows() -> np.ndarray:
    counts = np.random.default_rng(1).poisson(0.5, (150, 300)).astype(np.float32)
    counts[:, 0] += 1
    return counts


def fitted() -> CorrelatedVAE:
    numbers = {"hidden": (200,), "max_steps": 4, "likelihood": "multinomial", "random_state": 0, "device": "cpu"}
    return CorrelatedVAE(20, family=Pairwise("bilinear", hidden=(20,)), dropout=0.2, **numbers).fit(
        make_rows(), graph=make_graph()
    )


def digest(model: CorrelatedVAE) -> str:
    """Return a code of all that a model learned and answers."""
    code = blake2b()
    for name, tensor in model.model_.state_dict().items():
        code.update(name.encode() + tensor.numpy().tobytes())
    for name in sorted(set(model.history_) - {"seconds"}):
        code.update(name.encode() + model.history_[name].tobytes())
    code.update(model.embedding_.tobytes() + model.stddev_.tobytes() + model.weights_.tobytes())
    found = model.kneighbors(ids=[0, 1, 2], n_neighbors=5)
    pairs = model.score_pairs([(0, 1), (2, 3)], metric="log_odds")
    for part in (found.scores, found.ids, pairs.scores, model.sample(3, random_state=1).features):
        code.update(np.ascontiguousarray(part).tobytes())
    return code.hexdigest()


def with_threads(count, work):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            return work()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("method", ["exact", "sketch", "sample"])
def test_weights_repeat_to_the_bit(method):
    graph = make_graph()

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


def test_fits_and_answers_repeat_to_the_bit_and_threads_change_little(monkeypatch):
    monkeypatch.setattr(loop, "_SMALL_STEP", 0)  # otherwise a small model trains on one thread
    models = [with_threads(threads, fitted) for threads in (1, 1, 2, 2)]
    codes = [with_threads(1, lambda model=model: digest(model)) for model in models]
    assert codes[0] == codes[1]
    assert codes[2] == codes[3]
    scale = np.abs(models[0].embedding_).max()
    assert np.abs(models[0].embedding_ - models[2].embedding_).max() <= BETWEEN_THREADS * scale
    scores = [with_threads(threads, lambda: models[0].score(make_rows(), graph=make_graph())) for threads in (1, 1, 2)]
    assert scores[0] == scores[1]
    assert scores[0] == pytest.approx(scores[2], rel=BETWEEN_THREADS)


def test_another_process_that_hashes_in_its_own_way_has_the_same_bits():
    command = [
        sys.executable,
        "-c",
        "import test_determinism as t; print(t.with_threads(1, lambda: t.digest(t.fitted())))",
    ]
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests", ROOT / "benchmarks", Path(__file__).parent)))
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [with_threads(1, lambda: digest(fitted()))]
