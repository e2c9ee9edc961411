import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from corrvae.answers.run import Run
from corrvae.pictures import run_view as module
from corrvae.pictures.run_view import principal_plane, view_run
from support.runs import N_POINTS, literal_parts, make_files, make_graph, trained


def test_the_plane_is_that_of_the_principal_components():
    X = np.random.default_rng(0).normal(size=(60, 5)) * [5, 3, 1, 1, 1]
    shown = np.array([3, 8, 50])
    places, share = principal_plane(X, shown)
    reference = PCA(2).fit(X)
    expected = reference.transform(X)[shown]
    np.testing.assert_allclose(np.abs(places), np.abs(expected), rtol=1e-8)
    assert share == pytest.approx(reference.explained_variance_ratio_.sum())


@pytest.mark.parametrize("dim", [1, 2])
def test_few_dimensions_are_enough_for_a_plane(dim):
    places, share = principal_plane(np.arange(6.0).reshape(-1, dim), np.arange(6 // dim))
    assert places.shape == (6 // dim, 2)
    assert share == pytest.approx(1.0)


def test_what_is_shown_is_what_there_is():
    view = view_run(Run(trained()), n_clusters=3)
    assert view.shown.tolist() == list(range(N_POINTS))
    assert view.edges.tolist() == make_graph().edges.tolist()
    assert set(view.colouring.names.values()) == {"cluster 0", "cluster 1", "cluster 2"}
    spread = np.sqrt((trained().stddev_.astype(float) ** 2).mean(axis=1))
    assert view.certainty.most[0] == spread.argmin()
    assert view.certainty.least[0] in np.flatnonzero(np.isclose(spread, spread.max()))


@pytest.mark.parametrize("posterior", ["independent", "pairwise"])
def test_scores_of_links_are_those_of_the_model(posterior):
    model = trained(posterior)
    links = view_run(Run(model)).links
    assert links is not None
    assert not links.held_out
    expected = sum(literal_parts(model, links.metric, model.graph_.edges))
    np.testing.assert_allclose(links.linked, expected, rtol=1e-4, atol=1e-5)
    assert len(links.unlinked) == 200


def test_links_that_training_has_not_seen_are_preferred(monkeypatch):
    monkeypatch.setattr(module, "_FEWEST_HELD_OUT", 3)
    model = trained(validation=0.3)
    links = view_run(Run(model)).links
    assert links is not None
    assert links.held_out
    assert len(links.linked) == (model.weights_ == 0).sum()


def test_a_calibration_is_judged_on_other_pairs_than_it_was_learned_from():
    generator = np.random.default_rng(0)
    linked, unlinked = generator.normal(1, 1, 4000), generator.normal(-1, 1, 4000)
    predicted, observed, counts = module._calibration(linked, unlinked, "log_odds", True, generator)
    np.testing.assert_allclose(predicted, observed, atol=0.08)
    assert counts.sum() == 4000
    assert len(module._calibration(linked[:10], unlinked, "log_odds", True, generator)[0]) == 0


def test_large_runs_are_cut_down(monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 20)
    monkeypatch.setattr(module, "MOST_EDGES", 5)
    view = view_run(Run(trained()), n_clusters=2)
    assert view.places.shape == (20, 2)
    assert len(view.colouring.groups) == 20
    assert len(view.edges) <= 5
    linked = {tuple(edge) for edge in make_graph().edges.tolist()}
    assert {tuple(view.shown[edge].tolist()) for edge in view.edges} <= linked


def test_a_run_without_a_graph_or_features_can_be_seen(tmp_path):
    assert view_run(Run(trained(graph=False))).links is None
    bare = view_run(Run.open(make_files(tmp_path, "pairwise", store_features=False).run))
    assert bare.links is not None
    assert bare.links.metric == "log_odds"


def test_a_map_by_umap_is_drawn_where_umap_puts_points(monkeypatch):
    class StandIn:
        def __init__(self, *, n_components, random_state):
            assert (n_components, random_state) == (2, 7)

        def fit_transform(self, means):
            return means[:, 1::-1] * np.float32(2)

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=StandIn))
    model = trained()
    view = view_run(Run(model), projection="umap", seed=7)
    np.testing.assert_array_equal(view.places, 2 * model.embedding_[:, [1, 0]].astype(float))
    assert (view.projection, view.share) == ("umap", None)


def test_umap_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ValueError, match="pip install umap-learn"):
        view_run(Run(trained()), projection="umap")
    with pytest.raises(ValueError, match='"pca" or "umap", not \'tsne\''):
        view_run(Run(trained()), projection="tsne")
