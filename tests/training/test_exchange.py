"""Several ranks against one: the same steps, the same model, the same errors on all."""

import gc
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import Parameter
from torch.nn.parallel import DistributedDataParallel

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.errors import FolderError, LostRankError, TrainingError
from corrvae.nn import FeatureTable, LearnedTau
from corrvae.objectives import Mean, Terms
from corrvae.ranks import Ranks, current_ranks
from corrvae.training import train
from corrvae.training.checkpoints import CheckpointFolder
from corrvae.training.evaluation import Evaluator
from corrvae.training.exchange import agree, check_alike, hand_out, hear, told_as_loss, weigh_share
from corrvae.training.run import Run
from support.several import run_ranks
from support.training import D, N, small_data, small_matrix, small_model, small_settings

# Float32 sums in another order: the last of seven digits, in the largest gradient of a model.
TOLERANCE = 1e-6
WEIGHTS = np.linspace(0, 2, N)
VARIANTS = {
    "vae": (None, {}, {"edges": None, "weights": None}, {}),
    "pair network without edges": ("perceptron", {}, {"edges": None, "weights": None}, {}),
    "ind, uniform edges": (None, {}, {}, {"warmup_steps": 4}),
    "ind, weighted edges": (None, {}, {"sample_weights": WEIGHTS}, {"edge_sampling": "weighted"}),
    "perceptron, all pairs": ("perceptron", {"tau": "learned"}, {}, {"gamma": 3.0}),
    "perceptron, drawn pairs": ("perceptron", {}, {"sample_weights": WEIGHTS}, {"pair_batch": 7, "gamma": (0.5, 2.0)}),
    "bilinear": ("bilinear", {}, {}, {"pair_batch": 7, "edge_sampling": "weighted"}),
    "metric": ("metric", {}, {}, {}),
}


def make_run(name, **changes) -> Run:
    pair, of_model, of_data, of_settings = VARIANTS[name]
    tau = LearnedTau(0.9) if of_model.get("tau") == "learned" else 0.9
    model = small_model(pair, tau=tau)
    model.train()
    return Run(model, small_data(**of_data), small_settings(**{**of_settings, **changes}), None)


def follow_gradients(name, n_steps=3):
    """Give the gradients and the terms of a few steps that do not move the model."""
    run, steps = make_run(name), []
    run.adam.step = lambda: None
    for _ in range(n_steps):
        before = dict(run.means.sums)
        run.advance()
        values = {term: total - before.get(term, 0.0) for term, total in run.means.sums.items()}
        slopes = [None if p.grad is None else p.grad.numpy().copy() for p in run.model.parameters()]
        steps.append((slopes, values))
    return steps


def redraw(rows, generator):
    counts = generator.poisson(0.5, (len(rows), D)).astype(np.float32)
    counts[:, 0] += 1
    return counts


def sample_gradients(seed, n_steps=250):
    """Give the mean and the variance of the gradient over steps with dropout and features that are drawn anew."""
    model = small_model("bilinear", dropout=0.3)
    model.train()
    data = small_data(redraw=redraw, sample_weights=WEIGHTS)
    run = Run(model, data, small_settings(max_steps=10**6, seed=seed, pair_batch=7, evaluate_every=10**6), None)
    run.adam.step = lambda: None
    found = []
    for _ in range(n_steps):
        run.advance()
        found.append(torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()]).numpy().copy())
    return np.mean(found, axis=0), np.var(found, axis=0) / n_steps


def weights_of(model):
    return {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}


def train_some(max_steps, folder=None, evaluate_every=7):
    pair, _, of_data, of_settings = VARIANTS["perceptron, drawn pairs"]
    numbers = {"max_steps": max_steps, "checkpoint": folder, "evaluate_every": evaluate_every}
    settings = small_settings(**of_settings, **numbers)
    model = small_model(pair)
    if current_ranks().index == 1:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()  # where a rank begins does not matter: all take up the weights of the first
    seen = []
    result = train(
        model,
        small_data(**of_data),
        settings,
        validation=small_data(20, 1),
        callbacks=[lambda progress: seen.append(progress.step)],
    )
    return weights_of(model), {k: v.tolist() for k, v in result.history.items()}, result, seen


