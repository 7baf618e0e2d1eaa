"""Binding: puts a pod on a node, once. The one write a scheduler lives for."""

from __future__ import annotations

from mooring.apiserver.documents import Document
from mooring.apiserver.negotiation import checked_as, is_dry_run
from mooring.apiserver.status import bad_request, conflict, success
from mooring.apiserver.storage import Stored
from mooring.apiserver.subresources.base import Call, SubresourceHandler
from mooring.base.clock import timestamp

BINDING = "io.k8s.api.core.v1.Binding"


class BindingHandler(SubresourceHandler):
    """Puts a pod on a node, once: the one write a scheduler lives for."""

    def post(self, call: Call) -> Document:
        registry, route = call.registry, call.route
        binding = checked_as(call.body, BINDING, "Binding")
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
        _refuse_binding(current, name, metadata)
        if not is_dry_run(call.query):
            bound = _bound(current.document, target["name"], metadata, timestamp(registry.world.clock.now()))
            registry.store.update("pods", bound, current)
        return success() | {"code": 201}


def _refuse_binding(current: Stored, name: str, asked: Document) -> None:
    pod = current.document
    metadata, spec = pod["metadata"], pod["spec"]
    if asked.get("uid") and asked["uid"] != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {asked['uid']}, UID in object meta: {metadata['uid']}"
        raise conflict("", "pods", name, why)
    version = asked.get("resourceVersion")
    if version and version != metadata["resourceVersion"]:
        why = (
            f"Precondition failed: ResourceVersion in precondition: {version},"
            f" ResourceVersion in object meta: {metadata['resourceVersion']}"
        )
        raise conflict("", "pods", name, why)
    if metadata.get("deletionTimestamp"):
        raise conflict("", "pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise conflict("", "pods/binding", name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise conflict("", "pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")


def _bound(pod: Document, node: str, asked: Document, now: str) -> Document:
    """The pod on its node; parts that do not change are shared with the unbound one."""
    bound = dict(pod)
    bound["spec"] = {**pod["spec"], "nodeName": node}
    metadata = bound["metadata"] = dict(pod["metadata"])
    for field in ("annotations", "labels"):
        if asked.get(field):
            metadata[field] = {**(metadata.get(field) or {}), **asked[field]}
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
