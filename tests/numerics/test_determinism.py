"""One seed, the same bits on a CPU; with another number of threads, nearly the same numbers."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import corrvae
import fragile
from corrvae import CorrelatedVAE, CorrelationGraph, spanning_weights
from corrvae.cli import app

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


ANSWER = """
import json, sys
from corrvae.cli import app
for arguments in json.loads(sys.argv[1]):
    try:
        app(arguments, prog_name="corrvae")
    except SystemExit as end:
        if end.code:
            raise
"""


def questions(source, out):
    """Every command that answers, each with the endings that it can write."""
    run, graph, features = (str(source / name) for name in ("run", "edges.csv", "x.csv"))
    asked = {
        "embedded.csv": ["embed", run],
        "embedded.npy": ["embed", run, "--features", features],
        "neighbors.parquet": ["neighbors", run, "-k", "5", "--features", features],
        "links.csv": ["links", run, "--top", "50"],
        "match.csv": ["match", run, "--left", features, "--right", features, "--one-to-one"],
        "cluster.csv": ["cluster", run, "-k", "3"],
        "spectral.csv": ["cluster", run, "-k", "3", "--method", "spectral"],
        "score.csv": ["score", run, "--pairs", graph],
        **{
            f"{way}.csv": ["weights", graph, "--method", way, "--epsilon", "0.2"]
            for way in ("exact", "sketch", "sample")
        },
    }
    return [[*words, "--out", str(out / name), "--quiet"] for name, words in asked.items()]


@pytest.fixture(scope="module")
def answers(graph, tmp_path_factory):
    """What the program writes in this process and two more, the last with two threads; each hashes in its own way."""
    source = tmp_path_factory.mktemp("source")
    rows = np.random.default_rng(1).poisson(0.5, (graph.n_vertices, 30))
    rows[:, 0] += 1
    lines = [",".join([f"v{i}", *map(str, row)]) for i, row in enumerate(rows.tolist())]
    (source / "x.csv").write_text("id," + ",".join(f"f{k}" for k in range(30)) + "\n" + "\n".join(lines) + "\n")
    (source / "edges.csv").write_text("a,b\n" + "".join(f"v{i},v{j}\n" for i, j in graph.edges.tolist()))
    model = CorrelatedVAE(8, hidden=(64,), max_steps=20, posterior="pairwise", random_state=0, device="cpu")
    frame = pd.DataFrame(rows.astype(np.float32), index=[f"v{i}" for i in range(len(rows))])
    frame.columns = [f"f{k}" for k in range(30)]
    edges = [(f"v{i}", f"v{j}") for i, j in graph.edges.tolist()]
    model.fit(frame, graph=CorrelationGraph.from_edges(edges, vertices=frame.index)).save(source / "run")
    path = str(Path(corrvae.__file__).parents[1])
    here, started = tmp_path_factory.mktemp("answers"), []
    for hashes, threads in enumerate((1, 2)):
        out = tmp_path_factory.mktemp("answers")
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), str(threads))
        environment = os.environ | limits | {"PYTHONHASHSEED": str(hashes), "PYTHONPATH": path}
        command = [sys.executable, "-W", "ignore", "-c", ANSWER, json.dumps(questions(source, out))]
        started.append((out, subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)))
    for arguments in questions(source, here):
        assert with_threads(1, lambda words=arguments: CliRunner().invoke(app, words)).exit_code == 0
    for _, process in started:
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
    return [{place.name: place.read_bytes() for place in out.iterdir()} for out in (here, *(out for out, _ in started))]


def test_every_answer_of_the_program_repeats_to_the_byte(answers):
    first, again, _ = answers
    assert first.keys() == again.keys()
    assert len(first) == 12  # with the file of ids beside the array
    assert [name for name in first if first[name] != again[name]] == []


def test_threads_change_answers_of_the_program_by_little_and_weights_that_are_drawn_not_at_all(answers):
    one, _, two = answers
    for name in ("sketch.csv", "sample.csv", "embedded.ids.csv"):
        assert one[name] == two[name]
    for name in ("embedded.csv", "score.csv", "exact.csv"):
        numbers = [pd.read_csv(io.BytesIO(found[name])).select_dtypes("number").to_numpy() for found in (one, two)]
        np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-4, atol=1e-5)
