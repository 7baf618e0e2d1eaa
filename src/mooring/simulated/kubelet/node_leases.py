"""Node leases: each simulated node renews its Lease, as kubelets do.

The embedded cluster does not need them, but `kubectl describe node` shows them, and the node lifecycle controller of a
real cluster marks a node without them as unreachable. More than ten renewals a second are avoided by a longer interval,
unless one is configured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mooring.base.clock import Clock, micro_timestamp
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.objects.meta import Kind
from mooring.simulated.kubelet.simulated_nodes import SimulatedNode
from mooring.simulated.records import Document, NodeRecord

LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
LEASE_NAMESPACE = "kube-node-lease"
INTERVAL_SECONDS = 10.0
MAX_RENEWALS_PER_SECOND = 10


class NodeLeases:
    """Renews the leases of all simulated nodes, evenly spread over the interval."""

    def __init__(
        self,
        client: ApiClient,
        simulated_nodes: Callable[[], Iterable[SimulatedNode]],
        *,
        clock: Clock,
        interval_seconds: float | None = None,
    ) -> None:
        self._client = client
        self._machines = simulated_nodes
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._log = Log("heartbeats")

    async def run(self) -> None:
        """Renew the leases until cancelled; an interval of 0 disables them."""
        if self._interval_seconds == 0:
            return
        is_first_round = True
        while True:
            simulated_nodes = list(self._machines())
            interval = self.interval(len(simulated_nodes))
            pause = interval / max(1, len(simulated_nodes))
            if is_first_round:
                pause, is_first_round = 1 / MAX_RENEWALS_PER_SECOND, False
            for host in simulated_nodes:
                await self._renew(host.node, interval)
                await self._clock.sleep(pause)
            if not simulated_nodes:
                await self._clock.sleep(interval)

    def interval(self, nodes: int) -> float:
        return self._interval_seconds or max(INTERVAL_SECONDS, nodes / MAX_RENEWALS_PER_SECOND)

    async def _renew(self, node: NodeRecord, interval: float) -> None:
        try:
            renewal = {"spec": self._spec(node, interval)}
            try:
                await self._client.patch(LEASE, node.name, LEASE_NAMESPACE, renewal, form="merge")
            except ApiError as error:
                if error.code != 404:
                    raise
                await self._client.create(LEASE, self._lease(node, interval), LEASE_NAMESPACE)
        except Fault as error:
            self._log.v(2).warning("Failed to renew node lease", node=node, err=str(error))

    def _spec(self, node: NodeRecord, interval: float) -> Document:
        return {
            "holderIdentity": node.name,
            "leaseDurationSeconds": int(4 * interval),
            "renewTime": micro_timestamp(self._clock.now()),
        }

    def _lease(self, node: NodeRecord, interval: float) -> Document:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
        metadata = {"name": node.name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
        return {"metadata": metadata, "spec": self._spec(node, interval)}
