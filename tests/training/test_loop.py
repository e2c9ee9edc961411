import signal

import numpy as np
import pytest
import torch
from scipy import sparse

from corrvae.errors import FolderError, TrainingError
from corrvae.nn import FeatureTable, LearnedTau
from corrvae.nn.kernels import choice
from corrvae.training import train
from support.training import D, N, small_data, small_matrix, small_model, small_settings
from support.unchecked import unchecked


def same_weights(a, b) -> bool:
    return all(x.equal(y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def same_history(a, b) -> bool:
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a if name != "seconds")


def redraw(rows, generator):
    counts = generator.poisson(0.5, (len(rows), D)).astype(np.float32)
    counts[:, 0] += 1
    return counts


SPARSE = FeatureTable(sparse.csr_array(small_matrix()), density_limit=1.0)
VARIANTS = {
    "vae": (None, {}, {"edges": None, "weights": None}, {}),
    "independent": (None, {"dropout": 0.3}, {}, {"edge_sampling": "weighted"}),
    "counts": (None, {"dropout": 0.3}, {"table": SPARSE}, {}),
    "perceptron": ("perceptron", {"tau": "learned"}, {"redraw": redraw}, {"warmup_steps": 12}),
    "bilinear": ("bilinear", {}, {"sample_weights": np.linspace(0, 2, N)}, {"pair_batch": 6, "gamma": (0.5, 2.0)}),
    "metric": ("metric", {"dropout": 0.2}, {}, {"pair_batch": 6}),
}


def variant(name: str):
    pair, of_model, of_data, of_settings = VARIANTS[name]
    tau = LearnedTau(0.9) if of_model.get("tau") == "learned" else 0.9
    return small_model(pair, **{**of_model, "tau": tau}), small_data(**of_data), of_settings


class CrashError(Exception):
    pass


@pytest.mark.parametrize("name", list(VARIANTS))
@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize("kernels", [False, True])
def test_an_interrupted_run_ends_as_an_uninterrupted_one(monkeypatch, tmp_path, name, validated, kernels):
    monkeypatch.setattr(choice, "_ENOUGH_ROWS", N if kernels else N + 1)
    validation = small_data(20, 1, edges=variant(name)[1].edges[:19] if name != "vae" else None, weights=None)
    validation = validation if validated else None
    whole, data, changes = variant(name)
    expected = train(whole, data, small_settings(**changes), validation=validation)
    settings = small_settings(**changes, checkpoint=tmp_path, checkpoint_steps=9)

    def disturb(progress):
        if progress.step in (4, 11):  # Ctrl-C between checkpoints, and at a step that is not evaluated
            signal.raise_signal(signal.SIGINT)
        if progress.step == 25 and not crashed:  # long after the last checkpoint
            crashed.append(True)
            raise CrashError

    crashed, stops = [], []
    while not stops or stops[-1] != "finished":
        model = variant(name)[0]
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()  # where the model starts does not matter any more, once there is a checkpoint
        if not stops:
            model = variant(name)[0]
        try:
            result = train(model, data, settings, validation=validation, callbacks=[disturb])
            stops.append(result.stopped)
        except CrashError:
            stops.append("crash")
    assert stops == ["interrupted", "interrupted", "crash", "finished"]
    assert same_weights(model, whole)
    assert same_history(result.history, expected.history)
    assert (result.n_steps, result.best_step) == (expected.n_steps, expected.best_step)


def test_the_same_seed_gives_the_same_model_and_another_does_not():
    def fit(seed):
        model = small_model("bilinear", dropout=0.2)
        train(model, small_data(), small_settings(seed=seed))
        return model

    assert same_weights(fit(1), fit(1))
    assert not same_weights(fit(1), fit(2))


def test_training_helps():
    model = small_model("perceptron")
    settings = small_settings(max_steps=150, evaluate_every=30, learning_rate=0.01)
    history = train(model, small_data(), settings, validation=small_data()).history
    assert history["validation_total"][-1] > history["validation_total"][0] + 0.2


def test_ctrl_c_returns_a_usable_model_and_saves(tmp_path):
    def stop(progress):
        if progress.step == 10:
            signal.raise_signal(signal.SIGINT)

    model = small_model()
    before = signal.getsignal(signal.SIGINT)
    result = train(model, small_data(), small_settings(checkpoint=tmp_path), callbacks=[stop])
    assert (result.stopped, result.n_steps) == ("interrupted", 10)
    assert [place.name for place in tmp_path.iterdir()] == ["step-000000010"]
    assert all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters())
    assert signal.getsignal(signal.SIGINT) is before
    without = train(small_model(), small_data(), small_settings(), callbacks=[stop])
    assert without.stopped == "interrupted"


@pytest.mark.parametrize(("step", "told"), [(2, 0), (3, 1), (None, 0)])
def test_ctrl_c_at_the_last_step_is_told_to_who_wants_to_know(step, told):
    class Curious:
        told = 0

        def __call__(self, progress):
            if progress.step == step:
                signal.raise_signal(signal.SIGINT)

        def asked_late(self):
            self.told += 1

    result = train(small_model(), small_data(), small_settings(max_steps=3), callbacks=[curious := Curious(), print])
    assert result.stopped == ("interrupted" if step == 2 else "finished")
    assert curious.told == told


