"""CorrelatedVAE: what it learns, what it knows of rows, runs, warm starts, and its sentences."""

import inspect
import logging
import pickle
import random
import signal
import warnings
from functools import partial

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse

from corrvae import CorrelatedVAE, CorrelationGraph, Independent, Pairwise, load
from corrvae.errors import FolderError, TrainingError
from corrvae.io import Features, open_mapped, write_mapped
from corrvae.nn import PAIR_NETWORKS, FeatureTable, PairBilinear
from corrvae.nn.likelihoods import Gaussian
from corrvae.training import Checkpoint, prepare_data
from corrvae.training.data import exhaustive
from corrvae.training.validation import evaluate
from support.pairs import QUICK, paired_rows, quick_pairwise
from support.unchecked import unchecked

DATA = paired_rows()
X, GRAPH = DATA.X, DATA.graph
FRAME = pd.DataFrame(X, index=GRAPH.ids, columns=list("abcde"))
LIKELIHOODS = ("gaussian", "bernoulli", "multinomial", "poisson", "negative_binomial")


def features_for(likelihood):
    return {"gaussian": X, "bernoulli": DATA.bits}.get(likelihood, DATA.counts + 1)


@pytest.fixture(scope="module")
def independent():
    return CorrelatedVAE(**QUICK).fit(X, graph=GRAPH)


@pytest.fixture(scope="module")
def pairwise():
    return CorrelatedVAE(**quick_pairwise()).fit(X, graph=GRAPH)


def terms_of(model, features, graph=None, weights=None):
    """The objective's terms over all rows and edges."""
    prepared = prepare_data(features, graph, sample_weight=weights)
    return evaluate(model.model_, exhaustive(prepared.training))


# What it learns


@pytest.mark.parametrize("family", [Independent(), Pairwise(hidden=(8,), gamma_kl=0.1, gamma_mi=0.1)])
def test_training_raises_the_bound_and_brings_joined_rows_together(family):
    settings = {**QUICK, "family": family, "learning_rate": 1e-2}
    short, long = (CorrelatedVAE(**{**settings, "max_steps": n}).fit(X, graph=GRAPH) for n in (1, 300))
    assert long.score(X, graph=GRAPH) > short.score(X, graph=GRAPH) + 2
    Z = long.transform(X)
    joined = np.linalg.norm(Z[GRAPH.edges[:, 0]] - Z[GRAPH.edges[:, 1]], axis=1).mean()
    others = np.linalg.norm(Z - np.roll(Z, 7, axis=0), axis=1).mean()
    assert joined < 0.3 * others


def test_correlations_are_learned_where_edges_are():
    settings = {**quick_pairwise(gamma_kl=0.1, gamma_mi=20.0), "max_steps": 300, "learning_rate": 1e-2}
    posterior = CorrelatedVAE(**settings).fit(X, graph=GRAPH).posterior()
    others = np.column_stack([GRAPH.id_pairs[:, 0], np.roll(GRAPH.id_pairs[:, 1], 5)])
    assert posterior.correlation(GRAPH.id_pairs).mean() > posterior.correlation(others).mean() + 0.05


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("network", [None, *PAIR_NETWORKS])
def test_every_likelihood_goes_with_every_family(likelihood, network):
    features = features_for(likelihood)
    settings = QUICK if network is None else quick_pairwise(network=network)
    model = CorrelatedVAE(likelihood=likelihood, **{**settings, "max_steps": 3}).fit(features, graph=GRAPH)
    assert model.likelihood_ == likelihood
    assert np.isfinite(model.score(features, graph=GRAPH))
    assert model.reconstruct(features).shape == features.shape
    assert model.sample(4, random_state=0).features.shape == (4, 5)


def test_what_is_chosen_from_the_data_is_kept_and_logged(caplog):
    with caplog.at_level(logging.INFO, logger="corrvae"):
        model = CorrelatedVAE(**QUICK).fit(DATA.bits)
    assert (model.likelihood_, model.normalize_) == ("bernoulli", "none")
    assert "likelihood = bernoulli: all features are 0 or 1" in caplog.text
    assert model.choices_[0] == ("likelihood", "bernoulli", "all features are 0 or 1")
    counts = np.random.default_rng(0).poisson(0.05, (60, 40))
    counts[:, 0] = 1
    model = CorrelatedVAE(**QUICK).fit(sparse.csr_array(counts))
    assert (model.likelihood_, model.normalize_) == ("multinomial", "l2")
    assert CorrelatedVAE(**QUICK, likelihood="poisson", normalize="none").fit(DATA.bits).normalize_ == "none"


