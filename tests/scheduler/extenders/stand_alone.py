"""An extender as a user would write one, in a process of its own: lets through nodes whose label `quiet` is `yes`,
and prefers the one that comes last in the alphabet. Prints its address."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def filtered(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    quiet = [node for node in nodes if node["metadata"].get("labels", {}).get("quiet") == "yes"]
    loud = {node["metadata"]["name"]: "node(s) were too loud" for node in nodes if node not in quiet}
    return {"nodes": {"items": quiet}, "failedNodes": loud, "error": ""}


def scored(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = sorted(node["metadata"]["name"] for node in nodes)
    return [{"host": name, "score": 10 if name == names[-1] else 0} for name in names]


class Handler(BaseHTTPRequestHandler):
    """One connection for each args: HTTP/1.0."""

    def do_POST(self) -> None:  # the name that http.server requires
        nodes = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["Nodes"]["items"]
        response = filtered(nodes) if self.path == "/filter" else scored(nodes)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(response).encode())

    def log_message(self, format: str, *args: Any) -> None: ...


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
