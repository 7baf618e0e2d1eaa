"""The steps of the demo: a cluster and two schedulers start, pods arrive, three of them are pending, two are
requeued."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from mooring.base.documents import read_trees
from mooring.base.errors import Fault
from mooring.cli.child_cluster import child_cluster
from mooring.cli.common import registry_with
from mooring.cli.demo.show import Show
from mooring.cli.demo.traffic import LOOK_AGAIN_SECONDS, Measured, measured_traffic
from mooring.cli.plugin_definitions import DEFINITIONS, custom_kinds
from mooring.client import ApiClient, Reflector, load_kubeconfig
from mooring.config import load_configuration
from mooring.framework.definitions import definition_of
from mooring.objects import CustomResource, Kind, Node, Pod
from mooring.objects.object_store import Present
from mooring.scheduler import Scheduler, build_scheduler

PATIENCE_SECONDS = 45.0
EVENT_TRIES = 50
NO_PROMETHEUS = "http://prometheus.invalid"

Document = dict[str, Any]

DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments")
EVENTS = Kind("events.k8s.io", "v1", "Event", "events")


def text_of(name: str) -> str:
    return (files("mooring.cli.demo") / name).read_text(encoding="utf-8")


def documents_of(name: str) -> list[Document]:
    return [tree.plain() for tree in read_trees(text_of(name), name)]


class DemoPods:
    """The demo's pods as the API server shows them; wakes waiters on a change."""

    def __init__(self) -> None:
        self.by_name: dict[str, Pod] = {}
        self._changed = asyncio.Event()

    def found(self, pod: Pod) -> None:
        self.changed(pod)

    def listed(self, present: Present) -> None:
        self.by_name = {name: pod for name, pod in self.by_name.items() if pod.key in present}
        self._changed.set()

    def changed(self, pod: Pod) -> None:
        self.by_name[pod.name] = pod
        self._changed.set()

    def deleted(self, pod: Pod) -> None:
        self.by_name.pop(pod.name, None)
        self._changed.set()

    def running(self) -> Iterator[Pod]:
        return (pod for pod in self.by_name.values() if pod.status.phase == "Running")

    async def until(self, what: str, happened: Callable[[], bool], each_time: Callable[[], None]) -> None:
        """Wait until the pods are so; fail with this description if they never are."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not happened():
                    self._changed.clear()
                    await self._changed.wait()
                    each_time()
        except TimeoutError as error:
            raise Fault(f"the demo waited {PATIENCE_SECONDS:g} s for {what}, and it did not happen.") from error


async def play(stop: asyncio.Event, *, with_prometheus: bool = False) -> None:
    """The whole demo; Ctrl-C ends it early and cleanly."""
    acting = asyncio.create_task(_act(with_prometheus=with_prometheus))
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait([acting, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not acting.done():
        acting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await acting
        return
    await acting


async def _act(*, with_prometheus: bool) -> None:
    show = Show()
    with tempfile.TemporaryDirectory(prefix="mooring-demo-") as folder:
        kubeconfig, cluster_file = Path(folder) / "kubeconfig", Path(folder) / "cluster.yaml"
        cluster_file.write_text(text_of("cluster.yaml"), encoding="utf-8")
        show.step("starting an embedded API server with simulated nodes")
        async with (
            child_cluster(kubeconfig, [f"--cluster={cluster_file}"]),
            measured_traffic(with_prometheus=with_prometheus) as traffic,
            _connected(kubeconfig) as client,
            _random_scheduler(kubeconfig),
        ):
            show.step(f"network traffic is measured by {traffic.by}")
            show.step("random_scheduler.py runs as a separate scheduler")
            await _schedule(client, traffic, show)


async def _schedule(client: ApiClient, traffic: Measured, show: Show) -> None:
    registry = registry_with(())
    text = text_of("config.yaml").replace(NO_PROMETHEUS, traffic.address)
    configuration = load_configuration(text, source="config.yaml", registry=registry).configuration
    scheduler = build_scheduler(client, configuration, registry)
    running = asyncio.create_task(scheduler.run())
    await _or_fail(running, scheduler.ready.wait())
    names = ", ".join(profile.scheduler_name for profile in configuration.profiles)
    show.step(f"the scheduler is ready, with the profiles {names}")
    kinds = list(custom_kinds(configuration, registry))
    await _or_fail(running, _story(client, scheduler, traffic, show, kinds))
    scheduler.stop()
    await running


@contextlib.asynccontextmanager
async def _random_scheduler(kubeconfig: Path) -> AsyncIterator[None]:
    """The scheduler from scratch, in a process of its own while inside."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *["-m", "mooring.cli.demo.random_scheduler", "--kubeconfig", str(kubeconfig)],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        # Ctrl-C is ours to pass on.
        start_new_session=True,
    )
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def _connected(kubeconfig: Path) -> AsyncIterator[ApiClient]:
    """A client for a kubeconfig that exists only once the cluster has started."""
    async with ApiClient(load_kubeconfig([str(kubeconfig)])) as client:
        yield client


