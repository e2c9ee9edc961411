import math
import signal
import threading

import numpy as np
import pytest
import torch

from corrvae.errors import CorrvaeError, TrainingError
from corrvae.model import TrainingData
from corrvae.nn import FeatureTable
from corrvae.training import History, Progress, loop, train
from corrvae.training.data import exhaustive
from corrvae.training.distributed import Workers, lost_workers_as
from corrvae.training.loop import Run, _catch_interrupt, choose_device
from support.training import NETWORKS, N, same_weights, small_data, small_matrix, small_model, sparse_table


def held_out() -> TrainingData:
    return exhaustive(small_data(20, features=1))


def make_run(model=None, data=None, **changes) -> Run:
    options = {"max_steps": 30, "learning_rate": 1e-3, "warmup_steps": 0, "validation": None, "patience": None}
    return Run(model or small_model(), data or small_data(), **{**options, **changes}, identity="", workers=Workers())


def advance(run: Run, steps: int) -> list[Progress]:
    return [run.advance(threading.Event()) for _ in range(steps)]


def bad_rows(features: int = 0, row: int = 17) -> FeatureTable:
    X = small_matrix(features=features)
    X[row, 2] = np.inf
    return FeatureTable(X)


# ---- steps


@pytest.mark.parametrize(("as_sparse", "beta"), [(False, 1.0), (True, 0.2)])
@pytest.mark.parametrize("network", NETWORKS)
def test_steps_are_those_of_adam_on_the_same_draws(network, as_sparse, beta):
    """Against a loop with torch's plain Adam that minimises, and with the seeds of the draws written out."""
    data = small_data(table=sparse_table(small_matrix(), as_sparse=as_sparse), seed=5)
    model, twin = small_model(network, dropout=0.2).train(), small_model(network, dropout=0.2).train()
    run, adam = make_run(model, data, learning_rate=0.01, beta=beta), torch.optim.Adam(twin.parameters(), lr=0.01)
    for step, progress in enumerate(advance(run, 10)):
        noise = torch.Generator().manual_seed(int(np.random.SeedSequence((5, 3, step)).generate_state(1)[0]))
        terms = twin(twin.family.draw(data, step), noise)
        latent = (
            sum(terms.coefficients[name] * value for name, value in zip(terms.values, terms.estimates, strict=True))
            - terms.estimates[0]
        )
        loss = -terms.estimates[0] - beta * latent
        adam.zero_grad()
        loss.backward()
        adam.step()
        assert progress.total == pytest.approx(-loss.item(), rel=1e-4)
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("validated", [False, True])
def test_the_weights_kept_are_averages_of_the_last(validated):
    seen, model = [], small_model()

    class Watch:
        def start(self, run):
            self.run = run

        def __call__(self, progress):
            seen.append({name: tensor.double().clone() for name, tensor in self.run.model.state_dict().items()})

    options = {"validation": held_out(), "patience": None} if validated else {}
    result = train(
        model, small_data(), max_steps=40, learning_rate=0.01, average_steps=8, callbacks=[Watch()], **options
    )
    last = 40 if result.best_step is None else result.best_step
    for name, tensor in model.state_dict().items():
        average = seen[0][name]
        for step, weights in enumerate(seen[:last], 1):
            share = max(1 / 8, 1 / (1 + 0.1 * step))
            average = (1 - share) * average + share * weights[name]
        torch.testing.assert_close(tensor.double(), average, rtol=1e-4, atol=1e-5)
    assert not same_weights(model, small_model())


def test_the_same_seed_makes_the_same_model_and_another_does_not():
    def fit(seed):
        model = small_model("bilinear", dropout=0.2)
        train(model, small_data(seed=seed), max_steps=10)
        return model

    assert same_weights(fit(1), fit(1))
    assert not same_weights(fit(1), fit(2))


