"""Several workers against one process: the same steps, the same model, the same errors on all."""

import gc
import os
import signal
import threading
from functools import partial

import numpy as np
import pytest
from torch.nn.parallel import DistributedDataParallel

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.errors import CorrvaeError, FolderError, TrainingError
from corrvae.io.folder import read_folder
from corrvae.nn import FeatureTable
from corrvae.training import Checkpoint, train
from corrvae.training.data import exhaustive
from corrvae.training.distributed import Workers, agree, current_workers
from corrvae.training.loop import Run
from support.several import run_workers
from support.training import D, N, small_data, small_matrix, small_model

# Workers add the same float32 numbers in another order: the last of seven digits, in the largest gradient of a model.
OF_A_GRADIENT = 1e-6
# What is left of that after 30 steps of Adam, whose steps are as long for small gradients as for large ones.
OF_A_TRAINING = 1e-4


def augment(rows, generator):
    counts = generator.poisson(0.5, (len(rows), D)).astype(np.float32)
    counts[:, 0] += 1
    return counts


VARIANTS = {
    "vae": ({"tau": "learned"}, {"edges": None, "weights": None}, {}),
    "pair network without edges": ({"network": "perceptron"}, {"edges": None, "weights": None}, {}),
    "independent": ({"dropout": 0.3}, {"augment": augment}, {"warmup_steps": 4}),
    "perceptron": ({"network": "perceptron", "tau": "learned", "gamma_mi": 3.0}, {"sample_weights": np.ones(N)}, {}),
    "bilinear": ({"network": "bilinear", "pair_batch": 7, "dropout": 0.3}, {}, {}),
    "metric": ({"network": "metric"}, {"batch_size": 3, "edge_batch_size": 1}, {}),
}


def follow_gradients(name, n_steps=2):
    """Return the gradients and the terms of a few steps that do not move the model."""
    of_model, of_data, options = VARIANTS[name]
    run = Run(
        small_model(**of_model).train(),
        small_data(**of_data),
        **{"max_steps": 30, "learning_rate": 0.0, "warmup_steps": 0, **options},
        validation=None,
        patience=None,
        identity="",
        workers=current_workers(),
    )
    steps = []
    for _ in range(n_steps):
        before = dict(run._sums)
        run.advance(threading.Event())
        values = {term: total - before.get(term, 0.0) for term, total in run._sums.items()}
        steps.append(([None if p.grad is None else p.grad.numpy().copy() for p in run.model.parameters()], values))
    return steps


def train_some(max_steps, folder=None, identity="one"):
    """Train a model on all workers; that of the second begins elsewhere, which must not matter."""
    model, seen = small_model("perceptron", pair_batch=7, seed=current_workers().index), []
    callbacks = [lambda progress: seen.append(progress.step)]
    result = train(
        model,
        small_data(augment=augment),
        max_steps=max_steps,
        learning_rate=0.01,
        validation=exhaustive(small_data(20, features=1)),
        callbacks=callbacks if folder is None else [*callbacks, Checkpoint(folder)],
        identity=identity,
    )
    weights = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    history = {name: column.tolist() for name, column in result.history.items()}
    return weights, history, (result.stopped, result.step, result.best_step), seen


def fail_together(folder):
    """Return what each worker's error says when something is wrong on one of them."""
    met = {}

    def note(name, call):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is what is asked
            call()
        met[name] = type(caught.value), str(caught.value)

    X = small_matrix()
    X[17, 2] = np.inf
    broken, held_out = small_data(table=FeatureTable(X)), exhaustive(small_data(table=FeatureTable(X)))
    note("broken", partial(train, small_model(), broken, max_steps=60))
    note("held out", partial(train, small_model(), small_data(), max_steps=60, validation=held_out))
    note("another fit", partial(train_some, 30, folder, "another"))
    return met


def stop_second(call=6):
    """Send a signal to the second worker alone, while it draws its batch."""
    calls = iter(range(100))

    def draw(rows, generator):
        if next(calls) == call and current_workers().index == 1:
            signal.raise_signal(signal.SIGINT)
        return augment(rows, generator)

    result = train(small_model(), small_data(augment=draw), max_steps=30)
    return result.stopped, result.step


def fit_together():
    """Fit an estimator that has no seed."""
    ring = CorrelationGraph.from_edges([(k, (k + 1) % N) for k in range(N)], n_vertices=N)
    return CorrelatedVAE(2, hidden=(4,), max_steps=5).fit(small_matrix(), graph=ring).embedding_


def agree_together():
    workers = current_workers()
    return {
        "agreed": agree(["é", workers.index]),
        "gathered": workers.gather(workers.index),
        "averaged": workers.average({"total": float(workers.index)}, stop=workers.index == 1),
    }


def hold_an_error():
    """Return whether what averaged the gradients still holds the process group, while a step's error is kept."""
    gc.collect()
    before = {id(thing) for thing in gc.get_objects() if isinstance(thing, DistributedDataParallel)}
    calls = iter(range(4))

    def draw(rows, generator):
        if next(calls, None) is None:
            raise ArithmeticError("no more")
        return augment(rows, generator)

    with pytest.raises(ArithmeticError, match="no more") as kept:
        train(small_model(), small_data(augment=draw), max_steps=30)
    assert kept.value.__traceback__ is not None
    found = [thing for thing in gc.get_objects() if isinstance(thing, DistributedDataParallel)]
    return [hasattr(thing, "reducer") or hasattr(thing, "logger") for thing in found if id(thing) not in before]


