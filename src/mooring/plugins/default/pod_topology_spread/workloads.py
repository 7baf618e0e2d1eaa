"""Default spreading: selectors of the Services that select a pod, and of the controller that owns it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from mooring.framework import Objects, Pod
from mooring.objects.selectors import LabelSelector, Requirement, mistake_in
from mooring.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet


class Workloads:
    """Selectors of the Services and the controller of a pod."""

    def __init__(
        self,
        services: Objects[Service],
        replication_controllers: Objects[ReplicationController],
        replica_sets: Objects[ReplicaSet],
        stateful_sets: Objects[StatefulSet],
    ) -> None:
        self._all_services = services
        self._services = services.indexed(_place)
        self._replication_controllers = replication_controllers
        self._replica_sets = replica_sets
        self._stateful_sets = stateful_sets

    def version(self, pod: Pod) -> tuple[object, ...]:
        """While it is the same, so is the selector of pods of the same template."""
        services, owners = self._all_services.version, pod.metadata.owner_references
        if not owners:
            return (services,)
        controllers = self._replication_controllers, self._replica_sets, self._stateful_sets
        return (services, *[each.version for each in controllers], *owners)

    def selector(self, pod: Pod) -> tuple[Requirement, ...]:
        """What all pods like this one have in common: the selectors of its Services and of its owner, merged.

        Empty: no Service selects the pod, and no known controller owns it.
        """
        labels = self._labels_of_services(pod)
        more: tuple[Requirement, ...] = ()
        for owner in pod.metadata.owner_references:
            if not owner.controller:
                continue
            match owner.api_version, owner.kind:
                case "v1", "ReplicationController":
                    controller = self._replication_controllers.get(owner.name, pod.namespace)
                    labels |= controller.spec.selector if controller is not None else {}
                case "apps/v1", "ReplicaSet":
                    replica_set = self._replica_sets.get(owner.name, pod.namespace)
                    more = _readable(replica_set.spec.selector if replica_set is not None else None)
                case "apps/v1", "StatefulSet":
                    stateful_set = self._stateful_sets.get(owner.name, pod.namespace)
                    more = _readable(stateful_set.spec.selector if stateful_set is not None else None)
            break  # a pod has one controller
        if not labels:
            return tuple(sorted(more))
        merged: set[Requirement] = {(key, "In", (value,)) for key, value in labels.items()}
        return tuple(sorted(merged.union(more)))

    def _labels_of_services(self, pod: Pod) -> dict[str, str]:
        own, namespace = pod.labels, pod.namespace
        merged: dict[str, str] = {}
        for key, value in own.items():
            for service in self._services.at((namespace, key, value)):
                selector = service.spec.selector
                if all(own.get(wanted) == value for wanted, value in selector.items()):
                    merged |= selector
        return merged


def _place(service: Service) -> Iterable[Hashable]:
    """A Service is filed under one label that its pods must have; one without a selector has no pods."""
    selector = service.spec.selector
    return [(service.namespace, *min(selector.items()))] if selector else []


def _readable(selector: LabelSelector | None) -> tuple[Requirement, ...]:
    return selector.requirements() if selector is not None and not mistake_in(selector) else ()