@pytest.mark.parametrize("network", [None, "perceptron"])
def test_training_improves_the_objective(network):
    model, data = small_model(network), small_data()
    history = train(model, data, max_steps=120, learning_rate=0.01, validation=exhaustive(data)).history
    assert history["validation_total"][-1] > history["validation_total"][0] + 0.2


def test_progress_and_the_rows_of_the_history():
    run = make_run(validation=held_out())
    seen = advance(run, 30)
    assert [progress.step for progress in seen] == list(range(1, 31))
    assert [progress.step for progress in seen if progress.evaluation is not None] == [7, 14, 21, 28, 30]
    assert seen[14].epoch == pytest.approx(15 / 7)  # seven batches of 8 in 60 rows
    assert [progress.stopped for progress in seen] == [None] * 29 + ["finished"]
    assert run.history["step"].tolist() == [7, 14, 21, 28, 30]
    totals = [progress.total for progress in seen]
    np.testing.assert_allclose(run.history["total"][:2], [np.mean(totals[:7]), np.mean(totals[7:14])])
    np.testing.assert_allclose(run.history["total"][-1], np.mean(totals[28:]))
    names = {"step", "epoch", "seconds", "reconstruction", "singleton", "edge", "total"}
    of_validation = {f"validation_{name}" for name in ("reconstruction", "singleton", "edge", "total")}
    assert set(run.history) == names | of_validation
    assert all(len(column) == 5 for column in run.history.values())


def test_there_are_at_most_two_hundred_evaluations():
    assert make_run(max_steps=10_000).evaluate_every == 50
    assert make_run(max_steps=100).evaluate_every == 7  # an epoch


def test_warm_up_scales_everything_but_the_reconstruction():
    run = make_run(warmup_steps=4, learning_rate=1e-12)  # the model hardly moves
    plain = make_run(learning_rate=1e-12)
    for step in range(6):
        (mine,), (theirs,) = advance(run, 1), advance(plain, 1)
        batch = run.model.family.draw(run.data, step)
        noise = torch.Generator().manual_seed(int(np.random.SeedSequence((0, 3, step)).generate_state(1)[0]))
        with torch.no_grad():
            numbers = run.model(batch, noise).numbers()
        rest = numbers["singleton"] + numbers["edge"]
        assert theirs.total == pytest.approx(numbers["reconstruction"] - rest, rel=1e-5)
        assert mine.total == pytest.approx(numbers["reconstruction"] - min(1.0, step / 4) * rest, rel=1e-5)


@pytest.mark.parametrize("tau", ["learned", "learned_per_dimension"])
def test_a_learned_tau_moves_and_is_recorded(tau):
    model = small_model(tau=tau)
    history = train(model, small_data(), max_steps=14, learning_rate=0.01).history
    assert history["tau"][0] != history["tau"][1]
    assert history["tau"][1] == pytest.approx(model.tau_values(3).mean())
    assert "tau" not in train(small_model(), small_data(), max_steps=7).history


def test_history_is_a_mapping_of_columns():
    history = History()
    history.append({"step": 5, "total": -2.0})
    history.append({"step": 10, "total": -1.5})
    assert (list(history), history.n_rows) == (["step", "total"], 2)
    np.testing.assert_array_equal(history["total"], [-2.0, -1.5])
    assert repr(history) == "History(2 evaluations: step, total)"


# ---- the end of a run


def test_early_stopping_restores_the_best_weights():
    """A large step size wrecks the model, so an early evaluation is the best."""
    model, kept = small_model(), {}

    def keep(progress):
        kept[progress.step] = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    data = small_data(batch_size=30)  # an epoch, and so an evaluation, every two steps
    options = {"max_steps": 400, "learning_rate": 0.3, "patience": 3, "validation": held_out()}
    result = train(model, data, **options, callbacks=[keep])
    assert result.stopped == "early"
    assert result.step < 400
    assert result.best_step == result.history["step"][result.history["validation_reconstruction"].argmax()]
    assert result.step == result.best_step + 3 * 2
    for name, tensor in model.state_dict().items():
        assert tensor.equal(kept[result.best_step][name])


