"""What the API fills into a pod spec, also inside the templates of workloads."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, ensured, items_of
from mooring.apiserver.strategies.base import set_default

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def default_pod_spec(spec: Document) -> None:
    """Defaults that depend on nothing but the spec."""
    set_default(spec, "restartPolicy", "Always")
    set_default(spec, "dnsPolicy", "ClusterFirst")
    set_default(spec, "schedulerName", "default-scheduler")
    set_default(spec, "terminationGracePeriodSeconds", 30)
    set_default(spec, "securityContext", {})
    # The old name of the same field; whichever is set fills the other.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    is_host_network = bool(spec.get("hostNetwork"))
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in items_of(spec, name):
            _default_container(container, is_host_network)
    for volume in items_of(spec, "volumes"):
        _default_volume(volume)


def default_pod(spec: Document) -> None:
    """Defaults of a pod itself, which a template does not get."""
    default_pod_spec(spec)
    set_default(spec, "enableServiceLinks", True)
    for name in ("initContainers", "containers"):
        for container in items_of(spec, name):
            _requests_from_limits(container.get("resources"))
    _requests_from_limits(spec.get("resources"))


def _requests_from_limits(resources: Any) -> None:
    if isinstance(resources, dict) and resources.get("limits"):
        requests = ensured(resources, "requests")
        for resource, limit in resources["limits"].items():
            requests.setdefault(resource, limit)


def _default_container(container: Document, is_host_network: bool) -> None:
    set_default(container, "imagePullPolicy", _pull_policy(container.get("image") or ""))
    set_default(container, "terminationMessagePath", "/dev/termination-log")
    set_default(container, "terminationMessagePolicy", "File")
    set_default(container, "resources", {})
    for port in items_of(container, "ports"):
        set_default(port, "protocol", "TCP")
        if is_host_network and not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort")
    for variable in items_of(container, "env"):
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            set_default(reference, "apiVersion", "v1")
    for name in _PROBES:
        if probe := container.get(name):
            _default_probe(probe)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and hook.get("httpGet"):
            _default_http(hook["httpGet"])


def _default_probe(probe: Document) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(field):
            probe[field] = value
    if probe.get("httpGet"):
        _default_http(probe["httpGet"])
    if probe.get("grpc"):
        set_default(probe["grpc"], "service", "")


def _default_http(http: Document) -> None:
    http["path"] = http.get("path") or "/"
    http["scheme"] = http.get("scheme") or "HTTP"


def _pull_policy(image: str) -> str:
    """Always for `latest`, named or implied; a digest or another tag is pulled once."""
    last = image.rsplit("/", 1)[-1]
    if "@" in last:
        return "IfNotPresent"
    tag = last.partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_volume(volume: Document) -> None:
    if len(volume) == 1 and "name" in volume:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if isinstance(volume.get(source), dict):
            set_default(volume[source], "defaultMode", 420)
    if isinstance(volume.get("hostPath"), dict):
        set_default(volume["hostPath"], "type", "")
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template:
        set_default(ensured(template, "spec"), "volumeMode", "Filesystem")