def test_own_classes_can_be_passed():
    settings = quick_pairwise(network=partial(PairBilinear, rank=2))
    model = CorrelatedVAE(**settings, likelihood=partial(Gaussian, floor=0.1)).fit(X, graph=GRAPH)
    assert model.model_.likelihood.floor == 0.1
    assert model.model_.family.pair_network.rank == 2


def test_tau_is_learned_if_asked_for(independent):
    assert independent.tau_.tolist() == [0.9, 0.9]
    model = CorrelatedVAE(**QUICK, tau="learned_per_dimension", learning_rate=0.1).fit(X, graph=GRAPH)
    assert (np.abs(model.tau_ - 0.99) > 1e-4).all()
    assert model.history_["tau"][-1] == pytest.approx(model.tau_.mean())


def test_without_a_graph_it_is_a_vae():
    model = CorrelatedVAE(**QUICK).fit(X)
    assert model.graph_ is model.weights_ is None
    assert "edge" not in model.history_
    assert model.ids_.tolist() == list(range(60))
    empty = CorrelationGraph.from_edges([], n_vertices=60)
    np.testing.assert_array_equal(CorrelatedVAE(**QUICK).fit_transform(X, graph=empty), model.embedding_)


def test_the_same_seed_gives_the_same_bits(pairwise):
    again = CorrelatedVAE(**quick_pairwise()).fit(X, graph=GRAPH)
    np.testing.assert_array_equal(again.embedding_, pairwise.embedding_)
    assert again.score(X, graph=GRAPH) == pairwise.score(X, graph=GRAPH)
    other = CorrelatedVAE(**{**quick_pairwise(), "random_state": 1}).fit(X, graph=GRAPH)
    assert not np.array_equal(other.embedding_, pairwise.embedding_)


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_generators_are_seeds_too(kind):
    first, same = (CorrelatedVAE(**{**QUICK, "random_state": kind(3)}).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.embedding_, same.embedding_)
    generator = kind(3)
    CorrelatedVAE(**{**QUICK, "random_state": generator}).fit(X)
    second = CorrelatedVAE(**{**QUICK, "random_state": generator}).fit(X)
    assert not np.array_equal(first.embedding_, second.embedding_)


def test_everything_outside_is_left_as_it_was():
    def outside():
        return (
            random.getstate(),
            np.random.get_state()[1].tolist(),  # noqa: NPY002
            torch.get_rng_state().tolist(),
            torch.get_num_threads(),
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            np.geterr(),
            signal.getsignal(signal.SIGINT),
            list(warnings.filters),
        )

    settings = {**quick_pairwise(dropout=0.5), "random_state": None, "validation_fraction": 0.2, "dropout": 0.2}
    with unchecked():  # beartype draws from Python's generator which items of a list to look at
        before, features = outside(), X.copy()
        model = CorrelatedVAE(**settings).fit(features, graph=GRAPH)
        model.score(features, graph=GRAPH)
        model.sample(graph=GRAPH)
        model.kneighbors(n_neighbors=2)
        assert outside() == before
    np.testing.assert_array_equal(features, X)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_learns_where_derivatives_are_off(mode, independent):
    with mode():
        before = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        model = CorrelatedVAE(**QUICK).fit(X, graph=GRAPH)
        again = CorrelatedVAE(**QUICK, warm_start=True).fit(X).fit(X)
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == before
    np.testing.assert_array_equal(model.embedding_, independent.embedding_)
    assert not any(parameter.is_inference() for parameter in again.model_.parameters())


# Properties of the mathematics


def test_relabelling_vertices_changes_nothing(pairwise):
    order = np.random.default_rng(0).permutation(60)
    np.testing.assert_allclose(pairwise.transform(X[order]), pairwise.transform(X)[order], atol=1e-6)
    one, other = terms_of(pairwise, X, GRAPH), terms_of(pairwise, X[order], GRAPH[order])
    for name in ("edge", "singleton", "non_edge"):
        assert one[name] == pytest.approx(other[name], rel=1e-5)


def test_swapping_a_pair_changes_nothing(pairwise):
    posterior = pairwise.posterior(X[:20])
    pairs = np.array([[0, 1], [5, 19], [3, 7]])
    np.testing.assert_array_equal(posterior.correlation(pairs), posterior.correlation(pairs[:, ::-1].copy()))


def test_an_isolated_vertex_leaves_weights_and_terms_alone(pairwise):
    more, larger = np.vstack([X, np.ones(5)]), CorrelationGraph(GRAPH.edges, 61)
    model = CorrelatedVAE(**quick_pairwise()).fit(more, graph=larger)
    np.testing.assert_array_equal(model.weights_, pairwise.weights_)
    edge, same = terms_of(pairwise, X, GRAPH)["edge"], terms_of(pairwise, more, larger)["edge"]
    assert 60 * edge == pytest.approx(61 * same, rel=1e-5)
    np.testing.assert_allclose(pairwise.transform(more)[:60], pairwise.transform(X), atol=1e-6)


