import bz2
import hashlib
import io
import os
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from corrvae.datasets import cache_folder, get, locate, published
from corrvae.datasets.published import CATALOGUE, Publication, open_member
from corrvae.errors import DataFileError

TEXTS = {"ratings_data.txt": b"1 10 4\n2 10 5\n", "trust_data.txt": b" 1 2 1\n 2 1 1\n"}
RATINGS = b"userId,movieId,rating,timestamp\n1,2,3,4\n"


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return stream.getvalue()


def md5(content):
    return hashlib.md5(content).hexdigest()


@contextmanager
def serving(files):
    """Serve files on a free port of this machine; yield the address and the list of paths asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            content = files.get(self.path.lstrip("/"))
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "data"


@pytest.fixture
def site(folder, monkeypatch):
    """A site that publishes small data under the names of the real ones, with their checksums."""
    archive = zipped({"ml-20m/ratings.csv": RATINGS})
    files = {"ml-20m.zip": archive, **{f"{name}.bz2": bz2.compress(text) for name, text in TEXTS.items()}}
    with serving(files) as (address, asked):
        movies = Publication({f"{address}/ml-20m.zip": md5(archive)}, ("ratings.csv",), "GroupLens")
        trust = Publication({f"{address}/{name}.bz2": None for name in TEXTS}, tuple(TEXTS), "Massa")
        catalogue = {"ml-20m": movies, "epinions": trust}
        monkeypatch.setattr(published, "CATALOGUE", catalogue)
        yield files, asked


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) if folder.exists() else []


def test_an_archive_is_downloaded_once(folder, site):
    assert get("ml-20m", quiet=True) == folder / "ml-20m.zip"
    assert names(folder) == ["ml-20m.zip"]
    assert get("ml-20m") == locate("ml-20m") == folder / "ml-20m.zip"
    assert len(site[1]) == 1


def test_several_files_become_a_folder(folder, site):
    files, asked = site
    trust = files.pop("trust_data.txt.bz2")
    with pytest.raises(DataFileError, match=r"trust_data\.txt\.bz2 cannot be downloaded \(404.*--from FILE"):
        get("epinions", quiet=True)
    with pytest.raises(DataFileError, match="epinions is not there"):
        locate("epinions")
    files["trust_data.txt.bz2"] = trust
    count = len(asked)
    assert get("epinions", quiet=True) == folder / "epinions"
    assert len(asked) == count + 1  # what has arrived is not asked for again
    assert names(folder) == ["epinions", "epinions/ratings_data.txt.bz2", "epinions/trust_data.txt.bz2"]
    assert get("epinions") == folder / "epinions"


def test_a_wrong_download_is_not_kept(folder, site):
    site[0]["ml-20m.zip"] = b"not an archive"
    with pytest.raises(DataFileError, match=r"is not as published.*Try again later"):
        get("ml-20m", quiet=True)
    assert names(folder) == []


def test_a_site_that_does_not_answer(folder, monkeypatch):
    nowhere = Publication({"http://127.0.0.1:9/ml-20m.zip": "0"}, ("ratings.csv",), "")
    monkeypatch.setattr(published, "CATALOGUE", {"ml-20m": nowhere})
    with pytest.raises(DataFileError, match=r"http://127\.0\.0\.1:9/ml-20m\.zip cannot be downloaded"):
        get("ml-20m", quiet=True)


def test_data_at_hand_are_copied(folder, site, tmp_path):
    (tmp_path / "mine.zip").write_bytes(zipped({"x/ratings.csv": RATINGS}))
    assert get("ml-20m", tmp_path / "mine.zip") == folder / "ml-20m.zip"
    (tmp_path / "trust_data.txt").write_bytes(TEXTS["trust_data.txt"])
    (tmp_path / "ratings_data.txt.bz2").write_bytes(bz2.compress(TEXTS["ratings_data.txt"]))
    assert get("epinions", tmp_path / "trust_data.txt") == folder / "epinions"  # beside the other
    assert names(folder) == ["epinions", "epinions/ratings_data.txt", "epinions/trust_data.txt", "ml-20m.zip"]
    assert site[1] == []
    with pytest.raises(DataFileError, match=r"should hold one ratings_data\.txt; it holds none"):
        get("epinions", tmp_path / "mine.zip")
    with pytest.raises(DataFileError, match="nowhere: there is no such file"):
        get("ml-20m", tmp_path / "nowhere")


def test_the_folder_of_data(monkeypatch):
    monkeypatch.setenv("CORRVAE_DATA", "~/data")
    assert cache_folder() == Path.home() / "data"
    monkeypatch.delenv("CORRVAE_DATA")
    assert cache_folder().name == "corrvae"
    with pytest.raises(ValueError, match="there is no data set named 'ml-2m'; there are ml-1m"):
        locate("ml-2m")


def test_addresses_are_those_of_the_publishers():
    hosts = {address.split("/")[2] for publication in CATALOGUE.values() for address in publication.addresses}
    assert hosts == {"files.grouplens.org", "www.trustlet.org"}


def test_members(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped({"in/x.txt": b"1", "in/y.txt.bz2": bz2.compress(b"2"), "x.csv": b"3"}))
    for wanted, expected in (
        (["x.txt"], ("x.txt", b"1")),
        (["y.txt"], ("y.txt", b"2")),
        (["z", "x.csv"], ("x.csv", b"3")),
    ):
        with open_member(tmp_path / "a.zip", wanted) as (name, stream):
            assert (name, stream.read()) == expected
    with (
        pytest.raises(DataFileError, match=r"it should hold one x\.txt or x\.csv; it holds"),
        open_member(tmp_path / "a.zip", ["x.txt", "x.csv"]),
    ):
        pass
    whole = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(whole.replace(b"in/x.txt1", b"in/x.txt7"))
    with pytest.raises(DataFileError, match=r"it is damaged or cannot be read \(Bad CRC"):
        read_all(tmp_path / "a.zip", "x.txt")
    (tmp_path / "y.txt.bz2").write_bytes(bz2.compress(b"2" * 1000)[:-5])
    with pytest.raises(DataFileError, match="it is damaged or cannot be read"):
        read_all(tmp_path, "y.txt")


def read_all(path, name):
    with open_member(path, [name]) as (_, stream):
        return stream.read()


@pytest.mark.parametrize("name", ["ml-1m", "epinions"])
def test_real_archives_are_as_published(name):
    folder = os.environ.get("CORRVAE_DATA")
    if not folder or not Path(folder, f"{name}.zip").exists():
        pytest.skip(f"{name}.zip is not in the folder CORRVAE_DATA")
    assert get(name) == Path(folder, f"{name}.zip")
