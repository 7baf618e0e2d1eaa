"""Admission of pods: Priority, RuntimeClass, ServiceAccount, DefaultTolerationSeconds and PodTopologyLabels."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, items_of, metadata_of
from mooring.apiserver.status import StatusError, forbidden
from mooring.apiserver.strategies.base import StrategyContext

PREEMPT = "PreemptLowerPriority"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
TOLERATED_SECONDS = 300
TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def admit_pod(pod: Document, context: StrategyContext) -> None:
    spec = pod["spec"]
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    _service_account(pod, spec["serviceAccountName"], context)
    _runtime_class(pod, spec, context)
    _priority(pod, spec, context)
    _default_tolerations(spec)
    if spec.get("nodeName") and (labels := topology_labels(spec["nodeName"], context)):
        metadata = metadata_of(pod)
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}


def topology_labels(node: str, context: StrategyContext) -> dict[str, str]:
    """The node's zone and region, which become labels of the pod when it is bound (PodTopologyLabels)."""
    found = context.store.get("nodes", "", node)
    labels = (metadata_of(found).get("labels") or {}) if found else {}
    return {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}


def admit_pod_update(pod: Document, old: Document) -> None:
    """Restore what admission computed and the client has left out."""
    spec, then = pod["spec"], old["spec"]
    for field in ("priority", "preemptionPolicy"):
        if field in then:
            spec.setdefault(field, then[field])
    _default_tolerations(spec)


def _rejected(pod: Document, why: str) -> StatusError:
    metadata = metadata_of(pod)
    return forbidden("", "pods", metadata.get("name") or metadata.get("generateName", ""), why)


def _priority(pod: Document, spec: Document, context: StrategyContext) -> None:
    """The priority comes from the class; a pod may repeat it, never choose it."""
    name = spec.get("priorityClassName")
    found = priority_class(name, context)
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    elif name:
        raise _rejected(pod, f"no PriorityClass with name {name} was found")
    value = found.get("value", 0) if found else 0
    policy = (found.get("preemptionPolicy") if found else None) or PREEMPT
    given = spec.get("priority")
    if given is not None and given != value:
        raise _rejected(
            pod,
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller"
            f" computed {value} from the given PriorityClass name",
        )
    spec["priority"] = value
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        raise _rejected(
            pod,
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission"
            f" controller computed {policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = policy


def priority_class(name: str | None, context: StrategyContext) -> Document | None:
    """The class of that name; without a name the default class, if there is one."""
    return context.store.get("priorityclasses.scheduling.k8s.io", "", name) if name else _default_class(context)


def _default_class(context: StrategyContext) -> Document | None:
    """The default class; the one of lowest value where there are several."""
    defaults = [each for each in context.store.list("priorityclasses.scheduling.k8s.io") if each.get("globalDefault")]
    return min(defaults, key=lambda each: int(each.get("value", 0)), default=None)


def _service_account(pod: Document, account: str, context: StrategyContext) -> None:
    """The account must exist, except `default`, which a controller creates after the namespace."""
    namespace = metadata_of(pod)["namespace"]
    if account != "default" and context.store.get("serviceaccounts", namespace, account) is None:
        raise _rejected(
            pod, f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        )


def _runtime_class(pod: Document, spec: Document, context: StrategyContext) -> None:
    name = spec.get("runtimeClassName")
    if not name:
        return
    found = context.store.get("runtimeclasses.node.k8s.io", "", name)
    if found is None:
        raise _rejected(pod, f'pod rejected: RuntimeClass "{name}" not found')
    overhead = (found.get("overhead") or {}).get("podFixed")
    if overhead:
        if spec.get("overhead") and spec["overhead"] != overhead:
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise _rejected(pod, why)
        spec["overhead"] = dict(overhead)
    scheduling = found.get("scheduling") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        selector = spec.setdefault("nodeSelector", {})
        if selector.setdefault(key, value) != value:
            raise _rejected(pod, f"pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}")
    for toleration in scheduling.get("tolerations") or []:
        if toleration not in items_of(spec, "tolerations"):
            spec.setdefault("tolerations", []).append(dict(toleration))


def _default_tolerations(spec: Document) -> None:
    """Tolerate not-ready and unreachable nodes for five minutes, unless the pod has its own tolerations of them."""
    present = items_of(spec, "tolerations")
    missing = [key for key in (NOT_READY, UNREACHABLE) if not any(_covers(each, key) for each in present)]
    if missing:
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_SECONDS}
            for key in missing
        ]
        spec["tolerations"] = [*present, *added]


def _covers(toleration: Any, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")
