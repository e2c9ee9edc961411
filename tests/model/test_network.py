import numpy as np
import pytest
import torch

from corrvae.model import LearnedTau, build_model, network
from corrvae.model.families import Independent, Pairwise
from corrvae.model.network import evaluation_mode
from corrvae.nn import DenseRows, FeatureTable
from corrvae.nn.likelihoods.bernoulli import Bernoulli
from corrvae.nn.likelihoods.poisson import Poisson
from support.training import NETWORKS, D, N, given_noise, small_data, small_matrix, small_model, sparse_table


def sizes(module):
    return [tuple(parameter.shape) for parameter in module.parameters()]


def test_the_papers_networks_are_the_default():
    model = build_model(7, 5, family=Pairwise())
    assert sizes(model.encoder) == [(7, 300), (300,), (10, 300), (10,)]
    assert sizes(model.decoder) == [(300, 5), (300,), (7, 300), (7,)]
    assert model.family.pair_network.weight.shape == (7, 2000)
    assert model.tau == 0.99
    assert not model.training


def test_options_reach_the_networks():
    model = build_model(7, 5, family=Independent(), hidden=(9, 8), likelihood="bernoulli", min_stddev=0.25)
    assert [shape for shape in sizes(model.decoder) if len(shape) == 2] == [(8, 5), (9, 8), (7, 9)]
    assert isinstance(model.likelihood, Bernoulli)
    assert (model.encoder(DenseRows(-1e3 * torch.rand(4, 7))).stddev >= 0.25).all()
    own = build_model(7, 5, family=Independent(), likelihood=Poisson, normalize="l2", dropout=0.3)
    assert isinstance(own.likelihood, Poisson)
    assert (own.inputs.normalize, own.inputs.dropout) == ("l2", 0.3)


def test_tau_is_fixed_learned_or_learned_in_each_dimension():
    assert small_model(tau=-0.5).tau_values(3).tolist() == [-0.5] * 3
    assert small_model(tau="learned").tau().shape == ()
    model = small_model(tau="learned_per_dimension")
    with torch.no_grad():
        model.tau.raw[1] = 0.0
    np.testing.assert_allclose(model.tau_values(3), [0.99, 0.0, 0.99], atol=1e-6)
    assert "tau.raw" in model.state_dict()
    with pytest.raises(ValueError, match="tau"):
        small_model(tau=1.0)


def test_weights_come_from_the_seed_alone_and_torch_is_left_as_it_was():
    expected, other = small_model("perceptron", seed=1).state_dict(), small_model("perceptron", seed=2).state_dict()
    assert not any(torch.equal(expected[name], other[name]) for name in expected)
    before = torch.get_rng_state()
    for default in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(default)
        try:
            found = small_model("perceptron", seed=1).state_dict()
            assert torch.get_default_dtype() == default
        finally:
            torch.set_default_dtype(torch.float32)
        assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_samples_are_means_plus_noise_and_targets_the_drawn_rows(as_sparse):
    model, noise = small_model(normalize="l2", tau=0.9), torch.randn(8, 3)
    batch = small_data(table=sparse_table(small_matrix(), as_sparse=as_sparse)).draw(0)
    for part in (batch, batch.share(1, 2)):
        with torch.no_grad(), given_noise(noise):
            found = model.autoencode(part, None)
        features = torch.from_numpy(small_matrix())[batch.vertices]
        torch.testing.assert_close(found.rows.dense(), features / features.norm(dim=1, keepdim=True))
        mean, stddev = model.encode(FeatureTable(features.numpy()))
        torch.testing.assert_close(found.marginals.mean, torch.from_numpy(mean), rtol=1e-5, atol=1e-6)
        z = (torch.from_numpy(mean)[:8] + torch.from_numpy(stddev)[:8] * noise)[part.drawn]
        # the likelihood sees the features as they are, not as the encoder reads them
        log_prob = (features[:8][part.drawn] * model.decoder(z).log_softmax(1)).sum(1)
        torch.testing.assert_close(found.terms.values["reconstruction"], log_prob.detach(), rtol=1e-4, atol=1e-5)
        kl = 0.5 * (mean**2 + stddev**2 - 1 - 2 * np.log(stddev)).sum(1)[:8][part.drawn]
        np.testing.assert_allclose(found.kl, kl, rtol=1e-4)


@pytest.mark.parametrize("options", [{"dropout": 0.5}, {"network": "perceptron"}, {"network": "bilinear"}])
def test_noise_and_dropout_come_from_the_generator_alone(options):
    network = options.pop("network", None)
    model = small_model(network, **(options if network is None else {"dropout": 0.1})).train()
    batch, before = model.family.draw(small_data(), 0), torch.get_rng_state()
    totals = [model(batch, torch.Generator().manual_seed(s)).numbers() for s in (1, 1, 2)]
    assert torch.get_rng_state().equal(before)
    assert totals[0] == totals[1] != totals[2]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("tau", ["learned", "learned_per_dimension"])
def test_a_learned_tau_receives_a_gradient(network, tau):
    model, fixed = small_model(network, tau=tau), small_model(network, tau=0.99)
    batch = model.family.draw(small_data(), 0)
    found = model(batch, torch.Generator().manual_seed(0))
    found.total().backward()
    assert isinstance(model.tau, LearnedTau)
    assert bool((model.tau.raw.grad != 0).all())
    given = fixed(batch, torch.Generator().manual_seed(0))
    assert found.numbers()["edge"] == pytest.approx(given.numbers()["edge"], rel=1e-4)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_pieces_make_the_whole(monkeypatch, as_sparse):
    model = small_model(dropout=0.5, normalize="log1p").train()
    table = sparse_table(small_matrix(), as_sparse=as_sparse)
    mean, stddev = model.encode(table)
    decoded = model.decode(mean, np.arange(N, dtype=np.float64), model.likelihood.mean)
    assert model.training
    monkeypatch.setattr(network, "_ROWS", 7)
    for whole, pieces in zip((mean, stddev), model.encode(table), strict=True):
        np.testing.assert_allclose(pieces, whole, rtol=1e-5, atol=1e-6)
    again = model.decode(mean, np.arange(N, dtype=np.float64), model.likelihood.mean)
    np.testing.assert_allclose(again, decoded, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(decoded.sum(1), np.arange(N), rtol=1e-5)
    empty = model.encode(FeatureTable(np.ones((0, D))))
    assert [part.shape for part in empty] == [(0, 3), (0, 3)]


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "poisson", "negative_binomial", "multinomial"])
def test_draws_have_the_expected_mean(likelihood):
    model = small_model(likelihood=likelihood)
    z, totals = np.repeat(np.random.default_rng(1).normal(size=(2, 3)), 3000, axis=0), np.full(6000, 7.0)
    generator = np.random.default_rng(2)
    drawn = model.decode(z, totals, lambda outputs, given: model.likelihood.sample(outputs, generator, given))
    expected = model.decode(z, totals, model.likelihood.mean)
    for half in (slice(None, 3000), slice(3000, None)):
        np.testing.assert_allclose(drawn[half].mean(0), expected[half][0], atol=5 * drawn.std() / np.sqrt(3000))
    if likelihood == "multinomial":
        assert (drawn.sum(1) == 7).all()


@pytest.mark.parametrize("training", [False, True])
def test_evaluation_mode_ends_where_it_began(training):
    model = small_model(dropout=0.5).train(training)
    seen = []

    def fail():
        with evaluation_mode(model):
            seen.append((model.inputs.training, torch.is_inference_mode_enabled()))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen == [(False, True)]
    assert model.inputs.training == training