def refusals(folder):
    """Give what each rank is told in words when something is wrong on one of them."""
    index, said = current_ranks().index, {}

    def note(name, kind, call):
        with pytest.raises(kind) as caught:
            call()
        said[name] = str(caught.value)

    X = small_matrix()
    X[17, 2] = np.inf
    broken = small_data(table=FeatureTable(X))
    note("broken", TrainingError, lambda: train(small_model(), broken, small_settings(max_steps=60)))
    held_out = small_data(N, 1, table=FeatureTable(X))
    note("held out", TrainingError, lambda: train(small_model(), small_data(), small_settings(), validation=held_out))
    note("seeds", ValueError, lambda: train(small_model(), small_data(), small_settings(seed=index)))
    other = small_data(seed=index)
    note("data", ValueError, lambda: train(small_model(), other, small_settings()))
    for name, pair in (("vertex", None), ("edge", None), ("pair", "bilinear")):
        few = small_settings(**{f"{name}_batch": 1})
        note(name, ValueError, partial(train, small_model(pair), small_data(), few))
    settings = small_settings(seed=5, vertex_batch=9, checkpoint=folder)
    note("another run", FolderError, lambda: train(small_model(), small_data(), settings))
    return said


class TroubleError(Exception):
    """What no library knows of."""


class Troubled:
    """A callback of rank 0 that fails in one of its moments."""

    def __init__(self, moment):
        self.moment = moment

    def __enter__(self):
        self.meet("enter")

    def __call__(self, progress):
        self.meet(progress.step)

    def __exit__(self, *_):
        self.meet("exit")

    def meet(self, moment):
        if moment == self.moment:
            raise TroubleError(f"at {moment}")