def test_the_last_part_goes_on_from_the_best_weights_with_all_rows():
    model, data, everything, seen = small_model(), small_data(batch_size=30), small_data(batch_size=20), []
    options = {"max_steps": 40, "learning_rate": 0.3, "patience": 3, "validation": held_out()}
    train(first := small_model(), data, **options)
    drawn = []
    draw = model.family.draw
    model.family.draw = lambda given, step: drawn.append((given, step)) or draw(given, step)
    result = train(
        model,
        data,
        **options,
        everything=everything,
        callbacks=[lambda progress: seen.append({k: v.clone() for k, v in model.state_dict().items()})],
    )
    first_steps = [step for given, step in drawn if given is data]
    last_steps = [step for given, step in drawn if given is everything]
    assert first_steps[-1] + 1 == last_steps[0]
    assert len(last_steps) == -(-result.best_step // 2)
    assert result.stopped == "finished"
    assert result.step == last_steps[-1] + 1
    for name, tensor in seen[first_steps[-1]].items():  # after the step that ended the first part
        assert tensor.equal(first.state_dict()[name])


def test_early_stopping_waits_for_the_warm_up_to_end(monkeypatch):
    values = iter([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0])
    monkeypatch.setattr(loop, "evaluate", lambda *_, **__: {"reconstruction": next(values)})
    options = {"max_steps": 30, "validation": held_out(), "patience": 2, "warmup_steps": 5}
    result = train(small_model(), small_data(batch_size=N), **options)
    assert (result.step, result.stopped, result.best_step) == (7, "early", 5)


def test_ctrl_c_finishes_the_step_and_returns_a_usable_model():
    def stop(progress):
        if progress.step == 10:
            signal.raise_signal(signal.SIGINT)

    seen, before = [], signal.getsignal(signal.SIGINT)
    model, twin = small_model(), small_model()
    result = train(model, small_data(), max_steps=30, callbacks=[stop, seen.append])
    assert (result.stopped, result.step) == ("interrupted", 11)  # the one that had begun
    assert seen[-1].stopped == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before
    train(twin, small_data(), max_steps=11)
    assert same_weights(model, twin)


def test_a_second_ctrl_c_interrupts_at_once():
    def stop(progress):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(small_model(), small_data(), max_steps=30, callbacks=[stop])
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _catch_interrupt() as asked:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            signal.raise_signal(signal.SIGINT)
            assert not asked.is_set()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_signals_alone():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work():
        result = train(
            small_model(), small_data(), max_steps=2, callbacks=[lambda _: seen.append(signal.getsignal(signal.SIGINT))]
        )
        seen.append(result.stopped)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before, before, "finished"]


# ---- numbers that are not finite


def test_a_term_that_breaks_names_the_step_the_term_and_the_rows():
    model, kept = small_model(), []
    run = make_run(model, small_data(table=bad_rows()))

    def step_until_it_breaks():
        while True:
            kept.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
            advance(run, 1)

    with pytest.raises(TrainingError, match="Check these rows") as caught:
        step_until_it_breaks()
    error = caught.value
    assert error.step == run.step < 30
    assert 17 in error.rows
    assert error.term.startswith("the ")
    assert error.term.endswith(" term")
    for name, tensor in model.state_dict().items():  # the model is what it was before that step
        assert tensor.equal(kept[-1][name])


def test_a_weight_that_breaks_is_named():
    run = make_run()
    advance(run, 1)
    with torch.no_grad():
        run.model.encoder.first.weight[0, 0] = math.nan
    with pytest.raises(TrainingError, match=r"the weight encoder\.first\.weight") as caught:
        advance(run, 1)
    assert (caught.value.step, caught.value.rows) == (1, ())