def test_tau_of_zero_makes_cvae_ind_a_vae():
    with_graph = CorrelatedVAE(**QUICK, tau=0.0).fit(X, graph=GRAPH)
    without = CorrelatedVAE(**QUICK).fit(X)
    np.testing.assert_allclose(with_graph.embedding_, without.embedding_, atol=1e-4)
    assert with_graph.score(X, graph=GRAPH) == pytest.approx(with_graph.score(X), rel=1e-6)


def test_tau_of_zero_leaves_cvae_corr_the_edges_information():
    model = CorrelatedVAE(**quick_pairwise(), tau=0.0).fit(X, graph=GRAPH)
    correlation = model.posterior().correlation(GRAPH.id_pairs)
    information = -0.5 * np.log1p(-(correlation**2)).sum(1) @ model.weights_ / 60
    assert model.score(X) - model.score(X, graph=GRAPH) == pytest.approx(information, rel=1e-3)


def test_the_score_leaves_gamma_out(pairwise):
    same = pickle.loads(pickle.dumps(pairwise))
    same.model_.family.gamma_kl = same.model_.family.gamma_mi = 1000.0
    assert same.score(X, graph=GRAPH) == pairwise.score(X, graph=GRAPH)


def test_a_weight_counts_as_so_many_rows(independent):
    times = np.random.default_rng(0).integers(0, 4, 60)
    weighted = terms_of(independent, X, weights=times.astype(float))
    many = terms_of(independent, X.repeat(times, axis=0))
    assert weighted["singleton"] == pytest.approx(many["singleton"], rel=1e-5)
    assert weighted["reconstruction"] == pytest.approx(many["reconstruction"], rel=0.1)
    assert independent.score(X, sample_weight=np.full(60, 3.0)) == pytest.approx(independent.score(X))


def test_rows_of_weight_zero_are_not_learned():
    two = np.vstack([X + 4, X - 4])
    settings = {**QUICK, "max_steps": 300, "learning_rate": 1e-2}
    model = CorrelatedVAE(**settings).fit(two, sample_weight=np.repeat([1.0, 0.0], 60))
    errors = np.abs(model.reconstruct(two) - two).mean(1)
    assert errors[:60].mean() < 2
    assert errors[60:].mean() > 4


# Rows, ids, posteriors, data from the model


def test_every_kind_of_table_gives_the_same_embedding(tmp_path, independent):
    np.save(tmp_path / "x.npy", X)
    write_mapped(tmp_path / "mapped", sparse.csr_array(X))
    names = list("abcde")
    kinds = [
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        pd.DataFrame(X, columns=names),
        pl.DataFrame(X, schema=names),
        np.load(tmp_path / "x.npy", mmap_mode="r"),
        open_mapped(tmp_path / "mapped"),
        Features(X, names=names),
        X.astype(np.float32),
    ]
    for features in kinds:
        model = CorrelatedVAE(**QUICK).fit(features, graph=GRAPH)
        np.testing.assert_allclose(model.embedding_, independent.embedding_, atol=1e-4)
        np.testing.assert_allclose(model.transform(features), model.embedding_, atol=1e-6)


def test_ids_are_kept_end_to_end(independent):
    assert independent.ids_.tolist() == GRAPH.ids.tolist()
    turned = FRAME.iloc[::-1]
    for model in (
        CorrelatedVAE(**QUICK).fit(turned, graph=GRAPH),
        CorrelatedVAE(**QUICK).fit(X[::-1], graph=GRAPH, ids=turned.index),
        CorrelatedVAE(**QUICK).fit(Features(X[::-1].copy(), ids=GRAPH.ids[::-1]), graph=GRAPH),
    ):
        assert model.ids_.tolist() == model.graph_.ids.tolist() == turned.index.tolist()
        joined = {frozenset(pair) for pair in model.graph_.id_pairs.tolist()}
        assert joined == {frozenset(pair) for pair in GRAPH.id_pairs.tolist()}
        np.testing.assert_array_equal(model.embedding_, CorrelatedVAE(**QUICK).fit(turned, graph=GRAPH).embedding_)
    assert CorrelatedVAE(**QUICK).fit(turned).ids_.tolist() == turned.index.tolist()


