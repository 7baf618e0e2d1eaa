"""Validation of pods, and of the pod templates of workloads."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, items_of
from mooring.apiserver.status import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_found_field,
    required,
    unsupported,
)
from mooring.apiserver.validation.metadata import check_labels
from mooring.apiserver.validation.pod_groups import check_scheduling_group
from mooring.apiserver.validation.quantities import check_amount, check_resources
from mooring.apiserver.validation.scheduling import check_affinity, check_gates, check_spread, check_tolerations
from mooring.objects.names import dns_label, dns_subdomain

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROTOCOLS = ("SCTP", "TCP", "UDP")
PORT_RANGE = "must be between 1 and 65535, inclusive"


def check_pod(pod: Document) -> list[FieldError]:
    spec = pod["spec"]
    errors = check_pod_spec(spec, "spec")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        errors.append(forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def check_pod_spec(spec: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    volumes = _check_volumes(items_of(spec, "volumes"), f"{path}.volumes", errors)
    containers = items_of(spec, "containers")
    if not containers:
        errors.append(required(f"{path}.containers"))
    names: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(items_of(spec, field)):
            errors += _check_container(container, f"{path}.{field}[{index}]", volumes, names)
    if spec.get("restartPolicy") not in RESTART_POLICIES:
        errors.append(unsupported(f"{path}.restartPolicy", spec.get("restartPolicy", ""), RESTART_POLICIES))
    if spec.get("dnsPolicy") not in DNS_POLICIES:
        errors.append(unsupported(f"{path}.dnsPolicy", spec.get("dnsPolicy", ""), DNS_POLICIES))
    grace = spec.get("terminationGracePeriodSeconds", 0)
    if grace < 0:
        errors.append(
            invalid_value(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
        )
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        why = "must be between 1 and 2147483647, inclusive"
        errors.append(invalid_value(f"{path}.activeDeadlineSeconds", deadline, why))
    errors += check_scheduling_group(spec, path)
    errors += check_labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    errors += check_tolerations(items_of(spec, "tolerations"), f"{path}.tolerations")
    errors += check_affinity(spec.get("affinity"), f"{path}.affinity")
    errors += check_spread(items_of(spec, "topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    errors += check_gates(items_of(spec, "schedulingGates"), f"{path}.schedulingGates")
    errors += check_resources(spec.get("resources"), f"{path}.resources")
    for resource, text in (spec.get("overhead") or {}).items():
        errors += check_amount(resource, text, f"{path}.overhead[{resource}]")
    for field in ("nodeName", "serviceAccountName", "priorityClassName", "runtimeClassName"):
        if spec.get(field):
            errors += [
                invalid_value(f"{path}.{field}", spec[field], sentence) for sentence in dns_subdomain(spec[field])
            ]
    if spec.get("preemptionPolicy") not in (None, "PreemptLowerPriority", "Never"):
        errors.append(
            unsupported(f"{path}.preemptionPolicy", spec["preemptionPolicy"], ("Never", "PreemptLowerPriority"))
        )
    return errors


def _check_volumes(volumes: list[Any], path: str, errors: list[FieldError]) -> set[str]:
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name", "")
        if not name:
            errors.append(required(f"{here}.name"))
        elif name in names:
            errors.append(duplicate(f"{here}.name", name))
        else:
            errors += [invalid_value(f"{here}.name", name, sentence) for sentence in dns_label(name)]
        names.add(name)
        sources = [field for field in volume if field != "name"]
        if len(sources) > 1:
            errors.append(forbidden_field(f"{here}.{sources[1]}", "may not specify more than 1 volume type"))
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            errors.append(required(f"{here}.persistentVolumeClaim.claimName"))
    return names


def _check_container(container: Document, path: str, volumes: set[str], names: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    name = container.get("name", "")
    if not name:
        errors.append(required(f"{path}.name"))
    elif name in names:
        errors.append(duplicate(f"{path}.name", name))
    else:
        errors += [invalid_value(f"{path}.name", name, sentence) for sentence in dns_label(name)]
    names.add(name)
    image = container.get("image", "")
    if not image:
        errors.append(required(f"{path}.image"))
    elif image != image.strip():
        errors.append(invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace"))
    if container.get("imagePullPolicy") not in PULL_POLICIES:
        errors.append(unsupported(f"{path}.imagePullPolicy", container.get("imagePullPolicy", ""), PULL_POLICIES))
    for index, port in enumerate(items_of(container, "ports")):
        errors += _check_port(port, f"{path}.ports[{index}]")
    for index, variable in enumerate(items_of(container, "env")):
        if not variable.get("name"):
            errors.append(required(f"{path}.env[{index}].name"))
        if variable.get("value") and variable.get("valueFrom"):
            why = "may not be specified when `value` is not empty"
            errors.append(invalid_value(f"{path}.env[{index}].valueFrom", "", why))
    mounted: set[str] = set()
    for index, mount in enumerate(items_of(container, "volumeMounts")):
        here = f"{path}.volumeMounts[{index}]"
        if not mount.get("name"):
            errors.append(required(f"{here}.name"))
        elif mount["name"] not in volumes:
            errors.append(not_found_field(f"{here}.name", mount["name"]))
        if not mount.get("mountPath"):
            errors.append(required(f"{here}.mountPath"))
        elif mount["mountPath"] in mounted:
            errors.append(invalid_value(f"{here}.mountPath", mount["mountPath"], "must be unique"))
        mounted.add(mount.get("mountPath", ""))
    return errors + check_resources(container.get("resources"), f"{path}.resources")


def _check_port(port: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    number = port.get("containerPort", 0)
    if not number:
        errors.append(required(f"{path}.containerPort"))
    elif not 1 <= number <= 65535:
        errors.append(invalid_value(f"{path}.containerPort", number, PORT_RANGE))
    host = port.get("hostPort", 0)
    if host and not 1 <= host <= 65535:
        errors.append(invalid_value(f"{path}.hostPort", host, PORT_RANGE))
    if port.get("protocol") not in PROTOCOLS:
        errors.append(unsupported(f"{path}.protocol", port.get("protocol", ""), PROTOCOLS))
    return errors
