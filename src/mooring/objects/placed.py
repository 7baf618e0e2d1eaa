"""A pod on a node, as a compact record: what accounting, hints, preemption and spreading read.

Running pods are many (a million is planned for); their decoded objects are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mooring.base.clock import parse_timestamp
from mooring.objects.core import Affinity, Pod
from mooring.objects.requests import PodRequests, requests_on_node
from mooring.objects.volumes import PodVolume

HostPort = tuple[str, str, int]
"""IP, protocol, port."""
ANY_ADDRESS = "0.0.0.0"


class PlacedPod(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A pod that is bound to a node, or assumed there by us.

    What rules about other pods read, and no more: placed pods are many. Annotations and containers are not among it.
    """

    uid: str
    namespace: str
    name: str
    node: str
    labels: Mapping[str, str]
    requests: PodRequests
    priority: int = 0
    ports: tuple[HostPort, ...] = ()
    """The host ports it holds: address, protocol, number."""
    affinity: Affinity | None = None
    volumes: tuple[PodVolume, ...] = ()
    started: float | None = None
    """status.startTime (seconds since the epoch)."""
    owner_uid: str = ""
    """Of the controller that made it; "" without one."""
    group: str = ""
    """The name of its pod group; "" without one."""
    is_terminating: bool = False
    is_preempted: bool = False
    """Whether it is terminating because a scheduler preempted it."""
    assumed_at: float | None = None
    """When we decided it; None once the watch has confirmed it. `started` is set once it runs."""
    resource_version: str = ""
    generation: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_bound(self) -> bool:
        """Whether the watch has shown it on its node; not, if it is only assumed there."""
        return self.assumed_at is None

    def request(self, resource: str) -> int:
        return self.requests.amounts.get(resource, 0)


def placed(pod: Pod, node: str | None = None, *, assumed_at: float | None = None) -> PlacedPod:
    """The record of a pod on its node, or on the node we are about to bind it to."""
    metadata, spec = pod.metadata, pod.spec
    is_terminating = pod.is_terminating
    return PlacedPod(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        node=node if node is not None else spec.node_name,
        labels=metadata.labels,
        requests=requests_on_node(pod),
        priority=spec.priority or 0,
        ports=host_ports(pod),
        affinity=spec.affinity,
        volumes=pod.volumes if spec.has_volumes else (),
        started=parse_timestamp(pod.status.start_time) if pod.status.start_time else None,
        owner_uid=_controller_uid(pod) if metadata.owner_references else "",
        group=(spec.scheduling_group.pod_group_name or "") if spec.scheduling_group is not None else "",
        is_terminating=is_terminating,
        is_preempted=is_terminating and _is_preempted(pod),
        assumed_at=assumed_at,
        resource_version=metadata.resource_version,
        generation=metadata.generation,
    )


def confirmed(assumed: PlacedPod, pod: Pod) -> PlacedPod | None:
    """The record of a pod that was assumed and is bound now, from the one that was assumed; None: read all of the pod.

    A generation is that of a spec: as long as it is the same, the node is all that is new there.
    """
    status, metadata = pod.status, pod.metadata
    if (
        not assumed.generation
        or assumed.generation != metadata.generation
        or assumed.node != pod.spec.node_name
        or status.container_statuses
        or status.init_container_statuses
        or status.resources is not None
        or status.start_time is not None
        or metadata.deletion_timestamp is not None
        or assumed.owner_uid != _controller_uid(pod)
    ):
        return None
    return msgspec.structs.replace(
        assumed, labels=metadata.labels, assumed_at=None, resource_version=metadata.resource_version
    )


def _controller_uid(pod: Pod) -> str:
    return next((owner.uid for owner in pod.metadata.owner_references if owner.controller), "")


def _is_preempted(pod: Pod) -> bool:
    condition = pod.condition("DisruptionTarget")
    return condition is not None and (condition.status, condition.reason) == ("True", "PreemptionByScheduler")


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports that containers and sidecars hold."""
    spec = pod.spec
    if not spec.init_containers and len(spec.containers) == 1 and not spec.containers[0].ports:
        return ()  # most pods
    sidecars = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    return tuple(
        (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in [*sidecars, *pod.spec.containers]
        for port in container.ports
        if port.host_port > 0
    )
