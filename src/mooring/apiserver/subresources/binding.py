"""Binding: assigns a pod to a node, once."""

from __future__ import annotations

from mooring.apiserver.documents import Document
from mooring.apiserver.negotiation import decode_as
from mooring.apiserver.options import write_options
from mooring.apiserver.registry import check_preconditions
from mooring.apiserver.status import bad_request, conflict, success
from mooring.apiserver.strategies.pod_admission import topology_labels
from mooring.apiserver.subresources.base import SubresourceHandler, SubresourceRequest
from mooring.base.clock import timestamp

BINDING = "io.k8s.api.core.v1.Binding"


class BindingHandler(SubresourceHandler):
    """Serves `pods/binding` and `bindings`."""

    def post(self, call: SubresourceRequest) -> Document:
        registry, route = call.registry, call.route
        binding = decode_as(call.body, BINDING, "Binding")
        metadata = binding.get("metadata") or {}
        name = route.name or metadata.get("name", "")
        if route.name and metadata.get("name", route.name) != route.name:
            raise bad_request("name in URL does not match name in Binding object")
        target = binding.get("target") or {}
        if target.get("kind", "") not in ("", "Node") or not target.get("name"):
            raise bad_request("a Binding must name its target node")
        pods = registry.table.find("", "v1", "pods")
        assert pods is not None
        current = registry.stored(pods, route.namespace, name)
        check_preconditions(pods, current.document["metadata"], metadata.get("uid"), metadata.get("resourceVersion"))
        if (obstacle := _obstacle(current.document)) is not None:
            raise conflict("", "pods/binding", name, obstacle)
        if not write_options(call.query).dry_run:
            context = registry.context
            labels = {**(metadata.get("labels") or {}), **topology_labels(target["name"], context)}
            bound = _bound(
                current.document, target["name"], {**metadata, "labels": labels}, timestamp(context.clock.now())
            )
            registry.store.update("pods", bound, current)
        return success() | {"code": 201}


def _obstacle(pod: Document) -> str | None:
    """Why the pod cannot be bound."""
    metadata, spec = pod["metadata"], pod["spec"]
    name, node = metadata["name"], spec.get("nodeName")
    obstacles = {
        f"pod {name} is being deleted, cannot be assigned to a host": metadata.get("deletionTimestamp"),
        f'pod {name} is already assigned to node "{node}"': node,
        f"pod {name} has non-empty .spec.schedulingGates": spec.get("schedulingGates"),
    }
    return next((sentence for sentence, applies in obstacles.items() if applies), None)


def _bound(pod: Document, node: str, binding: Document, now: str) -> Document:
    """The bound pod, with the binding's labels and annotations; unchanged parts are shared with the old one."""
    bound = dict(pod)
    bound["spec"] = {**pod["spec"], "nodeName": node}
    metadata = bound["metadata"] = dict(pod["metadata"])
    for field in ("annotations", "labels"):
        if binding.get(field):
            metadata[field] = {**(metadata.get(field) or {}), **binding[field]}
    status = bound["status"] = dict(pod.get("status") or {})
    status.pop("nominatedNodeName", None)
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    conditions = list(status.get("conditions") or [])
    place = next((index for index, each in enumerate(conditions) if each.get("type") == "PodScheduled"), None)
    if place is None:
        conditions.append(scheduled)
    else:
        conditions[place] = scheduled
    status["conditions"] = conditions
    return bound