def test_what_the_last_step_broke_is_found_at_the_end():
    model = small_model()

    def spoil(progress):
        if progress.step == 5:
            with torch.no_grad():
                next(model.decoder.parameters())[0] = torch.nan

    with pytest.raises(TrainingError, match=r"the weight decoder.* after 5 steps"):
        train(model, small_data(), max_steps=5, callbacks=[spoil])


def test_validation_that_breaks_stops_training():
    validation = exhaustive(small_data(features=1, table=bad_rows(1)))
    with pytest.raises(TrainingError, match="the reconstruction term of the validation data is infinite") as caught:
        train(small_model(), small_data(), max_steps=30, validation=validation)
    assert (caught.value.rows, caught.value.step) == ((17,), 7)


# ---- callbacks


class CrashError(Exception):
    pass


def crash(progress):
    raise CrashError


def test_callbacks_are_entered_and_left_whatever_happens():
    events = []

    class Watcher:
        def __enter__(self):
            events.append("enter")

        def __exit__(self, *_):
            events.append("exit")

        def __call__(self, progress):
            events.append(progress.step)
            if progress.step == 2:
                raise CrashError

    model = small_model()
    with pytest.raises(CrashError):
        train(model, small_data(), max_steps=30, callbacks=[Watcher()])
    assert events == ["enter", 1, 2, "exit"]
    assert not model.training


# ---- surroundings


def test_global_state_is_left_alone():
    torch_state, threads, dtype = torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
    numpy_state = np.random.get_state()  # noqa: NPY002
    train(small_model("perceptron", dropout=0.1), small_data(), max_steps=10, validation=held_out())
    assert torch.get_rng_state().equal(torch_state)
    assert (torch.get_num_threads(), torch.get_default_dtype()) == (threads, dtype)
    assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), numpy_state, strict=True))  # noqa: NPY002


def test_a_model_can_be_trained_where_gradients_are_off():
    with torch.inference_mode():
        model = small_model()
        train(model, small_data(), max_steps=2)
    assert not same_weights(model, small_model())


@pytest.mark.parametrize(("limit", "n_threads"), [(10**6, 1), (10, 2)])
def test_small_steps_use_one_thread(limit, n_threads, monkeypatch):
    monkeypatch.setattr(loop, "_SMALL_STEP", limit)
    seen, before = set(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        train(small_model(), small_data(), max_steps=3, callbacks=[lambda _: seen.add(torch.get_num_threads())])
        assert seen == {n_threads}
        with pytest.raises(CrashError):
            train(small_model(), small_data(), max_steps=3, callbacks=[crash])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_what_cannot_be_trained_raises():
    with pytest.raises(ValueError, match="no rows to train on"):
        train(small_model(), small_data(0, edges=None, weights=None), max_steps=1)
    with pytest.raises(ValueError, match="batch_size of at least 2"):
        train(small_model("perceptron"), small_data(batch_size=1), max_steps=1)
    train(small_model(), small_data(batch_size=1), max_steps=1)


def test_devices(monkeypatch):
    assert choose_device("cpu") == torch.device("cpu")
    asked = []
    monkeypatch.setattr(torch, "zeros", lambda *_, device: asked.append(device.type) or torch.ones(1))
    for cuda, mps, expected in [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]:
        monkeypatch.setattr(torch.cuda, "is_available", lambda cuda=cuda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda mps=mps: mps)
        assert choose_device("auto").type == expected == asked[-1]


@pytest.mark.parametrize("name", ["foo", "meta", "cuda:123"])
def test_a_device_that_cannot_be_used_is_named(name):
    with pytest.raises(ValueError, match=rf"device='{name}' cannot be used here .* \"cpu\""):
        choose_device(name)


def test_only_errors_of_the_connection_are_a_lost_worker(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(CorrvaeError, match="closed by peer"), lost_workers_as(CorrvaeError):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer\nmore")
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), lost_workers_as(CorrvaeError):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
