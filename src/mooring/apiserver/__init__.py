"""An embedded Kubernetes API server: the wire format of kube-apiserver, in this process, with no cluster behind it."""

from mooring.apiserver.server import EmbeddedApiServer

__all__ = ["EmbeddedApiServer"]
