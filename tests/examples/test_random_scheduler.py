"""The scheduler from scratch: it filters, scores, binds, writes its event, tries again and ends cleanly."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.examples.conftest import EXAMPLES
from tests.lists import list_into

from mooring.base.clock import ManualClock
from mooring.base.errors import MooringError
from mooring.cli.demo import random_scheduler
from mooring.cli.demo.random_scheduler import EVENTS, NAME, QUEUE_SIZE, RETRY_SECONDS, RandomScheduler
from mooring.client import ApiClient, Connection, Reflector
from mooring.objects import Node, Pod
from mooring.objects.object_store import Present
from mooring.testing import a_node_object, a_pod

PATIENCE_SECONDS = 90.0
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: main
contexts: [{name: main, context: {cluster: main, user: main}}]
clusters: [{name: main, cluster: {server: "http://%s"}}]
users: [{name: main, user: {}}]
"""


class PatientClock(ManualClock):
    """Advances only once a task sleeps on it."""

    def __init__(self) -> None:
        super().__init__()
        self._sleeping = asyncio.Semaphore(0)

    async def sleep(self, seconds: float) -> None:
        self._sleeping.release()
        await super().sleep(seconds)

    async def wake(self, sleepers: int = 1) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(sleepers):
                await self._sleeping.acquire()
        await asyncio.sleep(0)  # they have announced their sleep, and now they sleep
        self.advance(RETRY_SECONDS)


class Loaded(random.Random):
    """Dice with the test's results: whether nodes pass (0 is yes), and their priorities."""

    def __init__(self, *, passes: list[bool] | None = None, priorities: list[int] | None = None) -> None:
        super().__init__(0)
        self._passes, self._priorities = passes, priorities

    def randrange(self, start: int, *_: Any) -> int:
        if start == 2:
            return 0 if self._passes is None or self._passes.pop(0) else 1
        return self._priorities.pop(0) if self._priorities else 0


def a_scheduler(dice: random.Random, *nodes: str) -> RandomScheduler:
    """One that knows these nodes and is called directly; it never sends anything."""
    client = ApiClient(Connection(server="http://nowhere.invalid", source="the test"), clock=PatientClock())
    scheduler = RandomScheduler(client, dice)
    list_into(scheduler.nodes, [a_node_object(name) for name in nodes])
    return scheduler