def test_the_training_rows_posterior_is_at_hand(pairwise):
    own, inferred = pairwise.posterior(), pairwise.posterior(FRAME.to_numpy())
    np.testing.assert_array_equal(own.mean, inferred.mean)
    np.testing.assert_array_equal(own.stddev, inferred.stddev)
    np.testing.assert_array_equal(own.correlation(GRAPH.id_pairs), inferred.correlation(GRAPH.edges))
    assert pairwise.embedding_.dtype == np.float32
    named = pairwise.posterior(pd.DataFrame(X[:3], index=["x", "y", "z"]))
    numbered = pairwise.posterior(X[:3])
    np.testing.assert_array_equal(named.correlation([("z", "x")]), numbered.correlation([(2, 0)]))


def test_numbers_that_are_a_permutation_are_ids_and_no_positions(pairwise):
    order = np.random.default_rng(1).permutation(60)
    graph = CorrelationGraph(GRAPH.edges, 60)  # vertex i is row i of X
    model = CorrelatedVAE(**quick_pairwise()).fit(X[order], graph=graph, ids=order)
    assert model.ids_.tolist() == order.tolist()
    place = np.argsort(order)
    pairs = np.array([[0, 1], [5, 19], [3, 7]])
    expected = model.posterior(X[order]).correlation(place[pairs])
    np.testing.assert_array_equal(model.posterior().correlation(pairs), expected)
    assert not np.allclose(model.posterior().correlation(pairs), model.posterior(X[order]).correlation(pairs))


def test_features_are_the_models_own():
    for make in (np.array, sparse.csr_array):
        features = make(X)
        model = CorrelatedVAE(**quick_pairwise()).fit(features, graph=GRAPH)
        before = model.posterior().correlation(GRAPH.id_pairs)
        (features if make is np.array else features.data)[:] = 0.0
        np.testing.assert_array_equal(model.posterior().correlation(GRAPH.id_pairs), before)


def test_counts_are_reconstructed_with_their_totals():
    counts = DATA.counts + 1
    model = CorrelatedVAE(likelihood="multinomial", **QUICK).fit(counts)
    np.testing.assert_allclose(model.reconstruct(counts).sum(1), counts.sum(1), rtol=1e-5)
    assert model.total_ == np.median(counts.sum(1))
    assert (model.sample(5, random_state=0).features.sum(1) == round(model.total_)).all()


def test_samples_follow_the_graph_and_the_seed(independent):
    drawn = independent.sample(graph=GRAPH, random_state=0)
    assert drawn.features.shape == (60, 5)
    ends = GRAPH.edges.T
    assert np.corrcoef(drawn.latent[ends[0], 0], drawn.latent[ends[1], 0])[0, 1] > 0.8
    np.testing.assert_array_equal(drawn.features, independent.sample(graph=GRAPH, random_state=0).features)
    assert independent.sample(random_state=0).features.shape == (1, 5)
    with unchecked():
        for wrong, words in (
            ({"n_samples": 3, "graph": GRAPH}, "a row for each of its 60 vertices"),
            ({"n_samples": 0}, "n_samples must be a positive integer, got 0"),
            ({"n_samples": 2.5}, "n_samples must be a positive integer, got 2.5"),
        ):
            with pytest.raises(ValueError, match=words):
                independent.sample(**wrong)
        with pytest.raises(TypeError, match=r"corrvae\.CorrelationGraph, got ndarray"):
            independent.sample(graph=np.eye(3))


def test_the_prior_along_a_cycle_has_the_correlations_of_its_forests(independent):
    copies = 4000  # cycles of four, each with an isolated vertex beside it
    cycles = [(5 * copy + i, 5 * copy + j) for copy in range(copies) for i, j in ((0, 1), (1, 2), (2, 3), (0, 3))]
    graph = CorrelationGraph.from_edges(cycles, n_vertices=5 * copies)
    z = independent.sample(graph=graph, random_state=0).latent.reshape(copies, 5, 2)
    found = np.corrcoef(z[:, :, 0].T)
    # Ends of an edge are joined by it in three of the four forests, and by the other three edges in the fourth.
    assert found[0, 1] == pytest.approx(0.75 * 0.9 + 0.25 * 0.9**3, abs=0.01)
    assert found[0, 4] == pytest.approx(0.0, abs=0.06)


def test_missing_entries_are_left_out():
    holes = X.copy()
    holes[::3, 2] = np.nan
    settings = {**QUICK, "missing": "mask", "validation_fraction": 0.2}
    for features in (holes, sparse.csr_array(holes)):
        model = CorrelatedVAE(**settings).fit(features, graph=GRAPH)
        assert np.isfinite(model.embedding_).all()
        assert np.isfinite(model.score(features, graph=GRAPH))
        assert np.isfinite(model.reconstruct(features)).all()
    with pytest.raises(ValueError, match="row 0, column 2"):
        CorrelatedVAE(**QUICK).fit(holes)


