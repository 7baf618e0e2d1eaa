"""NodeResourceTopology objects: each simulated node with NUMA nodes publishes one, updated as pods come and go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.work_queue import WorkQueue
from mooring.objects.meta import Kind
from mooring.simulated.kubelet.numa import NUMA, NumaNodeState, read_numa, topology_document
from mooring.simulated.records import NodeRecord, PodRecord

TOPOLOGY = Kind("topology.node.k8s.io", "v1alpha2", "NodeResourceTopology", "noderesourcetopologies", False)
INVALID_NUMA = "InvalidNUMA"
RETRY_SECONDS = 5.0
"""How long until a node is published again whose kind was not served."""


class NodeTopologies:
    """The NUMA nodes of all simulated nodes, and their objects."""

    def __init__(
        self,
        client: ApiClient,
        pods_on: Callable[[str], Iterable[PodRecord]],
        events: CoreEventRecorder,
        *,
        clock: Clock,
        log: Log,
    ) -> None:
        self._client, self._pods_on, self._events, self._log = client, pods_on, events, log
        self._states: dict[str, NumaNodeState] = {}
        self._read: dict[str, tuple[str, str]] = {}
        """By node, the annotation and resources that were read last."""
        self._nodes: dict[str, NodeRecord] = {}
        self._is_missing_reported = False
        self._queue = WorkQueue("node topology", self._publish, clock=clock, log=log, workers=8)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"node topologies": self._queue.run}

    def node_changed(self, node: NodeRecord) -> None:
        text = node.metadata.annotations.get(NUMA)
        now = (text or "", str(sorted(node.status.allocatable.items())))
        if text is None:
            if self._read.pop(node.name, None) is not None:
                self._states.pop(node.name, None)
                self._queue.add(node.name)
            return
        self._nodes[node.name] = node
        if self._read.get(node.name) == now or not node.status.allocatable:
            return
        self._read[node.name] = now
        try:
            state = NumaNodeState(read_numa(text, node.status.allocatable))
        except ValueError as error:
            self._states.pop(node.name, None)
            message = f"annotation {NUMA}: {error}; no NodeResourceTopology is published"
            self._log.warning("The NUMA nodes of a node are invalid", node=node, err=message)
            self._events.record(node, EventSource("kubelet", node.name), INVALID_NUMA, message, warning=True)
        else:
            for pod in self._pods_on(node.name):
                if pod.status.phase == "Running":
                    state.admit(pod, is_running=True)
            self._states[node.name] = state
        self._queue.add(node.name)

    def node_deleted(self, name: str) -> None:
        """Its object goes with it: the node owns it."""
        for known in (self._states, self._read, self._nodes):
            known.pop(name, None)

    def admit(self, pod: PodRecord, node: str, *, is_running: bool = False) -> bool:
        """False: the topology manager rejects the pod."""
        state = self._states.get(node)
        if state is None:
            return True
        is_admitted = state.admit(pod, is_running=is_running)
        self._queue.add(node)
        return is_admitted

    def release(self, pod: PodRecord, node: str) -> None:
        if (state := self._states.get(node)) is not None and state.release(pod):
            self._queue.add(node)

    async def _publish(self, name: str) -> None:
        state, node = self._states.get(name), self._nodes.get(name)
        try:
            if state is None or node is None:
                await self._delete(name)
                return
            pods = [pod for pod in self._pods_on(name) if not pod.is_finished]
            document = topology_document(name, node.uid, state, pods)
            try:
                await self._client.patch(TOPOLOGY, name, None, document, form="merge")
            except ApiError as error:
                if error.code != 404:
                    raise
                await self._client.create(TOPOLOGY, document)
        except ApiError as error:
            if error.code != 404:
                raise
            # Another program may install the definition later, such as `mooring up` for a plugin.
            if not self._is_missing_reported:
                self._is_missing_reported = True
                self._log.warning("NodeResourceTopologies are not served; they are published once they are", node=name)
            self._queue.add_after(name, RETRY_SECONDS)

    async def _delete(self, name: str) -> None:
        try:
            await self._client.delete(TOPOLOGY, name)
        except ApiError as error:
            if error.code != 404:
                raise
