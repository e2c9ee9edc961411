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

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.bound import evidence_bound
from corrvae.errors import TrainingError
from corrvae.nn import FeatureTable, PairBilinear
from corrvae.nn.likelihoods import Gaussian
from support.pairs import QUICK, QUICK_PAIRWISE, paired_rows
from support.unchecked import unchecked

DATA = paired_rows()
X, GRAPH = DATA.X, DATA.graph


@pytest.fixture(scope="module")
def independent():
    return CorrelatedVAE(**QUICK).fit(X, graph=GRAPH)


@pytest.fixture(scope="module")
def pairwise():
    return CorrelatedVAE(**QUICK_PAIRWISE).fit(X, graph=GRAPH)


# What it learns


@pytest.mark.parametrize("posterior", ["independent", "pairwise"])
def test_training_raises_the_bound_and_brings_joined_rows_together(posterior):
    settings = {**QUICK_PAIRWISE, "posterior": posterior, "gamma": 0.1, "learning_rate": 1e-2}
    short, long = (CorrelatedVAE(**{**settings, "max_steps": n}).fit(X, graph=GRAPH) for n in (1, 300))
    assert long.score(X, graph=GRAPH) > short.score(X, graph=GRAPH) + 10
    Z = long.transform(X)
    joined = np.linalg.norm(Z[GRAPH.edges[:, 0]] - Z[GRAPH.edges[:, 1]], axis=1).mean()
    others = np.linalg.norm(Z - np.roll(Z, 7, axis=0), axis=1).mean()
    assert joined < 0.3 * others


