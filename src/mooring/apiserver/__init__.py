"""An embedded Kubernetes API server: the wire format of kube-apiserver, in this process, with no cluster behind it."""

from mooring.apiserver.server import EmbeddedApiServer, keep_collector_calm

__all__ = ["EmbeddedApiServer", "keep_collector_calm"]
