"""scikit-learn's contract: its own checks, pipelines, grid searches with a graph, clones and frames."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from corrvae import CorrelatedVAE, CorrelationGraph, Independent, Pairwise
from support.unchecked import unchecked

QUICK = {"hidden": (4,), "max_steps": 3, "batch_size": 8, "device": "cpu", "random_state": 0}
PAIRS = Pairwise(hidden=(4,), gamma_mi=0.5)

# Training draws rows at random, so a weight of two and a row given twice agree in expectation, not in every digit; that
# they agree in expectation is tested with the estimator.
STOCHASTIC = dict.fromkeys(
    ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"],
    "rows are drawn at random",
)


class PathVAE(CorrelatedVAE):
    """The same along a path through the rows: scikit-learn's checks know nothing of graphs."""

    def fit(self, X, y=None, *, sample_weight=None):
        try:
            n_rows = _num_samples(X)
        except TypeError:  # to be told by the estimator
            n_rows = 0
        path = CorrelationGraph([(row, row + 1) for row in range(n_rows - 1)], n_rows) if n_rows else None
        return super().fit(X, y, graph=path, sample_weight=sample_weight)


NO_EDGE = {"check_fit2d_1sample": "a single row has no edge to learn from"}


@parametrize_with_checks(
    [
        CorrelatedVAE(2, **QUICK),
        CorrelatedVAE(2, family=Independent(), likelihood="poisson", normalize="log1p", tau="learned", **QUICK),
        CorrelatedVAE(2, missing="mask", validation_fraction=0.2, dropout=0.1, **QUICK),
        PathVAE(2, family=PAIRS, **QUICK),
    ],
    expected_failed_checks=lambda estimator: STOCHASTIC | (NO_EDGE if isinstance(estimator, PathVAE) else {}),
)
def test_scikit_learns_own_checks(estimator, check):
    with unchecked():  # they pass what no annotation allows
        check(estimator)


