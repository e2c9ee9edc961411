"""Posterior families: their options, their terms, what they infer, and families from outside."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from corrvae.graphs import spanning_weights
from corrvae.model import TrainingData, build_model
from corrvae.model.families import Family, Independent, Pairwise, make_family, pairwise
from corrvae.model.objectives import bound
from corrvae.nn import DenseRows, FeatureTable, PairBilinear
from corrvae.training.data import exhaustive
from corrvae.training.validation import evaluate
from support.graphs import graphs
from support.training import D, N, everything, small_data, small_matrix, small_model, sparse_table

NETWORKS = ("perceptron", "bilinear", "metric")


def terms(model, **changes):
    batch = model.family.draw(everything(small_data(**changes)), 0)
    with torch.no_grad():
        return model(batch, torch.Generator().manual_seed(0)).numbers()


# ---- options


def test_options_are_parameters_as_in_scikit_learn():
    family = Pairwise("metric", gamma_mi=10.0)
    assert family.get_params() == {
        "network": "metric",
        "gamma_kl": 1.0,
        "gamma_mi": 10.0,
        "inputs": "features",
        "hidden": None,
        "dropout": None,
        "normalize": None,
        "pair_batch": None,
        "contrast": 0.0,
        "rivals": "all",
        "non_edges": None,
    }
    assert clone(family).set_params(gamma_mi=2.0, dropout=0.5).get_params()["gamma_mi"] == 2.0
    assert repr(family) == "Pairwise(gamma_mi=10.0, network='metric')"
    assert Independent().get_params() == {"contrast": 0.0, "rivals": "all"}


def test_a_family_is_made_from_a_name_or_another_and_is_new_each_time():
    assert isinstance(make_family("independent"), Independent)
    built = build_model(D, 2, family=Pairwise("bilinear", gamma_kl=0.5)).family
    made = make_family(built)
    assert made is not built
    assert made.gamma_kl == 0.5
    assert not list(made.parameters())
    with pytest.raises(ValueError, match=r"one of \['independent', 'joint', 'pairwise'\] or a Family, got 'own'"):
        make_family("own")
    with pytest.raises(TypeError, match="got int"):
        make_family(3)
    with pytest.raises(TypeError, match="got type"):
        make_family(Pairwise)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gamma_kl": -1.0}, "gamma_kl must be finite and not negative"),
        ({"gamma_mi": float("inf")}, "gamma_mi must be finite"),
        ({"gamma_mi": float("nan")}, "gamma_mi must be finite"),
        ({"pair_batch": 0}, "pair_batch must be positive"),
        ({"network": "some"}, "network must be one of"),
        ({"dropout": 1.0}, "dropout"),
        ({"normalize": "some"}, "normalize"),
    ],
)
def test_options_that_cannot_be_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        build_model(6, 2, family=Pairwise(**options))


def test_a_pair_network_from_a_function():
    model = build_model(6, 2, family=Pairwise(partial(PairBilinear, rank=2)))
    assert model.family.pair_network.rank == 2
    with pytest.raises(TypeError, match="made a Linear, which is not"):
        build_model(6, 2, family=Pairwise(lambda features, components: torch.nn.Linear(2, 2)))


def test_the_pair_network_reads_what_the_encoder_reads_unless_it_has_its_own():
    def forms(of_encoder, **of_pairs):
        own = build_model(6, 2, family=Pairwise("bilinear", **of_pairs), **of_encoder).family.pair_inputs
        return own and (own.normalize, own.dropout)

    encoder = {"normalize": "l2", "dropout": 0.5}
    assert forms(encoder) is None
    assert forms(encoder, normalize="none") == ("none", 0.5)
    assert forms(encoder, dropout=0.0) == ("l2", 0.0)
    assert forms(encoder, dropout=0.1, normalize="binary") == ("binary", 0.1)


# ---- terms


def test_without_a_graph_every_family_trains_a_vae():
    for model in (small_model(), small_model("perceptron", gamma_kl=3.0)):
        plain = terms(model, edges=None, weights=None)
        assert plain.keys() == {"reconstruction", "singleton", "total"}
        assert plain["total"] == pytest.approx(plain["reconstruction"] - plain["singleton"])


def test_gamma_weighs_the_regulariser_and_nothing_else():
    plain = terms(small_model("perceptron", gamma_kl=0.0, gamma_mi=0.0))
    for kl, mi in ((0.5, 0.0), (0.0, 2.0), (1.0, 1.0)):
        found = terms(small_model("perceptron", gamma_kl=kl, gamma_mi=mi))
        expected = plain["total"] - kl * plain["singleton"] - mi * plain["non_edge"]
        assert found["total"] == pytest.approx(expected, rel=1e-5)
        assert bound(found) == pytest.approx(plain["total"], rel=1e-5)


def test_independent_posteriors_pay_for_edges_and_no_information():
    ind, corr = terms(small_model()), terms(small_model("perceptron"))
    assert ind.keys() == {"reconstruction", "singleton", "edge", "total"}
    assert ind["singleton"] == corr["singleton"]
    assert ind["edge"] != corr["edge"]


def test_the_pair_network_may_read_other_features_than_the_encoder():
    alike = small_model("perceptron", normalize="l2")
    plain = small_model("perceptron")
    apart = build_model(
        D,
        3,
        family=Pairwise("perceptron", hidden=(8,), normalize="none"),
        likelihood="multinomial",
        tau=0.9,
        hidden=(7,),
        normalize="l2",
    )
    # the encoder alone decides the singleton term, the pair network alone the term of the pairs
    assert terms(apart)["singleton"] == terms(alike)["singleton"] != terms(plain)["singleton"]
    assert terms(apart)["non_edge"] == terms(plain)["non_edge"] != terms(alike)["non_edge"]


def test_a_network_that_reads_means_sees_those_of_the_features_as_it_is_to_read_them():
    rows = DenseRows(3.0 * torch.from_numpy(small_matrix()))
    for options in ({}, {"dropout": 0.5}):
        model = build_model(D, 3, family=Pairwise("metric", **options), likelihood="multinomial", normalize="l2")
        means = model.encoder(model.inputs(rows)).mean
        torch.testing.assert_close(model.family.prepare(model, rows), 3.0 * means)  # the image begins as 3 z
    with pytest.raises(ValueError, match="reads the encoder's means, so both must read features in one form"):
        build_model(D, 3, family=Pairwise("metric", normalize="l2"))


def test_edges_train_the_encoder_through_a_network_that_reads_means():
    def of_encoder(network):
        model = small_model(network, gamma_kl=0.0, gamma_mi=1e6)
        model(model.family.draw(small_data(), 0), torch.Generator().manual_seed(0)).total().backward()
        return model.encoder.first.weight.grad.norm()

    assert of_encoder("metric") > 100 * of_encoder("perceptron")


# ---- inference


@pytest.mark.parametrize("options", [{}, {"normalize": "l2", "dropout": 0.5}])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_correlations_are_those_of_the_pair_network(monkeypatch, as_sparse, options):
    model = build_model(D, 3, family=Pairwise(hidden=(8,), **options), normalize="log1p", dropout=0.5).train()
    posterior = model.family.infer(model, sparse_table(small_matrix(), as_sparse=as_sparse))
    network, inputs = model.family.pair_network, model.family.pair_inputs or model.inputs
    pairs = np.random.default_rng(1).permuted(np.tile(np.arange(N), (8, 1)), axis=1)[:, :2]
    model.eval()
    with torch.no_grad():
        prepared = network.prepare(inputs(DenseRows(torch.from_numpy(small_matrix()))))
        block = network.block(prepared, prepared).numpy()
    model.train()
    monkeypatch.setattr(pairwise, "_PAIRS", 3)
    np.testing.assert_allclose(
        posterior.correlation(pairs), np.tanh(block[pairs[:, 0], pairs[:, 1]]), rtol=1e-4, atol=1e-6
    )
    assert posterior.correlation(pairs[:0]).shape == (0, 3)
    assert posterior.is_correlated
    assert model.training
    vectors = posterior.vectors(np.arange(5))
    np.testing.assert_allclose(posterior.block(vectors[:2], vectors), block[:2, :5], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("network", NETWORKS)
def test_vectors_of_two_posteriors_of_a_model_can_be_combined(network):
    model = small_model(network)
    whole = model.family.infer(model, FeatureTable(small_matrix()))
    first = model.family.infer(model, FeatureTable(small_matrix()[:20]))
    rest = model.family.infer(model, FeatureTable(small_matrix()[20:]))
    block = first.block(first.vectors(np.array([3, 4])), rest.vectors(np.array([0, 7]))).numpy()
    pairs = np.array([[3, 20], [3, 27], [4, 20], [4, 27]])
    np.testing.assert_allclose(block.reshape(4, -1), whole.pre_activation(pairs), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("network", [None, *NETWORKS])
def test_a_part_of_a_posterior_is_the_posterior_of_that_part(network):
    model, ids = small_model(network), np.array([f"v{row}" for row in range(N)], dtype=object)
    posterior = model.family.infer(model, FeatureTable(small_matrix()), ids=ids)
    part = posterior.take(np.array([30, 7, 9, 2])).take(np.array([2, 0, 1]))
    assert type(part) is type(posterior)
    assert part.ids.tolist() == ["v9", "v30", "v7"]
    pairs = [("v9", "v7"), ("v30", "v9")]
    np.testing.assert_allclose(part.correlation(pairs), posterior.correlation(pairs), rtol=1e-6)
    np.testing.assert_array_equal(part.mean, posterior.mean[[9, 30, 7]])


def test_a_posterior_of_known_marginals_is_the_one_inferred():
    model, table = small_model("perceptron", tau=0.7), FeatureTable(small_matrix())
    inferred = model.family.infer(model, table)
    known = model.family.posterior(model, inferred.mean, inferred.stddev, table)
    np.testing.assert_array_equal(known.correlation([(3, 5)]), inferred.correlation([(3, 5)]))
    np.testing.assert_array_equal(known.tau, [0.7] * 3)
    without = model.family.posterior(model, inferred.mean, inferred.stddev, None)
    with pytest.raises(ValueError, match="store_features=False"):
        without.correlation([(3, 5)])
    assert without.sample(2, 0).shape == (2, N, 3)


def edge_term(posterior, i, j, tau):
    """KL(q_ij || p0_ij) - KL_i - KL_j from torch's own normals."""
    total = 0.0
    correlation = posterior.correlation([(i, j)])[0]
    for k in range(posterior.n_components):
        means, stddevs = (
            torch.tensor(part[[i, j], k], dtype=torch.float64) for part in (posterior.mean, posterior.stddev)
        )
        joint = torch.eye(2, dtype=torch.float64)
        joint[0, 1] = joint[1, 0] = float(correlation[k])
        prior = torch.eye(2, dtype=torch.float64)
        prior[0, 1] = prior[1, 0] = tau
        q = MultivariateNormal(means, joint * stddevs[:, None] * stddevs)
        total += kl_divergence(q, MultivariateNormal(torch.zeros(2, dtype=torch.float64), prior)).item()
        total -= kl_divergence(Normal(means, stddevs), Normal(0.0, 1.0)).sum().item()
    return total


