"""Pushing to and loading from a hub: huggingface_hub against a stand-in on this machine."""

import base64
import json
import threading
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from corrvae import CorrelatedVAE, load
from corrvae.errors import FolderError
from corrvae.io import from_hub, push_to_hub
from support.runs import trained


class Hub(BaseHTTPRequestHandler):
    """The requests of one upload and one download; files of a repository are kept as bytes by name."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        repositories = self.server.repositories
        if self.path == "/api/validate-yaml":  # of the card
            return self.answer(200, {"errors": [], "warnings": []})
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
            if name in repositories:
                return self.answer(409, {"url": f"{self.server.address}/{name}"})
            repositories[name] = {}
            self.server.private[name] = asked.get("private") or asked.get("visibility") == "private"
            return self.answer(200, {"url": f"{self.server.address}/{name}"})
        files = repositories["/".join(self.path.split("/")[3:5])]
        if "/preupload/" in self.path:
            asked = [file["path"] for file in json.loads(body)["files"]]
            kinds = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in asked]
            return self.answer(200, {"files": kinds})
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        commit = self.commit(files)
        url = f"{self.server.address}/{'/'.join(self.path.split('/')[3:5])}/commit/{commit}"
        return self.answer(200, {"commitOid": commit, "commitUrl": url})

    def do_GET(self):
        if self.path.startswith("/api/models/"):
            name = "/".join(self.path.partition("?")[0].split("/")[3:5])
            files = self.server.repositories[name]
            if "/tree/" in self.path:
                listed = [
                    {"type": "file", "path": path, "size": len(data), "oid": sha1(data).hexdigest()}
                    for path, data in files.items()
                ]
                return self.answer(200, listed)
            siblings = [{"rfilename": path} for path in files]
            return self.answer(200, {"id": name, "sha": self.commit(files), "siblings": siblings})
        owner, repo, _, _, path = self.path.removeprefix("/").split("/", 4)
        files = self.server.repositories[f"{owner}/{repo}"]
        headers = {"ETag": f'"{sha1(files[path]).hexdigest()}"', "X-Repo-Commit": self.commit(files)}
        return self.answer(200, files[path], headers)

    def do_HEAD(self):
        self.do_GET()

    def commit(self, files):
        return sha1(repr(sorted(files.items())).encode()).hexdigest()

    def answer(self, code, body, headers=None):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.repositories, server.private = {}, {}
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_model_comes_back_as_it_was_pushed(hub, tmp_path):
    options = {"token": "hf_secret", "endpoint": hub.address}
    model = trained()
    model.save(tmp_path / "run")
    (tmp_path / "run" / "history.csv").write_text("my own\n")
    assert push_to_hub(tmp_path / "run", "ann/music", **options).startswith(hub.address)
    files = hub.repositories["ann/music"]
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert set(files) == {"config.json", "README.md", *config["files"]}  # neither the lock nor files of others
    assert hub.private["ann/music"] is True
    again = load(from_hub("ann/music", cache_dir=tmp_path / "cache", **options))
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    np.testing.assert_array_equal(again.ids_, model.ids_)
    # another model in its place: the files of the first one go, the card stays as it is
    files["README.md"] = b"my card"
    other = CorrelatedVAE(2, max_steps=2, random_state=0).fit(np.eye(5))
    other.save(tmp_path / "run")
    push_to_hub(tmp_path / "run", "ann/music", **options)
    assert files["README.md"] == b"my card"
    assert all(name in json.loads(files["config.json"])["files"] for name in set(files) - {"config.json", "README.md"})
    again = load(from_hub("ann/music", cache_dir=tmp_path / "cache", **options))
    np.testing.assert_array_equal(again.embedding_, other.embedding_)


def test_only_a_model_is_pushed(tmp_path):
    with pytest.raises(FolderError, match="holds no model"):
        push_to_hub(tmp_path / "nowhere", "ann/music")
    assert list(tmp_path.iterdir()) == []