def fail_first(folder):
    """Give what each rank meets when rank 0 fails in what it does by itself."""
    met, last = {}, small_settings().max_steps

    def note(name, call):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is what is asked
            call()
        met[name] = type(caught.value).__name__, str(caught.value)

    for moment in ("enter", 3, last, "exit"):
        note(moment, partial(train, small_model(), small_data(), small_settings(), callbacks=[Troubled(moment)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointFolder, "write", fail_by(OSError(28, "No space left on device")))
        kept = small_settings(checkpoint=folder / "full", checkpoint_steps=2)
        note("save", lambda: train(small_model(), small_data(), kept))
        patch.setattr(CheckpointFolder, "clear", fail_by(OSError(13, "Permission denied")))
        note("clear", lambda: train(small_model(), small_data(), replace(kept, resume=False)))
        patch.setattr(Evaluator, "__call__", fail_by(MemoryError("no room")))
        note("validate", lambda: train(small_model(), small_data(), small_settings(), validation=small_data(20, 1)))
    return met


def fail_by(error):
    def fail(*_, **__):
        raise error

    return fail


def stop_one():
    """Let a signal reach the second rank alone, and stop early on what the first one sees."""

    class Stop:
        on_every_rank = True

        def __call__(self, progress):
            if progress.step == 5 and current_ranks().index == 1:
                signal.raise_signal(signal.SIGINT)

    stopped = train(small_model(), small_data(), small_settings(), callbacks=[Stop()])
    numbers = {"max_steps": 2000, "learning_rate": 0.3, "evaluate_every": 2, "patience": 3}
    early = train(small_model(), small_data(), small_settings(**numbers), validation=small_data(20, 1))
    return (stopped.stopped, stopped.n_steps), (early.stopped, early.n_steps, early.best_step)


def fit_together():
    """Fit an estimator that nobody gave a seed."""
    model = CorrelatedVAE(2, hidden=(4,), max_steps=5, vertex_batch=8, edge_batch=8)
    ring = CorrelationGraph.from_edges([(k, (k + 1) % N) for k in range(N)], vertices=range(N))
    return model.fit(small_matrix(), graph=ring).embedding_


def hold_on_to_an_error():
    """Say of what led gradients together whether it still has the process group, while a step's error keeps it."""
    gc.collect()
    before = {id(thing) for thing in gc.get_objects() if isinstance(thing, DistributedDataParallel)}
    model, steps = small_model(), iter(range(3))
    own = model.terms

    def fail_at_last(*given, **named):
        if next(steps, None) is None:
            raise ArithmeticError("no more")
        return own(*given, **named)

    model.terms = fail_at_last
    with pytest.raises(ArithmeticError, match="no more") as kept:
        train(model, small_data(), small_settings())
    assert kept.value.__traceback__ is not None
    found = [thing for thing in gc.get_objects() if isinstance(thing, DistributedDataParallel)]
    return [hasattr(thing, "reducer") or hasattr(thing, "logger") for thing in found if id(thing) not in before]


def everything(folder):
    ranks = current_ranks()
    tensors = {"a": torch.arange(3.0).reshape(1, 3), "b": torch.tensor(True), "c": torch.tensor([], dtype=torch.int64)}
    return {
        "gradients": {name: follow_gradients(name) for name in VARIANTS},
        "sampled": sample_gradients(seed=1),
        "trained": train_some(30),
        "begun": train_some(10, folder, 10),
        "refusals": refusals(folder),
        "failures": fail_first(folder.parent),
        "stopped": stop_one(),
        "fitted": fit_together(),
        "held": hold_on_to_an_error(),
        "heard": hear(ranks, [ranks.index, "é", None]),
        "handed": hand_out(ranks, tensors if ranks.is_first else {}),
        "agreed": agree(ranks, {"total": float(ranks.index)}, asked=ranks.index == 1, failed=False),
    }


UNEVEN = ("ind, weighted edges", "perceptron, drawn pairs", "metric")  # what three ranks cannot share evenly


def gradients_alone():
    return {name: follow_gradients(name) for name in UNEVEN}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoint")


@pytest.fixture(scope="module")
def two(checkpoint):
    """What two ranks find; a start costs seconds, so there is one for all tests."""
    return run_ranks(2, everything, checkpoint)


@pytest.fixture(scope="module")
def three():
    return run_ranks(3, gradients_alone)


def assert_same_steps(found, expected):
    for (slopes, values), (true_slopes, true_values) in zip(found, expected, strict=True):
        assert values.keys() == true_values.keys()
        assert list(values.values()) == pytest.approx(list(true_values.values()), rel=1e-5)
        largest = max(np.abs(slope).max() for slope in true_slopes if slope is not None)
        for slope, true in zip(slopes, true_slopes, strict=True):
            assert (slope is None) == (true is None)
            if true is not None:
                np.testing.assert_allclose(slope, true, rtol=1e-4, atol=TOLERANCE * largest)


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_and_terms_are_those_of_one_rank(name, two, three):
    expected = follow_gradients(name)
    for rank in (*(found["gradients"] for found in two), *(three if name in UNEVEN else ())):
        assert_same_steps(rank[name], expected)


def test_the_mean_gradient_is_that_of_one_rank_with_other_draws(two):
    """With dropout and redraw ranks draw differently from one, but of the same distribution."""
    mean, variance = sample_gradients(seed=2, n_steps=500)
    found, spread = two[0]["sampled"]
    assert np.array_equal(found, two[1]["sampled"][0])
    deviations = (found - mean) / np.sqrt(variance + spread + 1e-12)
    assert np.abs(deviations).max() < 5
    assert np.mean(deviations**2) < 1.5


def assert_same_training(found, expected):
    (weights, history, result, _), (true_weights, true_history, true_result, _) = found, expected
    assert (result.stopped, result.n_steps, result.best_step) == (
        true_result.stopped,
        true_result.n_steps,
        true_result.best_step,
    )
    for name, tensor in true_weights.items():
        np.testing.assert_allclose(weights[name], tensor, rtol=1e-4, atol=1e-5, err_msg=name)
    assert history.keys() == true_history.keys()
    for name in true_history.keys() - {"seconds"}:
        assert history[name] == pytest.approx(true_history[name], rel=1e-4, abs=1e-5)


def test_an_error_that_is_kept_does_not_keep_the_process_group(two):
    """Its threads could wait for the interpreter's lock while the interpreter waits for them."""
    assert [results["held"] for results in two] == [[False], [False]]


def test_a_training_of_two_ranks_is_one_of_one_rank(two):
    expected = train_some(30)
    for found in two:
        assert_same_training(found["trained"], expected)
    first, second = (found["trained"] for found in two)
    assert all(np.array_equal(first[0][name], second[0][name]) for name in first[0])
    assert first[1] == second[1]  # also the seconds: there is one history
    assert (first[3], second[3]) == (list(range(1, 31)), [])  # callbacks are rank 0's


def test_a_run_goes_on_with_another_number_of_ranks(two, checkpoint):
    assert two[0]["begun"][2].n_steps == 10
    assert [place.name for place in checkpoint.iterdir()] == ["step-000000010"]
    assert train_some(20, checkpoint, 10)[3] == list(range(11, 21))
    ended = run_ranks(2, train_some, 30, checkpoint, 10)
    for found in ended:
        assert_same_training(found, train_some(30, None, 10))
    assert ended[0][3] == list(range(21, 31))


def test_what_one_rank_meets_is_told_to_all(two):
    first, second = (found["refusals"] for found in two)
    assert first == second
    assert "17" in first["broken"]
    assert "term is infinite or not a number (rows" in first["broken"]
    assert "of the validation data is infinite or not a number (rows 17)" in first["held out"]
    assert first["seeds"] == (
        "process 1 of 2 was given other seed than process 0; every process must make the same call, on the same data"
    )
    assert "was given other data than" in first["data"]
    for name in ("vertex", "edge", "pair"):
        assert f"{name}_batch=1 cannot be shared among 2 processes" in first[name]
    assert "this checkpoint belongs to another run" in first["another run"]


def test_what_the_first_rank_fails_by_alone_ends_all_of_them(two):
    first, second = (found["failures"] for found in two)
    last = small_settings().max_steps
    for moment in ("enter", 3, last, "exit"):
        assert first[moment] == ("TroubleError", f"at {moment}")
        assert second[moment] == ("RuntimeError", f"TroubleError: at {moment}")
    for name, words in (("save", "No space left on device"), ("clear", "Permission denied")):
        assert words in first[name][1]
        assert words in second[name][1]
    assert first["validate"] == second["validate"] == ("MemoryError", "no room")


def test_all_ranks_leave_at_one_step(two):
    for found in two:
        assert found["stopped"][0] == ("interrupted", 6)  # one was asked after step 5; all knew with the next
        assert found["stopped"][1] == two[0]["stopped"][1]
        assert found["stopped"][1][0] == "early"


def test_an_estimator_in_somebodys_own_group_is_one_model_on_all_ranks(two):
    assert np.array_equal(two[0]["fitted"], two[1]["fitted"])
    assert np.isfinite(two[0]["fitted"]).all()


def test_ranks_hear_each_other(two):
    for found in two:
        assert found["heard"] == [[0, "é", None], [1, "é", None]]
        assert (found["agreed"].values, found["agreed"].asked) == ({"total": 0.5}, True)
        assert not found["agreed"].failed
        assert found["handed"]["a"].equal(torch.arange(3.0).reshape(1, 3))
        assert found["handed"]["b"].equal(torch.tensor(True))
        assert found["handed"]["c"].shape == (0,)


def test_a_share_is_weighed_by_its_size():
    values = torch.tensor([1.0, 2.0, 4.0])
    parts = [
        weigh_share(Terms({"edge": Mean(v, 1 / len(v))}, {"edge": -1.0}), {"edge": 2 * len(v) / 3})
        for v in (values[:2], values[2:])
    ]
    assert float(sum(part.total for part in parts)) / 2 == pytest.approx(-7 / 3)


def test_one_rank_alone_exchanges_nothing():
    tensor = Parameter(torch.ones(2))
    assert hand_out(Ranks(), {"a": tensor})["a"] is tensor
    check_alike(Ranks(), {"anything": object()})


def test_only_errors_of_the_connection_are_a_lost_rank():
    with pytest.raises(LostRankError, match="closed by peer"), told_as_loss():
        raise RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer")
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught, told_as_loss():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    assert not isinstance(caught.value, LostRankError)