# Runs


def test_the_history_has_every_term_at_every_evaluation(pairwise):
    model = CorrelatedVAE(**quick_pairwise(), validation_fraction=0.2).fit(X, graph=GRAPH)
    assert model.history_["step"].tolist() == [3, 6, 9, 12, 15, 18, 20]  # 48 rows make three batches of 16
    for name in ("reconstruction", "singleton", "edge", "non_edge", "total"):
        assert np.isfinite(model.history_[name]).all()
        assert np.isfinite(model.history_[f"validation_{name}"]).all()
    assert model.best_step_ == model.history_["step"][model.history_["validation_reconstruction"].argmax()]
    assert "validation_total" not in pairwise.history_
    assert pairwise.best_step_ is None


def test_length_is_in_epochs_unless_steps_are_given():
    settings = {name: value for name, value in QUICK.items() if name != "max_steps"}
    assert CorrelatedVAE(**settings, max_epochs=2).fit(X).n_steps_ == 6
    assert CorrelatedVAE(**settings, max_epochs=2, max_steps=5).fit(X).n_steps_ == 5


def test_training_stops_early_and_keeps_the_best():
    settings = {**QUICK, "validation_fraction": 0.3, "patience": 2, "learning_rate": 0.05, "max_steps": 5000}
    model = CorrelatedVAE(**settings).fit(X, graph=GRAPH)
    assert model.stopped_ == "early"
    assert model.n_steps_ < 5000
    steps = model.history_["step"].tolist()
    assert steps.index(model.best_step_) == len(steps) - 3
    assert len(model.embedding_) == 60


def test_weights_of_edges_at_rows_held_out_are_zero():
    model = CorrelatedVAE(**QUICK, validation_fraction=0.3).fit(X, graph=GRAPH)
    assert 0 < (model.weights_ == 0).sum() < GRAPH.n_edges
    np.testing.assert_allclose(model.weights_[model.weights_ != 0], 1.0)


def interrupt_at(step):
    def callback(progress):
        if progress.step == step:
            signal.raise_signal(signal.SIGINT)

    return callback


RICH = {**quick_pairwise(network="bilinear", dropout=0.5, normalize="none"), "normalize": "l2", "dropout": 0.1}
RICH |= {"validation_fraction": 0.2, "tau": "learned"}


def test_a_checkpoint_takes_an_interrupted_fit_to_the_same_end(tmp_path):
    whole, model = CorrelatedVAE(**RICH).fit(X, graph=GRAPH), CorrelatedVAE(**RICH)
    callbacks = [Checkpoint(tmp_path / "state", steps=5)]
    with pytest.warns(UserWarning, match="interrupted at step .* the model is usable"):
        model.fit(X, graph=GRAPH, callbacks=[*callbacks, interrupt_at(7)])
    assert model.stopped_ == "interrupted"
    assert model.n_steps_ in (7, 8)  # the signal came between two steps
    assert model.transform(X).shape == (60, 2)
    model.fit(X, graph=GRAPH, callbacks=callbacks)
    assert (model.stopped_, model.n_steps_) == ("finished", 20)
    np.testing.assert_array_equal(model.embedding_, whole.embedding_)
    np.testing.assert_array_equal(model.history_["total"], whole.history_["total"])
    assert model.best_step_ == whole.best_step_


def weighted(graph):
    return CorrelationGraph(graph.edges, 60, conductances=np.linspace(1, 2, graph.n_edges), vertices=graph.ids)


@pytest.mark.parametrize(
    ("change", "features", "data"),
    [
        ({"random_state": 1}, X, {"graph": GRAPH}),
        ({"learning_rate": 1e-2}, X, {"graph": GRAPH}),
        ({"family": Pairwise(hidden=(8,), gamma_mi=3.0)}, X, {"graph": GRAPH}),
        ({}, X + 1, {"graph": GRAPH}),
        ({}, X, {"graph": CorrelationGraph(GRAPH.edges[:-1], 60)}),
        ({}, X, {"graph": weighted(GRAPH)}),
        ({}, X, {"graph": GRAPH, "sample_weight": np.linspace(1, 2, 60)}),
    ],
)
def test_a_checkpoint_of_another_fit_is_not_resumed(tmp_path, change, features, data):
    callbacks = [Checkpoint(tmp_path / "state")]
    settings = {**quick_pairwise(), "max_steps": 3}
    CorrelatedVAE(**settings).fit(X, graph=GRAPH, callbacks=callbacks)
    with pytest.raises(FolderError, match="checkpoint of another fit"):
        CorrelatedVAE(**{**settings, **change}).fit(features, callbacks=callbacks, **data)
    longer = CorrelatedVAE(**{**settings, "max_steps": 5}).fit(X, graph=GRAPH, callbacks=callbacks)
    assert longer.n_steps_ == 5


