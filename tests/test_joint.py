"""`CorrelatedVAE(family="joint")`: vertices without features, new points with links, saving and resuming."""

import numpy as np
import pytest

from corrvae import CorrelatedVAE, CorrelationGraph, Joint, load
from corrvae.io import Features
from corrvae.training import Checkpoint
from support.commands import rows, run
from support.fits import SMALL, write_points

QUICK = {"n_components": 3, "hidden": (8,), "max_steps": 12, "batch_size": 16, "edge_batch_size": 16, "random_state": 0}
NAMES = [f"p{k}" for k in range(40)]
X = np.random.default_rng(0).poisson(0.7, (40, 6)).astype(float)
X[:, 0] += 1
PATH = [(f"p{k}", f"p{k + 1}") for k in range(39)]
LINKS = [*PATH, ("p0", "p9"), ("club", "p3"), ("club", "p20"), ("friend", "club")]


def fitted(**changes) -> CorrelatedVAE:
    return CorrelatedVAE(**{**QUICK, "family": "joint", **changes}).fit(X, graph=LINKS, ids=NAMES)


@pytest.mark.parametrize("block_size", [1, 7, None])
def test_vertices_without_features_are_kept(block_size, tmp_path):
    model = fitted(family=Joint(block_size=block_size, n_forests=3))
    assert model.ids_.tolist() == [*NAMES, "club", "friend"]
    assert model.embedding_.shape == model.stddev_.shape == (42, 3)
    assert model.graph_.n_vertices == 42
    assert model.fit_transform(X, graph=LINKS, ids=NAMES).shape == (40, 3)
    np.testing.assert_allclose(model.embedding_[-1], 0.9 * model.embedding_[-2], atol=1e-5)  # a leaf without features
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    np.testing.assert_array_equal(again.posterior().mean, model.embedding_)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert "club" not in again.kneighbors(ids=["club"], n_neighbors=41).ids
    assert again.reconstruct(ids=["club", "p0"]).shape == (2, 6)
    assert again.recommend(ids=["club", "p0"], k=2, exclude_seen=True).ids.shape == (2, 2)
    correlation = again.posterior().correlation([("club", "friend"), ("p0", "friend")])
    assert (correlation[0] > np.abs(correlation[1])).all()
    assert np.isfinite(again.score(Features(X, np.array(NAMES, dtype=object)), graph=model.graph_))


def test_adaptive_forests_take_nothing_from_edges_of_vertices_without_features():
    support = fitted(forests="adaptive").edge_support_
    bare = np.isin(support.id_pairs, ["club", "friend"]).any(axis=1)
    assert np.all(support.edge_terms[bare] == 0.0)
    assert np.all(support.conductances[bare] == 1.0)
    assert np.all(support.edge_terms[~bare] != 0.0)


def test_other_families_leave_them_out():
    with pytest.warns(UserWarning, match="2 ids in the graph but not in the features"):
        model = fitted(family="independent")
    assert len(model.ids_) == 40
    with pytest.raises(ValueError, match="posteriors depend on features alone"):
        model.posterior(graph=LINKS)


def test_the_posterior_of_training_vertices_is_that_of_their_graph_joined_anew():
    model = fitted()
    joined = model.posterior(Features(X, np.array(NAMES, dtype=object)), graph=LINKS)
    assert joined.ids.tolist() == NAMES
    np.testing.assert_allclose(joined.mean, model.embedding_[:40], atol=0.35)  # other forests
    tree = CorrelatedVAE(**QUICK, family="joint").fit(X, graph=PATH, ids=NAMES)
    exact = tree.posterior(Features(X, np.array(NAMES, dtype=object)), graph=PATH)
    np.testing.assert_allclose(exact.mean, tree.embedding_, atol=1e-5)


def test_new_points_are_conditioned_on_their_links():
    model = CorrelatedVAE(**{**QUICK, "max_steps": 150}, family="joint").fit(X, graph=PATH, ids=NAMES)
    new = Features(X[:2], np.array(["ann", "bob"], dtype=object))
    alone = model.posterior(new)
    linked = model.posterior(new, graph=[("ann", "p7"), ("cem", "bob"), ("ann", "bob")])
    assert linked.ids.tolist() == ["ann", "bob", "cem"]
    assert (linked.stddev[:2] <= alone.stddev).all()
    assert (linked.stddev[0] < alone.stddev[0]).any()
    assert model.transform(new, graph=[("ann", "p7")]).shape == (2, 3)
    np.testing.assert_allclose(model.transform(new, graph=[("ann", "p7")])[1], alone.mean[1], atol=1e-6)
    # a vertex known by one link alone: the prior given its neighbour
    every = model.posterior(graph=[("dee", "p7")])
    assert every.ids.tolist() == [*NAMES, "dee"]
    np.testing.assert_allclose(every.mean[-1], 0.9 * model.embedding_[7], atol=1e-5)
    np.testing.assert_allclose(every.stddev[-1] ** 2, 0.19 + 0.81 * model.stddev_[7] ** 2, atol=1e-5)
    assert model.kneighbors(graph=[("dee", "p7")], ids="dee", n_neighbors=2).ids.shape == (2,)
    assert len(model.score_pairs([("ann", "p7"), ("ann", "p30")], new, graph=[("ann", "p7")]).scores) == 2


