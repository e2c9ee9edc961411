"""A server on this machine for models too large for one file: details of points are computed when asked for."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from corrvae.estimator import CorrelatedVAE
from corrvae.plots.explorer.guide import Guide
from corrvae.plots.explorer.page import Labels, describe_group, describe_points, near_blocks, render

_ADDRESS = "127.0.0.1"
_MOST_BYTES = 2**26  # of a group: four for each of its members


def serve_explorer(
    model: CorrelatedVAE,
    *,
    port: int = 0,
    title: str = "A trained model",
    labels: Labels | None = None,
    n_clusters: int | None = None,
    layout: str = "pca",
    random_state: int = 0,
) -> ThreadingHTTPServer:
    """Return a server of the explorer of a fitted model; its `serve_forever` begins to answer.

    It listens on this machine only, answers requests for this machine's names only, so that no page of another site
    can reach it under a name of its own, and has no files: any other path is not found.

    Port 0 takes a free one, `server_port` of what is returned. The layout "neighbors" computes the neighbours of all
    points at the start; the rest is as in `write_explorer`.
    """
    guide = Guide(model, random_state=random_state)
    neighbors = guide.near().neighbors if layout == "neighbors" else None
    document, blocks = describe_points(
        guide,
        neighbors,
        layout,
        title=title,
        labels=labels,
        n_clusters=n_clusters,
        random_state=random_state,
        served=True,
    )
    page, n_points = render(document, blocks).encode("utf-8"), len(model.ids_)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            point = self.path.removeprefix("/points/")
            if self.path == "/":
                self._answer(200, page, "text/html; charset=utf-8")
            elif point != self.path and point.isdecimal() and int(point) < n_points:
                rows = np.array([int(point)])
                self._answer_json(
                    {name: array[0] for name, array in near_blocks(guide, rows, guide.near(rows)).items()}
                )
            else:
                self._answer(404, b"not found")

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            members = np.frombuffer(self.rfile.read(min(length, _MOST_BYTES) // 4 * 4), "<u4").astype(np.int64)
            if self.path == "/group" and len(members) and members.max() < n_points:
                self._answer_json(describe_group(guide, members))
            else:
                self._answer(404, b"not found")

        def parse_request(self) -> bool:
            if not super().parse_request():
                return False
            names = {f"{name}:{self.server.server_port}" for name in (_ADDRESS, "localhost")}  # pyright: ignore[reportAttributeAccessIssue]
            if self.headers.get("Host") in names:
                return True
            self.send_error(403, "only requests for this machine are answered")
            return False

        def _answer_json(self, values: dict[str, Any]) -> None:
            text = json.dumps({name: np.asarray(value).tolist() for name, value in values.items()})
            self._answer(200, text.replace("NaN", "null").encode(), "application/json")

        def _answer(self, code: int, body: bytes, kind: str = "text/plain") -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Keep quiet."""

    return ThreadingHTTPServer((_ADDRESS, port), Handler)
