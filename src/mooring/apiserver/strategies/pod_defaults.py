"""Defaulting of pod specs, also inside the templates of workloads."""

from __future__ import annotations

from mooring.apiserver.documents import Document, ensured, items_of, part
from mooring.apiserver.strategies.base import set_default, set_text
from mooring.apiserver.strategies.resource_requirements import default_pod_amounts, round_requirements, round_up
from mooring.apiserver.strategies.volume_sources import default_source

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def default_pod_spec(spec: Document) -> None:
    """Defaults of the spec of a pod or a template."""
    set_text(spec, "restartPolicy", "Always")
    set_text(spec, "dnsPolicy", "ClusterFirst")
    set_text(spec, "schedulerName", "default-scheduler")
    set_default(spec, "terminationGracePeriodSeconds", 30)
    set_default(spec, "securityContext", {})
    # `serviceAccount` is the deprecated alias: either one defaults the other.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    round_requirements(spec.get("resources"))
    round_up(spec.get("overhead"))
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in items_of(spec, name):
            _default_container(container)
    for volume in items_of(spec, "volumes"):
        _default_volume(volume)


def default_pod(spec: Document) -> None:
    """Defaults of a pod, some of which templates do not get."""
    default_pod_spec(spec)
    set_default(spec, "enableServiceLinks", True)
    default_pod_amounts(spec)
    if spec.get("hostNetwork"):
        for container in items_of(spec, "initContainers") + items_of(spec, "containers"):
            for port in items_of(container, "ports"):
                port["hostPort"] = port.get("hostPort") or port.get("containerPort")


def _default_container(container: Document) -> None:
    set_text(container, "imagePullPolicy", _pull_policy(container.get("image") or ""))
    set_text(container, "terminationMessagePath", "/dev/termination-log")
    set_text(container, "terminationMessagePolicy", "File")
    set_default(container, "resources", {})
    round_requirements(container["resources"])
    for port in items_of(container, "ports"):
        set_text(port, "protocol", "TCP")
    for variable in items_of(container, "env"):
        _default_references(variable.get("valueFrom") or {})
    for name in _PROBES:
        if probe := container.get(name):
            _default_probe(probe)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and hook.get("httpGet"):
            _default_http(hook["httpGet"])


def _default_references(holder: Document) -> None:
    """References to fields and resources of the pod, and to keys of files."""
    if reference := part(holder, "fieldRef"):
        set_text(reference, "apiVersion", "v1")
    if reference := part(holder, "resourceFieldRef"):
        set_default(reference, "divisor", "0")
    if reference := part(holder, "fileKeyRef"):
        set_default(reference, "optional", False)


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
    """Always for `latest`, explicit or implied; IfNotPresent for a digest or another tag."""
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
    default_source(volume)
    if isinstance(image := volume.get("image"), dict):
        set_text(image, "pullPolicy", _pull_policy(image.get("reference") or ""))
    sources = items_of(part(volume, "projected"), "sources")
    for token in (part(source, "serviceAccountToken") for source in sources):
        if token:
            set_default(token, "expirationSeconds", 3600)
    for fields in (part(volume, "downwardAPI"), *(part(source, "downwardAPI") for source in sources)):
        for item in items_of(fields, "items"):
            _default_references(item)
    if template := part(volume, "ephemeral", "volumeClaimTemplate"):
        set_default(ensured(template, "spec"), "volumeMode", "Filesystem")
        round_requirements(template["spec"].get("resources"))