def test_points_are_compared_by_the_distance_of_their_means():
    model, pairs = fitted(), [("p0", "p1"), ("p0", "club")]
    found = [model.kneighbors(n_neighbors=2), model.score_pairs(pairs), model.rank_pairs(pairs)]
    found.append(model.match(["p0"], ["p1", "p2"]))
    assert {each.metric for each in found} == {"mean_distance"}
    means = model.embedding_[[0, 1, 40]].astype(float)
    np.testing.assert_allclose(found[1].scores, np.square(means[0] - means[1:]).sum(axis=1), rtol=1e-5)
    assert model.score_pairs(pairs, metric="expected_distance").metric == "expected_distance"


def test_rows_without_ids_are_points_by_themselves():
    model = fitted()
    found = model.posterior(X[:3], graph=CorrelationGraph([[0, 1]], 3))
    np.testing.assert_allclose(found.mean[2], model.transform(X[2:3])[0], atol=1e-6)
    assert not np.allclose(found.mean[0], model.transform(X[:1])[0])


def test_without_a_graph_it_is_a_plain_autoencoder():
    model, plain = (CorrelatedVAE(**{**QUICK, "family": family}).fit(X) for family in ("joint", "independent"))
    np.testing.assert_allclose(model.embedding_, plain.embedding_, atol=1e-6)


@pytest.mark.parametrize("block_size", [1, 9, None])
def test_a_resumed_run_ends_in_the_same_bits(block_size, tmp_path):
    settings = {**QUICK, "family": Joint(block_size=block_size, n_forests=2)}
    whole = CorrelatedVAE(**settings).fit(X, graph=LINKS, ids=NAMES)
    CorrelatedVAE(**{**settings, "max_steps": 5}).fit(
        X, graph=LINKS, ids=NAMES, callbacks=[Checkpoint(tmp_path / "c", steps=5)]
    )
    resumed = CorrelatedVAE(**settings).fit(X, graph=LINKS, ids=NAMES, callbacks=[Checkpoint(tmp_path / "c", steps=5)])
    np.testing.assert_array_equal(resumed.embedding_, whole.embedding_)


@pytest.mark.filterwarnings("ignore:.*")
def test_validation_and_a_learned_tau():
    model = fitted(tau="learned_per_dimension", validation_fraction=0.2, family=Joint(block_size=None, n_forests=2))
    assert "validation_reconstruction" in model.history_.columns
    assert len(set(model.tau_.tolist())) == 3


def test_the_command_line(tmp_path):
    features, graph = write_points(tmp_path)
    graph.write_text(graph.read_text() + "club,p3\nclub,p9\n")
    result = run("fit", features, graph, "--out", tmp_path / "run", "--family", "joint", "--n-forests", "2", *SMALL)
    assert result.exit_code == 0, result.output
    assert rows("embed", tmp_path / "run")[-1]["id"] == "club"
    more = tmp_path / "more.csv"
    more.write_text("source,target\nzoe,p3\n")
    assert rows("embed", tmp_path / "run", "--graph", more)[-1]["id"] == "zoe"
    assert len(rows("neighbors", tmp_path / "run", "--graph", more, "--ids", "zoe", "-k", "3")) == 3
    assert len(rows("links", tmp_path / "run", "--graph", more, "--top", "5")) == 5
    assert (
        "is an option of --family joint"
        in run("fit", features, graph, "--out", tmp_path / "x", "--n-forests", "2").stderr
    )


def test_an_independent_model_is_propagated_without_training_again(tmp_path):
    graph = CorrelationGraph.from_edges([*PATH, ("p0", "p9")], vertices=NAMES)
    independent, joint = (
        CorrelatedVAE(**QUICK, family=family).fit(X, graph=graph, ids=NAMES) for family in ("independent", "joint")
    )
    before, propagated = independent.embedding_.copy(), independent.propagate()
    np.testing.assert_allclose(propagated.embedding_, joint.embedding_, atol=1e-6)
    np.testing.assert_array_equal(independent.posterior().mean, before)
    propagated.save(tmp_path / "run")
    np.testing.assert_array_equal(load(tmp_path / "run").posterior().mean, propagated.embedding_)
    with pytest.raises(ValueError, match="can be propagated"):
        joint.propagate()


def test_groups_stay_groups(tmp_path):
    graph = CorrelationGraph.from_groups({"house": ["p0", "p1", "p2"]})
    model = CorrelatedVAE(**QUICK, family="joint").fit(X, graph=graph, ids=NAMES)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.ids_[again.graph_.is_group].tolist() == ["house"]
    assert "house" not in again.kneighbors(ids=["p0"], n_neighbors=40).ids
    assert "house" in again.kneighbors(ids=["p0"], n_neighbors=40, candidates=again.ids_).ids
    assert again.posterior(graph=[("zoe", "house")]).ids.tolist()[-2:] == ["house", "zoe"]
