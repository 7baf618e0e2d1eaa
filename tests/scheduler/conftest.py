"""A scheduler at work on the embedded API server, in this process; tests wait for what the watch shows."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from msgspec import to_builtins

from mooring.apiserver import EmbeddedApiServer
from mooring.client import ApiClient, Connection, Reflector
from mooring.config import load_configuration
from mooring.framework.plugin import Plugin
from mooring.objects import Kind, Node, Pod
from mooring.objects.core import PodCondition
from mooring.objects.object_store import Present
from mooring.plugins.catalogue import catalogue
from mooring.scheduler import Scheduler
from mooring.scheduler.wiring import Core, build_core, cluster_executor, complete
from mooring.testing import a_taint

# Upper bounds for a machine that is busy with other things; nothing waits this long when all is well.
PATIENCE_SECONDS = 90.0
LOOK_AGAIN_SECONDS = 0.05
EVENTS = Kind("events.k8s.io", "v1", "Event", "events")
CRDS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)

HEAD = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""


class Live:
    """The cluster, the scheduler, and what the API server shows of pods."""

    def __init__(self, client: ApiClient, core: Core, scheduler: Scheduler) -> None:
        self.client = client
        self.core = core
        self.scheduler = scheduler
        self.pods: dict[str, Pod] = {}
        self._changed = asyncio.Event()

    # The feed of pods

    def found(self, pod: Pod) -> None:
        self.changed(pod)

    def listed(self, present: Present) -> None:
        self.pods = {name: pod for name, pod in self.pods.items() if pod.key in present}
        self._changed.set()

    def changed(self, pod: Pod) -> None:
        self.pods[pod.name] = pod
        self._changed.set()

    def deleted(self, pod: Pod) -> None:
        self.pods.pop(pod.name, None)
        self._changed.set()

    # What tests do and wait for

    async def node(
        self, name: str, *, cpu: str = "4", labels: dict[str, str] | None = None, taints: Sequence[str] = ()
    ) -> None:
        resources = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
        document = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"taints": [to_builtins(a_taint(taint)) for taint in taints]},
            "status": {"capacity": resources, "allocatable": resources},
        }
        await self.client.create(Node.KIND, document)

    async def pod(self, name: str, *, scheduler: str | None = None, cpu: str = "100m", **labels: str) -> None:
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
        spec: dict[str, Any] = {"containers": [container]}
        if scheduler is not None:
            spec["schedulerName"] = scheduler
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
        await self.client.create(Pod.KIND, document, "default")

    async def until(self, happened: Callable[[], bool]) -> None:
        """Looks after every change that the watch shows, and now and then: the scheduler may receive it after us."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not happened():
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                        await self._changed.wait()

    async def bound(self, *names: str) -> list[str]:
        """Wait until these pods have nodes; returns which."""
        await self.until(lambda: all(name in self.pods and self.pods[name].spec.node_name for name in names))
        return [self.pods[name].spec.node_name for name in names]

    async def refused(self, name: str, *, containing: str = "") -> str:
        """Wait until the pod's condition names why it waits; returns the message."""

        def message() -> str:
            pod = self.pods.get(name)
            condition = pod.condition("PodScheduled") if pod else None
            return condition.message if condition and condition.status == "False" else ""

        await self.until(lambda: bool(message()) and containing in message())
        return message()

    def condition(self, name: str) -> PodCondition:
        """The pod's condition PodScheduled."""
        found = self.pods[name].condition("PodScheduled")
        assert found is not None, f"there is no condition on {name}"
        return found

    async def events(self, name: str) -> list[dict[str, Any]]:
        """The events about a pod that were written so far, oldest first."""
        await self.scheduler.reporter.flush(PATIENCE_SECONDS)
        found = await self.client.list(EVENTS, "default")
        return [event for event in found if event["regarding"]["name"] == name]


def a_configuration(*profiles: str) -> str:
    return HEAD + ("profiles:\n" + "\n".join(profiles) if profiles else "")


def a_profile(name: str, *, plugins: Sequence[str] = (), args: str = "") -> str:
    """A profile with the default plugins and these."""
    enabled = "".join(f"{{name: {plugin}}}, " for plugin in plugins)
    text = f"- schedulerName: {name}\n  plugins: {{multiPoint: {{enabled: [{enabled}]}}}}"
    return text + (f"\n  pluginConfig: {args}" if args else "")


@contextlib.asynccontextmanager
async def a_live_scheduler(
    server: EmbeddedApiServer, config: str = HEAD, plugins: Sequence[type[Plugin] | str] = (), **options: Any
) -> AsyncIterator[Live]:
    """`options` are the scheduler's own: a clock, a limit."""
    registry = catalogue()
    for plugin in plugins:
        if isinstance(plugin, str):
            registry.add_path(plugin)
        else:
            registry.add(plugin, "test")
    configuration = load_configuration(
        config, source="test.yaml", registry=registry, gates=options.get("gates")
    ).configuration
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    async with ApiClient(connection) as client:
        around = {name: options.pop(name) for name in ("may_schedule", "shutdown_seconds") if name in options}
        core = build_core(client, configuration, registry, **options)
        scheduler = complete(core, cluster_executor(core), **around)
        live = Live(client, core, scheduler)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(scheduler.run())
            watching = tasks.create_task(Reflector(client, Pod, live).run())
            ready = tasks.create_task(scheduler.ready.wait())
            await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
            try:
                yield live
            finally:
                ready.cancel()
                watching.cancel()
                scheduler.stop()


@pytest.fixture
def unused_tcp_port() -> Iterator[int]:
    """No process listens there, nor will one while the test runs: it is ours."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@pytest.fixture(autouse=True)
def among_themselves(private_runtime_folder: None) -> None:
    """Schedulers of these tests open their control socket there."""
