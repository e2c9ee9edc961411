import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy import sparse

from corrvae import CorrelatedVAE, CorrelationGraph, load
from corrvae.errors import FolderError
from corrvae.folders import save_model
from corrvae.nn import PairBilinear
from corrvae.nn.likelihoods import Gaussian
from corrvae.persistence import read_folder, write_folder
from support.pairs import QUICK, QUICK_PAIRWISE, paired_rows
from support.shards import sharded

DATA = paired_rows()
X, GRAPH = DATA.X, DATA.graph
GOLDEN = Path(__file__).parent / "golden"
KIND = "corrvae model"


@pytest.fixture(scope="module")
def pairwise():
    return CorrelatedVAE(**QUICK_PAIRWISE, gamma=(0.5, 2.0)).fit(X, graph=GRAPH)


def same(model, other):
    """Check that two fitted models know and do the same."""
    assert model.get_params() == other.get_params()
    for name in ("embedding_", "stddev_", "weights_", "tau_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
    assert model.ids_.tolist() == other.ids_.tolist()
    assert model.graph_ == other.graph_
    for name in ("n_steps_", "best_step_", "stopped_", "n_features_in_", "total_", "fingerprint_"):
        assert getattr(model, name) == getattr(other, name), name
    assert {name: column.tolist() for name, column in model.history_.items()} == {
        name: column.tolist() for name, column in other.history_.items()
    }
    assert model.score(X, graph=model.graph_) == other.score(X, graph=other.graph_)
    np.testing.assert_array_equal(model.transform(X), other.transform(X))


@pytest.mark.parametrize(
    "parameters",
    [
        QUICK,
        QUICK_PAIRWISE,
        {**QUICK_PAIRWISE, "normalize": ("l2", "raw"), "dropout": (0.0, 0.5)},
        {**QUICK_PAIRWISE, "pair_network": "bilinear", "tau": "learned", "validation_fraction": 0.2},
        {**QUICK, "hidden": (6, 5), "normalize": "l2", "random_state": np.int64(3), "tau": "learned_per_dimension"},
    ],
)
def test_what_is_loaded_is_what_was_saved(parameters, tmp_path):
    model = CorrelatedVAE(**parameters).fit(X, graph=GRAPH)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    same(model, again)
    np.testing.assert_array_equal(
        model.infer_posterior().correlation(GRAPH.edges), again.infer_posterior().correlation(GRAPH.edges)
    )
    np.testing.assert_array_equal(
        model.sample(graph=GRAPH, random_state=0).features, again.sample(graph=GRAPH, random_state=0).features
    )


@pytest.mark.parametrize("names", [["", "é", "日本", "a\nb", "0"], ["x" * 4_000_000, *"bcde"]])
def test_names_of_any_kind_and_length(tmp_path, names):
    """They may be longer than all that a document may hold, which the same model without names keeps far below."""
    model = CorrelatedVAE(**QUICK).fit(pd.DataFrame(X, columns=names))
    model.save(tmp_path / "run")
    assert (tmp_path / "run/config.json").stat().st_size < 10_000
    assert load(tmp_path / "run").feature_names_in_.tolist() == names


def test_without_a_graph_and_with_names_and_conductances(tmp_path):
    model = CorrelatedVAE(**QUICK).fit(pd.DataFrame(X, columns=list("abcde")))
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.graph_ is None
    assert again.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        again.transform(pd.DataFrame(X, columns=list("abcdf")))
    graph = CorrelationGraph(GRAPH.edges, 60, conductances=np.linspace(1, 2, GRAPH.n_edges))
    CorrelatedVAE(**QUICK).fit(X, graph=graph).save(tmp_path / "run")
    assert load(tmp_path / "run").graph_ == graph


def test_a_loaded_model_can_train_on(pairwise, tmp_path):
    pairwise.save(tmp_path / "run")
    model = load(tmp_path / "run").set_params(warm_start=True)
    assert model.fit(X, graph=GRAPH).score(X, graph=GRAPH) > pairwise.score(X, graph=GRAPH)


def test_a_folder_from_before_fits_were_counted_is_that_of_one(pairwise, tmp_path):
    model = rewritten(
        pairwise, tmp_path, lambda parts: [parts["document"]["fitted"].pop(n) for n in ("fits", "hold_out")]
    )
    assert (model._past.fits, model._past.hold_out) == (1, None)


def test_the_files_are_plain(pairwise, tmp_path):
    pairwise.save(tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "arrays.safetensors",
        "config.json",
        "history.parquet",
        "model.safetensors",
        "vertices.parquet",
    ]
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["format"] == {"kind": KIND, "version": 1}
    assert config["parameters"]["gamma"] == [0.5, 2.0]
    assert config["library"].keys() == {"python", "corrvae", "numpy", "scikit-learn", "torch"}
    arrays = read_folder(tmp_path / "run", kind=KIND).arrays
    stored = (arrays["features.data"], arrays["features.columns"], arrays["features.offsets"])
    np.testing.assert_allclose(sparse.csr_array(stored, shape=X.shape).toarray(), X, rtol=1e-6)
    np.testing.assert_array_equal(arrays["graph.edges"], GRAPH.edges)


def test_features_can_be_left_out(pairwise, tmp_path):
    save_model(pairwise, tmp_path / "run", store_features=False)
    again = load(tmp_path / "run")
    assert again.features_ is None
    np.testing.assert_array_equal(again.transform(X), pairwise.transform(X))
    with pytest.raises(ValueError, match="store_features=False"):
        again.infer_posterior().correlation(GRAPH.edges)
    np.testing.assert_array_equal(
        again.infer_posterior(X).correlation(GRAPH.edges), pairwise.infer_posterior().correlation(GRAPH.edges)
    )


def test_missing_entries_are_stored(tmp_path):
    holes = X.copy()
    holes[::3, 2] = np.nan
    model = CorrelatedVAE(**QUICK_PAIRWISE, missing="mask").fit(holes, graph=GRAPH)
    model.save(tmp_path / "run")
    correlations = (one.infer_posterior().correlation(GRAPH.edges) for one in (model, load(tmp_path / "run")))
    np.testing.assert_allclose(*correlations, atol=1e-6)


@pytest.mark.parametrize("ids", [range(100, 160), [f"x{i}" for i in range(60)], [i + 0.5 for i in range(60)]])
def test_ids_come_back_as_they_were(ids, tmp_path):
    graph = CorrelationGraph(GRAPH.edges, 60, vertices=ids)
    CorrelatedVAE(**QUICK).fit(X, graph=graph).save(tmp_path / "run")
    assert load(tmp_path / "run").ids_.tolist() == list(ids)


@pytest.mark.parametrize("ids", [[("x", i) for i in range(60)], [0, "1", *range(2, 60)]])
def test_ids_that_a_file_cannot_hold_are_said(ids, tmp_path):
    with pytest.warns(UserWarning, match="not saved"):
        model = CorrelatedVAE(**QUICK).fit(X, graph=CorrelationGraph(GRAPH.edges, 60, vertices=ids))
    with pytest.raises(TypeError, match="integers or strings"):
        model.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_own_classes_are_asked_for_and_never_read(tmp_path):
    own = {"likelihood": Gaussian, "pair_network": partial(PairBilinear, rank=2)}
    model = CorrelatedVAE(**{**QUICK_PAIRWISE, **own}).fit(X, graph=GRAPH)
    model.save(tmp_path / "run")
    with pytest.raises(FolderError, match=r"the likelihood corrvae\..*Gaussian; pass it"):
        load(tmp_path / "run")
    again = load(tmp_path / "run", **own)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    CorrelatedVAE(**QUICK).fit(X).save(tmp_path / "plain")
    with pytest.raises(FolderError, match="pass no other"):
        load(tmp_path / "plain", likelihood=Gaussian)


def test_an_unfitted_model_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        CorrelatedVAE().save(tmp_path / "run")


# Damage that checksums do not show, since the folder was written anew


def rewritten(model, tmp_path, change):
    """Save a model, change what its folder holds, write that, and load it."""
    model.save(tmp_path / "run")
    found = read_folder(tmp_path / "run", kind=KIND)
    parts = {name: dict(getattr(found, name)) for name in ("document", "tensors", "arrays", "tables")}
    change(parts)
    shutil.rmtree(tmp_path / "run")
    write_folder(tmp_path / "run", kind=KIND, **parts)
    return load(tmp_path / "run")


def put(part, name, value):
    return lambda parts: parts[part].__setitem__(name, value)


def fitted(name, value):
    return lambda parts: parts["document"]["fitted"].__setitem__(name, value)


def parameter(name, value):
    return lambda parts: parts["document"]["parameters"].__setitem__(name, value)


def names(ends, text=b"abcde"):
    both = {"names.text": np.frombuffer(text[: min(max(ends), len(text))], np.uint8), "names.ends": np.array(ends)}
    return lambda parts: parts["arrays"].update(both)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("document", "parameters", None), "not those of a CorrelatedVAE"),
        (parameter("n_clusters", 3), "not those of a CorrelatedVAE"),
        (parameter("tau", 2.0), "'tau' parameter"),
        (parameter("gamma", [1, 2, 3]), "gamma must be"),
        (parameter("hidden", [10**9]), "tensor .* is torch.float32"),
        (parameter("hidden", ["wide"]), "hidden must be positive whole numbers"),
        (parameter("n_components", 3), "tensor"),
        (parameter("posterior", "independent"), "not those of the networks"),
        (fitted("n_features", 10**12), "tensor"),
        (fitted("n_features", True), "n_features is True"),
        (fitted("n_rows", 61), "of 61 rows"),
        (fitted("n_rows", -1), "n_rows is -1"),
        (fitted("feature_names", ["a"]), "names of the features"),
        (names([1]), r"arrays\.safetensors: damaged: the names of the features are not as many"),
        (names([2, 1, 3, 4, 5]), "do not end where they should"),
        (names([1, 2, 3, 4, 6]), "do not end where they should"),
        (names([2**63 - 1, -(2**63), -1, 0, 5]), "do not end where they should"),
        (parameter("gamma", [10**400, 1]), "parameters that cannot be"),
        (parameter("min_stddev", 10**400), "min_stddev has a number of 1,329 bits"),
        (names([1, 2, 3, 4, 5], b"abcd\xff"), "are no text"),
        (fitted("stopped", None), "stopped is None"),
        (fitted("fits", -1), "fits is -1"),
        (fitted("hold_out", -1), "hold_out is -1"),
        (put("document", "fitted", []), "does not describe a fitted model"),
        (lambda parts: parts["tables"].pop("vertices"), "vertices.parquet: missing"),
        (lambda parts: parts["tensors"].pop("encoder.first.weight"), "'encoder.first.weight' is odd"),
        (put("tensors", "encoder.first.weight", torch.ones(5, 8, dtype=torch.float64)), "float64"),
        (put("tensors", "encoder.first.weight", torch.full((5, 8), torch.nan)), "not finite"),
        (lambda parts: parts["arrays"].pop("graph.weights"), "'graph.weights' is missing"),
        (put("arrays", "graph.edges", np.array([[0, 99]])), "its graph cannot be"),
        (put("arrays", "graph.edges", np.array([[0.5, 1.5]])), "its graph cannot be"),
        (put("arrays", "graph.weights", np.full(29, 2.0)), "weights are not a share"),
        (put("arrays", "features.columns", np.full(300, 7)), "no sparse matrix"),
        (put("arrays", "features.data", np.ones(3, dtype=np.float32)), "no sparse matrix"),
    ],
)
def test_a_folder_that_cannot_be_a_model_is_explained(pairwise, tmp_path, change, words):
    with pytest.raises(FolderError, match=words):
        rewritten(pairwise, tmp_path, change)


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(np.arange(60, dtype=np.int32) + 2**30).view(pa.date32()),
        pa.array(np.arange(60) + 2**62).view(pa.duration("s")),
    ],
    ids=["dates", "spans"],
)
def test_ids_beyond_the_calendar_are_refused(pairwise, tmp_path, ids):
    def change(parts):
        table = parts["tables"]["vertices"]
        parts["tables"]["vertices"] = table.set_column(0, "id", ids)

    with pytest.raises(FolderError, match=r"vertices\.parquet: damaged: its ids cannot be"):
        rewritten(pairwise, tmp_path, change)


