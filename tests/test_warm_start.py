import numpy as np
import pytest
import torch

from corrvae import CorrelatedVAE, load
from corrvae.building import Architecture
from corrvae.errors import TrainingError
from corrvae.fitting import Seeds
from corrvae.warm_start import Past, go_on, start_anew
from support.pairs import QUICK, paired_rows

X = paired_rows().X
SMALL = Architecture(5, 2, hidden=(4,))
WARM = {**QUICK, "warm_start": True}


def test_new_networks_are_the_seeds():
    first, same, other = (start_anew(SMALL, Seeds.of(seed)) for seed in (0, 0, 1))
    weights = [start.model.encoder.first.weight for start in (first, same, other)]
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])
    assert first.past == Past(SMALL, Seeds.of(0).hold_out, 1)


def test_going_on_trains_a_copy():
    first = start_anew(SMALL, Seeds.of(0))
    second = go_on(first.model, first.past, SMALL, Seeds.of(0))
    for mine, theirs in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert mine.equal(theirs)
        assert mine.data_ptr() != theirs.data_ptr()
    assert second.past == Past(SMALL, first.seeds.hold_out, 2)


def test_every_fit_has_draws_of_its_own_and_all_hold_out_the_same_rows():
    start, drawn = start_anew(SMALL, Seeds.of(None)), []
    held = start.seeds.hold_out
    for _ in range(3):
        drawn.append(start.seeds.training)
        start = go_on(start.model, start.past, SMALL, Seeds.of(None))
        assert start.seeds.hold_out == held
    seeded = [go_on(start.model, Past(SMALL, 5, fits), SMALL, Seeds.of(0)).seeds.training for fits in (0, 1, 2)]
    assert len({*drawn, *seeded}) == 6
    assert seeded[0] == Seeds.of(0).training


def test_an_unfinished_fit_is_begun_again_with_the_same_draws():
    first = start_anew(SMALL, Seeds.of(0))
    again = go_on(first.model, first.past_after(unfinished=True), SMALL, Seeds.of(0))
    assert again.seeds == first.seeds
    assert again.past_after(unfinished=False) == first.past_after(unfinished=False)


def test_other_networks_are_refused():
    first = start_anew(SMALL, Seeds.of(0))
    with pytest.raises(ValueError, match="warm_start cannot go on: n_components, tau changed"):
        go_on(first.model, first.past, Architecture(5, 3, hidden=(4,), tau=0.5), Seeds.of(0))


# The estimator


def held_out(model):
    """The rows whose edges did not count in training."""
    return set(model.graph_.edges[model.weights_ == 0].ravel().tolist())


@pytest.mark.parametrize("random_state", [None, np.random.default_rng(0), 0])
def test_rows_held_out_stay_held_out(random_state, tmp_path):
    graph = paired_rows().graph
    model = CorrelatedVAE(**{**WARM, "random_state": random_state, "validation_fraction": 0.3}).fit(X, graph=graph)
    first = held_out(model)
    assert len(first) > 0
    assert held_out(model.fit(X, graph=graph)) == first
    model.save(tmp_path / "run")
    assert held_out(load(tmp_path / "run").fit(X, graph=graph)) == first


def test_a_second_fit_meets_other_batches(tmp_path):
    def watch(seen):
        return lambda rows, generator: seen.append(rows.tolist()) or X[rows]

    runs = [[], [], []]
    model = CorrelatedVAE(**{**WARM, "random_state": 0}).fit(X, redraw=watch(runs[0]))
    model.save(tmp_path / "run")
    model.fit(X, redraw=watch(runs[1]))
    load(tmp_path / "run").fit(X, redraw=watch(runs[2]))
    assert runs[0] != runs[1]
    assert runs[1] == runs[2]


def test_a_fit_that_fails_leaves_the_networks_alone():
    model = CorrelatedVAE(**WARM).fit(X)

    def stop(progress):
        raise ZeroDivisionError

    def broken(rows, generator):
        return np.full((len(rows), 5), np.inf)

    before = {name: tensor.clone() for name, tensor in model.model_.state_dict().items()}
    with pytest.raises(ZeroDivisionError):
        model.fit(X, callbacks=[stop])
    with pytest.raises(TrainingError):
        model.fit(X, redraw=broken)
    for name, tensor in model.model_.state_dict().items():
        assert torch.equal(tensor, before[name])
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


def test_a_warm_fit_is_taken_up_from_its_checkpoint(tmp_path):
    import signal

    def interrupt(progress):
        if progress.step == 7:
            signal.raise_signal(signal.SIGINT)

    whole, model = (CorrelatedVAE(**WARM).fit(X) for _ in range(2))
    whole.fit(X)
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(X, checkpoint=tmp_path / "state", callbacks=[interrupt])
    model.fit(X, checkpoint=tmp_path / "state")
    np.testing.assert_array_equal(model.embedding_, whole.embedding_)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_where_derivatives_are_off_it_learns_all_the_same(mode):
    expected = CorrelatedVAE(**WARM).fit(X).fit(X).embedding_
    with mode():
        before = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        model = CorrelatedVAE(**WARM).fit(X).fit(X)
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == before
    np.testing.assert_array_equal(model.embedding_, expected)
    assert not any(parameter.is_inference() for parameter in model.model_.parameters())
