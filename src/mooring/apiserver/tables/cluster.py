"""Columns of nodes, namespaces, events, services and other kinds that are neither workloads nor storage."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.strategies.events import to_core
from mooring.apiserver.tables.ages import age
from mooring.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    PrinterColumn,
    at,
    column,
    integer,
    labels_text,
    selector_cell,
    text,
)

_ROLE = "node-role.kubernetes.io/"


def _node_status(node: Document) -> str:
    ready = next((each for each in items_of(part(node, "status"), "conditions") if each.get("type") == "Ready"), None)
    word = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if part(node, "spec").get("unschedulable") else word


def _roles(node: Document) -> str:
    labels = part(node, "metadata", "labels")
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | {
        labels.get("kubernetes.io/role", "")
    }
    return ",".join(sorted(roles - {""})) or NONE


def _address(node: Document, type: str) -> str:
    addresses = items_of(part(node, "status"), "addresses")
    return next((str(each.get("address")) for each in addresses if each.get("type") == type), NONE)


def _kernel(node: Document) -> str:
    info = part(node, "status", "nodeInfo")
    kernel = info.get("kernelVersion") or UNKNOWN
    return f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel


def _hosts(ingress: Document) -> str:
    hosts = [str(rule["host"]) for rule in items_of(part(ingress, "spec"), "rules") if rule.get("host")]
    more = f" + {len(hosts) - 3} more..." if len(hosts) > 3 else ""
    return ",".join(hosts[:3]) + more if hosts else "*"


def _load_balancers(ingress: Document) -> str:
    points = items_of(part(ingress, "status", "loadBalancer"), "ingress")
    return ",".join(str(point.get("ip") or point.get("hostname") or "") for point in points)


def _core(event: Document) -> Document:
    return event if event.get("apiVersion") == "v1" else to_core(event)


def _first_seen(event: Document, now: float) -> str:
    event = _core(event)
    return age(event.get("firstTimestamp") or event.get("eventTime"), now)


def _last_seen(event: Document, now: float) -> str:
    event = _core(event)
    series = event.get("series")
    if series:
        return age(series.get("lastObservedTime"), now)
    return age(event.get("lastTimestamp") or event.get("firstTimestamp") or event.get("eventTime"), now)


def _event_object(event: Document) -> str:
    involved = part(_core(event), "involvedObject")
    kind = str(involved.get("kind", "")).lower()
    return f"{kind}/{involved['name']}" if involved.get("name") else kind


def _event_source(event: Document) -> str:
    event = _core(event)
    component = part(event, "source").get("component") or event.get("reportingComponent") or ""
    instance = part(event, "source").get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _event_count(event: Document) -> int:
    event = _core(event)
    return int(part(event, "series").get("count") or event.get("count") or 1)


def _external_ip(service: Document) -> str:
    spec = part(service, "spec")
    addresses = [str(each) for each in items_of(spec, "externalIPs")]
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") == "LoadBalancer":
        ingress = items_of(part(service, "status", "loadBalancer"), "ingress")
        addresses = [str(each.get("ip") or each.get("hostname")) for each in ingress] + addresses
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or NONE


def _ports(service: Document) -> str:
    shown = []
    for port in items_of(part(service, "spec"), "ports"):
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port')}{node_port}/{port.get('protocol')}")
    return ",".join(shown) or NONE


def _endpoints(endpoints: Document) -> str:
    places = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in items_of(endpoints, "subsets")
        for port in items_of(subset, "ports") or [{"port": ""}]
        for address in items_of(subset, "addresses")
    ]
    shown = ",".join(places[:3])
    return (f"{shown} + {len(places) - 3} more..." if len(places) > 3 else shown) or NONE


def _slice_ports(each: Document) -> str:
    return ",".join(str(port.get("port", "*")) for port in items_of(each, "ports")) or UNSET


def _slice_endpoints(each: Document) -> str:
    places = [str(address) for endpoint in items_of(each, "endpoints") for address in items_of(endpoint, "addresses")]
    shown = ",".join(places[:3])
    return (f"{shown} + {len(places) - 3} more..." if len(places) > 3 else shown) or UNSET


def _role(binding: Document) -> str:
    reference = part(binding, "roleRef")
    return f"{reference.get('kind')}/{reference.get('name')}"


def _subjects(kind: str) -> PrinterColumn:
    def read(binding: Document) -> str:
        found = [each for each in items_of(binding, "subjects") if each.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{each.get('namespace')}/{each.get('name')}" for each in found)
        return ", ".join(str(each.get("name")) for each in found)

    return column(f"{kind}s", read, wide=True)


def _data_count(document: Document) -> int:
    return len(part(document, "data")) + len(part(document, "binaryData"))


def _quota(field: str, is_limit: bool) -> Any:
    def read(quota: Document) -> str:
        hard, used = part(quota, "status", "hard") or part(quota, "spec", "hard"), part(quota, "status", "used")
        shown = [
            f"{name}: {used.get(name, '0')}/{amount}"
            for name, amount in sorted(hard.items())
            if name.startswith("limits.") == is_limit
        ]
        return ", ".join(shown)

    return column(field, read)


_BINDING = [NAME, column("Role", _role), AGE, _subjects("User"), _subjects("Group"), _subjects("ServiceAccount")]
# Roles show when they were created, to the second, where others show an age.
_ROLES = [NAME, text("Created At", "metadata", "creationTimestamp")]

CLUSTER_COLUMNS: dict[str, list[PrinterColumn]] = {
    "nodes": [
        NAME,
        column("Status", _node_status),
        column("Roles", _roles),
        AGE,
        text("Version", "status", "nodeInfo", "kubeletVersion"),
        column("Internal-IP", lambda node: _address(node, "InternalIP"), wide=True),
        column("External-IP", lambda node: _address(node, "ExternalIP"), wide=True),
        text("OS-Image", "status", "nodeInfo", "osImage", otherwise=UNKNOWN, wide=True),
        column("Kernel-Version", _kernel, wide=True),
        text("Container-Runtime", "status", "nodeInfo", "containerRuntimeVersion", otherwise=UNKNOWN, wide=True),
    ],
    "namespaces": [NAME, text("Status", "status", "phase"), AGE],
    "events": [
        PrinterColumn("Last Seen", _last_seen),
        column("Type", lambda event: event.get("type", "")),
        column("Reason", lambda event: event.get("reason", "")),
        column("Object", _event_object),
        column("Subobject", lambda event: part(_core(event), "involvedObject").get("fieldPath", ""), wide=True),
        column("Source", _event_source, wide=True),
        column("Message", lambda event: str(_core(event).get("message", "")).strip()),
        PrinterColumn("First Seen", _first_seen, priority=1),
        column("Count", _event_count, wide=True),
        column("Name", lambda event: event["metadata"]["name"], wide=True),
    ],
    "services": [
        NAME,
        text("Type", "spec", "type"),
        text("Cluster-IP", "spec", "clusterIP", otherwise=NONE),
        column("External-IP", _external_ip),
        column("Port(s)", _ports),
        AGE,
        column("Selector", lambda service: labels_text(at(service, "spec", "selector")), wide=True),
    ],
    "endpoints": [NAME, column("Endpoints", _endpoints), AGE],
    "endpointslices.discovery.k8s.io": [
        NAME,
        text("AddressType", "addressType"),
        column("Ports", _slice_ports),
        column("Endpoints", _slice_endpoints),
        AGE,
    ],
    "configmaps": [NAME, column("Data", _data_count), AGE],
    "secrets": [NAME, text("Type", "type"), column("Data", _data_count), AGE],
    "serviceaccounts": [NAME, AGE],
    "resourcequotas": [NAME, _quota("Request", False), _quota("Limit", True), AGE],
    "limitranges": [NAME, text("Created At", "metadata", "creationTimestamp")],
    "roles.rbac.authorization.k8s.io": _ROLES,
    "clusterroles.rbac.authorization.k8s.io": _ROLES,
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "priorityclasses.scheduling.k8s.io": [
        NAME,
        integer("Value", "value"),
        column("Global-Default", lambda each: bool(each.get("globalDefault")), type="boolean"),
        AGE,
        text("PreemptionPolicy", "preemptionPolicy"),
    ],
    "leases.coordination.k8s.io": [NAME, text("Holder", "spec", "holderIdentity"), AGE],
    "networkpolicies.networking.k8s.io": [
        NAME,
        column("Pod-Selector", lambda policy: selector_cell(at(policy, "spec", "podSelector"))),
        AGE,
    ],
    "ingresses.networking.k8s.io": [
        NAME,
        text("Class", "spec", "ingressClassName", otherwise=NONE),
        column("Hosts", _hosts),
        column("Address", _load_balancers),
        column("Ports", lambda ingress: "80, 443" if at(ingress, "spec", "tls") else "80"),
        AGE,
    ],
    "ingressclasses.networking.k8s.io": [NAME, text("Controller", "spec", "controller"), AGE],
    "runtimeclasses.node.k8s.io": [NAME, text("Handler", "handler"), AGE],
    "customresourcedefinitions.apiextensions.k8s.io": [NAME, text("Created At", "metadata", "creationTimestamp")],
}
