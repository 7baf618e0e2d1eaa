"""What every cluster grants kube-scheduler: its roles system:kube-scheduler, system:volume-scheduler and, in
kube-system, the one for its lease. Facts of Kubernetes v1.36; a test compares them with a real API server's roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.deploy.rights import Right

_READ, _UPDATE = ("get", "list", "watch"), ("patch", "update")
_GRANTED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("", "nodes services replicationcontrollers namespaces", _READ),
    ("", "pods", (*_READ, "delete")),
    ("", "pods/binding bindings", ("create",)),
    ("", "pods/status", _UPDATE),
    ("", "pods/finalizers", ("update",)),
    ("", "persistentvolumes persistentvolumeclaims", (*_READ, *_UPDATE)),
    ("", "events", ("create", *_UPDATE)),
    ("events.k8s.io", "events", ("create", *_UPDATE)),
    ("apps", "replicasets statefulsets", _READ),
    ("policy", "poddisruptionbudgets", _READ),
    ("storage.k8s.io", "csinodes csidrivers csistoragecapacities storageclasses volumeattachments", _READ),
    ("resource.k8s.io", "deviceclasses resourceslices", _READ),
    ("resource.k8s.io", "resourceclaims", (*_READ, *_UPDATE, "create", "delete")),
    ("resource.k8s.io", "resourceclaims/status", (*_READ, *_UPDATE)),
    ("resource.k8s.io", "resourceclaims/binding", _UPDATE),
    ("authentication.k8s.io", "tokenreviews", ("create",)),
    ("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)
_WITH_GENERIC_WORKLOAD: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("scheduling.k8s.io", "podgroups", _READ),
    ("scheduling.k8s.io", "podgroups/status", _UPDATE),
)
"""Granted by an API server with the gate; without it these are not served."""
_LEASES = Right("coordination.k8s.io", "leases", "", "kube-system")
_LEASE_VERBS = ("get", "list", "watch", "create", "update")


def granted_everywhere(*, with_pod_groups: bool = False) -> Iterator[Right]:
    """Each verb on each resource, for the whole cluster."""
    for group, resources, verbs in (*_GRANTED, *(_WITH_GENERIC_WORKLOAD if with_pod_groups else ())):
        for resource in resources.split():
            for verb in verbs:
                yield Right(group, resource, verb)


def beyond_kube_scheduler(rights: Iterable[Right], *, with_optional: bool = False) -> tuple[Right, ...]:
    """The needed ones of these rights that kube-scheduler's own account has not, or also the optional ones."""
    granted = set(granted_everywhere(with_pod_groups=True))

    def is_granted(right: Right) -> bool:
        if (right.group, right.resource, right.namespace) == (_LEASES.group, _LEASES.resource, _LEASES.namespace):
            return right.verb in _LEASE_VERBS
        return Right(right.group, right.resource, right.verb) in granted

    return tuple(right for right in rights if (with_optional or not right.is_optional) and not is_granted(right))