def test_own_functions_do_not_change_what_a_fit_is(tmp_path):
    """Two processes have the same function at two places in memory."""

    def fit(n_steps):
        settings = quick_pairwise(network=lambda features, components: PairBilinear(features, components))
        settings |= {"likelihood": lambda features: Gaussian(features), "max_steps": n_steps}
        return CorrelatedVAE(**settings).fit(X, graph=GRAPH, callbacks=[Checkpoint(tmp_path / "state")])

    assert [fit(3).n_steps_, fit(5).n_steps_] == [3, 5]


def test_a_checkpoint_needs_a_seed(tmp_path):
    for random_state in (None, np.random.default_rng(0)):
        with pytest.raises(ValueError, match="integer random_state"):
            CorrelatedVAE(random_state=random_state).fit(X, callbacks=[Checkpoint(tmp_path)])


def test_features_can_be_drawn_anew_for_every_batch():
    seen = set()

    def augment(rows, generator):
        seen.update(rows.tolist())
        return X[rows] + 0.1 * generator.normal(size=(len(rows), 5))

    first, same = (CorrelatedVAE(**QUICK).fit(X, graph=GRAPH, augment=augment) for _ in range(2))
    assert seen == set(range(60))
    np.testing.assert_array_equal(first.embedding_, same.embedding_)
    assert not np.array_equal(first.embedding_, CorrelatedVAE(**QUICK).fit(X, graph=GRAPH).embedding_)


@pytest.mark.parametrize("fitted", ["independent", "pairwise"])
def test_a_fitted_model_can_be_pickled(fitted, request, tmp_path):
    model = request.getfixturevalue(fitted)
    joblib.dump(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model", mmap_mode="r")):
        np.testing.assert_array_equal(copy.transform(X), model.transform(X))
        np.testing.assert_array_equal(*(one.posterior().correlation(GRAPH.id_pairs) for one in (copy, model)))
        assert copy.kneighbors(n_neighbors=2).ids.tolist() == model.kneighbors(n_neighbors=2).ids.tolist()


# Warm starts

WARM = {**QUICK, "warm_start": True}


def test_a_warm_start_continues():
    model = CorrelatedVAE(**WARM, learning_rate=1e-2).fit(X)
    first, weights = model.score(X), {name: tensor.clone() for name, tensor in model.model_.state_dict().items()}
    networks = model.model_
    model.fit(X)
    assert model.score(X) > first
    assert all(torch.equal(tensor, weights[name]) for name, tensor in networks.state_dict().items())  # a copy learned


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"hidden": (9,)}, "hidden"),
        ({"n_components": 3}, "n_components"),
        ({"tau": 0.5}, "tau"),
        ({"likelihood": "bernoulli"}, "likelihood"),
        ({"family": Pairwise(hidden=(9,))}, "family"),
        ({"family": "independent"}, "family"),
    ],
)
def test_a_warm_start_needs_the_same_networks(change, named):
    features = DATA.bits
    model = CorrelatedVAE(**{**quick_pairwise(), **WARM, "family": Pairwise(hidden=(8,)), "likelihood": "gaussian"})
    model.fit(features, graph=GRAPH)
    with pytest.raises(ValueError, match=f"warm_start cannot continue with another {named}"):
        model.set_params(**change).fit(features, graph=GRAPH)


def test_a_warm_start_may_change_what_is_not_in_the_networks():
    model = CorrelatedVAE(**{**WARM, "family": Pairwise(hidden=(8,))}).fit(X, graph=GRAPH)
    model.set_params(family__gamma_mi=7.0, learning_rate=1e-2).fit(X, graph=GRAPH)
    assert model.model_.family.gamma_mi == 7.0
    with pytest.raises(ValueError, match="4 features"):
        model.fit(X[:, :4], graph=GRAPH)
    assert model.set_params(warm_start=False).fit(X[:, :4], graph=GRAPH).n_features_in_ == 4


def held_out(model):
    """The rows whose edges did not count in training."""
    return set(model.graph_.edges[model.weights_ == 0].ravel().tolist())


@pytest.mark.parametrize("random_state", [None, np.random.default_rng(0), 0])
def test_rows_held_out_stay_held_out(random_state, tmp_path):
    settings = {**WARM, "random_state": random_state, "validation_fraction": 0.3, "max_steps": 2}
    model = CorrelatedVAE(**settings).fit(X, graph=GRAPH)
    first = held_out(model)
    assert len(first) > 0
    assert held_out(model.fit(X, graph=GRAPH)) == first
    model.save(tmp_path / "run")
    assert held_out(load(tmp_path / "run").fit(X, graph=GRAPH)) == first