class CapturedLog(logging.Handler):
    """What the scheduler logs; tests wait for a line."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self._news = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self._news.set()

    async def has(self, text: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while text not in self.messages:
                self._news.clear()
                await self._news.wait()


@pytest.fixture
def log() -> Iterator[CapturedLog]:
    captured = CapturedLog()
    random_scheduler.log.addHandler(captured)
    random_scheduler.log.setLevel(logging.INFO)
    yield captured
    random_scheduler.log.setLevel(logging.NOTSET)
    random_scheduler.log.removeHandler(captured)


async def test_the_best_of_the_nodes_that_pass_is_chosen(log):
    dice = Loaded(passes=[True, False, True], priorities=[40, 60])
    assert a_scheduler(dice, "a", "b", "c").find_node(a_pod()) == "c"
    assert log.messages[-1] == "calculated priorities: {'a': 40, 'c': 60}"


async def test_a_node_that_does_not_pass_is_never_chosen():
    scheduler = a_scheduler(random.Random(1), "a", "b", "c")
    scheduler.predicates.append(lambda _pod, node: node.name != "b")
    assert "b" not in {scheduler.find_node(a_pod()) for _ in range(200)}


async def test_a_priority_of_zero_can_win():
    assert a_scheduler(Loaded(priorities=[0]), "a").find_node(a_pod()) == "a"


async def test_no_node_is_found_where_none_passes_or_none_is_there():
    assert a_scheduler(Loaded(passes=[False, False]), "a", "b").find_node(a_pod()) is None
    assert a_scheduler(Loaded()).find_node(a_pod()) is None


async def test_each_node_passes_half_of_the_time_and_scores_0_to_99():
    scheduler = a_scheduler(random.Random(5), "a")
    node = a_node_object("a")
    (predicate,), (priority,) = scheduler.predicates, scheduler.priorities
    assert 400 < sum(predicate(a_pod(), node) for _ in range(1000)) < 600
    assert {priority(a_pod(), node) for _ in range(3000)} == set(range(100))


async def test_the_same_seed_makes_the_same_choices_in_whatever_order_nodes_came():
    one, other = a_scheduler(random.Random(7), "a", "b", "c"), a_scheduler(random.Random(7), "c", "a", "b")
    assert [one.find_node(a_pod()) for _ in range(50)] == [other.find_node(a_pod()) for _ in range(50)]


async def test_each_node_is_logged_once_and_forgotten_when_it_goes(log):
    scheduler = a_scheduler(Loaded(), "a")
    scheduler.nodes.changed(next(iter(scheduler.nodes.all())))
    assert log.messages == ["New node is added. a"]
    scheduler.nodes.listed({})
    assert scheduler.find_node(a_pod()) is None


async def test_more_pods_than_the_queue_holds_wait_and_none_is_lost():
    scheduler = a_scheduler(Loaded())
    clock = scheduler.client.clock
    assert isinstance(clock, PatientClock)
    pods = [a_pod(f"pod-{number}", uid=str(number)) for number in range(QUEUE_SIZE + 2)]
    async with asyncio.timeout(PATIENCE_SECONDS), scheduler.tasks:
        list_into(scheduler.pods, pods)
        taken = [await scheduler.queue.get() for _ in range(QUEUE_SIZE)]
        assert scheduler.queue.empty()
        scheduler.pods.deleted(pods[-1])
        await clock.wake(2)
        taken.append(await scheduler.queue.get())
    assert [pod.name for pod in taken] == [pod.name for pod in pods[:-1]]
    assert scheduler.queue.empty()


class Shown(dict[str, Pod]):
    """The pods as the API server shows them."""

    def __init__(self) -> None:
        super().__init__()
        self._news = asyncio.Event()

    def found(self, pod: Pod) -> None:
        self.changed(pod)

    def listed(self, present: Present) -> None: ...

    def changed(self, pod: Pod) -> None:
        self[pod.name] = pod
        self._news.set()

    def deleted(self, pod: Pod) -> None:
        self.pop(pod.name, None)
        self._news.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not happened():
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def at_work(connection: Connection, dice: random.Random) -> AsyncIterator[tuple[Shown, PatientClock]]:
    clock, shown = PatientClock(), Shown()
    async with ApiClient(connection, clock=clock) as client, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(RandomScheduler(client, dice).run())
        watching = tasks.create_task(Reflector(client, Pod, shown).run())
        yield shown, clock
        running.cancel()
        watching.cancel()


async def create_node(client: ApiClient, name: str) -> None:
    await client.create(Node.KIND, {"metadata": {"name": name}})


async def create_pod(client: ApiClient, name: str, scheduler: str = NAME) -> None:
    spec = {"schedulerName": scheduler, "containers": [{"name": "nginx", "image": "nginx"}]}
    await client.create(Pod.KIND, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


async def test_a_pod_is_bound_and_gets_its_event(client, connection):
    await create_node(client, "node-1")
    async with at_work(connection, Loaded()) as (shown, _):
        await create_pod(client, "other", scheduler="default-scheduler")
        await create_pod(client, "nginx")
        await shown.until(lambda: "nginx" in shown and shown["nginx"].spec.node_name == "node-1")
        assert shown["other"].spec.node_name == ""
        await create_pod(client, "later")
        # One pod at a time: when the next is bound, the event of the one before has been written.
        await shown.until(lambda: "later" in shown and shown["later"].spec.node_name == "node-1")
    event = next(event for event in await client.list(EVENTS, "default") if event["involvedObject"]["name"] == "nginx")
    assert event["metadata"]["name"].startswith("nginx-")
    assert event["metadata"]["generateName"] == "nginx-"
    assert event["involvedObject"] == {
        "kind": "Pod",
        "namespace": "default",
        "name": "nginx",
        "uid": shown["nginx"].uid,
    }
    assert (event["reason"], event["type"], event["count"]) == ("Scheduled", "Normal", 1)
    assert event["source"] == {"component": "random-scheduler"}
    assert event["message"] == "pod [default/nginx] is successfully scheduled to node node-1"
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2023-11-14T22:13:20Z"


async def test_a_pod_without_a_node_is_tried_again(client, connection, log):
    await create_node(client, "node-1")
    async with at_work(connection, Loaded(passes=[False, True])) as (shown, clock):
        await create_pod(client, "nginx")
        await log.has("cannot find a node that fits pod [default/nginx]; trying again in 1 s")
        await clock.wake()
        await shown.until(lambda: shown["nginx"].spec.node_name == "node-1")


async def test_a_bind_that_fails_is_tried_again(client, connection, log, monkeypatch):
    await create_node(client, "node-1")
    whole = ApiClient.bind

    async def no_response(*_: object) -> None:
        monkeypatch.setattr(ApiClient, "bind", whole)
        raise MooringError("no response")

    monkeypatch.setattr(ApiClient, "bind", no_response)
    async with at_work(connection, Loaded()) as (shown, clock):
        await create_pod(client, "nginx")
        await log.has("failed to bind pod [default/nginx]: no response; trying again in 1 s")
        await clock.wake()
        await shown.until(lambda: shown["nginx"].spec.node_name == "node-1")


async def test_an_event_that_cannot_be_written_does_not_undo_the_binding(client, connection, log, monkeypatch):
    await create_node(client, "node-1")

    async def refused(*_: object, **__: object) -> None:
        raise MooringError("no room for events")

    async with at_work(connection, Loaded()) as (shown, _):
        await create_pod(client, "nginx")
        monkeypatch.setattr(ApiClient, "create", refused)
        await log.has("failed to emit the event of pod [default/nginx]: no room for events")
        await shown.until(lambda: shown["nginx"].spec.node_name == "node-1")


def as_program(*arguments: str) -> subprocess.CompletedProcess[str]:
    file = EXAMPLES / "random-scheduler" / "random_scheduler.py"
    return subprocess.run([sys.executable, str(file), *arguments], capture_output=True, text=True, check=False)


def test_a_kubeconfig_that_is_not_there_is_an_operators_mistake(tmp_path: Path):
    ended = as_program("--kubeconfig", str(tmp_path / "none"))
    assert ended.returncode == 2
    assert ended.stderr.startswith("Error: ")
    assert str(tmp_path / "none") in ended.stderr


def test_an_unreachable_server_is_reported_at_once(tmp_path: Path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG % address, encoding="utf-8")
        ended = as_program("--kubeconfig", str(kubeconfig))
    assert ended.returncode == 1
    assert "Error: " in ended.stderr
    assert address in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_installed_package_can_start_it_too():
    command = [sys.executable, "-m", "mooring.cli.demo.random_scheduler", "--help"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "--seed" in ended.stdout


def test_the_file_in_the_package_is_the_one_to_read():
    assert Path(random_scheduler.__file__).resolve() == EXAMPLES / "random-scheduler" / "random_scheduler.py"
