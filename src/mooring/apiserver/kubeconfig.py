"""The kubeconfig that points kubectl at an embedded server."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from mooring.apiserver.documents import Document
from mooring.base.documents import written
from mooring.base.private import write_private

NAME = "mooring"


def kubeconfig(url: str, token: str, ca_pem: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": NAME,
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(ca_pem.encode()).decode(),
                },
            }
        ],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }


def write_whole(path: Path, config: Document) -> None:
    """Write the file for its owner's eyes only; it appears whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    write_private(draft, written(config))
    draft.replace(path)
