"""`namespaces/finalize`: sets the finalizers of a namespace after its content is deleted."""

from __future__ import annotations

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.negotiation import decode_as
from mooring.apiserver.subresources.base import SubresourceHandler, SubresourceRequest

NAMESPACE = "io.k8s.api.core.v1.Namespace"


class FinalizeHandler(SubresourceHandler):
    def put(self, call: SubresourceRequest) -> Document:
        namespace = decode_as(call.body, NAMESPACE, "Namespace")
        finalizers = items_of(part(namespace, "spec"), "finalizers")
        return call.registry.finalize_namespace(call.route.name, finalizers)
