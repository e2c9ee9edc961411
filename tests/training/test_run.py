import math

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from corrvae import objectives
from corrvae.errors import FolderError, TrainingError
from corrvae.nn import FeatureTable, LearnedTau
from corrvae.persistence import read_folder, write_folder
from corrvae.training.data import TrainingData
from corrvae.training.evaluation import Evaluator
from corrvae.training.run import Run
from support.training import D, N, small_data, small_matrix, small_model, small_settings


def make(model=None, data=None, validation=None, **changes) -> Run:
    return Run(model or small_model(), data or small_data(), small_settings(**changes), validation)


def sparse_data() -> TrainingData:
    return small_data(table=FeatureTable(sparse.csr_array(small_matrix()), density_limit=1.0))


@pytest.mark.parametrize("data", [small_data(), sparse_data()])
@pytest.mark.parametrize("pair", [None, "perceptron"])
@pytest.mark.parametrize("turned", [False, True])
def test_steps_are_those_of_adam_on_the_same_draws(pair, data, turned):
    """Against a loop with torch's plain Adam that minimises."""
    model, twin = small_model(pair), small_model(pair)
    if turned:  # a weight that lies in memory column after column
        first = model.encoder.first
        first.weight = nn.Parameter(first.weight.detach().t().contiguous().t())
    run, draws = make(model, data, gamma=0.5, learning_rate=0.01), make(small_model(pair), data, gamma=0.5)
    adam = torch.optim.Adam(twin.parameters(), lr=0.01, fused=False, foreach=False)
    for _ in range(10):
        progress = run.advance()
        batch = draws.batches.next().batch
        loss = -twin.terms(batch, small_data().population, gamma=0.5, generator=draws.generator).total
        adam.zero_grad()
        loss.backward()
        adam.step()
        assert progress.total == pytest.approx(-loss.item(), rel=1e-4)
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_graph", [False, True])
def test_steps_of_sparse_counts_do_without_torchs_engine(monkeypatch, is_graph):
    monkeypatch.setattr(objectives, "_Slopes", None)
    data = sparse_data() if is_graph else TrainingData(sparse_data().table)
    run = make(data=data)
    before = [parameter.detach().clone() for parameter in run.model.parameters()]
    run.advance()
    assert not any(one.equal(other) for one, other in zip(before, run.model.parameters(), strict=True))


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_somebody_who_waits_for_gradients_gets_them(register):
    model, seen = small_model(), []
    parameter = next(model.parameters())
    getattr(parameter, register)(lambda _: seen.append(True))
    run = make(model, sparse_data())
    for _ in range(3):
        run.advance()
    assert len(seen) == 3


def test_progress_and_the_historys_rows():
    run = make(validation=small_data(20, 1))
    seen = [run.advance() for _ in range(30)]
    assert [progress.step for progress in seen] == list(range(1, 31))
    assert [progress.step for progress in seen if progress.evaluation is not None] == [7, 14, 21, 28, 30]
    assert seen[14].epoch == pytest.approx(15 * 8 / N)
    assert run.stopped == "finished"
    assert run.history["step"].tolist() == [7, 14, 21, 28, 30]
    totals = [progress.total for progress in seen]
    np.testing.assert_allclose(run.history["total"][:2], [np.mean(totals[:7]), np.mean(totals[7:14])])
    np.testing.assert_allclose(run.history["total"][-1], np.mean(totals[28:]))
    for name in ("reconstruction", "singleton", "edge", "non_edge", "validation_total", "validation_edge", "seconds"):
        assert len(run.history[name]) == 5
    assert "tau" not in run.history


def test_warm_up_scales_everything_but_the_reconstruction(monkeypatch):
    model, seen = small_model(), []
    terms = model.terms
    monkeypatch.setattr(model, "terms", lambda *parts, **given: seen.append(given["warmup"]) or terms(*parts, **given))
    run = make(model, warmup_steps=4)
    for _ in range(6):
        run.advance()
    assert seen == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]


@pytest.mark.parametrize("n_components", [None, 3])
def test_a_learned_tau_moves_and_is_recorded(n_components):
    model = small_model(tau=LearnedTau(0.9, n_components=n_components))
    run = make(model, learning_rate=0.01)
    for _ in range(14):
        run.advance()
    taus = run.history["tau"]
    assert taus[0] != taus[1]
    assert taus[1] == pytest.approx(float(model.tau().detach().mean()))


