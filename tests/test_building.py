import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

import corrvae
from corrvae.building import Architecture, build_model
from corrvae.nn import DenseRows, LearnedTau, PairBilinear, PairMetric, PairPerceptron
from corrvae.nn.likelihoods import Bernoulli, Poisson


def sizes(module):
    return [tuple(parameter.shape) for parameter in module.parameters()]


def test_the_papers_networks_are_the_default():
    model = build_model(Architecture(n_features=7, n_components=5, pair_network="perceptron"), 0)
    assert sizes(model.encoder) == [(7, 300), (300,), (10, 300), (10,)]
    assert sizes(model.decoder) == [(300, 5), (300,), (7, 300), (7,)]
    assert isinstance(model.pair_network, PairPerceptron)
    assert model.pair_network.weight.shape == (7, 2000)
    assert model.tau == 0.99


def test_widths_are_mirrored_in_the_decoder():
    model = build_model(Architecture(7, 5, hidden=(9, 8)), 0)
    assert [shape for shape in sizes(model.decoder) if len(shape) == 2] == [(8, 5), (9, 8), (7, 9)]


def test_choices_are_followed():
    model = build_model(Architecture(6, 2, likelihood="bernoulli", pair_network="bilinear", pair_hidden=(11,)), 0)
    assert isinstance(model.likelihood, Bernoulli)
    assert isinstance(model.pair_network, PairBilinear)
    assert sizes(model.pair_network.first)[0] == (6, 11)
    metric = build_model(Architecture(6, 2, pair_network="metric", min_stddev=0.25), 0)
    assert isinstance(metric.pair_network, PairMetric)
    assert (metric.encoder(DenseRows(-1e3 * torch.rand(4, 6))).stddev >= 0.25).all()
    own = build_model(Architecture(6, 2, likelihood=Poisson, pair_network=partial(PairBilinear, rank=2)), 0)
    assert isinstance(own.likelihood, Poisson)
    assert own.pair_network.rank == 2


def test_networks_may_read_features_in_different_forms():
    def forms(**changes):
        model = build_model(Architecture(6, 2, pair_network="bilinear", **changes), 0)
        pairs = model.pair_inputs
        return (model.inputs.normalize, model.inputs.dropout), pairs and (pairs.normalize, pairs.dropout)

    assert forms(normalize="l2", dropout=0.5) == (("l2", 0.5), None)
    assert forms(normalize=("l2", "raw"), dropout=0.5) == (("l2", 0.5), ("raw", 0.5))
    assert forms(normalize="l2", dropout=(0.0, 0.5)) == (("l2", 0.0), ("l2", 0.5))
    assert forms(normalize=("l2", "raw"), dropout=(0.1, 0.5)) == (("l2", 0.1), ("raw", 0.5))


def test_a_network_that_reads_means_is_given_those_of_the_posterior():
    with pytest.raises(ValueError, match="both read features in one form; got normalize="):
        build_model(Architecture(6, 2, pair_network="metric", normalize=("l2", "raw")), 0)
    rows = DenseRows(torch.rand(4, 6))
    for changes in ({"normalize": "l2"}, {"normalize": ("l2", "l2")}, {"dropout": (0.0, 0.5)}):
        model = build_model(Architecture(6, 2, pair_network="metric", **changes), 0).eval()
        means = model.encoder(model.inputs(rows)).mean
        torch.testing.assert_close(model.prepare_pairs(rows), model.pair_network.prepare(DenseRows(means)))


@pytest.mark.parametrize(("tau", "shape"), [("learned", ()), ("learned_per_dimension", (3,))])
def test_tau_can_be_learned(tau, shape):
    learned = build_model(Architecture(6, 3, tau=tau), 0).tau
    assert isinstance(learned, LearnedTau)
    assert learned.raw.shape == shape
    torch.testing.assert_close(learned(), torch.full(shape, 0.99, dtype=torch.float64), atol=1e-6, rtol=0)


def test_a_seed_decides_the_parameters():
    first, same, other = (build_model(Architecture(6, 2), seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not torch.equal(first["encoder.first.weight"], other["encoder.first.weight"])


def test_a_seed_decides_the_parameters_whatever_the_callers_default_type():
    architecture = Architecture(6, 2, likelihood="negative_binomial", pair_network="perceptron", tau="learned")
    expected = build_model(architecture, 1).state_dict()
    for default in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(default)
        try:
            found = build_model(architecture, 1).state_dict()
        finally:
            torch.set_default_dtype(torch.float32)
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_torch_is_left_as_it_was():
    torch.set_default_dtype(torch.float64)
    try:
        before = torch.get_rng_state()
        model = build_model(Architecture(6, 2), 0)
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_shapes_alone_need_no_memory():
    model = build_model(Architecture(10**9, 2), 0, device="meta")
    assert model.encoder.first.weight.shape == (10**9, 300)


def test_a_pair_network_must_be_one():
    with pytest.raises(TypeError, match="made a Linear, which is not"):
        build_model(Architecture(6, 2, pair_network=lambda features, components: torch.nn.Linear(2, 2)), 0)


def test_networks_without_memory_load_no_compiler():
    """Some of torch's functions do on such a device, which made loading a model take seconds."""
    script = """
import sys
from corrvae.building import LEARNED, Architecture, build_model
from corrvae.nn.likelihoods import LIKELIHOODS
for likelihood in LIKELIHOODS:
    for pair_network in (None, "perceptron", "bilinear"):
        for tau in (0.5, *LEARNED):
            build_model(Architecture(6, 2, likelihood=likelihood, pair_network=pair_network, tau=tau), 0, device="meta")
print("torch._dynamo" in sys.modules)
"""
    environment = os.environ | {"PYTHONPATH": str(Path(corrvae.__file__).parents[1])}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
