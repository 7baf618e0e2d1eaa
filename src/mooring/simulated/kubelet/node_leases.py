"""Signs of life of the simulated nodes: each renews its Lease, as kubelets do.

Nothing in the embedded cluster misses them, but `kubectl describe node` shows them and a node lifecycle controller of
a real cluster marks a node as lost without them. So many nodes that ten renewals a second would not do renew less
often, unless an interval is asked for.
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
MOST_RENEWALS_A_SECOND = 10


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
        self._asked = interval_seconds
        self._log = Log("heartbeats")

    async def run(self) -> None:
        """Beat until cancelled; an interval of 0 is a heart that does not."""
        if self._asked == 0:
            return
        is_first_round = True
        while True:
            simulated_nodes = list(self._machines())
            interval = self.interval(len(simulated_nodes))
            pause = interval / max(1, len(simulated_nodes))
            if is_first_round:
                pause, is_first_round = 1 / MOST_RENEWALS_A_SECOND, False
            for host in simulated_nodes:
                await self._beat(host.node, interval)
                await self._clock.sleep(pause)
            if not simulated_nodes:
                await self._clock.sleep(interval)

    def interval(self, nodes: int) -> float:
        return self._asked or max(INTERVAL_SECONDS, nodes / MOST_RENEWALS_A_SECOND)

    async def _beat(self, node: NodeRecord, interval: float) -> None:
        try:
            renewal = {"spec": self._spec(node, interval)}
            try:
                await self._client.patch(LEASE, node.name, LEASE_NAMESPACE, renewal, form="merge")
            except ApiError as error:
                if error.code != 404:
                    raise
                await self._client.create(LEASE, self._lease(node, interval), LEASE_NAMESPACE)
        except Fault as error:
            self._log.v(2).warning("A lease was not renewed", node=node, err=str(error))

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
