"""Claims of devices under `mooring up`, from the manifests of a tutorial to running pods."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import yaml
from tests.cli.programs import PATIENCE_SECONDS, Program, private_home

from mooring.client import ApiClient, Reflector
from mooring.client.kubeconfig import load_kubeconfig
from mooring.objects import Pod
from mooring.objects.object_store import Present
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice

COUNT = 12
GPUS = [f"gpu-{number:02}" for number in range(COUNT - 1)]
PODS = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
""" + "".join(
    f"""\
---
apiVersion: v1
kind: Pod
metadata: {{name: pod-{name}, namespace: default}}
spec:
  containers: [{{name: c, image: nginx, resources: {{claims: [{{name: gpu}}]}}}}]
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: one-gpu}}]
"""
    for name in range(COUNT)
)
DEVICES = f"""\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: gpu.example.com}}
spec: {{selectors: [{{cel: {{expression: "device.driver == 'gpu.example.com'"}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: node-2}}
spec:
  driver: gpu.example.com
  nodeName: node-2
  pool: {{name: node-2, generation: 1, resourceSliceCount: 1}}
  devices: [{", ".join(f"{{name: {gpu}}}" for gpu in GPUS)}]
"""
NODES = """\
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {capacity: {cpu: "8", memory: 32Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: node-2}
status: {capacity: {cpu: "8", memory: 32Gi, pods: "110"}}
---
"""


class Pods:
    """The pods as a client observes them."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._changed = asyncio.Event()

    def found(self, pod: Pod) -> None:
        self.changed(pod)

    def listed(self, present: Present) -> None: ...

    def changed(self, pod: Pod) -> None:
        self._pods[pod.name] = pod
        self._changed.set()

    def deleted(self, pod: Pod) -> None:
        del self._pods[pod.name]
        self._changed.set()

    @property
    def nodes(self) -> list[str]:
        return sorted(pod.spec.node_name for pod in self._pods.values())

    def waiting_for(self, message: str) -> int:
        """How many wait with this in the message of their condition."""
        conditions = [each for pod in self._pods.values() for each in pod.status.conditions]
        return sum(each.type == "PodScheduled" and message in each.message for each in conditions)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


@contextlib.asynccontextmanager
async def an_up(cluster: str) -> AsyncIterator[tuple[Program, ApiClient, Pods]]:
    """`mooring up` on that cluster file, a client of it, and its pods."""
    with private_home() as home:
        (home / "cluster.yaml").write_text(cluster, encoding="utf-8")
        with Program("up", "--cluster=cluster.yaml", home=home) as program:
            await asyncio.to_thread(program.ready)
            async with ApiClient(load_kubeconfig([home / "mooring.kubeconfig"])) as client:
                pods = Pods()
                watching = asyncio.create_task(Reflector(client, Pod, pods).run())
                yield program, client, pods
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            assert await asyncio.to_thread(program.end) == 0


async def allocated(client: ApiClient) -> list[str]:
    """The devices of all claims."""
    statuses = [claim.get("status") or {} for claim in await client.list(ResourceClaim.KIND)]
    allocations = [status["allocation"] for status in statuses if status.get("allocation")]
    return sorted(result["device"] for each in allocations for result in each["devices"].get("results", ()))


async def test_pods_that_wait_for_devices_get_one_each():
    async with an_up(NODES + PODS) as (program, client, pods):
        await pods.until(lambda: pods.waiting_for("device class gpu.example.com does not exist") == COUNT)
        for kind, document in zip((DeviceClass, ResourceSlice), yaml.safe_load_all(DEVICES), strict=True):
            await client.create(kind.KIND, document)
        await pods.until(lambda: pods.nodes == ["", *["node-2"] * (COUNT - 1)])
        assert await allocated(client) == GPUS
        await pods.until(lambda: pods.waiting_for("cannot allocate all claims") == 1)
    # The controller of claims leaves alone what the scheduler is writing.
    assert "object has been modified" not in program.written()