def test_early_stopping_restores_the_best_weights():
    """A large step size wrecks the model, so an early evaluation is the best."""
    settings = small_settings(max_steps=2000, learning_rate=0.3, evaluate_every=2, patience=3)
    model, kept = small_model(), {}

    def keep(progress):
        kept[progress.step] = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    result = train(model, small_data(), settings, validation=small_data(20, 1), callbacks=[keep])
    assert result.stopped == "early"
    assert result.n_steps < 2000
    scores = result.history["validation_total"]
    assert result.best_step == result.history["step"][scores.argmax()]
    assert result.n_steps == result.best_step + 3 * 2
    for name, tensor in model.state_dict().items():
        assert tensor.equal(kept[result.best_step][name])


def test_a_finished_run_is_not_run_again_but_may_be_lengthened(tmp_path):
    settings = small_settings(max_steps=14, checkpoint=tmp_path)
    first, second, longer, whole = (small_model() for _ in range(4))
    train(first, small_data(), settings)
    again = train(second, small_data(), settings, callbacks=[lambda _: pytest.fail("made a step")])
    assert (again.stopped, again.n_steps, again.history.n_rows) == ("finished", 14, 2)
    assert same_weights(first, second)
    train(longer, small_data(), small_settings(max_steps=21, checkpoint=tmp_path))
    train(whole, small_data(), small_settings(max_steps=21))
    assert same_weights(longer, whole)


def test_a_run_that_stopped_early_stays_stopped(tmp_path):
    numbers = {"max_steps": 2000, "learning_rate": 0.3, "evaluate_every": 2, "patience": 3, "checkpoint": tmp_path}
    first, second = small_model(), small_model()
    done = train(first, small_data(), small_settings(**numbers), validation=small_data(20, 1))
    again = train(second, small_data(), small_settings(**numbers), validation=small_data(20, 1))
    assert (again.stopped, again.n_steps, again.best_step) == ("early", done.n_steps, done.best_step)
    assert same_weights(first, second)


def test_beginning_anew(tmp_path):
    train(small_model(), small_data(), small_settings(seed=1, checkpoint=tmp_path))
    with pytest.raises(FolderError, match="its seed is 1"):
        train(small_model(), small_data(), small_settings(seed=2, checkpoint=tmp_path))
    result = train(small_model(), small_data(), small_settings(seed=2, max_steps=5, checkpoint=tmp_path, resume=False))
    assert result.n_steps == 5
    assert [place.name for place in tmp_path.iterdir()] == ["step-000000005"]


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
    model.eval()
    with pytest.raises(CrashError):
        train(model, small_data(), small_settings(), callbacks=[Watcher()])
    assert events == ["enter", 1, 2, "exit"]
    assert not model.training


def test_a_last_step_that_breaks_the_weights_is_found():
    model = small_model()

    def spoil(progress):
        if progress.step == 5:
            with torch.no_grad():
                next(model.decoder.parameters())[0] = torch.nan

    with pytest.raises(TrainingError, match="after 5 steps the weight decoder"):
        train(model, small_data(), small_settings(max_steps=5), callbacks=[spoil])


def test_callbacks_that_cannot_be_called_are_refused_before_the_first_step():
    with unchecked(), pytest.raises(TypeError, match="callbacks must be a list of functions"):
        train(small_model(), small_data(), small_settings(), callbacks=print)


def test_global_state_is_left_alone():
    torch_state, threads, dtype = torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
    numpy_state = np.random.get_state()  # noqa: NPY002
    train(small_model("perceptron", dropout=0.1), small_data(), small_settings(), validation=small_data(20, 1))
    assert torch.get_rng_state().equal(torch_state)
    assert (torch.get_num_threads(), torch.get_default_dtype()) == (threads, dtype)
    assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), numpy_state, strict=True))  # noqa: NPY002


@pytest.mark.parametrize(("pair", "limit", "n_threads"), [(None, 10**6, 1), ("bilinear", 10**6, 1), (None, 10, 2)])
def test_small_steps_keep_to_one_thread(pair, limit, n_threads, monkeypatch):
    monkeypatch.setattr("corrvae.threads._SMALL_STEP", limit)
    seen, before = set(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        train(
            small_model(pair), small_data(), small_settings(), callbacks=[lambda _: seen.add(torch.get_num_threads())]
        )
        assert seen == {n_threads}
        with pytest.raises(CrashError):
            train(small_model(pair), small_data(), small_settings(), callbacks=[crash])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def crash(progress):
    raise CrashError


def test_what_cannot_be_trained_is_said():
    nothing = small_data(0, edges=None, weights=None)
    with pytest.raises(ValueError, match="no rows to train on"):
        train(small_model(), nothing, small_settings())
    with pytest.raises(ValueError, match="no rows to validate on"):
        train(small_model(), small_data(), small_settings(), validation=nothing)
    with pytest.raises(ValueError, match="vertex_batch must be at least 2"):
        train(small_model("perceptron"), small_data(), small_settings(vertex_batch=1))
    with pytest.raises(ValueError, match="patience"):
        train(small_model(), small_data(), small_settings(patience=2))
    train(small_model(), small_data(), small_settings(vertex_batch=1))
