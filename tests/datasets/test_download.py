import hashlib
import io
from http.client import IncompleteRead, RemoteDisconnected
from socket import gaierror
from urllib.error import URLError

import pytest

from corrvae.datasets import download as module
from corrvae.datasets.download import download, md5_of, part_of
from corrvae.errors import DataFileError
from corrvae.monitor import DONE, STOP, Cancelled, Monitor
from support.server import Site, serving

CONTENT = bytes(range(256)) * 4096  # 1 MB, more than one chunk
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(module, "_PAUSE", 0.0)


@pytest.fixture
def site():
    with serving(Site({"data.zip": CONTENT})) as running:
        yield running


def test_a_file_arrives_whole_and_alone(site, tmp_path):
    monitor = Monitor()
    download(f"{site.address}/data.zip", tmp_path / "new" / "data.zip", md5=MD5, monitor=monitor)
    assert (tmp_path / "new" / "data.zip").read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["data.zip"]
    assert (monitor.total, monitor.control[DONE]) == (len(CONTENT), len(CONTENT))
    assert md5_of(tmp_path / "new" / "data.zip") == MD5


def test_a_connection_that_breaks_off_is_taken_up_where_it_was(site, tmp_path):
    site.breaks_after = [300_000, 200_000]
    download(f"{site.address}/data.zip", tmp_path / "data.zip", md5=MD5)
    assert (tmp_path / "data.zip").read_bytes() == CONTENT
    assert site.asked == [None, "bytes=300000-", "bytes=500000-"]


def test_the_next_call_goes_on_from_what_an_earlier_one_left(site, tmp_path):
    target = tmp_path / "data.zip"
    part_of(target).write_bytes(CONTENT[:1000])
    download(f"{site.address}/data.zip", target, md5=MD5)
    assert target.read_bytes() == CONTENT
    assert site.asked == ["bytes=1000-"]


def test_a_part_that_is_whole_needs_nothing_more(site, tmp_path):
    part_of(tmp_path / "data.zip").write_bytes(CONTENT)
    download(f"{site.address}/data.zip", tmp_path / "data.zip", md5=MD5)
    assert (tmp_path / "data.zip").read_bytes() == CONTENT


def test_a_part_that_is_too_long_is_begun_again(site, tmp_path):
    part_of(tmp_path / "data.zip").write_bytes(CONTENT + b"more")
    download(f"{site.address}/data.zip", tmp_path / "data.zip", md5=MD5)
    assert (tmp_path / "data.zip").read_bytes() == CONTENT


def test_a_part_of_another_file_is_begun_again(site, tmp_path):
    part_of(tmp_path / "data.zip").write_bytes(b"something else")
    download(f"{site.address}/data.zip", tmp_path / "data.zip", md5=MD5)
    assert (tmp_path / "data.zip").read_bytes() == CONTENT


def test_a_site_without_ranges_sends_the_whole(site, tmp_path):
    site.takes_ranges = False
    part_of(tmp_path / "data.zip").write_bytes(CONTENT[:1000])
    download(f"{site.address}/data.zip", tmp_path / "data.zip", md5=MD5)
    assert (tmp_path / "data.zip").read_bytes() == CONTENT


def test_a_wrong_file_leaves_nothing_behind(site, tmp_path):
    with pytest.raises(DataFileError, match=f"has MD5 {MD5}, not 0000; it was removed") as caught:
        download(f"{site.address}/data.zip", tmp_path / "data.zip", md5="0000")
    assert caught.value.path == tmp_path / "data.zip"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_the_check_refuses_leaves_nothing_behind_and_keeps_the_old_one(site, tmp_path):
    def refuse(part):
        assert part.read_bytes() == CONTENT
        raise DataFileError(part, "not this one")

    (tmp_path / "data.zip").write_text("old")
    with pytest.raises(DataFileError, match="not this one"):
        download(f"{site.address}/data.zip", tmp_path / "data.zip", check=refuse)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("data.zip", "old")]


def test_a_site_that_breaks_off_for_good_leaves_only_the_part(site, tmp_path):
    site.breaks_after = [1000, 0, 0, 0, 0]
    with pytest.raises(DataFileError, match=r"the connection broke off\); what has arrived is kept.*--from FILE"):
        download(f"{site.address}/data.zip", tmp_path / "data.zip", md5=MD5)
    assert [path.name for path in tmp_path.iterdir()] == ["data.zip.part"]
    assert part_of(tmp_path / "data.zip").read_bytes() == CONTENT[:1000]


@pytest.mark.parametrize(("status", "tries"), [(404, 1), (403, 1), (503, 3)])
def test_what_the_site_says_is_told(site, tmp_path, status, tries):
    site.status = status
    with pytest.raises(
        DataFileError, match=f"the site says {status} .*Try again later, or take the file from elsewhere"
    ):
        download(f"{site.address}/data.zip", tmp_path / "data.zip")
    assert len(site.asked) == tries
    assert list(tmp_path.iterdir()) == []


def test_a_site_that_does_not_answer_is_told(tmp_path):
    with serving(Site()) as gone:
        address = gone.address
    with pytest.raises(DataFileError, match=r"the site does not answer: Connection refused\).*--from FILE"):
        download(f"{address}/data.zip", tmp_path / "data.zip")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (URLError(gaierror(-2, "Name or service not known")), "Name or service not known"),
        (URLError(TimeoutError("timed out")), "timed out"),
        (RemoteDisconnected("Remote end closed connection"), "Remote end closed connection"),
        (IncompleteRead(b""), r"IncompleteRead\(0 bytes read\)"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_why_a_site_does_not_answer_is_told_in_words(tmp_path, monkeypatch, error, words):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(module, "urlopen", refuse)
    with pytest.raises(DataFileError, match=rf"\(the site does not answer: {words}\)"):
        download("http://example.org/data.zip", tmp_path / "data.zip")


def test_a_request_to_stop_keeps_the_part(site, tmp_path, monkeypatch):
    monitor, check = Monitor(), Monitor.check

    def stop_when_some_has_arrived(self):
        self.control[STOP] = int(self.control[DONE] > 0)
        check(self)

    monkeypatch.setattr(Monitor, "check", stop_when_some_has_arrived)
    with pytest.raises(Cancelled):
        download(f"{site.address}/data.zip", tmp_path / "data.zip", monitor=monitor)
    assert [path.name for path in tmp_path.iterdir()] == ["data.zip.part"]


def test_a_folder_that_cannot_be_made_is_one_sentence(site, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFileError, match=r"cannot be written \("):
        download(f"{site.address}/data.zip", tmp_path / "file" / "data.zip")


class Response(io.BytesIO):
    """An answer of a site, with attributes."""


@pytest.mark.parametrize("length", ["abc", "-7", "1, 1", "9" * 5000])
def test_a_length_that_is_none_is_passed_over(tmp_path, monkeypatch, length):
    response = Response(CONTENT)
    response.status, response.headers = 200, {"Content-Length": length}
    monkeypatch.setattr(module, "urlopen", lambda *_, **__: response)
    download("http://example.org/data.zip", tmp_path / "data.zip", md5=MD5)
    assert (tmp_path / "data.zip").read_bytes() == CONTENT
