import sys
from pathlib import Path

import pytest

from corrvae.datasets.cache import cache_folder, locate, places
from corrvae.errors import MissingDataFileError


def test_the_environment_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    assert cache_folder() == tmp_path


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "home/.cache/corrvae"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "home/.cache/corrvae"),
        ("linux", {"XDG_CACHE_HOME": "{tmp}/cache"}, "cache/corrvae"),
        ("darwin", {}, "home/Library/Caches/corrvae"),
        ("win32", {}, "home/AppData/Local/corrvae/Cache"),
        ("win32", {"LOCALAPPDATA": "{tmp}/local"}, "local/corrvae/Cache"),
    ],
)
def test_otherwise_the_platform_does(monkeypatch, tmp_path, platform, variables, expected):
    for name in ("CORRVAE_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path))
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert cache_folder() == tmp_path / expected


def test_data_are_found_as_an_archive_or_a_folder_and_else_told_how_to_get(monkeypatch, tmp_path):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path))
    with pytest.raises(MissingDataFileError, match="ml-1m is not there yet; get it with: corrvae data get ml-1m"):
        locate("ml-1m")
    archive, folder = places("ml-1m")
    folder.mkdir()
    assert locate("ml-1m") == folder
    archive.write_bytes(b"")
    assert locate("ml-1m") == archive
