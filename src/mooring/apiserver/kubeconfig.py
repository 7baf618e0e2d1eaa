"""The kubeconfig that points kubectl at an embedded server."""

from __future__ import annotations

import base64

from mooring.apiserver.documents import Document

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
