import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corrvae.model import Batch, CorrelatedModel, Population, VertexIndex
from corrvae.nn import (
    Decoder,
    DenseRows,
    Encoder,
    InputTransform,
    LearnedTau,
    PairBilinear,
    PairMetric,
    PairPerceptron,
    make_likelihood,
)

ROWS = DenseRows(torch.rand(6, 5, generator=torch.Generator().manual_seed(0)))
EDGES = torch.tensor([[0, 4], [5, 1], [0, 2]])
WHOLE = Population(20, 30, 15.0)


def make(pair_network=None, tau=0.9, **inputs) -> CorrelatedModel:
    torch.manual_seed(0)
    networks = Encoder(5, 2), Decoder(2, 5), make_likelihood("bernoulli", 5)
    return CorrelatedModel(*networks, pair_network=pair_network, tau=tau, **inputs)


def terms(model: CorrelatedModel, **changes):
    batch = {"rows": ROWS, "n_drawn": 3, "edges": EDGES, "edge_weights": torch.ones(3), **changes}
    return model.terms(Batch(**batch), WHOLE, noise=torch.zeros(3, 2)).floats()


def test_a_batch_without_edges_trains_a_vae():
    plain = terms(make(), edges=None, edge_weights=None)
    assert plain["edge"] == plain["non_edge"] == 0.0
    assert plain["total"] == pytest.approx(plain["reconstruction"] - plain["singleton"])


def test_edges_in_proportion_to_their_weights():
    uniform, proportional = terms(make()), terms(make(), edge_weights=None)
    assert proportional["edge"] == pytest.approx(uniform["edge"] * 15.0 / 30)


def test_pairs_default_to_all_of_the_drawn_vertices():
    model = make(PairPerceptron(5, 2, hidden=(7,)))
    named = terms(model, pairs=torch.tensor([[0, 1], [2, 0], [1, 2]]))
    assert terms(model)["non_edge"] == pytest.approx(named["non_edge"])
    assert terms(model, pairs=torch.tensor([[0, 1]]))["non_edge"] != pytest.approx(named["non_edge"])


def test_a_network_that_reads_means_sees_those_of_the_features_as_the_pair_network_gets_them():
    rows, network = DenseRows(3.0 * ROWS.values), PairMetric(5, 2)
    for inputs in ({}, {"inputs": InputTransform("l2")}, {"pair_inputs": InputTransform("binary")}):
        model = make(network, **inputs)
        read = next(iter(inputs.values()))(rows) if inputs else rows
        torch.testing.assert_close(model.prepare_pairs(rows), 3.0 * model.encoder(read).mean)
        prepared = model.prepare_pairs(ROWS)
        information = -0.5 * torch.log1p(-network.within(prepared[:3]).tanh().square()).sum(1)
        # the mean over pairs, as the objective scales it for 20 vertices
        assert terms(model)["non_edge"] == pytest.approx(information.mean().item() * 19 / 20, rel=1e-4)


def test_edges_teach_the_encoder_through_a_network_that_reads_means():
    def of_weights(network, singletons=0.0):
        model = make(network)
        batch = Batch(ROWS, 3, EDGES, torch.ones(3))
        model.terms(batch, WHOLE, gamma=(singletons, 1e6), noise=torch.zeros(3, 2)).climb()
        return model.encoder.first.weight.grad.norm()

    assert of_weights(PairMetric(5, 2)) > 100 * of_weights(PairPerceptron(5, 2, hidden=(7,)))


def test_the_pair_network_may_read_other_features_than_the_encoder():
    network = PairPerceptron(5, 2, hidden=(7,))
    alike, raw, apart = (
        make(network, inputs=InputTransform(of_encoder), pair_inputs=of_pairs and InputTransform(of_pairs))
        for of_encoder, of_pairs in (("l2", None), ("raw", None), ("l2", "raw"))
    )
    # the encoder alone decides the singleton term, the pair network alone the term of the pairs
    assert terms(apart)["singleton"] == terms(alike)["singleton"] != terms(raw)["singleton"]
    assert terms(apart)["non_edge"] == terms(raw)["non_edge"] != terms(alike)["non_edge"]
    assert apart.prepare_pairs(ROWS).equal(raw.prepare_pairs(ROWS))
    assert not apart.prepare_pairs(ROWS).allclose(alike.prepare_pairs(ROWS))
    with pytest.raises(ValueError, match="no pair network"):
        make().prepare_pairs(ROWS)


def test_targets_and_sample_weights():
    model = make()
    other = DenseRows(1 - ROWS.values[:3])
    assert terms(model, targets=ROWS.head(3)) == terms(model)
    changed = terms(model, targets=other)
    assert changed["reconstruction"] != terms(model)["reconstruction"]
    assert changed["singleton"] == terms(model)["singleton"]
    alone = terms(model, vertex_weights=torch.tensor([3.0, 0.0, 0.0]))
    first = model.encoder(ROWS.head(1))
    expected = model.likelihood.log_prob(model.decoder(first.mean), ROWS.head(1))
    assert alone["reconstruction"] == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("hidden_from", ["inputs", "pair_inputs"])
def test_noise_and_dropout_come_from_the_generator_alone(hidden_from):
    model = make(PairPerceptron(5, 2, hidden=(7,)), **{hidden_from: InputTransform(dropout=0.5)})
    batch = Batch(ROWS, 3, EDGES, torch.ones(3))
    before = torch.get_rng_state()
    totals = [model.terms(batch, WHOLE, generator=torch.Generator().manual_seed(s)).floats() for s in (1, 1, 2)]
    assert torch.get_rng_state().equal(before)
    assert totals[0] == totals[1] != totals[2]


@pytest.mark.parametrize("n_components", [None, 2])
def test_a_learned_tau_receives_a_gradient(n_components):
    model = make(PairBilinear(5, 2), LearnedTau(0.9, n_components=n_components))
    found = model.terms(Batch(ROWS, 3, EDGES, torch.ones(3)), WHOLE, noise=torch.zeros(3, 2))
    given = make(PairBilinear(5, 2), 0.9)
    found.total.backward()
    assert bool((model.tau.raw.grad != 0).all())
    assert "tau.raw" in model.state_dict()
    assert found.floats()["edge"] == pytest.approx(terms(given)["edge"], rel=1e-4)


def test_an_impossible_tau_is_refused_when_the_model_is_made():
    with pytest.raises(ValueError, match="tau"):
        make(tau=1.0)


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 2**16))
def test_distinct_vertices_lead_back_to_the_edges(n_vertices, n_edges, seed):
    generator = np.random.default_rng(seed)
    index = VertexIndex(n_vertices)
    for _ in range(3):
        drawn = generator.permutation(n_vertices)[: generator.integers(1, n_vertices + 1)]
        edges = generator.integers(0, n_vertices, (n_edges, 2))
        found = index.distinct(drawn, edges)
        assert len(set(found.vertices.tolist())) == len(found.vertices)
        np.testing.assert_array_equal(found.vertices[: len(drawn)], drawn)
        np.testing.assert_array_equal(found.vertices[found.positions], edges)


def test_multiplications_of_a_step_count_parameters_for_rows_and_pairs():
    plain, paired = make(), make(PairBilinear(5, 2, rank=3, hidden=()))
    of_networks = sum(parameter.numel() for parameter in plain.parameters())
    assert plain.products_a_step(7, 100) == 7 * of_networks
    of_pairs = sum(parameter.numel() for parameter in paired.pair_network.parameters())
    assert paired.products_a_step(7, 100) == 7 * (of_networks + of_pairs) + 100 * 2 * 3 * 2
