from dataclasses import replace

import numpy as np
import pytest

from corrvae import CorrelatedVAE
from corrvae.experiments import matching
from corrvae.experiments.outcomes import Run
from corrvae.experiments.recipes import Entry
from corrvae.experiments.small import small_world
from corrvae.tasks import embedding_scores, halve_users, score_matching
from support.experiments import COUNTS, PAIRWISE, WORLD
from support.published import archive, csv_lines

MODELS = {
    "vae": Entry("vae", "VAE", "vae", COUNTS),
    "ind": Entry("ind", "CVAE_ind", "cvae", {**COUNTS, "normalize": "l2"}, "log_odds", redraw=True),
    "corr": Entry("corr", "CVAE_corr", "cvae", {**COUNTS, **PAIRWISE}, redraw=True),
    "lsa": Entry("lsa", "LSA", "principal_components", {"n_components": 3, "center": False}, "cosine"),
}


@pytest.mark.parametrize("model", MODELS)
def test_test_users_do_not_touch_training(model, monkeypatch):
    """Other users to test on: the same networks, to the bit, and the same scores on the validation users."""
    learned, fit = [], matching.fit_estimator
    monkeypatch.setattr(
        matching, "fit_estimator", lambda *given, **named: learned.append(fit(*given, **named)) or learned[-1]
    )
    data = matching.load(WORLD, 0)
    others = halve_users(small_world(12, 30, random_state=9).items, random_state=9)
    outcomes = [matching.judge(MODELS[model], part, WORLD, Run(0)) for part in (data, replace(data, test=others))]
    validation = [
        {name: score for name, score in outcome.scores.items() if name.startswith("validation_")}
        for outcome in outcomes
    ]
    assert validation[0] == validation[1]
    assert outcomes[0].history == outcomes[1].history
    assert outcomes[0].scores != outcomes[1].scores
    if learned:
        assert np.array_equal(learned[0].embedding_, learned[1].embedding_)
        weights = [model.model_.state_dict() for model in learned]
        assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])


def test_parts_share_no_user():
    data = matching.load({**WORLD, "n_users": 100}, 0)
    assert (data.train.n_users, data.validation.n_users, data.test.n_users) == (85, 5, 10)
    world = small_world(100, 30, random_state=np.random.default_rng(0)).items.toarray()
    whole = [users_of(part) for part in (data.train, data.validation, data.test)]
    # every user once: some rows are equal, so they are counted
    assert sorted(map(tuple, np.concatenate(whole).tolist())) == sorted(map(tuple, world.tolist()))


def users_of(part):
    """Put the halves of each user together again."""
    rows, edges = part.features.toarray(), part.graph.edges
    return rows[edges[:, 0]] + rows[edges[:, 1]]


def test_each_seed_has_other_test_users(tmp_path, monkeypatch):
    """Of data that are read, which are the same for every seed."""
    archive(tmp_path / "ml-1m.zip", {"ml-1m/ratings.csv": csv_lines()})
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    parts = [matching.load({"name": "ml-1m", "min_ratings": 10}, seed).train.features.toarray() for seed in (0, 1, 0)]
    assert np.array_equal(parts[0], parts[2])
    assert not np.array_equal(parts[0], parts[1])


def test_the_fingerprint_covers_all_parts():
    data = matching.load(WORLD, 0)
    others = halve_users(small_world(12, 30, random_state=9).items, random_state=9)
    variants = (data, *(replace(data, **{part: others}) for part in ("train", "validation", "test")))
    codes = {matching.judge(MODELS["lsa"], variant, WORLD, Run(0)).data["fingerprint"] for variant in variants}
    assert len(codes) == len(variants)


def test_an_independent_model_is_scored_as_its_embedding():
    data = matching.load({**WORLD, "n_users": 100}, 0)
    model = CorrelatedVAE(**COUNTS, random_state=0).fit(data.train.features, graph=data.train.graph)
    found = matching.match_by_model(model, "expected_distance", data.test)
    posterior = model.infer_posterior(data.test.features)
    expected = score_matching(embedding_scores(posterior.mean, posterior.stddev), data.test.n_users)
    assert found.reciprocal_rank == pytest.approx(expected.reciprocal_rank)
    assert (found.hits_1, found.hits_10, found.n_pairs) == (expected.hits_1, expected.hits_10, 10)


@pytest.mark.parametrize("metric", ["expected_distance", "log_odds"])
def test_a_pairwise_model_is_scored_by_all_its_pairs(metric):
    data = matching.load({**WORLD, "n_users": 100}, 0)
    settings = {**COUNTS, **PAIRWISE}
    model = CorrelatedVAE(**settings, random_state=0).fit(data.train.features, graph=data.train.graph)
    pairs = np.array([(i, j) for i in range(20) for j in range(20) if i != j])
    scores = np.zeros((20, 20))
    sign = 1.0 if metric == "log_odds" else -1.0
    scores[pairs[:, 0], pairs[:, 1]] = sign * model.score_pairs(pairs, data.test.features, metric=metric).scores
    expected = score_matching(lambda rows: scores[rows], 10)
    found = matching.match_by_model(model, metric, data.test)
    assert found.reciprocal_rank == pytest.approx(expected.reciprocal_rank)
    assert (found.hits_1, found.hits_10, found.n_pairs) == (expected.hits_1, expected.hits_10, 10)


def test_the_sketch_is_of_test_users():
    outcome = matching.run(MODELS["ind"], {**WORLD, "n_users": 100}, Run(0))
    assert (len(outcome.sketches.points), len(outcome.sketches.edges), len(outcome.sketches.linked)) == (20, 10, 10)
    assert outcome.sketches.metric == "link log-odds"
    assert sum(outcome.sketches.weight_counts) == 85


def test_movielens_is_read_and_named(tmp_path, monkeypatch):
    archive(tmp_path / "ml-20m.zip", {"ml-20m/ratings.csv": csv_lines()})
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    data = matching.load({"name": "ml-20m", "min_ratings": 10}, 0)
    assert data.name == "MovieLens-20M"
    outcome = matching.judge(MODELS["lsa"], data, {"name": "ml-20m", "min_ratings": 10}, Run(0))
    assert outcome.data["name"] == "MovieLens-20M"
    assert outcome.data["test_users"] == 4


def test_what_needs_the_users_in_training_is_refused():
    with pytest.raises(ValueError, match="'graph_sage' cannot embed users"):
        matching.run(Entry("sage", "GraphSAGE", "graph_sage"), WORLD, Run(0))