def test_early_stopping_waits_for_the_warm_up_to_end(monkeypatch):
    run = make(validation=small_data(20, 1), evaluate_every=1, patience=2, warmup_steps=5)
    values = iter([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0])
    monkeypatch.setattr(run, "evaluator", lambda model: {"total": next(values)})
    while run.stopped is None:
        run.advance()
    assert run.step == 7
    assert run.stopped == "early"
    assert run.best.step == 1


def bad_rows(data_seed: int = 0, row: int = 17) -> np.ndarray:
    X = small_matrix(seed=data_seed)
    X[row, 2] = np.inf
    return X


def advance(run: Run, steps: int, kept: list) -> None:
    """Make steps and checkpoints; keep the weights from before each step."""
    for _ in range(steps):
        kept.append({name: tensor.clone() for name, tensor in run.model.state_dict().items()})
        run.advance()
        run.save_if_due()


def test_a_term_that_breaks_names_the_step_the_term_and_the_rows(tmp_path):
    model = small_model()
    run = make(model, small_data(table=FeatureTable(bad_rows())), checkpoint=tmp_path, checkpoint_steps=1)
    kept = []
    with pytest.raises(TrainingError) as caught:
        advance(run, 30, kept)
    error = caught.value
    assert error.step == run.step < 30
    assert 17 in error.rows
    assert "term" in error.term
    if run.step:
        assert error.checkpoint == tmp_path / f"step-{run.step:09d}"
    for name, tensor in model.state_dict().items():  # the model is what it was before that step
        assert tensor.equal(kept[-1][name])


def test_a_weight_that_breaks_is_blamed_on_the_step_before(tmp_path):
    run = make(checkpoint=tmp_path)
    run.advance()
    rows = tuple(run._vertices.tolist())
    with torch.no_grad():
        run.model.encoder.first.weight[0, 0] = math.nan
    for act in (run.advance, lambda: setattr(run, "stopped", "finished") or run.save_if_due()):
        with pytest.raises(TrainingError, match=r"weight encoder\.first\.weight") as caught:
            act()
        assert (caught.value.step, caught.value.rows, caught.value.checkpoint) == (1, rows, None)
    assert not any(tmp_path.iterdir())  # a broken model is never saved


def test_validation_keeps_the_proportions_of_training():
    few = small_data(20, 1, edges=np.array([[0, 1]]), weights=np.ones(1))
    run, own = make(validation=few), make(validation=few)
    own.evaluator = Evaluator(few, 1.0, np.random.SeedSequence(0))
    assert run.evaluator(run.model)["edge"] == pytest.approx(20 * 0.75 * own.evaluator(own.model)["edge"], rel=1e-4)


def test_what_the_last_step_broke_is_found_at_the_end():
    run = make(max_steps=1)
    run.advance()
    with torch.no_grad():
        next(run.model.decoder.parameters())[0] = math.nan
    with pytest.raises(TrainingError, match="the weight decoder") as caught:
        run.finish()
    assert caught.value.rows == tuple(run._vertices.tolist())


def test_the_best_weights_are_what_counts_at_the_end():
    run = make(max_steps=8, validation=small_data(20, 1))
    for _ in range(7):
        run.advance()
    best = run.best.weights["encoder.first.weight"].clone()
    with torch.no_grad():
        run.model.encoder.first.weight[0, 0] = math.nan
    run.finish()
    assert run.model.encoder.first.weight.equal(best)


def test_validation_that_breaks_stops_training():
    run = make(validation=small_data(N, 1, table=FeatureTable(bad_rows(1))))
    with pytest.raises(TrainingError, match="term of the validation data is") as caught:
        advance(run, 7, [])
    assert (caught.value.rows, caught.value.held_out) == ((17,), True)


@pytest.mark.parametrize("missing", ["noise", "model.encoder.first.bias", "optimizer.0.mean"])
def test_a_checkpoint_that_lacks_something_is_refused(tmp_path, missing):
    run = make(checkpoint=tmp_path, checkpoint_steps=1)
    run.advance()
    run.save_if_due()
    place = tmp_path / "step-000000001"
    found = read_folder(place, kind="corrvae checkpoint")
    del found.tensors[missing]
    write_folder(place, kind="corrvae checkpoint", document=found.document, tensors=found.tensors)
    with pytest.raises(FolderError, match="damaged") as caught:
        make(checkpoint=tmp_path)
    assert caught.value.path == place


def test_nothing_of_size_n_happens_in_a_step():
    """The features of the rows that a step draws, and of no others, are asked for."""
    asked = []

    def redraw(rows, _):
        asked.append(len(rows))
        return np.ones((len(rows), D))

    data = small_data(5000, redraw=redraw)
    run = make(data=data)
    for _ in range(5):
        run.advance()
    assert max(asked) <= 8 + 2 * 10