@settings(max_examples=12)
@given(graphs(min_vertices=2), st.sampled_from([None, *NETWORKS]), st.integers(0, 100))
def test_the_bound_is_that_of_torch_distributions(graph, network, seed):
    X = np.random.default_rng(seed).normal(size=(graph.n_vertices, 4))
    model = small_model(network, n_features=4, likelihood="gaussian", tau=0.8, seed=seed)
    table, weights = FeatureTable(X), spanning_weights(graph).weights
    edges = graph.edges if graph.n_edges else None
    data = exhaustive(TrainingData(table, edges, weights if graph.n_edges else None))
    found = evaluate(model, data)
    posterior = model.family.infer(model, table)
    marginals = Normal(torch.from_numpy(posterior.mean), torch.from_numpy(posterior.stddev))
    singleton = kl_divergence(marginals, Normal(0.0, 1.0)).sum().item() / graph.n_vertices
    assert found["singleton"] == pytest.approx(singleton, rel=1e-4)
    parts = [w * edge_term(posterior, i, j, 0.8) for w, (i, j) in zip(weights, graph.edges.tolist(), strict=True)]
    assert found.get("edge", 0.0) == pytest.approx(sum(parts) / graph.n_vertices, rel=1e-4, abs=1e-5)


# ---- a family from outside


class Shrunk(Family):
    """Independent posteriors whose KL counts twice, with a network of its own."""

    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = factor

    def build(self, n_features, n_components, *, normalize, dropout):
        self.scale = torch.nn.Parameter(torch.ones(n_components))

    def terms(self, model, batch, generator=None):
        _, _, found, kl = model.autoencode(batch, generator)
        return found.add("singleton", -self.factor, kl * self.scale.mean(), batch.vertex_weights)


def test_a_family_from_outside_is_a_class_with_its_terms():
    model = build_model(D, 3, family=make_family(Shrunk(factor=4.0)), likelihood="multinomial")
    found = terms(model)
    assert found["total"] == pytest.approx(found["reconstruction"] - 4.0 * found["singleton"], rel=1e-5)
    assert "family.scale" in model.state_dict()
    posterior = model.family.infer(model, FeatureTable(small_matrix()))
    assert not posterior.is_correlated
    np.testing.assert_array_equal(posterior.mean, model.encode(FeatureTable(small_matrix()))[0])
