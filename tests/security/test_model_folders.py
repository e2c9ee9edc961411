"""A model folder from a stranger: no code in it runs, nothing outside it is read, and nothing in it unfolds."""

import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragile
from corrvae import load, persistence
from corrvae.errors import FolderError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    counts, graph = fragile.data()
    folder = tmp_path_factory.mktemp("model") / "run"
    fragile.estimator(4).fit(counts, graph=graph).save(folder)
    return folder


@pytest.fixture(scope="module")
def whole(saved):
    return load(saved)


@pytest.fixture
def folder(saved, tmp_path):
    return Path(shutil.copytree(saved, tmp_path / "run"))


class Bomb:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


def reseal(folder: Path, change) -> None:
    document = json.loads((folder / "config.json").read_text())
    document.pop("checksum")
    change(document)
    document["checksum"] = persistence._document_checksum(document)
    (folder / "config.json").write_text(json.dumps(document))


def test_files_that_lie_beside_are_not_even_opened(nursery, folder, tmp_path):
    bomb = Bomb(tmp_path / "exploded")
    for name in ("model.pkl", "pytorch_model.bin", "optimizer.pt", "arrays.npz", "vertices.pickle"):
        (folder / name).write_bytes(pickle.dumps(bomb))
    np.savez(folder / "objects.npz", x=np.array([bomb], dtype=object))
    (folder / "config.yaml").write_text("!!python/object/apply:os.mkdir ['exploded']\n")
    for name in ("__init__.py", "sitecustomize.py", "likelihood.py"):
        (folder / name).write_text(f"import os; os.mkdir({str(tmp_path / 'exploded')!r})\n")
    seen = nursery.do("fragile:load_watched", folder=str(folder))
    assert seen["opened"] == [
        "arrays.safetensors", "config.json", "history.parquet", "model.safetensors", "vertices.parquet",
    ]  # fmt: skip
    assert [event for event in seen["others"] if not event.startswith("import ")] == []
    assert not [event for event in seen["others"] if "pickle" in event]
    assert not (tmp_path / "exploded").exists()


def test_a_name_of_code_is_shown_and_not_imported(folder):
    reseal(folder, lambda document: document["parameters"].update(likelihood={"own": "os.system"}))
    with pytest.raises(FolderError, match=r"the likelihood os\.system; pass it"):
        load(folder)
    reseal(folder, lambda document: document["parameters"].update(likelihood="os.system"))
    with pytest.raises(FolderError, match="parameters that cannot be"):
        load(folder)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "a/../../x.parquet", "x\\y.parquet", "config.json"]
)
def test_no_path_leads_out(folder, name):
    reseal(folder, lambda document: document["files"].update({name: {"bytes": 1, "sha256": "0" * 64}}))
    with pytest.raises(FolderError, match="which no folder of ours has"):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "arrays.safetensors", "vertices.parquet"])
def test_links_pipes_and_folders_are_not_read(folder, tmp_path, name):
    place = folder / name
    place.rename(tmp_path / name)
    place.symlink_to(tmp_path / name)
    with pytest.raises(FolderError, match=r"not a regular file") as caught:
        load(folder)
    assert caught.value.path == place
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(FolderError, match="not a regular file"):  # and does not wait for someone to write to it
        load(folder)
    place.unlink()
    place.mkdir()
    with pytest.raises(FolderError, match="not a regular file"):
        load(folder)


def test_a_size_that_is_claimed_takes_no_memory(folder):
    reseal(folder, lambda document: document["files"]["model.safetensors"].update(bytes=10**15))
    with pytest.raises(FolderError, match=r"model\.safetensors: truncated"):
        load(folder)


def test_a_document_deep_or_large_is_refused(folder):
    os.truncate(folder / "config.json", persistence.MOST_DOCUMENT_BYTES + 1)  # takes no room on the disk
    with pytest.raises(FolderError, match="more than the 16,777,216 expected"):
        load(folder)
    for text in ("[" * 10**6, '{"a":' * 10**5 + "1" + "}" * 10**5):
        (folder / "config.json").write_text(text)
        with pytest.raises(FolderError, match=r"config\.json|names no format"):
            load(folder)


@pytest.mark.parametrize(("name", "value"), [("n_rows", 10**12), ("n_features", 10**12), ("n_features", 2**70)])
def test_numbers_that_claim_too_much_are_refused(folder, name, value):
    reseal(folder, lambda document: document["fitted"].update({name: value}))
    with pytest.raises(FolderError):
        load(folder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def loads_or_is_refused(folder: Path, expected=None) -> None:
    """Load a damaged folder: an error that names it, or a model whose parts fit together, or the one that it was."""
    try:
        model = load(folder)
    except FolderError as error:
        assert folder in (error.path, *error.path.parents)  # noqa: PT017
        return
    assert model.embedding_.shape == model.stddev_.shape == (len(model.ids_), model.n_components)
    if expected is None:
        assert np.isfinite(model.transform(fragile.data()[0])).all()
        return
    assert model.get_params() == expected.get_params()
    assert model.graph_ == expected.graph_
    for name in ("ids_", "embedding_", "stddev_", "weights_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))
    for name, tensor in expected.model_.state_dict().items():
        assert model.model_.state_dict()[name].equal(tensor)


@settings(max_examples=30)
@given(st.data())
def test_any_bytes_of_a_file_changed(saved, whole, tmp_path_factory, data):
    """With the checksum that was, nothing else may come of it; with one that fits again, nothing worse than errors."""
    folder = tmp_path_factory.mktemp("changed") / "run"
    shutil.copytree(saved, folder)
    place = folder / data.draw(st.sampled_from(sorted(path.name for path in saved.iterdir())))
    content = place.read_bytes()
    begin = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        end, piece = begin + 1, bytes([content[begin] ^ 1 << data.draw(st.integers(0, 7))])
    else:
        end = data.draw(st.integers(begin, min(len(content), begin + 8)) | st.just(len(content)))
        piece = data.draw(st.binary(max_size=8))
    place.write_bytes(changed := content[:begin] + piece + content[end:])
    sealed = place.name != "config.json" and data.draw(st.booleans())
    if sealed:
        claim = {"bytes": len(changed), "sha256": hashlib.sha256(changed).hexdigest()}
        reseal(folder, lambda document: document["files"].update({place.name: claim}))
    loads_or_is_refused(folder, None if sealed else whole)


@settings(max_examples=30)
@given(st.data())
def test_any_value_of_the_document_changed(saved, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("changed") / "run"
    shutil.copytree(saved, folder)

    def change(document):
        while True:
            key = data.draw(st.sampled_from([*document] if isinstance(document, dict) else range(len(document))))
            if isinstance(document[key], dict | list) and document[key] and data.draw(st.booleans()):
                document = document[key]
                continue
            document[key] = data.draw(JSON)
            return

    reseal(folder, change)
    loads_or_is_refused(folder)