async def _or_fail(running: asyncio.Task[None], step: Any) -> None:
    """Wait for the step; if the scheduler fails first, raise that."""
    doing = asyncio.ensure_future(step)
    try:
        await asyncio.wait([running, doing], return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            await running
        await doing
    finally:
        doing.cancel()


async def events_with(client: ApiClient, pod: str) -> list[Document]:
    """The events, with that about this pod's binding: another process records it after the binding. Without it, if it
    does not come."""
    found: list[Document] = []
    for _ in range(EVENT_TRIES):
        found = await client.list(EVENTS, "default")
        if any(each["regarding"]["name"] == pod and each["reason"] == "Scheduled" for each in found):
            break
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    return found


async def _story(
    client: ApiClient, scheduler: Scheduler, traffic: Measured, show: Show, custom: list[type[CustomResource]]
) -> None:
    pods = DemoPods()
    kinds = {kind.kind: kind for kind in (Pod.KIND, DEPLOYMENTS, DEFINITIONS, *(each.KIND for each in custom))}
    watching = asyncio.create_task(Reflector(client, Pod, pods, namespace="default").run())

    def show_progress() -> None:
        for pod in list(pods.by_name.values()):
            show.progress(pod)

    def run(*prefixes: str) -> bool:
        names = [pod.name for pod in pods.running()]
        return all(any(name.startswith(prefix) for name in names) for prefix in prefixes)

    def waits(prefix: str) -> bool:
        return any(
            pod.name.startswith(prefix) and pod.condition("PodScheduled") is not None and not pod.spec.node_name
            for pod in pods.by_name.values()
        )

    async def create(documents: Iterable[Document]) -> None:
        for document in documents:
            await client.create(kinds[document["kind"]], document, "default")

    try:
        show.step("creating pods")
        await create(documents_of("pods.yaml"))
        await pods.until("the first pods to run", lambda: run("by-label", "web"), show_progress)
        pending = ("only-cpu-true", "by-custom-resource", "too-big")
        await pods.until("three pods to be refused", lambda: all(map(waits, pending)), show_progress)
        await traffic.is_known.wait()
        show.step(
            "defining the custom resource, from the plugin's Python type, with an object per node; and a last pod"
        )
        await create([*map(definition_of, custom), *documents_of("later.yaml")])
        await pods.until("these pods to run", lambda: run("by-custom-resource", "least-traffic"), show_progress)
        show.step("labelling node-2 with cpu=true: this event requeues the pod that waits for that label")
        await client.patch(Node.KIND, "node-2", None, {"metadata": {"labels": {"cpu": "true"}}}, form="merge")
        await pods.until(
            "that pod to run",
            lambda: run("only-cpu-true", "random-by-plugin", "random-by-program"),
            show_progress,
        )
        await scheduler.reporter.recorder.flush(5.0)
        show.table([(pod, scheduler.decision_log.read(pod.key)) for pod in pods.by_name.values()])
        show.events(await events_with(client, "random-by-program"))
        show.end()
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
