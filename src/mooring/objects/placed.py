"""A pod on a node, as a compact record: what accounting, hints, preemption and spreading read.

Running pods are many (a million is planned for); their decoded objects are not kept.
"""

from __future__ import annotations

import msgspec

from mooring.base.clock import parse_timestamp
from mooring.objects.core import Affinity, Pod
from mooring.objects.requests import PodRequests, requests_on_node

HostPort = tuple[str, str, int]
"""IP, protocol, port."""


class PlacedPod(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A pod that is bound to a node, or assumed there by us."""

    uid: str
    namespace: str
    name: str
    node: str
    labels: dict[str, str]
    requests: PodRequests
    priority: int = 0
    ports: tuple[HostPort, ...] = ()
    affinity: Affinity | None = None
    volumes: tuple[dict[str, object], ...] = ()
    started: float | None = None
    owner_uid: str = ""
    is_terminating: bool = False
    assumed_at: float | None = None
    """When we decided it; None once the watch has confirmed it. Whether it runs yet is what `started` tells."""
    resource_version: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def request(self, resource: str) -> int:
        return self.requests.amounts.get(resource, 0)


def placed(pod: Pod, node: str | None = None, *, assumed_at: float | None = None) -> PlacedPod:
    """The record of a pod on its node, or on the node we are about to bind it to."""
    spec = pod.spec
    return PlacedPod(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        node=node if node is not None else spec.node_name,
        labels=pod.labels,
        requests=requests_on_node(pod),
        priority=pod.priority,
        ports=host_ports(pod),
        affinity=spec.affinity,
        volumes=tuple(spec.volumes),
        started=parse_timestamp(pod.status.start_time) if pod.status.start_time else None,
        owner_uid=next((owner.uid for owner in pod.metadata.owner_references if owner.controller), ""),
        is_terminating=pod.is_terminating,
        assumed_at=assumed_at,
        resource_version=pod.metadata.resource_version,
    )


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports that containers and sidecars hold."""
    sidecars = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    return tuple(
        (port.host_ip or "0.0.0.0", port.protocol, port.host_port)
        for container in [*sidecars, *pod.spec.containers]
        for port in container.ports
        if port.host_port > 0
    )
