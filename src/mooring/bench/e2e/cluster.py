"""The cluster that schedulers are measured on: nodes, pods and whatever a workload needs, created and removed again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from mooring.base.errors import ApiError, OperatorMistake
from mooring.bench.control_plane import ControlPlane
from mooring.bench.manifests import (
    NAMESPACE,
    OURS,
    PRIORITY_CLASSES,
    Document,
    group_manifests,
    node_manifest,
    other_manifests,
    running_manifest,
)
from mooring.bench.scheduler_commands import gates_flag
from mooring.bench.workloads import Workload
from mooring.client import ApiClient, Connection, load_kubeconfig
from mooring.client.api import list_path, path_of
from mooring.objects import Kind, Node, Pod
from mooring.objects.pod_groups import PodGroup

CREATES_AT_ONCE = 32
PATIENCE_SECONDS = 600.0
"""For what is not measured: a machine may be busy, and thousands of pods are deleted by one request."""
EVENTS = Kind("", "v1", "Event", "events")
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
_encode = msgspec.json.Encoder().encode


class BenchCluster:
    """One API server with the nodes of one workload. `server_pid` is kube-apiserver's where it runs here."""

    def __init__(self, client: ApiClient, kubeconfig: Path, server_pid: int | None, gates: Sequence[str] = ()) -> None:
        self.client, self.kubeconfig, self.server_pid = client, kubeconfig, server_pid
        self.gates = gates
        """The feature gates that are on, beside the default ones."""

    @property
    def connection(self) -> Connection:
        return self.client.connection

    async def fill(self, workload: Workload, nodes: int, running: int) -> None:
        """The workload's nodes, the pods that run on them, and what they need."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await self.ensure(NAMESPACES, namespace)
        await self.create_all(other_manifests(workload))
        await self.create_all((Node.KIND, node_manifest(workload, number)) for number in range(nodes))
        await self.create_pods(running_manifest(workload, number, nodes) for number in range(running))

    async def ensure(self, kind: Kind, document: Document) -> None:
        """Create it unless it is there."""
        try:
            await self.client.create(kind, document)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def create_groups(self, workload: Workload, pods: int) -> None:
        """The PodGroups of so many incoming pods."""
        await self.create_all(group_manifests(workload, pods))

    async def create_pods(self, documents: Iterable[Document]) -> None:
        await self.create_all((Pod.KIND, document) for document in documents)

    async def create_all(self, documents: Iterable[tuple[Kind, Document]]) -> None:
        """So many at once. The first failure ends it."""
        waiting: Iterator[tuple[Kind, Document]] = iter(documents)

        async def work() -> None:
            for kind, document in waiting:
                path = path_of(kind, document["metadata"].get("namespace"))
                await self.client.transport.request("POST", path, _encode(document), seconds=PATIENCE_SECONDS)

        async with asyncio.TaskGroup() as group:
            for _ in range(CREATES_AT_ONCE):
                group.create_task(work())

    async def reset(self, workload: Workload, nodes: int, running: int) -> None:
        """Remove the pods of a run, their PodGroups and all events. Nodes stay; running pods that a run evicted are
        created again."""
        await self._remove_pods(f"!{OURS}")
        if any(True for _ in workload.groups(1)):
            await self._delete_all(PodGroup.KIND, NAMESPACE)
        if await self._count(Pod.KIND) < running:
            left = {each["metadata"]["name"] for each in await self.client.list(Pod.KIND, NAMESPACE)}
            manifests = (running_manifest(workload, number, nodes) for number in range(running))
            await self.create_pods(each for each in manifests if each["metadata"]["name"] not in left)

    async def _remove_pods(self, selector: str = "") -> None:
        await self._delete_all(Pod.KIND, NAMESPACE, selector)
        await self._delete_all(EVENTS, NAMESPACE)

    async def remove_everything(self) -> None:
        """Pods, events, nodes and PriorityClasses of the benchmark, and its namespace."""
        await self._remove_pods()
        await self._delete_all(Node.KIND, None, OURS)
        await self._delete_all(PRIORITY_CLASSES, None, OURS)
        await self.client.delete(NAMESPACES, NAMESPACE)

    async def _delete_all(self, kind: Kind, namespace: str | None, selector: str = "") -> None:
        """By few requests; pods go at once, whatever grace they have. A server on a busy machine may not delete all of
        them within the time of a request."""
        query = {"labelSelector": selector} if selector else {}
        body = _encode({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
        path = list_path(kind, namespace, query, 0, "")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                await self.client.transport.request("DELETE", path, body, seconds=PATIENCE_SECONDS)
                return
            except ApiError as error:
                if error.reason != "Timeout" or time.monotonic() > deadline:
                    raise

    async def event_count(self) -> int:
        return await self._count(EVENTS)

    async def _count(self, kind: Kind) -> int:
        """How many there are in the namespace, without reading them."""
        page = await self._get(list_path(kind, NAMESPACE, {}, 1, ""))
        return len(page["items"] or ()) + int(page["metadata"].get("remainingItemCount", 0))

    async def scheduled_pods(self) -> set[str]:
        """The pods about which there is an event with the reason Scheduled."""
        found = await self.client.list(EVENTS, NAMESPACE, field_selector="reason=Scheduled")
        return {each["involvedObject"]["name"] for each in found}

    async def _get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(await self.client.transport.request("GET", path))
        return found


@asynccontextmanager
async def own_cluster(gates: Sequence[str] = ()) -> AsyncIterator[BenchCluster]:
    """A fresh control plane, with these feature gates on."""
    async with ControlPlane(*_flags(gates)) as control_plane, _client(control_plane.connection) as client:
        yield BenchCluster(client, control_plane.kubeconfig, control_plane.server_pid, gates)


def _flags(gates: Sequence[str]) -> Iterator[str]:
    """Of kube-apiserver."""
    if gates:
        yield f"--feature-gates={gates_flag((gate, True) for gate in gates)}"
    if "GenericWorkload" in gates:
        yield f"--runtime-config={PodGroup.KIND.api_version}=true"
        # Its finalizers wait for a controller manager, which there is not.
        yield "--disable-admission-plugins=PodGroupProtection"


@asynccontextmanager
async def given_cluster(kubeconfig: Path) -> AsyncIterator[BenchCluster]:
    """A cluster that has no nodes but the benchmark's own. What the benchmark created is removed at the end."""
    async with _client(load_kubeconfig([kubeconfig])) as client:
        await _check_that_nodes_are_ours(client)
        cluster = BenchCluster(client, kubeconfig, None)
        try:
            yield cluster
        finally:
            await cluster.remove_everything()


async def _check_that_nodes_are_ours(client: ApiClient) -> None:
    foreign = [each["metadata"]["name"] for each in await client.list(Node.KIND, label_selector=f"!{OURS}")]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise OperatorMistake(
            f"the cluster at {client.connection.address} has nodes that are not the benchmark's: {foreign[0]}{more}. "
            "It fills a cluster with thousands of nodes and pods: give it one without nodes."
        )


def _client(connection: Connection) -> ApiClient:
    return ApiClient(connection, user_agent="mooring-bench")