def test_correlations_are_learned_where_edges_are():
    model = CorrelatedVAE(**{**QUICK_PAIRWISE, "max_steps": 300, "gamma": (0.1, 20.0), "learning_rate": 1e-2})
    posterior = model.fit(X, graph=GRAPH).infer_posterior()
    others = np.column_stack([GRAPH.edges[:, 0], np.roll(GRAPH.edges[:, 1], 5)])
    assert posterior.correlation(GRAPH.edges).mean() > posterior.correlation(others).mean() + 0.05


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "multinomial", "poisson", "negative_binomial"])
@pytest.mark.parametrize("pair_network", [None, "perceptron", "bilinear", "metric"])
def test_every_likelihood_goes_with_every_posterior(likelihood, pair_network):
    features = {"gaussian": X, "bernoulli": DATA.bits}.get(likelihood, DATA.counts)
    own = {} if pair_network is None else {"posterior": "pairwise", "pair_network": pair_network, "pair_hidden": (8,)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some rows of the counts are empty
        model = CorrelatedVAE(likelihood=likelihood, **QUICK, **own).fit(features, graph=GRAPH)
    assert np.isfinite(model.score(features, graph=GRAPH))
    assert model.reconstruct(features).shape == features.shape
    assert model.sample(4, random_state=0).features.shape == (4, 5)


def test_own_classes_can_be_passed():
    own = {"likelihood": partial(Gaussian, floor=0.1), "pair_network": partial(PairBilinear, rank=2)}
    model = CorrelatedVAE(**{**QUICK_PAIRWISE, **own}).fit(X, graph=GRAPH)
    assert model.model_.likelihood.floor == 0.1
    assert model.model_.pair_network.rank == 2


def test_tau_is_learned_if_asked_for(independent):
    assert independent.tau_.tolist() == [0.99, 0.99]
    model = CorrelatedVAE(**{**QUICK, "tau": "learned_per_dimension", "learning_rate": 0.1}).fit(X, graph=GRAPH)
    assert (np.abs(model.tau_ - 0.99) > 1e-4).all()


def test_without_a_graph_it_is_a_vae():
    model = CorrelatedVAE(**QUICK).fit(X)
    assert model.graph_ is model.weights_ is None
    assert (model.history_["edge"] == 0).all()
    assert model.ids_.tolist() == list(range(60))


def test_a_graph_without_edges_is_no_graph():
    empty = CorrelationGraph.from_edges([], n_vertices=60)
    np.testing.assert_array_equal(
        CorrelatedVAE(**QUICK).fit_transform(X, graph=empty), CorrelatedVAE(**QUICK).fit_transform(X)
    )


def test_the_same_seed_gives_the_same_numbers(pairwise):
    again = CorrelatedVAE(**QUICK_PAIRWISE).fit(X, graph=GRAPH)
    np.testing.assert_array_equal(again.embedding_, pairwise.embedding_)
    assert again.score(X, graph=GRAPH) == pairwise.score(X, graph=GRAPH)
    other = CorrelatedVAE(**{**QUICK_PAIRWISE, "random_state": 1}).fit(X, graph=GRAPH)
    assert not np.array_equal(other.embedding_, pairwise.embedding_)


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

    settings = {**QUICK_PAIRWISE, "random_state": None, "validation_fraction": 0.2, "dropout": (0.2, 0.5)}
    with unchecked():  # beartype draws from Python's generator which items of a list to look at
        before, features = outside(), X.copy()
        model = CorrelatedVAE(**settings).fit(features, graph=GRAPH)
        model.score(features, graph=GRAPH)
        model.sample(graph=GRAPH)
        assert outside() == before
    np.testing.assert_array_equal(features, X)


# Properties of the mathematics


def test_relabelling_vertices_changes_nothing(pairwise):
    order = np.random.default_rng(0).permutation(60)
    shuffled = GRAPH[order]
    np.testing.assert_allclose(pairwise.transform(X[order]), pairwise.transform(X)[order], atol=1e-6)
    terms = [
        evidence_bound(pairwise.model_, FeatureTable(features), graph.edges, np.ones(graph.n_edges))
        for features, graph in ((X, GRAPH), (X[order], shuffled))
    ]
    assert terms[0].edge == pytest.approx(terms[1].edge, rel=1e-5)
    assert terms[0].singleton == pytest.approx(terms[1].singleton, rel=1e-5)


def test_swapping_a_pair_changes_nothing(pairwise):
    posterior = pairwise.infer_posterior(X[:20])
    pairs = np.array([[0, 1], [5, 19], [3, 7]])
    np.testing.assert_array_equal(posterior.correlation(pairs), posterior.correlation(pairs[:, ::-1].copy()))


def test_an_isolated_vertex_leaves_weights_and_terms_alone(pairwise):
    larger = CorrelationGraph(GRAPH.edges, 61)
    more = np.vstack([X, np.ones(5)])
    model = CorrelatedVAE(**QUICK_PAIRWISE).fit(more, graph=larger)
    np.testing.assert_array_equal(model.weights_, pairwise.weights_)
    bounds = [
        evidence_bound(pairwise.model_, FeatureTable(features), GRAPH.edges, pairwise.weights_)
        for features in (X, more)
    ]
    assert 60 * bounds[0].edge == pytest.approx(61 * bounds[1].edge, rel=1e-5)
    np.testing.assert_allclose(pairwise.transform(more)[:60], pairwise.transform(X), atol=1e-6)


def test_tau_of_zero_makes_cvae_ind_a_vae():
    with_graph = CorrelatedVAE(**QUICK, tau=0.0).fit(X, graph=GRAPH)
    without = CorrelatedVAE(**QUICK).fit(X)
    np.testing.assert_allclose(with_graph.embedding_, without.embedding_, atol=1e-4)
    assert with_graph.score(X, graph=GRAPH) == pytest.approx(with_graph.score(X), rel=1e-6)


def test_tau_of_zero_leaves_cvae_corr_the_edges_information():
    model = CorrelatedVAE(**QUICK_PAIRWISE, tau=0.0).fit(X, graph=GRAPH)
    correlation = model.infer_posterior().correlation(GRAPH.edges)
    information = -0.5 * np.log1p(-(correlation**2)).sum(1) @ model.weights_ / 60
    assert model.score(X) - model.score(X, graph=GRAPH) == pytest.approx(information, rel=1e-3)


def test_the_score_leaves_gamma_out(pairwise):
    same = pickle.loads(pickle.dumps(pairwise)).set_params(gamma=1000.0)
    assert same.score(X, graph=GRAPH) == pairwise.score(X, graph=GRAPH)


def test_a_weight_counts_as_so_many_rows(independent):
    times = np.random.default_rng(0).integers(0, 4, 60)
    table, repeated = FeatureTable(X), FeatureTable(X.repeat(times, axis=0))
    weighted = evidence_bound(independent.model_, table, sample_weights=times / times.mean(), n_draws=200)
    many = evidence_bound(independent.model_, repeated, n_draws=200)
    assert weighted.singleton == pytest.approx(many.singleton, rel=1e-5)
    assert weighted.reconstruction == pytest.approx(many.reconstruction, rel=0.01)
    assert independent.score(X, sample_weight=np.full(60, 3.0)) == pytest.approx(independent.score(X))


def test_rows_of_weight_zero_are_not_learned():
    two = np.vstack([X + 4, X - 4])
    weight = np.repeat([1.0, 0.0], 60)
    settings = {**QUICK, "max_steps": 300, "learning_rate": 1e-2}
    model = CorrelatedVAE(**settings).fit(two, sample_weight=weight)
    errors = np.abs(model.reconstruct(two) - two).mean(1)
    assert errors[:60].mean() < 2
    assert errors[60:].mean() > 4


# Rows, ids, posteriors, data from the model


def test_every_kind_of_table_gives_the_same_embedding(tmp_path, independent):
    np.save(tmp_path / "x.npy", X)
    names = list("abcde")
    kinds = [
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        pd.DataFrame(X, columns=names),
        pl.DataFrame(X, schema=names),
        np.load(tmp_path / "x.npy", mmap_mode="r"),
        X.astype(np.float32),
    ]
    for features in kinds:
        model = CorrelatedVAE(**QUICK).fit(features, graph=GRAPH)
        np.testing.assert_allclose(model.embedding_, independent.embedding_, atol=1e-4)
        np.testing.assert_allclose(model.transform(features), model.embedding_, atol=1e-6)


def test_ids_are_kept_end_to_end(independent):
    assert independent.ids_.tolist() == GRAPH.ids.tolist()
    frame = pd.DataFrame(X, index=GRAPH.ids, columns=list("abcde")).iloc[::-1]
    model = CorrelatedVAE(**QUICK).fit(frame, graph=GRAPH)
    assert model.ids_.tolist() == model.graph_.ids.tolist() == frame.index.tolist()
    joined = {frozenset(pair) for pair in model.graph_.id_pairs.tolist()}
    assert joined == {frozenset(pair) for pair in GRAPH.id_pairs.tolist()}
    assert CorrelatedVAE(**QUICK).fit(frame).ids_.tolist() == frame.index.tolist()


def test_the_training_rows_posterior_is_at_hand(pairwise):
    own, inferred = pairwise.infer_posterior(), pairwise.infer_posterior(X)
    np.testing.assert_array_equal(own.mean, inferred.mean)
    np.testing.assert_array_equal(own.stddev, inferred.stddev)
    np.testing.assert_array_equal(own.correlation(GRAPH.edges), inferred.correlation(GRAPH.edges))
    assert pairwise.embedding_.dtype == np.float32
    np.testing.assert_array_equal(own.correlation(GRAPH.id_pairs), own.correlation(GRAPH.edges))
    frame = pd.DataFrame(X[:3], index=["x", "y", "z"])
    named = pairwise.infer_posterior(frame)
    np.testing.assert_array_equal(named.correlation([("z", "x")]), named.correlation([(2, 0)]))


def test_features_are_the_models_own():
    features = X.copy()
    model = CorrelatedVAE(**QUICK_PAIRWISE).fit(features, graph=GRAPH)
    before = model.infer_posterior().correlation(GRAPH.edges)
    features[:] = 0.0
    np.testing.assert_array_equal(model.infer_posterior().correlation(GRAPH.edges), before)


@pytest.mark.parametrize("index", [["a"] * 60, [None, *range(59)]])
def test_without_a_graph_an_index_names_nothing(index):
    frame = pd.DataFrame(X, index=pd.Index(index, dtype=object), columns=list("abcde"))
    model = CorrelatedVAE(**QUICK).fit(frame)
    assert model.ids_.tolist() == list(range(60))
    assert np.isfinite(model.score(frame))
    np.testing.assert_array_equal(model.infer_posterior(frame).mean, model.transform(frame))
    with pytest.raises(ValueError, match=r"twice|no id"):
        CorrelatedVAE(**QUICK).fit(frame, graph=GRAPH)


def test_counts_are_reconstructed_with_their_totals():
    counts = DATA.counts + 1
    model = CorrelatedVAE(likelihood="multinomial", **QUICK).fit(counts)
    np.testing.assert_allclose(model.reconstruct(counts).sum(1), counts.sum(1), rtol=1e-5)
    assert (model.sample(5, random_state=0).features.sum(1) == np.median(counts.sum(1)).round()).all()
    assert model.sample(3, totals=[1, 2, 3], random_state=0).features.sum(1).tolist() == [1, 2, 3]


def test_samples_follow_the_graph_and_the_seed(independent):
    drawn = independent.sample(graph=GRAPH, random_state=0)
    assert drawn.features.shape == (60, 5)
    ends = GRAPH.edges.T
    assert np.corrcoef(drawn.latent[ends[0], 0], drawn.latent[ends[1], 0])[0, 1] > 0.9
    np.testing.assert_array_equal(drawn.features, independent.sample(graph=GRAPH, random_state=0).features)
    with pytest.raises(ValueError, match="a row for each of its 60 vertices"):
        independent.sample(3, graph=GRAPH)
    with pytest.raises(ValueError, match="positive"):
        independent.sample(0)


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
    model = CorrelatedVAE(**{**QUICK_PAIRWISE, "evaluate_every": 5, "validation_fraction": 0.2}).fit(X, graph=GRAPH)
    assert model.history_["step"].tolist() == [5, 10, 15, 20]
    for name in ("reconstruction", "singleton", "edge", "non_edge", "total"):
        assert np.isfinite(model.history_[name]).all()
        assert np.isfinite(model.history_[f"validation_{name}"]).all()
    assert model.best_step_ == model.history_["step"][model.history_["validation_total"].argmax()]
    assert "validation_total" not in pairwise.history_
    assert pairwise.best_step_ is None


def test_training_stops_early_and_keeps_the_best():
    settings = {**QUICK, "validation_fraction": 0.3, "patience": 2, "evaluate_every": 10, "learning_rate": 0.05}
    model = CorrelatedVAE(**{**settings, "max_steps": 5000}).fit(X, graph=GRAPH)
    assert model.stopped_ == "early"
    assert model.n_steps_ < 5000
    assert model.n_steps_ == model.best_step_ + 20
    assert len(model.embedding_) == 60


def test_weights_of_edges_at_rows_held_out_are_zero():
    model = CorrelatedVAE(**QUICK, validation_fraction=0.3).fit(X, graph=GRAPH)
    assert 0 < (model.weights_ == 0).sum() < GRAPH.n_edges
    assert set(model.weights_) == {0.0, 1.0}


def interrupt_at(step):
    def callback(progress):
        if progress.step == step:
            signal.raise_signal(signal.SIGINT)

    return callback


def test_a_checkpoint_takes_an_interrupted_fit_to_the_same_end(tmp_path):
    forms = {"normalize": ("l2", "raw"), "dropout": (0.1, 0.5)}
    settings = {**QUICK_PAIRWISE, **forms, "validation_fraction": 0.2, "evaluate_every": 4}
    whole = CorrelatedVAE(**settings).fit(X, graph=GRAPH)
    model = CorrelatedVAE(**settings)
    with pytest.warns(UserWarning, match="interrupted at step 7"):
        model.fit(X, graph=GRAPH, checkpoint=tmp_path / "state", callbacks=[interrupt_at(7)])
    assert (model.stopped_, model.n_steps_) == ("interrupted", 7)
    assert model.transform(X).shape == (60, 2)
    model.fit(X, graph=GRAPH, checkpoint=tmp_path / "state")
    assert (model.stopped_, model.n_steps_) == ("finished", 20)
    np.testing.assert_array_equal(model.embedding_, whole.embedding_)
    np.testing.assert_array_equal(model.history_["total"], whole.history_["total"])


def test_a_warm_start_goes_on():
    model = CorrelatedVAE(**{**QUICK, "warm_start": True, "learning_rate": 1e-2}).fit(X)
    first = model.score(X)
    model.fit(X)
    assert model.score(X) > first
    with pytest.raises(ValueError, match="warm_start cannot go on: hidden changed"):
        model.set_params(hidden=(9,)).fit(X)
    with pytest.raises(ValueError, match="5 features"):
        model.set_params(hidden=(8,)).fit(X[:, :4])
    assert model.set_params(warm_start=False).fit(X[:, :4]).n_features_in_ == 4


def test_features_can_be_drawn_anew_for_every_batch():
    seen = set()

    def redraw(rows, generator):
        seen.update(rows.tolist())
        return X[rows] + 0.1 * generator.normal(size=(len(rows), 5))

    first, same = (CorrelatedVAE(**QUICK).fit(X, graph=GRAPH, redraw=redraw) for _ in range(2))
    assert seen == set(range(60))
    np.testing.assert_array_equal(first.embedding_, same.embedding_)
    assert not np.array_equal(first.embedding_, CorrelatedVAE(**QUICK).fit(X, graph=GRAPH).embedding_)


@pytest.mark.parametrize("fitted", ["independent", "pairwise"])
def test_a_fitted_model_can_be_pickled(fitted, request, tmp_path):
    model = request.getfixturevalue(fitted)
    joblib.dump(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model", mmap_mode="r")):
        np.testing.assert_array_equal(copy.transform(X), model.transform(X))
        correlations = (one.infer_posterior().correlation(GRAPH.edges) for one in (copy, model))
        np.testing.assert_array_equal(*correlations)


# Sentences


@pytest.mark.parametrize(
    ("parameters", "features", "words"),
    [
        ({"tau": 1.0}, X, r"'tau' parameter .* range \(-1.0, 1.0\)"),
        ({"tau": "guessed"}, X, "'tau' parameter"),
        ({"posterior": "pairwise"}, X, r'posterior="pairwise" .* needs a graph'),
        ({"likelihood": "poisson"}, X, "Negative values in data: row 0, column"),
        ({"likelihood": "bernoulli"}, X.clip(0), r"row \d+, column \d+ holds .* \[0, 1\]"),
        ({"patience": 3}, X, "patience=3 needs rows to validate with"),
        ({"dropout": 1.0}, X, "'dropout' parameter"),
    ],
)
def test_what_cannot_be_is_said(parameters, features, words):
    with pytest.raises(ValueError, match=words):
        CorrelatedVAE(**{**QUICK, **parameters}).fit(features)


def test_a_pairwise_model_needs_edges_to_train_on():
    with pytest.raises(ValueError, match="a graph that has some"):
        CorrelatedVAE(**QUICK_PAIRWISE).fit(X, graph=CorrelationGraph.from_edges([], n_vertices=60))


def test_another_number_of_features_is_refused(independent):
    for method in (independent.transform, independent.reconstruct, independent.infer_posterior, independent.score):
        with pytest.raises(ValueError, match="4 features, but CorrelatedVAE is expecting 5"):
            method(X[:, :4])


def test_a_graph_that_does_not_fit_is_refused(independent):
    with pytest.raises(ValueError, match="60 vertices, but X has 50 rows"):
        CorrelatedVAE(**QUICK).fit(X[:50], graph=GRAPH)
    with pytest.raises(ValueError, match="60 vertices, but X has 50 rows"):
        independent.score(X[:50], graph=GRAPH)
    with pytest.raises(TypeError, match="from_scipy"):
        CorrelatedVAE(**QUICK).fit(X, graph=GRAPH.to_scipy())


def test_empty_rows_and_large_batches_are_said_once():
    counts = DATA.counts.copy()
    counts[[3, 9]] = 0
    counts[0] = 1
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        CorrelatedVAE(**{**QUICK, "vertex_batch": 100, "likelihood": "multinomial"}).fit(counts, graph=GRAPH)
    assert sum("rows of X hold zeros only" in str(one.message) for one in said) == 1
    assert sum("vertex_batch=100 is more than the 60 rows" in str(one.message) for one in said) == 1


def test_a_broken_term_is_named_with_its_rows():
    def redraw(rows, generator):
        return np.full((len(rows), 5), np.inf)

    with pytest.raises(TrainingError, match="reconstruction"):
        CorrelatedVAE(**QUICK).fit(X, redraw=redraw)