def data(n_rows=60, seed=0):
    """Rows that come in similar pairs, and the graph that joins these."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n_rows // 2, 5)), 2, axis=0) + 0.1 * rng.normal(size=(n_rows, 5))
    names = [f"v{row}" for row in range(n_rows)]
    pairs = [(names[row], names[row + 1]) for row in range(0, n_rows, 2)]
    return X, CorrelationGraph.from_edges(pairs, vertices=names)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# Parameters


def test_options_of_the_family_are_parameters():
    model = CorrelatedVAE(2, family=Pairwise(gamma_mi=3.0))
    assert model.get_params()["family__gamma_mi"] == 3.0
    assert model.set_params(family__gamma_mi=5.0, family__network="metric").family.gamma_mi == 5.0
    assert "family__gamma_mi" not in CorrelatedVAE(family="pairwise").get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'gamma'"):
        model.set_params(family__gamma=1.0)
    assert repr(model) == "CorrelatedVAE(family=Pairwise(gamma_mi=5.0, network='metric'), n_components=2)"


def test_a_clone_has_the_parameters_and_has_learned_nothing():
    X, graph = data()
    model = CorrelatedVAE(2, family=Pairwise(hidden=(4,), gamma_mi=2.0), **QUICK).fit(X, graph=graph)
    copy = clone(model)
    assert repr(copy.get_params()) == repr(model.get_params())
    assert copy.family is not model.family
    assert not hasattr(copy, "model_")
    np.testing.assert_array_equal(copy.fit(X, graph=graph).embedding_, model.embedding_)


def test_a_fit_leaves_the_family_of_the_user_as_it_is():
    X, graph = data()
    family = Pairwise(hidden=(4,))
    model = CorrelatedVAE(2, family=family, **QUICK).fit(X, graph=graph)
    assert model.family is family
    assert list(family.parameters()) == []
    assert model.model_.family is not family
    other = CorrelatedVAE(2, family=family, **QUICK).fit(X, graph=graph)  # one object for two models
    assert other.model_.family is not model.model_.family


# Graphs in searches and pipelines


def test_a_grid_search_slices_the_graph_along_with_the_rows(routing):
    X, graph = data()
    search = GridSearchCV(CorrelatedVAE(2, family=PAIRS, **QUICK), {"family__gamma_mi": [0.1, 10.0]}, cv=3)
    search.fit(X, graph=graph)
    assert search.best_estimator_.graph_ == graph
    assert search.best_estimator_.ids_.tolist() == graph.ids.tolist()
    assert search.best_params_.keys() == {"family__gamma_mi"}
    folds = np.array([search.cv_results_[f"split{fold}_test_score"] for fold in range(3)])
    assert np.isfinite(folds).all()
    assert (folds[:, 0] != folds[:, 1]).all()
    # The first fold's score is that of a model fitted on the other rows and the graph among them.
    train, test = np.arange(20, 60), np.arange(20)
    model = clone(search.estimator).set_params(family__gamma_mi=0.1).fit(X[train], graph=graph[train])
    assert folds[0][0] == pytest.approx(model.score(X[test], graph=graph[test]), rel=1e-6)
    assert PAIRS.gamma_mi == 0.5


def test_a_grid_search_chooses_among_families(routing):
    X, graph = data()
    choices = ["independent", Independent(), "pairwise", PAIRS]
    search = GridSearchCV(CorrelatedVAE(2, **QUICK), {"family": choices}, cv=2).fit(X, graph=graph)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert scores[0] == scores[1]


def test_scores_of_a_cross_validation_use_the_graph(routing):
    X, graph = data()
    with_graph = cross_val_score(CorrelatedVAE(2, **QUICK), X, cv=3, params={"graph": graph})
    without = cross_val_score(CorrelatedVAE(2, **QUICK), X, cv=3)
    assert (with_graph != without).all()


def test_a_frame_and_its_graph_are_matched_by_id_in_every_fold(routing):
    X, graph = data()
    frame = pd.DataFrame(X, index=graph.ids, columns=list("abcde"))
    shuffled = frame.sample(frac=1.0, random_state=0)
    scores = cross_val_score(CorrelatedVAE(2, **QUICK), frame, cv=3, params={"graph": graph})
    assert np.isfinite(scores).all()
    assert CorrelatedVAE(2, **QUICK).fit(shuffled, graph=graph).ids_.tolist() == shuffled.index.tolist()


def test_a_frame_in_another_order_than_the_graph_needs_the_graph_in_its_own(routing):
    X, graph = data()
    frame = pd.DataFrame(X, index=graph.ids, columns=list("abcde")).sample(frac=1.0, random_state=0)
    ordered = graph.subgraph(frame.index)
    scores = cross_val_score(CorrelatedVAE(2, **QUICK), frame, cv=3, params={"graph": ordered}, error_score="raise")
    assert np.isfinite(scores).all()
    with pytest.raises(ValueError, match=r"do not match the graph's vertices.*graph\.subgraph\(frame\.index\)"):
        cross_val_score(CorrelatedVAE(2, **QUICK), frame, cv=3, params={"graph": graph}, error_score="raise")


def test_a_scaler_that_returns_frames_keeps_the_ids():
    X, graph = data()
    frame = pd.DataFrame(X, index=graph.ids, columns=list("abcde")).iloc[::-1]
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), CorrelatedVAE(2, **QUICK))
    assert pipeline.fit(frame, correlatedvae__graph=graph)[-1].ids_.tolist() == frame.index.tolist()
    plain = make_pipeline(StandardScaler(), CorrelatedVAE(2, **QUICK))
    assert plain.fit(frame, correlatedvae__graph=graph)[-1].ids_.tolist() == graph.ids.tolist()


def test_a_pipeline_passes_the_graph_on(routing):
    X, graph = data()
    pipeline = make_pipeline(StandardScaler(), CorrelatedVAE(2, family=PAIRS, **QUICK)).fit(X, graph=graph)
    assert pipeline[-1].graph_ == graph
    assert pipeline.transform(X).shape == (60, 2)
    assert np.isfinite(pipeline.score(X, graph=graph))


def test_a_pipeline_without_routing_takes_the_graph_by_name():
    X, graph = data()
    pipeline = make_pipeline(StandardScaler(), CorrelatedVAE(2, **QUICK))
    Z = pipeline.fit_transform(X, correlatedvae__graph=graph)
    np.testing.assert_array_equal(Z, pipeline.transform(X))


def test_weights_and_ids_are_routed_on_request(routing):
    X, graph = data()
    weight = np.linspace(0.5, 2.0, 60)
    model = CorrelatedVAE(2, **QUICK).set_fit_request(sample_weight=True, ids=True)
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
    fitted = pipeline.fit(X, graph=graph, sample_weight=weight, ids=graph.ids[::-1])[-1]
    assert fitted.ids_.tolist() == graph.ids[::-1].tolist()
    same = CorrelatedVAE(2, **QUICK).fit(
        StandardScaler().fit_transform(X), graph=graph, ids=graph.ids[::-1], sample_weight=weight
    )
    np.testing.assert_array_equal(fitted.embedding_, same.embedding_)


# What comes out, and what stays


def test_frames_come_out_with_names_and_index():
    X, graph = data()
    frame = pd.DataFrame(X, index=graph.ids, columns=list("abcde"))
    model = CorrelatedVAE(2, **QUICK).set_output(transform="pandas").fit(frame, graph=graph)
    out = model.transform(frame)
    assert out.index.tolist() == graph.ids.tolist()
    assert out.columns.tolist() == model.get_feature_names_out().tolist() == ["correlatedvae0", "correlatedvae1"]


@pytest.mark.parametrize(
    ("change", "features", "options"),
    [
        ({"likelihood": "poisson"}, data()[0][:, :3], {}),
        ({"family": "pairwise", "hidden": (3,)}, data()[0][:, :3], {}),
        ({}, data()[0][:, :3], {"graph": data(80)[1]}),
        ({}, data()[0][:, :3], {"sample_weight": np.ones(3)}),
        ({"n_components": 3}, data()[0], {"callbacks": [lambda progress: 1 // 0]}),
        ({"warm_start": True}, data()[0], {"callbacks": [lambda progress: 1 // 0]}),
    ],
)
def test_a_fit_that_fails_leaves_a_fitted_model_as_it_was(change, features, options):
    X, graph = data()
    if "warm_start" in change:  # which needs the same columns
        features = pd.DataFrame(features, columns=list("abcde"))
    model = CorrelatedVAE(2, **QUICK).fit(pd.DataFrame(X, columns=list("abcde")), graph=graph)
    before = dict(vars(model))
    with pytest.raises((ValueError, ZeroDivisionError)):
        model.set_params(**change).fit(features, **options)
    model.set_params(**{name: before[name] for name in change})
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.transform(pd.DataFrame(X, columns=list("abcde"))), model.embedding_)


def test_a_refit_on_an_array_forgets_the_columns_of_a_frame():
    X, _ = data()
    model = CorrelatedVAE(2, **QUICK).fit(pd.DataFrame(X, columns=list("abcde")))
    assert model.feature_names_in_.tolist() == list("abcde")
    assert not hasattr(model.fit(X[:, :3]), "feature_names_in_")
    assert model.n_features_in_ == 3
