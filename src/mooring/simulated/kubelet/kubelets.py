"""The kubelets of all simulated nodes in one: bound pods run, terminating pods end, short-lived pods complete.

A node is ours when it carries the annotation `mooring.dev/simulated`, or when we were told that all nodes are. Nothing
is ever written about another node or a pod on one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock, parse_timestamp
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.simulated.event_recorder import EventRecorder, Source
from mooring.simulated.informer import Informer
from mooring.simulated.kubelet.node_registration import completed
from mooring.simulated.kubelet.pod_status import (
    completed_status,
    gates_changed,
    needs_start,
    run_seconds,
    running_status,
)
from mooring.simulated.kubelet.simulated_nodes import SimulatedNode, free_ordinal
from mooring.simulated.records import SIMULATED, ContainerRecord, Document, NodeRecord, PodRecord
from mooring.simulated.work_queue import WorkQueue

NOT_READY_TAINT = "node.kubernetes.io/not-ready"
IMAGE_REPORT_SECONDS = 10.0


class Kubelets:
    """Speaks for every simulated node."""

    def __init__(
        self,
        client: ApiClient,
        nodes: Informer[NodeRecord],
        pods: Informer[PodRecord],
        events: EventRecorder,
        *,
        clock: Clock,
        all_nodes_are_ours: bool = False,
        concurrency: int = 32,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._pods = pods
        self._events = events
        self._clock = clock
        self._log = Log("kubelets")
        self._all_nodes_are_ours = all_nodes_are_ours
        self.simulated_nodes: dict[str, SimulatedNode] = {}
        self._former: set[str] = set()
        self._pods_on: defaultdict[str, dict[str, PodRecord]] = defaultdict(dict)
        self._ended: set[str] = set()
        self._pod_work = WorkQueue("pod", self._sync_pod, clock=clock, log=self._log, workers=concurrency)
        self._node_work = WorkQueue("node", self._register, clock=clock, log=self._log, workers=8)
        nodes.subscribe(changed=self._node_changed, deleted=self._node_deleted)
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_deleted)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What must run for the kubelets to live."""
        return {"pods": self._pod_work.run, "nodes": self._node_work.run, "images": self._report_images}

    # Nodes.

    def owns(self, node: NodeRecord) -> bool:
        return self._all_nodes_are_ours or SIMULATED in node.metadata.annotations

    def _node_changed(self, node: NodeRecord) -> None:
        if not self.owns(node):
            if self.simulated_nodes.pop(node.name, None) is not None:
                self._log.info("The node is no longer simulated", node=node)
            return
        if (host := self.simulated_nodes.get(node.name)) is not None:
            host.changed(node)
        else:
            self.simulated_nodes[node.name] = SimulatedNode(node)
            self._former.discard(node.name)
            for pod in self._pods_on[node.name].values():
                self._pod_changed(pod)
        if _is_incomplete(node) or _has_stale_taint(node):
            self._node_work.add(node.name)

    def _node_deleted(self, node: NodeRecord) -> None:
        """Pods of a machine that is gone are gone with it."""
        if self.simulated_nodes.pop(node.name, None) is not None:
            self._former.add(node.name)
            for key in self._pods_on[node.name]:
                self._pod_work.add(key)

    async def _register(self, name: str) -> None:
        """Say of a node what its kubelet would; once it is ready, nothing may keep pods off it for not being so."""
        node = self._nodes.get(name)
        if node is None or name not in self.simulated_nodes:
            return
        if _is_incomplete(node):
            others = (each for each in self._nodes.all() if each.name != name)
            now = self._clock.now()
            written = await self._client.get(NodeRecord.KIND, name)
            whole = completed(written, ordinal=free_ordinal(others), now=now)
            metadata = {key: whole["metadata"][key] for key in ("labels", "annotations")}
            await self._client.patch(NodeRecord.KIND, name, None, {"metadata": metadata, "spec": whole["spec"]})
            await self._client.patch(NodeRecord.KIND, name, None, {"status": whole["status"]}, subresource="status")
            self._log.v(1).info("Registered a simulated node", node=name)
        elif _has_stale_taint(node):
            written = await self._client.get(NodeRecord.KIND, name)
            taints = [taint for taint in written["spec"].get("taints") or () if taint["key"] != NOT_READY_TAINT]
            version = {"resourceVersion": written["metadata"]["resourceVersion"]}
            await self._client.patch(
                NodeRecord.KIND, name, None, {"metadata": version, "spec": {"taints": taints or None}}, form="merge"
            )

    async def _report_images(self) -> None:
        """List newly pulled images in the nodes' statuses, as often as a kubelet does at most."""
        while True:
            await self._clock.sleep(IMAGE_REPORT_SECONDS)
            for host in [host for host in self.simulated_nodes.values() if host.has_news]:
                host.has_news = False
                images: Document = {"status": {"images": host.reported_images()}}
                try:
                    await self._client.patch(NodeRecord.KIND, host.name, None, images, subresource="status")
                except ApiError as error:
                    host.has_news = error.code != 404
                    self._log.v(2).warning("Images were not reported", node=host.name, err=str(error))

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
            host.admit(pod)  # it ran before we began to watch
        is_ending = pod.is_terminating and pod.uid not in self._ended
        will_complete = pod.status.phase == "Running" and run_seconds(pod) is not None
        if is_ending or needs_start(pod) or gates_changed(pod) or will_complete:
            self._pod_work.add(pod.key)

    def _pod_deleted(self, pod: PodRecord) -> None:
        name = pod.spec.node_name
        self._pods_on[name].pop(pod.key, None)
        if not self._pods_on[name]:
            del self._pods_on[name]
        self._ended.discard(pod.uid)
        if (host := self.simulated_nodes.get(name)) is not None:
            host.forget(pod)

    async def _sync_pod(self, key: str) -> None:
        pod = self._pods.get(key)
        if pod is None or not pod.spec.node_name:
            return
        host = self.simulated_nodes.get(pod.spec.node_name)
        if host is None:
            if pod.spec.node_name in self._former:
                await self._remove(pod)
        elif pod.is_terminating:
            await self._stop(pod, host)
        elif needs_start(pod):
            await self._start(pod, host)
        elif gates_changed(pod):
            await self._report(pod, self._running(pod, host))
        elif pod.status.phase == "Running" and (seconds := run_seconds(pod)) is not None:
            await self._complete_in_time(pod, seconds)

    async def _start(self, pod: PodRecord, host: SimulatedNode) -> None:
        """One report takes the pod from bound to running."""
        if host.runs(pod):
            return  # reported already; the watch has yet to bring it back
        status = self._running(pod, host)
        try:
            reported = await self._report(pod, status)
        except BaseException:
            host.forget(pod)
            raise
        if not reported:
            host.forget(pod)
            return
        kubelet = Source("kubelet", host.name)
        for field, container in _containers(pod):
            for reason, message in host.pull(container):
                self._events.record(pod, kubelet, reason, message, field=field)
            self._events.record(pod, kubelet, "Created", "Container created", field=field)
            self._events.record(pod, kubelet, "Started", "Container started", field=field)

    def _running(self, pod: PodRecord, host: SimulatedNode) -> Document:
        return running_status(pod, host_ip=host.node.address, pod_ip=host.admit(pod), now=self._clock.now())

    async def _complete_in_time(self, pod: PodRecord, seconds: float) -> None:
        started = parse_timestamp(pod.status.start_time) if pod.status.start_time else self._clock.now()
        left = started + seconds - self._clock.now()
        if left > 0:
            self._pod_work.add_after(pod.key, left)
        else:
            await self._report(pod, completed_status(pod, now=self._clock.now()))

    async def _stop(self, pod: PodRecord, host: SimulatedNode) -> None:
        """Containers of a simulated pod end as soon as they are asked to."""
        if pod.uid in self._ended:
            return
        if pod.status.phase == "Running":
            for field, container in _containers(pod):
                if field.startswith("spec.containers") or container.is_sidecar:
                    message = f"Stopping container {container.name}"
                    self._events.record(pod, Source("kubelet", host.name), "Killing", message, field=field)
        self._ended.add(pod.uid)
        try:
            await self._remove(pod)
        except BaseException:
            self._ended.discard(pod.uid)
            raise

    async def _remove(self, pod: PodRecord) -> None:
        try:
            await self._client.delete(PodRecord.KIND, pod.name, pod.namespace, grace_seconds=0, uid=pod.uid)
        except ApiError as error:
            if error.code not in (404, 409):  # gone, or a namesake in its place
                raise

    async def _report(self, pod: PodRecord, status: Document) -> bool:
        """Write the status; False when the pod is gone."""
        body = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            await self._client.patch(PodRecord.KIND, pod.name, pod.namespace, body, subresource="status")
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True


def _containers(pod: PodRecord) -> list[tuple[str, ContainerRecord]]:
    """The pod's containers in the order they start, each with the path that events name."""
    return [
        *((f"spec.initContainers{{{each.name}}}", each) for each in pod.spec.init_containers),
        *((f"spec.containers{{{each.name}}}", each) for each in pod.spec.containers),
    ]


def _is_incomplete(node: NodeRecord) -> bool:
    """A node that somebody wrote by hand: no kubelet has spoken for it yet."""
    return not node.address or not any(condition.type == "Ready" for condition in node.status.conditions)


def _has_stale_taint(node: NodeRecord) -> bool:
    """API servers taint every new node as not ready and leave it to a controller to find out that it is."""
    is_ready = any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
    return is_ready and any(taint.key == NOT_READY_TAINT for taint in node.spec.taints)
