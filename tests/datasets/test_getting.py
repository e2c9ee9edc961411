import bz2
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corrvae.cli import app
from corrvae.datasets import catalogue, download, epinions, getting, movielens
from corrvae.datasets.catalogue import PublishedFile
from corrvae.errors import DataFileError
from support.published import archive, csv_lines
from support.server import Site, serving

TEXTS = {"ratings_data.txt": "1 10 4\n2 10 5\n", "trust_data.txt": " 1 2 1\n 2 1 1\n"}


def md5(content):
    return hashlib.md5(content.encode() if isinstance(content, str) else content).hexdigest()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    return tmp_path / "data"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site that publishes small data under the names of the real ones, with their checksums."""
    zipped = archive(tmp_path / "published.zip", {"ml-20m/ratings.csv": csv_lines()}).read_bytes()
    files = {f"{name}.bz2": bz2.compress(text.encode()) for name, text in TEXTS.items()}
    with serving(Site({"ml-20m.zip": zipped, **files})) as running:
        movies = replace(
            catalogue.CATALOGUE["ml-20m"],
            files=(PublishedFile(f"{running.address}/ml-20m.zip", md5(zipped)),),
            members=(("ratings.csv", md5(csv_lines())),),
        )
        trust = replace(
            catalogue.CATALOGUE["epinions"],
            files=tuple(PublishedFile(f"{running.address}/{name}") for name in files),
            members=tuple((name, md5(text)) for name, text in TEXTS.items()),
        )
        monkeypatch.setattr(catalogue, "CATALOGUE", {"ml-20m": movies, "epinions": trust})
        yield running


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) if folder.exists() else []


def run(*arguments):
    return CliRunner().invoke(app, ["data", "get", *map(str, arguments)])


def test_an_archive_is_got_once(folder, site):
    result = run("ml-20m")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == f"ml-20m is there now: {folder / 'ml-20m.zip'}"
    assert "GroupLens" in result.stdout
    assert names(folder) == ["ml-20m.zip"]
    assert len(movielens("ml-20m", min_ratings=1).users) == 40
    assert "was there already" in run("ml-20m").stdout
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    ("content", "problem"), [(b"cut short", "is neither a folder"), (None, r"ratings\.csv has MD5 \w+ where ml-20m")]
)
def test_what_is_there_and_wrong_is_kept_with_a_word_on_what_to_do(folder, site, tmp_path, content, problem):
    folder.mkdir()
    other = archive(tmp_path / "other.zip", {"ratings.csv": "userId,movieId\n"}).read_bytes()
    (folder / "ml-20m.zip").write_bytes(content or other)
    with pytest.raises(DataFileError, match=rf"{problem}.*; remove it, and the next try gets it anew, or .*--from"):
        getting.get("ml-20m")
    assert names(folder) == ["ml-20m.zip"]
    assert site.asked == []
    (folder / "ml-20m.zip").unlink()
    assert not getting.get("ml-20m").was_there


def test_several_files_become_a_folder(folder, site):
    got = getting.get("epinions")
    assert (got.path, got.was_there) == (folder / "epinions", False)
    assert names(folder) == ["epinions", "epinions/ratings_data.txt.bz2", "epinions/trust_data.txt.bz2"]
    assert epinions(min_ratings=1).graph.n_edges == 1
    assert getting.get("epinions").was_there


def test_files_that_have_arrived_are_not_asked_for_again(folder, site):
    trust = site.files.pop("trust_data.txt.bz2")
    with pytest.raises(DataFileError, match="the site says 404"):
        getting.get("epinions")
    assert names(folder) == ["epinions.part", "epinions.part/ratings_data.txt.bz2"]
    site.files["trust_data.txt.bz2"] = trust
    asked = len(site.asked)
    getting.get("epinions")
    assert len(site.asked) == asked + 1
    assert names(folder) == ["epinions", "epinions/ratings_data.txt.bz2", "epinions/trust_data.txt.bz2"]


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("ml-20m", "ml-20m.zip", b"not an archive"),
        ("epinions", "trust_data.txt.bz2", bz2.compress(b" 1 2 1\n")),
        ("epinions", "trust_data.txt.bz2", b"<html>another site has this address now</html>"),
    ],
)
def test_wrong_downloads_leave_nothing_behind(folder, site, name, file, content):
    site.files[file] = content
    result = run(name)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert f"what {site.address}" in result.stderr
    assert "; it was removed. Try again later, or take the file from elsewhere and hand it over with" in result.stderr
    assert ".part" not in result.stderr
    assert names(folder) == []


def test_a_site_that_does_not_answer_is_one_sentence_with_what_to_do(folder, site):
    site.status = 503
    result = run("ml-20m")
    assert result.exit_code == 2
    assert "Try again later, or take the file from elsewhere and hand it over with --from FILE" in result.stderr
    assert names(folder) == []


@pytest.mark.parametrize("name", ["ml-20m", "epinions"])
def test_a_download_of_which_nothing_arrives_leaves_nothing_behind(folder, site, name):
    site.status = 503
    with pytest.raises(DataFileError, match="the site says 503"):
        getting.get(name)
    assert names(folder) == []


@pytest.mark.parametrize("form", ["zip", "folder", "file", "bz2"])
def test_data_at_hand_are_taken(folder, site, tmp_path, form):
    source = tmp_path / "source"
    source.mkdir()
    if form == "zip":
        source = archive(source / "mine.zip", TEXTS)
    else:
        for name, text in TEXTS.items():
            path, content = source / name, text.encode()
            (path.with_name(f"{name}.bz2") if form == "bz2" else path).write_bytes(
                bz2.compress(content) if form == "bz2" else content
            )
        source = source / "ratings_data.txt" if form == "file" else source
    result = run("epinions", "--from", source)
    assert result.exit_code == 0, result.output
    assert site.asked == []
    expected = ["epinions.zip"] if form == "zip" else ["epinions", *(f"epinions/{name}" for name in TEXTS)]
    assert names(folder) == expected
    assert epinions(min_ratings=1).graph.n_edges == 1


def test_data_at_hand_take_the_place_of_what_was_there(folder, site, tmp_path):
    getting.get("epinions")
    getting.get("epinions", archive(tmp_path / "mine.zip", TEXTS))
    assert names(folder) == ["epinions.zip"]
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    getting.get("epinions", tmp_path / "ratings_data.txt")
    assert names(folder) == ["epinions", "epinions/ratings_data.txt", "epinions/trust_data.txt"]


@pytest.mark.parametrize("name", ["ml-20m", "epinions"])
def test_data_at_hand_take_the_place_of_half_a_download(folder, site, tmp_path, name):
    site.breaks_after = [10, 0, 0, 0, 0]
    with pytest.raises(DataFileError, match="what has arrived is kept"):
        getting.get(name)
    assert any("part" in left for left in names(folder))
    getting.get(name, archive(tmp_path / "mine.zip", {"ratings.csv": csv_lines(), **TEXTS}))
    assert names(folder) == [f"{name}.zip"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_told_of_the_folder_that_is_written(folder, site, tmp_path, monkeypatch):
    """Not of the one that is read, though that is open at the same time."""
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    opened = Path.open
    monkeypatch.setattr(Path, "open", lambda path, mode="r": opened(Path("/dev/full"), mode))
    result = run("epinions", "--from", tmp_path)
    assert (result.exit_code, result.stderr) == (3, f"{folder}: cannot be written (No space left on device)\n")
    assert names(folder) == []


def test_wrong_data_at_hand_are_refused(folder, site, tmp_path):
    wrong = archive(tmp_path / "mine.zip", {**TEXTS, "trust_data.txt": "1 2 1\n"})
    with pytest.raises(DataFileError, match=r"trust_data\.txt has MD5 \w+ where epinions as published has \w+"):
        getting.get("epinions", wrong)
    evil = archive(tmp_path / "evil.zip", {**TEXTS, "../evil.txt": ""})
    with pytest.raises(DataFileError, match="would leave the folder"):
        getting.get("epinions", evil)
    assert run("epinions", "--from", tmp_path / "nowhere").exit_code == 2
    assert names(folder) == []


def test_the_archive_of_another_data_set_is_refused(folder, site, tmp_path, monkeypatch):
    """Where contents have no known checksum: the archives of MovieLens hold files of the same names."""
    archives = {
        name: archive(tmp_path / f"{name}.zip", {f"{name}/ratings.csv": csv_lines()}) for name in ("ml-20m", "ml-25m")
    }
    known = {
        name: replace(
            catalogue.published("ml-20m"),
            name=name,
            files=(PublishedFile(f"{site.address}/{name}.zip", md5(path.read_bytes())),),
            members=(("ratings.csv", None),),
        )
        for name, path in archives.items()
    }
    monkeypatch.setattr(catalogue, "CATALOGUE", known)
    with pytest.raises(DataFileError, match="is ml-25m as published, not ml-20m"):
        getting.get("ml-20m", archives["ml-25m"])
    assert names(folder) == []
    mine = archive(tmp_path / "mine.zip", {"ratings.csv": csv_lines()})
    for source in (archives["ml-20m"], mine):
        assert getting.get("ml-20m", source).path == folder / "ml-20m.zip"


@pytest.mark.parametrize("form", ["zip", "file"])
def test_the_contents_of_another_data_set_are_refused_however_they_are_packed(folder, tmp_path, monkeypatch, form):
    smaller, larger = (catalogue.published(name) for name in ("ml-1m", "ml-10m"))
    smaller = replace(smaller, members=(("ratings.dat", md5("1::10::4::0\n")),))
    monkeypatch.setattr(catalogue, "CATALOGUE", {"ml-1m": smaller, "ml-10m": larger})
    source = tmp_path / "ratings.dat"
    source.write_bytes(b"1::10::4::0\n")
    if form == "zip":
        source = archive(tmp_path / "mine.zip", {"ml-1m/ratings.dat": "1::10::4::0\n"})
    with pytest.raises(DataFileError, match=r"ratings\.dat is that of ml-1m as published, not of ml-10m"):
        getting.get("ml-10m", source)
    assert names(folder) == []
    assert getting.get("ml-1m", source).path.exists()


def test_unknown_names_are_one_sentence(folder):
    result = run("netflix")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("there is no data set named 'netflix'")


def test_a_folder_that_cannot_be_written_is_one_sentence(site, tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path / "taken"))
    for arguments in (["epinions"], ["epinions", "--from", archive(tmp_path / "mine.zip", TEXTS)]):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "cannot be written (" in result.stderr
