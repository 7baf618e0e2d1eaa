"""The kubelets of all simulated nodes: they start bound pods, stop terminating ones and complete short-lived ones.

A node is simulated when it has the annotation `mooring.dev/simulated`, or with `all_nodes_are_simulated`. Other nodes
and their pods are never written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable

from mooring.base.clock import Clock, parse_timestamp
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.simulated.kubelet.node_registration import registered_node
from mooring.simulated.kubelet.node_topologies import NodeTopologies
from mooring.simulated.kubelet.numa import REJECTED, REJECTION
from mooring.simulated.kubelet.pod_status import (
    completed_status,
    gates_changed,
    needs_start,
    run_seconds,
    running_status,
)
from mooring.simulated.kubelet.resource_usage import ResourceUsage, wrong_annotations
from mooring.simulated.kubelet.simulated_nodes import SimulatedNode, free_ordinal
from mooring.simulated.records import SIMULATED, ContainerRecord, Document, NodeRecord, PodRecord

NOT_READY_TAINT = "node.kubernetes.io/not-ready"
IMAGE_REPORT_SECONDS = 10.0
INVALID_USE = "InvalidUse"


class Kubelets:
    """Registers simulated nodes, syncs their pods, and reports their images."""

    def __init__(
        self,
        client: ApiClient,
        nodes: Informer[NodeRecord],
        pods: Informer[PodRecord],
        events: CoreEventRecorder,
        *,
        clock: Clock,
        all_nodes_are_simulated: bool = False,
        concurrency: int = 32,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._pods = pods
        self._events = events
        self._clock = clock
        self._log = Log("kubelets")
        self._all_nodes_are_simulated = all_nodes_are_simulated
        self.simulated_nodes: dict[str, SimulatedNode] = {}
        self._deleted_nodes: set[str] = set()
        self._pods_on: defaultdict[str, dict[str, PodRecord]] = defaultdict(dict)
        self._terminated: set[str] = set()
        self._pod_queue = WorkQueue("pod", self._sync_pod, clock=clock, log=self._log, workers=concurrency)
        self._node_queue = WorkQueue("node", self._register, clock=clock, log=self._log, workers=8)
        self.usage = ResourceUsage(self._running_nodes, self._pods_of, clock=clock)
        self.topologies = NodeTopologies(client, self._pods_of, events, clock=clock, log=self._log)
        nodes.subscribe(changed=self._node_changed, deleted=self._node_deleted)
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_deleted)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """The tasks of the kubelets, by name."""
        return {
            "pods": self._pod_queue.run,
            "nodes": self._node_queue.run,
            "images": self._report_images,
        } | self.topologies.tasks()

    def _running_nodes(self) -> Iterable[NodeRecord]:
        return [host.node for host in self.simulated_nodes.values()]

    def _pods_of(self, node: str) -> Iterable[PodRecord]:
        return self._pods_on[node].values() if node in self._pods_on else ()

    # Nodes.

    def owns(self, node: NodeRecord) -> bool:
        return self._all_nodes_are_simulated or SIMULATED in node.metadata.annotations

    def _node_changed(self, node: NodeRecord) -> None:
        if not self.owns(node):
            if self.simulated_nodes.pop(node.name, None) is not None:
                self._log.info("The node is no longer simulated", node=node)
            return
        if (host := self.simulated_nodes.get(node.name)) is not None:
            host.changed(node)
        else:
            self.simulated_nodes[node.name] = SimulatedNode(node)
            self._report_invalid_use(node, EventSource("kubelet", node.name), "0 counts instead")
            self._deleted_nodes.discard(node.name)
            for pod in self._pods_on[node.name].values():
                self._pod_changed(pod)
        self.topologies.node_changed(node)
        if _is_incomplete(node) or _has_stale_taint(node):
            self._node_queue.add(node.name)

    def _node_deleted(self, node: NodeRecord) -> None:
        """Delete the pods of a deleted node, as the pod garbage collector does."""
        if self.simulated_nodes.pop(node.name, None) is not None:
            self._deleted_nodes.add(node.name)
            self.topologies.node_deleted(node.name)
            for key in self._pods_on[node.name]:
                self._pod_queue.add(key)

    async def _register(self, name: str) -> None:
        """Register the node as its kubelet would, and remove a stale not-ready taint."""
        node = self._nodes.get(name)
        if node is None or name not in self.simulated_nodes:
            return
        if _is_incomplete(node):
            others = (each for each in self._nodes.all() if each.name != name)
            now = self._clock.now()
            written = await self._client.get(NodeRecord.KIND, name)
            registered = registered_node(written, ordinal=free_ordinal(others), now=now)
            metadata = {key: registered["metadata"][key] for key in ("labels", "annotations")}
            await self._client.patch(NodeRecord.KIND, name, None, {"metadata": metadata, "spec": registered["spec"]})
            await self._client.patch(
                NodeRecord.KIND, name, None, {"status": registered["status"]}, subresource="status"
            )
            self._log.v(1).info("Registered a simulated node", node=name)
        elif _has_stale_taint(node):
            written = await self._client.get(NodeRecord.KIND, name)
            taints = [taint for taint in written["spec"].get("taints") or () if taint["key"] != NOT_READY_TAINT]
            version = {"resourceVersion": written["metadata"]["resourceVersion"]}
            await self._client.patch(
                NodeRecord.KIND, name, None, {"metadata": version, "spec": {"taints": taints or None}}, form="merge"
            )

    async def _report_images(self) -> None:
        """Report newly pulled images in the nodes' statuses, as often as a kubelet does at most."""
        while True:
            await self._clock.sleep(IMAGE_REPORT_SECONDS)
            for host in [host for host in self.simulated_nodes.values() if host.has_unreported_images]:
                images: Document = {"status": {"images": host.take_unreported_images()}}
                try:
                    await self._client.patch(NodeRecord.KIND, host.name, None, images, subresource="status")
                except ApiError as error:
                    host.report_again(is_needed=error.code != 404)
                    self._log.v(2).warning("Failed to report images", node=host.name, err=str(error))

    # Pods.

    def _pod_changed(self, pod: PodRecord) -> None:
        name = pod.spec.node_name
        if not name:
            return
        self._pods_on[name][pod.key] = pod
        host = self.simulated_nodes.get(name)
        if host is None:
            return
        if pod.status.pod_ip and not host.runs(pod):
            host.admit(pod)  # it was running before we watched
            self.topologies.admit(pod, name, is_running=True)
        if pod.is_finished:
            self.topologies.release(pod, name)
        is_ending = pod.is_terminating and pod.uid not in self._terminated
        will_complete = pod.status.phase == "Running" and run_seconds(pod) is not None
        if is_ending or needs_start(pod) or gates_changed(pod) or will_complete:
            self._pod_queue.add(pod.key)

    def _pod_deleted(self, pod: PodRecord) -> None:
        name = pod.spec.node_name
        self._pods_on[name].pop(pod.key, None)
        if not self._pods_on[name]:
            del self._pods_on[name]
        self._terminated.discard(pod.uid)
        self.topologies.release(pod, name)
        if (host := self.simulated_nodes.get(name)) is not None:
            host.forget(pod)

    async def _sync_pod(self, key: str) -> None:
        pod = self._pods.get(key)
        if pod is None or not pod.spec.node_name:
            return
        host = self.simulated_nodes.get(pod.spec.node_name)
        if host is None:
            if pod.spec.node_name in self._deleted_nodes:
                await self._delete(pod)
        elif pod.is_terminating:
            await self._stop(pod, host)
        elif needs_start(pod):
            await self._start(pod, host)
        elif gates_changed(pod):
            await self._report(pod, self._running(pod, host))
        elif pod.status.phase == "Running" and (seconds := run_seconds(pod)) is not None:
            await self._complete_in_time(pod, seconds)

    async def _start(self, pod: PodRecord, host: SimulatedNode) -> None:
        """Report the bound pod as running."""
        if host.runs(pod):
            return  # reported already; the watch has not delivered the status yet
        if not self.topologies.admit(pod, host.name):
            message = f"Pod was rejected: {REJECTION}"
            await self._report(pod, {"phase": "Failed", "reason": REJECTED, "message": message})
            self._events.record(pod, EventSource("kubelet", host.name), REJECTED, REJECTION, warning=True)
            return
        status = self._running(pod, host)
        try:
            reported = await self._report(pod, status)
        except BaseException:
            host.forget(pod)
            raise
        if not reported:
            host.forget(pod)
            return
        kubelet = EventSource("kubelet", host.name)
        self._report_invalid_use(pod, kubelet, "the requests count instead")
        for field, container in _containers(pod):
            for reason, message in host.pull(container):
                self._events.record(pod, kubelet, reason, message, field=field)
            self._events.record(pod, kubelet, "Created", "Container created", field=field)
            self._events.record(pod, kubelet, "Started", "Container started", field=field)

    def _report_invalid_use(self, subject: PodRecord | NodeRecord, kubelet: EventSource, instead: str) -> None:
        for wrong in wrong_annotations(subject.metadata.annotations):
            self._events.record(subject, kubelet, INVALID_USE, f"{wrong}; {instead}", warning=True)

    def _running(self, pod: PodRecord, host: SimulatedNode) -> Document:
        return running_status(pod, host_ip=host.node.address, pod_ip=host.admit(pod), now=self._clock.now())

    async def _complete_in_time(self, pod: PodRecord, seconds: float) -> None:
        started = parse_timestamp(pod.status.start_time) if pod.status.start_time else self._clock.now()
        left = started + seconds - self._clock.now()
        if left > 0:
            self._pod_queue.add_after(pod.key, left)
        else:
            await self._report(pod, completed_status(pod, now=self._clock.now()))

    async def _stop(self, pod: PodRecord, host: SimulatedNode) -> None:
        """Stop a terminating pod: simulated containers exit at once."""
        if pod.uid in self._terminated:
            return
        if pod.status.phase == "Running":
            for field, container in _containers(pod):
                if field.startswith("spec.containers") or container.is_sidecar:
                    message = f"Stopping container {container.name}"
                    self._events.record(pod, EventSource("kubelet", host.name), "Killing", message, field=field)
        self._terminated.add(pod.uid)
        try:
            await self._delete(pod)
        except BaseException:
            self._terminated.discard(pod.uid)
            raise

    async def _delete(self, pod: PodRecord) -> None:
        try:
            await self._client.delete(PodRecord.KIND, pod.name, pod.namespace, grace_seconds=0, uid=pod.uid)
        except ApiError as error:
            if error.code not in (404, 409):  # deleted, or recreated under the same name
                raise

    async def _report(self, pod: PodRecord, status: Document) -> bool:
        """Patch the status; False when the pod is deleted."""
        body = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            await self._client.patch(PodRecord.KIND, pod.name, pod.namespace, body, subresource="status")
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True


def _containers(pod: PodRecord) -> list[tuple[str, ContainerRecord]]:
    """The pod's containers in the order they start, each with the field path of its events."""
    return [
        *((f"spec.initContainers{{{each.name}}}", each) for each in pod.spec.init_containers),
        *((f"spec.containers{{{each.name}}}", each) for each in pod.spec.containers),
    ]


def _is_incomplete(node: NodeRecord) -> bool:
    """A node that no kubelet has registered: it was created by hand."""
    return not node.address or not any(condition.type == "Ready" for condition in node.status.conditions)


def _has_stale_taint(node: NodeRecord) -> bool:
    """API servers taint every new node as not ready; the node lifecycle controller would remove the taint."""
    is_ready = any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
    return is_ready and any(taint.key == NOT_READY_TAINT for taint in node.spec.taints)
