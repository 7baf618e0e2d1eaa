"""The kubeconfig that points kubectl at an embedded server."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from mooring.apiserver.documents import Document
from mooring.base.documents import written

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


def write_private(path: Path, config: Document) -> None:
    """Write the file for its owner's eyes only; it appears whole or not at all."""
    text = written(config)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
