"""Model folders: what is loaded is what was saved, and what cannot be loaded is explained in a sentence."""

import errno
import json
import os
import pickle
import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from corrvae import CorrelatedVAE, CorrelationGraph, Pairwise, load
from corrvae.errors import FolderError
from corrvae.io import folder as folders
from corrvae.io import open_mapped, write_mapped
from corrvae.io.folder import read_folder, write_folder
from corrvae.nn import PAIR_NETWORKS, PairBilinear
from corrvae.nn.likelihoods import LIKELIHOODS, Gaussian
from corrvae.nn.rows import is_mapped
from support.pairs import QUICK, paired_rows, quick_pairwise

DATA = paired_rows()
X, GRAPH = DATA.X, DATA.graph
KIND, VERSION = "corrvae model", 2
QUICK = {**QUICK, "max_steps": 5}


@pytest.fixture(scope="module")
def pairwise():
    return CorrelatedVAE(**{**quick_pairwise(gamma_kl=0.5, gamma_mi=2.0), "max_steps": 5}).fit(X, graph=GRAPH)


@pytest.fixture(scope="module")
def saved(pairwise, tmp_path_factory):
    """A folder that tests copy."""
    folder = tmp_path_factory.mktemp("model") / "run"
    pairwise.save(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return Path(shutil.copytree(saved, tmp_path / "run"))


def plain(parameters):
    return {name: repr(value) for name, value in parameters.items()}


def check_same(model, other, features):
    """Check that two fitted models know and do the same."""
    assert plain(model.get_params()) == plain(other.get_params())
    for name in ("embedding_", "stddev_", "tau_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
    if model.weights_ is not None:
        np.testing.assert_array_equal(model.weights_, other.weights_)
    assert model.ids_.tolist() == other.ids_.tolist()
    assert model.graph_ == other.graph_
    for name in ("n_steps_", "best_step_", "stopped_", "n_features_in_", "total_", "likelihood_", "normalize_"):
        assert getattr(model, name) == getattr(other, name), name
    assert model.history_.columns == other.history_.columns
    assert model.score(features, graph=model.graph_) == other.score(features, graph=other.graph_)
    np.testing.assert_array_equal(model.transform(features), other.transform(features))
    np.testing.assert_array_equal(*(one.sample(3, random_state=0).features for one in (model, other)))
    pairs = model.ids_[np.array([[0, 1], [5, 9]])]
    np.testing.assert_array_equal(*(one.posterior().correlation(pairs) for one in (model, other)))


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("network", [None, *PAIR_NETWORKS])
def test_every_family_and_likelihood_comes_back(likelihood, network, tmp_path):
    features = {"gaussian": X, "bernoulli": DATA.bits}.get(likelihood, DATA.counts + 1)
    family = {} if network is None else {"family": Pairwise(network, hidden=(8,))}
    model = CorrelatedVAE(**QUICK, **family, likelihood=likelihood).fit(features, graph=GRAPH)
    model.save(tmp_path / "run")
    check_same(model, load(tmp_path / "run"), features)


@pytest.mark.parametrize(
    "parameters",
    [
        {"family": "pairwise", "normalize": "l2"},
        {"family": Pairwise(hidden=(8,), normalize="none", dropout=0.5, pair_batch=7), "normalize": "l2"},
        {"family": Pairwise("bilinear"), "tau": "learned", "validation_fraction": 0.2, "patience": 3},
        {"hidden": (6, 5), "normalize": "l2", "random_state": np.int64(3), "tau": "learned_per_dimension"},
        {"hidden": (), "max_steps": None, "max_epochs": 2, "min_stddev": 0.1, "dropout": 0.3, "warmup_steps": 3},
    ],
)
def test_every_parameter_comes_back(parameters, tmp_path):
    model = CorrelatedVAE(**{**QUICK, **parameters}).fit(X, graph=GRAPH)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    again.random_state = model.random_state  # a NumPy integer is an integer now
    check_same(model, again, X)


@pytest.mark.parametrize("random_state", [None, np.random.default_rng(0), np.random.RandomState(0)])
def test_a_generator_is_not_saved(random_state, tmp_path):
    CorrelatedVAE(**{**QUICK, "random_state": random_state}).fit(X).save(tmp_path / "run")
    assert load(tmp_path / "run").random_state is None


def test_without_a_graph_and_with_names_and_conductances(tmp_path):
    model = CorrelatedVAE(**QUICK).fit(pd.DataFrame(X, columns=["", "é", "日本", "a\nb", "0"]))
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.graph_ is again.weights_ is None
    assert again.feature_names_in_.tolist() == ["", "é", "日本", "a\nb", "0"]
    with pytest.raises(ValueError, match="feature names"):
        again.transform(pd.DataFrame(X, columns=list("abcdf")))
    graph = CorrelationGraph(GRAPH.edges, 60, conductances=np.linspace(1, 2, GRAPH.n_edges))
    CorrelatedVAE(**QUICK).fit(X, graph=graph).save(tmp_path / "run")
    assert load(tmp_path / "run").graph_ == graph


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_missing_entries_are_stored(make, tmp_path):
    holes = X.copy()
    holes[::3, 2] = np.nan
    model = CorrelatedVAE(**{**QUICK, "family": "pairwise"}, missing="mask").fit(make(holes), graph=GRAPH)
    model.save(tmp_path / "run")
    check_same(model, load(tmp_path / "run"), make(holes))


def test_a_loaded_model_can_train_on(folder, pairwise):
    model = load(folder).set_params(warm_start=True, max_steps=50, learning_rate=1e-2)
    assert model.fit(X, graph=GRAPH).score(X, graph=GRAPH) > pairwise.score(X, graph=GRAPH)


def test_features_can_be_left_out(pairwise, tmp_path):
    pairwise.save(tmp_path / "run", store_features=False)
    again = load(tmp_path / "run")
    assert again.features_ is None
    np.testing.assert_array_equal(again.transform(X), pairwise.transform(X))
    with pytest.raises(ValueError, match="store_features=False"):
        again.posterior().correlation(GRAPH.id_pairs)
    np.testing.assert_array_equal(
        again.posterior(X).correlation(GRAPH.edges), pairwise.posterior().correlation(GRAPH.id_pairs)
    )


def test_mapped_features_go_along_and_are_mapped_again(tmp_path, monkeypatch):
    write_mapped(tmp_path / "mapped", sparse.csr_array(X))
    matrix = open_mapped(tmp_path / "mapped")
    settings = {**quick_pairwise(), "max_steps": 5}
    model = CorrelatedVAE(**settings).fit(matrix, graph=GRAPH)
    assert np.shares_memory(model.features_.data, matrix.data)
    np.testing.assert_array_equal(
        model.embedding_, CorrelatedVAE(**settings).fit(sparse.csr_array(matrix, copy=True), graph=GRAPH).embedding_
    )
    expected = model.kneighbors(n_neighbors=3).ids.tolist()
    model.save(tmp_path / "run")
    shutil.rmtree(tmp_path / "mapped")
    monkeypatch.setattr(folders, "MAPPED_BYTES", 1000)
    again = load(tmp_path / "run")
    assert is_mapped(again.features_.data)
    assert is_mapped(again.features_.indices)
    assert again.kneighbors(n_neighbors=3).ids.tolist() == expected
    again.save(tmp_path / "run")  # where it lies
    assert again.kneighbors(n_neighbors=3).ids.tolist() == load(tmp_path / "run").kneighbors(n_neighbors=3).ids.tolist()


@pytest.mark.parametrize("ids", [range(60), range(100, 160), [f"x{i}" for i in range(60)], [-i for i in range(60)]])
def test_ids_come_back_as_they_were(ids, tmp_path):
    CorrelatedVAE(**QUICK).fit(X, ids=list(ids)).save(tmp_path / "run")
    again = load(tmp_path / "run").ids_.tolist()
    assert again == list(ids)
    assert [type(value) for value in again] == [type(value) for value in ids]


@pytest.mark.parametrize("ids", [[("x", i) for i in range(60)], [i + 0.5 for i in range(60)]])
def test_ids_that_a_file_cannot_hold_are_reported(ids, tmp_path):
    model = CorrelatedVAE(**QUICK).fit(X, graph=CorrelationGraph(GRAPH.edges, 60, vertices=ids))
    with pytest.raises(TypeError, match="cannot be saved; use integers or strings"):
        model.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        CorrelatedVAE().save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


# The folder


def test_the_files_are_plain(saved, pairwise):
    config = json.loads((saved / "config.json").read_text())
    assert (config["kind"], config["version"]) == (KIND, VERSION)
    document = config["document"]
    assert document["parameters"]["family"] == {
        "family": "pairwise",
        "options": {**pairwise.family.get_params(), "hidden": [8]},
    }
    assert document["library"].keys() == {"python", "corrvae", "numpy", "scikit-learn", "torch"}
    suffixes = {place.suffix for place in saved.iterdir() if not place.name.startswith(".")}
    assert suffixes == {".json", ".safetensors", ".npy", ".parquet"}
    arrays = read_folder(saved, kind=KIND, version=VERSION).arrays
    np.testing.assert_allclose(arrays["features.dense"], X, rtol=1e-6)
    np.testing.assert_array_equal(arrays["graph.edges"], GRAPH.edges)


def test_a_model_is_replaced_whole_and_leaves_nothing(folder, tmp_path):
    before = {place.name for place in folder.iterdir()}
    (folder / "notes.txt").write_text("mine")
    other = CorrelatedVAE(**QUICK).fit(X)
    other.save(folder)
    assert load(folder).graph_ is None
    assert (folder / "notes.txt").read_text() == "mine"
    left = {place.name for place in folder.iterdir()} & (before - {"config.json", ".corrvae.lock"})
    assert left == set()


def own_likelihood(n_features):
    return Gaussian(n_features)


def test_own_code_is_asked_for_and_never_read(tmp_path):
    own = {"likelihood": own_likelihood, "family": Pairwise(partial(PairBilinear, rank=2))}
    model = CorrelatedVAE(**{**QUICK, **own}).fit(X, graph=GRAPH)
    model.save(tmp_path / "run")
    for name, code in (("likelihood", "own_likelihood"), ("family", "Pairwise")):
        passed = {other: value for other, value in own.items() if other != name}
        with pytest.raises(FolderError, match=rf"the {name} .*{code}; pass it: load\(\.\.\., {name}=\.\.\."):
            load(tmp_path / "run", **passed)
    again = load(tmp_path / "run", **own)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(*(one.posterior().correlation(GRAPH.id_pairs) for one in (again, model)))
    CorrelatedVAE(**QUICK).fit(X).save(tmp_path / "plain")
    for name, value in own.items():
        with pytest.raises(FolderError, match=f"the {name} '.*', which needs no code of yours; pass no other"):
            load(tmp_path / "plain", **{name: value})


def rewrite(folder, change):
    """Change what a folder's document holds."""
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_name_of_code_is_shown_and_not_imported(folder):
    def put(**parameters):
        rewrite(folder, lambda config: config["document"]["parameters"].update(parameters))

    put(likelihood={"own": "os.system"})
    with pytest.raises(FolderError, match=r"the likelihood os\.system; pass it"):
        load(folder)
    put(likelihood="os.system")
    with pytest.raises(FolderError, match=r"the likelihood 'os\.system', which is not registered"):
        load(folder)
    for family in ("os.system", {"family": "os.system", "options": {}}):
        put(likelihood="auto", family=family)
        with pytest.raises(FolderError, match=r"the family 'os\.system', which is not registered"):
            load(folder)


class Trap:
    """What a stranger would put in a folder: unpickling it makes a folder."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


def test_no_code_in_a_folder_is_run(folder, tmp_path):
    trap = Trap(tmp_path / "sprung")
    for name in ("model.pkl", "pytorch_model.bin", "model-1.pt", "embedding.npz", "ids.pickle"):
        (folder / name).write_bytes(pickle.dumps(trap))
    for name in ("__init__.py", "sitecustomize.py", "likelihood.py"):
        (folder / name).write_text(f"import os; os.mkdir({str(tmp_path / 'sprung')!r})\n")
    opened, risky, watching = set(), [], True

    def watch(event, arguments):
        if watching and event == "open" and str(arguments[0]).startswith(str(folder)):
            opened.add(Path(str(arguments[0])).name)
        elif watching and event in ("pickle.find_class", "os.system", "subprocess.Popen", "os.exec"):
            risky.append(event)

    sys.addaudithook(watch)
    load(folder)
    watching = False
    listed = json.loads((folder / "config.json").read_text())["files"]
    assert {"config.json"} <= opened <= {"config.json", *listed}
    assert risky == []
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["embedding-1.npy", "model-1.safetensors", "ids-1.parquet"])
def test_a_pickle_in_the_place_of_a_file_is_damage(folder, tmp_path, name):
    bomb = np.array([Trap(tmp_path / "sprung")], dtype=object)
    if name.endswith(".npy"):
        np.save(folder / name, bomb, allow_pickle=True)
    else:
        (folder / name).write_bytes(pickle.dumps(bomb))
    rewrite(folder, lambda config: config["files"].update({name: (folder / name).stat().st_size}))
    with pytest.raises(FolderError, match="damaged") as caught:
        load(folder)
    assert caught.value.path == folder / name
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../../x-1.parquet", "config.json"])
def test_no_path_leads_out_of_the_folder(folder, name):
    rewrite(folder, lambda config: config["files"].update({name: 1}))
    with pytest.raises(FolderError, match="damaged: it lists a file named"):
        load(folder)


# Damage and foreign folders


def one_sentence(error):
    return "\n" not in str(error) and len(str(error)) < 600


def test_every_file_may_be_damaged(folder):
    names = [*json.loads((folder / "config.json").read_text())["files"], "config.json"]
    assert len(names) >= 8
    for name in names:
        whole = (folder / name).read_bytes()
        for damaged in (b"", whole[: len(whole) // 2], whole + b"x", b"\0" * len(whole)):
            (folder / name).write_bytes(damaged)
            with pytest.raises(FolderError, match="damaged") as caught:
                load(folder)
            assert caught.value.path == folder / name
            assert one_sentence(caught.value)
        (folder / name).unlink()
        with pytest.raises(FolderError, match=r"damaged: this file is missing|there is no config\.json"):
            load(folder)
        (folder / name).write_bytes(whole)
    load(folder)


def fitted(name, value):
    return lambda parts: parts["document"]["fitted"].__setitem__(name, value)


def parameter(name, value):
    return lambda parts: parts["document"]["parameters"].__setitem__(name, value)


def put(part, name, value):
    return lambda parts: parts[part].__setitem__(name, value)


@pytest.mark.parametrize(
    "change",
    [
        put("document", "parameters", None),
        put("document", "fitted", []),
        put("document", "history", 3),
        parameter("n_clusters", 3),
        parameter("tau", 2.0),
        parameter("hidden", ["wide"]),
        parameter("family", "independent"),
        parameter("family", {"family": "pairwise", "options": {"gamma": 1}}),
        fitted("n_features", 6),
        fitted("n_features", "many"),
        fitted("feature_names", 3),
        lambda parts: parts["document"]["architecture"].update(hidden=[9]),
        lambda parts: parts["document"]["architecture"].pop("normalize"),
        lambda parts: parts["tables"].pop("ids"),
        lambda parts: parts["tensors"].popitem(),
        lambda parts: parts["arrays"].pop("embedding"),
        lambda parts: parts["arrays"].pop("graph.weights"),
        put("arrays", "graph.edges", np.array([[0, 99]])),
        put("arrays", "graph.edges", np.array([[0.5, 1.5]])),
        put("arrays", "embedding", np.ones((59, 2), np.float32)),
        put("arrays", "stddev", np.ones((60, 3), np.float32)),
        put("arrays", "features.dense", np.ones((59, 5), np.float32)),
        put("tables", "ids", pa.table({"id": ["a", "b"]})),
        put("tables", "ids", pa.table({"name": ["a", "b"]})),
        put("tables", "ids", pa.table({"id": ["a"] * 60})),
    ],
)
def test_parts_that_do_not_fit_together_are_damage(saved, tmp_path, change):
    found = read_folder(saved, kind=KIND, version=VERSION)
    parts = {name: dict(getattr(found, name)) for name in ("document", "tensors", "arrays", "tables")}
    change(parts)
    write_folder(tmp_path / "run", kind=KIND, version=VERSION, **parts)
    with pytest.raises(FolderError, match="damaged") as caught:
        load(tmp_path / "run")
    assert caught.value.path == tmp_path / "run"
    assert one_sentence(caught.value)


def test_other_folders_are_explained(folder, tmp_path):
    with pytest.raises(FolderError, match="none: there is no such folder"):
        load(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FolderError, match=r"there is no config\.json in it, so it holds no corrvae model"):
        load(tmp_path / "empty")
    with pytest.raises(FolderError, match="this is a file, not a folder"):
        load(folder / "config.json")
    write_folder(tmp_path / "other", kind="note", version=1, document={})
    with pytest.raises(FolderError, match="it holds a note, not a corrvae model"):
        load(tmp_path / "other")
    rewrite(folder, lambda config: config.update(version=3))
    with pytest.raises(FolderError, match=r"a newer corrvae \(format 3; this one reads 2\); install a newer corrvae"):
        load(folder)
    rewrite(folder, lambda config: config.update(version=1))
    with pytest.raises(FolderError, match="an older corrvae"):
        load(folder)


def test_nothing_is_written_into_a_folder_of_others(pairwise, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("my life's work")
    with pytest.raises(FolderError, match=r"it holds 'chapter\.tex' and no model of corrvae, so nothing was written"):
        pairwise.save(tmp_path / "thesis")
    assert [place.name for place in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]
    write_folder(tmp_path / "note", kind="note", version=1, document={})
    with pytest.raises(FolderError, match="it holds a note, not a corrvae model; choose another folder"):
        pairwise.save(tmp_path / "note")
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="there is a file of this name"):
        pairwise.save(tmp_path / "file")


def test_a_model_of_a_device_that_is_not_here_is_loaded(folder):
    rewrite(folder, lambda config: config["document"]["parameters"].update(device="cuda:99"))
    model = load(folder)
    assert model.transform(X).shape == (60, 2)
    with pytest.raises(ValueError, match="device='cuda:99' cannot be used here"):
        model.fit(X, graph=GRAPH)


@settings(max_examples=30)
@given(st.data())
def test_any_byte_of_a_file_changed_is_an_error_that_names_it_or_a_model(saved, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("changed") / "run"
    shutil.copytree(saved, folder)
    place = folder / data.draw(st.sampled_from(sorted(path.name for path in saved.iterdir() if path.stat().st_size)))
    content = bytearray(place.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    place.write_bytes(content)
    try:
        model = load(folder)
    except FolderError as error:
        assert folder in (error.path, *error.path.parents) and one_sentence(error)  # noqa: PT017, PT018
    else:
        assert model.embedding_.shape == (len(model.ids_), model.n_components)


# Disks


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full; free some space"),
        (errno.EROFS, "no permission, or a read-only disk; choose another place"),
        (errno.EACCES, "no permission, or a read-only disk; choose another place"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_a_disk_that_fails_leaves_the_model_before(folder, number, words, monkeypatch):
    before, other, writes, last = load(folder), CorrelatedVAE(**QUICK).fit(X), 0, 0

    def sync(descriptor):
        nonlocal writes
        writes += 1
        if writes == last:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", sync)
    other.save(folder.parent / "other")
    for last in range(1, writes):  # noqa: B007  after the last one the new model is there
        writes = 0
        with pytest.raises(FolderError, match=words) as caught:
            other.save(folder)
        assert caught.value.path == folder
        assert isinstance(caught.value.__cause__, OSError)
        assert one_sentence(caught.value)
        check_same(before, load(folder), X)
        listed = json.loads((folder / "config.json").read_text())["files"]
        assert {place.name for place in folder.iterdir()} == {"config.json", ".corrvae.lock", *listed}
    last = 0
    other.save(folder)
    assert load(folder).graph_ is None
