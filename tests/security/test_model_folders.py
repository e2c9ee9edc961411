"""A model folder from a stranger: no code in it runs, nothing outside it is read, and nothing in it unfolds."""

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import fragile
from corrvae import load, persistence
from corrvae.errors import FolderError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    counts, graph = fragile.data()
    folder = tmp_path_factory.mktemp("model") / "run"
    fragile.estimator(4).fit(counts, graph=graph).save(folder)
    return folder


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
