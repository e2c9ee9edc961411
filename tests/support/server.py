"""A web server for tests, on this machine, that can be told to misbehave."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """What a site holds and how it behaves; `asked` records the ranges it was asked for."""

    files: dict[str, bytes] = field(default_factory=dict)
    breaks_after: list[int] = field(default_factory=list)  # bytes to send before breaking off, for each next request
    takes_ranges: bool = True
    status: int | None = None
    asked: list[str | None] = field(default_factory=list)
    address: str = ""


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """Serve a site on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers.get("Range")
            site.asked.append(asked)
            content = site.files.get(self.path.lstrip("/"))
            if content is None or site.status is not None:
                self.send_error(site.status or 404)
                return
            begin = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and site.takes_ranges else 0
            if begin >= len(content) > 0 and begin:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - begin))
            self.end_headers()
            end = begin + site.breaks_after.pop(0) if site.breaks_after else len(content)
            self.wfile.write(content[begin:end])

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # it looks for its end as often as this, and every test waits for that
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