def test_foreign_and_missing_folders_are_explained(tmp_path):
    with pytest.raises(FolderError, match="no such folder"):
        load(tmp_path / "none")
    write_folder(tmp_path / "other", kind="note", document={})
    with pytest.raises(FolderError, match="kind 'note'"):
        load(tmp_path / "other")


# Folders of versions past


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("*/")), ids=lambda path: path.name)
def test_folders_of_every_version_load_and_give_their_numbers(folder):
    model = load(folder / "model")
    expected = json.loads((folder / "expected.json").read_text())
    features = np.array(expected["features"])
    posterior = model.infer_posterior(features)
    for name in ("mean", "stddev"):
        np.testing.assert_allclose(getattr(posterior, name), expected[name], rtol=1e-4, atol=1e-5)
    pairs = np.array(expected["pairs"])
    np.testing.assert_allclose(posterior.correlation(pairs), expected["correlation"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.infer_posterior().correlation(pairs), expected["correlation"], atol=1e-5)
    np.testing.assert_allclose(model.embedding_, expected["mean"], rtol=1e-4, atol=1e-5)
    assert model.ids_.tolist() == expected["ids"]
    assert model.graph_.id_pairs.tolist() == expected["edges"]
    assert model.score(features, graph=model.graph_) == pytest.approx(expected["score"], rel=1e-4)


def test_there_is_a_folder_of_this_version():
    from corrvae import folders

    assert (GOLDEN / f"model-format-{folders._VERSION}" / "model" / "config.json").is_file()


def reseal(folder, change, **files):
    """Write a model folder again with something changed, as an attacker would: with checksums that fit."""
    found = read_folder(folder, kind=KIND)
    change(found.document)
    parts = {"document": found.document, "tensors": found.tensors, "arrays": found.arrays, "tables": found.tables}
    write_folder(folder, kind=KIND, **{**parts, **files})


@pytest.mark.parametrize(
    ("hidden", "problem"),
    [
        ([10**400], "hidden has a number of 1,329 bits"),
        ([10**18], "no networks can be built"),
        ([1] * 1_000_000, "1,000,001 hidden layers"),
    ],
    ids=["number", "layer", "layers"],
)
def test_networks_larger_than_anything_are_not_built(pairwise, tmp_path, hidden, problem):
    pairwise.save(tmp_path / "run")
    reseal(tmp_path / "run", lambda document: document["parameters"].update(hidden=hidden))
    with pytest.raises(FolderError, match=problem):
        load(tmp_path / "run")


def test_a_history_of_something_else_is_refused(pairwise, tmp_path):
    pairwise.save(tmp_path / "run")
    tables = {**read_folder(tmp_path / "run", kind=KIND).tables, "history": pa.table({"step": ["x"]})}
    reseal(tmp_path / "run", lambda document: None, tables=tables)
    with pytest.raises(FolderError, match=r"history\.parquet: damaged: 'step' should hold a number"):
        load(tmp_path / "run")


@pytest.fixture
def on_disk(tmp_path):
    """Features in memory and in shards, and the models that are fitted to each."""
    table = sparse.csr_array(X, dtype=np.float32)
    matrix = sharded(tmp_path, table, 25)
    models = (CorrelatedVAE(**QUICK_PAIRWISE).fit(features, graph=GRAPH) for features in (table, matrix))
    return table, matrix, *models


def test_a_model_of_shards_is_the_same_to_the_bit_and_takes_its_shards_along(on_disk, tmp_path):
    table, matrix, expected, found = on_disk
    assert found.features_ is matrix
    assert found.fingerprint_ == expected.fingerprint_
    np.testing.assert_array_equal(found.embedding_, expected.embedding_)
    np.testing.assert_array_equal(found.transform(matrix), expected.transform(table))
    np.testing.assert_array_equal(found.reconstruct(matrix), expected.reconstruct(table))
    assert found.score(matrix, graph=GRAPH) == expected.score(table, graph=GRAPH)
    found.save(tmp_path / "run")
    shutil.rmtree(matrix.path)
    again = load(tmp_path / "run")
    assert again.features_.path == tmp_path / "run" / "features"
    np.testing.assert_array_equal(again.kneighbors(n_neighbors=3).ids, expected.kneighbors(n_neighbors=3).ids)
    again.save(tmp_path / "run")
    load(tmp_path / "run").save(tmp_path / "bare", store_features=False)
    assert load(tmp_path / "bare").features_ is None


def test_shards_of_another_shape_are_refused(on_disk, tmp_path):
    table, _, _, found = on_disk
    found.save(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "features")
    sharded(tmp_path, table[:7], 25).path.rename(tmp_path / "run" / "features")
    with pytest.raises(FolderError, match="it holds a matrix of shape"):
        load(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "features")
    with pytest.raises(FolderError, match="there is no such folder"):
        load(tmp_path / "run")


def test_a_model_of_shards_is_saved_where_it_lies(on_disk, tmp_path):
    *_, expected, found = on_disk
    found.save(tmp_path / "run")
    again, another = load(tmp_path / "run"), load(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    again.kneighbors(n_neighbors=3)  # some of it is mapped now
    again.save(tmp_path / "link")
    np.testing.assert_array_equal(again.features_[:].pick(np.arange(len(X))).values, X.astype(np.float32).ravel())
    for model in (again, load(tmp_path / "run")):
        np.testing.assert_array_equal(model.kneighbors(n_neighbors=3).ids, expected.kneighbors(n_neighbors=3).ids)
    with pytest.raises(FolderError, match="it has changed since it was opened; open the folder again"):
        another.kneighbors(n_neighbors=3)
    with pytest.raises(FolderError, match="run: the model reads its features from this folder, and would lose them"):
        again.save(tmp_path / "run", store_features=False)
    again.save(tmp_path / "run")


def test_damaged_shards_are_not_saved_as_new_ones(on_disk, tmp_path):
    on_disk[3].save(tmp_path / "run")
    place = tmp_path / "run" / "features" / "shards" / "000000.values.npy"
    data = bytearray(place.read_bytes())
    data[-3] ^= 1
    place.write_bytes(data)
    model = load(tmp_path / "run")
    with pytest.raises(FolderError, match=r"000000\.values\.npy: damaged: its contents do not match its checksum"):
        model.save(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("name", ["features", "features/shards"])
def test_features_that_a_link_leads_to_are_refused(on_disk, tmp_path, name):
    on_disk[3].save(tmp_path / "run")
    place = tmp_path / "run" / name
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FolderError, match="not a folder; links are not followed") as refusal:
        load(tmp_path / "run")
    assert refusal.value.path == place