def test_a_second_fit_meets_other_batches(tmp_path):
    def watch(seen):
        return lambda rows, generator: seen.append(rows.tolist()) or X[rows]

    runs = [[], [], []]
    model = CorrelatedVAE(**WARM).fit(X, augment=watch(runs[0]))
    model.save(tmp_path / "run")
    model.fit(X, augment=watch(runs[1]))
    load(tmp_path / "run").fit(X, augment=watch(runs[2]))
    assert runs[0] != runs[1]
    assert runs[1] == runs[2]


def test_a_warm_fit_is_resumed_from_its_checkpoint(tmp_path):
    whole, model = (CorrelatedVAE(**WARM).fit(X) for _ in range(2))
    whole.fit(X)
    callbacks = [Checkpoint(tmp_path / "state", steps=5)]
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(X, callbacks=[*callbacks, interrupt_at(7)])
    model.fit(X, callbacks=callbacks)
    np.testing.assert_array_equal(model.embedding_, whole.embedding_)


# Sentences


def test_the_list_of_parameters_stays_humane():
    parameters = inspect.signature(CorrelatedVAE).parameters.values()
    assert len(parameters) <= 26
    assert [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD] == ["n_components"]


@pytest.mark.parametrize(
    ("parameters", "features", "words"),
    [
        ({"n_components": 0}, X, "n_components must be a positive integer, got 0"),
        ({"max_epochs": 1.5}, X, "max_epochs must be a positive integer"),
        ({"max_steps": True}, X, "max_steps must be a positive integer, got True"),
        ({"warmup_steps": -1}, X, "warmup_steps must be an integer, 0 or more"),
        ({"hidden": (3, 0)}, X, 'hidden must be "auto" or a tuple of positive integers'),
        ({"hidden": 3}, X, 'hidden must be "auto" or a tuple of positive integers'),
        ({"hidden": (True,)}, X, 'hidden must be "auto" or a tuple of positive integers'),
        ({"tau": 1.0}, X, "tau must lie strictly between -1 and 1"),
        ({"tau": "guessed"}, X, "tau must be one of 'auto', 'learned', 'learned_per_dimension'; got 'guessed'"),
        ({"normalize": "raw"}, X, "normalize must be one of 'auto', 'none'"),
        ({"missing": "zero"}, X, "missing must be one of 'error', 'mask'"),
        ({"likelihood": "laplace"}, X, "likelihood must be one of 'auto', 'multinomial'"),
        ({"family": "joined"}, X, r"family must be one of \['independent', 'joint', 'pairwise'\]"),
        ({"family": "pairwise"}, X, r"family='pairwise' learns from edges.*fit\(X, graph=...\)"),
        ({"learning_rate": 0.0}, X, "learning_rate must be positive and finite"),
        ({"learning_rate": np.inf}, X, "learning_rate must be positive and finite"),
        ({"min_stddev": 1e-60}, X, "min_stddev must be positive and finite"),
        ({"dropout": 1.0}, X, r"dropout must be in \[0, 1\), got 1.0"),
        ({"dropout": np.nan}, X, r"dropout must be in \[0, 1\)"),
        ({"validation_fraction": -0.1}, X, r"validation_fraction must be in \[0, 1\)"),
        ({"patience": 3}, X, "patience=3 needs validation rows"),
        ({"device": "foo"}, None, "device='foo' cannot be used here"),
        ({"random_state": -1}, X, "random_state must be a non-negative integer"),
        ({"random_state": "seed"}, X, "random_state must be a non-negative integer"),
        ({"likelihood": "poisson"}, X, "Negative values in data: row 0, column"),
        ({"likelihood": "bernoulli"}, X.clip(0), r"row \d+, column \d+ holds .* \[0, 1\]"),
    ],
)
def test_wrong_parameters_are_named(parameters, features, words):
    with unchecked(), pytest.raises(ValueError, match=words):
        CorrelatedVAE(**{**QUICK, **parameters}).fit(features)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gamma_kl": -1.0}, "gamma_kl must be finite and not negative"),
        ({"gamma_mi": float("inf")}, "gamma_mi must be finite and not negative"),
        ({"pair_batch": 0}, "pair_batch must be positive"),
        ({"network": "convolution"}, r"network must be one of \['bilinear', 'metric', 'perceptron'\]"),
        ({"network": "metric", "normalize": "l2"}, "both must read features in one form"),
        ({"hidden": ()}, "needs at least one hidden layer"),
        ({"normalize": "raw"}, "normalize"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_wrong_options_of_a_family_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        CorrelatedVAE(**{**QUICK, "family": Pairwise(**options)}).fit(X, graph=GRAPH)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"family": 3}, r"corrvae\.model\.families\.Family, got int"),
        ({"family": Pairwise}, "got type"),
        ({"family": Pairwise(network=lambda *_: torch.nn.Linear(2, 2))}, r"a Linear, which is not a corrvae\.nn\.Pair"),
        ({"likelihood": 3}, "likelihood must be a name or a Likelihood class, got int"),
        ({"likelihood": lambda n_features: n_features}, "likelihood returned a int"),
    ],
)
def test_a_class_of_something_else_is_an_error(parameters, words):
    with unchecked(), pytest.raises(TypeError, match=words):
        CorrelatedVAE(**{**QUICK, **parameters}).fit(X, graph=GRAPH)


