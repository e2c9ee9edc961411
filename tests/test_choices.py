import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from corrvae import CorrelatedVAE, CorrelationGraph, load
from corrvae.choices import PAPER, choose, find_problems, make_scaling
from corrvae.data import Table
from corrvae.model import Posterior
from corrvae.training import Checkpoint, History

RNG = np.random.default_rng(0)
AUTOMATIC = CorrelatedVAE().get_params(deep=False)


def chosen(matrix, **parameters):
    return {choice.name: choice.value for choice in choose({**AUTOMATIC, **parameters}, Table(matrix))}


def grouped(n_rows=400, n_columns=30, seed=0):
    """Rows in four groups with edges inside the groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(4, size=n_rows)
    X = rng.normal(size=(4, n_columns))[group] + rng.normal(size=(n_rows, n_columns))
    order = np.argsort(group, kind="stable")
    return X, CorrelationGraph.from_edges(np.stack([order[:-1], order[1:]], 1), n_vertices=n_rows), group


@given(st.integers(1, 10**7), st.integers(1, 10**6))
def test_sizes_are_sensible_for_any_table(n_rows, n_columns):
    table = sparse.csr_array((n_rows, n_columns))
    found = chosen(table, likelihood="multinomial", counts="raw")
    assert 1 <= found["n_components"] <= min(128, n_columns)
    (width,) = found["hidden"]
    assert width <= 300
    assert width * n_columns <= 3_000_000 or width == 32
    assert found["batch_size"] in (128, 256, 512)
    assert found["edge_batch_size"] == 4 * found["batch_size"]
    assert 0 <= found["validation_fraction"] <= 0.1
    assert n_rows * found["validation_fraction"] <= 5000.5
    assert found["max_epochs"] >= 1


def test_a_given_value_is_kept_and_a_given_length_holds_nothing_out():
    assert "n_components" not in chosen(np.eye(1000), n_components=5)
    for given_length in ({"max_steps": 10}, {"max_epochs": 3}):
        found = chosen(np.eye(1000), **given_length)
        assert (found["validation_fraction"], found["patience"], found["warmup_steps"]) == (0.0, None, 0)
    assert chosen(np.eye(1000))["validation_fraction"] == 0.1
    assert chosen(np.eye(100))["validation_fraction"] == 0.0


def test_few_sparse_rows_of_many_columns_need_dropout():
    generator = np.random.default_rng(0)
    words = sparse.csr_array(generator.random((300, 400)) < 0.02, dtype=np.float32)
    assert chosen(words)["dropout"] == 0.25
    assert chosen(words[:, :200])["dropout"] == 0.0  # rows enough
    assert chosen(sparse.csr_array(generator.random((300, 400)) < 0.3, dtype=np.float32))["dropout"] == 0.0
    assert chosen(generator.normal(size=(300, 400)))["dropout"] == 0.0
    assert CorrelatedVAE.paper("links").dropout == 0.0


def test_training_does_not_stop_before_it_has_found_the_topics_of_sparse_rows():
    """Without a warm-up, hundreds of steps explain such rows no better than the average row does."""
    rng = np.random.default_rng(0)
    topic = np.sort(rng.integers(6, size=1200))
    topics = rng.dirichlet(np.full(400, 0.05), size=6)
    X = sparse.csr_array(rng.poisson(12 * topics[topic]) > 0, dtype=float)
    starts = rng.integers(1150, size=2000)
    edges = np.unique(np.column_stack([starts, starts + rng.integers(1, 50, 2000)]), axis=0)
    graph = CorrelationGraph(edges, 1200)
    model = CorrelatedVAE(random_state=0).fit(X, graph=graph)
    tested = rng.random(1200) < 0.3
    points = model.transform(X)
    score = LogisticRegression(max_iter=500).fit(points[~tested], topic[~tested]).score(points[tested], topic[tested])
    assert score > 0.9
    assert model.best_step_ >= {choice.name: choice.value for choice in model.choices_}["warmup_steps"]


def test_large_counts_are_taken_by_their_logarithm():
    plays = sparse.random_array((200, 300), density=0.02, random_state=0, format="csr")
    plays.data = RNG.geometric(0.001, size=plays.nnz).astype(float)
    assert chosen(plays)["counts"] == "log"
    plays.data[:] = RNG.integers(1, 6, plays.nnz)
    assert chosen(plays)["counts"] == "raw"


def test_logarithms_of_counts_are_one_on_average_and_counts_come_back(tmp_path):
    plays = sparse.random_array((40, 30), density=0.5, random_state=0, format="csr")
    plays.data = RNG.geometric(0.001, size=plays.nnz).astype(float)
    scaling = make_scaling(plays, "multinomial", "log")
    units = scaling(plays)
    logarithms = np.log1p(plays.data)
    np.testing.assert_allclose(units.data, logarithms / logarithms.mean(), rtol=1e-5)
    np.testing.assert_allclose(scaling.invert(units.toarray()), plays.toarray(), rtol=1e-3)
    model = CorrelatedVAE(2, counts="log", likelihood="multinomial", max_steps=2, random_state=0).fit(plays)
    model.save(tmp_path / "run")
    assert np.array_equal(load(tmp_path / "run").transform(plays), model.transform(plays))


def test_real_columns_are_standardised_and_everything_comes_back_in_their_units():
    X, graph, _ = grouped()
    wide = (X + 5.0) * 1000.0 ** RNG.uniform(-1, 1, X.shape[1])
    settings = {"n_components": 4, "max_steps": 200, "random_state": 0}
    plain, scaled = (CorrelatedVAE(**settings).fit(form, graph=graph) for form in (X, wide))
    np.testing.assert_allclose(plain.embedding_, scaled.embedding_, atol=0.1)  # rounding grows over 200 steps
    spread = np.log(wide.std(0) / X.std(0)).sum()
    assert scaled.score(wide, graph=graph) == pytest.approx(plain.score(X, graph=graph) - spread, abs=0.2)
    error = np.abs(scaled.reconstruct(wide) - wide).mean(0) / wide.std(0)
    assert error.max() < 1.0
    drawn = scaled.sample(2000, random_state=0).features
    np.testing.assert_allclose(drawn.mean(0), wide.mean(0), atol=0.3 * wide.std(0).max())
    location = make_scaling(sparse.csr_array(np.eye(40)), "gaussian", "raw").location
    assert location is None  # zeros of sparse rows stay zeros


def test_defaults_find_the_groups_and_beat_the_raw_features():
    from sklearn.cluster import KMeans
    from sklearn.metrics import normalized_mutual_info_score

    X, graph, group = grouped(600, seed=3)
    X = X + 2.0 * RNG.normal(size=(600, 2)) @ RNG.normal(size=(2, 30))
    model = CorrelatedVAE(random_state=0).fit(X, graph=graph)
    found = {
        name: normalized_mutual_info_score(group, KMeans(4, n_init=10, random_state=0).fit_predict(points))
        for name, points in (("model", model.embedding_), ("features", X))
    }
    assert found["model"] > found["features"]
    assert model.stopped_ == "finished"
    assert 0 < model.best_step_ < model.n_steps_
    assert (model.weights_ > 0).all()  # rows that were held out take part in the end


def test_choices_are_saved(tmp_path):
    model = CorrelatedVAE(max_steps=3, random_state=0).fit(np.eye(40) + 0.5)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.choices_ == model.choices_
    np.testing.assert_array_equal(again.reconstruct(np.eye(40)), model.reconstruct(np.eye(40)))
    assert again.fit(np.eye(40)).choices_


def test_a_run_interrupted_in_its_last_part_is_resumed_to_the_same_bits(tmp_path):
    X, graph, _ = grouped(320, 8)
    settings = {"n_components": 2, "hidden": (8,), "random_state": 0}
    whole = CorrelatedVAE(**settings).fit(X, graph=graph)
    last = whole.n_steps_ - 3

    def stop(progress):
        if progress.step == last:
            raise RuntimeError("power cut")

    checkpoint = Checkpoint(tmp_path / "checkpoint", steps=1)
    with pytest.raises(RuntimeError, match="power cut"):
        CorrelatedVAE(**settings).fit(X, graph=graph, callbacks=[checkpoint, stop])
    resumed = CorrelatedVAE(**settings).fit(X, graph=graph, callbacks=[Checkpoint(tmp_path / "checkpoint")])
    assert (resumed.n_steps_, resumed.best_step_) == (whole.n_steps_, whole.best_step_)
    np.testing.assert_array_equal(resumed.embedding_, whole.embedding_)


def test_the_papers_settings_are_one_word_away():
    model = CorrelatedVAE.paper("clustering", max_steps=5)
    assert {name: getattr(model, name) for name in PAPER} == dict(PAPER)
    assert (model.likelihood, model.family.gamma_mi, model.max_steps) == ("bernoulli", 0.1, 5)


def history(n=20, **columns):
    flat = {"step": np.arange(n) + 1, "total": np.zeros(n), "reconstruction": np.full(n, -100.0)}
    flat |= {"singleton": np.full(n, -10.0), "edge": np.full(n, -5.0)}
    return History({name: [float(value) for value in values] for name, values in {**flat, **columns}.items()})


def test_what_went_wrong_is_found():
    n = 400
    line = np.arange(n, dtype=float)[:, None]
    graph = CorrelationGraph(np.stack([np.arange(n - 1), np.arange(1, n)], 1), n)
    good = Posterior(line, np.full((n, 1), 0.3))
    assert find_problems(good, graph, history(), "finished") == []
    cases = {
        "collapsed": (Posterior(line, np.full((n, 1), 0.99)), history()),
        "no effect": (Posterior(RNG.normal(size=(n, 1)), np.full((n, 1), 0.3)), history()),
        "levelled off": (good, history(total=np.arange(20.0))),
        "outweigh": (good, history(reconstruction=np.full(20, -142_000.0))),
    }
    for words, (posterior, course) in cases.items():
        (problem,) = find_problems(posterior, graph, course, "finished")
        assert words in problem
    assert find_problems(good, graph, history(total=np.arange(20.0)), "early") == []
    unused = Posterior(np.hstack([line, 0 * line]), np.tile([0.3, 1.0], (n, 1)))
    assert find_problems(unused, graph, history(), "finished") == []
    few = Posterior(line[:100], np.full((100, 1), 0.99))
    assert find_problems(few, None, history(), "finished") == []