def lose_second(folder, call=7):
    """Kill the second worker while it draws its batch, and return what the first one's error says."""
    calls = iter(range(100))

    def draw(rows, generator):
        if next(calls) == call and current_workers().index == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return augment(rows, generator)

    model = small_model("perceptron", pair_batch=7)
    with pytest.raises(CorrvaeError) as caught:
        train(model, small_data(augment=draw), max_steps=30, learning_rate=0.01, callbacks=[Checkpoint(folder)])
    return str(caught.value)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return tmp_path_factory.mktemp("begun"), tmp_path_factory.mktemp("lost")


@pytest.fixture(scope="module")
def two(folders):
    """What two workers find; a start costs seconds, so there is one for all tests."""
    begun, lost = folders
    calls = {
        **{name: (follow_gradients, (name,)) for name in VARIANTS},
        "trained": (train_some, (30,)),
        "begun": (train_some, (14, begun)),
        "failures": (fail_together, (begun,)),
        "stopped": (stop_second, ()),
        "fitted": (fit_together, ()),
        "agreed": (agree_together, ()),
        "held": (hold_an_error, ()),
        "lost": (lose_second, (lost,)),
    }
    return dict(zip(calls, run_workers(2, *calls.values(), ends=(0, -signal.SIGKILL)), strict=True))


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_and_terms_are_those_of_one_process(name, two):
    expected = follow_gradients(name)
    for found in two[name]:
        for (gradients, values), (true_gradients, true_values) in zip(found, expected, strict=True):
            assert values.keys() == true_values.keys()
            assert list(values.values()) == pytest.approx(list(true_values.values()), rel=1e-5)
            largest = max(np.abs(gradient).max() for gradient in true_gradients if gradient is not None)
            for gradient, true in zip(gradients, true_gradients, strict=True):
                assert (gradient is None) == (true is None)
                if true is not None:
                    np.testing.assert_allclose(gradient, true, rtol=1e-4, atol=OF_A_GRADIENT * largest)


def assert_same_training(found, expected):
    (weights, history, end, _), (true_weights, true_history, true_end, _) = found, expected
    assert end == true_end
    for name, tensor in true_weights.items():
        np.testing.assert_allclose(weights[name], tensor, atol=OF_A_TRAINING, err_msg=name)
    assert history.keys() == true_history.keys()
    for name in true_history.keys() - {"seconds"}:
        assert history[name] == pytest.approx(true_history[name], rel=OF_A_TRAINING, abs=OF_A_TRAINING)


def test_two_workers_train_the_model_of_one_process(two):
    expected = train_some(30)
    for found in two["trained"]:
        assert_same_training(found, expected)
    first, second = two["trained"]
    assert all(np.array_equal(first[0][name], second[0][name]) for name in first[0])
    assert (first[3], second[3]) == (list(range(1, 31)), [])  # callbacks are the first worker's


def test_a_run_resumes_with_another_number_of_workers(two, folders):
    assert two["begun"][0][2][:2] == ("finished", 14)
    resumed = train_some(30, folders[0])
    assert resumed[3] == list(range(15, 31))
    assert_same_training(resumed, train_some(30))


def test_what_one_worker_meets_is_raised_on_all(two):
    first, second = two["failures"]
    for name, (kind, words) in first.items():
        assert second[name] == (kind, words), name
    assert first["broken"][0] is first["held out"][0] is TrainingError
    assert "17" in first["broken"][1]
    assert "term is infinite or not a number" in first["broken"][1]
    assert "term of the validation data is infinite or not a number after 7 steps (rows 17)" in first["held out"][1]
    assert first["another fit"][0] is FolderError


def test_all_workers_stop_at_one_step(two):
    assert two["stopped"] == [("interrupted", 6)] * 2


def test_an_estimator_without_a_seed_is_one_model_on_all_workers(two):
    first, second = two["fitted"]
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, second)


def test_workers_exchange_values(two):
    for found in two["agreed"]:
        assert found == {"agreed": ["é", 0], "gathered": [0, 1], "averaged": ({"total": 0.5}, True)}
    alone = Workers()
    assert (alone.is_main, alone.gather(3), alone.from_main(lambda: 4)) == (True, [3], 4)
    assert alone.average({"total": 1.0}, stop=True) == ({"total": 1.0}, True)
    assert current_workers() == alone


def test_an_error_that_is_kept_does_not_hold_the_process_group(two):
    assert two["held"] == [[False], [False]]


def test_a_killed_worker_ends_the_run_with_a_sentence_and_a_checkpoint_that_resumes(two, folders):
    words, nothing = two["lost"]
    assert nothing is None
    assert words.startswith("another worker of this run ended after 6 steps (")
    assert words.endswith("resume from its checkpoint (corrvae fit --resume)")
    assert "\n" not in words
    assert read_folder(folders[1], kind="corrvae checkpoint", version=1).document["step"] == 6
    model, whole = (small_model("perceptron", pair_batch=7) for _ in range(2))
    options = {"max_steps": 30, "learning_rate": 0.01}
    result = train(model, small_data(augment=augment), callbacks=[Checkpoint(folders[1])], **options)
    assert result.step == 30
    train(whole, small_data(augment=augment), **options)
    for mine, theirs in zip(model.parameters(), whole.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach(), theirs.detach(), atol=OF_A_TRAINING)