def test_a_pairwise_model_needs_edges_to_train_on():
    with pytest.raises(ValueError, match="there are none between rows that are trained on"):
        CorrelatedVAE(**quick_pairwise()).fit(X, graph=CorrelationGraph.from_edges([], n_vertices=60))
    with pytest.raises(ValueError, match="lower validation_fraction"):
        CorrelatedVAE(**quick_pairwise(), validation_fraction=0.5).fit(np.eye(2), graph=CorrelationGraph([[0, 1]], 2))


def test_another_number_of_features_is_an_error(independent):
    for method in (independent.transform, independent.reconstruct, independent.posterior, independent.score):
        with pytest.raises(ValueError, match="4 features, but CorrelatedVAE is expecting 5"):
            method(X[:, :4])


def test_a_graph_that_does_not_fit_is_an_error(independent):
    with pytest.raises(ValueError, match="60 vertices, but X has 50 rows"):
        CorrelatedVAE(**QUICK).fit(X[:50], graph=GRAPH)
    with pytest.raises(ValueError, match="60 vertices, but X has 50 rows"):
        independent.score(X[:50], graph=GRAPH)


def test_a_graph_may_come_as_an_adjacency_or_as_pairs(independent):
    for form in (GRAPH.to_scipy(), GRAPH.edges):
        np.testing.assert_array_equal(CorrelatedVAE(**QUICK).fit(X, graph=form).embedding_, independent.embedding_)


def test_a_graph_in_the_place_of_labels_is_an_error(independent):
    with pytest.raises(TypeError, match=r"pass the graph by name: fit\(X, graph=graph\)"):
        CorrelatedVAE(**QUICK).fit(X, GRAPH)
    with pytest.raises(TypeError, match=r"pass the graph by name: score\(X, graph=graph\)"):
        independent.score(X, GRAPH)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_empty_rows_are_said_once(make):
    counts = DATA.counts + 1
    counts[[3, 9]] = 0
    counts[9, :2] = np.nan
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        CorrelatedVAE(**QUICK, likelihood="multinomial", missing="mask").fit(make(counts), graph=GRAPH)
    words = [str(one.message) for one in said]
    assert len(words) == 1
    assert words[0].startswith("2 rows of X hold no entry other than zero (the first is row 3)")


@pytest.mark.parametrize("part", ["training", "validation"])
def test_a_broken_term_is_named_with_the_rows_of_the_users_table(part, tmp_path):
    model = CorrelatedVAE(**QUICK, validation_fraction=0.3)
    held = held_out(CorrelatedVAE(**QUICK, validation_fraction=0.3).fit(X, graph=GRAPH))
    chosen = max(held) if part == "validation" else max(set(GRAPH.edges.ravel().tolist()) - held)

    def augment(rows, generator):
        values = X[rows]
        values[rows == chosen] = np.inf
        return values

    with pytest.raises(TrainingError) as caught:
        model.fit(X, graph=GRAPH, augment=augment, callbacks=[Checkpoint(tmp_path / "state", steps=1)])
    assert chosen in caught.value.rows
    assert set(caught.value.rows) <= {chosen - chosen % 2, chosen - chosen % 2 + 1}  # of an edge, both ends
    assert ("validation" in caught.value.term) == (part == "validation")
    assert not hasattr(model, "model_")


def test_features_that_augment_returns_have_the_shape_of_the_rows():
    with pytest.raises(ValueError, match=r"augment returned features of shape \(\d+, 4\)"):
        CorrelatedVAE(**QUICK).fit(X, augment=lambda rows, generator: X[rows, :4])


def test_the_features_of_a_part_are_rows_of_the_whole():
    table = FeatureTable(X, rows=np.array([7, 3, 5]))
    assert table.numbers(np.array([2, 0])).tolist() == [5, 7]
