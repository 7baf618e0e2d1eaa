"""The files of the page, read once: what is not among them at the start is not served."""

from __future__ import annotations

import gzip
import hashlib
from importlib import resources
from typing import NamedTuple

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
}
INDEX = "index.html"


class StaticFile(NamedTuple):
    """Ready to be sent."""

    body: bytes
    packed: bytes
    """By gzip."""
    content_type: str
    etag: str


def static_files() -> dict[str, StaticFile]:
    """By URL path."""
    found = {}
    for entry in resources.files("mooring.web").joinpath("static").iterdir():
        suffix = f".{entry.name.rpartition('.')[2]}"
        if not entry.is_file() or suffix not in TYPES:
            continue
        body = entry.read_bytes()
        etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
        found[f"/{entry.name}"] = StaticFile(body, gzip.compress(body, 9, mtime=0), TYPES[suffix], etag)
    if (index := found.get(f"/{INDEX}")) is not None:
        found["/"] = index
    return found
